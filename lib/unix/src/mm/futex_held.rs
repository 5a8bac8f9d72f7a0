//! Futexes whose word says who holds them: `FUTEX_LOCK_PI` and what belongs to it.
//!
//! Who gives it up, by a call or by ending, hands it to the one that has waited longest: its id is in
//! the word before it runs. A waiter knows who held the word when it came, for a thread may write its
//! id away and end. Linux hastens the holder as well, to the priority of the most urgent waiter;
//! programs here have no priorities among each other.

use alloc::rc::Rc;

use linux_raw_sys::general as linux;

use super::futex::{ANY, Key, Waiter, set_deadline};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::process::Pid;
use crate::signal::OnSignal;
use crate::thread::Thread;
use crate::unix::Unix;

/// `FUTEX_LOCK_PI`, `FUTEX_LOCK_PI2`: waits until the caller holds the word.
pub(super) fn lock(cx: &Cx, private: bool, realtime: bool) -> Answer {
    if cx.is_retry() && cx.progress() != 0 {
        return Ok(0);
    }
    if !cx.is_retry() && cx.arg(3) != 0 {
        set_deadline(cx, false, realtime)?;
    }
    let Some((key, holder)) = claim(cx, private)? else { return Ok(0) };
    if cx.expired() {
        return Err(Errno::ETIMEDOUT.into());
    }
    cx.on_signal(OnSignal::Again);
    cx.unix.mm.held.add(key, Waiter { holder, ..Waiter::any(cx.thread) });
    Err(Stop::Block)
}

/// `FUTEX_TRYLOCK_PI`.
pub(super) fn try_lock(cx: &Cx, private: bool) -> Answer {
    match claim(cx, private)? {
        None => Ok(0),
        Some(_) => Err(Errno::EAGAIN.into()),
    }
}

/// Takes the word if nobody holds it (`None`), or marks it so that its holder, who is told, calls to
/// give it up.
fn claim(cx: &Cx, private: bool) -> Result<Option<(Key, Pid)>, Errno> {
    let space = cx.process.space();
    let key = space.futex_key(cx.unix, cx.arg(0), private)?;
    let (frame, offset) = space.word(cx.unix, cx.arg(0), true)?;
    let own = cx.thread.own_tid.get();
    loop {
        let old = cx.unix.memory.load_u32(frame, offset);
        let holder = old & linux::FUTEX_TID_MASK;
        let known = cx.find_thread(holder).map(|thread| thread.tid.get());
        let new = match holder {
            0 if cx.unix.mm.held.first(key).is_some() => old | own | linux::FUTEX_WAITERS,
            0 => old & linux::FUTEX_OWNER_DIED | own,
            _ if holder == own => return Err(Errno::EDEADLK),
            _ if known.is_none() => return Err(Errno::ESRCH),
            _ => old | linux::FUTEX_WAITERS,
        };
        if !cx.unix.memory.compare_exchange_u32(frame, offset, old, new) {
            continue;
        }
        if holder == 0 {
            cx.unix.mm.held.holds(key, cx.thread.tid.get());
            return Ok(None);
        }
        return Ok(known.map(|holder| (key, holder)));
    }
}

/// `FUTEX_UNLOCK_PI`.
pub(super) fn unlock(cx: &Cx, private: bool) -> Answer {
    let space = cx.process.space();
    let key = space.futex_key(cx.unix, cx.arg(0), private)?;
    let (frame, offset) = space.word(cx.unix, cx.arg(0), true)?;
    loop {
        let old = cx.unix.memory.load_u32(frame, offset);
        if old & linux::FUTEX_TID_MASK != cx.thread.own_tid.get() {
            return Err(Errno::EPERM.into());
        }
        let next = cx.unix.mm.held.first(key);
        let number = next.as_ref().map(|next| next.own_tid.get());
        let new = number.map_or(0, |number| number | linux::FUTEX_WAITERS);
        if cx.unix.memory.compare_exchange_u32(frame, offset, old, new) {
            pass(cx.unix, key, next.map_or(Pid::NONE, |next| next.tid.get()));
            return Ok(0);
        }
    }
}

/// The first that waits is `next`, and holds the word.
fn pass(unix: &Unix, key: Key, next: Pid) {
    unix.mm.held.wake(key, 1, ANY);
    unix.mm.held.holds(key, next);
}

/// `thread` ends or leaves its space: what it holds and others wait for goes to them, with the mark
/// that its holder died. To be called before robust lists are looked at.
pub fn release_held(unix: &Unix, thread: &Rc<Thread>) {
    for (key, next) in unix.mm.held.held_by(thread.tid.get()) {
        // It waits in its call, whose first argument is the word.
        let (space, [address, ..]) = (next.process().space(), next.arguments.get());
        let (number, next) = (next.own_tid.get(), next.tid.get());
        let new = number | linux::FUTEX_WAITERS | linux::FUTEX_OWNER_DIED;
        if let Ok((frame, offset)) = space.word(unix, address, true) {
            let old = unix.memory.load_u32(frame, offset);
            unix.memory.compare_exchange_u32(frame, offset, old, new);
        }
        pass(unix, key, next);
    }
}
