//! `futex_waitv`: waiting at several futexes at once.

use linux_raw_sys::general as linux;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::futex::Waiter;
use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::time::{Clock, Timespec};

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[full(linux::__NR_futex_waitv, "futex_waitv", futex_waitv)];

/// Most futexes of a call (`FUTEX_WAITV_MAX`).
const MOST: u32 = 128;
/// Its futexes have 32 bits (`FUTEX_32`).
const WORD: u32 = 2;

/// `struct futex_waitv`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Wanted {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// `futex_waitv(waiters, count, 0, timeout, clock)`: the place of one that was woken.
fn futex_waitv(cx: &Cx) -> Answer {
    let (from, count) = (cx.arg(0), cx.uint(1));
    if cx.uint(2) != 0 || count == 0 || count > MOST || from == 0 {
        return Err(Errno::EINVAL.into());
    }
    if !cx.is_retry() && cx.arg(3) != 0 {
        if !matches!(cx.uint(4), linux::CLOCK_REALTIME | linux::CLOCK_MONOTONIC) {
            return Err(Errno::EINVAL.into());
        }
        let clock = Clock::new(cx, cx.int(4))?;
        let at_ns = cx.user().read::<Timespec>(cx.arg(3))?.nanoseconds()?;
        cx.set_deadline(Some(clock.machine_time(cx.unix, clock.meant(cx, at_ns))));
    }
    if cx.is_retry() && cx.progress() != 0 {
        return Ok(cx.progress() - 1);
    }
    if cx.is_retry() && cx.expired() {
        return Err(Errno::ETIMEDOUT.into());
    }
    let space = cx.process.space();
    let mut keys = alloc::vec::Vec::with_capacity(count as usize);
    for place in 0..u64::from(count) {
        let size = size_of::<Wanted>() as u64;
        let wanted: Wanted = cx.user().read(from.wrapping_add(place * size))?;
        let private = wanted.flags & linux::FUTEX_PRIVATE_FLAG != 0;
        if wanted.flags & !linux::FUTEX_PRIVATE_FLAG != WORD || wanted.reserved != 0 {
            return Err(Errno::EINVAL.into());
        }
        let key = space.futex_key(cx.unix, wanted.address, private)?;
        let (frame, offset) = space.word(cx.unix, wanted.address, false)?;
        let now = cx.unix.memory.load_u32(frame, offset);
        if !cx.is_retry() && u64::from(now) != wanted.value {
            return Err(Errno::EAGAIN.into());
        }
        keys.push(key);
    }
    if cx.expired() {
        return Err(Errno::ETIMEDOUT.into());
    }
    for (place, key) in keys.into_iter().enumerate() {
        let told = place as u64 + 1;
        cx.unix.mm.futexes.add(key, Waiter { told, ..Waiter::any(cx.thread) });
    }
    Err(Stop::Block)
}
