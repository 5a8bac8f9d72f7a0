//! The invariant checker: walks every tcb, queue, wakeup list, mapping tree, page
//! table, quota and port, and counts what is wrong, one sentence in the log each.
//!
//! It runs on demand (Inspect, tests, the fuzzer) and changes nothing. It may be
//! slow; `bench` tells its time from the kernel's by the names of its functions.

mod accounts;
mod limits;
mod links;
mod queues;
mod threads;

use crate::space::spaces;
use core::fmt::Arguments;

use crate::mem::check::Removals;
use crate::thread::tcb::Resume;
use crate::{kprintln, mem, thread};

/// Most sentences of one check; the rest is only counted.
const MOST_SENTENCES: u64 = 24;

/// What was found so far.
#[derive(Default)]
pub(crate) struct Findings {
    count: u64,
}

impl Findings {
    /// Says more about what was just noted, if `wrong`.
    fn tell(&self, wrong: bool, sentence: Arguments<'_>) {
        if wrong && self.count <= MOST_SENTENCES {
            kprintln!("check: {sentence}");
        }
    }

    /// Notes `sentence` if `wrong`.
    fn note(&mut self, wrong: bool, sentence: Arguments<'_>) {
        if !wrong {
            return;
        }
        self.count += 1;
        if self.count <= MOST_SENTENCES {
            kprintln!("check: {sentence}");
        }
    }
}

/// Checks everything; returns the number of violations.
#[must_use]
#[inline(never)] // `bench` tells the checker's time from the kernel's by this symbol
pub fn violations() -> u64 {
    let mut found = Findings { count: thread_violations() };
    // Broken rings would lead astray whatever follows them.
    if found.count == 0 {
        let removals = removals();
        spaces().for_each(|space| {
            mem::check::check(space, removals, &mut |violation| {
                found.note(true, format_args!("{violation}"));
            });
        });
        accounts::check(&mut found);
        limits::check(&mut found);
    }
    crate::arch::check::check(&mut |violation| found.note(true, violation));
    found.count
}

/// Checks only threads and their queues, in time proportional to their number.
#[must_use]
#[inline(never)] // as above
pub fn thread_violations() -> u64 {
    let mut found = Findings::default();
    if links::registry(&mut found) {
        queues::check(&mut found);
        thread::for_each(|thread| threads::check(thread, &mut found));
        threads::check_processor(&mut found);
    }
    found.count
}

/// Checks what another processor than the first one has for itself: nobody but its idle thread.
#[must_use]
#[inline(never)] // as above
pub fn idle_violations() -> u64 {
    let mut found = Findings::default();
    queues::check_idle(&mut found);
    found.count
}

/// Whether any removal, destruction or map operation is half done.
fn removals() -> Removals {
    let mut any = false;
    thread::for_each(|thread| {
        any |= matches!(thread.resume.get(), Resume::Unmap | Resume::Destroy)
            || threads::has_job(thread);
    });
    spaces().for_each(|space| any |= space.task.abandoned.get());
    if any { Removals::UnderWay } else { Removals::Done }
}
