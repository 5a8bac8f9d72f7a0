//! Devices on PCI: finding one, and having it signal by messages (PCI Local Bus 3.0, 6; PCI Express Base 3.0, 7).
//!
//! Own code, because what there is as a library takes an access that is unsafe to write and to use;
//! a task's ports are neither. Everything here is pure: what reads and writes is given ([`Access`]).
//! Whoever can write here can have a device read and write all memory, and is trusted with it
//! (docs/user-level.md, `trusted`).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod message;
#[cfg(test)]
mod tests;

pub use message::{Messages, Table};

/// The ports of configuration mechanism 1: an address, and the word that is there.
pub const PORTS: (u16, u16) = (0xCF8, 8);

/// Reads and writes words of configuration space.
pub trait Access {
    /// The word at `offset`, a multiple of 4, of `place`; all ones if nobody is there.
    fn read(&self, place: Place, offset: u8) -> u32;
    /// Writes it.
    fn write(&self, place: Place, offset: u8, value: u32);
}

/// Where a function is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its bus.
    pub bus: u8,
    /// Its device on that, below 32.
    pub device: u8,
    /// Its function of that, below 8.
    pub function: u8,
}

impl Place {
    /// What mechanism 1 writes to its first port for the word at `offset`.
    #[must_use]
    pub fn address(self, offset: u8) -> u32 {
        let device = u32::from(self.device & 31) << 11 | u32::from(self.function & 7) << 8;
        1 << 31 | u32::from(self.bus) << 16 | device | u32::from(offset & !3)
    }
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.bus, self.device, self.function)
    }
}

/// Offsets in the header of a function that is no bridge.
mod header {
    pub const IDENTITY: u8 = 0x00;
    pub const COMMAND: u8 = 0x04;
    pub const KIND: u8 = 0x0C;
    pub const BARS: u8 = 0x10;
    pub const CAPABILITIES: u8 = 0x34;
}

/// Bits of the command register, and of the status above it.
mod command {
    pub const MEMORY: u32 = 1 << 1;
    pub const MASTER: u32 = 1 << 2;
    pub const NO_WIRE: u32 = 1 << 10;
    pub const HAS_CAPABILITIES: u32 = 1 << 20;
    /// The status is cleared by writing ones: what is written to the command leaves it as it is.
    pub const OWN: u32 = 0xFFFF;
}

/// Where the last capability can be that has 16 bytes, as those of messages do.
const LAST_CAPABILITY: u8 = 0xF0;
/// Capabilities in a list that leads in a circle at most.
const MOST_CAPABILITIES: u32 = 48;

/// A function of a device.
pub struct Function<'a, A> {
    access: &'a A,
    place: Place,
}

/// Where a device's registers are in physical memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The first byte.
    pub address: u64,
    /// How many there are: a power of two.
    pub bytes: u64,
}

impl<'a, A: Access> Function<'a, A> {
    /// The first function that says it is `device` of `vendor`, on whatever bus.
    #[must_use]
    pub fn find(access: &'a A, vendor: u16, device: u16) -> Option<Self> {
        let wanted = u32::from(device) << 16 | u32::from(vendor);
        (0..=u8::MAX).flat_map(|bus| (0..32).map(move |device| (bus, device))).find_map(
            |(bus, device)| {
                let at = |function| Self { access, place: Place { bus, device, function } };
                let first = at(0);
                if first.read(header::IDENTITY) == !0 {
                    return None;
                }
                let has_several = first.read(header::KIND) >> 16 & 0x80 != 0;
                let functions = if has_several { 8 } else { 1 };
                (0..functions).map(at).find(|it| it.read(header::IDENTITY) == wanted)
            },
        )
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    fn read(&self, offset: u8) -> u32 {
        self.access.read(self.place, offset)
    }

    fn write(&self, offset: u8, value: u32) {
        self.access.write(self.place, offset, value);
    }

    /// Changes bits of the command register; what it was.
    fn command(&self, set: u32, clear: u32) -> u32 {
        let old = self.read(header::COMMAND) & command::OWN;
        self.write(header::COMMAND, old & !clear | set);
        old
    }

    /// Where its registers number `index` are, if that names memory that firmware has placed.
    /// While it is asked how large they are, the device answers to none of them.
    #[must_use]
    pub fn memory(&self, index: u8) -> Option<Memory> {
        const IS_PORTS: u32 = 1;
        const IS_64_BITS: u32 = 0b100;
        let at = (index < 6).then(|| header::BARS + 4 * index)?;
        let low = self.read(at);
        let is_wide = low & 0b110 == IS_64_BITS;
        if low & IS_PORTS != 0 || is_wide && index == 5 {
            return None;
        }
        let before = self.command(0, command::MEMORY);
        let high = if is_wide { self.read(at + 4) } else { 0 };
        let mut mask = u64::from(self.probe(at, low) & !0xF);
        mask |= if is_wide { u64::from(self.probe(at + 4, high)) << 32 } else { !0 << 32 };
        self.write(header::COMMAND, before);
        let address = u64::from(high) << 32 | u64::from(low & !0xF);
        let bytes = mask.wrapping_neg();
        (address != 0 && bytes.is_power_of_two()).then_some(Memory { address, bytes })
    }

    /// Which bits of the register at `at`, which holds `value`, can be written.
    fn probe(&self, at: u8, value: u32) -> u32 {
        self.write(at, !0);
        let mask = self.read(at);
        self.write(at, value);
        mask
    }

    /// Lets it answer to its registers in memory, and write to memory by itself: messages are that.
    pub fn enable(&self) {
        self.command(command::MEMORY | command::MASTER, 0);
    }

    /// Where the first capability of this kind is (PCI Local Bus 3.0, 6.7). None that would not fit where it is.
    fn capability(&self, kind: u8) -> Option<u8> {
        if self.read(header::COMMAND) & command::HAS_CAPABILITIES == 0 {
            return None;
        }
        let mut at = self.read(header::CAPABILITIES) as u8 & !3;
        for _ in 0..MOST_CAPABILITIES {
            if at < 0x40 {
                return None;
            }
            let word = self.read(at);
            if word as u8 == kind {
                return (at <= LAST_CAPABILITY).then_some(at);
            }
            at = (word >> 8) as u8 & !3;
        }
        None
    }
}
