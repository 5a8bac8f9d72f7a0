//! Tables that change: who uses them elsewhere stands still meanwhile, or is called back first (`arch::tlb`;
//! docs/decisions/0108-a-visitor-stands-still-while-tables-change.md).

use abi::inspect::Back;

use super::{Other, call_back};
use crate::arch::{clock, cpu, visits};
use crate::between::processors::Processors;
use crate::sched::leaving::{LINE, look_soon};
use crate::sched::make_ready;
use crate::space::SpaceRef;

/// The tables of `space` are about to change: nobody of it runs elsewhere until the first
/// processor leaves the kernel.
#[cold]
pub fn quiet(space: SpaceRef) {
    let scheduler = &cpu().scheduler;
    if scheduler.quiet.get() == Some(space) {
        return;
    }
    let (stopping, mut now_us) = (Processors::new(), None);
    for (number, other) in cpu().guests.without(&scheduler.stopped).all() {
        if !other.uses(space) {
            continue;
        }
        let comes_too_often = other.note_change(*now_us.get_or_insert_with(clock::now_us));
        if !comes_too_often && visits::berth(number).stop() {
            visits::interrupt_to_stop(number);
            stopping.add(number);
        } else {
            drive_out(number, other, space);
        }
    }
    if !stopping.is_empty() {
        // Each answers by itself: all have been asked before one is waited for.
        stopping.numbers().for_each(visits::wait_for_stop);
        scheduler.stopped.add_all(&stopping);
        look_soon();
    }
    scheduler.quiet.set(Some(space));
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
    let first = other.ready.first_queued().filter(|first| first.space() == Some(space));
    if let Some(thread) = first.filter(|_| other.rests()) {
        other.ready.remove(thread);
        make_ready(thread);
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
        && !go_on();
    if is_all {
        noted.set(0);
    }
    is_all
}
