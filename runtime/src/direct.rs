//! Text straight to the first serial port, for the initial servers.
//!
//! The root task's reports appear even if the console driver is gone. Lines are
//! written whole, polling; the driver's own output may come before or after, the
//! hardware's FIFO takes both.

use core::fmt::{self, Write};

use crate::port::Ports;

/// The first serial port.
pub const BASE: u16 = 0x3F8;
/// Log2 of the number of its ports.
pub const PORT_BITS: u32 = 3;

const LINE_STATUS: u16 = 5;
const TRANSMITTER_EMPTY: u8 = 1 << 5;
/// A port that is not there never becomes ready: give up then.
const PATIENCE: u32 = 100_000;

struct Serial(Ports);

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.put(b'\r');
            }
            self.put(byte);
        }
        Ok(())
    }
}

impl Serial {
    fn put(&self, byte: u8) {
        let ready = (0..PATIENCE).any(|_| self.0.read8(LINE_STATUS) & TRANSMITTER_EMPTY != 0);
        if ready {
            self.0.write8(0, byte);
        }
    }
}

/// Writes bytes to the port; needs the right to its eight ports.
pub fn write_bytes(text: &[u8]) {
    let port = Serial(Ports::new(BASE, 8));
    for byte in text {
        if *byte == b'\n' {
            port.put(b'\r');
        }
        port.put(*byte);
    }
}

/// Writes text to the port; needs the right to its eight ports.
pub fn write(text: fmt::Arguments<'_>) {
    let _ = Serial(Ports::new(BASE, 8)).write_fmt(text);
}

/// Writes a line straight to the first serial port.
#[macro_export]
macro_rules! direct_println {
    ($($arg:tt)*) => { $crate::direct::write(format_args!("{}\n", format_args!($($arg)*))) };
}
