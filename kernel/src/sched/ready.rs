//! The ready queue: a ring of tcbs per priority and a bitmap of the rings that
//! may hold somebody. Parsing it drops threads that no longer belong there
//! (Liedtke 1993, 5.3.4); links are in the tcbs (5.3.2).

use core::cell::Cell;

use crate::arch::preemption::Stint;
use crate::ring::Ring;
use crate::thread::TcbRef;
use crate::thread::tcb::Ready;

/// Number of priorities.
pub const PRIORITIES: usize = 256;

/// What one who leaves the queue takes, in instructions, roughly.
const LEAVING: u32 = 45;

/// Ready threads by priority.
pub struct ReadyQueue {
    rings: [Ring<Ready>; PRIORITIES],
    occupied: [Cell<u64>; PRIORITIES / 64],
    /// Threads in all rings, ready or not any more.
    count: Cell<u64>,
}

impl Default for ReadyQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadyQueue {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rings: [const { Ring::new() }; PRIORITIES],
            occupied: [const { Cell::new(0) }; PRIORITIES / 64],
            count: Cell::new(0),
        }
    }

    /// Number of threads in the queue, ready or not any more.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// The ring of `thread`'s priority, and what says in the bitmap that it has members.
    #[inline(always)]
    fn place(&self, thread: TcbRef) -> (&Ring<Ready>, &Cell<u64>, u64) {
        let priority = thread.priority.get();
        let word = &self.occupied[usize::from(priority >> 6)];
        (&self.rings[usize::from(priority)], word, 1 << (priority & 63))
    }

    /// Appends `thread` at its priority unless it is in the queue already.
    pub fn insert(&self, thread: TcbRef) {
        if self.contains(thread) {
            return;
        }
        self.count.set(self.count.get() + 1);
        let (ring, word, bit) = self.place(thread);
        ring.append(thread);
        word.set(word.get() | bit);
    }

    /// Inserts `thread` as the first of its priority, or moves it there.
    pub fn insert_first(&self, thread: TcbRef) {
        let (ring, ..) = self.place(thread);
        // A ring's last is the one before its first, so it only has to be turned by one.
        if ring.last() != Some(thread) {
            self.rotate(thread);
        }
        ring.turn_to(thread);
    }

    /// Removes `thread` if it is in the queue. Its priority must be that with which it was inserted.
    pub fn remove(&self, thread: TcbRef) {
        if !self.contains(thread) {
            return;
        }
        let (ring, word, bit) = self.place(thread);
        ring.remove(thread);
        self.count.set(self.count.get() - 1);
        if ring.is_empty() {
            word.set(word.get() & !bit);
        }
    }

    /// Moves `thread` behind the others of its priority.
    pub fn rotate(&self, thread: TcbRef) {
        self.remove(thread);
        self.insert(thread);
    }

    /// The first ready thread of the highest priority that has one; whoever is
    /// met on the way and is not ready any more leaves the queue.
    ///
    /// Users decide how many these are. If an interrupt comes behind some of them, nobody is found: it is
    /// handled on the way out of the kernel, where somebody looks again, and a handler that is more urgent
    /// than those who are left need not wait for them.
    #[must_use]
    pub fn highest(&self) -> Option<TcbRef> {
        let first = self.first_queued()?;
        if first.is_ready() {
            return Some(first);
        }
        // Usually that is who has just blocked, and the only one.
        self.remove(first);
        let second = self.first_queued()?;
        if second.is_ready() { Some(second) } else { self.highest_behind(second) }
    }

    /// The same behind `left`, who is the first and not ready.
    #[inline(never)]
    fn highest_behind(&self, mut left: TcbRef) -> Option<TcbRef> {
        let mut stint = Stint::default();
        loop {
            self.remove(left);
            if stint.must_stop_after(LEAVING) {
                return None;
            }
            left = self.first_queued()?;
            if left.is_ready() {
                return Some(left);
            }
        }
    }

    /// The first of the highest priority that is in the queue at all.
    #[must_use]
    pub fn first_queued(&self) -> Option<TcbRef> {
        self.rings[self.top() as usize % PRIORITIES].first()
    }

    /// Whether somebody beside `thread` is in the queue, ready or not any more.
    #[inline]
    #[must_use]
    pub fn holds_others(&self, thread: TcbRef) -> bool {
        self.count.get() > u64::from(self.contains(thread))
    }

    /// Whether somebody with a higher priority is in the queue, ready or not any more.
    #[inline]
    #[must_use]
    pub fn holds_above(&self, priority: u8) -> bool {
        self.top() > u32::from(priority)
    }

    /// The highest priority of those in the queue, ready or not any more; 0 if it is empty, too.
    /// One word after the other: a loop is twice as long.
    #[inline]
    fn top(&self) -> u32 {
        let [low, second, third, high] = &self.occupied;
        if high.get() != 0 {
            192 + high.get().ilog2()
        } else if third.get() != 0 {
            128 + third.get().ilog2()
        } else if second.get() != 0 {
            64 + second.get().ilog2()
        } else {
            low.get().checked_ilog2().unwrap_or(0)
        }
    }

    /// Those in the queue, ready or not any more, the most urgent first; nobody comes or goes meanwhile.
    pub fn all(&self) -> impl Iterator<Item = TcbRef> {
        let words = self.occupied.iter().enumerate().rev();
        let priorities = words.flat_map(|(word, bits)| {
            let mut left = bits.get();
            core::iter::from_fn(move || {
                let highest = left.checked_ilog2()?;
                left &= !(1 << highest);
                Some(word * 64 + highest as usize)
            })
        });
        priorities.flat_map(|priority| self.rings[priority % PRIORITIES].iter())
    }

    /// Calls `visit` with every priority, its ring, and whether the bitmap says that it has
    /// members; for the checker.
    pub fn for_each_ring(&self, mut visit: impl FnMut(u8, &Ring<Ready>, bool)) {
        for (priority, ring) in (0..=u8::MAX).zip(&self.rings) {
            let occupied = self.occupied[usize::from(priority >> 6)].get();
            visit(priority, ring, occupied >> (priority & 63) & 1 != 0);
        }
    }

    /// Whether a thread is queued at all (ready or not).
    #[inline]
    #[must_use]
    pub fn contains(&self, thread: TcbRef) -> bool {
        thread.ready.are_linked()
    }
}
