//! The timer tick: wakeups, the end of slices and quanta, and the sweep.

use super::{comers, wake};
use crate::arch::{self, clock, cpu};
use crate::ipc::{kernel_message, sweep};
use crate::sched::slice::{after_interrupt, charge};
use crate::sched::{early, waker};
use crate::thread::tcb::Resume;
use crate::thread::{TcbRef, current, registry};

/// A timer interrupt while `running`, queued or not, had the processor: who has it now.
#[must_use]
pub fn tick(running: TcbRef) -> TcbRef {
    ticked(running, wake::IN_A_TICK)
}

/// The same if it was noted in a window: its handlers have waited for a step of something else already,
/// so it does less.
#[must_use]
pub fn noted(running: TcbRef) -> TcbRef {
    ticked(running, wake::IN_A_NOTED_TICK)
}

/// A tick that wakes up to `most`.
#[inline(always)] // no instruction more for the usual one
fn ticked(running: TcbRef, most: u32) -> TcbRef {
    let scheduler = &cpu().scheduler;
    scheduler.ticks.set(scheduler.ticks.get() + 1);
    if arch::nmis_have_come() {
        waker::write_log();
    }
    let now_us = clock::now_us();
    scheduler.ticked_us.set(now_us);
    if scheduler.wakeup.is_due(now_us) {
        wake_up(running, now_us, most);
    }
    match charge(running, now_us) {
        None => after_interrupt(running),
        Some(exhausted) => used_up(running, exhausted),
    }
}

/// Something is to be done that is not in every tick: threads whose time has come, who run elsewhere, and a
/// sweep that is under way, which asks for the next tick again.
#[inline(never)]
fn wake_up(running: TcbRef, now_us: u64, most: u32) {
    early::tick_again();
    cpu().scheduler.wakeup.tick_looks();
    wake::expire(now_us, most);
    if comers::has_work() {
        comers::tick(running);
    }
    if registry().sweep.is_under_way() {
        sweep::tick();
        cpu().scheduler.wakeup.look_again();
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
        return kernel_message::preemption(running);
    }
    // Nobody works on for one whose quantum is used up.
    if exhausted != running {
        scheduler.slice_left_us.set(0);
    }
    after_interrupt(running)
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
