//! A word of loom's, and the explorer around it.

use std::sync::atomic::Ordering;

use kernel::between::Word;
use loom::sync::atomic::AtomicU64;

/// The model's word.
pub struct Modelled(pub AtomicU64);

impl Word for Modelled {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(old, new, order, Ordering::Relaxed)
    }
}

/// Every order of steps with at most `switches` from a processor that could go on.
pub fn explore(switches: usize, what: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(what);
}
