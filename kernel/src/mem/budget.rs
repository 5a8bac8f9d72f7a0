//! How far a job goes before interrupts are let in.

use super::STEP_BUDGET;
use crate::arch::preemption::must_stop;

/// What is left of a step, in units of some sixteen instructions.
pub(crate) struct Budget {
    left: i32,
    whole: i32,
    /// A step that is used up lets interrupts in; if none came, the next one begins.
    refills: bool,
}

impl Budget {
    /// One step of so many units.
    pub(crate) fn step(units: u32) -> Self {
        let whole = units.min(i32::MAX as u32) as i32;
        Self { left: whole, whole, refills: false }
    }

    /// Steps of the usual length until an interrupt comes. To stop between two steps and to
    /// find the way back costs more than most steps, and hardly one of them meets an interrupt.
    pub(crate) fn until_interrupted() -> Self {
        Self { refills: true, ..Self::step(STEP_BUDGET) }
    }

    /// Takes the price of an action.
    #[inline(always)]
    pub(crate) fn spend(&mut self, units: u32) {
        self.left -= units as i32;
    }

    /// Ends the step here.
    pub(crate) fn end_step(&mut self) {
        self.left = self.left.min(0);
    }

    /// Whether the job has to stop. An interrupt that is let in here is only noted, so
    /// nothing changes under a job that goes on.
    #[inline(always)]
    pub(crate) fn is_used_up(&mut self) -> bool {
        self.left <= 0 && !self.refill()
    }

    #[inline(never)]
    fn refill(&mut self) -> bool {
        let goes_on = self.refills && !must_stop();
        if goes_on {
            self.left = self.whole;
        }
        goes_on
    }

    /// What is left of this step, in units.
    pub(crate) fn left(&self) -> u32 {
        self.left.max(0) as u32
    }

    /// Whether nothing has been spent since the step began.
    pub(crate) fn is_whole(&self) -> bool {
        self.left == self.whole
    }
}
