//! The waker: a thread of the kernel's own that goes on where a tick stops when many threads are due
//! at once, or many who sleep long come nearer (docs/decisions/0056; `irq::wake` is what it does). It writes the log's
//! lines about users and NMIs, too, in pieces (docs/decisions/0090).
//!
//! It is as urgent as the most urgent class of those whom it still has to wake, is preempted as any
//! thread is, and halted while there is nothing to do. Here is when it runs.

use core::fmt::Arguments;

use super::make_ready;
use super::wakeup::Rest;
use crate::arch::{self, cpu, log};
use crate::thread::TcbRef;

/// The log has something to write: before all others, of whom everybody may go first now and then.
pub const TO_WRITE: Rest = Rest { priority: u8::MAX, before: 0 };

/// Notes `line` for the log.
pub fn note(line: Arguments<'_>) {
    log::note(line);
    write_log();
}

/// Something has been noted for the log: the waker writes it, or without one it is written now.
pub fn write_log() {
    match cpu().scheduler.waker.get() {
        Some(waker) => goes_on(waker, TO_WRITE),
        None => while write_some() {},
    }
}

/// Notes a line about NMIs, or writes a piece of what is noted: whether there was anything.
#[must_use]
pub fn write_some() -> bool {
    arch::say_an_nmi(log::note) || log::write_piece()
}

/// There is something to do for `waker`.
pub fn goes_on(waker: TcbRef, rest: Rest) {
    place(waker, rest);
    make_ready(waker);
}

/// What is left to do decides how urgent it is.
pub fn place(waker: TcbRef, rest: Rest) {
    if waker.priority.get() != rest.priority {
        cpu().scheduler.ready.remove(waker);
        waker.priority.set(rest.priority);
    }
    cpu().scheduler.waker_before.set(rest.before);
}

/// Whoever is above this priority may come before the waker now and then ([`super::slice::give_way`]).
#[must_use]
pub fn before() -> u8 {
    cpu().scheduler.waker_before.get()
}
