//! The root system description pointer: where ACPI's tables begin.
//!
//! The kernel reads no ACPI; it only passes on where to look (ACPI 6.5, 5.2.5.3).

use super::info::field;

/// Bytes of the pointer of revision 0, the part that its first checksum covers.
const SHORT_BYTES: usize = 20;
/// Bytes of the pointer since revision 2.
pub const LONG_BYTES: usize = 36;

/// Physical address of ACPI's root table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootTable {
    /// 32-bit entries.
    Rsdt(u64),
    /// 64-bit entries.
    Xsdt(u64),
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

fn sums_to_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte)) == 0
}
