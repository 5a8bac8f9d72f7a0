//! What boot loaders pass: PVH and multiboot2, the memory map, the command line, ACPI's
//! pointer. The first byte chooses the protocol; the others are memory.

use kernel::boot::image::Image;
use kernel::boot::info::COMMAND_LINE_BYTES;
use kernel::boot::memory::{PAGE, PhysicalMemory, Range};
use kernel::boot::{multiboot2, pvh};

use crate::boot_image::make_plan;
use crate::samples;

/// Where the information is.
pub(crate) const PLACE: u64 = 0x9000;

/// Physical memory that has bytes in one place only.
pub(crate) struct Memory<'a>(pub(crate) &'a [u8]);

impl PhysicalMemory for Memory<'_> {
    fn bytes(&self, range: Range) -> Option<&[u8]> {
        let [from, to] = [range.start, range.end].map(|end| end.checked_sub(PLACE));
        let piece = self.0.get(from? as usize..to? as usize)?;
        (!piece.is_empty()).then_some(piece)
    }
}

/// Reads the information and plans a machine with the map in it.
pub fn loader(bytes: &[u8]) -> bool {
    let Some((protocol, rest)) = bytes.split_first() else { return false };
    let memory = Memory(rest);
    let info = match protocol & 1 {
        0 => pvh::parse(&memory, PLACE),
        _ => multiboot2::parse(&memory, PLACE),
    };
    let Ok(info) = info else { return false };
    for region in info.regions.iter() {
        let range = region.range;
        assert!(!range.is_empty() && (range.start | range.end) % PAGE == 0, "{range:x?}");
    }
    let text = info.command_line.text();
    assert!(text.len() <= COMMAND_LINE_BYTES && !text.contains(|c: char| c.is_control()));
    let _ = info.command_line.size_option("kmem");
    let mut regions = info.regions.clone();
    regions.clip(16 << 40);
    let image = samples::boot_image();
    let image = Image::parse(&image).expect("a good image");
    if image.check_places(&regions, crate::boot_image::KERNEL).is_ok() {
        make_plan(&regions, &image);
    }
    true
}
