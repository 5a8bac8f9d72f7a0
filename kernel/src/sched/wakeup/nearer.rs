//! How those who sleep long come nearer, some with each step.

use super::{FIRST_SPAN, GRAIN_US, LONG_TIME, SORT, SPAN, SPANS, STEP, WakeupLists};
use crate::arch::preemption::Pace;

impl WakeupLists {
    /// The step of `grain`: its part of those whose span is the next is to come nearer, so that all are
    /// in the grains' rings when it begins; and some of those who sleep longest do. Whether `left`, from
    /// which that is taken, was enough for what must be done before.
    #[inline(never)]
    pub(super) fn come_nearer(&self, grain: u64, left: &mut u32) -> bool {
        let ring_of = |span: u64| span as usize % SPANS;
        let members = |ring: usize| self.in_span[ring].get();
        // What was not done before its span has begun.
        let (late, steps) = (ring_of(grain / SPAN), (SPAN - grain % SPAN).div_ceil(STEP));
        self.nearing.set((FIRST_SPAN + late, members(late)));
        *left = self.sort_some(*left);
        if self.nearing.get().1 != 0 {
            return false;
        }
        let next = ring_of(grain / SPAN + 1);
        let part = u64::from(members(next)).div_ceil(steps) as u32;
        self.nearing.set((FIRST_SPAN + next, part));
        let long = &self.rings[LONG_TIME];
        for thread in (0..STEP).map_while(|_| long.first()) {
            let at_us = thread.wake_at_us.get();
            if at_us == 0 || self.spans_to(at_us / GRAIN_US) < SPANS as u64 - 1 {
                self.sort(LONG_TIME);
            } else if let Some(next) = long.behind(thread) {
                long.turn_to(next);
            }
        }
        *left = left.saturating_sub(SORT * STEP as u32);
        true
    }

    /// As many of those who are to come nearer do as `left` rounds are enough for; what is left of them.
    #[inline]
    pub(super) fn sort_some(&self, left: u32) -> u32 {
        let (list, count) = self.nearing.get();
        let sorted = count.min(left / SORT);
        let mut pace = Pace::default();
        for _ in 0..sorted {
            pace.round();
            self.sort(list);
        }
        self.nearing.set((list, count - sorted));
        left - sorted * SORT
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
