//! Which processor a thread runs on, and what each has done.
//!
//! A thread counts for its processor while it is not waiting in a call. Whoever begins to count
//! (it is born, has a new program, its call has waited) goes to the least loaded processor that
//! it may use, and stays where it was if that is as good: so those who wake each other in turns
//! stay together, and those who compute at the same time do not. A processor that has nobody left
//! gets somebody of one that has several.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::averages::Averages;
use super::boost;
use crate::machine::Machine;
use crate::thread::{Doing, Thread};
use crate::time::CpuTime;
use crate::unix::Unix;

/// Most processors: as many as one word of a mask names.
pub const MOST: u32 = 64;
/// Least time between two looks for somebody who could move to an empty processor.
const PAUSE_NS: u64 = 1_000_000;

/// What is known of one.
#[derive(Default)]
struct Processor {
    /// Threads that do not wait.
    load: Cell<u32>,
    /// What threads have used here before they went elsewhere or ended; what the server has worked for them is
    /// the first one's.
    used: Cell<CpuTime>,
}

/// All that there are.
pub struct Processors {
    all: Vec<Processor>,
    /// When somebody was last looked for.
    looked_ns: Cell<u64>,
    /// The time of the last look.
    now_ns: Cell<u64>,
    /// How many threads did not wait lately.
    averages: Averages,
}

/// Where a thread is.
#[derive(Default)]
pub struct Whereabouts {
    /// Its processor.
    pub processor: Cell<u32>,
    /// What it had used in all when it came there.
    came: Cell<CpuTime>,
    /// It counts there.
    counts: Cell<bool>,
    /// When it last began to wait, or was born, as was known then.
    since_ns: Cell<u64>,
}

impl Whereabouts {
    /// Whether the thread counts, that is, does not wait.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.counts.get()
    }
}

impl Processors {
    /// Those of the machine.
    #[must_use]
    pub fn new(machine: &dyn Machine) -> Self {
        let mut all = Vec::new();
        all.resize_with(machine.processors().clamp(1, MOST) as usize, Processor::default);
        let now_ns = machine.now_ns();
        Self {
            all,
            looked_ns: Cell::new(0),
            now_ns: Cell::new(now_ns),
            averages: Averages::new(now_ns),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Which there are, a bit for each.
    #[must_use]
    pub fn mask(&self) -> u64 {
        !0 >> (MOST - self.count())
    }

    /// Threads on `number` that do not wait.
    #[must_use]
    pub fn load(&self, number: u32) -> u32 {
        self.all.get(number as usize).map_or(0, |one| one.load.get())
    }

    /// Threads that do not wait, on all.
    #[must_use]
    pub fn total_load(&self) -> u32 {
        self.all.iter().map(|one| one.load.get()).sum()
    }

    /// Before an event is worked on, each millisecond or later: takes the samples of the load that are due.
    #[inline]
    pub fn look(&self, now_ns: u64) {
        self.now_ns.set(now_ns);
        if self.averages.are_due(now_ns) {
            self.averages.sample(now_ns, self.total_load());
        }
    }

    /// The load averages of 1, 5 and 15 minutes, in units of 1/[`super::averages::ONE`].
    #[must_use]
    pub fn averages(&self, now_ns: u64) -> [u64; 3] {
        self.look(now_ns);
        self.averages.get()
    }

    /// Whether there is a choice.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// What the load of `number` is then.
    fn change_load(&self, number: u32, by: i32) -> u32 {
        let Some(one) = self.all.get(number as usize) else { return 0 };
        one.load.set(one.load.get().saturating_add_signed(by));
        one.load.get()
    }

    /// The least loaded of those in `allowed`, `at` if none is better: for a thread that counts
    /// nowhere.
    fn best(&self, allowed: u64, at: u32) -> u32 {
        let numbers = (0..self.count()).filter(|number| allowed >> number & 1 != 0);
        numbers.min_by_key(|number| (self.load(*number), *number != at, *number)).unwrap_or(at)
    }
}

/// `thread` goes on: it counts from now on, perhaps elsewhere.
pub fn goes_on(unix: &Unix, thread: &Rc<Thread>) {
    let at = &thread.whereabouts;
    if !at.counts.replace(true) {
        let processors = &unix.processors;
        if processors.are_several() {
            let best = processors.best(thread.affinity.get(), at.processor.get());
            move_to(unix, thread, best);
        }
        if processors.change_load(at.processor.get(), 1) > boost::FEW {
            let waited_ns = unix.machine.now_ns().saturating_sub(at.since_ns.get());
            unix.boost.goes_on(unix, thread, waited_ns);
        }
    }
}

/// `thread` is born.
pub fn is_born(unix: &Unix, thread: &Thread) {
    thread.whereabouts.since_ns.set(unix.processors.now_ns.get());
}

/// `thread` waits.
pub fn waits(unix: &Unix, thread: &Rc<Thread>) {
    let at = &thread.whereabouts;
    if at.counts.replace(false) {
        let processors = &unix.processors;
        at.since_ns.set(processors.now_ns.get());
        processors.change_load(at.processor.get(), -1);
        if processors.are_several() && processors.load(at.processor.get()) == 0 {
            fill(unix, at.processor.get());
        }
    }
}

/// The machine's thread of `thread` is over, or about to be; what it has used is its processor's.
pub fn ends(unix: &Unix, thread: &Rc<Thread>) {
    settle(unix, thread);
    waits(unix, thread);
}

/// The thread has got another one of the machine's, which begins on the first processor.
pub fn begins_anew(thread: &Thread) {
    thread.whereabouts.processor.set(0);
}

/// The thread may run on the processors in `allowed` only, at least one of which is there.
pub fn restrict(unix: &Unix, thread: &Rc<Thread>, allowed: u64) {
    thread.affinity.set(allowed);
    let at = &thread.whereabouts;
    if allowed >> at.processor.get() & 1 == 0 {
        let counts = at.counts.get();
        unix.processors.change_load(at.processor.get(), -i32::from(counts));
        let best = unix.processors.best(allowed, at.processor.get());
        move_to(unix, thread, best);
        unix.processors.change_load(at.processor.get(), i32::from(counts));
    }
}

/// Whether the thread may be running now, on another processor than the server's.
#[must_use]
pub fn may_run_elsewhere(thread: &Thread) -> bool {
    thread.whereabouts.processor.get() != 0 && thread.doing.get() == Doing::Running
}

/// What has been used on each processor, as far as the machine counts: threads' own time where they have run, and
/// what the server has worked for them on the first, where it runs.
#[must_use]
pub fn used(unix: &Unix) -> Vec<CpuTime> {
    let mut all: Vec<_> = unix.processors.all.iter().map(|one| one.used.get()).collect();
    for thread in unix.processes.by_tid.borrow().values() {
        let at = &thread.whereabouts;
        let here = crate::time::of_thread(unix, thread).since(at.came.get());
        for (number, time) in split(here, at.processor.get()) {
            if let Some(one) = all.get_mut(number as usize) {
                *one = *one + time;
            }
        }
    }
    all
}

/// Whose a thread's time is that has been at `number` meanwhile.
fn split(time: CpuTime, number: u32) -> [(u32, CpuTime); 2] {
    let server = CpuTime { user_ns: 0, ..time };
    [(number, CpuTime { system_ns: 0, ..time }), (0, server)]
}

/// What `thread` has used since it came to its processor is that one's.
fn settle(unix: &Unix, thread: &Rc<Thread>) {
    let at = &thread.whereabouts;
    let now = crate::time::of_thread(unix, thread);
    let here = now.since(at.came.replace(now));
    for (number, time) in split(here, at.processor.get()) {
        if let Some(one) = unix.processors.all.get(number as usize) {
            one.used.set(one.used.get() + time);
        }
    }
}

/// A thread that counts nowhere goes to `number`, unless the machine does not want that.
fn move_to(unix: &Unix, thread: &Rc<Thread>, number: u32) {
    let at = &thread.whereabouts;
    if number != at.processor.get() {
        settle(unix, thread);
        if unix.machine.set_processor(thread.machine.get(), number) {
            at.processor.set(number);
        }
    }
}

/// Processor `number` has nobody: it gets one of those that share another one, if that has not been
/// looked for lately.
#[cold]
fn fill(unix: &Unix, number: u32) {
    let processors = &unix.processors;
    if processors.all.iter().all(|one| one.load.get() < 2) {
        return;
    }
    let now_ns = unix.machine.now_ns();
    if now_ns < processors.looked_ns.get() + PAUSE_NS {
        return;
    }
    processors.looked_ns.set(now_ns);
    let threads = unix.processes.by_tid.borrow();
    let could = |thread: &&Rc<Thread>| {
        thread.whereabouts.counts.get()
            && thread.doing.get() == Doing::Running
            && thread.affinity.get() >> number & 1 != 0
            && processors.load(thread.whereabouts.processor.get()) > 1
    };
    let most = |thread: &&Rc<Thread>| processors.load(thread.whereabouts.processor.get());
    if let Some(thread) = threads.values().filter(could).max_by_key(most) {
        processors.change_load(thread.whereabouts.processor.get(), -1);
        move_to(unix, thread, number);
        processors.change_load(thread.whereabouts.processor.get(), 1);
    }
}
