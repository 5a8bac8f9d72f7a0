//! Vector state and the processor under interrupts.

/// Runs the tests of this group.
pub fn run() {}
