//! Multiboot2: the tagged boot information that GRUB passes (Multiboot2
//! specification 2.0, section 3.6).

use abi::Framebuffer;
use abi::framebuffer::Channel;

use super::acpi;
use super::info::{BootInfo, CommandLine, Loader, LoaderError, field};
use super::memory::{PhysicalMemory, Range};

/// More boot information than this is a mistake, bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Bytes before the first tag.
const HEADER_BYTES: usize = 8;
/// Bytes of a tag's type and size.
const TAG_BYTES: usize = 8;

/// Types of tags.
mod tag {
    pub const END: u32 = 0;
    pub const COMMAND_LINE: u32 = 1;
    pub const MODULE: u32 = 3;
    pub const MEMORY_MAP: u32 = 6;
    pub const FRAMEBUFFER: u32 = 8;
    pub const ACPI_OLD: u32 = 14;
    pub const ACPI_NEW: u32 = 15;
}

/// Reads the boot information at physical address `start`.
///
/// # Errors
/// If it is out of reach or has no memory map.
pub fn parse(memory: &impl PhysicalMemory, start: u64) -> Result<BootInfo, LoaderError> {
    let unreadable = LoaderError::Unreadable(start);
    let head = Range::sized(start, HEADER_BYTES as u64)
        .and_then(|range| memory.bytes(range))
        .ok_or(unreadable)?;
    let total = u64::from(field::u32(head, 0).ok_or(unreadable)?);
    if !(HEADER_BYTES as u64..=MAX_BYTES).contains(&total) {
        return Err(LoaderError::Magic(total));
    }
    let bytes =
        Range::sized(start, total).and_then(|range| memory.bytes(range)).ok_or(unreadable)?;
    let mut info = BootInfo::new(Loader::Multiboot2);
    let mut at = HEADER_BYTES;
    while let Some((kind, len)) = tag_at(bytes, at) {
        if kind == tag::END {
            break;
        }
        let body = bytes.get(at + TAG_BYTES..at + len).unwrap_or_default();
        read_tag(memory, &mut info, kind, body, start + (at + TAG_BYTES) as u64);
        at = (at + len).next_multiple_of(8);
    }
    if info.regions.top() == 0 { Err(LoaderError::NoMemoryMap) } else { Ok(info) }
}

/// Type and length of the tag at byte `at`; `None` where no whole tag is.
fn tag_at(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let len = field::u32(bytes, at + 4)? as usize;
    let is_whole = len >= TAG_BYTES && len <= bytes.len() - at;
    is_whole.then_some((field::u32(bytes, at)?, len))
}

fn read_tag(memory: &impl PhysicalMemory, info: &mut BootInfo, kind: u32, body: &[u8], place: u64) {
    match kind {
        tag::COMMAND_LINE => info.command_line = CommandLine::read(memory, place),
        tag::MODULE if info.image.is_empty() => {
            if let (Some(start), Some(end)) = (field::u32(body, 0), field::u32(body, 4)) {
                info.image = Range::new(u64::from(start), u64::from(end));
            }
        }
        tag::MEMORY_MAP => read_map(info, body),
        tag::FRAMEBUFFER => {
            let said = framebuffer(body).map(|said| said.check().map(|()| said));
            info.framebuffer = said.or(info.framebuffer);
        }
        tag::ACPI_OLD if info.acpi.is_none() => info.acpi = acpi::parse(body),
        tag::ACPI_NEW => info.acpi = acpi::parse(body).or(info.acpi),
        _ => {}
    }
}

/// What the body of a framebuffer's tag says; `None` where pixels are no colours, as in text mode.
fn framebuffer(body: &[u8]) -> Option<Framebuffer> {
    /// The tag's type of framebuffer: pixels with red, green and blue (section 3.6.12).
    const RGB: u8 = 1;
    let channel = |index: usize| {
        let at = 24 + 2 * index;
        Some(Channel { position: *body.get(at)?, bits: *body.get(at + 1)? })
    };
    (*body.get(21)? == RGB).then_some(Framebuffer {
        address: field::u64(body, 0)?,
        pitch: field::u32(body, 8)?,
        width: field::u32(body, 12)?,
        height: field::u32(body, 16)?,
        bits: *body.get(20)?,
        channels: [channel(0)?, channel(1)?, channel(2)?],
    })
}

fn read_map(info: &mut BootInfo, body: &[u8]) {
    let entry_bytes = field::u32(body, 0).unwrap_or(0) as usize;
    if entry_bytes < 20 {
        return;
    }
    for entry in body.get(8..).unwrap_or_default().chunks_exact(entry_bytes) {
        if let (Some(base), Some(len), Some(kind)) =
            (field::u64(entry, 0), field::u64(entry, 8), field::u32(entry, 16))
        {
            info.regions.push(base, len, kind);
        }
    }
}
