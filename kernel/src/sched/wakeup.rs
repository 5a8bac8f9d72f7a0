//! Wakeup lists (Liedtke 1993, 5.3.3): n unordered rings of tcbs; a thread whose time comes
//! soon is linked into the ring of its grain of time. Far more timeouts are cancelled than
//! expire, so cancelling only clears the tcb's wakeup time; the ring drops it when it is parsed
//! next.
//!
//! Who sleeps longer than the rings reach is in the ring of a whole span of grains, whose members
//! move to the grains' rings during the span before it, some with each step; who sleeps longer
//! still is in one more ring (L3's long-time list), whose members are looked at one after the
//! other. So a tick looks at those whose time comes, and at a bounded number of the others.

use core::cell::Cell;

use abi::id::THREAD_BITS;

use crate::arch::TcbRef;
use crate::preemption::Pace;
use crate::ring::Ring;
use crate::techniques::WAKEUP_LISTS;
use crate::thread::tcb::Wakeups;

/// Grain of wakeups: one list per so many µs.
pub const GRAIN_US: u64 = 1024;
/// How far the grains' rings reach at most, µs.
pub const NEAR_US: u64 = 2 * SPAN * GRAIN_US;

/// Grains of a span: the rings of grains hold this one and the next.
const SPAN: u64 = if SORTED { WAKEUP_LISTS as u64 / 2 } else { 1 };
/// Rings of spans.
const SPANS: usize = 512;
/// Grains of a step, in which members of the next span and of the long-time list are looked at.
const STEP: u64 = 4;
/// Whether there are lists enough: all members of the long-time list are looked at, one in a
/// grain, long before their span is near. With fewer everybody is in the ring of a grain.
const SORTED: bool = WAKEUP_LISTS * SPANS / 2 >= 2 << THREAD_BITS;
/// The long-time list's number.
const LONG_TIME: usize = WAKEUP_LISTS + SPANS;

/// The lists.
pub struct WakeupLists {
    /// By grain, by span, and the long-time list.
    rings: [Ring<Wakeups>; LONG_TIME + 1],
    /// Members of the rings of spans.
    in_span: [Cell<u32>; SPANS],
    /// Members of all those and of the long-time list.
    later: Cell<u32>,
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
        Self {
            rings: [const { Ring::new() }; LONG_TIME + 1],
            in_span: [const { Cell::new(0) }; SPANS],
            later: Cell::new(0),
            next_grain: Cell::new(0),
        }
    }

    /// Arms a wakeup of `thread` at clock value `at_us` > 0.
    pub fn insert(&self, thread: TcbRef, at_us: u64) {
        self.remove(thread);
        thread.wake_at_us.set(at_us.max(1));
        self.link(thread, at_us);
    }

    /// Puts `thread`, which is in no list, into that of `at_us`.
    #[inline(always)]
    fn link(&self, thread: TcbRef, at_us: u64) {
        // Rounded up: never early, and never in a grain that is already parsed.
        let grain = (at_us / GRAIN_US + 1).max(self.next_grain.get());
        let list = if SORTED && self.spans_to(grain) > 1 {
            self.count_in(grain)
        } else {
            grain as usize % WAKEUP_LISTS
        };
        thread.wake_list.set(list as u32);
        self.rings[list].append(thread);
    }

    /// Spans from the one that is parsed to that of `grain`.
    fn spans_to(&self, grain: u64) -> u64 {
        (grain / SPAN).saturating_sub(self.next_grain.get() / SPAN)
    }

    /// The list of a distant `grain`, which gets one more member.
    #[inline(never)]
    fn count_in(&self, grain: u64) -> usize {
        self.later.set(self.later.get() + 1);
        if self.spans_to(grain) >= SPANS as u64 {
            return LONG_TIME;
        }
        let span = (grain / SPAN) as usize % SPANS;
        self.in_span[span].set(self.in_span[span].get() + 1);
        WAKEUP_LISTS + span
    }

    /// Calls `visit` with every list and its number; for the checker.
    pub fn for_each_ring(&self, mut visit: impl FnMut(u32, &Ring<Wakeups>)) {
        (0..).zip(&self.rings).for_each(|(list, ring)| visit(list, ring));
    }

    /// Unlinks `thread` from whatever list it is in.
    pub fn remove(&self, thread: TcbRef) {
        thread.wake_at_us.set(0);
        if thread.wake.are_linked() {
            self.unlink(thread);
        }
    }

    /// Takes `thread` out of its list.
    #[inline(always)]
    fn unlink(&self, thread: TcbRef) {
        let list = thread.wake_list.get() as usize % self.rings.len();
        if self.rings[list].remove(thread) && list >= WAKEUP_LISTS {
            self.count_out(list);
        }
    }

    /// `list`, one of the later ones, has a member less.
    #[inline(never)]
    fn count_out(&self, list: usize) {
        self.later.set(self.later.get() - 1);
        if let Some(count) = self.in_span.get(list - WAKEUP_LISTS) {
            count.set(count.get() - 1);
        }
    }

    /// Whether a list's turn has come by `now_us` and somebody is in it, or some of those who
    /// sleep longer are to be looked at; the turn of an empty one is over.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now_us: u64) -> bool {
        let (next, last) = (self.next_grain.get(), now_us / GRAIN_US);
        if next > last {
            return false;
        }
        let empty = self.rings[next as usize % WAKEUP_LISTS].is_empty();
        if next == last && empty && !self.is_step(next) {
            self.next_grain.set(next + 1);
            return false;
        }
        true
    }

    /// Whether those who sleep longer are to be looked at in `grain`.
    #[inline(always)]
    fn is_step(&self, grain: u64) -> bool {
        grain.is_multiple_of(STEP) && self.later.get() != 0
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
        let lists = WAKEUP_LISTS as u64;
        let first =
            self.next_grain.get().max(if SORTED { 0 } else { (last + 1).saturating_sub(lists) });
        // After a time without ticks there are many grains to look at.
        let mut pace = Pace::default();
        for grain in first..=last {
            pace.round();
            self.next_grain.set(grain);
            if self.is_step(grain) {
                self.come_nearer(grain);
            }
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

    /// The step of `grain`: its part of those whose span is the next, so that all are in the
    /// grains' rings when it begins, and some of those who sleep longest.
    #[inline(never)]
    fn come_nearer(&self, grain: u64) {
        let mut pace = Pace::default();
        let steps = (SPAN - grain % SPAN).div_ceil(STEP);
        let span = (grain / SPAN + 1) as usize % SPANS;
        for _ in 0..u64::from(self.in_span[span].get()).div_ceil(steps) {
            pace.round();
            self.sort(WAKEUP_LISTS + span);
        }
        let long = &self.rings[LONG_TIME];
        for thread in (0..STEP).map_while(|_| long.first()) {
            let at_us = thread.wake_at_us.get();
            if at_us == 0 || self.spans_to(at_us / GRAIN_US) < SPANS as u64 - 1 {
                self.sort(LONG_TIME);
            } else if let Some(next) = long.behind(thread) {
                long.turn_to(next);
            }
        }
    }

    /// Puts the first member of `list` where it belongs now: nowhere, if it was cancelled.
    fn sort(&self, list: usize) {
        let Some(thread) = self.rings[list].first() else { return };
        self.unlink(thread);
        let at_us = thread.wake_at_us.get();
        if at_us != 0 {
            self.link(thread, at_us);
        }
    }
}
