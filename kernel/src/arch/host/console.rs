//! Console, counter and exit on the host.

use std::cell::RefCell;
use std::io::Write;
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Instant;

use crate::arch::clock::ClockPage;

/// Writes to the kernel's log: here, standard error.
pub fn console_write(bytes: &[u8]) {
    // A test that lost its standard error has nobody to tell.
    let _ = std::io::stderr().write_all(bytes);
    LOG.with(|log| log.borrow_mut().extend(bytes));
}

thread_local! {
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What this thread's machine has logged since the last call.
#[must_use]
pub fn take_log() -> String {
    LOG.with(|log| String::from_utf8_lossy(&log.take()).into_owned())
}

/// Nanoseconds since the first call: a counter of 1 GHz.
#[must_use]
pub fn ticks() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The page of the clock: each thread's machine has one, or tests side by side would move each other's time.
pub struct OwnPage;

/// See [`OwnPage`].
pub static PAGE: OwnPage = OwnPage;

impl Deref for OwnPage {
    type Target = ClockPage;

    fn deref(&self) -> &ClockPage {
        thread_local! {
            static OWN: &'static ClockPage = Box::leak(Box::default());
        }
        OWN.with(|page| *page)
    }
}

/// The kernel stopped on an error.
pub const EXIT_FAILURE: u8 = 1;

/// Ends the process.
pub fn exit(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

/// Nothing interrupts here; tests say when the timer would have.
#[must_use]
pub fn interrupt_at(_at_us: u64) -> bool {
    true
}

/// See [`interrupt_at`].
pub fn tick_again() {}
