//! Delayed preemption (X.2 5.7): a thread asks for a moment in which nobody more urgent
//! takes the processor from it.
//!
//! However many threads ask one after the other, handing the processor to each other by
//! IPC or ThreadSwitch: who waits does so no longer than one of them may delay it, since the
//! moment from which on it had to wait.

use abi::utcb::{PREEMPT_DELAY, PREEMPT_PENDING};

use crate::arch::{clock, cpu};
use crate::thread::TcbRef;
use crate::usermem::Utcb;

/// Whether somebody more urgent than the running thread has been kept waiting.
#[must_use]
pub fn is_under_way() -> bool {
    cpu().scheduler.delayed_since_us.get() != 0
}

/// Whether `running` may and does delay its preemption by `best`.
pub(super) fn delays(running: TcbRef, best: TcbRef) -> bool {
    let Some(utcb) = asks(running, best.priority.get()) else { return false };
    if running.delay_used.get() {
        return clock::now_us() < running.delay_ends_us.get();
    }
    let Some(left_us) = begin(running, utcb) else { return false };
    let scheduler = &cpu().scheduler;
    scheduler.slice_left_us.set(scheduler.slice_left_us.get().min(left_us));
    true
}

/// By how much, in µs, `running` may and does delay the end of its slice.
pub(super) fn at_end_of_slice(running: TcbRef) -> Option<u64> {
    let ready = &cpu().scheduler.ready;
    // Where an interrupt has broken the look off, who is left is taken for ready.
    let best = ready.highest().or_else(|| ready.first_queued());
    let best = best.map_or(0, |best| best.priority.get());
    let utcb = asks(running, best)?;
    if running.delay_used.get() { None } else { begin(running, utcb) }
}

/// The UTCB of `running` if it asks for a delay, and may have one.
fn asks(running: TcbRef, best: u8) -> Option<Utcb> {
    let may = running.max_delay_us.get() != 0 && best <= running.sensitive_priority.get();
    Utcb::of(running).filter(|utcb| may && utcb.flags() & PREEMPT_DELAY != 0)
}

/// Begins a delay by `running`, if others have left something of it; returns how much, µs.
fn begin(running: TcbRef, utcb: Utcb) -> Option<u64> {
    let since_us = &cpu().scheduler.delayed_since_us;
    let now_us = clock::now_us();
    if since_us.get() == 0 {
        since_us.set(now_us.max(1));
    }
    let ends_us = since_us.get().saturating_add(running.max_delay_us.get());
    let left_us = ends_us.saturating_sub(now_us);
    running.delay_used.set(true);
    running.delay_ends_us.set(ends_us);
    if left_us == 0 {
        return None;
    }
    utcb.set_flags(utcb.flags() | PREEMPT_PENDING);
    Some(left_us)
}
