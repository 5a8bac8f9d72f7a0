//! Where the kernel, which runs with interrupts off, lets them in. Two questions are asked there,
//! and each caller asks the one that it can act on.
//!
//! *Let interrupts in* ([`let_in`], and [`Pace`] for loops whose length users decide): what comes is
//! only noted; the operation goes on, and whoever runs next is chosen when it is over. So a handler
//! waits for as long as the operation takes.
//!
//! *Must I stop here?* ([`must_stop`], and [`Stint`] for work in small pieces): an operation that
//! can be gone on with later lets interrupts in, and if one came it leaves its state in the
//! tcb. A handler waits for one step.

use crate::arch;

/// Instructions, roughly, between two windows of an operation in small pieces.
pub const STINT: u32 = 350;

/// Lets interrupts in; what comes is noted.
#[inline]
pub fn let_in() {
    let _ = arch::interrupt_pending();
}

/// Lets interrupts in; whether one has come, now or before.
#[inline(always)]
#[must_use]
pub fn must_stop() -> bool {
    arch::interrupt_pending()
}

/// Whether an interrupt has come before, where there is no work left that a window would be for.
#[inline(always)]
#[must_use]
pub fn is_due() -> bool {
    arch::interrupt_noted()
}

/// A loop whose length users decide lets interrupts in now and then.
#[derive(Default)]
pub struct Pace(u32);

impl Pace {
    /// One more round of the loop, of some fifty instructions at most.
    #[inline]
    pub fn round(&mut self) {
        self.rounds(1);
    }

    /// One more round, as long as `count` usual ones.
    #[inline]
    pub fn rounds(&mut self, count: u32) {
        self.0 += count;
        if self.0 >= 16 {
            self.0 = 0;
            let_in();
        }
    }
}

/// Work in pieces that are too small for a window each.
#[derive(Default)]
pub struct Stint(u32);

impl Stint {
    /// After so many instructions more, roughly: whether to stop.
    #[inline(always)]
    #[must_use]
    pub fn must_stop_after(&mut self, instructions: u32) -> bool {
        self.0 += instructions;
        if self.0 < STINT {
            return false;
        }
        self.0 = 0;
        must_stop()
    }
}
