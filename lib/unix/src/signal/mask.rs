//! Which signals a thread blocks, and its alternate stack.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::deliver::has_saved_mask;
use super::set;
use super::{AltStack, MASK_BYTES, NO_STACK, OnSignal, RESTORE, pending_for, recalculate_thread};
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::thread::Thread;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_rt_sigprocmask, "rt_sigprocmask", rt_sigprocmask),
    full(l::__NR_rt_sigpending, "rt_sigpending", rt_sigpending),
    full(l::__NR_rt_sigsuspend, "rt_sigsuspend", rt_sigsuspend),
    full(l::__NR_pause, "pause", pause),
    full(l::__NR_sigaltstack, "sigaltstack", sigaltstack),
];

/// Blocks these signals and no others.
pub fn set_mask(thread: &Rc<Thread>, mask: u64) {
    thread.signals.blocked.set(mask & !set::UNSTOPPABLE);
    recalculate_thread(thread);
}

/// Blocks these signals until the call ends (`ppoll`, `sigsuspend`); a handler that
/// interrupts the call runs with this mask and returns to the old one.
pub fn set_temporary_mask(cx: &Cx, mask: u64) {
    if !cx.is_retry() {
        let signals = &cx.thread.signals;
        signals.saved.set(signals.blocked.get());
        signals.mark(RESTORE, true);
        set_mask(cx.thread, mask);
    }
}

/// Reads the (address, size) of a mask and blocks it until the call ends; nothing if the
/// address is 0.
///
/// # Errors
/// `EINVAL` if the size is not that of a mask, `EFAULT`.
pub fn set_temporary_mask_from(cx: &Cx, address: u64, size: u64) -> Result<(), Errno> {
    if address == 0 || cx.is_retry() {
        return Ok(());
    }
    if size != MASK_BYTES {
        return Err(Errno::EINVAL);
    }
    set_temporary_mask(cx, cx.user().read::<u64>(address)?);
    Ok(())
}

/// Puts the mask back that [`set_temporary_mask`] has replaced.
pub(super) fn restore(thread: &Rc<Thread>) {
    if has_saved_mask(thread) {
        thread.signals.mark(RESTORE, false);
        set_mask(thread, thread.signals.saved.get());
    }
}

/// The mask that a handler's frame puts back.
pub(super) fn mask_for_frame(thread: &Thread) -> u64 {
    if has_saved_mask(thread) {
        thread.signals.mark(RESTORE, false);
        return thread.signals.saved.get();
    }
    thread.signals.blocked.get()
}

fn rt_sigprocmask(cx: &Cx) -> Answer {
    if cx.arg(3) != MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let old = cx.thread.signals.blocked.get();
    if cx.arg(1) != 0 {
        let new = cx.user().read::<u64>(cx.arg(1))?;
        let mask = match cx.uint(0) {
            l::SIG_BLOCK => old | new,
            l::SIG_UNBLOCK => old & !new,
            l::SIG_SETMASK => new,
            _ => return Err(Errno::EINVAL.into()),
        };
        set_mask(cx.thread, mask);
    }
    if cx.arg(2) != 0 {
        cx.user().write(cx.arg(2), &old)?;
    }
    Ok(0)
}

fn rt_sigpending(cx: &Cx) -> Answer {
    if cx.arg(1) > MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let set = pending_for(cx.thread) & cx.thread.signals.blocked.get();
    cx.user().write_bytes(cx.arg(0), &set.to_le_bytes()[..cx.arg(1) as usize])?;
    Ok(0)
}

/// Waits for a signal with a handler.
fn wait_for_signal(cx: &Cx) -> Stop {
    cx.on_signal(OnSignal::Return);
    // No queue: only a signal ends the wait.
    Stop::Block
}

fn rt_sigsuspend(cx: &Cx) -> Answer {
    if cx.arg(1) != MASK_BYTES {
        return Err(Errno::EINVAL.into());
    }
    if !cx.is_retry() {
        set_temporary_mask(cx, cx.user().read::<u64>(cx.arg(0))?);
    }
    Err(wait_for_signal(cx))
}

fn pause(cx: &Cx) -> Answer {
    Err(wait_for_signal(cx))
}

/// `stack_t`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Stack {
    /// `ss_sp`.
    pub base: u64,
    /// `ss_flags`.
    pub flags: u32,
    /// Nothing.
    pub padding: u32,
    /// `ss_size`.
    pub size: u64,
}

impl AltStack {
    /// Whether a stack pointer is on it (never, if it disarms itself).
    #[must_use]
    pub fn holds(&self, rsp: u64) -> bool {
        self.flags & l::SS_AUTODISARM == 0 && self.has(rsp)
    }

    /// Whether a stack pointer is inside it.
    #[must_use]
    pub fn has(&self, rsp: u64) -> bool {
        rsp > self.base && rsp - self.base <= self.size
    }

    /// The state that programs see: in use, off, or neither.
    #[must_use]
    pub fn state(&self, rsp: u64) -> u32 {
        if self.size == 0 {
            l::SS_DISABLE
        } else if self.holds(rsp) {
            l::SS_ONSTACK
        } else {
            0
        }
    }
}

fn sigaltstack(cx: &Cx) -> Answer {
    let new = match cx.arg(0) {
        0 => None,
        address => Some(cx.user().read::<Stack>(address)?),
    };
    let rsp = cx.unix.machine.registers(cx.thread.machine.get()).rsp;
    let old = cx.thread.signals.stack.get();
    if let Some(new) = new {
        change_stack(cx.thread, &new, rsp, MINIMUM)?;
    }
    if cx.arg(1) != 0 {
        let flags = old.state(rsp) | old.flags & l::SS_FLAG_BITS;
        let seen = Stack { base: old.base, flags, padding: 0, size: old.size };
        cx.user().write(cx.arg(1), &seen)?;
    }
    Ok(0)
}

/// Smallest alternate stack.
const MINIMUM: u64 = l::MINSIGSTKSZ as u64;

/// Sets the alternate stack.
///
/// # Errors
/// `EPERM` on the stack itself, `EINVAL` for flags, `ENOMEM` if it is too small.
pub(super) fn change_stack(
    thread: &Thread,
    new: &Stack,
    rsp: u64,
    minimum: u64,
) -> Result<(), Errno> {
    let old = thread.signals.stack.get();
    if old.size != 0 && old.holds(rsp) {
        return Err(Errno::EPERM);
    }
    let mode = new.flags & !l::SS_FLAG_BITS;
    if mode != l::SS_DISABLE && mode != l::SS_ONSTACK && mode != 0 {
        return Err(Errno::EINVAL);
    }
    if mode == l::SS_DISABLE {
        thread.signals.stack.set(AltStack { flags: new.flags, ..NO_STACK });
        return Ok(());
    }
    if new.size < minimum {
        return Err(Errno::ENOMEM);
    }
    thread.signals.stack.set(AltStack { base: new.base, size: new.size, flags: new.flags });
    Ok(())
}
