//! Words of loom's, and the explorer around them.

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
    fn store(&self, new: u64, order: Ordering) {
        put(&self.0, new, order);
    }
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(old, new, order, Ordering::Relaxed)
    }
}

/// Puts `new` into `word`. Loom does not know that nothing comes between what an exchange finds and what it puts there: of a
/// plain store, which may follow what the exchange has found, and what the exchange has put there, it would let either be the
/// later one. One that is an exchange itself is the later one of all that are there.
fn put(word: &AtomicU64, new: u64, order: Ordering) {
    let _ = word.swap(new, order);
}

/// A way to use a word, whose order the careless [`Without`] drops.
pub const LOADS: u8 = 0;
/// See [`LOADS`].
pub const STORES: u8 = 1;
/// See [`LOADS`].
pub const EXCHANGES: u8 = 2;

/// The same without the order of one way to use it.
pub struct Without<const WAY: u8>(AtomicU64);

impl<const WAY: u8> Without<WAY> {
    fn order(way: u8, order: Ordering) -> Ordering {
        if way == WAY { Ordering::Relaxed } else { order }
    }
}

impl<const WAY: u8> Word for Without<WAY> {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(Self::order(LOADS, order))
    }
    fn store(&self, new: u64, order: Ordering) {
        put(&self.0, new, Self::order(STORES, order));
    }
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        let order = Self::order(EXCHANGES, order);
        self.0.compare_exchange(old, new, order, Ordering::Relaxed)
    }
}

/// Every order of steps with at most `switches` from a processor that could go on.
pub fn explore(switches: usize, what: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(what);
}

/// Whether the same finds something that is wrong.
#[must_use]
pub fn bites(switches: usize, what: impl Fn() + Sync + Send + 'static) -> bool {
    // A model that has failed leaves its thread as it is.
    std::thread::spawn(move || explore(switches, what)).join().is_err()
}
