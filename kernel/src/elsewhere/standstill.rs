//! Tables that change: who uses them elsewhere stands still meanwhile, or is called back first (`mem::quiesce`;
//! docs/decisions/0108-a-visitor-stands-still-while-tables-change.md).

use abi::inspect::Back;

use super::{Other, call_back};
use crate::arch::{Cpu, clock, cpu, preemption};
use crate::elsewhere::visits;
use crate::mem::quiesce::Quiesce;
use crate::sched::leaving::{LINE, look_soon};
use crate::space::SpaceRef;
use crate::thread;

impl Quiesce for Cpu {
    #[inline(always)]
    fn quiet(space: SpaceRef) {
        quiet(space);
    }

    #[inline(always)]
    fn vacate(space: SpaceRef) {
        vacate(space);
    }
}

/// The tables of `space` are about to change: nobody of it runs elsewhere until the first
/// processor leaves the kernel.
#[cold]
pub fn quiet(space: SpaceRef) {
    if cpu().scheduler.quiet.get() != Some(space) {
        stop_all(space);
    }
}

#[inline(never)] // most of the questions of an operation have been asked before
fn stop_all(space: SpaceRef) {
    let scheduler = &cpu().scheduler;
    let now_us = clock::now_us();
    for (number, other) in cpu().guests.without(&scheduler.stopped).all() {
        if !other.uses(space) {
            continue;
        }
        if !other.note_change(now_us) && visits::berth(number).stop() {
            visits::interrupt_to_stop(number);
            scheduler.stopped.add(number);
            look_soon();
        } else {
            drive_out(number, other, space);
        }
        preemption::let_in();
    }
    scheduler.quiet.set(Some(space));
    // Each answers by itself: all have been asked before one is waited for.
    scheduler.stopped.numbers().for_each(visits::wait_for_stop);
}

/// The same if what is about to change is not only tables that they use: nobody of `space` is elsewhere.
#[cold]
pub fn vacate(space: SpaceRef) {
    for (number, other) in cpu().guests.all() {
        if other.uses(space) {
            let _ = other.note_change(clock::now_us());
            drive_out(number, other, space);
        }
    }
}

fn drive_out(number: u32, other: &Other, space: SpaceRef) {
    let _ = call_back(number, other, Back::Tables);
    rest(other, space);
    look_soon();
}

/// If the processor rests, the threads of `space` go on here meanwhile: all that wait for it,
/// one in each call.
fn rest(other: &Other, space: SpaceRef) {
    let first = other.first().filter(|first| first.space() == Some(space));
    if let Some(thread) = first.filter(|_| other.rests()) {
        other.gives_up(thread);
    }
}

/// Whoever stands still goes on; whether somebody has come back meanwhile.
#[inline(always)]
pub fn go_on() -> bool {
    let scheduler = &cpu().scheduler;
    scheduler.stopped.clear();
    scheduler.quiet.set(None);
    cpu().guests.numbers().fold(false, |any, number| visits::berth(number).go_on() | any)
}

/// An operation is over, and something has been noted: if that is only that others stand still for it, they go
/// on, and nothing is noted any more; whether it is so.
#[inline(never)]
pub fn lets_all_go_on() -> bool {
    let (scheduler, noted) = (&cpu().scheduler, &cpu().pending_lines);
    let is_all = noted.get() == 1 << LINE
        && !scheduler.stopped.is_empty()
        && scheduler.leaving.is_empty()
        && scheduler.wanted.is_empty()
        // Who has come back meanwhile may be more urgent, and what said so is among what is forgotten.
        && !scheduler.ready.holds_above(thread::current().priority.get())
        && !go_on();
    if is_all {
        noted.set(0);
    }
    is_all
}
