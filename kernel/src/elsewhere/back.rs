//! The usual way back of a thread that runs elsewhere and has its answer here, without what only others need.

use super::{enter, set_out, wants_nothing_here};
use crate::arch::cpu;
use crate::elsewhere::visits;
use crate::sched::leaving::LINE;
use crate::sched::{grant_slice, pick};
use crate::thread::{TcbRef, current};

/// `next`, another than the current thread, is about to run, and what has been noted is only that it goes on
/// elsewhere, where nobody is: then it goes there at once, and there is nothing to look at any more. Returns who
/// runs here instead. Nothing is owed (`irq::ahead`).
#[must_use]
pub fn go_back(next: TcbRef) -> Option<TcbRef> {
    let (scheduler, noted) = (&cpu().scheduler, &cpu().pending_lines);
    let is_all = noted.get() == 1 << LINE && scheduler.leaving.is_only(next.id.get());
    let current = current();
    if !is_all || next == current || current.is_elsewhere() || !wants_nothing_here(next) {
        return None;
    }
    let number = u32::from(next.processor.get());
    let other = visits::other(number)?;
    let is_free = other.guest.get().is_none() && other.ready.count() == 0 && !other.rests();
    if !is_free || cpu().guests.numbers().any(|number| visits::berth(number).needs_a_look()) {
        return None;
    }
    scheduler.leaving.clear();
    noted.set(0);
    set_out(next);
    enter(number, other, next);
    Some(pick_or_idle())
}

/// As [`pick`], if most likely nobody is ready.
fn pick_or_idle() -> TcbRef {
    let scheduler = &cpu().scheduler;
    let Some(idle) = scheduler.idle.get().filter(|_| scheduler.ready.count() == 0) else {
        return pick();
    };
    grant_slice(idle);
    scheduler.delayed_since_us.set(0);
    idle
}
