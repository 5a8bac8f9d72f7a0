//! The kernel's own log: lines on the machine's first serial port.
//!
//! Used at boot, by reports of faults and by the panic handler; never on a path
//! that user level can make hot. Polled output, no lock: the kernel runs with
//! interrupts off on one processor.

use core::fmt::{self, Write};

use crate::arch;

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        arch::console_write(text.as_bytes());
        Ok(())
    }
}

/// Writes formatted text; see [`kprintln!`](crate::kprintln).
pub fn print(arguments: fmt::Arguments<'_>) {
    // The console never fails, so an error can only come from a `Display` of the
    // caller's; what was written up to there is all that can be shown.
    let _ = Console.write_fmt(arguments);
}

/// Prints one line on the kernel's log.
#[macro_export]
macro_rules! kprintln {
    ($($argument:tt)*) => {
        $crate::log::print(format_args!("{}\n", format_args!($($argument)*)))
    };
}
