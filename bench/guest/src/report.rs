//! What the host tool reads: which samples belong to which row.
//!
//! `row NAME first=N count=N stride=N [KEY=VALUE ...]`: the samples N, N + stride, ...
//! are the same operation. Ends with `bench done` and the debug-exit port.

use abi::ThreadId;
use runtime::port::Ports;
use runtime::{direct, direct_println, schedule, sigma0};

use crate::marks;

const EXIT_PORT: u16 = 0xF4;
const SUCCESS: u32 = 0x10;
const FAILURE: u32 = 0x11;

/// The samples of a row being measured.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    first: u64,
}

impl Samples {
    /// The next sample is the row's first.
    #[must_use]
    pub fn start() -> Self {
        Self { first: marks::samples() }
    }

    /// Prints the row: every `stride`-th sample from the `offset`-th on.
    pub fn row(self, name: core::fmt::Arguments<'_>, offset: u64, stride: u64) {
        let count = (marks::samples() - self.first).saturating_sub(offset).div_ceil(stride);
        direct_println!("row {name} first={} count={count} stride={stride}", self.first + offset);
    }
}

/// Prints a row: `row!(samples, "name key={}", value)`, every sample.
#[macro_export]
macro_rules! row {
    ($samples:expr, $($arg:tt)*) => { $samples.row(format_args!($($arg)*), 0, 1) };
}

/// Takes the console's ports, and the priority that all partners have.
pub fn begin() {
    let _ = schedule::set_priority(ThreadId::ROOT, crate::partner::PRIORITY);
    let _ = sigma0::ports(direct::BASE, direct::PORT_BITS);
    let _ = sigma0::ports(EXIT_PORT, 2);
}

/// All rows are printed.
pub fn end() -> ! {
    direct_println!("bench done");
    stop(SUCCESS)
}

/// The measurement cannot go on.
pub fn fail(why: &str) -> ! {
    direct_println!("bench FAILED: {why}");
    stop(FAILURE)
}

fn stop(code: u32) -> ! {
    Ports::new(EXIT_PORT, 4).write32(0, code);
    runtime::thread::park()
}
