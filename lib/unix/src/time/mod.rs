//! Time: clocks, sleeping, interval timers, deadlines of waiting calls.

use alloc::rc::Rc;

use crate::call::Entry;
use crate::thread::Thread;
use crate::unix::Unix;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// A process's times and interval timers.
#[derive(Default)]
pub struct ProcessTimes {}

/// Deadlines, earliest first.
#[derive(Default)]
pub struct Timers {}

impl Timers {
    /// Wakes the call of `thread` at this time.
    pub fn wake_at(&self, unix: &Unix, thread: &Rc<Thread>, at_ns: u64) {
        let _ = (unix, thread, at_ns);
    }

    /// The call of `thread` has ended; a deadline of it means nothing any more.
    pub fn forget(&self, thread: &Rc<Thread>) {
        let _ = thread;
    }

    /// Does what is due, and asks for the next alarm.
    pub fn expire(&self, unix: &Unix) {
        let _ = unix;
    }
}
