//! Who gets how much of the processor: what nice values and policies mean for the turns that threads have
//! (`docs/decisions/0127`).
//!
//! Down to nice 10 a turn is as long as Linux's weight says, so nobody has to do anything. Whoever is nicer, or idle by
//! policy, is in the background: it runs when nobody else can. That it gets on beside somebody who always can is the
//! [`Lender`]'s work: one of them at a time is among the others until it has run, and then there is a pause as long as
//! makes that a part of what its weight is.

use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::ops::Bound;

use linux_raw_sys::general as l;

use super::{Pid, Process};
use crate::machine::{Share, Urgency};
use crate::thread::{Doing, Thread};
use crate::time::{Alarm, Armed};
use crate::unix::Unix;

/// How a thread asks to be scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// `SCHED_*`, with `SCHED_RESET_ON_FORK` if that was asked for.
    pub policy: u32,
    /// Its priority, if the policy has some.
    pub priority: u32,
    /// Of `SCHED_DEADLINE`: time to run, deadline, period, ns.
    pub deadline: [u64; 3],
}

/// Tenths of a tick in a turn of nice 0; each step up is 4/5 of that, each step down 5/4.
const ORDINARY: u64 = 100;
/// Below this nice value turns get no longer: it would be long before others have theirs.
const LEAST_NICE: i32 = -10;
/// Up to this nice value a turn is a tick or more.
const MOST_ORDINARY: i32 = 10;
/// Nicest.
const MOST_NICE: i32 = 19;
/// Pauses of the policy that is nicer still: Linux gives it a weight of 3, where nice 10 has 110.
const IDLE_PAUSES: u32 = 36;
/// How long the lender waits before it looks again.
const LOOK_NS: u64 = 50_000_000;
/// The same if nobody in the background can run.
const CALM_NS: u64 = 250_000_000;

/// `tenths` after so many steps up.
fn after_steps(tenths: u64, nice: i32) -> u64 {
    // Thousandths of these, so that little is lost in 19 steps.
    let begin = tenths * 1000;
    let end = (0..nice.unsigned_abs()).fold(begin, |left, _| match nice > 0 {
        true => left * 4 / 5,
        false => left * 5 / 4,
    });
    (end + 500) / 1000
}

fn rounded(tenths: u64) -> u32 {
    ((tenths + 5) / 10).max(1) as u32
}

impl Tuning {
    /// The policy alone.
    #[must_use]
    pub fn plain_policy(&self) -> u32 {
        self.policy & !l::SCHED_RESET_ON_FORK
    }

    /// As `/proc` tells it: 0 to 39, and less than that where a policy comes before all nice values.
    #[must_use]
    pub fn told_priority(&self) -> i32 {
        match self.plain_policy() {
            l::SCHED_DEADLINE => -101,
            l::SCHED_FIFO | l::SCHED_RR => -1 - self.priority as i32,
            _ => 20 + self.nice,
        }
    }

    /// What a child has of it.
    #[must_use]
    pub fn inherited(self) -> Self {
        if self.policy & l::SCHED_RESET_ON_FORK == 0 {
            return self;
        }
        match self.plain_policy() {
            policy @ (l::SCHED_NORMAL | l::SCHED_BATCH | l::SCHED_IDLE) => {
                Self { nice: self.nice.max(0), policy, ..self }
            }
            _ => Self::default(),
        }
    }

    fn is_idle(&self) -> bool {
        self.plain_policy() == l::SCHED_IDLE
    }

    /// What it comes to for the machine.
    #[must_use]
    pub fn share(&self) -> Share {
        let ordinary = |nice: i32| Share {
            urgency: Urgency::Ordinary,
            ticks: rounded(after_steps(ORDINARY, nice.max(LEAST_NICE))),
        };
        let background = |nice: i32| Share {
            urgency: Urgency::Background,
            ticks: rounded(after_steps(10, nice - MOST_NICE)),
        };
        match self.plain_policy() {
            l::SCHED_NORMAL | l::SCHED_BATCH if self.nice <= MOST_ORDINARY => ordinary(self.nice),
            l::SCHED_NORMAL | l::SCHED_BATCH => background(self.nice),
            l::SCHED_IDLE => background(MOST_NICE),
            _ => ordinary(LEAST_NICE),
        }
    }

    /// Looks that pass in pause after it was lent a place in the foreground, where it has the weight of nice 10.
    fn pauses(&self) -> u32 {
        match self.is_idle() {
            true => IDLE_PAUSES,
            false => rounded(after_steps(10, MOST_ORDINARY - self.nice)) - 1,
        }
    }
}

impl Process {
    /// How its first thread asks to be scheduled, or did when it ended.
    #[must_use]
    pub fn tuning(&self) -> Tuning {
        match self.threads.borrow().first() {
            Some(thread) => thread.tuning.get(),
            None => self.state.last_tuning.get(),
        }
    }
}

/// `thread` is scheduled so from now on.
pub fn tune(unix: &Unix, thread: &Rc<Thread>, tuning: Tuning) {
    let before = thread.tuning.replace(tuning).share();
    let share = tuning.share();
    if share != before {
        give(unix, thread, share);
    }
}

/// `thread` has a new thread of the machine, which begins with the share of nice 0.
pub fn begins(unix: &Unix, thread: &Rc<Thread>) {
    let tuning = thread.tuning.get();
    if tuning != Tuning::default() {
        give(unix, thread, tuning.share());
    }
}

fn give(unix: &Unix, thread: &Rc<Thread>, share: Share) {
    thread.urgency.set(share.urgency);
    unix.lender.takes_from(thread);
    let _ = unix.boost.leave(unix, thread);
    unix.machine.set_share(thread.machine.get(), share);
    match share.urgency {
        Urgency::Background => unix.lender.add(unix, thread),
        Urgency::Ordinary | Urgency::Boosted => unix.lender.forget(thread),
    }
}

/// Lends those in the background a place among the others, one after the other.
#[derive(Default)]
pub struct Lender {
    /// Itself, for its alarm.
    alarm: Rc<Look>,
    set: Cell<Option<Armed>>,
    /// Everybody in the background.
    all: RefCell<BTreeSet<Pid>>,
    /// Who has a place now, and how long it had run before.
    lent: Cell<Option<(Pid, u64)>>,
    /// Who had it last.
    last: Cell<Pid>,
    /// Looks until the next one has it.
    pause: Cell<u32>,
    /// The alarm is set.
    looks: Cell<bool>,
}

/// The lender's alarm.
#[derive(Default)]
struct Look;

impl Alarm for Look {
    fn ring(&self, unix: &Unix) {
        unix.lender.look(unix);
    }
}

impl Lender {
    fn add(&self, unix: &Unix, thread: &Rc<Thread>) {
        if !thread.is_listed.replace(true) {
            self.all.borrow_mut().insert(thread.tid.get());
        }
        if !self.looks.replace(true) {
            self.look_in(unix, LOOK_NS);
        }
    }

    /// `thread` is not in the background any more, or gets another id, or ends.
    pub(super) fn forget(&self, thread: &Thread) {
        if thread.is_listed.replace(false) {
            self.all.borrow_mut().remove(&thread.tid.get());
        }
    }

    fn look_in(&self, unix: &Unix, ns: u64) {
        let alarm: Rc<dyn Alarm> = self.alarm.clone();
        let set = unix.timers.set(unix, unix.machine.now_ns() + ns, Rc::downgrade(&alarm));
        self.set.set(Some(set));
    }

    /// Looks who has run, and who is next.
    fn look(&self, unix: &Unix) {
        unix.end_a_turn(Urgency::Background);
        if !self.ends(unix) {
            return self.look_in(unix, LOOK_NS);
        }
        let pause = self.pause.get();
        self.pause.set(pause.saturating_sub(1));
        if pause > 0 || self.lend(unix) {
            self.look_in(unix, LOOK_NS);
        } else if self.all.borrow().is_empty() {
            self.looks.set(false);
        } else {
            self.look_in(unix, CALM_NS);
        }
    }

    /// Takes the place back from who has run, or cannot run any more; whether it is free now.
    fn ends(&self, unix: &Unix) -> bool {
        let Some((tid, before_ns)) = self.lent.get() else { return true };
        let thread = unix.processes.thread(tid).filter(|thread| thread.is_listed.get());
        let Some(thread) = thread else {
            self.lent.set(None);
            return true;
        };
        if can_run(&thread) && has_run_ns(unix, &thread) == before_ns {
            return false;
        }
        unix.machine.set_share(thread.machine.get(), thread.tuning.get().share());
        self.takes_from(&thread);
        true
    }

    /// `thread` has no place that was lent to it any more: it has run, or is given another share, with which it may
    /// never run.
    fn takes_from(&self, thread: &Thread) {
        let tid = thread.tid.get();
        if self.lent.get().is_some_and(|(lent, _)| lent == tid) {
            self.pause.set(thread.tuning.get().pauses());
            self.last.set(tid);
            self.lent.set(None);
        }
    }

    /// Lends the place to the next one that can run; whether there was one.
    fn lend(&self, unix: &Unix) -> bool {
        let (all, last) = (self.all.borrow(), self.last.get());
        let above = (Bound::Excluded(last), Bound::Unbounded);
        let next = all
            .range(above)
            .chain(all.range(..=last))
            .filter_map(|tid| unix.processes.thread(*tid))
            .find(|thread| can_run(thread));
        let Some(thread) = next else { return false };
        let share = Share { urgency: Urgency::Ordinary, ticks: 1 };
        unix.machine.set_share(thread.machine.get(), share);
        self.lent.set(Some((thread.tid.get(), has_run_ns(unix, &thread))));
        true
    }
}

fn has_run_ns(unix: &Unix, thread: &Thread) -> u64 {
    unix.machine.has_run_ns(thread.machine.get())
}

/// Whether `thread` would go on if it had the processor.
fn can_run(thread: &Thread) -> bool {
    thread.doing.get() == Doing::Running
        && !thread.queued.get()
        && thread.process.signals.stopped.get().is_none()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn share(nice: i32) -> (Urgency, u32) {
        let share = Tuning { nice, ..Tuning::default() }.share();
        (share.urgency, share.ticks)
    }

    #[test]
    fn turns_are_as_long_as_the_weights_of_linux_say() {
        let ordinary: Vec<u32> = (-10..=10).map(|nice| share(nice).1).collect();
        let expected = [93, 75, 60, 48, 38, 31, 24, 20, 16, 13, 10, 8, 6, 5, 4, 3, 3, 2, 2, 1, 1];
        assert_eq!(ordinary, expected);
        assert!((-20..=10).all(|nice| share(nice).0 == Urgency::Ordinary));
        assert_eq!(share(-20), share(-10));
        let background: Vec<u32> = (11..=19).map(|nice| share(nice).1).collect();
        assert_eq!(background, [6, 5, 4, 3, 2, 2, 2, 1, 1]);
        assert!((11..=19).all(|nice| share(nice).0 == Urgency::Background));
        let pauses = |nice| Tuning { nice, ..Tuning::default() }.pauses();
        assert_eq!((11..=19).map(pauses).collect::<Vec<_>>(), [0, 1, 1, 1, 2, 3, 4, 5, 7]);
    }

    #[test]
    fn a_policy_says_more_than_a_nice_value() {
        let of = |policy| Tuning { nice: 5, policy, ..Tuning::default() }.share();
        assert_eq!(of(l::SCHED_BATCH).ticks, 3);
        assert_eq!(of(l::SCHED_IDLE), Tuning { nice: 19, ..Tuning::default() }.share());
        assert_eq!(of(l::SCHED_FIFO), Tuning { nice: -10, ..Tuning::default() }.share());
        assert_eq!(of(l::SCHED_RR | l::SCHED_RESET_ON_FORK), of(l::SCHED_RR));
    }

    #[test]
    fn a_reset_on_fork_takes_what_is_better_than_usual() {
        let reset = l::SCHED_RESET_ON_FORK;
        let of = |nice, policy| Tuning { nice, policy, priority: 0, deadline: [0; 3] }.inherited();
        assert_eq!(of(-5, 0).nice, -5);
        assert_eq!(of(-5, reset), Tuning::default());
        assert_eq!(of(7, l::SCHED_IDLE | reset).policy, l::SCHED_IDLE);
        assert_eq!(of(7, l::SCHED_FIFO | reset), Tuning::default());
    }
}
