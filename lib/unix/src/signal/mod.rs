//! Signals: sending, masks, actions, frames on the program's stack, the return from
//! them, and what an interrupted call does.

use alloc::rc::Rc;
use core::cell::Cell;

use crate::call::Entry;
use crate::thread::Thread;
use crate::unix::Unix;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// A thread's signals.
#[derive(Default)]
pub struct ThreadSignals {
    due: Cell<bool>,
}

impl ThreadSignals {
    /// Whether the thread has a signal to take before it returns to its program, or
    /// (while it waits) one that interrupts its call. Kept up to date by this module, so
    /// that a call's exit costs one look.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due.get()
    }
}

/// A process's signals.
#[derive(Default)]
pub struct ProcessSignals {}

/// What each signal does.
#[derive(Default)]
pub struct Actions {}

/// The call of `thread` ends with `value`, and a signal is due: its frame is built, or the
/// process ends or stops.
pub fn leave_call(unix: &Unix, thread: &Rc<Thread>, value: u64) {
    let _ = (unix, thread, value);
}

/// A signal is due while the call of `thread` waits: EINTR, or the call starts again after the handler.
pub fn interrupt_call(unix: &Unix, thread: &Rc<Thread>) {
    let _ = (unix, thread);
}

/// A program raised an exception: SIGFPE, SIGILL, SIGTRAP, SIGSEGV, SIGBUS.
pub fn exception(unix: &Unix, thread: &Rc<Thread>, vector: u8, error: u64) {
    let _ = (unix, thread, vector, error);
}

/// A memory access that cannot be allowed: SIGSEGV (or SIGBUS) with its address and `si_code`.
pub fn bad_access(unix: &Unix, thread: &Rc<Thread>, signal: u32, code: i32, address: u64) {
    let _ = (unix, thread, signal, code, address);
}

/// Sends `signal` to one thread, as the kernel does.
pub fn send_thread(unix: &Unix, thread: &Rc<Thread>, signal: u32) {
    let _ = (unix, thread, signal);
}
