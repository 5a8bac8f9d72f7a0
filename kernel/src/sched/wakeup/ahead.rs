//! Looking ahead from a tick to the next one: who sleeps until a time between them.

use super::{CLASSES, DUE, GRAIN_US, WakeupLists};
use crate::arch::clock::TICK_US;
use crate::techniques::WAKEUP_LISTS;
use crate::thread::TcbRef;

/// How many sleepers a look ahead goes through, the most urgent class first: whoever is behind so many others
/// wakes by a tick.
const LOOKED_AT: u32 = 8;
/// How many whose sleep was broken off it takes out on the way.
const TAKEN_OUT: u32 = 16;
/// How many of them cost what a round does ([`super::WAKE_UP`]).
const IN_A_ROUND: u32 = 2;

/// Grains ahead in which somebody is looked for, so that ticks before them need not look.
const FAR: u64 = 4;

/// The grains in which sleepers of the time until the next tick can be.
fn grains(now_us: u64) -> [usize; 2] {
    let first = (now_us / GRAIN_US + 1) as usize;
    [first % WAKEUP_LISTS, (first + 1) % WAKEUP_LISTS]
}

impl WakeupLists {
    /// All grains that have passed are parsed: before when nothing is to be done, as far as one can see from here, µs.
    pub(super) fn nothing_before_us(&self) -> u64 {
        let (from, mut step_us) = (self.next_grain.get(), u64::MAX);
        for grain in from..from + FAR {
            // Its members' times begin with the grain before it.
            let begin_us = (grain - 1) * GRAIN_US;
            if self.classes[grain as usize % WAKEUP_LISTS].get() != 0 || begin_us >= step_us {
                return begin_us.min(step_us);
            }
            // A step is made by the first tick of its grain.
            if self.is_step(grain) {
                step_us = grain * GRAIN_US + TICK_US;
            }
        }
        step_us.min((from + FAR - 1) * GRAIN_US)
    }

    /// Those who sleep until a time before the next tick, behind `now_us`: whose time has come is due. The
    /// earliest of the others, and what is left of `left`, in [rounds](super::WAKE_UP).
    pub(super) fn look_ahead(&self, now_us: u64, left: u32) -> (Option<u64>, u32) {
        let [this, next] = grains(now_us);
        let mut look = Look { now_us, seen: 0, gone: 0, earliest_us: None };
        let mut classes = self.classes[this].get() | self.classes[next].get();
        while let Some(class) = classes.checked_ilog2() {
            classes &= !(1 << class);
            self.look_through(this, class as usize, &mut look);
            self.look_through(next, class as usize, &mut look);
        }
        (look.earliest_us, left.saturating_sub((look.seen + look.gone).div_ceil(IN_A_ROUND)))
    }

    /// The members of `class` in the ring of `grain`, as far as `look` goes.
    fn look_through(&self, grain: usize, class: usize, look: &mut Look) {
        let ring = &self.rings[grain * CLASSES + class];
        let mut next = ring.first();
        while let Some(thread) = next.filter(|_| look.goes_on()) {
            next = ring.behind(thread);
            if look.is_over(thread) {
                self.comes_due(grain, class, thread);
            }
        }
        if ring.is_empty() {
            self.classes[grain].set(self.classes[grain].get() & !(1 << class));
        }
    }

    /// `thread` is due, if it was not cancelled, before the others of its ring.
    fn comes_due(&self, grain: usize, class: usize, thread: TcbRef) {
        self.rings[grain * CLASSES + class].remove(thread);
        if thread.wake_at_us.get() != 0 {
            self.rings[DUE + class].append(thread);
            self.due.set(self.due.get() | 1 << class);
        }
    }
}

/// A look ahead.
struct Look {
    now_us: u64,
    /// How many it has seen who sleep, and who do not any more.
    seen: u32,
    gone: u32,
    /// When the first wakes of whom it has seen.
    earliest_us: Option<u64>,
}

impl Look {
    fn goes_on(&self) -> bool {
        self.seen < LOOKED_AT && self.gone < TAKEN_OUT
    }

    /// Whether `thread` sleeps no longer, or was cancelled.
    fn is_over(&mut self, thread: TcbRef) -> bool {
        let at_us = thread.wake_at_us.get();
        if at_us == 0 {
            self.gone += 1;
            return true;
        }
        self.seen += 1;
        if at_us > self.now_us {
            self.earliest_us = Some(self.earliest_us.map_or(at_us, |other| other.min(at_us)));
        }
        at_us <= self.now_us
    }
}
