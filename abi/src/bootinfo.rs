//! The generic bootinfo that the KIP's BootInfo word points at (X.2 6.11).

/// Header word 0.
pub const MAGIC: u64 = 0x14B0_021D;
/// Header words: magic, version, total size, offset of the first record, count, three reserved.
pub const HEADER_WORDS: usize = 8;
/// Record type: Module {start, size, offset of the command line}.
pub const MODULE: u64 = 1;
/// Record type: SimpleExec {pstart, vstart, text, data, bss sizes, IP, flags, label, offset of the command line}.
pub const SIMPLE_EXEC: u64 = 2;
/// Words of a Module record: type, version, offset of the next, and three of its own.
pub const MODULE_WORDS: usize = 6;
/// Words of a SimpleExec record.
pub const SIMPLE_EXEC_WORDS: usize = 12;
