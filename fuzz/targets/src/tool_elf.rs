//! ELF files, as the image tool reads them for the boot image.

use xtask::image::elf::Executable;

/// Reads a file.
pub fn tool_elf(bytes: &[u8]) -> bool {
    let Ok(executable) = Executable::parse("fuzzed", bytes) else { return false };
    let span = executable.phys_span();
    for segment in &executable.segments {
        let (virt, phys) = (segment.virt_range(), segment.phys_range());
        assert!(virt.start < virt.end && phys.start < phys.end, "{virt:x?} at {phys:x?}");
        assert!(segment.bytes.len() as u64 <= segment.mem_bytes, "{virt:x?}");
        assert!(span.start <= phys.start && phys.end <= span.end, "{phys:x?} is not in {span:x?}");
    }
    let entry = executable.entry;
    assert!(executable.segments.iter().any(|segment| segment.virt_range().contains(&entry)));
    true
}
