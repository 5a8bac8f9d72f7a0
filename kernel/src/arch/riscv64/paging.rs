//! Page-table entries of Sv48 (RISC-V privileged architecture, 12.3 to 12.5).
//!
//! Four levels, counted from the leaves: level 0 holds 4 KiB pages, level 1 2 MiB, level 2
//! 1 GiB pages, level 3 is the root. The processor is expected to set accessed and dirty bits
//! itself (Svadu), and to know memory types (Svpbmt) where devices are mapped.

pub use crate::arch::table_page::{Access, HUGE, KERNEL_HALF, ROOT, Table, index, shift, span};
use abi::Rights;

/// Where the physical page number begins in an entry, and in an address.
const NUMBER_SHIFT: u32 = 10;
const PAGE_SHIFT: u32 = 12;

/// One page-table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Entry(pub u64);

impl Entry {
    /// Not present.
    pub const EMPTY: Self = Self(0);
    /// Valid.
    pub const P: u64 = 1;
    /// Readable.
    pub const R: u64 = 1 << 1;
    /// Writable; never without [`Entry::R`].
    pub const W: u64 = 1 << 2;
    /// Executable.
    pub const X: u64 = 1 << 3;
    /// For user mode.
    pub const U: u64 = 1 << 4;
    /// Global.
    pub const G: u64 = 1 << 5;
    /// Accessed.
    pub const A: u64 = 1 << 6;
    /// Dirty.
    pub const D: u64 = 1 << 7;
    /// Leaf: the page belongs to the kernel's own bookkeeping (KIP, UTCB); no node.
    pub const KERNEL: u64 = 1 << 8;
    /// Table: the twin entry beside it holds a node that smaller entries inherit.
    pub const INHERIT: u64 = 1 << 8;
    /// Leaf: is being flushed by its owner; may not be mapped any further.
    pub const DYING: u64 = 1 << 9;
    /// Of a kernel's page: an A-stack, shared by two spaces.
    pub const A_STACK: u64 = Self::DYING;
    /// Device memory: not cached, strongly ordered (Svpbmt's IO).
    pub const UNCACHED: u64 = 2 << 61;
    /// The bits of the physical page number.
    const NUMBER: u64 = 0x003F_FFFF_FFFF_FC00;
    /// An entry with one of these is a page.
    const PAGE: u64 = Self::R | Self::W | Self::X;

    /// A user page at `phys`; `caching` is 0 or [`Entry::UNCACHED`]. The format is the same at
    /// all levels.
    #[inline]
    #[must_use]
    pub const fn page(phys: u64, _level: u32, rights: Rights, caching: u64) -> Self {
        let number = phys >> PAGE_SHIFT << NUMBER_SHIFT;
        Self(number | Self::P | Self::R | Self::U | caching | Self::rights_bits(rights))
    }

    /// This page, 4 KiB, as somebody else gets it who may do with it what `limit` says, a
    /// page entry.
    #[inline]
    #[must_use]
    pub const fn handed_on(self, limit: u64) -> Self {
        let kept = Self::NUMBER | Self::UNCACHED | Self::P | Self::R | Self::U;
        Self(self.0 & kept | self.0 & limit & (Self::W | Self::X))
    }

    /// A table at `phys`; other bits than the valid one are reserved.
    #[inline]
    #[must_use]
    pub const fn table(phys: u64) -> Self {
        Self(phys >> PAGE_SHIFT << NUMBER_SHIFT | Self::P)
    }

    /// The bits that `rights` set beside R.
    #[inline]
    #[must_use]
    pub const fn rights_bits(rights: Rights) -> u64 {
        let write = if rights.contains(Rights::W) { Self::W } else { 0 };
        let execute = if rights.contains(Rights::X) { Self::X } else { 0 };
        write | execute
    }

    /// Whether it leads to a table when found above the last level.
    #[inline]
    #[must_use]
    pub const fn is_table(self) -> bool {
        self.0 & (Self::P | Self::PAGE) == Self::P
    }

    /// Whether it is a page when found in a table of `level`.
    #[inline]
    #[must_use]
    pub const fn is_leaf(self, level: u32) -> bool {
        level == 0 || self.0 & Self::PAGE != 0
    }

    /// Whether a user's access goes on here: to the table or page that the entry names.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, access: Access) -> bool {
        let need = Self::P | Self::R | Self::U | access.if_write(Self::W);
        self.is_table() || self.0 & need == need
    }

    /// Whether it is a page of memory that admits a user's access and bears its marks already.
    #[inline(always)]
    #[must_use]
    pub const fn is_at_hand(self, access: Access) -> bool {
        let marks = Self::marks(access);
        self.admits(access) && self.0 & (marks | Self::UNCACHED) == marks
    }

    /// The bits to clear and those to set so that a page's user may do `rights`, too.
    #[inline]
    #[must_use]
    pub const fn giving(rights: Rights) -> (u64, u64) {
        (0, Self::rights_bits(rights))
    }

    /// The bits to clear and those to set so that a page's user may not do W or X, as far as
    /// they are in `rights`.
    #[inline]
    #[must_use]
    pub const fn taking(rights: Rights) -> (u64, u64) {
        (Self::rights_bits(rights), 0)
    }

    /// The first of the pages of `level` that this page of the level above is made of; none is dying.
    #[inline]
    #[must_use]
    pub const fn part(self, _level: u32) -> Self {
        Self(self.0 & !Self::DYING)
    }

    /// How far apart the entries of two consecutive pages of `level` are.
    #[inline]
    #[must_use]
    pub const fn step(level: u32) -> u64 {
        span(level) >> PAGE_SHIFT << NUMBER_SHIFT
    }

    /// The address of the page or table.
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        (self.0 & Self::NUMBER) >> NUMBER_SHIFT << PAGE_SHIFT
    }

    /// The rights of a present page.
    #[inline]
    #[must_use]
    pub const fn rights(self) -> Rights {
        let write = if self.0 & Self::W != 0 { Rights::W.0 } else { 0 };
        let execute = if self.0 & Self::X != 0 { Rights::X.0 } else { 0 };
        Rights(Rights::R.0 | write | execute)
    }
}
