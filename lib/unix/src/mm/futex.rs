//! Futexes: threads that wait until a word of memory is said to have changed.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as linux;

use super::area::AreaFlags;
use super::{AddressSpace, PAGE, USER_END, page_of};
use super::{futex_held, futex_moved, futex_operation};
use crate::call::{Answer, Cx, Entry, Stop, partial};
use crate::errno::Errno;
use crate::memory::FrameId;
use crate::process::Pid;
use crate::room::Room;
use crate::thread::Thread;
use crate::time::{Clock, Timespec};
use crate::unix::Unix;
use crate::wait::Seat;

pub use super::robust::{clear_child_tid, release_robust};

pub(super) const FUTEX: Entry =
    partial(linux::__NR_futex, "futex", futex, "holders of FUTEX_LOCK_PI inherit no priority");

/// Every waiter, whatever it waits for.
pub(super) const ANY: u32 = u32::MAX;

/// A word of memory, the same for all who share it: (serial of the space, address) or
/// (0, frame and offset).
pub(super) type Key = (u64, u64);

#[cfg_attr(test, derive(Default))]
pub(super) struct Waiter {
    pub(super) seat: Rc<Seat>,
    /// Of its call.
    pub(super) serial: u64,
    /// What it waits for.
    pub(super) bits: u32,
    /// Who holds the word, where that is said there; else 0.
    pub(super) holder: Pid,
    /// Where that word is in its memory.
    pub(super) address: u64,
    /// The word that says who holds it, to which alone it may be moved.
    pub(super) target: Option<Key>,
    /// What its call has for progress once it is woken; not 0.
    pub(super) told: u64,
}

impl Waiter {
    /// `thread`, for whatever it will be woken.
    pub(super) fn any(thread: &Rc<Thread>) -> Self {
        Self {
            seat: Seat::of(thread).clone(),
            serial: thread.wait_serial.get(),
            bits: ANY,
            holder: Pid::default(),
            address: 0,
            target: None,
            told: 1,
        }
    }

    /// The thread, if its call still waits.
    pub(super) fn thread(&self) -> Option<Rc<Thread>> {
        let waits =
            |thread: &Rc<Thread>| thread.wait_serial.get() == self.serial && thread.is_in_call();
        self.seat.thread().filter(waits)
    }

    fn waits(&self) -> bool {
        self.thread().is_some()
    }

    /// It waits no more; whether it still did.
    pub(super) fn wake(&self) -> bool {
        let Some(thread) = self.thread() else { return false };
        thread.progress.set(self.told);
        thread.wake(self.serial);
        true
    }
}

/// Queues that stay when nobody waits there any more: who waits at a word will wait there again.
const KEPT: usize = 16;
/// Most places of such a queue. Nobody pays for what is left behind.
const KEPT_PLACES: usize = 4;

/// Whether the queue of a word does not stay; `many`: there are more than may.
fn is_over(queue: &VecDeque<Waiter>, many: bool) -> bool {
    queue.is_empty() && (many || queue.capacity() > KEPT_PLACES)
}

/// All futexes with waiters, and some that had some.
#[derive(Default)]
pub struct Futexes {
    queues: RefCell<BTreeMap<Key, VecDeque<Waiter>>>,
    /// How many are in them, with those that wait no more and were not woken.
    entries: Cell<usize>,
    /// With so many those are looked for everywhere.
    sweep_at: Cell<usize>,
}

impl Futexes {
    pub(super) fn add(&self, key: Key, waiter: Waiter) {
        let mut queues = self.queues.borrow_mut();
        if self.entries.get() >= self.sweep_at.get().max(64) {
            self.sweep(&mut queues);
        }
        let queue = queues.entry(key).or_default();
        if queue.len() == queue.capacity() {
            self.tidy(queue);
        }
        queue.push_back(waiter);
        self.entries.set(self.entries.get() + 1);
    }

    /// Takes those out that wait no more: nobody pays for what is left of them.
    #[cold]
    fn sweep(&self, queues: &mut BTreeMap<Key, VecDeque<Waiter>>) {
        queues.retain(|_, queue| {
            self.tidy(queue);
            queue.trim();
            !queue.is_empty()
        });
        self.sweep_at.set(self.entries.get() * 2);
    }

    /// As [`Self::sweep`], of one queue.
    fn tidy(&self, queue: &mut VecDeque<Waiter>) {
        let before = queue.len();
        queue.retain(Waiter::waits);
        self.left(before - queue.len());
    }

    /// So many are in the queues no more.
    fn left(&self, count: usize) {
        self.entries.set(self.entries.get() - count);
    }

    /// Whether nobody has waited anywhere of late.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.borrow().is_empty()
    }

    /// Takes the first that waits at a word.
    pub(super) fn take_first(&self, key: Key) -> Option<Waiter> {
        let mut queues = self.queues.borrow_mut();
        let many = queues.len() > KEPT;
        let queue = queues.get_mut(&key)?;
        let before = queue.len();
        let first = core::iter::from_fn(|| queue.pop_front()).find(Waiter::waits);
        self.left(before - queue.len());
        if is_over(queue, many) {
            queues.remove(&key);
        }
        first
    }

    /// The first that waits at a word.
    pub(super) fn first(&self, key: Key) -> Option<Rc<Thread>> {
        self.queues.borrow().get(&key)?.iter().find_map(Waiter::thread)
    }

    /// The first that waits at a word, and the word to which it may be moved.
    pub(super) fn target(&self, key: Key) -> Option<(Rc<Thread>, Option<Key>)> {
        let queues = self.queues.borrow();
        queues.get(&key)?.iter().find_map(|waiter| Some((waiter.thread()?, waiter.target)))
    }

    /// The words that `holder` holds, and who is the first that waits there, by which address.
    pub(super) fn held_by(&self, holder: Pid) -> Vec<(Key, Rc<Thread>, u64)> {
        let queues = self.queues.borrow();
        let first = |(key, queue): (&Key, &VecDeque<Waiter>)| {
            let mut theirs = queue.iter().filter(|waiter| waiter.holder == holder);
            let (first, at) = theirs.find_map(|waiter| Some((waiter.thread()?, waiter.address)))?;
            Some((*key, first, at))
        };
        queues.iter().filter_map(first).collect()
    }

    /// Whoever waits at a word waits for `holder` from now on.
    pub(super) fn holds(&self, key: Key, holder: Pid) {
        if let Some(queue) = self.queues.borrow_mut().get_mut(&key) {
            queue.iter_mut().for_each(|waiter| waiter.holder = holder);
        }
    }

    /// Wakes up to `count` waiters with any of `bits`; how many there were.
    pub(super) fn wake(&self, key: Key, count: usize, bits: u32) -> usize {
        let mut queues = self.queues.borrow_mut();
        let many = queues.len() > KEPT;
        let Some(queue) = queues.get_mut(&key) else { return 0 };
        let mut woken = 0;
        let mut at = 0;
        while at < queue.len() && woken < count {
            if queue[at].waits() && queue[at].bits & bits == 0 {
                at += 1;
                continue;
            }
            let Some(waiter) = queue.remove(at) else { break };
            self.left(1);
            woken += usize::from(waiter.wake());
        }
        if is_over(queue, many) {
            queues.remove(&key);
        }
        woken
    }

    /// Lets up to `count` waiters wait at another word; how many there were.
    fn requeue(&self, from: Key, to: Key, count: usize) -> usize {
        let mut queues = self.queues.borrow_mut();
        let Some(mut queue) = queues.remove(&from) else { return 0 };
        self.tidy(&mut queue);
        if from == to {
            let moved = queue.len().min(count);
            queues.insert(from, queue);
            return moved;
        }
        let rest = queue.split_off(queue.len().min(count));
        let moved = queue.len();
        if moved != 0 {
            queues.entry(to).or_default().append(&mut queue);
        }
        if !rest.is_empty() {
            queues.insert(from, rest);
        }
        moved
    }
}

impl AddressSpace {
    /// What the word at `address` is called; its frame where the name needs one.
    pub(super) fn futex_key(&self, unix: &Unix, address: u64, private: bool) -> Result<Key, Errno> {
        if !address.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        if address >= USER_END {
            return Err(Errno::EFAULT);
        }
        if private {
            return Ok((self.serial, address));
        }
        let frame = self.frame_for(unix, page_of(address), false)?;
        let shared = self
            .areas
            .borrow()
            .at(address)
            .is_some_and(|area| area.flags.contains(AreaFlags::SHARED));
        match shared {
            true => Ok((0, u64::from(frame.0) * PAGE + address % PAGE)),
            false => Ok((self.serial, address)),
        }
    }

    /// The frame of a futex word and its place there.
    pub(super) fn word(
        &self,
        unix: &Unix,
        address: u64,
        write: bool,
    ) -> Result<(FrameId, usize), Errno> {
        let frame = self.frame_for(unix, page_of(address), write)?;
        Ok((frame, (address % PAGE) as usize))
    }
}

fn futex(cx: &Cx) -> Answer {
    let operation = cx.uint(1);
    let private = operation & linux::FUTEX_PRIVATE_FLAG != 0;
    let realtime = operation & linux::FUTEX_CLOCK_REALTIME != 0;
    let command = operation & !(linux::FUTEX_PRIVATE_FLAG | linux::FUTEX_CLOCK_REALTIME);
    let waits = matches!(command, linux::FUTEX_WAIT | linux::FUTEX_WAIT_BITSET);
    if waits && !cx.is_retry() && cx.arg(3) != 0 {
        set_deadline(cx, command == linux::FUTEX_WAIT, realtime)?;
    }
    let may_be_real = matches!(
        command,
        linux::FUTEX_WAIT_BITSET | linux::FUTEX_LOCK_PI2 | linux::FUTEX_WAIT_REQUEUE_PI
    );
    if realtime && !may_be_real {
        return Err(Errno::ENOSYS.into());
    }
    match command {
        linux::FUTEX_WAIT => wait(cx, private, ANY),
        linux::FUTEX_WAIT_BITSET => wait(cx, private, cx.uint(5)),
        linux::FUTEX_WAKE => wake_call(cx, private, ANY),
        linux::FUTEX_WAKE_BITSET => wake_call(cx, private, cx.uint(5)),
        linux::FUTEX_REQUEUE => requeue(cx, private, None),
        linux::FUTEX_CMP_REQUEUE => requeue(cx, private, Some(cx.uint(5))),
        linux::FUTEX_WAKE_OP => futex_operation::wake_op(cx, private),
        linux::FUTEX_LOCK_PI => futex_held::lock(cx, private, true),
        linux::FUTEX_LOCK_PI2 => futex_held::lock(cx, private, realtime),
        linux::FUTEX_TRYLOCK_PI => futex_held::try_lock(cx, private),
        linux::FUTEX_UNLOCK_PI => futex_held::unlock(cx, private),
        linux::FUTEX_WAIT_REQUEUE_PI => futex_moved::wait(cx, private, realtime),
        linux::FUTEX_CMP_REQUEUE_PI => futex_moved::requeue(cx, private),
        _ => Err(Errno::ENOSYS.into()),
    }
}

pub(super) fn set_deadline(cx: &Cx, relative: bool, realtime: bool) -> Result<(), Errno> {
    let ns = cx.user().read::<Timespec>(cx.arg(3))?.nanoseconds()?;
    let at_ns = match (relative, realtime) {
        (true, _) => cx.unix.machine.now_ns().saturating_add(ns),
        (false, true) => Clock::Real.machine_time(cx.unix, ns),
        (false, false) => Clock::Monotonic.meant(cx, ns),
    };
    cx.set_deadline(Some(at_ns));
    Ok(())
}

fn wait(cx: &Cx, private: bool, bits: u32) -> Answer {
    if bits == 0 {
        return Err(Errno::EINVAL.into());
    }
    let space = cx.process.space();
    if cx.is_retry() {
        if cx.progress() != 0 {
            return Ok(0);
        }
        if cx.expired() {
            return Err(Errno::ETIMEDOUT.into());
        }
    }
    let key = space.futex_key(cx.unix, cx.arg(0), private)?;
    let (frame, offset) = space.word(cx.unix, cx.arg(0), false)?;
    if !cx.is_retry() && cx.unix.memory.load_u32(frame, offset) != cx.uint(2) {
        return Err(Errno::EAGAIN.into());
    }
    if cx.expired() {
        return Err(Errno::ETIMEDOUT.into());
    }
    cx.unix.mm.futexes.add(key, Waiter { bits, ..Waiter::any(cx.thread) });
    Err(Stop::Block)
}

fn wake_call(cx: &Cx, private: bool, bits: u32) -> Answer {
    if bits == 0 {
        return Err(Errno::EINVAL.into());
    }
    let key = cx.process.space().futex_key(cx.unix, cx.arg(0), private)?;
    futex_held::check_not_held(cx.unix, key)?;
    // Linux wakes one even if none is asked for.
    let count = cx.int(2).max(1) as usize;
    Ok(cx.unix.mm.futexes.wake(key, count, bits) as u64)
}

fn requeue(cx: &Cx, private: bool, expected: Option<u32>) -> Answer {
    let (wakes, moves) = (cx.int(2), cx.int(3));
    if wakes < 0 || moves < 0 {
        return Err(Errno::EINVAL.into());
    }
    let space = cx.process.space();
    let from = space.futex_key(cx.unix, cx.arg(0), private)?;
    let to = space.futex_key(cx.unix, cx.arg(4), private)?;
    if let Some(expected) = expected {
        let (frame, offset) = space.word(cx.unix, cx.arg(0), false)?;
        if cx.unix.memory.load_u32(frame, offset) != expected {
            return Err(Errno::EAGAIN.into());
        }
    }
    futex_held::check_not_held(cx.unix, from)?;
    let futexes = &cx.unix.mm.futexes;
    let woken = if wakes == 0 { 0 } else { futexes.wake(from, wakes as usize, ANY) };
    Ok((woken + futexes.requeue(from, to, moves as usize)) as u64)
}

/// Wakes up to `count` threads that wait at a word of `space`; how many there were.
pub fn wake(unix: &Unix, space: &AddressSpace, address: u64, count: usize) -> usize {
    match space.futex_key(unix, address, false) {
        Ok(key) => unix.mm.futexes.wake(key, count, ANY),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_little_and_short() {
        let futexes = Futexes::default();
        for word in 0..2 * KEPT as u64 {
            futexes.add((1, word), Waiter::default());
            futexes.wake((1, word), 1, ANY);
        }
        assert_eq!(futexes.queues.borrow().len(), KEPT);
        let futexes = Futexes::default();
        let crowd = core::iter::repeat_with(Waiter::default).take(1000).collect();
        futexes.queues.borrow_mut().insert((1, 0), crowd);
        futexes.entries.set(1000);
        futexes.wake((1, 0), 1000, ANY);
        assert!(futexes.is_empty(), "the places of a thousand are given back");
    }
}
