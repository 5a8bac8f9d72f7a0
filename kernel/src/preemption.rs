//! Where the kernel, which runs with interrupts off, lets them in. There are two questions.
//!
//! *Let interrupts in*: a loop whose length users decide has a [`Pace`]. What comes is only noted;
//! the loop goes on, and whoever runs next is chosen after it has been handled.

use crate::arch;

/// Lets interrupts in now and then in a loop whose length users decide. They are
/// only noted; whoever runs next is chosen after they have been handled.
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
            let _ = arch::interrupt_pending();
        }
    }
}
