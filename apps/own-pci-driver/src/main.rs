//! A program that drives a device on PCI: the emulator's `edu`, which computes factorials and
//! interrupts when it is done, by a message (MSI).
//!
//! Its description must name PCI's configuration ports, the device's memory, and a line that no wire leads
//! to: systems/pci.toml. Such a device can be told to read and write all memory, so the task is trusted with it.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use abi::{ThreadId, Time, Timeouts};
use pci::{Function, PORTS};
use runtime::root::{self, Refusal};
use runtime::window::Window;
use runtime::{Msg, ipc, kip, println};

runtime::entry!(main);

/// The line that the device is to signal.
const LINE: u32 = 32;
/// Where its registers are shown to this program.
const REGISTERS: u64 = 0x30_0000_0000;
/// Vendor and device, and its registers: a number whose factorial it computes; what it does; why it
/// interrupts; take that back.
const EDU: (u16, u16) = (0x1234, 0x11E8);
const FACTORIAL: u64 = 0x08;
const STATUS: u64 = 0x20;
const CAUSE: u64 = 0x24;
const TAKE_BACK: u64 = 0x64;
/// Status: interrupt when a factorial is there.
const INTERRUPT: u32 = 0x80;
/// Factorials that fit into 32 bits.
const MOST: u32 = 12;
/// How long one may take, µs.
const PATIENCE_US: u64 = 2_000_000;

fn main() {
    match find() {
        Ok((device, irq)) => compute(&device, irq),
        Err(why) => println!("own-pci-driver: {why}."),
    }
}

/// Why the device cannot be driven.
enum Fault {
    Absent,
    NoMessages,
    Elsewhere(u64),
    Refused(&'static str, Refusal),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Absent => {
                write!(f, "there is no device edu; start the system with `--device edu`")
            }
            Self::NoMessages => write!(f, "this machine's interrupts cannot be messages"),
            Self::Elsewhere(at) => write!(
                f,
                "the device is at {at:#x}, and the description's `mmio` names another place"
            ),
            Self::Refused(what, why) => write!(f, "cannot have {what}: {why}"),
        }
    }
}

/// The device's registers, and the interrupt that it signals.
fn find() -> Result<(Window, ThreadId), Fault> {
    let refused = |what| move |why| Fault::Refused(what, why);
    let config = root::ports(PORTS.0, PORTS.1).map_err(refused("PCI's ports"))?;
    let function = Function::find(&config, EDU.0, EDU.1).ok_or(Fault::Absent)?;
    let memory = function.memory(0).ok_or(Fault::Absent)?;
    let mut window = Window::claim(REGISTERS, memory.bytes).ok_or(Fault::Absent)?;
    root::memory(&mut window, Some(memory.address))
        .map_err(|_| Fault::Elsewhere(memory.address))?;
    let message = kip::get().message(LINE).ok_or(Fault::NoMessages)?;
    let irq = root::attach_irq(LINE).map_err(refused("its interrupt"))?;
    function.enable();
    if !function.signal_by(message) {
        return Err(Fault::NoMessages);
    }
    println!("own-pci-driver: {} at {:#x} signals line {LINE}.", function.place(), memory.address);
    Ok((window, irq))
}

/// Lets the device compute, and waits for each result.
fn compute(device: &Window, irq: ThreadId) {
    let patience = Timeouts::new(Time::ZERO, Time::micros(PATIENCE_US));
    device.write32(STATUS, INTERRUPT);
    device.write32(FACTORIAL, 1);
    let mut result = ipc::receive(irq, patience.receive());
    for number in 1..=MOST {
        if let Err(error) = result {
            return println!(
                "own-pci-driver: no interrupt for the factorial of {number}: {error:?}."
            );
        }
        device.write32(TAKE_BACK, device.read32(CAUSE));
        println!("own-pci-driver: {number}! = {}", device.read32(FACTORIAL));
        if number < MOST {
            device.write32(FACTORIAL, number + 1);
            result = ipc::call_within(irq, &Msg::default(), patience);
        }
    }
}
