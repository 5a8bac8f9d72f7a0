//! What a new program (exec) means for the process that runs it; `unshare`.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::namespace::Names;
use super::user_space::Users;
use super::{
    Clocks, Numbers, Process, clocks, end, namespace, numbers, processors, release_vfork, share,
    user_space,
};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::file::{self, Descriptors};
use crate::fs::{MountSpace, Place};
use crate::ipc::Ipc;
use crate::machine::MachineThread;
use crate::signal::{self, NO_STACK};
use crate::thread::Thread;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] =
    &[partial(l::__NR_unshare, "unshare", unshare, "namespaces of networks (EINVAL)")];

/// Exec is certain: all other threads of the process end, and `thread` becomes its first.
pub fn begin(unix: &Unix, thread: &Rc<Thread>) {
    end::end_others(unix, thread);
    thread.process.times.leave_memory(&thread.process);
}

/// The machine's thread of `thread` ends; from now on it has `machine`.
pub fn replace_machine_thread(unix: &Unix, thread: &Rc<Thread>, machine: MachineThread) {
    let _ = unix.boost.leave(unix, thread);
    processors::ends(unix, thread);
    thread.earlier.set(crate::time::of_thread(unix, thread));
    let old = thread.machine.replace(machine);
    unix.machine.bind(old, None);
    unix.machine.destroy_thread(old);
    processors::begins_anew(thread);
    unix.machine.bind(machine, Some(thread));
    share::begins(unix, thread);
}

/// The new program is there: caught signals do as the system does again, timers and the
/// alternate stack are gone, and a parent that waits in `vfork` goes on.
pub fn end(thread: &Rc<Thread>) {
    let process = &thread.process;
    own_actions(process);
    thread.signals.stack.set(NO_STACK);
    process.times.forget_timers(process);
    signal::recalculate(process);
    clocks::has_program(process);
    let state = &process.state;
    state.replaced.set(true);
    state.keys.leave(false);
    state.not_dumpable.set(false);
    state.exit_signal.set(l::SIGCHLD);
    // Nobody sends it the signals that its former program had asked its children for.
    process.children.borrow().iter().for_each(|child| child.state.exit_signal.set(l::SIGCHLD));
    release_vfork(process);
}

/// The process's actions are its own, without handlers.
fn own_actions(process: &Process) {
    let own = (**process.actions.borrow()).clone();
    own.reset();
    process.actions.replace(Rc::new(own));
}

/// A descriptor table for the process alone, of `most` at most, if it shares its own.
///
/// # Errors
/// `EMFILE` if it has more, `ENOMEM`.
pub fn own_table(process: &Process, most: u64) -> Result<Option<Rc<Descriptors>>, Errno> {
    let files = process.files.borrow();
    let shared = Rc::strong_count(&files) > 1;
    shared.then(|| files.copy(&process.user(), most)).transpose()
}

/// The process has the table that was made for it from now on.
pub fn has_table(unix: &Unix, process: &Process, own: Option<Rc<Descriptors>>) {
    if let Some(own) = own {
        let old = process.files.replace(own);
        file::release(unix, old);
    }
}

/// The process has a descriptor table of its own from now on.
///
/// # Errors
/// `EMFILE` if it has more than processes may have by now, `ENOMEM`.
pub fn own_files(unix: &Unix, process: &Process) -> Result<(), Errno> {
    let own = own_table(process, unix.streams.most_descriptors.get())?;
    has_table(unix, process, own);
    Ok(())
}

fn unshare(cx: &Cx) -> Answer {
    let flags = cx.arg(0);
    let known = u64::from(
        l::CLONE_FS
            | l::CLONE_FILES
            | l::CLONE_SYSVSEM
            | l::CLONE_THREAD
            | l::CLONE_SIGHAND
            | l::CLONE_VM
            | l::CLONE_NEWNS
            | l::CLONE_NEWUTS
            | l::CLONE_NEWIPC
            | l::CLONE_NEWPID
            | l::CLONE_NEWUSER
            | l::CLONE_NEWTIME,
    );
    if flags & !(known | namespace::SINGLE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    namespace::check_single(cx, flags)?;
    let alone = u64::from(l::CLONE_THREAD | l::CLONE_SIGHAND | l::CLONE_VM | l::CLONE_NEWUSER);
    if flags & alone != 0 && shares_memory(cx) {
        return Err(Errno::EINVAL.into());
    }
    let new = Own::new(cx, flags)?;
    if flags & u64::from(l::CLONE_FILES) != 0 {
        own_files(cx.unix, cx.process)?;
    }
    new.enter(cx);
    Ok(0)
}

/// Whether others use the caller's memory: its threads, or processes as `vfork` makes them.
pub(super) fn shares_memory(cx: &Cx) -> bool {
    let space = cx.process.space();
    let uses = |other: &Rc<Process>| {
        let lives = other.ended.get().is_none() && !Rc::ptr_eq(other, cx.process);
        lives && Rc::ptr_eq(&other.space(), &space)
    };
    let threads = cx.process.threads.borrow().len();
    threads > 1 || cx.unix.processes.by_pid.borrow().values().any(uses)
}

/// What `unshare` gives to who calls it.
struct Own {
    users: Users,
    names: Option<Rc<Names>>,
    ipc: Option<Rc<Ipc>>,
    numbers: Option<Rc<Numbers>>,
    clocks: Option<Rc<Clocks>>,
    mounts: Option<Rc<MountSpace>>,
    place: Option<Place>,
}

impl Own {
    fn new(cx: &Cx, flags: u64) -> Result<Self, Errno> {
        let has = |flag: u32| flags & u64::from(flag) != 0;
        let mut own = Self {
            users: None,
            names: None,
            ipc: None,
            numbers: None,
            clocks: None,
            mounts: None,
            place: has(l::CLONE_FS | l::CLONE_NEWNS | l::CLONE_NEWUSER)
                .then(|| (**cx.process.place.borrow()).clone()),
        };
        if has(l::CLONE_NEWUSER) {
            own.users = Some(user_space::new(cx)?);
        }
        let users = || own.users.clone().or_else(|| cx.users());
        if has(l::CLONE_NEWUTS) {
            own.names = Some(namespace::new_names(cx, users())?);
        }
        if has(l::CLONE_NEWIPC) {
            own.ipc = Some(namespace::new_ipc(cx, users())?);
        }
        if has(l::CLONE_NEWPID) {
            namespace::check_in(cx, &users())?;
            own.numbers = Some(numbers::new(cx, users())?);
        }
        if has(l::CLONE_NEWTIME) {
            own.clocks = Some(clocks::new(cx, users())?);
        }
        if let Some(place) = own.place.as_ref().filter(|_| has(l::CLONE_NEWNS)) {
            own.mounts = Some(namespace::new_mounts(cx, users(), place)?);
        }
        Ok(own)
    }

    fn enter(self, cx: &Cx) {
        let state = &cx.process.state;
        if let Some(place) = self.place {
            *cx.process.place.borrow_mut() = Rc::new(place);
        }
        if self.mounts.is_some() {
            drop(state.mounts.replace(self.mounts));
        }
        if self.names.is_some() {
            state.names.replace(self.names);
        }
        if self.numbers.is_some() {
            state.numbers_of_children.replace(self.numbers);
        }
        if self.clocks.is_some() {
            state.clocks_of_children.replace(self.clocks);
        }
        if let Some(ipc) = self.ipc {
            namespace::enter_ipc(cx, ipc);
        }
        if self.users.is_some() {
            cx.process.credentials.borrow_mut().enter(self.users);
        }
    }
}
