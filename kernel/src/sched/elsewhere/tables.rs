//! Tables that change: who uses them elsewhere is called back first (`arch::tlb`).

use abi::inspect::Back;

use super::{Other, call_back, look_soon};
use crate::arch::cpu;
use crate::sched::make_ready;
use crate::space::SpaceRef;

/// The tables of `space` are about to change: nobody of it runs elsewhere until the first
/// processor leaves the kernel.
#[cold]
pub fn quiet(space: SpaceRef) {
    for (number, other) in cpu().scheduler.guests.all() {
        let is_there = other.guest.get().is_some_and(|guest| guest.space() == Some(space));
        if is_there || other.party.has_space(space) {
            let _ = call_back(number, other, Back::Tables);
            other.note_call();
            rest(other, space);
            look_soon();
        }
    }
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
