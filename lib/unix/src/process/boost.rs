//! Who has waited long goes first, where many compute (`docs/decisions/0134`).
//!
//! Programs have turns in a ring, so beside a hundred that compute whoever wakes waits for a hundred turns: each time that
//! its own is over, and so do its children. Linux lets a sleeper preempt those who have run meanwhile. Here
//! a long wait earns *credit*, some processor time in front of the ring, which is shared with children.
//! All that go first have half of the processor at most: when that is used up, they take turns with all others until it is
//! paid back.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::machine::{Share, Urgency};
use crate::thread::Thread;
use crate::time::{Alarm, Armed};
use crate::unix::Unix;

/// So many on a processor have their turns soon enough.
pub(super) const FEW: u32 = 8;
/// The wait that earns credit.
const LONG_NS: u64 = 100_000_000;
/// What it earns.
const CREDIT_NS: u64 = 50_000_000;
/// How long all together may go first at a stretch.
const STRETCH_NS: u64 = 50_000_000;
/// Time between two looks at those who go first.
const LOOK_NS: u64 = 10_000_000;
/// How many can go first at a time.
const MOST: usize = 32;
/// What they have in front of the others: short turns, for they are to be short of nothing but time.
const FIRST: Share = Share { urgency: Urgency::Boosted, ticks: 2 };

/// What a thread has to do with it.
#[derive(Default)]
pub struct Credit {
    /// Processor time that it may still have in front of the others.
    left_ns: Cell<u64>,
    /// What it had run in all when it came to go first.
    before_ns: Cell<u64>,
    /// It is among those who go first.
    is_first: Cell<bool>,
}

impl Credit {
    /// Whether the thread is among those who go first.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.is_first.get()
    }
}

/// Those who go first.
#[derive(Default)]
pub struct Boost {
    alarm: Rc<Look>,
    set: Cell<Option<Armed>>,
    all: RefCell<Vec<Weak<Thread>>>,
    /// The time for which they have gone first and others have not been paid back.
    owed_ns: Cell<u64>,
    /// Up to when that is known.
    known_ns: Cell<u64>,
    /// It is being paid back: nobody goes first.
    pays: Cell<bool>,
    /// The alarm is set.
    looks: Cell<bool>,
}

/// Its alarm.
#[derive(Default)]
struct Look;

impl Alarm for Look {
    fn ring(&self, unix: &Unix) {
        unix.boost.look(unix);
    }
}

impl Boost {
    /// `thread` goes on after `waited_ns`, on a processor that many share.
    #[cold]
    pub(super) fn goes_on(&self, unix: &Unix, thread: &Rc<Thread>, waited_ns: u64) {
        let credit = &thread.credit;
        if waited_ns >= LONG_NS {
            self.charge(unix, thread);
            credit.left_ns.set(CREDIT_NS);
        }
        self.join(unix, thread);
    }

    /// `child` is born of `parent`, which shares what it has.
    pub(super) fn is_born(&self, unix: &Unix, parent: &Rc<Thread>, child: &Thread) {
        if parent.credit.is_first() {
            self.charge(unix, parent);
            let half_ns = parent.credit.left_ns.get() / 2;
            parent.credit.left_ns.set(half_ns);
            child.credit.left_ns.set(half_ns);
        }
    }

    /// `thread` ends: what it has not used is its parent's.
    pub(super) fn ends(&self, unix: &Unix, thread: &Rc<Thread>) {
        let _ = self.leave(unix, thread);
        let left_ns = thread.credit.left_ns.take();
        let parent = thread.process.parent.borrow().upgrade().filter(|_| left_ns > 0);
        if let Some(heir) = parent.and_then(|parent| parent.threads.borrow().first().cloned()) {
            let credit = &heir.credit.left_ns;
            credit.set((credit.get() + left_ns).min(CREDIT_NS));
        }
    }

    /// `thread`, which has credit, is among those who go first.
    pub(super) fn join(&self, unix: &Unix, thread: &Rc<Thread>) {
        let credit = &thread.credit;
        let is_ordinary = thread.tuning.get().share().urgency == Urgency::Ordinary;
        if credit.left_ns.get() == 0 || !is_ordinary || credit.is_first() {
            return;
        }
        self.settle(unix);
        let mut all = self.all.borrow_mut();
        if all.len() >= MOST {
            return;
        }
        all.push(Rc::downgrade(thread));
        credit.is_first.set(true);
        credit.before_ns.set(has_run_ns(unix, thread));
        if !self.pays.get() {
            unix.machine.set_share(thread.machine.get(), FIRST);
        }
        if !self.looks.replace(true) {
            self.look_in(unix);
        }
    }

    /// `thread` has its own share from now on, which is for the caller to tell the machine; whether it went first.
    pub(super) fn leave(&self, unix: &Unix, thread: &Rc<Thread>) -> bool {
        self.charge(unix, thread);
        if !thread.credit.is_first.replace(false) {
            return false;
        }
        self.settle(unix);
        self.all.borrow_mut().retain(|other| !core::ptr::eq(other.as_ptr(), Rc::as_ptr(thread)));
        true
    }

    fn look_in(&self, unix: &Unix) {
        let alarm: Rc<dyn Alarm> = self.alarm.clone();
        let set = unix.timers.set(unix, unix.machine.now_ns() + LOOK_NS, Rc::downgrade(&alarm));
        self.set.set(Some(set));
    }

    /// What `thread` has run since it came is taken from its credit.
    fn charge(&self, unix: &Unix, thread: &Rc<Thread>) {
        let credit = &thread.credit;
        if credit.is_first() {
            let now_ns = has_run_ns(unix, thread);
            let used_ns = now_ns.saturating_sub(credit.before_ns.replace(now_ns));
            credit.left_ns.set(credit.left_ns.get().saturating_sub(used_ns));
        }
    }

    /// Time has passed in which some have gone first, or in which it was paid back.
    fn settle(&self, unix: &Unix) {
        let now_ns = unix.machine.now_ns();
        let passed_ns = now_ns.saturating_sub(self.known_ns.replace(now_ns));
        let owed_ns = self.owed_ns.get();
        let gone_first = !self.pays.get() && !self.all.borrow().is_empty();
        self.owed_ns.set(match gone_first {
            true => owed_ns + passed_ns,
            false => owed_ns.saturating_sub(passed_ns),
        });
    }

    /// Looks who has used its credit up, or waits, and whether all have had enough.
    fn look(&self, unix: &Unix) {
        self.settle(unix);
        let all = self.all.take();
        let threads: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        for thread in &threads {
            self.charge(unix, thread);
            if thread.credit.left_ns.get() == 0 || !thread.whereabouts.counts() {
                thread.credit.is_first.set(false);
                unix.machine.set_share(thread.machine.get(), thread.tuning.get().share());
            }
        }
        let rest = threads.iter().filter(|thread| thread.credit.is_first());
        self.all.borrow_mut().extend(rest.map(Rc::downgrade));
        let pays = match self.pays.get() {
            true => self.owed_ns.get() > 0,
            false => self.owed_ns.get() >= STRETCH_NS,
        };
        if self.pays.replace(pays) != pays {
            for thread in threads.iter().filter(|thread| thread.credit.is_first()) {
                let share = if pays { thread.tuning.get().share() } else { FIRST };
                unix.machine.set_share(thread.machine.get(), share);
            }
        }
        self.looks.set(pays || !self.all.borrow().is_empty());
        if self.looks.get() {
            self.look_in(unix);
        }
    }
}

fn has_run_ns(unix: &Unix, thread: &Thread) -> u64 {
    unix.machine.has_run_ns(thread.machine.get())
}
