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
    wait_at(cx, word(cx, cx.arg(0), private)?)
}

/// Waits until the caller holds the word.
pub(super) fn wait_at(cx: &Cx, word: Word) -> Answer {
    let Some(holder) = claim(cx, word, cx.thread)? else { return Ok(0) };
    if cx.expired() {
        return Err(Errno::ETIMEDOUT.into());
    }
    cx.on_signal(OnSignal::Again);
    let (key, address) = word;
    cx.unix.mm.held.add(key, Waiter { holder, address, ..Waiter::any(cx.thread) });
    Err(Stop::Block)
}

/// `FUTEX_TRYLOCK_PI`.
pub(super) fn try_lock(cx: &Cx, private: bool) -> Answer {
    match claim(cx, word(cx, cx.arg(0), private)?, cx.thread)? {
        None => Ok(0),
        Some(_) => Err(Errno::EAGAIN.into()),
    }
}

/// A word: what it is called, and where it is in its program's memory.
pub(super) type Word = (Key, u64);

/// The word at `address` of the caller's memory.
pub(super) fn word(cx: &Cx, address: u64, private: bool) -> Result<Word, Errno> {
    Ok((cx.process.space().futex_key(cx.unix, address, private)?, address))
}

/// `who` takes the word if nobody holds it (`None`), or it is marked so that its holder, who is told, calls to
/// give it up. The word is one of the caller's.
///
/// # Errors
/// `EDEADLK` if `who` holds it, `ESRCH` if nobody does who is there, `EINVAL` if others wait there for no holder.
pub(super) fn claim(cx: &Cx, (key, address): Word, who: &Rc<Thread>) -> Result<Option<Pid>, Errno> {
    let (frame, offset) = cx.process.space().word(cx.unix, address, true)?;
    let own = who.own_tid.get();
    loop {
        let old = cx.unix.memory.load_u32(frame, offset);
        let holder = old & linux::FUTEX_TID_MASK;
        if holder == own {
            return Err(Errno::EDEADLK);
        }
        check_none_wait(cx.unix, key)?;
        let known = cx.find_thread(holder).map(|thread| thread.tid.get());
        let new = match holder {
            0 if cx.unix.mm.held.first(key).is_some() => old | own | linux::FUTEX_WAITERS,
            0 => old & linux::FUTEX_OWNER_DIED | own,
            _ if known.is_none() => return Err(Errno::ESRCH),
            _ => old | linux::FUTEX_WAITERS,
        };
        if !cx.unix.memory.compare_exchange_u32(frame, offset, old, new) {
            continue;
        }
        if holder == 0 {
            cx.unix.mm.held.holds(key, who.tid.get());
            return Ok(None);
        }
        return Ok(known);
    }
}

/// Whether everybody who waits at a word may be woken by anybody.
///
/// # Errors
/// `EINVAL` if somebody there is to hold a word when it goes on.
pub(super) fn check_not_held(unix: &Unix, key: Key) -> Result<(), Errno> {
    let is_moved = || unix.mm.futexes.target(key).is_some_and(|(_, target)| target.is_some());
    let held = &unix.mm.held;
    if !held.is_empty() && held.first(key).is_some() || unix.mm.moves.get() && is_moved() {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// Whether nobody waits at the word as at one that nobody holds.
fn check_none_wait(unix: &Unix, key: Key) -> Result<(), Errno> {
    let futexes = &unix.mm.futexes;
    let some = !futexes.is_empty() && futexes.first(key).is_some();
    if some { Err(Errno::EINVAL) } else { Ok(()) }
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
        check_none_wait(cx.unix, key)?;
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
    for (key, next, address) in unix.mm.held.held_by(thread.tid.get()) {
        let space = next.process().space();
        let (number, next) = (next.own_tid.get(), next.tid.get());
        let new = number | linux::FUTEX_WAITERS | linux::FUTEX_OWNER_DIED;
        if let Ok((frame, offset)) = space.word(unix, address, true) {
            let old = unix.memory.load_u32(frame, offset);
            unix.memory.compare_exchange_u32(frame, offset, old, new);
        }
        pass(unix, key, next);
    }
}
