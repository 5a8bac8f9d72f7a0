//! Interrupts as messages: MSI, and MSI-X with a table in the device's memory (PCI Local Bus 3.0, 6.8).

use abi::kip::LineMessage;

use crate::{Access, Function, command};

const MSI: u8 = 0x05;
const MSI_X: u8 = 0x11;
/// Bits of MSI's first word: it is on; how many messages it may use; a second word of address.
const MSI_ON: u32 = 1 << 16;
const MSI_SEVERAL: u32 = 0b111 << 20;
const MSI_WIDE: u32 = 1 << 23;
/// Bits of MSI-X's first word: nothing passes; it is on.
const MSI_X_MASKED: u32 = 1 << 30;
const MSI_X_ON: u32 = 1 << 31;

/// How a device can signal by messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Messages {
    /// One message, in the configuration space.
    One,
    /// A table of them, in its memory.
    Table(Table),
}

/// Where the table of a device's messages is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its place: behind so many bytes of the registers with this number.
    pub registers: u8,
    /// Bytes in front of it there.
    pub offset: u32,
    /// How many messages it has.
    pub entries: u32,
}

impl Table {
    /// Bytes of an entry.
    pub const ENTRY: u64 = 16;

    /// The words of an entry that signals by `message`: address, data, and that it is not masked.
    #[must_use]
    pub fn entry(message: LineMessage) -> [u32; 4] {
        [message.address as u32, (message.address >> 32) as u32, message.data, 0]
    }
}

impl<A: Access> Function<'_, A> {
    /// How the device can signal by messages, if it can.
    #[must_use]
    pub fn messages(&self) -> Option<Messages> {
        if let Some(at) = self.capability(MSI_X) {
            let (first, place) = (self.read(at), self.read(at + 4));
            return Some(Messages::Table(Table {
                registers: place as u8 & 7,
                offset: place & !7,
                entries: (first >> 16 & 0x7FF) + 1,
            }));
        }
        self.capability(MSI).map(|_| Messages::One)
    }

    /// Has a device with [`Messages::One`] signal by `message` and not by its wire; whether it can: some have no
    /// room for an address above 4 GiB.
    #[must_use]
    pub fn signal_by(&self, message: LineMessage) -> bool {
        let Some(at) = self.capability(MSI) else { return false };
        let first = self.read(at) & !(MSI_ON | MSI_SEVERAL);
        let is_wide = first & MSI_WIDE != 0;
        let high = (message.address >> 32) as u32;
        if high != 0 && !is_wide {
            return false;
        }
        self.write(at, first);
        self.write(at + 4, message.address as u32);
        let data = if is_wide { at + 12 } else { at + 8 };
        if is_wide {
            self.write(at + 8, high);
        }
        let rest = self.read(data) & !0xFFFF;
        self.write(data, rest | message.data & 0xFFFF);
        self.command(command::NO_WIRE, 0);
        self.write(at, first | MSI_ON);
        true
    }

    /// Has a device with a [`Table`], whose entries have been written, signal by it and not by its wire.
    /// Entries that nobody has written are masked since the device's reset.
    pub fn signal_by_table(&self) {
        if let Some(at) = self.capability(MSI_X) {
            self.command(command::NO_WIRE, 0);
            self.write(at, self.read(at) & !MSI_X_MASKED | MSI_X_ON);
        }
    }
}
