//! Suites side by side: each lane takes the next one that nobody has begun. A suite is one
//! machine or one run of cargo, of which most use one processor of the host.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Instant;

use anyhow::Result;

use super::tally::{Outcome, Tally};
use crate::compose::Composer;

/// Lanes at most: more were never tried, and machines whose time is the host's come too late
/// when many share it.
const MOST: usize = 2;

/// Where suites tell what they came to.
#[derive(Default)]
pub struct Report {
    tally: Mutex<Tally>,
}

impl Report {
    /// Runs a suite and prints what came of it.
    pub fn suite(&self, name: &str, run: impl FnOnce() -> Result<Outcome>) {
        let started = Instant::now();
        let outcome = run().unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.add(name, outcome, started.elapsed());
    }

    /// All suites together.
    #[must_use]
    pub fn into_tally(self) -> Tally {
        self.tally.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a job does.
type Work<'a> = dyn FnOnce(&mut Composer<'_>, &Report) + Send + 'a;

/// A suite, or several that have to follow each other.
pub struct Job<'a> {
    /// Whether it has the host for itself: its own processors run side by side.
    alone: bool,
    /// Seconds that it may take: who may take long begins early.
    limit: u64,
    work: Box<Work<'a>>,
}

impl<'a> Job<'a> {
    /// What may run beside others.
    pub fn new(work: impl FnOnce(&mut Composer<'_>, &Report) + Send + 'a) -> Self {
        Self { alone: false, limit: 0, work: Box::new(work) }
    }

    /// The same, which may take so many seconds.
    #[must_use]
    pub fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// The same, but while it runs nothing else does, if `alone`.
    #[must_use]
    pub fn alone(self, alone: bool) -> Self {
        Self { alone, ..self }
    }
}

/// Does all `jobs`, each with what `composer` has built: first those that may take longest, those
/// that want to be alone at the end, so that no lane waits long for another. If consoles are shown
/// there is one lane, or two machines would speak at once.
pub fn run(mut jobs: Vec<Job<'_>>, show: bool, composer: &Composer<'_>, report: &Report) {
    jobs.sort_by_key(|job| (job.alone, Reverse(job.limit)));
    let jobs = VecDeque::from(jobs);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (jobs, host) = (Mutex::new(jobs), RwLock::new(()));
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..processors.min(if show { 1 } else { MOST }) {
            scope.spawn(|| {
                let mut composer = composer.clone();
                while let Some(Job { alone, work, .. }) = next() {
                    if alone {
                        let _whole = host.write().unwrap_or_else(PoisonError::into_inner);
                        work(&mut composer, report);
                    } else {
                        let _part = host.read().unwrap_or_else(PoisonError::into_inner);
                        work(&mut composer, report);
                    }
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;
    use crate::workspace::Workspace;

    /// What twenty jobs come to of which the eighth fails, and each third one wants to be alone; and
    /// the most that ran at once.
    fn played(show: bool) -> (Tally, usize) {
        let workspace = Workspace { root: std::env::temp_dir() };
        let (running, most, report) = (AtomicUsize::new(0), AtomicUsize::new(0), Report::default());
        let job = |index: usize| {
            let (running, most) = (&running, &most);
            let alone = index % 3 == 0;
            let work = move |_: &mut Composer<'_>, report: &Report| {
                report.suite(&format!("{index}"), || {
                    let before = running.fetch_add(1, SeqCst);
                    most.fetch_max(before + 1, SeqCst);
                    thread::sleep(Duration::from_millis(5));
                    let after = running.fetch_sub(1, SeqCst);
                    anyhow::ensure!(!alone || (before, after) == (0, 1), "somebody else runs");
                    anyhow::ensure!(index != 7, "seven");
                    Ok(Outcome { passed: 1, ..Outcome::default() })
                });
            };
            Job::new(work).alone(alone)
        };
        run((0..20).map(job).collect(), show, &Composer::new(&workspace), &report);
        (report.into_tally(), most.into_inner())
    }

    #[test]
    fn every_job_is_done_once_and_who_is_alone_is_alone() {
        let (tally, _) = played(false);
        assert_eq!((tally.passed(), tally.failures()), (19, &["7: seven".to_owned()][..]));
    }

    #[test]
    fn consoles_are_shown_one_after_the_other() {
        let (tally, most) = played(true);
        assert_eq!((tally.passed(), most), (19, 1));
    }
}
