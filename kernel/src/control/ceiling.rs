//! What a thread may have of priority and time: its task's ceilings (`space::task_control`), and
//! what its creator has.

use abi::{CallError, Ceilings};

use super::schedule::{self, Change, UNCHANGED};
use crate::elsewhere;
use crate::sched::early::GAP_US;
use crate::sched::own_priority;
use crate::sched::slice::set_quantum;
use crate::space::SpaceRef;
use crate::thread::TcbRef;

/// Gives the new, inactive `thread` no more than its task may have and, unless a
/// privileged task makes it, no more than `creator` has.
///
/// # Errors
/// `NoPrivilege`: under a ceiling of the quantum `creator` has nothing of it to give.
#[inline(always)] // what follows jumps from here
pub fn begin(thread: TcbRef, creator: TcbRef) -> Result<(), CallError> {
    let (Some(space), Some(own)) = (thread.space(), creator.space()) else { return Ok(()) };
    let ceilings = space.ceilings();
    let mut priority = thread.priority.get().min(ceilings.priority);
    if !own.is_privileged() {
        priority = priority.min(own_priority(creator));
    }
    thread.priority.set(priority);
    thread.timeslice_us.set(thread.timeslice_us.get().min(ceilings.slice_us().max(1)));
    let highest = ceilings.quantum_us();
    if own.is_metered() {
        return first_quantum(thread, creator, highest);
    }
    set_quantum(thread, highest);
    Ok(())
}

/// Under a ceiling a new thread gets half of what its creator has left; so a task cannot
/// refill what it used up by making threads, or tasks. One that got less than the timer
/// tells apart would have more.
#[cold]
#[inline(never)]
fn first_quantum(thread: TcbRef, creator: TcbRef, highest: u64) -> Result<(), CallError> {
    let left = creator.quantum_left_us.get();
    let given = (left / 2).min(highest);
    creator.quantum_left_us.set(left - given);
    set_quantum(thread, given);
    if given < GAP_US { Err(CallError::NoPrivilege) } else { Ok(()) }
}

/// The new `thread` is refused: `creator` has back what it gave.
#[cold]
#[inline(never)]
pub fn end(thread: TcbRef, creator: TcbRef) {
    if creator.space().is_some_and(SpaceRef::is_metered) {
        let given = thread.quantum_left_us.get();
        creator.quantum_left_us.set(creator.quantum_left_us.get().saturating_add(given));
    }
}

/// Lowers what `thread` has to `ceilings`.
pub fn lower(thread: TcbRef, ceilings: Ceilings) {
    elsewhere::recall(thread);
    if own_priority(thread) > ceilings.priority {
        schedule::set_priority(thread, ceilings.priority);
    }
    let sensitive = &thread.sensitive_priority;
    sensitive.set(sensitive.get().min(ceilings.priority));
    let slice_us = ceilings.slice_us().max(1);
    thread.timeslice_us.set(thread.timeslice_us.get().min(slice_us));
    schedule::shorten_slice(thread, slice_us);
    set_quantum(thread, thread.quantum_left_us.get().min(ceilings.quantum_us()));
    thread.max_delay_us.set(thread.max_delay_us.get().min(u64::from(ceilings.delay_us)));
}

/// Whether `caller` may ask for what `request` says for `thread`.
pub fn check(caller: TcbRef, thread: TcbRef, request: &Change) -> Result<(), CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let mut most = thread.space().map_or(Ceilings::NONE, SpaceRef::ceilings);
    if !own.is_privileged() {
        most = most.min(own.ceilings());
        most.priority = most.priority.min(own_priority(caller));
    }
    let asked = asked(request, most);
    if !asked.within(most) {
        return Err(CallError::NoPrivilege);
    }
    // What it used up only somebody gives back who has no such ceiling himself.
    let refills = request.time != UNCHANGED && asked.quantum_us() > thread.quantum_left_us.get();
    if refills && own.is_metered() { Err(CallError::NoPrivilege) } else { Ok(()) }
}

/// What `request` asks for; where it asks for nothing, `most`.
fn asked(request: &Change, most: Ceilings) -> Ceilings {
    let mut asked = most;
    if request.priority != UNCHANGED {
        asked.priority = request.priority as u8;
    }
    if request.time != UNCHANGED {
        (asked.slice, asked.quantum) = schedule::times(request.time);
    }
    if request.preemption != UNCHANGED {
        asked.priority = asked.priority.max((request.preemption >> 16) as u8);
        asked.delay_us = request.preemption as u16;
    }
    asked
}

/// Whether `thread` has used up what a chief gave it and `caller` is not one who may let
/// it go on.
#[must_use]
pub fn is_out_of_time(thread: TcbRef, caller: TcbRef) -> bool {
    thread.quantum_left_us.get() == 0 && caller.space().is_none_or(SpaceRef::is_metered)
}
