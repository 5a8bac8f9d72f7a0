//! A program that drives a device: the real-time clock of the PC.
//!
//! Its description must name `irq=8 ports=0x70+2`. The clock's periodic
//! interrupt arrives as messages; each is acknowledged by an empty reply.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use abi::{IpcErrorKind, Time, Timeouts};
use runtime::port::Ports;
use runtime::{Msg, clock, ipc, println, root};

runtime::entry!(main);

/// Interrupt line of the clock (Motorola MC146818).
const IRQ: u32 = 8;
/// Registers: A (rate), B (enable), C (cause, cleared by reading).
const A: u8 = 0x0A;
const B: u8 = 0x0B;
const C: u8 = 0x0C;
/// Register B: periodic interrupts.
const PERIODIC: u8 = 1 << 6;
/// Rate code 10: 64 interrupts per second.
const RATE: u8 = 10;
/// Interrupts to take before the end.
const TICKS: u64 = 32;

fn main() {
    let (ports, irq) =
        match root::ports(0x70, 2).and_then(|ports| Ok((ports, root::attach_irq(IRQ)?))) {
            Ok(rights) => rights,
            Err(why) => {
                return println!("own-driver: cannot have the clock's ports and interrupt: {why}.");
            }
        };
    let (a, b) = (read(&ports, A), read(&ports, B));
    write(&ports, A, a & 0xF0 | RATE);
    write(&ports, B, b | PERIODIC);
    let _ = read(&ports, C);
    let start_us = clock::now_us();
    let mut taken = 0;
    let patience = Timeouts::new(Time::ZERO, Time::micros(2_000_000));
    let mut result = ipc::receive(irq, patience.receive());
    while taken < TICKS {
        if let Err(error) = result {
            let sort = if error.kind == IpcErrorKind::Timeout {
                "no interrupt for two seconds"
            } else {
                "an IPC error"
            };
            println!("own-driver: {sort} after {taken} interrupts.");
            break;
        }
        taken += 1;
        let _ = read(&ports, C);
        result = ipc::call_within(irq, &Msg::default(), patience);
    }
    let spent_us = clock::now_us() - start_us;
    write(&ports, B, b & !PERIODIC);
    write(&ports, A, a);
    println!(
        "own-driver: {taken} interrupts of the clock in {spent_us} µs; it says {}.",
        TimeOfDay(&ports)
    );
}

fn read(ports: &Ports, register: u8) -> u8 {
    ports.write8(0, register);
    ports.read8(1)
}

fn write(ports: &Ports, register: u8, value: u8) {
    ports.write8(0, register);
    ports.write8(1, value);
}

/// The clock's time of day: BCD digits in registers 4, 2, 0.
struct TimeOfDay<'a>(&'a Ports);

impl core::fmt::Display for TimeOfDay<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:02x}:{:02x}:{:02x}", read(self.0, 4), read(self.0, 2), read(self.0, 0))
    }
}
