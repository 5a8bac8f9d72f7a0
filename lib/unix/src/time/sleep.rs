//! Sleeping.

use linux_raw_sys::general as l;

use super::clock::Clock;
use super::types::Timespec;
use crate::call::{Answer, Cx, Entry, Stop, full, partial};
use crate::errno::Errno;
use crate::signal::OnSignal;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_nanosleep, "nanosleep", nanosleep),
    partial(
        l::__NR_clock_nanosleep,
        "clock_nanosleep",
        clock_nanosleep,
        "processor-time clocks (EOPNOTSUPP)",
    ),
];

/// Waits for the call's deadline; what is left is written to `left` when a signal comes first.
fn sleep(cx: &Cx, left: u64) -> Answer {
    if cx.expired() {
        return Ok(0);
    }
    cx.on_signal(OnSignal::Return);
    if left != 0 && cx.thread.signals.interrupts() {
        let at_ns = cx.thread.deadline_ns.get().unwrap_or(0);
        let left_ns = at_ns.saturating_sub(cx.unix.machine.now_ns());
        cx.user().write(left, &Timespec::from_ns(left_ns))?;
    }
    // No queue: only the deadline or a signal ends it.
    Err(Stop::Block)
}

fn nanosleep(cx: &Cx) -> Answer {
    if !cx.is_retry() {
        let ns = cx.user().read::<Timespec>(cx.arg(0))?.nanoseconds()?;
        cx.set_deadline(Some(cx.unix.machine.now_ns().saturating_add(ns)));
    }
    sleep(cx, cx.arg(1))
}

fn clock_nanosleep(cx: &Cx) -> Answer {
    let absolute = cx.uint(1) & l::TIMER_ABSTIME != 0;
    if !cx.is_retry() {
        if cx.uint(0) == l::CLOCK_THREAD_CPUTIME_ID {
            // The C library makes EINVAL of it.
            return Err(Errno::EOPNOTSUPP.into());
        }
        let clock = Clock::new(cx, cx.int(0))?;
        let ns = cx.user().read::<Timespec>(cx.arg(2))?.nanoseconds()?;
        if !clock.is_wall() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let at_ns = if absolute {
            clock.machine_time(cx.unix, clock.meant(cx, ns))
        } else {
            cx.unix.machine.now_ns().saturating_add(ns)
        };
        cx.set_deadline(Some(at_ns));
    }
    sleep(cx, if absolute { 0 } else { cx.arg(3) })
}
