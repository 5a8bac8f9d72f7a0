//! Wake-ups between two ticks (docs/decisions/0132): who sleeps until a time before the next tick has the timer
//! interrupt then. Only the interrupt's time is here; what it does is what a tick does.

use super::wakeup::Rest;
use crate::arch::clock::TICK_US;
use crate::arch::{self, clock, cpu};
use crate::thread::TcbRef;

/// Least time between two interrupts of the timer, µs, so that no sleepers make it interrupt all the time.
pub const GAP_US: u64 = 100;

/// `thread` wakes at clock value `at_us`.
pub fn wake_at(thread: TcbRef, at_us: u64) {
    cpu().scheduler.wakeup.insert(thread, at_us);
    see_to(at_us);
}

/// Lets the timer interrupt in `us`, if that is before the next tick.
pub fn interrupt_in(us: u64) {
    see_to(clock::now_us() + us);
}

/// Sees to it that the timer interrupts at `at_us`, if that is before the next tick.
#[inline(always)]
fn see_to(at_us: u64) {
    if at_us < expected_us() {
        interrupt_at(at_us);
    }
}

/// When the timer interrupts next.
#[inline(always)]
fn expected_us() -> u64 {
    let scheduler = &cpu().scheduler;
    match scheduler.early_us.get() {
        0 => scheduler.ticked_us.get() + TICK_US,
        early_us => early_us,
    }
}

#[cold]
#[inline(never)]
fn interrupt_at(at_us: u64) {
    let scheduler = &cpu().scheduler;
    let at_us = at_us.max(scheduler.ticked_us.get() + GAP_US);
    if at_us < expected_us() && arch::interrupt_at(at_us) {
        scheduler.early_us.set(at_us);
        scheduler.wakeup.look_until(at_us);
    }
}

/// The timer has interrupted: from now on it ticks again.
pub fn tick_again() {
    if cpu().scheduler.early_us.replace(0) != 0 {
        arch::tick_again();
    }
}

/// Calls `wake` for up to `most` threads whose time has come by `now_us`, and sees to the next interrupt; what is
/// left to do.
pub fn expire_some(now_us: u64, most: u32, wake: impl FnMut(TcbRef)) -> Option<Rest> {
    let (rest, next_us) = cpu().scheduler.wakeup.expire_some(now_us, most, wake);
    next_us.into_iter().for_each(see_to);
    if cpu().scheduler.early_us.get() != 0 {
        // Whoever it was for, the tick that it is looks.
        cpu().scheduler.wakeup.look_until(expected_us());
    }
    rest
}
