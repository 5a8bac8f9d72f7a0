//! PVH: the start information that QEMU's `-kernel` passes (Xen's
//! `hvm_start_info`, version 1).

use super::acpi;
use super::info::{BootInfo, CommandLine, Loader, LoaderError, field};
use super::memory::{MAX_REGIONS, PhysicalMemory, Range};

const MAGIC: u32 = 0x336E_C578;
/// Bytes of the structure since version 1.
const BYTES: u64 = 56;
/// Bytes of an entry of the memory map.
const ENTRY_BYTES: u64 = 24;

/// Offsets in the structure.
mod offset {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 4;
    pub const MODULES: usize = 12;
    pub const MODULE_LIST: usize = 16;
    pub const COMMAND_LINE: usize = 24;
    pub const RSDP: usize = 32;
    pub const MEMORY_MAP: usize = 40;
    pub const MEMORY_ENTRIES: usize = 48;
}

/// Reads the start information at physical address `start`.
///
/// # Errors
/// If it is out of reach, is not version 1 or later, or has no memory map.
pub fn parse(memory: &impl PhysicalMemory, start: u64) -> Result<BootInfo, LoaderError> {
    let unreadable = LoaderError::Unreadable(start);
    let bytes =
        Range::sized(start, BYTES).and_then(|range| memory.bytes(range)).ok_or(unreadable)?;
    let word = |at| field::u32(bytes, at).ok_or(unreadable);
    let address = |at| field::u64(bytes, at).ok_or(unreadable);
    if word(offset::MAGIC)? != MAGIC {
        return Err(LoaderError::Magic(u64::from(word(offset::MAGIC)?)));
    }
    let entries = word(offset::MEMORY_ENTRIES)?;
    if word(offset::VERSION)? == 0 || entries == 0 {
        return Err(LoaderError::NoMemoryMap);
    }
    let mut info = BootInfo::new(Loader::Pvh);
    read_map(memory, address(offset::MEMORY_MAP)?, entries, &mut info)?;
    if word(offset::MODULES)? > 0 {
        info.image = first_module(memory, address(offset::MODULE_LIST)?).unwrap_or(Range::EMPTY);
    }
    let command_line = address(offset::COMMAND_LINE)?;
    if command_line != 0 {
        info.command_line = CommandLine::read(memory, command_line);
    }
    let pointer = Range::sized(address(offset::RSDP)?, acpi::LONG_BYTES as u64);
    info.acpi = pointer.and_then(|range| memory.bytes(range)).and_then(acpi::parse);
    Ok(info)
}

fn read_map(
    memory: &impl PhysicalMemory,
    start: u64,
    entries: u32,
    info: &mut BootInfo,
) -> Result<(), LoaderError> {
    let entries = u64::from(entries).min(2 * MAX_REGIONS as u64);
    let range = Range::sized(start, entries * ENTRY_BYTES);
    let map = range.and_then(|range| memory.bytes(range)).ok_or(LoaderError::Unreadable(start))?;
    for entry in map.chunks_exact(ENTRY_BYTES as usize) {
        if let (Some(base), Some(len), Some(kind)) =
            (field::u64(entry, 0), field::u64(entry, 8), field::u32(entry, 16))
        {
            info.regions.push(base, len, kind);
        }
    }
    Ok(())
}

fn first_module(memory: &impl PhysicalMemory, list: u64) -> Option<Range> {
    let entry = memory.bytes(Range::sized(list, 16)?)?;
    Range::sized(field::u64(entry, 0)?, field::u64(entry, 8)?)
}
