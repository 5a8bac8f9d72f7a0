//! Bad input: whatever a thread does is an error or a message about that thread,
//! and a bystander (`canary`) notices nothing.

mod calls;
mod canary;
mod code;
mod jumps;
mod tables;

/// Runs the tests of this group.
pub fn run() {
    code::run();
    jumps::run();
    tables::run();
    calls::run();
}
