//! Sets of other processors.

use core::cell::Cell;

/// Other processors, by their numbers: those of which something is true.
pub struct Processors(Cell<u64>);

impl Processors {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    pub fn add(&self, number: u32) {
        self.0.set(self.0.get() | 1 << (number & 63));
    }

    pub fn remove(&self, number: u32) {
        self.0.set(self.0.get() & !(1 << (number & 63)));
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.0.set(0);
    }

    /// Those that are not among `others`.
    pub fn without(&self, others: &Self) -> Self {
        Self(Cell::new(self.0.get() & !others.0.get()))
    }

    /// Whether there is none.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether number `number` is among them.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        self.0.get() >> (number & 63) & 1 != 0
    }

    /// The one that is among them, if there is only one.
    pub fn only_number(&self) -> Option<u32> {
        self.0.get().is_power_of_two().then(|| self.0.get().trailing_zeros())
    }

    /// Those that are among them now.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        bits(self.0.get())
    }
}

impl Default for Processors {
    fn default() -> Self {
        Self::new()
    }
}

/// The numbers of the bits that are set in `left`, the lowest first.
pub fn bits(mut left: u64) -> impl Iterator<Item = u32> + use<> {
    core::iter::from_fn(move || {
        let number = left.trailing_zeros();
        left &= left.checked_sub(1)?;
        Some(number)
    })
}
