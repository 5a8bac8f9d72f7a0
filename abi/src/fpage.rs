//! Flexpages (X.2 1.4, 1.5): naturally aligned regions of 2^s bytes or ports.

/// Access rights of a memory flexpage: `r`=4, `w`=2, `x`=1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Rights(pub u8);

impl Rights {
    /// No access.
    pub const NONE: Self = Self(0);
    /// Execute.
    pub const X: Self = Self(1);
    /// Write.
    pub const W: Self = Self(2);
    /// Read.
    pub const R: Self = Self(4);
    /// Read and write.
    pub const RW: Self = Self(6);
    /// Read and execute.
    pub const RX: Self = Self(5);
    /// Read, write and execute.
    pub const RWX: Self = Self(7);

    /// Whether every right of `other` is in `self`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The rights in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights of `self` without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0 & 7)
    }

    /// Whether no right is left.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// One flexpage word.
///
/// Memory: `63..10` base/1024, `9..4` log2 size, `3` 0, `2..0` rights.
/// I/O: `31..16` port, `15..10` log2 size, `9..4` = 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Fpage(pub u64);

/// Log2 of the smallest page, and of the smallest flexpage that moves anything.
pub const PAGE_BITS: u32 = 12;
const COMPLETE_BITS: u32 = 64;

impl Fpage {
    /// The nil flexpage: nothing.
    pub const NIL: Self = Self(0);
    /// The complete address space.
    pub const COMPLETE: Self = Self(0x10);
    /// The complete I/O port space.
    pub const COMPLETE_IO: Self = Self(0x4020);

    /// The memory flexpage of 2^`bits` bytes that contains `base`; 64 bits are the complete space.
    #[must_use]
    pub const fn memory(base: u64, bits: u32, rights: Rights) -> Self {
        if bits >= COMPLETE_BITS {
            return Self::COMPLETE.with_rights(rights);
        }
        let aligned = base >> bits << bits;
        Self((aligned & !0x3FF) | ((bits as u64 & 0x3F) << 4) | rights.0 as u64)
    }

    /// The I/O flexpage of 2^`bits` ports that contains `port`.
    #[must_use]
    pub const fn io(port: u16, bits: u32) -> Self {
        let aligned = (port as u64) >> bits << bits;
        Self(aligned << 16 | (bits as u64 & 0x3F) << 10 | 0x20)
    }

    /// Whether this is the nil flexpage.
    #[must_use]
    pub const fn is_nil(self) -> bool {
        self.0 == 0
    }

    /// Whether this names I/O ports (bits 9..4 equal 2).
    #[must_use]
    pub const fn is_io(self) -> bool {
        self.0 >> 4 & 0x3F == 2
    }

    /// Whether this is the complete address space (size field 1, base 0).
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.0 & !0xF == 0x10
    }

    /// Log2 of the size in bytes of a memory flexpage; 64 for the complete space.
    #[must_use]
    pub const fn bits(self) -> u32 {
        if self.is_complete() { COMPLETE_BITS } else { (self.0 >> 4 & 0x3F) as u32 }
    }

    /// First byte of a memory flexpage (bits below the size are dropped).
    #[must_use]
    pub const fn base(self) -> u64 {
        let bits = self.bits();
        if bits >= 64 { 0 } else { (self.0 & !0x3FF) >> bits << bits }
    }

    /// Size in bytes of a memory flexpage; saturates for the complete space.
    #[must_use]
    pub const fn size(self) -> u64 {
        let bits = self.bits();
        if bits >= 64 { u64::MAX } else { 1 << bits }
    }

    /// The rights bits (for a result of Unmap: the status bits).
    #[must_use]
    pub const fn rights(self) -> Rights {
        Rights((self.0 & 7) as u8)
    }

    /// The same region with other rights.
    #[must_use]
    pub const fn with_rights(self, rights: Rights) -> Self {
        Self(self.0 & !7 | rights.0 as u64)
    }

    /// Whether `addr` lies inside a memory flexpage.
    #[must_use]
    pub const fn contains(self, addr: u64) -> bool {
        addr >= self.base() && addr - self.base() < self.size()
    }

    /// Log2 of the number of ports of an I/O flexpage, at most 16.
    #[must_use]
    pub const fn io_bits(self) -> u32 {
        let bits = (self.0 >> 10 & 0x3F) as u32;
        if bits > 16 { 16 } else { bits }
    }

    /// First port of an I/O flexpage (bits below the size are dropped).
    #[must_use]
    pub const fn io_base(self) -> u16 {
        ((self.0 >> 16 & 0xFFFF) >> self.io_bits() << self.io_bits()) as u16
    }
}
