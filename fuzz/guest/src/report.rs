//! What the fuzzer says: progress, violations, the last calls, the verdict.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use runtime::port::Ports;
use runtime::{direct_println, thread};

/// Port of the emulator's exit device.
pub const EXIT_PORT: u16 = 0xF4;
const SUCCESS: u32 = 0x10;
const FAILURE: u32 = 0x11;

static VIOLATIONS: AtomicU64 = AtomicU64::new(0);

/// Notes a violation.
pub fn violation(what: fmt::Arguments<'_>) {
    VIOLATIONS.fetch_add(1, Ordering::Relaxed);
    direct_println!("violation: {what}");
}

/// Whether there was any.
#[must_use]
pub fn any() -> bool {
    VIOLATIONS.load(Ordering::Relaxed) != 0
}

/// Prints the verdict and stops the machine.
pub fn end(calls: u64, troubles: &[&str]) -> ! {
    for trouble in troubles {
        violation(format_args!("{trouble}"));
    }
    let violations = VIOLATIONS.load(Ordering::Relaxed);
    direct_println!("{calls} calls, {violations} violations");
    leave(violations == 0)
}

/// Stops the machine.
pub fn leave(good: bool) -> ! {
    let verdict = if good { SUCCESS } else { FAILURE };
    Ports::new(EXIT_PORT, 4).write32(0, verdict);
    thread::park()
}
