//! Waking whose time has come: a few in a tick, the others by the waker ([`crate::sched::waker`]).

use crate::arch::preemption::let_in;
use crate::arch::{clock, cpu};
use crate::ipc::timeout;
use crate::sched::early;
use crate::sched::waker::{TO_WRITE, goes_on, place, write_some};
use crate::thread::TcbRef;
use crate::thread::rendezvous::{self, Busy};

/// How many threads a tick wakes by itself, some 190 instructions each, if there is a waker.
pub const IN_A_TICK: u32 = 12;
/// The same of a tick that has waited for something else.
pub const IN_A_NOTED_TICK: u32 = 2;
/// How many the waker wakes before it looks who else would run.
pub const AT_ONCE: u32 = 4;

/// Wakes up to `most` of those whose time has come by `now_us`, and leaves the others to the waker, if there is one.
pub fn expire(now_us: u64, most: u32) {
    let scheduler = &cpu().scheduler;
    let waker = scheduler.waker.get();
    let most = if waker.is_some() { most } else { u32::MAX };
    let rest = early::expire_some(now_us, most, wake);
    if let (Some(waker), Some(rest)) = (waker, rest) {
        goes_on(waker, rest);
    }
}

fn wake(thread: TcbRef) {
    timeout::expired(thread);
    let_in();
}

/// The waker has the processor, and writes a piece of the log, or wakes a few more: whether there is more
/// to do, or all is done and it is halted.
#[must_use]
pub fn go_on(waker: TcbRef) -> bool {
    if write_some() {
        place(waker, TO_WRITE);
        return true;
    }
    let rest = early::expire_some(clock::now_us(), AT_ONCE, wake);
    match rest {
        Some(rest) => place(waker, rest),
        None => rendezvous::set_busy(waker, Busy::Halted),
    }
    rest.is_some()
}
