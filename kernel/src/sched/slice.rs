//! Time slices, total quanta, preemption: who has the processor after an interrupt or a system call.

use abi::ThreadId;

use super::{begin_slice, blocked, delay, early, grant_slice, keep_watch, pick, requeue};
use crate::arch::clock::TICK_US;
use crate::arch::{clock, cpu};
use crate::space::SpaceRef;
use crate::thread::{TcbRef, current};

/// An interrupt has been handled while `running` had the processor: who has it now. If
/// that thread goes on, the switches that follow pass over nobody who waits.
#[inline]
#[must_use]
pub fn after_interrupt(running: TcbRef) -> TcbRef {
    let next = choose(running);
    if next == running {
        keep_watch(running);
    }
    next
}

/// Whether another thread than `running` should run, and which.
#[must_use]
pub fn reschedule(running: TcbRef) -> TcbRef {
    choose(running)
}

/// A system call of `caller`, the current thread, is over, and may have made a thread ready, or changed a
/// priority: who runs next.
#[must_use]
pub fn after_call(caller: TcbRef) -> TcbRef {
    if caller.is_ready() { reschedule(caller) } else { blocked(caller) }
}

#[inline(always)] // in every tick
fn choose(running: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    if scheduler.idle.get() == Some(running) || !running.is_ready() {
        return pick();
    }
    if scheduler.slice_left_us.get() == 0 {
        return end_of_slice(running);
    }
    if scheduler.ready.holds_above(running.priority.get()) { contested(running) } else { running }
}

/// Somebody more urgent than `running` is queued: if still ready, who runs?
#[inline(never)]
fn contested(running: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    match scheduler.ready.highest() {
        Some(best)
            if best.priority.get() > running.priority.get() && !delay::delays(running, best) =>
        {
            if scheduler.has_limits.get() {
                preempt(running, best)
            } else {
                pass(running, best)
            }
        }
        _ => running,
    }
}

/// Replaces `running` by `best`; it stays the first of its priority, with the rest of the
/// slice on which it runs, but no more than a slice of its own.
#[must_use]
#[inline(never)] // where it is usual it is there
pub fn preempt(running: TcbRef, best: TcbRef) -> TcbRef {
    if cpu().scheduler.has_limits.get() {
        hand_on(best);
    }
    let scheduler = &cpu().scheduler;
    // What has been charged since it was chosen to go on may have been the rest: then its turn is over.
    let is_over = scheduler.slice_left_us.get() == 0 && scheduler.slice_owner.get() != Some(best);
    let next = pass(running, best);
    if is_over {
        scheduler.ready.rotate(running);
    }
    next
}

/// The same where nobody's quantum is limited.
#[inline(always)]
fn pass(running: TcbRef, best: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    scheduler.ready.insert_first(running);
    scheduler.delayed_since_us.set(0);
    let owner = scheduler.slice_owner.get();
    if owner == Some(best) {
        return best;
    }
    let mut left_us = scheduler.slice_left_us.get();
    if owner != Some(running) {
        owner.into_iter().for_each(end_turn);
        // It may have been an endless one.
        left_us = left_us.min(running.timeslice_us.get());
    }
    running.slice_left_us.set(left_us);
    begin_slice(best);
    best
}

/// `running`, which is queued and keeps the processor after an interrupt, lets others have it
/// until the next one, if somebody more urgent than `priority` waits: who runs. Their turn is about as
/// long as its own was, however soon interrupts follow each other.
#[must_use]
pub fn give_way(running: TcbRef, priority: u8) -> TcbRef {
    let ready = &cpu().scheduler.ready;
    ready.remove(running);
    match ready.highest().filter(|best| best.priority.get() > priority) {
        Some(best) => {
            end_their_turn();
            preempt(running, best)
        }
        None => {
            ready.insert_first(running);
            running
        }
    }
}

/// Half of the time since others had the last turn like this one is how long they have it now. So it becomes as
/// long as what was between.
fn end_their_turn() {
    let now_us = clock::now_us();
    let since_us = now_us - cpu().scheduler.gave_way_us.replace(now_us).min(now_us);
    early::interrupt_in((since_us / 2).max(early::GAP_US));
}

/// The same for those who are more urgent than all of `tasks` may be; if there are none, nobody is.
#[must_use]
pub fn give_way_to_those_above(running: TcbRef, tasks: [Option<SpaceRef>; 2]) -> TcbRef {
    let ceilings = tasks.into_iter().flatten().map(|task| task.ceilings().priority);
    ceilings.min().map_or(running, |ceiling| give_way(running, ceiling))
}

/// What `owner` has left of its slice is another's, or nothing: the others of its priority
/// come first, and its next turn begins with a new one. So partners get no more in a turn
/// than one of them.
pub fn end_turn(owner: TcbRef) {
    let ready = &cpu().scheduler.ready;
    owner.slice_left_us.set(0);
    if ready.contains(owner) {
        ready.rotate(owner);
    }
}

#[inline(never)]
fn end_of_slice(running: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    if let Some(left_us) = delay::at_end_of_slice(running) {
        scheduler.slice_left_us.set(left_us);
        return running;
    }
    let owner = scheduler.slice_owner.get().filter(|owner| *owner != running);
    owner.into_iter().for_each(end_turn);
    requeue(running);
    scheduler.ready.rotate(running);
    let next = pick();
    scheduler.ended.set(ThreadId::NIL);
    if next == running {
        // It may hand over to the owner at once.
        scheduler.ended.set(owner.map_or(ThreadId::NIL, |owner| owner.id.get()));
        scheduler.slice_owner.set(None);
        grant_slice(running);
        keep_watch(running);
    }
    next
}

/// `thread` has `quantum_us` from now on; `u64::MAX`: as much as it likes.
pub fn set_quantum(thread: TcbRef, quantum_us: u64) {
    thread.quantum_left_us.set(quantum_us);
    if quantum_us != u64::MAX {
        cpu().scheduler.has_limits.set(true);
    }
}

/// `next` is about to have a slice of its own. If its quantum, or that of whoever has had one until now, is limited,
/// that is charged now: ticks alone would let somebody who sleeps over each of them run for ever, on the quanta of others.
pub(super) fn hand_on(next: TcbRef) {
    let (owner, current) = (cpu().scheduler.slice_owner.get(), current());
    let quantum = |thread: TcbRef| thread.quantum_left_us.get();
    if quantum(next) & quantum(owner.unwrap_or(current)) == u64::MAX {
        return;
    }
    let _ = charge(current, clock::now_us());
    match quantum(next) {
        0 if next != current && next.is_told_of_its_time() => {}
        left_us if left_us < TICK_US => early::interrupt_in(left_us.max(early::GAP_US)),
        _ => {}
    }
}

/// If `owner` is whose slice is being used, it is nobody's from now on: no more of it than one of whoever runs.
pub fn disown(owner: TcbRef) {
    let scheduler = &cpu().scheduler;
    if scheduler.slice_owner.get() == Some(owner) {
        scheduler.slice_owner.set(None);
        let left_us = &scheduler.slice_left_us;
        left_us.set(left_us.get().min(current().timeslice_us.get()));
    }
}

/// Charges the time since the last charge to `running`, to the running slice and to
/// its owner's quantum; returns the owner if its quantum is used up by that, or `running` if its own is, whoever pays.
#[inline]
pub fn charge(running: TcbRef, now_us: u64) -> Option<TcbRef> {
    let scheduler = &cpu().scheduler;
    let used_us = now_us.saturating_sub(scheduler.charged_us.replace(now_us));
    running.used_us.set(running.used_us.get().wrapping_add(used_us));
    let left = scheduler.slice_left_us.get();
    if left != u64::MAX {
        scheduler.slice_left_us.set(left.saturating_sub(used_us));
    }
    if scheduler.has_limits.get() { charge_quanta(running, used_us) } else { None }
}

/// The same of quanta.
#[cold]
#[inline(never)]
fn charge_quanta(running: TcbRef, used_us: u64) -> Option<TcbRef> {
    // If its owner has gone elsewhere, the slice is whose turn it is.
    let owner = cpu().scheduler.slice_owner.get().unwrap_or(running);
    let quantum = &owner.quantum_left_us;
    if quantum.get() != u64::MAX {
        quantum.set(quantum.get().saturating_sub(used_us));
    }
    [owner, running].into_iter().find(|thread| thread.quantum_left_us.get() == 0)
}
