//! The generic bootinfo that the KIP's BootInfo word points at (X.2 6.11).
//!
//! Offsets of records count from the header or the record before; offsets of
//! command lines count from the record that has them.

/// Header word 0.
pub const MAGIC: u64 = 0x14B0_021D;
/// Header words: magic, version, total size, offset of the first record, count, three reserved.
pub const HEADER_WORDS: usize = 8;
/// Record type: Module {start, size, offset of the command line}.
pub const MODULE: u64 = 1;
/// Record type: SimpleExec {text, data, bss: each pstart, vstart, size; IP, flags,
/// label, offset of the command line}.
pub const SIMPLE_EXEC: u64 = 2;
/// Record type of Baton's own: Framebuffer {its words}. Without a command line.
pub const FRAMEBUFFER: u64 = 0x8001;
/// Words of a Framebuffer record: type, version, offset of the next, and five of its own.
pub const FRAMEBUFFER_WORDS: usize = 3 + crate::framebuffer::WORDS;
/// Words of a Module record: type, version, offset of the next, and three of its own.
pub const MODULE_WORDS: usize = 6;
/// Words of a SimpleExec record: type, version, offset of the next, and 13 of its own.
pub const SIMPLE_EXEC_WORDS: usize = 16;

/// Index of each word that all records have.
pub mod record {
    /// [`super::MODULE`] or [`super::SIMPLE_EXEC`].
    pub const TYPE: usize = 0;
    /// 1.
    pub const VERSION: usize = 1;
    /// Bytes from this record to the next.
    pub const NEXT: usize = 2;
}

/// Index of each word of a Module record.
pub mod module {
    /// Physical address.
    pub const START: usize = 3;
    /// Bytes.
    pub const SIZE: usize = 4;
    /// Bytes from the record to its command line; 0 without one.
    pub const COMMAND_LINE: usize = 5;
}

/// Index of each word of a SimpleExec record.
pub mod exec {
    /// Text: physical start, virtual start, bytes.
    pub const TEXT: usize = 3;
    /// Data: physical start, virtual start, bytes.
    pub const DATA: usize = 6;
    /// Bss: physical start (0: no memory yet), virtual start, bytes.
    pub const BSS: usize = 9;
    /// Initial IP.
    pub const ENTRY: usize = 12;
    /// ELF class.
    pub const FLAGS: usize = 13;
    /// Free for the root task.
    pub const LABEL: usize = 14;
    /// Bytes from the record to its command line; 0 without one.
    pub const COMMAND_LINE: usize = 15;
}
