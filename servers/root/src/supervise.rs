//! Starting again what ended by a fault: soon at first, later and later while it keeps
//! failing, never not at all.

use proto::root::State;
use runtime::clock;

use crate::{Root, say};

/// The wait before the first new start, µs; each further one doubles it.
const FIRST_US: u64 = 10_000;
/// The longest wait, µs.
const LONGEST_US: u64 = 10_000_000;
/// Who lived for so long, µs, is healthy: its next failure is a first one.
const HEALTHY_US: u64 = 10_000_000;

/// When a task is to be started again.
#[derive(Clone, Copy, Default)]
pub struct Again {
    /// The last wait, µs; 0 before the first.
    wait_us: u64,
    /// When the wait is over, µs of the clock.
    due_us: Option<u64>,
}

impl Again {
    /// A life that began at `started_us` has ended at `now_us` by a fault: how long to wait.
    fn fail(&mut self, started_us: u64, now_us: u64) -> u64 {
        let healthy = now_us.saturating_sub(started_us) >= HEALTHY_US;
        self.wait_us = match self.wait_us {
            0 => FIRST_US,
            _ if healthy => FIRST_US,
            last => (last * 2).min(LONGEST_US),
        };
        self.due_us = Some(now_us + self.wait_us);
        self.wait_us
    }

    /// Microseconds until the next start, if there is to be one.
    pub fn left_us(&self, now_us: u64) -> Option<u64> {
        self.due_us.map(|due| due.saturating_sub(now_us))
    }

    /// It was started, or is not to be.
    pub fn settle(&mut self) {
        self.due_us = None;
    }
}

impl Root {
    /// Ends the task in `slot` after a fault; it is started again later if it is so described.
    pub fn crash(&mut self, slot: usize) {
        self.end(slot, State::Crashed, runtime::root::PANICKED);
        let Some(task) = self.task_mut(slot).filter(|task| task.spec.restart) else { return };
        let wait_us = task.again.fail(task.started_us, clock::now_us());
        task.state = State::Waiting;
        if wait_us > FIRST_US {
            let name = task.spec.name;
            say!("root: {name} failed again; it is started again in {} ms.", wait_us / 1000);
        }
    }

    /// Microseconds until a task is to be started again; `None` if none is.
    pub fn next_start_us(&self) -> Option<u64> {
        let now_us = clock::now_us();
        self.tasks.iter().flatten().filter_map(|task| task.again.left_us(now_us)).min()
    }

    /// Starts again those whose wait is over.
    pub fn start_those_due(&mut self) {
        for slot in 0..self.tasks.len() {
            let now_us = clock::now_us();
            let task = self.task_mut(slot);
            let Some(task) = task.filter(|task| task.again.left_us(now_us) == Some(0)) else {
                continue;
            };
            let name = task.spec.name;
            task.again.settle();
            task.state = State::Crashed;
            say!("root: {name} is started again.");
            let _ = self.start_again(slot);
        }
    }
}
