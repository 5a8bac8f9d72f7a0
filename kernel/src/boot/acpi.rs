//! ACPI's fixed tables: where they begin and how one is found by its signature.
//!
//! The kernel reads a few tables of numbers (`madt.rs`) and no code. Firmware made them and
//! loaders moved them: every address and length in them is an allegation (ACPI 6.5, 5.2).

use core::fmt;

use super::info::field;
use super::memory::{PhysicalMemory, Range};

/// Bytes of the pointer of revision 0, the part that its first checksum covers.
const SHORT_BYTES: usize = 20;
/// Bytes of the pointer since revision 2.
pub const LONG_BYTES: usize = 36;
/// Bytes of the header that every table begins with.
pub const HEADER_BYTES: usize = 36;
/// A longer table than this is a mistake, bytes.
const MAX_BYTES: u32 = 1 << 20;
/// Entries of the root table that are looked at.
const MAX_ENTRIES: usize = 1024;
/// Where a PC's firmware leaves the pointer: the ROM's addresses.
const BIOS_AREA: Range = Range::new(0xE_0000, 0x10_0000);
/// The word that tells the segment of the firmware's data in low memory.
const DATA_SEGMENT: Range = Range::new(0x40E, 0x410);
/// Bytes of those data that are searched.
const DATA_BYTES: u64 = 1024;
/// The pointer lies on a multiple of this.
const STEP: usize = 16;

/// Physical address of ACPI's root table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootTable {
    /// 32-bit entries.
    Rsdt(u64),
    /// 64-bit entries.
    Xsdt(u64),
}

/// Why a table cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// There is no sound pointer to the root table.
    NoPointer,
    /// The table at this address is out of reach.
    Unreadable(u64),
    /// The table at this address is not the one that it is taken for.
    Signature(u64),
    /// The table at this address says that it is this long, bytes.
    Length(u64, u32),
    /// The bytes of the table at this address do not sum up to zero.
    Checksum(u64),
    /// The root table lists no table with this signature.
    Missing([u8; 4]),
    /// An entry at this offset of a table is cut off or has the wrong length.
    Entry(usize),
    /// What the table says cannot be: a sentence.
    Nonsense(&'static str),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPointer => f.write_str("neither loader nor firmware left a pointer to it"),
            Self::Unreadable(at) => write!(f, "the table at {at:#x} is out of reach"),
            Self::Signature(at) => write!(f, "there is another table at {at:#x}"),
            Self::Length(at, len) => write!(f, "the table at {at:#x} claims {len} bytes"),
            Self::Checksum(at) => write!(f, "the table at {at:#x} has a wrong checksum"),
            Self::Missing(signature) => {
                write!(f, "there is no table {}", core::str::from_utf8(signature).unwrap_or("?"))
            }
            Self::Entry(at) => write!(f, "its entry at byte {at} has a wrong length"),
            Self::Nonsense(why) => f.write_str(why),
        }
    }
}

/// Reads a root system description pointer; `None` unless signature and checksums hold.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<RootTable> {
    let short = bytes.get(..SHORT_BYTES)?;
    if !short.starts_with(b"RSD PTR ") || !sums_to_zero(short) {
        return None;
    }
    let is_long = short[15] >= 2;
    if is_long && bytes.get(..LONG_BYTES).is_some_and(sums_to_zero) {
        let xsdt = field::u64(bytes, 24)?;
        if xsdt != 0 {
            return Some(RootTable::Xsdt(xsdt));
        }
    }
    Some(RootTable::Rsdt(u64::from(field::u32(bytes, 16)?)))
}

/// Looks for the pointer where a PC's firmware leaves it (ACPI 6.5, 5.2.5.1).
#[must_use]
pub fn search(memory: &impl PhysicalMemory) -> Option<RootTable> {
    let segment = memory.bytes(DATA_SEGMENT).and_then(|bytes| bytes.try_into().ok());
    let data = u64::from(u16::from_le_bytes(segment.unwrap_or_default())) << 4;
    let areas = [Range::new(data, data + DATA_BYTES), BIOS_AREA];
    let found = |area: Range| {
        let bytes = memory.bytes(area).filter(|_| area.start != 0)?;
        (0..bytes.len()).step_by(STEP).find_map(|at| parse(bytes.get(at..)?))
    };
    areas.into_iter().find_map(found)
}

/// The whole table at `address`, if it has this signature and its checksum holds.
fn table_at(
    memory: &impl PhysicalMemory,
    address: u64,
    signature: [u8; 4],
) -> Result<&[u8], Defect> {
    let bytes = |len| memory.bytes(Range::sized(address, len)?);
    let header = bytes(HEADER_BYTES as u64).ok_or(Defect::Unreadable(address))?;
    if !header.starts_with(&signature) {
        return Err(Defect::Signature(address));
    }
    let len = field::u32(header, 4).unwrap_or(0);
    if !(HEADER_BYTES as u32..=MAX_BYTES).contains(&len) {
        return Err(Defect::Length(address, len));
    }
    let whole = bytes(u64::from(len)).ok_or(Defect::Unreadable(address))?;
    if sums_to_zero(whole) { Ok(whole) } else { Err(Defect::Checksum(address)) }
}

/// The first table with `signature` that the root table lists, within reach.
///
/// # Errors
/// What is wrong with the root table, or with the table; whether there is none.
pub fn table(
    memory: &impl PhysicalMemory,
    root: RootTable,
    signature: [u8; 4],
) -> Result<&[u8], Defect> {
    let (address, name, width) = match root {
        RootTable::Rsdt(address) => (address, *b"RSDT", 4),
        RootTable::Xsdt(address) => (address, *b"XSDT", 8),
    };
    let list = table_at(memory, address, name)?.get(HEADER_BYTES..).unwrap_or_default();
    for entry in list.chunks_exact(width).take(MAX_ENTRIES) {
        let at =
            if width == 4 { field::u32(entry, 0).map(u64::from) } else { field::u64(entry, 0) };
        let at = at.unwrap_or(0);
        let name = Range::sized(at, 4).and_then(|range| memory.bytes(range));
        if name == Some(&signature) {
            return table_at(memory, at, signature);
        }
    }
    Err(Defect::Missing(signature))
}

fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte)) == 0
}
