//! What a new program (exec) means for the process that runs it.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::{Process, end, release_vfork};
use crate::file;
use crate::machine::MachineThread;
use crate::signal::{self, NO_STACK};
use crate::thread::Thread;
use crate::unix::Unix;

/// Exec is certain: all other threads of the process end, and `thread` becomes its first.
pub fn begin(unix: &Unix, thread: &Rc<Thread>) {
    end::end_others(unix, thread);
    thread.process.times.leave_memory(&thread.process);
}

/// The machine's thread of `thread` ends; from now on it has `machine`.
pub fn replace_machine_thread(unix: &Unix, thread: &Rc<Thread>, machine: MachineThread) {
    let old = thread.machine.replace(machine);
    thread.earlier_ns.set(thread.earlier_ns.get() + unix.machine.user_time_ns(old));
    unix.machine.bind(old, None);
    unix.machine.destroy_thread(old);
    unix.machine.bind(machine, Some(thread));
}

/// The new program is there: caught signals do as the system does again, timers and the
/// alternate stack are gone, and a parent that waits in `vfork` goes on.
pub fn end(unix: &Unix, thread: &Rc<Thread>) {
    let process = &thread.process;
    own_actions(process);
    thread.signals.stack.set(NO_STACK);
    process.times.forget_timers(unix, process);
    signal::recalculate(process);
    let state = &process.state;
    state.replaced.set(true);
    state.keep_capabilities.set(false);
    state.not_dumpable.set(false);
    state.exit_signal.set(l::SIGCHLD);
    release_vfork(process);
}

/// The process's actions are its own, without handlers.
fn own_actions(process: &Process) {
    let own = (**process.actions.borrow()).clone();
    own.reset();
    process.actions.replace(Rc::new(own));
}

/// The process has a descriptor table of its own from now on.
pub fn own_files(unix: &Unix, process: &Process) {
    let shared = Rc::strong_count(&process.files.borrow()) > 1;
    if shared {
        let own = (**process.files.borrow()).clone();
        let old = process.files.replace(Rc::new(own));
        file::release(unix, old);
    }
}
