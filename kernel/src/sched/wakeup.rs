//! Wakeup lists (Liedtke 1993, 5.3.3): n unordered rings of tcbs; a thread with
//! wakeup time τ is linked into ring `τ mod n` (in ticks). Far more timeouts are
//! cancelled than expire, so cancelling only clears the tcb's wakeup time; the
//! ring drops it when it is parsed next. L3's extra long-time list is not needed
//! with as many rings as `WAKEUP_LISTS`: k waiting threads cost k/n looks a tick.

use core::cell::Cell;

use crate::arch::TcbRef;
use crate::preemption::Pace;
use crate::ring::Ring;
use crate::techniques::WAKEUP_LISTS;
use crate::thread::tcb::Wakeups;

/// Grain of wakeups: one list per so many µs.
pub const GRAIN_US: u64 = 1024;

/// The lists.
pub struct WakeupLists {
    rings: [Ring<Wakeups>; WAKEUP_LISTS],
    /// Next grain to parse.
    next_grain: Cell<u64>,
}

impl Default for WakeupLists {
    fn default() -> Self {
        Self::new()
    }
}

impl WakeupLists {
    /// Empty lists.
    #[must_use]
    pub const fn new() -> Self {
        Self { rings: [const { Ring::new() }; WAKEUP_LISTS], next_grain: Cell::new(0) }
    }

    /// Arms a wakeup of `thread` at clock value `at_us` > 0.
    pub fn insert(&self, thread: TcbRef, at_us: u64) {
        self.remove(thread);
        // Rounded up: never early, and never in a grain that is already parsed.
        let grain = (at_us / GRAIN_US + 1).max(self.next_grain.get());
        let list = grain as usize % WAKEUP_LISTS;
        thread.wake_at_us.set(at_us.max(1));
        thread.wake_list.set(list as u32);
        self.rings[list].append(thread);
    }

    /// Calls `visit` with every list and its number; for the checker.
    pub fn for_each_ring(&self, mut visit: impl FnMut(u32, &Ring<Wakeups>)) {
        (0..).zip(&self.rings).for_each(|(list, ring)| visit(list, ring));
    }

    /// Unlinks `thread` from whatever list it is in.
    pub fn remove(&self, thread: TcbRef) {
        thread.wake_at_us.set(0);
        if thread.wake.are_linked() {
            self.rings[thread.wake_list.get() as usize % WAKEUP_LISTS].remove(thread);
        }
    }

    /// Whether a list's turn has come by `now_us` and somebody is in it; the turn of an empty
    /// one is over.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now_us: u64) -> bool {
        let (next, last) = (self.next_grain.get(), now_us / GRAIN_US);
        if next > last {
            return false;
        }
        let empty = self.rings[next as usize % WAKEUP_LISTS].is_empty();
        if next == last && empty {
            self.next_grain.set(next + 1);
            return false;
        }
        true
    }

    /// The next tick behind `now_us` finds [`WakeupLists::is_due`], whoever sleeps.
    pub fn look_again(&self, now_us: u64) {
        let before = (now_us / GRAIN_US).saturating_sub(1);
        self.next_grain.set(self.next_grain.get().min(before));
    }

    /// Nobody sleeps yet: the first tick need not look at the grains since the machine was switched on.
    pub fn begin(&self, now_us: u64) {
        self.next_grain.set(now_us / GRAIN_US);
    }

    /// Calls `expired` for every thread whose time has come by `now_us`.
    pub fn expire(&self, now_us: u64, mut expired: impl FnMut(TcbRef)) {
        let last = now_us / GRAIN_US;
        let first = self.next_grain.get().max(last.saturating_sub(WAKEUP_LISTS as u64 - 1));
        // After a time without ticks there are many grains to look at.
        let mut pace = Pace::default();
        for grain in first..=last {
            pace.round();
            self.next_grain.set(grain + 1);
            self.parse(grain as usize % WAKEUP_LISTS, now_us, &mut expired);
        }
    }

    fn parse(&self, list: usize, now_us: u64, expired: &mut impl FnMut(TcbRef)) {
        for thread in self.rings[list].iter() {
            let due = thread.wake_at_us.get();
            if due <= now_us {
                self.remove(thread);
            }
            if (1..=now_us).contains(&due) {
                expired(thread);
            }
        }
    }
}
