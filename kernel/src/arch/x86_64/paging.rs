//! Page-table entries and tables (Intel SDM vol. 3, 4.5; AMD APM vol. 2, 5.3).
//!
//! Four levels, counted from the leaves: level 0 holds 4 KiB pages, level 1
//! 2 MiB, level 2 1 GiB pages, level 3 is the root. Who calls: `mem` only. An
//! entry may be changed by the processor at any time (accessed, dirty), hence
//! atomic access.

pub use crate::arch::table_page::{Access, HUGE, KERNEL_HALF, ROOT, Table, index, shift, span};
use abi::Rights;

/// One page-table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Entry(pub u64);

impl Entry {
    /// Not present.
    pub const EMPTY: Self = Self(0);
    /// Present.
    pub const P: u64 = 1;
    /// Writable.
    pub const W: u64 = 1 << 1;
    /// For user level.
    pub const U: u64 = 1 << 2;
    /// Write-through and not cached: device memory.
    pub const UNCACHED: u64 = 1 << 3 | 1 << 4;
    /// Accessed.
    pub const A: u64 = 1 << 5;
    /// Dirty.
    pub const D: u64 = 1 << 6;
    /// A page rather than a table (levels 1 and 2).
    pub const LARGE: u64 = 1 << 7;
    /// Leaf: the page belongs to the kernel's own bookkeeping (KIP, UTCB); no node.
    pub const KERNEL: u64 = 1 << 9;
    /// Table: the twin entry beside it holds a node that smaller entries inherit.
    pub const INHERIT: u64 = 1 << 9;
    /// Leaf: is being flushed by its owner; may not be mapped any further.
    pub const DYING: u64 = 1 << 10;
    /// Of a kernel's page: an A-stack, shared by two spaces.
    pub const A_STACK: u64 = Self::DYING;
    /// Not executable.
    pub const NX: u64 = 1 << 63;
    /// The address bits.
    pub const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;

    /// A user page at `phys`; `caching` is 0 or [`Entry::UNCACHED`].
    #[inline]
    #[must_use]
    pub const fn page(phys: u64, level: u32, rights: Rights, caching: u64) -> Self {
        let large = if level > 0 { Self::LARGE } else { 0 };
        Self(phys | Self::P | Self::U | large | caching | Self::rights_bits(rights))
    }

    /// This page, 4 KiB, as somebody else gets it who may do with it what `limit` says, a
    /// page entry.
    #[inline]
    #[must_use]
    pub const fn handed_on(self, limit: u64) -> Self {
        let kept = self.0 & (Self::ADDRESS | Self::UNCACHED | Self::P | Self::U);
        Self(kept | self.0 & limit & Self::W | (self.0 | limit) & Self::NX)
    }

    /// A table at `phys`, restricting nothing.
    #[inline]
    #[must_use]
    pub const fn table(phys: u64) -> Self {
        Self(phys | Self::P | Self::W | Self::U)
    }

    /// The bits that `rights` set (R is P).
    #[inline]
    #[must_use]
    pub const fn rights_bits(rights: Rights) -> u64 {
        let w = (rights.0 as u64 & 2) >> 1 << 1;
        let nx = (rights.0 as u64 & 1 ^ 1) << 63;
        w | nx
    }

    /// Whether it leads to a table when found above the last level.
    #[inline]
    #[must_use]
    pub const fn is_table(self) -> bool {
        self.0 & (Self::P | Self::LARGE) == Self::P
    }

    /// Whether a user's access goes on here: to the table or page that the entry names.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, access: Access) -> bool {
        let need = Self::P | Self::U | access.if_write(Self::W);
        self.0 & need == need
    }

    /// Whether it is a page of memory that admits a user's access and bears its marks already.
    #[inline(always)]
    #[must_use]
    pub const fn is_at_hand(self, access: Access) -> bool {
        let need = Self::P | Self::U | access.if_write(Self::W) | Self::marks(access);
        self.0 & (need | Self::UNCACHED) == need
    }

    /// The bits to clear and those to set so that a page's user may do `rights`, too.
    #[inline]
    #[must_use]
    pub const fn giving(rights: Rights) -> (u64, u64) {
        let write = if rights.contains(Rights::W) { Self::W } else { 0 };
        (if rights.contains(Rights::X) { Self::NX } else { 0 }, write)
    }

    /// The bits to clear and those to set so that a page's user may not do W or X, as far as
    /// they are in `rights`.
    #[inline]
    #[must_use]
    pub const fn taking(rights: Rights) -> (u64, u64) {
        let (clear, set) = Self::giving(rights);
        (set, clear)
    }

    /// The first of the pages of `level` that this page of the level above is made of; none is dying.
    #[inline]
    #[must_use]
    pub const fn part(self, level: u32) -> Self {
        let gone = if level == 0 { Self::LARGE } else { 0 };
        let flags = self.0 & !(Self::ADDRESS | Self::DYING | gone);
        Self(self.address() & !(span(level + 1) - 1) | flags)
    }

    /// How far apart the entries of two consecutive pages of `level` are.
    #[inline]
    #[must_use]
    pub const fn step(level: u32) -> u64 {
        span(level)
    }

    /// Whether it is a page when found in a table of `level`.
    #[inline]
    #[must_use]
    pub const fn is_leaf(self, level: u32) -> bool {
        level == 0 || self.0 & Self::LARGE != 0
    }

    /// The address of the page or table.
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0 & Self::ADDRESS
    }

    /// The rights of a present page.
    #[inline]
    #[must_use]
    pub const fn rights(self) -> Rights {
        let w = (self.0 & Self::W) as u8;
        let x = (self.0 >> 63) as u8 ^ 1;
        Rights(4 | w | x)
    }
}
