//! The kernel's own log: lines on the machine's first serial port.
//!
//! At boot and by the panic handler they are written at once, polled. While users run, a port that
//! sends a byte in 87 µs would keep everybody waiting for a sentence about one of them: those lines
//! ([`note`]) are noted here, and the waker writes them in pieces (`sched::waker`). Both are the
//! first processor's, with interrupts off; there is no lock.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use crate::arch;
use crate::arch::preemption;

/// Bytes that are noted at most; what does not fit is lost.
const NOTED: usize = 8192;
/// Bytes that are written at once: what a port takes without being waited for.
const PIECE: usize = 16;

/// What is noted and not written: a ring, with what has been written and noted of it until now.
static TEXT: [AtomicU8; NOTED] = [const { AtomicU8::new(0) }; NOTED];
static WRITTEN: AtomicUsize = AtomicUsize::new(0);
static ENDS: AtomicUsize = AtomicUsize::new(0);

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        arch::console_write(text.as_bytes());
        Ok(())
    }
}

/// Writes formatted text at once, behind what is noted; see [`kprintln!`](crate::kprintln).
pub fn print(arguments: fmt::Arguments<'_>) {
    while write_piece() {}
    // The console never fails, so an error can only come from a `Display` of the
    // caller's; what was written up to there is all that can be shown.
    let _ = Console.write_fmt(arguments);
}

/// Writes the next piece of what is noted; whether there was one.
pub fn write_piece() -> bool {
    let (from, end) = (WRITTEN.load(Relaxed), ENDS.load(Relaxed));
    let mut piece = [0; PIECE];
    let mut count = 0;
    for (to, at) in piece.iter_mut().zip(from..end) {
        *to = TEXT[at % NOTED].load(Relaxed);
        count += 1;
    }
    arch::console_write(&piece[..count]);
    WRITTEN.store(from + count, Relaxed);
    count != 0
}

struct Note;

impl Write for Note {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = ENDS.load(Relaxed);
        let room = WRITTEN.load(Relaxed) + NOTED - end;
        let noted = (end..end + room).zip(text.bytes()).map(|(at, byte)| {
            TEXT[at % NOTED].store(byte, Relaxed);
        });
        ENDS.store(end + noted.count(), Relaxed);
        // They are only noted here, and handled when the way in is left.
        preemption::let_in();
        Ok(())
    }
}

/// Notes formatted text, for whoever calls to see that it is written ([`write_piece`]).
pub fn note(arguments: fmt::Arguments<'_>) {
    let _ = Note.write_fmt(arguments);
}

/// Prints one line on the kernel's log.
#[macro_export]
macro_rules! kprintln {
    ($($argument:tt)*) => {
        $crate::arch::log::print(format_args!("{}\n", format_args!($($argument)*)))
    };
}
