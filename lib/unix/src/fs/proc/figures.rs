//! Times and signals of a process, as `stat` and `status` show them.

use super::Subject;
use crate::call::Cx;
use crate::process::Process;
use crate::time::Clock;

/// Times of a process in hundredths of a second.
pub(super) struct Times {
    pub user: u64,
    pub system: u64,
    pub children_user: u64,
    pub children_system: u64,
    pub start: u64,
}

/// The times of a process, or of a thread.
pub(super) fn times(cx: &Cx, subject: &Subject) -> Times {
    const TICK_NS: u64 = 10_000_000;
    let process = &subject.process;
    let own = match &subject.thread {
        Some(thread) if subject.tid != process.pid => crate::time::of_thread(cx.unix, thread),
        _ => process.times.own(cx.unix, process),
    };
    let children = process.times.children();
    Times {
        user: own.user_ns / TICK_NS,
        system: own.system_ns / TICK_NS,
        children_user: children.user_ns / TICK_NS,
        children_system: children.system_ns / TICK_NS,
        start: Clock::Boot.told(cx, process.times.start_ns) / TICK_NS,
    }
}

/// Signals of a thread: blocked, pending, ignored, caught.
pub(super) fn signals(subject: &Subject) -> [u64; 4] {
    let (caught, ignored) = subject.process.actions.borrow().caught_and_ignored();
    let (blocked, pending) = subject
        .thread
        .as_ref()
        .map_or((0, 0), |thread| (thread.signals.blocked.get(), thread.signals.pending.set()));
    [blocked, pending, ignored, caught]
}

/// Signals sent to a process and not yet taken.
pub(super) fn shared_pending(process: &Process) -> u64 {
    process.signals.pending.set()
}
