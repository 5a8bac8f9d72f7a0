//! `FUTEX_WAIT_REQUEUE_PI` and `FUTEX_CMP_REQUEUE_PI`: who waits at a word is moved to another, that says who
//! holds it, and goes on as its holder. So of many who wait for a condition none runs before it has the lock.

use super::futex::{Waiter, set_deadline};
use super::futex_held::{claim, wait_at, word};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::signal::OnSignal;

/// Progress of a call that has been moved; 1 is that of one that holds the word.
const MOVED: u64 = 2;

/// `FUTEX_WAIT_REQUEUE_PI`: waits at the first word, as long as it has that value, to be moved to the second.
pub(super) fn wait(cx: &Cx, private: bool, realtime: bool) -> Answer {
    if cx.is_retry() && cx.progress() != 0 {
        return match cx.progress() {
            MOVED => wait_at(cx, word(cx, cx.arg(4), private)?),
            _ => Ok(0),
        };
    }
    if !cx.is_retry() && cx.arg(3) != 0 {
        set_deadline(cx, false, realtime)?;
    }
    let ((key, _), (target, address)) =
        (word(cx, cx.arg(0), private)?, word(cx, cx.arg(4), private)?);
    if key == target {
        return Err(Errno::EINVAL.into());
    }
    let (frame, offset) = cx.process.space().word(cx.unix, cx.arg(0), false)?;
    if !cx.is_retry() && cx.unix.memory.load_u32(frame, offset) != cx.uint(2) {
        return Err(Errno::EAGAIN.into());
    }
    if cx.expired() {
        return Err(Errno::ETIMEDOUT.into());
    }
    cx.on_signal(OnSignal::Again);
    cx.unix.mm.moves.set(true);
    let waiter = Waiter { address, target: Some(target), ..Waiter::any(cx.thread) };
    cx.unix.mm.futexes.add(key, waiter);
    Err(Stop::Block)
}

/// `FUTEX_CMP_REQUEUE_PI`: the first that waits at the first word goes on if it can hold the second, and so many
/// more wait there. How many they were.
pub(super) fn requeue(cx: &Cx, private: bool) -> Answer {
    let (wakes, moves) = (cx.int(2), cx.int(3));
    if wakes != 1 || moves < 0 {
        return Err(Errno::EINVAL.into());
    }
    let (from, to) = (word(cx, cx.arg(0), private)?, word(cx, cx.arg(4), private)?);
    if from.0 == to.0 {
        return Err(Errno::EINVAL.into());
    }
    let (frame, offset) = cx.process.space().word(cx.unix, cx.arg(0), false)?;
    if cx.unix.memory.load_u32(frame, offset) != cx.uint(5) {
        return Err(Errno::EAGAIN.into());
    }
    let mut done = 0;
    while done <= moves as u64 {
        let Some((thread, target)) = cx.unix.mm.futexes.target(from.0) else { break };
        if target != Some(to.0) {
            return Err(Errno::EINVAL.into());
        }
        let holder = claim(cx, to, &thread)?;
        let Some(waiter) = cx.unix.mm.futexes.take_first(from.0) else { break };
        match holder {
            None => {
                waiter.wake();
            }
            Some(holder) => {
                thread.progress.set(MOVED);
                cx.unix.mm.held.add(to.0, Waiter { holder, target: None, ..waiter });
            }
        }
        done += 1;
    }
    Ok(done)
}
