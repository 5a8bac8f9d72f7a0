//! Wakeup lists (Liedtke 1993, 5.3.3): n unordered rings of tcbs; a thread whose time comes
//! soon is linked into the ring of its grain of time. Far more timeouts are cancelled than
//! expire, so cancelling only clears the tcb's wakeup time; the ring drops it when it is parsed
//! next.
//!
//! Who sleeps longer than the rings reach is in the ring of a whole span of grains, whose members
//! move to the grains' rings during the span before it, some with each step; who sleeps longer
//! still is in one more ring (L3's long-time list), whose members are looked at one by one.
//!
//! A grain has a ring for each class of priorities. When its time comes, its rings become part of
//! those of who is due, at once; from there threads are woken, the most urgent class first, as many
//! at a time as the caller wants (docs/decisions/0056). So what a tick does is bounded, however
//! many it concerns.
//!
//! A tick looks [`ahead`], too: who sleeps until a time before the next one does not wait for his grain's end.

mod ahead;
mod nearer;

use core::cell::Cell;

use abi::id::THREAD_BITS;

use crate::arch::clock::TICK_US;
use crate::arch::preemption::Pace;
use crate::ring::Ring;
use crate::techniques::WAKEUP_LISTS;
use crate::thread::TcbRef;
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
/// What waking somebody, and bringing somebody nearer, costs: so many rounds of passing grains, some
/// thirty instructions each. (A class that comes due is one.)
const WAKE_UP: u32 = 7;
const SORT: u32 = 3;
/// The same of ending a transfer whose time is over, which is about two threads.
const TIME_OUT: u32 = 20;
/// Grains whose classes are one word: nobody is in any of them if that is 0.
const EIGHT: usize = 8;
/// Grains that are passed in a round if nobody is in them: a span is in no more than some ten.
const IN_A_ROUND: u64 = 6 * EIGHT as u64;
const _: () = assert!(!SORTED || SPAN.is_multiple_of(EIGHT as u64), "they are in one span");
/// Whether there are lists enough: all members of the long-time list are looked at, one in a
/// grain, long before their span is near. With fewer everybody is in the ring of a grain.
const SORTED: bool = WAKEUP_LISTS * SPANS / 2 >= 2 << THREAD_BITS;
/// Classes of priorities.
const CLASSES: usize = 8;
/// Log2 of the number of priorities in a class.
const CLASS_BITS: u32 = 8 - CLASSES.ilog2();
/// The number of the first span's ring.
const FIRST_SPAN: usize = WAKEUP_LISTS * CLASSES;
/// The long-time list's number.
const LONG_TIME: usize = FIRST_SPAN + SPANS;
/// The number of the ring of those of the lowest class who are due.
const DUE: usize = LONG_TIME + 1;

/// There is more to do at this time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest {
    /// The highest priority of those for whom it is done.
    pub priority: u8,
    /// Whoever is above this one may come before it now and then.
    pub before: u8,
}

/// The lists.
pub struct WakeupLists {
    /// By grain and class, by span, the long-time list, and who is due, by class.
    rings: [Ring<Wakeups>; DUE + CLASSES],
    /// The classes with members in a grain's rings, or that had some.
    classes: [Cell<u8>; WAKEUP_LISTS],
    /// The same of those who are due.
    due: Cell<u8>,
    /// The ring of the span whose members come nearer, and how many of them are still to in this step.
    nearing: Cell<(usize, u32)>,
    /// Members of the rings of spans.
    in_span: [Cell<u32>; SPANS],
    /// Members of all those and of the long-time list.
    later: Cell<u32>,
    /// Next grain to parse.
    next_grain: Cell<u64>,
    /// The next tick is to look ([`WakeupLists::look_again`]).
    again: Cell<bool>,
    /// Nobody's time comes before, µs, and nothing else is to be done: with each tick it is compared with the next one.
    look_us: Cell<u64>,
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
            rings: [const { Ring::new() }; DUE + CLASSES],
            classes: [const { Cell::new(0) }; WAKEUP_LISTS],
            due: Cell::new(0),
            nearing: Cell::new((FIRST_SPAN, 0)),
            in_span: [const { Cell::new(0) }; SPANS],
            later: Cell::new(0),
            next_grain: Cell::new(0),
            again: Cell::new(false),
            look_us: Cell::new(0),
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
        self.look_until(at_us);
        // Rounded up: never early, and never in a grain that is already parsed.
        let grain = (at_us / GRAIN_US + 1).max(self.next_grain.get());
        let list = if SORTED && self.spans_to(grain) > 1 {
            self.count_in(grain)
        } else {
            let (grain, class) = (grain as usize % WAKEUP_LISTS, class(thread));
            self.classes[grain].set(self.classes[grain].get() | 1 << class);
            grain * CLASSES + class
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
        if self.later.replace(self.later.get() + 1) == 0 {
            self.look_again();
        }
        if self.spans_to(grain) >= SPANS as u64 {
            return LONG_TIME;
        }
        let span = (grain / SPAN) as usize % SPANS;
        self.in_span[span].set(self.in_span[span].get() + 1);
        FIRST_SPAN + span
    }

    /// Every list in which somebody is, with its number; for the checker, for which a thousand empty ones cost most.
    pub fn for_each_ring(&self, mut visit: impl FnMut(u32, &Ring<Wakeups>)) {
        let held = (0..).zip(&self.rings).filter(|(_, ring)| !ring.is_empty());
        held.for_each(|(list, ring)| visit(list, ring));
    }

    /// Whether `list` is that of a grain.
    #[must_use]
    pub fn is_near(list: u32) -> bool {
        (list as usize) < FIRST_SPAN
    }

    /// Whether a member of `list` may believe to be in `believed`: who is due still names its grain.
    #[must_use]
    pub fn agree(list: u32, believed: u32) -> bool {
        let class = (list as usize).checked_sub(DUE);
        class.map_or(list == believed, |class| {
            Self::is_near(believed) && believed as usize % CLASSES == class
        })
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
        let due = &self.rings[DUE + list % CLASSES];
        // Only of the ring that it is the first of need it be known in which it is.
        let is_first_due = due.first() == Some(thread);
        let ring = if is_first_due && list < FIRST_SPAN { due } else { &self.rings[list] };
        if ring.remove(thread) && list >= FIRST_SPAN {
            self.count_out(list);
        }
    }

    /// `list`, one of the later ones, has a member less.
    #[inline(never)]
    fn count_out(&self, list: usize) {
        self.later.set(self.later.get() - 1);
        if let Some(count) = self.in_span.get(list - FIRST_SPAN) {
            count.set(count.get() - 1);
        }
    }

    /// Whether a tick at `now_us` finds something to do: somebody's time may have come, or comes before the next one;
    /// or some of those who sleep longer are to be looked at.
    #[inline(always)]
    #[must_use]
    pub fn is_due(&self, now_us: u64) -> bool {
        self.look_us.get() <= now_us + TICK_US
    }

    /// A tick that is followed by another one before `at_us` has nothing to do; others look.
    #[inline(always)]
    pub fn look_until(&self, at_us: u64) {
        self.look_us.set(self.look_us.get().min(at_us));
    }

    /// The next tick looks, whoever sleeps and whoever else looks before it.
    pub fn look_again(&self) {
        self.again.set(true);
        self.look_us.set(0);
    }

    /// A tick looks: it asks again for what it is to go on with.
    pub fn tick_looks(&self) {
        self.again.set(false);
    }

    /// Whether those who sleep longer are to be looked at in `grain`.
    #[inline(always)]
    fn is_step(&self, grain: u64) -> bool {
        grain.is_multiple_of(STEP) && self.later.get() != 0
    }

    /// Nobody sleeps yet: the first tick need not look at the grains since the machine was switched on.
    pub fn begin(&self, now_us: u64) {
        self.next_grain.set(now_us / GRAIN_US);
    }

    /// Calls `expired` for up to `most` threads whose time has come by `now_us`, those of the most
    /// urgent class first; whether there is more to do, with which the next call goes on, and when somebody's time
    /// comes next, if that may be before the next tick.
    pub fn expire_some(
        &self,
        now_us: u64,
        most: u32,
        expired: impl FnMut(TcbRef),
    ) -> (Option<Rest>, Option<u64>) {
        // Somebody very urgent may be among them, but his time has not come.
        const NEARER: Option<Rest> = Some(Rest { priority: u8::MAX, before: 0 });
        let left = self.pass_grains(now_us / GRAIN_US, most.saturating_mul(WAKE_UP));
        if left == 0 {
            return (NEARER, None);
        }
        let left = self.sort_some(left);
        let nearing = NEARER.filter(|_| self.nearing.get().1 != 0);
        let (next_us, left) = self.look_ahead(now_us, left);
        if !self.again.get() {
            self.look_us.set(self.nothing_before_us());
        }
        let due = self.wake(now_us, left, expired);
        (nearing.or(due), next_us)
    }

    /// Passes the grains up to `last`; what is left then of `left`, in [rounds](WAKE_UP). After a time without
    /// ticks there are many, and all of a span's sleepers may have to come nearer first.
    fn pass_grains(&self, last: u64, mut left: u32) -> u32 {
        let lists = WAKEUP_LISTS as u64;
        if !SORTED {
            self.next_grain.set(self.next_grain.get().max((last + 1).saturating_sub(lists)));
        }
        // Nobody is in the rings of times before that, and there is no step.
        let looked = (self.look_us.get() / GRAIN_US).min(last);
        self.next_grain.set(self.next_grain.get().max(looked));
        let mut pace = Pace::default();
        while left != 0 && self.next_grain.get() <= last {
            pace.round();
            left -= 1;
            let grain = self.next_grain.get();
            let is_long = grain + EIGHT as u64 <= last;
            let next = if is_long { self.behind_empty(grain, last) } else { grain };
            if next != grain {
                let rounds = ((next - grain) / IN_A_ROUND) as u32;
                pace.rounds(rounds);
                left = left.saturating_sub(rounds);
                self.next_grain.set(next);
                continue;
            }
            if self.is_step(grain) && !self.come_nearer(grain, &mut left) {
                return 0;
            }
            self.next_grain.set(grain + 1);
            left = left.saturating_sub(self.come_due(grain as usize % WAKEUP_LISTS));
        }
        left
    }

    /// If `grain` is the first of eight in whose rings nobody is, and the steps of its span find nobody: the first
    /// one behind these and the next such eights of the span, up to `last`; else `grain` itself.
    #[inline(never)]
    fn behind_empty(&self, grain: u64, last: u64) -> u64 {
        if !SORTED || !grain.is_multiple_of(EIGHT as u64) || !self.steps_find_nobody(grain) {
            return grain;
        }
        let until = ((grain / SPAN + 1) * SPAN).min(last);
        let at = grain as usize % WAKEUP_LISTS;
        let rest = self.classes.get(at..at + (until - grain) as usize).unwrap_or_default();
        let empty = |it: &&[Cell<u8>; EIGHT]| u64::from_le_bytes(it.each_ref().map(Cell::get)) == 0;
        grain + (rest.as_chunks().0.iter().take_while(empty).count() * EIGHT) as u64
    }

    /// Whether the steps of the span of `grain` have nothing to do.
    fn steps_find_nobody(&self, grain: u64) -> bool {
        let nobody = |later: u64| self.in_span[(grain / SPAN + later) as usize % SPANS].get() == 0;
        self.later.get() == 0 || nobody(0) && nobody(1) && self.rings[LONG_TIME].first().is_none()
    }

    /// The members of the rings of `grain` are due; of how many classes they are.
    #[inline(always)]
    fn come_due(&self, grain: usize) -> u32 {
        let mut classes = self.classes[grain].replace(0);
        self.due.set(self.due.get() | classes);
        let count = classes.count_ones();
        while classes != 0 {
            let class = classes.trailing_zeros() as usize;
            self.rings[DUE + class].take_in(&self.rings[grain * CLASSES + class]);
            classes &= classes - 1;
        }
        count
    }

    /// Wakes as many of those who are due as `left` rounds are enough for; of whom there are more, if there are.
    fn wake(&self, now_us: u64, mut left: u32, mut expired: impl FnMut(TcbRef)) -> Option<Rest> {
        while let Some(class) = self.due.get().checked_ilog2() {
            let Some(thread) = self.rings[DUE + class as usize].first() else {
                self.due.set(self.due.get() & !(1 << class));
                continue;
            };
            if left == 0 {
                let lowest = (class << CLASS_BITS) as u8;
                let highest = lowest | ((1 << CLASS_BITS) - 1);
                return Some(Rest { priority: highest, before: lowest.saturating_sub(1) });
            }
            let price = if thread.wake_is_transfer.get() { TIME_OUT } else { WAKE_UP };
            left = left.saturating_sub(price);
            self.unlink(thread);
            match thread.wake_at_us.get() {
                0 => {}
                due if due <= now_us => {
                    thread.wake_at_us.set(0);
                    expired(thread);
                }
                // With too few lists a grain's ring holds others, too.
                due => self.link(thread, due),
            }
        }
        None
    }
}

/// The class of a thread that falls asleep.
#[inline(always)]
fn class(thread: TcbRef) -> usize {
    usize::from(thread.priority.get() >> CLASS_BITS)
}
