//! The messages that the kernel makes: start, faults, exceptions, interrupts; and σ0's.

mod exceptions;
mod faults;
pub mod interrupts;
mod messages;
pub mod sigma0;

/// Runs the tests of this group.
pub fn run() {
    faults::run();
    exceptions::run();
    interrupts::run();
    messages::run();
}
