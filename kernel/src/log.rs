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

/// Bytes that a [`report`] writes before it lets interrupts in.
const REPORT_PIECE: usize = 32;

struct Report;

impl Write for Report {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.as_bytes().chunks(REPORT_PIECE) {
            arch::console_write(piece);
            // They are only noted here, and handled when the way in is left.
            crate::preemption::let_in();
        }
        Ok(())
    }
}

/// Writes formatted text while users wait, letting interrupts in; for sentences about them.
pub fn report(arguments: fmt::Arguments<'_>) {
    let _ = Report.write_fmt(arguments);
}

/// Prints one line on the kernel's log.
#[macro_export]
macro_rules! kprintln {
    ($($argument:tt)*) => {
        $crate::log::print(format_args!("{}\n", format_args!($($argument)*)))
    };
}
