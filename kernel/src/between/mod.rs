//! Between processors: what one wants of another stands in a word, never behind a lock on the way of an
//! IPC. Each has a [`berth::Berth`], in which it has the thread whose user code it runs, and [`errand::Errands`],
//! for which it is asked.

use core::sync::atomic::{AtomicU64, Ordering};

pub mod berth;
pub mod errand;
pub mod set;

/// A word in memory that several processors use; the host's models bring one of their own.
pub trait Word {
    /// A word that holds `value`.
    fn new(value: u64) -> Self;
    /// What it holds.
    fn load(&self, order: Ordering) -> u64;
    /// Puts `new` there.
    fn store(&self, new: u64, order: Ordering);
    /// Puts `new` there if it holds `old`, else says what it holds.
    ///
    /// # Errors
    /// What it holds.
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64>;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    fn store(&self, new: u64, order: Ordering) {
        self.store(new, order);
    }
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.compare_exchange(old, new, order, Ordering::Relaxed)
    }
}

/// Threads that can be on another processor at the same time, those apart who hand over in user mode.
pub const SEATS: usize = 4;
