//! Vector state and the processor under interrupts.

mod foreign;
mod storm;
mod urgent;
mod vector;

/// Runs the tests of this group.
pub fn run() {
    vector::run();
    foreign::run();
    storm::run();
    urgent::run();
}
