//! The kernel interface page (X.2 2): offsets, constants, memory descriptors.

use crate::id::{MESSAGE_BASE, SYSTEM_BASE};

/// "L4", 0xE6, "K".
pub const MAGIC: u64 = 0x4BE6_344C;
/// X.2, subversion 5.
pub const API_VERSION: u64 = 0x8405_0000;
/// 64-bit, little endian.
pub const API_FLAGS: u64 = 4;
/// Baton's kernel id: id 0xBA, subid 1.
pub const KERNEL_ID: u64 = 0xBA01_0000;

/// Byte offsets of the KIP's fields (X.2 2.2).
pub mod offset {
    /// Magic number.
    pub const MAGIC: usize = 0x000;
    /// ApiVersion.
    pub const API_VERSION: usize = 0x008;
    /// ApiFlags.
    pub const API_FLAGS: usize = 0x010;
    /// KernDescPtr.
    pub const KERN_DESC_PTR: usize = 0x018;
    /// Sigma0: SP, IP, low, high.
    pub const SIGMA0: usize = 0x040;
    /// Sigma1: SP, IP, low, high.
    pub const SIGMA1: usize = 0x060;
    /// RootServer: SP, IP, low, high.
    pub const ROOT: usize = 0x080;
    /// Baton: offset from the KIP of Baton's own extension descriptor (reserved word in X.2).
    pub const BATON_DESC_PTR: usize = 0x0A0;
    /// MemoryInfo: 31..0 count, 63..32 offset of the descriptors.
    pub const MEMORY_INFO: usize = 0x0A8;
    /// ReservedMem0 low, high.
    pub const RESERVED_MEM0: usize = 0x0D0;
    /// UtcbAreaInfo.
    pub const UTCB_AREA_INFO: usize = 0x150;
    /// KipAreaInfo.
    pub const KIP_AREA_INFO: usize = 0x158;
    /// BootInfo: physical address.
    pub const BOOT_INFO: usize = 0x170;
    /// ProcDescPtr.
    pub const PROC_DESC_PTR: usize = 0x178;
    /// ClockInfo.
    pub const CLOCK_INFO: usize = 0x180;
    /// ThreadInfo.
    pub const THREAD_INFO: usize = 0x188;
    /// PageInfo.
    pub const PAGE_INFO: usize = 0x190;
    /// ProcessorInfo.
    pub const PROCESSOR_INFO: usize = 0x198;
    /// Link: SpaceControl.
    pub const SPACE_CONTROL: usize = 0x1A0;
    /// Link: ThreadControl.
    pub const THREAD_CONTROL: usize = 0x1A8;
    /// Link: ProcessorControl.
    pub const PROCESSOR_CONTROL: usize = 0x1B0;
    /// Link: MemoryControl.
    pub const MEMORY_CONTROL: usize = 0x1B8;
    /// Link: Ipc.
    pub const IPC: usize = 0x1C0;
    /// Link: Lipc.
    pub const LIPC: usize = 0x1C8;
    /// Link: Unmap.
    pub const UNMAP: usize = 0x1D0;
    /// Link: ExchangeRegisters.
    pub const EXCHANGE_REGISTERS: usize = 0x1D8;
    /// Link: SystemClock.
    pub const SYSTEM_CLOCK: usize = 0x1E0;
    /// Link: ThreadSwitch.
    pub const THREAD_SWITCH: usize = 0x1E8;
    /// Link: Schedule.
    pub const SCHEDULE: usize = 0x1F0;
    /// Processor descriptors (end of the fixed part).
    pub const PROC_DESC: usize = 0x240;
    /// Kernel descriptor, version string, feature strings (Baton's choice).
    pub const KERN_DESC: usize = 0x280;
    /// Baton's extension descriptor (Baton's choice): see [`super::baton`].
    pub const BATON_DESC: usize = 0x300;
    /// Memory descriptors (Baton's choice), to the end of the page.
    pub const MEM_DESC: usize = 0x400;
}

/// Baton's extension descriptor, words from `KIP + *BATON_DESC_PTR`.
pub mod baton {
    /// Word 0: the bytes "BATON\0\0\0".
    pub const MAGIC: u64 = u64::from_le_bytes(*b"BATON\0\0\0");
    /// Word 1: descriptor version.
    pub const VERSION: u64 = 5;
    /// Word 2: link of QuotaControl. Word 3: link of Inspect. Word 4: bit set of extensions (0 today).
    /// Word 5 (from version 2): link of ThreadState. Words 6 and 7 (from version 3): links of
    /// TaskControl and CreateThread. Words 8 and 9 (from version 4): links of local IPC in user
    /// mode, a call, and a reply with a wait. Words 10 and 11 (from version 5): [`MESSAGE_ADDRESS`].
    pub const WORDS: usize = 12;
    /// Word 10: where a device writes to signal a line from [`crate::id::MESSAGE_BASE`] on, a physical address;
    /// 0: the machine has no such lines. Word 11: what it writes there for the first of them; for
    /// each further line that is 1 more.
    pub const MESSAGE_ADDRESS: usize = 10;
}

/// By what a device signals a line without a wire (MSI, MSI-X): `data`, written to `address`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineMessage {
    /// Where the device writes, a physical address.
    pub address: u64,
    /// What it writes.
    pub data: u32,
}

impl LineMessage {
    /// The two words of the extension descriptor, for the first such line.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        [self.address, self.data as u64]
    }

    /// That of `line`, by the two words; `None` if it has a wire, or the machine has no such lines.
    #[must_use]
    pub const fn of(line: u32, words: [u64; 2]) -> Option<Self> {
        let is_one = line >= MESSAGE_BASE && line < SYSTEM_BASE && words[0] != 0;
        if !is_one {
            return None;
        }
        Some(Self { address: words[0], data: words[1] as u32 + (line - MESSAGE_BASE) })
    }
}

/// UtcbAreaInfo: log2 minimal area 12, log2 alignment 10, multiplier 1.
pub const UTCB_AREA_INFO: u64 = 12 << 16 | 10 << 10 | 1;
/// KipAreaInfo: log2 size 12.
pub const KIP_AREA_INFO: u64 = 12;

/// Types of memory descriptors (X.2 2.4).
pub mod memory_type {
    /// Undefined.
    pub const UNDEFINED: u8 = 0;
    /// Conventional memory.
    pub const CONVENTIONAL: u8 = 1;
    /// Reserved by the kernel.
    pub const RESERVED: u8 = 2;
    /// Dedicated to one use.
    pub const DEDICATED: u8 = 3;
    /// Shared: may be given out repeatedly.
    pub const SHARED: u8 = 4;
    /// Boot-loader specific: subtype 1 tables, 2 initial server, 3 boot module.
    pub const BOOT: u8 = 0xE;
    /// Architecture specific: subtype is the BIOS map type.
    pub const ARCH: u8 = 0xF;
}

/// A memory descriptor: two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryDescriptor {
    /// First byte; a multiple of 1024.
    pub low: u64,
    /// Last byte; low 10 bits all ones.
    pub high: u64,
    /// Virtual addresses rather than physical.
    pub is_virtual: bool,
    /// One of [`memory_type`].
    pub kind: u8,
    /// Subtype for kinds ≥ 0xE.
    pub subtype: u8,
}

impl MemoryDescriptor {
    /// The two words.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        let flags = (self.is_virtual as u64) << 9
            | (self.subtype as u64 & 0xF) << 4
            | self.kind as u64 & 0xF;
        [self.low & !0x3FF | flags, self.high & !0x3FF]
    }

    /// Decodes two words.
    #[must_use]
    pub const fn decode(words: [u64; 2]) -> Self {
        Self {
            low: words[0] & !0x3FF,
            high: words[1] | 0x3FF,
            is_virtual: words[0] & 1 << 9 != 0,
            kind: (words[0] & 0xF) as u8,
            subtype: (words[0] >> 4 & 0xF) as u8,
        }
    }
}
