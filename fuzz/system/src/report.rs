//! What the judge says: by way of the root task, since no server is to be relied on.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use proto::root as op;
use runtime::{root, thread};

/// Words for `canary::Harm`.
pub const HARMS: [&str; 9] = [
    "a register changed",
    "its memory changed",
    "its name changed",
    "the clock went backwards",
    "a message came altered",
    "a message came in its partner's name that the partner did not send",
    "a string came altered",
    "a string was written outside of its buffer",
    "its name leads to somebody else, or nowhere",
];

static VIOLATIONS: AtomicU64 = AtomicU64::new(0);

/// Says something.
pub fn say(text: fmt::Arguments<'_>) {
    runtime::console::report(text);
}

/// Notes a violation.
pub fn violation(what: fmt::Arguments<'_>) {
    VIOLATIONS.fetch_add(1, Ordering::Relaxed);
    say(format_args!("violation: {what}\n"));
}

/// Whether there was any.
pub fn any() -> bool {
    VIOLATIONS.load(Ordering::Relaxed) != 0
}

/// Prints the verdict and stops the machine.
pub fn end(calls: u64) -> ! {
    let violations = VIOLATIONS.load(Ordering::Relaxed);
    say(format_args!("{calls} calls, {violations} violations\n"));
    let code = if violations == 0 { op::SUCCESS } else { op::FAILURE };
    let _ = root::halt(code);
    thread::park()
}
