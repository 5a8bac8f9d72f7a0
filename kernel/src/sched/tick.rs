//! The timer tick: wakeups, time slices, total quanta, preemption.

use super::{
    begin_slice, blocked, delay, elsewhere, grant_slice, keep_watch, pick, requeue, waker,
};
use crate::arch::{self, TcbRef, clock, cpu, current};
use crate::ipc;
use crate::space::SpaceRef;
use crate::thread::tcb::Resume;

/// A timer interrupt while `running`, queued or not, had the processor: who has it now.
#[must_use]
pub fn tick(running: TcbRef) -> TcbRef {
    ticked(running, waker::IN_A_TICK)
}

/// The same if it was noted in a window: its handlers have waited for a step of something else already,
/// so it does less.
#[must_use]
pub fn noted(running: TcbRef) -> TcbRef {
    ticked(running, waker::AT_ONCE)
}

/// A tick that wakes up to `most`.
#[inline(always)] // no instruction more for the usual one
fn ticked(running: TcbRef, most: u32) -> TcbRef {
    let scheduler = &cpu().scheduler;
    scheduler.ticks.set(scheduler.ticks.get() + 1);
    arch::report_nmis(waker::note);
    let now_us = clock::now_us();
    if scheduler.wakeup.is_due(now_us) {
        wake_up(now_us, most);
    }
    match charge(running, now_us) {
        None => after_interrupt(running),
        Some(exhausted) => used_up(running, exhausted),
    }
}

/// Something is to be done that is not in every tick: threads whose time has come, and a
/// sweep that is under way, which asks for the next tick again.
#[inline(never)]
fn wake_up(now_us: u64, most: u32) {
    waker::expire(now_us, most);
    if !cpu().scheduler.guests.is_empty() || !cpu().scheduler.leaving.is_empty() {
        elsewhere::tick(now_us);
    }
    if cpu().registry.sweep.is_under_way() {
        ipc::sweep::tick();
        cpu().scheduler.wakeup.look_again(now_us);
    }
}

/// The quantum of `exhausted`, on whose slice `running` runs, is used up.
#[inline(never)]
fn used_up(running: TcbRef, exhausted: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    // The message hands the processor over to the scheduler, whoever else is ready:
    // those who come before the thread come before its message, too.
    let outranked =
        scheduler.ready.highest().is_some_and(|best| best.priority.get() > running.priority.get());
    if exhausted == running && !outranked && in_user_mode(running) {
        return ipc::kernel_message::preemption(running);
    }
    // Nobody works on for one whose quantum is used up.
    if exhausted != running {
        scheduler.slice_left_us.set(0);
    }
    after_interrupt(running)
}

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
    match cpu().scheduler.ready.highest() {
        Some(best)
            if best.priority.get() > running.priority.get() && !delay::delays(running, best) =>
        {
            preempt(running, best)
        }
        _ => running,
    }
}

/// Replaces `running` by `best`; it stays the first of its priority, with the rest of the
/// slice on which it runs, but no more than a slice of its own.
pub(super) fn preempt(running: TcbRef, best: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    scheduler.ready.insert_first(running);
    scheduler.delayed_since_us.set(0);
    let owner = scheduler.slice_owner.get();
    if owner == Some(best) {
        return best;
    }
    let mut left_us = scheduler.slice_left_us.get();
    if let Some(owner) = owner.filter(|owner| *owner != running) {
        end_turn(owner);
        // It may have been an endless one.
        left_us = left_us.min(running.timeslice_us.get());
    }
    running.slice_left_us.set(left_us);
    begin_slice(best);
    best
}

/// `running`, which is queued and keeps the processor after an interrupt, lets others have it
/// until the next one, if somebody more urgent than `priority` waits: who runs.
#[must_use]
pub fn give_way(running: TcbRef, priority: u8) -> TcbRef {
    let ready = &cpu().scheduler.ready;
    ready.remove(running);
    match ready.highest().filter(|best| best.priority.get() > priority) {
        Some(best) => preempt(running, best),
        None => {
            ready.insert_first(running);
            running
        }
    }
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
    if let Some(owner) = scheduler.slice_owner.get().filter(|owner| *owner != running) {
        end_turn(owner);
    }
    requeue(running);
    scheduler.ready.rotate(running);
    let next = pick();
    if next == running {
        scheduler.slice_owner.set(None);
        grant_slice(running);
        keep_watch(running);
    }
    next
}

/// Charges the time since the last charge to `running`, to the running slice and to
/// its owner's quantum; returns the owner if its quantum is used up by that.
#[inline]
pub fn charge(running: TcbRef, now_us: u64) -> Option<TcbRef> {
    let scheduler = &cpu().scheduler;
    let used_us = now_us.saturating_sub(scheduler.charged_us.replace(now_us));
    running.used_us.set(running.used_us.get().wrapping_add(used_us));
    let left = scheduler.slice_left_us.get();
    if left != u64::MAX {
        scheduler.slice_left_us.set(left.saturating_sub(used_us));
    }
    let owner = scheduler.slice_owner.get()?;
    let quantum = owner.quantum_left_us.get();
    if quantum == u64::MAX {
        return None;
    }
    owner.quantum_left_us.set(quantum.saturating_sub(used_us));
    (owner.quantum_left_us.get() == 0).then_some(owner)
}

/// Whether the tick interrupted `thread` in user mode. Elsewhere (in a preemption
/// window of a transfer, an Unmap) it has no register frame to return through after
/// a message; the next tick in user mode finds its quantum still used up.
fn in_user_mode(thread: TcbRef) -> bool {
    thread == current()
        && thread.is_ready()
        && thread.space().is_some()
        && thread.resume.get() == Resume::Frame
}
