//! What becomes of a process when exec replaces its program.

use alloc::rc::Rc;

use super::{Process, end, release_vfork};
use crate::call::Cx;
use crate::errno::Errno;
use crate::file;
use crate::mm::AddressSpace;
use crate::signal::{self, NO_STACK};
use crate::unix::Unix;

/// The process has a descriptor table of its own from now on.
pub fn own_files(unix: &Unix, process: &Rc<Process>) {
    let old = process.files.borrow().clone();
    // Two are this variable and the process itself.
    if Rc::strong_count(&old) > 2 {
        let own = Rc::new((*old).clone());
        let shared = process.files.replace(own);
        drop(old);
        file::release(unix, shared);
    }
}

/// Exec's point of no return: the calling thread becomes the only one, with the process's
/// id and a machine thread in `space`; signal handlers, timers, the alternate stack and the
/// futexes of the old program are gone; a parent in vfork goes on. Open files are the
/// process's own afterwards, but not yet closed.
///
/// The caller gives the thread its registers, sets [`Process::executable`] and answers
/// with `Reply::Resume`.
///
/// # Errors
/// When the machine has no more threads; then nothing has changed.
pub fn replace_program(cx: &Cx, space: Rc<AddressSpace>, name: [u8; 16]) -> Result<(), Errno> {
    let (unix, thread, process) = (cx.unix, cx.thread, cx.process);
    let machine = unix.machine.create_thread(space.machine())?;
    end::end_others(unix, thread);
    end::release_futexes(unix, thread);
    let old = thread.machine.replace(machine);
    thread.earlier_ns.set(thread.earlier_ns.get() + unix.machine.user_time_ns(old));
    unix.machine.bind(old, None);
    unix.machine.destroy_thread(old);
    unix.machine.bind(machine, Some(thread));
    process.times.leave_memory(process);
    drop(process.set_space(space));
    release_vfork(process);
    unix.mm.bury(unix);
    own_files(unix, process);
    own_actions(process);
    thread.signals.stack.set(NO_STACK);
    signal::recalculate(process);
    process.times.forget_timers(unix, process);
    process.state.replaced.set(true);
    process.state.keep_capabilities.set(false);
    process.state.not_dumpable.set(false);
    process.state.exit_signal.set(linux_raw_sys::general::SIGCHLD);
    thread.name.set(name);
    Ok(())
}

/// The process's actions are its own, without handlers.
fn own_actions(process: &Process) {
    let old = process.actions.borrow().clone();
    let own = Rc::new((*old).clone());
    own.reset();
    process.actions.replace(own);
}
