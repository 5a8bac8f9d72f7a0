//! The boot image: what the image tool lays out ahead of time, so that the
//! kernel parses no ELF (design 8). One file, little endian:
//!
//! ```text
//! header   magic "BATONIMG", version, record count, total bytes, checksum   (5 words)
//! records  RECORD_WORDS words each
//! blobs    page-aligned file contents and command lines
//! ```
//! A record is a *load* record (bytes that the kernel copies to a physical
//! address, zero-filling the rest) or a *module* record (left where the loader
//! put the image, page-aligned, and described in the bootinfo).

/// Header word 0.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BATONIMG");
/// Header word 1.
pub const VERSION: u64 = 1;
/// Words of the header.
pub const HEADER_WORDS: usize = 5;
/// Words of a record: kind, file offset, file bytes, memory bytes, physical
/// address, virtual address, entry, text bytes, data bytes, command-line offset,
/// command-line bytes, 0.
pub const RECORD_WORDS: usize = 12;

/// Kinds of records.
pub mod kind {
    /// A segment of σ0.
    pub const SIGMA0: u64 = 1;
    /// A segment of σ1.
    pub const SIGMA1: u64 = 2;
    /// A segment of the root task.
    pub const ROOT: u64 = 3;
    /// A flattened program: text, data, bss contiguous from the virtual address
    /// (text page-padded; memory bytes − text − data = bss).
    pub const PROGRAM: u64 = 4;
    /// A raw file.
    pub const MODULE: u64 = 5;
}

/// Index of each word in a record.
pub mod word {
    /// One of [`super::kind`].
    pub const KIND: usize = 0;
    /// Offset of the bytes in the image; page-aligned for programs and modules.
    pub const OFFSET: usize = 1;
    /// Bytes present in the image.
    pub const FILE_BYTES: usize = 2;
    /// Bytes in memory.
    pub const MEM_BYTES: usize = 3;
    /// Physical load address (load records).
    pub const PHYS: usize = 4;
    /// Virtual start address (programs).
    pub const VIRT: usize = 5;
    /// Entry point.
    pub const ENTRY: usize = 6;
    /// Bytes of read-only, executable text (programs); a multiple of the page size.
    pub const TEXT: usize = 7;
    /// Bytes of initialised data (programs).
    pub const DATA: usize = 8;
    /// Offset of the command line (zero-terminated) in the image.
    pub const CMDLINE: usize = 9;
    /// Bytes of the command line, without its zero.
    pub const CMDLINE_BYTES: usize = 10;
}

/// The checksum over everything behind the header: FNV-1a, 64-bit, over words
/// (the image is padded to a multiple of 8 bytes).
#[must_use]
pub fn checksum(words: impl Iterator<Item = u64>) -> u64 {
    words
        .fold(0xCBF2_9CE4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3))
}
