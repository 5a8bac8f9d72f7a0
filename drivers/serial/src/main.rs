//! The console at the serial port: a 16550 at 0x3F8, fed by interrupt messages. What a console is
//! besides its device is in `lib/console`.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod uart;

use runtime::{entry, root};
use uart::Uart;

entry!(main);

/// Interrupt line of the first serial port.
const IRQ: u32 = 4;
/// First of its eight ports.
const PORT: u16 = 0x3F8;

fn main() {
    let ports = root::ports(PORT, 8).unwrap_or_else(|why| {
        panic!("the serial driver asked for ports {PORT:#x} to {:#x} in vain: {why}", PORT + 7)
    });
    let irq = root::attach_irq(IRQ)
        .unwrap_or_else(|why| panic!("the serial driver asked for interrupt {IRQ} in vain: {why}"));
    console::serve(Uart::new(ports), &[irq])
}
