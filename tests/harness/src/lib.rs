//! What the root tasks that test the kernel share (`tests/ipc`, `tests/kernel`, `tests/local-ipc`,
//! `tests/smp`): how they begin and end, a list of tests, and places for threads.
//!
//! No servers run beside such a program. It prints a line per test, then `tests done`, and leaves the
//! emulator with the verdict.
#![no_std]

pub mod edu;
pub mod file;
mod places;
mod skips;

use abi::inspect::What;
use abi::{Fpage, MapItem, Rights};
use runtime::port::Ports;
use runtime::{Msg, direct, direct_println, kernel, layout, sigma0, thread};

pub use places::{FIRST_NUMBER, Places, local, location, own_place};
pub use skips::{is_skipped, text};

/// What a test comes to: nothing, or why it failed.
pub type Verdict = Result<(), &'static str>;
/// A test and its name.
pub type Test = (&'static str, fn() -> Verdict);

/// The emulator's exit device: its port (two of them are its own), and the values that `tests/systems.toml` knows.
const EXIT_PORT: u16 = 0xF4;
const PASSED: u8 = 0x10;
const FAILED: u8 = 0x11;

/// Gets the ports that a test program needs, and every page of its image: none of its threads meets a
/// page fault there.
pub fn begin() {
    let _ = sigma0::ports(direct::BASE, direct::PORT_BITS);
    let _ = sigma0::ports(EXIT_PORT, 2);
    layout::touch_image();
    skips::read();
}

/// Runs all tests, the kernel's own checker after each, and leaves the emulator.
pub fn run(tests: &[Test]) -> ! {
    let mut failures = 0;
    for (name, test) in tests {
        if is_skipped(name) {
            direct_println!("test {name} ... skipped");
            continue;
        }
        let verdict = test();
        failures += usize::from(verdict.is_err());
        match verdict {
            Ok(()) => direct_println!("test {name} ... ok"),
            Err(why) => direct_println!("test {name} ... FAILED: {why}"),
        }
        let found = violations();
        if found != 0 {
            failures += 1;
            direct_println!("test {name}::kernel_checker ... FAILED: {found} broken invariants");
        }
    }
    end(failures == 0)
}

/// Says that all tests have run, and leaves the emulator: with success if they `passed`.
pub fn end(passed: bool) -> ! {
    direct_println!("tests done");
    Ports::new(EXIT_PORT, 2).write8(0, if passed { PASSED } else { FAILED });
    thread::park()
}

/// All of this program, at the same addresses: for a thread of another space, whose fault it answers.
#[must_use]
pub fn image() -> Msg {
    let (low, high) = layout::image();
    let bits = (high - low).next_power_of_two().trailing_zeros();
    Msg::default().map(MapItem::map(Fpage::memory(low, bits, Rights::RWX), low))
}

/// Nothing if `is`, or `why` it should have been.
///
/// # Errors
/// `why`.
pub fn verdict(is: bool, why: &'static str) -> Verdict {
    if is { Ok(()) } else { Err(why) }
}

/// Violations of the kernel's invariants; all ones if it cannot be asked.
#[must_use]
pub fn violations() -> u64 {
    kernel::inspect(What::Check, 0, 0).map_or(u64::MAX, |record| record[0])
}
