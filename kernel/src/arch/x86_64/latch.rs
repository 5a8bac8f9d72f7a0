//! A line that signals once, by an edge, from the delivery of its message to the
//! acknowledgement.
//!
//! An I/O APIC forgets an edge that comes while the line is masked (82093AA datasheet, 3.2.4),
//! so such a line stays open, and what comes meanwhile is kept here: at most one more
//! interrupt, since behind the second the line is masked after all. So a device that
//! chatters costs two interrupts for each acknowledgement.

use core::cell::Cell;

/// What is to be done about an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// Deliver it.
    First,
    /// Keep it, and mask the line.
    Again,
}

/// The state of one line.
pub struct Latch {
    is_held: Cell<bool>,
    again: Cell<bool>,
}

impl Latch {
    /// Nothing has come.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is part of a static")]
    pub const fn new() -> Self {
        Self { is_held: Cell::new(false), again: Cell::new(false) }
    }

    /// An interrupt came.
    #[inline]
    #[must_use]
    pub fn come(&self) -> Came {
        if self.is_held.replace(true) {
            self.again.set(true);
            return Came::Again;
        }
        Came::First
    }

    /// The handler has acknowledged. Whether another has come since: it is due now, and the
    /// line is to be unmasked.
    #[inline]
    #[must_use]
    pub fn release(&self) -> bool {
        self.is_held.set(false);
        self.again.replace(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_that_comes_too_early_is_kept() {
        let latch = Latch::new();
        assert_eq!(latch.come(), Came::First);
        assert_eq!(latch.come(), Came::Again);
        assert_eq!(latch.come(), Came::Again, "it was on its way when the line was masked");
        assert!(latch.release(), "one of them is due");
        assert_eq!(latch.come(), Came::First);
        assert!(!latch.release() && !latch.release());
        assert_eq!(latch.come(), Came::First);
    }

    /// Any order of edges and acknowledgements: after an edge there is always a delivery, and
    /// a message is never sent over another that has not been acknowledged.
    #[test]
    fn no_edge_is_lost_and_none_is_doubled() {
        for script in 0..1_u32 << 12 {
            let latch = Latch::new();
            let (mut unacknowledged, mut waiting) = (false, false);
            for step in 0..12 {
                let due = if script >> step & 1 != 0 {
                    waiting = true;
                    true
                } else {
                    unacknowledged = false;
                    latch.release()
                };
                if due && latch.come() == Came::First {
                    assert!(!unacknowledged);
                    (unacknowledged, waiting) = (true, false);
                }
                assert!(!waiting || unacknowledged, "an edge waits and nobody will ask for it");
            }
        }
    }
}
