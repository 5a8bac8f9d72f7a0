//! Who has the right to a canary's processor besides it.

use abi::ThreadId;
use abi::inspect::{What, state};
use runtime::kernel;

use super::canaries::{self, MOST};
use super::hostile;
use super::resources;
use super::scenarios::Scenario;

/// Hostile threads of the scenario's priority that are ready, by processors. What they ask of the kernel
/// is done on the first one, where each that calls has its turns, wherever it lives.
pub fn ready(scenario: &Scenario, first: ThreadId) -> [u64; MOST] {
    let mut counts = [0; MOST];
    for_each(scenario, first, |id, home, is_ready| {
        let elsewhere = counts.get_mut(home).filter(|_| is_ready && home != 0);
        let is_here = home == 0 || scenario.calls && !resources::only_computes(id.number());
        elsewhere.into_iter().for_each(|count| *count += 1);
        counts[0] += u64::from(is_ready && is_here);
    });
    counts
}

/// Calls `each` with every hostile thread of the scenario's priority, its processor, and whether it is ready.
fn for_each(scenario: &Scenario, first: ThreadId, mut each: impl FnMut(ThreadId, usize, bool)) {
    let mut number = u64::from(hostile::FIRST);
    while let Some(words) = kernel::inspect(What::Thread, number, 0) {
        let id = ThreadId(words[0]);
        number = u64::from(id.number()) + 1;
        if words[3] == u64::from(scenario.priority) {
            let home = if id == first { hostile::seat() } else { hostile::home(id.number()) };
            each(id, home as usize, words[1] == state::READY);
        }
    }
}

/// What the kernel has charged those who have the same right to a processor, µs: the canary, and all hostile.
pub struct Taken([[u64; 2]; MOST]);

impl Taken {
    /// Until now.
    pub fn until_now(scenario: &Scenario, first: ThreadId) -> Self {
        let mut taken = [[0; 2]; MOST];
        for_each(scenario, first, |id, home, _| {
            taken.get_mut(home).into_iter().for_each(|it| it[1] += canaries::used_us(id));
        });
        for (processor, it) in taken.iter_mut().enumerate().take(canaries::count()) {
            it[0] = canaries::used_us(canaries::equal(processor));
        }
        Self(taken)
    }

    /// The canary's part of what all have had since `before`, by processors. How long the emulator was kept from its
    /// processors is in both.
    pub fn shares_since(&self, before: &Self) -> [f64; MOST] {
        let mut pairs = self.0.iter().zip(&before.0);
        core::array::from_fn(|_| {
            let (now, then) = pairs.next().unwrap_or((&[0; 2], &[0; 2]));
            let [canary, hostile] = [0, 1].map(|who| now[who].saturating_sub(then[who]) as f64);
            canary / (canary + hostile).max(1.0)
        })
    }
}
