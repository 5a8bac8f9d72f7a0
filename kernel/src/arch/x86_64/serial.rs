//! COM1, a 16550: the kernel's own log, polled, 115,200 baud 8N1.
//!
//! Until a driver at user level takes the port over, the kernel is its only
//! user; afterwards it writes only when it has to report a fault of its own.

use super::cpu::{in_byte, out_byte};

/// First I/O port of COM1.
const COM1: u16 = 0x3F8;
/// Registers, as offsets from [`COM1`].
mod register {
    pub const DATA: u16 = 0;
    pub const INTERRUPT_ENABLE: u16 = 1;
    pub const FIFO_CONTROL: u16 = 2;
    pub const LINE_CONTROL: u16 = 3;
    pub const MODEM_CONTROL: u16 = 4;
    pub const LINE_STATUS: u16 = 5;
}
/// Line status: a byte has arrived.
const DATA_READY: u8 = 1 << 0;
/// Line status: room to send.
const TRANSMITTER_EMPTY: u8 = 1 << 5;
/// Polls before a byte is given up, so that a machine without the port boots.
const PATIENCE: u32 = 100_000;

/// Sets the port up: 115,200 baud, 8 data bits, no parity, 1 stop bit, FIFOs on.
pub fn init() {
    const SETUP: [(u16, u8); 7] = [
        (register::INTERRUPT_ENABLE, 0),
        (register::LINE_CONTROL, 0x80), // the next two registers are the divisor
        (register::DATA, 1),
        (register::INTERRUPT_ENABLE, 0),
        (register::LINE_CONTROL, 0x03),
        (register::FIFO_CONTROL, 0xC7),
        (register::MODEM_CONTROL, 0x03),
    ];
    for (register, value) in SETUP {
        // SAFETY: the kernel owns COM1 at boot.
        unsafe { out_byte(COM1 + register, value) };
    }
}

/// Writes bytes, a line feed as carriage return and line feed.
pub fn write(bytes: &[u8]) {
    for &byte in bytes {
        if byte == b'\n' {
            send(b'\r');
        }
        send(byte);
    }
}

/// The byte that has arrived, if any.
#[must_use]
pub fn poll() -> Option<u8> {
    // SAFETY: reading the status changes nothing that matters; the data register
    // is read only when a byte waits there.
    unsafe {
        (in_byte(COM1 + register::LINE_STATUS) & DATA_READY != 0)
            .then(|| in_byte(COM1 + register::DATA))
    }
}

fn send(byte: u8) {
    for _ in 0..PATIENCE {
        // SAFETY: reads the line status of the kernel's own port.
        if unsafe { in_byte(COM1 + register::LINE_STATUS) } & TRANSMITTER_EMPTY != 0 {
            break;
        }
    }
    // SAFETY: COM1 is the kernel's log.
    unsafe { out_byte(COM1 + register::DATA, byte) };
}
