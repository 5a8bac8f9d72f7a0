//! The waker: a thread of the kernel's own that goes on where a tick stops when many threads are due
//! at once, or many who sleep long come nearer (docs/decisions/0056). It writes the log's lines about
//! users, too, in pieces (docs/decisions/0090).
//!
//! It is as urgent as the most urgent class of those whom it still has to wake, is preempted as any
//! thread is, and halted while there is nothing to do. Called from the tick and by `resume`.

use core::fmt::Arguments;

use super::make_ready;
use super::wakeup::Rest;
use crate::arch::preemption::let_in;
use crate::arch::{TcbRef, clock, cpu, log};
use crate::ipc::timeout;
use crate::thread::rendezvous::{self, Busy};

/// How many threads a tick wakes by itself, some 190 instructions each, if there is a waker.
pub const IN_A_TICK: u32 = 12;
/// How many the waker wakes before it looks who else would run, and a tick that has waited for something else.
pub const AT_ONCE: u32 = 4;

/// The log has something to write: before all others, of whom everybody may go first now and then.
const TO_WRITE: Rest = Rest { priority: u8::MAX, before: 0 };

/// Notes `line` for the log.
pub fn note(line: Arguments<'_>) {
    log::note(line);
    write_log();
}

/// Something has been noted for the log: the waker writes it, or without one it is written now.
pub fn write_log() {
    match cpu().scheduler.waker.get() {
        Some(waker) => goes_on(waker, TO_WRITE),
        None => while log::write_piece() {},
    }
}

/// Wakes up to `most` of those whose time has come by `now_us`, and leaves the others to the waker, if there is one.
pub fn expire(now_us: u64, most: u32) {
    let scheduler = &cpu().scheduler;
    let waker = scheduler.waker.get();
    let most = if waker.is_some() { most } else { u32::MAX };
    let rest = scheduler.wakeup.expire_some(now_us, most, wake);
    if let (Some(waker), Some(rest)) = (waker, rest) {
        goes_on(waker, rest);
    }
}

/// There is something to do for `waker`.
fn goes_on(waker: TcbRef, rest: Rest) {
    place(waker, rest);
    make_ready(waker);
}

fn wake(thread: TcbRef) {
    timeout::expired(thread);
    let_in();
}

/// What is left to do decides how urgent it is.
fn place(waker: TcbRef, rest: Rest) {
    if waker.priority.get() != rest.priority {
        cpu().scheduler.ready.remove(waker);
        waker.priority.set(rest.priority);
    }
    cpu().scheduler.waker_before.set(rest.before);
}

/// Whoever is above this priority may come before the waker now and then ([`super::tick::give_way`]).
#[must_use]
pub fn before() -> u8 {
    cpu().scheduler.waker_before.get()
}

/// The waker has the processor, and writes a piece of the log, or wakes a few more: whether there is more
/// to do, or all is done and it is halted.
#[must_use]
pub fn go_on(waker: TcbRef) -> bool {
    if log::write_piece() {
        place(waker, TO_WRITE);
        return true;
    }
    let rest = cpu().scheduler.wakeup.expire_some(clock::now_us(), AT_ONCE, wake);
    match rest {
        Some(rest) => place(waker, rest),
        None => rendezvous::set_busy(waker, Busy::Halted),
    }
    rest.is_some()
}
