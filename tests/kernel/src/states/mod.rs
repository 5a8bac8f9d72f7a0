//! Vector state and the processor under interrupts.

mod storm;
mod vector;

/// Runs the tests of this group.
pub fn run() {
    vector::run();
    storm::run();
}
