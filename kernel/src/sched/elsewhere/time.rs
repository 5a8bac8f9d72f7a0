//! The time of those who are elsewhere: the first processor's tick charges whoever went there, on
//! whose slice its party runs, too, and ends slices and quanta.

use abi::inspect::Back;

use super::{Other, advance, call_back, least, look};
use crate::arch::{TcbRef, cpu};
use crate::sched::make_ready;
use crate::thread::tcb::Resume;

/// Charges `thread`, which is in the berth, its time; whether its quantum is used up.
#[inline(always)]
pub(super) fn charge(other: &Other, thread: TcbRef, now_us: u64) -> bool {
    let used_us = now_us.saturating_sub(other.charged_us.replace(now_us));
    thread.used_us.set(thread.used_us.get().wrapping_add(used_us));
    for left in [&thread.slice_left_us, &thread.quantum_left_us] {
        if left.get() != u64::MAX {
            left.set(left.get().saturating_sub(used_us));
        }
    }
    thread.quantum_left_us.get() == 0
}

/// The first processor's tick, while anybody is elsewhere.
#[inline(never)]
pub fn tick(now_us: u64) {
    look();
    for (number, other) in cpu().scheduler.guests.all() {
        let Some(thread) = other.guest.get() else { continue };
        if charge(other, thread, now_us) {
            let _ = call_back(number, other, Back::Slice);
            out_of_time(other, thread);
        } else if thread.slice_left_us.get() == 0 {
            end_of_slice(number, other, thread);
        }
        advance(number, other);
    }
    if !cpu().scheduler.guests.is_empty() {
        cpu().scheduler.wakeup.look_again(now_us);
    }
}

/// The slice of `thread` is used up: another one of its priority comes next.
fn end_of_slice(number: u32, other: &Other, thread: TcbRef) {
    let rivals = other.ready.first_queued();
    if rivals.is_some_and(|best| best.priority.get() >= least(other, thread)) {
        let ran = call_back(number, other, Back::Slice);
        if let Some(thread) = ran.filter(|ran| ran.is_away()) {
            other.ready.rotate(thread);
        }
    }
    thread.slice_left_us.set(thread.timeslice_us.get());
}

/// The quantum of `thread` is used up: its scheduler is told when it runs here.
fn out_of_time(other: &Other, thread: TcbRef) {
    if thread.is_away() {
        other.ready.remove(thread);
        thread.frame().set_out_of_time();
        thread.resume.set(Resume::Entered);
        make_ready(thread);
    }
}
