//! How processes and threads are born: process 1, and what `clone` and its kin wish for.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;

use super::descriptor::{self, Expecting};
use super::inheritance::{numbers_of_child, state_of_child};
use super::user_space::{self, Users};
use super::{
    Numbers, Pid, Process, State, clocks, control, end, limits, namespace, numbers, processors,
    share,
};
use crate::account::{Charge, What};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::fs::Place;
use crate::machine::Reply;
use crate::mm::AddressSpace;
use crate::signal::{NO_STACK, OnSignal, ProcessSignals};
use crate::stream::socket::netlink::connector;
use crate::thread::Thread;
use crate::time::ProcessTimes;
use crate::trace;
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// What a process costs its user, without its memory, its threads and its table of descriptors; what a thread costs.
const PROCESS_BYTES: usize = 4096;
const THREAD_BYTES: usize = 2560;
const THREAD_PAGES: u64 = 4;

/// Timer slack of process 1.
const FIRST_SLACK_NS: u64 = 50_000;

/// Namespaces that a thread cannot have of its own.
const CLONE_NEW: u32 = l::CLONE_NEWUTS
    | l::CLONE_NEWNS
    | l::CLONE_NEWIPC
    | l::CLONE_NEWPID
    | l::CLONE_NEWUSER
    | l::CLONE_NEWTIME;

/// What is to be born.
#[derive(Clone, Default)]
pub(super) struct Wish {
    /// `CLONE_*`.
    pub flags: u64,
    /// Stack pointer; 0 is the parent's.
    pub stack: u64,
    /// Where the child's id goes in the parent's memory.
    pub parent_tid: u64,
    /// Where it goes in the child's, and is cleared at its end.
    pub child_tid: u64,
    /// Where a descriptor of it goes in the parent's memory (`CLONE_PIDFD`).
    pub pidfd: u64,
    /// FS base.
    pub tls: u64,
    /// Signal at its end.
    pub exit_signal: u32,
    /// Its numbers in its namespace, in the one above that and so on (`set_tid`).
    pub numbers: Vec<u32>,
}

impl Wish {
    pub fn has(&self, flag: u32) -> bool {
        self.flags & u64::from(flag) != 0
    }

    /// Refuses combinations that make no sense, as Linux does.
    fn check(&self, cx: &Cx) -> Result<(), Errno> {
        let wrong = (self.has(l::CLONE_THREAD) && !self.has(l::CLONE_SIGHAND))
            || (self.has(l::CLONE_SIGHAND) && !self.has(l::CLONE_VM))
            || (self.has(l::CLONE_SIGHAND) && self.flags & l::CLONE_CLEAR_SIGHAND != 0)
            || (self.has(l::CLONE_PARENT) && cx.process.signals.protected.get())
            || (self.has(l::CLONE_PIDFD) && self.has(l::CLONE_THREAD))
            || (self.has(l::CLONE_THREAD) && self.has(CLONE_NEW))
            || (self.has(l::CLONE_SYSVSEM) && self.has(l::CLONE_NEWIPC))
            || (self.has(l::CLONE_FS) && self.has(l::CLONE_NEWNS | l::CLONE_NEWUSER))
            || self.flags & l::CLONE_INTO_CGROUP != 0;
        if wrong {
            return Err(Errno::EINVAL);
        }
        namespace::check_single(cx, self.flags)?;
        let bad_base = self.has(l::CLONE_SETTLS) && self.tls >= control::END_OF_USER;
        if bad_base { Err(Errno::EPERM) } else { Ok(()) }
    }
}

/// Makes process 1, with an empty address space. It does not run before something (exec)
/// gives it registers and an answer.
///
/// # Errors
/// When the machine has no space or thread for it.
pub fn first(unix: &Unix) -> Result<Rc<Thread>, Errno> {
    let pid = unix.processes.allocate_id()?;
    let process = Rc::new(Process {
        pid,
        number: pid.first(),
        parent: RefCell::default(),
        parent_pid: Cell::default(),
        parent_number: Cell::new(0),
        children: RefCell::default(),
        group: Cell::new(pid),
        session: Cell::new(pid),
        threads: RefCell::default(),
        space: RefCell::new(AddressSpace::new(unix, &unix.accounts.user(0))?),
        files: RefCell::default(),
        place: RefCell::new(Rc::new(Place::first(unix))),
        actions: RefCell::default(),
        signals: ProcessSignals::default(),
        user: RefCell::new(unix.accounts.user(0)),
        _charge: None,
        credentials: RefCell::default(),
        limits: RefCell::new(limits::first(unix)),
        ended: Cell::new(None),
        child_changed: WaitQueue::default(),
        executable: RefCell::default(),
        times: ProcessTimes::new(unix),
        state: State::default(),
    });
    process.signals.protected.set(true);
    process.state.timer_slack.set(FIRST_SLACK_NS);
    process.state.first_slack.set(FIRST_SLACK_NS);
    let thread = Thread::new(pid, process.clone(), unix.run_queue.clone());
    thread.machine.set(unix.machine.create_thread(process.space().machine())?);
    enter_tables(unix, &thread);
    unix.processes.enter(&process);
    Ok(thread)
}

/// The thread exists from now on.
fn enter_tables(unix: &Unix, thread: &Rc<Thread>) {
    unix.machine.bind(thread.machine.get(), Some(thread));
    thread.process.threads.borrow_mut().push(thread.clone());
    unix.processes.by_tid.borrow_mut().insert(thread.tid.get(), thread.clone());
}

/// Carries out a wish; the new thread's id. A vfork waits for its child.
pub(super) fn bear(cx: &Cx, wish: &Wish) -> Answer {
    if cx.is_retry() {
        return wait_for_vfork(cx);
    }
    wish.check(cx)?;
    limits::check_room(cx, wish.has(l::CLONE_THREAD))?;
    let descriptor = descriptor_of_child(cx, wish)?;
    let born = give_birth(cx, wish);
    if let Some(descriptor) = descriptor {
        match &born {
            Ok(thread) => descriptor.meet(&thread.process),
            Err(_) => drop(cx.process.files.borrow().remove(descriptor.fd)),
        }
    }
    let thread = born?;
    connector::born(cx, &thread);
    let process = &thread.process;
    tell_ids(cx, wish, &thread);
    cx.unix.processes.births.set(cx.unix.processes.births.get() + 1);
    cx.unix.reply(&thread, Reply::Resume);
    if cx.thread.is_traced() {
        trace::born(cx, wish.flags, wish.exit_signal, &thread);
    }
    if wish.has(l::CLONE_VFORK) {
        process.state.vforked.set(true);
        let number = cx.shown(thread.tid.get());
        cx.set_progress(u64::from(number) << 32 | u64::from(thread.tid.get().first()));
        return wait_for_vfork(cx);
    }
    Ok(cx.shown(thread.tid.get()).into())
}

/// A descriptor for the child, if one is wanted.
fn descriptor_of_child(cx: &Cx, wish: &Wish) -> Result<Option<Expecting>, Errno> {
    if !wish.has(l::CLONE_PIDFD) {
        return Ok(None);
    }
    let expecting = descriptor::expecting(cx)?;
    if let Err(errno) = cx.user().write(wish.pidfd, &expecting.fd) {
        drop(cx.process.files.borrow().remove(expecting.fd));
        return Err(errno);
    }
    Ok(Some(expecting))
}

/// Makes the thread, and its process if it has one of its own.
fn give_birth(cx: &Cx, wish: &Wish) -> Result<Rc<Thread>, Errno> {
    let users = match wish.has(l::CLONE_NEWUSER) {
        true => Some(user_space::new(cx)?),
        false => cx.users(),
    };
    let space = numbers_of_child(cx, wish, &users)?;
    let tid = numbers::allocate(cx.unix, space.as_ref(), &wish.numbers)?;
    let born = give_birth_as(cx, wish, (space.clone(), users), tid);
    if born.is_err() {
        numbers::release(cx.unix, tid);
    }
    born
}

fn give_birth_as(
    cx: &Cx,
    wish: &Wish,
    spaces: (Option<Rc<Numbers>>, Users),
    tid: Pid,
) -> Result<Rc<Thread>, Errno> {
    let process = match wish.has(l::CLONE_THREAD) {
        true => cx.process.clone(),
        false => new_process(cx, wish, spaces, tid)?,
    };
    clocks::born(cx, &process);
    // Who is the parent of a vfork waits meanwhile.
    if wish.has(l::CLONE_VM) && !wish.has(l::CLONE_VFORK) {
        process.space().share();
    }
    let thread = match new_thread(cx, wish, tid, &process) {
        Ok(thread) => thread,
        Err(errno) => {
            if !wish.has(l::CLONE_THREAD) {
                end::discard_unborn(cx.unix, &process);
            }
            return Err(errno);
        }
    };
    if !wish.has(l::CLONE_THREAD) {
        enter_family(cx, wish, &process);
    }
    Ok(thread)
}

/// The child's process, not yet known to anybody.
fn new_process(
    cx: &Cx,
    wish: &Wish,
    (numbers, users): (Option<Rc<Numbers>>, Users),
    pid: Pid,
) -> Result<Rc<Process>, Errno> {
    let parent = cx.process;
    let charge = cx.pay(PROCESS_BYTES)?;
    let files = parent.files.borrow().clone();
    let most = cx.unix.streams.most_descriptors.get();
    let files =
        if wish.has(l::CLONE_FILES) { files } else { files.copy(&cx.process.user(), most)? };
    let space = if wish.has(l::CLONE_VM) {
        parent.space()
    } else {
        AddressSpace::fork(cx.unix, &parent.space())?
    };
    let place = parent.place.borrow().clone();
    let actions = parent.actions.borrow().clone();
    let place = if wish.has(l::CLONE_FS) { place } else { Rc::new((*place).clone()) };
    let actions = if wish.has(l::CLONE_SIGHAND) { actions } else { Rc::new((*actions).clone()) };
    if wish.flags & l::CLONE_CLEAR_SIGHAND != 0 {
        actions.reset();
    }
    let state = state_of_child(cx, wish, (numbers, &users), &place)?;
    let number = numbers::shown(state.numbers.as_ref(), pid);
    let mut credentials = parent.credentials.borrow().clone();
    if wish.has(l::CLONE_NEWUSER) {
        credentials.enter(users);
    }
    let is_init = state.numbers.is_some() && number == 1;
    let signals = ProcessSignals::default();
    signals.protected.set(is_init);
    Ok(Rc::new(Process {
        pid,
        number,
        parent: RefCell::default(),
        parent_pid: Cell::default(),
        parent_number: Cell::new(0),
        children: RefCell::default(),
        group: parent.group.clone(),
        session: parent.session.clone(),
        threads: RefCell::default(),
        space: RefCell::new(space),
        files: RefCell::new(files),
        place: RefCell::new(place),
        actions: RefCell::new(actions),
        signals,
        user: parent.user.clone(),
        _charge: Some(charge),
        credentials: RefCell::new(credentials),
        limits: parent.limits.clone(),
        ended: Cell::new(None),
        child_changed: WaitQueue::default(),
        executable: parent.executable.clone(),
        times: ProcessTimes::new(cx.unix),
        state,
    }))
}

/// The child's thread, with the caller's registers.
fn new_thread(cx: &Cx, wish: &Wish, tid: Pid, process: &Rc<Process>) -> Result<Rc<Thread>, Errno> {
    let machine = &cx.unix.machine;
    let parent = cx.thread;
    let kernel = Charge::new(&cx.process.user(), What::Kernel, THREAD_PAGES);
    let levels = numbers::levels(process.state.numbers.as_ref()).count();
    let bytes = THREAD_BYTES + levels * numbers::NUMBER_BYTES;
    let charges = [cx.pay(bytes)?, kernel.map_err(|_| Errno::EAGAIN)?];
    let thread = Thread::new(tid, process.clone(), cx.unix.run_queue.clone());
    thread.charges.replace(Some(charges));
    thread.machine.set(machine.create_thread(process.space().machine())?);
    thread.affinity.set(parent.affinity.get());
    let mut registers = machine.registers(parent.machine.get());
    registers.rax = 0;
    if parent.is_traced() {
        // It is its tracer who steps.
        registers.rflags &= !trace::TRAP_FLAG;
    }
    if wish.stack != 0 {
        registers.rsp = wish.stack;
    }
    if wish.has(l::CLONE_SETTLS) {
        registers.fs_base = wish.tls;
    }
    machine.set_registers(thread.machine.get(), &registers);
    machine.copy_vector_state(parent.machine.get(), thread.machine.get());
    thread.name.set(parent.name.get());
    thread.table.set(parent.own_table());
    thread.filter.replace(parent.filter.borrow().clone());
    thread.signals.blocked.set(parent.signals.blocked.get());
    let own_stack = wish.has(l::CLONE_VM) && !wish.has(l::CLONE_VFORK);
    thread.signals.stack.set(if own_stack { NO_STACK } else { parent.signals.stack.get() });
    if wish.has(l::CLONE_CHILD_CLEARTID) {
        thread.clear_child_tid.set(wish.child_tid);
    }
    thread.memory_policy.set(parent.memory_policy.get());
    thread.tuning.set(parent.tuning.get().inherited());
    enter_tables(cx.unix, &thread);
    share::begins(cx.unix, &thread);
    processors::is_born(cx.unix, &thread);
    cx.unix.boost.is_born(cx.unix, parent, &thread);
    Ok(thread)
}

/// The child belongs to its parent from now on.
fn enter_family(cx: &Cx, wish: &Wish, process: &Rc<Process>) {
    let mut parent = cx.process.clone();
    if wish.has(l::CLONE_PARENT) {
        process.state.exit_signal.set(cx.process.state.exit_signal.get());
        let above = cx.process.parent.borrow().upgrade();
        parent = above.unwrap_or(parent);
    }
    process.set_parent(&parent);
    process.state.maker.set(cx.thread.tid.get());
    parent.children.borrow_mut().push(process.clone());
    process.times.watch_limit(cx.unix, process);
    cx.unix.processes.enter(process);
}

/// Writes the child's id where the caller wants it; bad addresses are the caller's problem.
fn tell_ids(cx: &Cx, wish: &Wish, thread: &Rc<Thread>) {
    if wish.has(l::CLONE_PARENT_SETTID) {
        let _ = cx.user().write(wish.parent_tid, &cx.shown(thread.tid.get()));
    }
    if wish.has(l::CLONE_CHILD_SETTID) {
        let memory = crate::user::UserMemory::new(cx.unix, thread.process.space());
        let _ = memory.write(wish.child_tid, &thread.own_tid.get());
    }
}

/// Waits until the child (whose id, and above that its number, is the call's progress) has its own memory or has ended.
pub(super) fn wait_for_vfork(cx: &Cx) -> Answer {
    let pid = Pid::from_first(cx.progress() as u32);
    match cx.unix.processes.process(pid) {
        Some(child) if child.state.vforked.get() => {
            cx.on_signal(OnSignal::Never);
            Err(cx.block_on(&child.state.vfork_done))
        }
        _ => Ok(cx.progress() >> 32),
    }
}
