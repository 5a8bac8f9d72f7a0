//! A page of 512 words: a page table, or what stands beside one; and the four levels of tables.
//!
//! Who calls: `mem`, and the architectures for the kernel's own tables. The processor may
//! change an entry at any time (accessed, dirty), hence atomic access.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::paging::Entry;
use super::phys_to_virt;
use abi::Rights;

/// How many entries [`Table::some`] looks at.
pub const TOGETHER: usize = 8;

/// Log2 of the bytes that one entry of `level` covers.
#[inline]
#[must_use]
pub const fn shift(level: u32) -> u32 {
    12 + 9 * (level & 3)
}

/// Bytes that one entry of `level` covers.
#[inline]
#[must_use]
pub const fn span(level: u32) -> u64 {
    1 << shift(level)
}

/// Index of the entry for `vaddr` in a table of `level`.
#[inline]
#[must_use]
pub const fn index(vaddr: u64, level: u32) -> usize {
    (vaddr >> shift(level)) as usize & 511
}

/// Level of the root table.
pub const ROOT: u32 = 3;
/// Level of the largest page that is used.
pub const HUGE: u32 = 2;
/// First root entry of the kernel half.
pub const KERNEL_HALF: usize = 256;

/// How memory is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing changes but the mark that it was accessed.
    Read,
    /// The page has to be writable, and is dirty afterwards.
    Write,
}

impl Access {
    /// `mask` where something is written.
    #[inline(always)]
    #[must_use]
    pub const fn if_write(self, mask: u64) -> u64 {
        match self {
            Self::Read => 0,
            Self::Write => mask,
        }
    }

    /// The right that it needs.
    #[inline]
    #[must_use]
    pub const fn right(self) -> Rights {
        match self {
            Self::Read => Rights::R,
            Self::Write => Rights::W,
        }
    }
}

/// What entries of all processors answer in the same way.
impl Entry {
    /// Whether it is present.
    #[inline]
    #[must_use]
    pub const fn present(self) -> bool {
        self.0 & Self::P != 0
    }

    /// The table that it leads to: an entry above the pages is written with the frame of one.
    #[inline(always)]
    #[must_use]
    pub const fn below(self) -> Table {
        Table(self.address())
    }

    /// Whether any of the bits in `mask` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, mask: u64) -> bool {
        self.0 & mask != 0
    }

    /// The status bits that a user's access leaves in the entry of a page.
    #[inline(always)]
    #[must_use]
    pub const fn marks(access: Access) -> u64 {
        Self::A | access.if_write(Self::D)
    }

    /// The status bits as rights: referenced is R and X, written is W (X.2 5.8).
    #[inline]
    #[must_use]
    pub const fn status(self) -> Rights {
        let referenced = if self.0 & Self::A != 0 { Rights::RX.0 } else { 0 };
        let written = if self.0 & Self::D != 0 { Rights::W.0 } else { 0 };
        Rights(referenced | written)
    }
}

/// One page of 512 words, a page table or its twin, by physical address. Who has one has read it in an
/// entry or has a frame that holds one; `arch` has tables of its own besides. The default is none.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Table(u64);

impl Table {
    /// The one at `address`: in a frame of memory's, or one that the processor's side keeps.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn at(address: u64) -> Self {
        Self(address)
    }

    /// Its physical address.
    #[inline(always)]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }

    #[inline]
    fn word(self, index: usize) -> &'static AtomicU64 {
        // SAFETY: a `Table` names a frame of the kernel's pool that holds a
        // table; `mem` gives the frame back only after the last reference to
        // the table is gone. The index is masked to the page. The physical map
        // covers the pool and is aligned.
        unsafe { &*phys_to_virt(self.0).cast::<AtomicU64>().add(index & 511) }
    }

    /// Entry number `index`.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> Entry {
        Entry(self.word(index).load(Relaxed))
    }

    /// Whether one of the [`TOGETHER`] entries from `index` on is present.
    #[inline]
    #[must_use]
    pub fn some(self, index: usize) -> bool {
        let mut all = 0;
        for at in index..index + TOGETHER {
            all |= self.get(at).0;
        }
        Entry(all).present()
    }

    /// Replaces an entry whose accessed and dirty bits do not matter.
    #[inline]
    pub fn set(self, index: usize, entry: Entry) {
        self.word(index).store(entry.0, Relaxed);
    }

    /// Empties an entry and returns what it was, with its last status bits.
    #[inline]
    pub fn take(self, index: usize) -> Entry {
        Entry(self.word(index).swap(0, Relaxed))
    }

    /// Clears `clear`, sets `set`, and returns the entry as it was.
    #[inline]
    pub fn change(self, index: usize, clear: u64, set: u64) -> Entry {
        let word = self.word(index);
        let old = if clear == 0 { word.load(Relaxed) } else { word.fetch_and(!clear, Relaxed) };
        if set != 0 {
            word.fetch_or(set, Relaxed);
        }
        Entry(old)
    }

    /// Sets the bits in `set`.
    #[inline]
    pub fn set_bits(self, index: usize, set: u64) {
        self.word(index).fetch_or(set, Relaxed);
    }

    /// Clears bits of an entry atomically.
    #[inline]
    pub fn clear_bits(self, index: usize, clear: u64) {
        self.word(index).fetch_and(!clear, Relaxed);
    }

    /// A plain word of a twin page.
    #[inline]
    #[must_use]
    pub fn word_at(self, index: usize) -> u64 {
        self.word(index).load(Relaxed)
    }

    /// Sets a plain word of a twin page.
    #[inline]
    pub fn set_word(self, index: usize, value: u64) {
        self.word(index).store(value, Relaxed);
    }

    /// Fills the table, which nothing refers to yet, with consecutive pages of `level`, the
    /// first of them `first`. Interrupts are let in, and only noted.
    pub fn fill(self, first: Entry, level: u32) {
        let (mut entry, step) = (first.0, Entry::step(level));
        for part in 0..4 {
            crate::arch::preemption::let_in();
            for index in 0..128 {
                self.word(part * 128 + index).store(entry, Relaxed);
                entry = entry.wrapping_add(step);
            }
        }
    }
}
