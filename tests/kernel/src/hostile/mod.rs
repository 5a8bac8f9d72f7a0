//! Bad input.

/// Runs the tests of this group.
pub fn run() {}
