//! Taking signals without a handler: `sigtimedwait`, and what signalfd reads.

use linux_raw_sys::general as l;

use super::info::Info;
use super::{MASK_BYTES, OnSignal, recalculate, set};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::thread::Thread;
use crate::time::Timespec;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[full(l::__NR_rt_sigtimedwait, "rt_sigtimedwait", rt_sigtimedwait)];

/// The signals that are pending for a thread, blocked or not.
#[must_use]
pub fn pending_for(thread: &Thread) -> u64 {
    thread.signals.pending.set() | thread.process.signals.pending.set()
}

/// Takes a pending signal in `wanted`; `process.signals.arrived` is woken when there may be one.
#[must_use]
pub fn take(cx: &Cx, wanted: u64) -> Option<Info> {
    let wanted = wanted & !set::UNSTOPPABLE;
    let own = cx.thread.signals.pending.take(wanted);
    let mut info = own.or_else(|| cx.process.signals.pending.take(wanted))?;
    crate::time::signal_taken(cx.unix, cx.process, &mut info);
    recalculate(cx.process);
    Some(info)
}

fn rt_sigtimedwait(cx: &Cx) -> Answer {
    if cx.arg(3) != MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let wanted = cx.user().read::<u64>(cx.arg(0))?;
    if !cx.is_retry() && cx.arg(2) != 0 {
        let timeout_ns = cx.user().read::<Timespec>(cx.arg(2))?.nanoseconds()?;
        cx.set_deadline(Some(cx.unix.machine.now_ns().saturating_add(timeout_ns)));
    }
    if let Some(info) = take(cx, wanted) {
        if cx.arg(1) != 0 {
            cx.user().write_bytes(cx.arg(1), &info.bytes())?;
        }
        return Ok(u64::from(info.signal));
    }
    if cx.expired() {
        return Err(Errno::EAGAIN.into());
    }
    cx.on_signal(OnSignal::Return);
    Err(cx.block_on(&cx.process.signals.arrived))
}
