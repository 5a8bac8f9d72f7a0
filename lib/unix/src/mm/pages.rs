//! The pages of an address space that are there: page number → frame and what is known
//! about it. A sorted list of leaves of 64 pages each, with a small cache in front, so that
//! a look costs about fifteen instructions and a copy (fork) is two block copies.

use alloc::vec::Vec;
use core::cell::Cell;

use super::USER_END;
use crate::errno::Errno;
use crate::memory::{FrameId, PAGE, PAGE_BITS};

/// Pages of a leaf.
const LEAF: usize = 64;
/// Log2 of the bytes a leaf covers.
const LEAF_BITS: u32 = PAGE_BITS + 6;
/// What a leaf costs, with its place in the index.
const LEAF_BYTES: u64 = (size_of::<Leaf>() + 16) as u64;
/// Entries of the cache of leaves.
const CACHE: usize = 16;
/// No leaf has this key: it lies above all user addresses.
const NO_KEY: u32 = u32::MAX;

/// A page that is there. Bits 0 to 6 are flags, the rest is the frame's number
/// ([`crate::memory::FRAMES_MAX`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Page(u32);

impl Page {
    /// The program could read it now.
    pub const READABLE: u32 = 1;
    /// The program could write it now: nothing to copy first.
    pub const WRITABLE: u32 = 2;
    /// The machine may have it mapped.
    pub const MAPPED: u32 = 4;
    /// The machine may have it mapped for writing.
    pub const MAPPED_WRITE: u32 = 8;
    /// Of a shared mapping: never copied on write.
    pub const SHARED: u32 = 16;
    /// There (an entry of zero is no page).
    const PRESENT: u32 = 32;
    /// Written by either side after a fork had shared it: the next fork copies it at once.
    pub const PARTED: u32 = 64;
    const FLAGS: u32 = 127;

    /// A page in `frame`.
    #[must_use]
    pub const fn new(frame: FrameId, flags: u32) -> Self {
        Self(frame.0 << 7 | Self::PRESENT | flags)
    }

    /// Its frame.
    #[must_use]
    pub const fn frame(self) -> FrameId {
        FrameId(self.0 >> 7)
    }

    /// Whether all these flags are set.
    #[must_use]
    pub const fn has(self, flags: u32) -> bool {
        self.0 & flags == flags
    }

    /// The page with these flags set.
    #[must_use]
    pub const fn with(self, flags: u32) -> Self {
        Self(self.0 | flags)
    }

    /// The page with these flags clear.
    #[must_use]
    pub const fn without(self, flags: u32) -> Self {
        Self(self.0 & !(flags & Self::FLAGS & !Self::PRESENT))
    }
}

#[derive(Clone, Copy)]
struct Leaf {
    key: u32,
    /// Which entries are pages.
    present: u64,
    pages: [Page; LEAF],
}

/// The pages.
#[derive(Default)]
pub struct PageMap {
    /// (key, number of the leaf), sorted.
    index: Vec<(u32, u32)>,
    leaves: Vec<Leaf>,
    /// Leaves without pages.
    spare: Vec<u32>,
    /// How many have lost their last page since the index was last rid of such: they may still be in it.
    emptied: usize,
    cache: Cache,
    resident: usize,
}

#[derive(Clone)]
struct Cache([Cell<(u32, u32)>; CACHE]);

impl Default for Cache {
    fn default() -> Self {
        Self([const { Cell::new((NO_KEY, 0)) }; CACHE])
    }
}

/// Bits `from..to` of a leaf.
const fn mask(from: usize, to: usize) -> u64 {
    (!0 << from) & (!0 >> (LEAF - to))
}

impl PageMap {
    fn leaf(&self, key: u32) -> Option<usize> {
        let cell = &self.cache.0[key as usize % CACHE];
        let (cached, leaf) = cell.get();
        if cached == key {
            return Some(leaf as usize);
        }
        let at = self.index.binary_search_by_key(&key, |entry| entry.0).ok()?;
        cell.set(self.index[at]);
        Some(self.index[at].1 as usize)
    }

    fn place(&self, address: u64) -> Option<(usize, usize)> {
        if address >= USER_END {
            return None;
        }
        let leaf = self.leaf((address >> LEAF_BITS) as u32)?;
        Some((leaf, (address >> PAGE_BITS) as usize % LEAF))
    }

    /// The page at `address`.
    #[inline]
    #[must_use]
    pub fn get(&self, address: u64) -> Option<Page> {
        let (leaf, page) = self.place(address)?;
        let page = self.leaves.get(leaf)?.pages[page];
        (page.0 != 0).then_some(page)
    }

    /// Replaces the page at `address`, if there is one, by what `change` makes of it.
    pub fn update(&mut self, address: u64, change: impl FnOnce(Page) -> Page) {
        let Some((leaf, page)) = self.place(address) else { return };
        let Some(page) = self.leaves.get_mut(leaf).map(|leaf| &mut leaf.pages[page]) else {
            return;
        };
        if page.0 != 0 {
            *page = change(*page);
        }
    }

    /// Puts a page at `address` (below [`USER_END`]); the one that was there. `pay` is asked
    /// when that needs so many bytes more.
    ///
    /// # Errors
    /// `ENOMEM`, or what `pay` says: nothing has changed.
    pub fn insert(
        &mut self,
        address: u64,
        new: Page,
        pay: impl FnOnce(u64) -> Result<(), Errno>,
    ) -> Result<Option<Page>, Errno> {
        let key = (address >> LEAF_BITS) as u32;
        let leaf = match self.leaf(key) {
            Some(leaf) => leaf,
            None => self.add_leaf(key, pay)?,
        };
        let page = (address >> PAGE_BITS) as usize % LEAF;
        let leaf = &mut self.leaves[leaf];
        let old = core::mem::replace(&mut leaf.pages[page], new);
        leaf.present |= 1 << page;
        self.resident += usize::from(old.0 == 0);
        Ok((old.0 != 0).then_some(old))
    }

    #[cold]
    fn add_leaf(
        &mut self,
        key: u32,
        pay: impl FnOnce(u64) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        self.index.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        if self.spare.is_empty() && self.emptied > 0 {
            self.sweep();
        }
        if self.spare.is_empty() {
            self.leaves.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
            pay(LEAF_BYTES)?;
        }
        let empty = Leaf { key, present: 0, pages: [Page(0); LEAF] };
        let number = match self.spare.pop() {
            Some(number) => {
                self.leaves[number as usize] = empty;
                number as usize
            }
            None => {
                self.leaves.push(empty);
                self.leaves.len() - 1
            }
        };
        let at = self.index.partition_point(|entry| entry.0 < key);
        self.index.insert(at, (key, number as u32));
        Ok(number)
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.leaves.len() as u64 * LEAF_BYTES
    }

    /// Makes sure that the pages of a range can be put somewhere else; bytes that this takes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn reserve(&mut self, start: u64, end: u64) -> Result<u64, Errno> {
        // A leaf's pages go into two at most.
        let more = 2 * self.range(start, end).count();
        self.index.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
        self.leaves.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
        Ok(more as u64 * LEAF_BYTES)
    }

    /// A copy.
    fn try_clone(&self) -> Result<Self, Errno> {
        fn copy<T: Copy>(from: &[T]) -> Result<Vec<T>, Errno> {
            let mut to = Vec::new();
            to.try_reserve_exact(from.len()).map_err(|_| Errno::ENOMEM)?;
            to.extend_from_slice(from);
            Ok(to)
        }
        Ok(Self {
            index: copy(&self.index)?,
            leaves: copy(&self.leaves)?,
            spare: copy(&self.spare)?,
            emptied: self.emptied,
            cache: self.cache.clone(),
            resident: self.resident,
        })
    }

    /// Visits the leaves that touch a range: (leaf, its first address, bits in the range).
    fn range(&self, start: u64, end: u64) -> impl Iterator<Item = (usize, u64, u64)> + use<'_> {
        let first = (start >> LEAF_BITS) as u32;
        let at = self.index.partition_point(|entry| entry.0 < first);
        self.index[at..].iter().map_while(move |&(key, leaf)| {
            let base = u64::from(key) << LEAF_BITS;
            let page = |address: u64| {
                (address.saturating_sub(base) >> PAGE_BITS).min(LEAF as u64) as usize
            };
            let to = page(end);
            (to > 0).then(|| (leaf as usize, base, mask(page(start), to)))
        })
    }

    /// The first page of a range.
    #[must_use]
    pub fn first_in(&self, start: u64, end: u64) -> Option<u64> {
        self.range(start, end).find_map(|(leaf, base, bits)| {
            let page = (self.leaves[leaf].present & bits).trailing_zeros() as usize;
            (page < LEAF).then(|| base + (page * PAGE) as u64)
        })
    }

    /// Calls `each(address, page)` for the pages of a range, in order.
    pub fn for_each(&self, start: u64, end: u64, mut each: impl FnMut(u64, Page)) {
        for (leaf, base, bits) in self.range(start, end) {
            let leaf = &self.leaves[leaf];
            let mut left = leaf.present & bits;
            while left != 0 {
                let page = left.trailing_zeros() as usize;
                left &= left - 1;
                each(base + (page * PAGE) as u64, leaf.pages[page]);
            }
        }
    }

    /// Replaces each page of a range by what `change` makes of it.
    pub fn change(&mut self, start: u64, end: u64, mut change: impl FnMut(u64, Page) -> Page) {
        let leaves: Vec<_> = self.range(start, end).collect();
        for (leaf, base, bits) in leaves {
            let leaf = &mut self.leaves[leaf];
            let mut left = leaf.present & bits;
            while left != 0 {
                let page = left.trailing_zeros() as usize;
                left &= left - 1;
                leaf.pages[page] = change(base + (page * PAGE) as u64, leaf.pages[page]);
            }
        }
    }

    /// Takes the pages out of a range, calling `each(address, page)`.
    pub fn remove(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, Page)) {
        let leaves: Vec<_> = self.range(start, end).collect();
        for (number, base, bits) in leaves {
            let leaf = &mut self.leaves[number];
            let mut left = leaf.present & bits;
            self.resident -= left.count_ones() as usize;
            self.emptied += usize::from(left != 0 && left == leaf.present);
            leaf.present &= !bits;
            while left != 0 {
                let page = left.trailing_zeros() as usize;
                left &= left - 1;
                each(base + (page * PAGE) as u64, core::mem::take(&mut leaf.pages[page]));
            }
        }
        if self.emptied > self.index.len() / 2 {
            self.sweep();
        }
    }

    /// Takes leaves without pages out of the index: many at once, or it would take long when many go one after the other.
    fn sweep(&mut self) {
        let Self { index, leaves, spare, cache, .. } = self;
        index.retain(|(key, number)| {
            let stays = leaves[*number as usize].present != 0;
            if !stays {
                cache.0[*key as usize % CACHE].set((NO_KEY, 0));
                spare.push(*number);
            }
            stays
        });
        self.emptied = 0;
    }

    /// Calls `each` for every page, in no order: for the end of the space.
    pub fn each_frame(&self, mut each: impl FnMut(Page)) {
        for leaf in &self.leaves {
            let mut left = leaf.present;
            while left != 0 {
                let page = left.trailing_zeros() as usize;
                left &= left - 1;
                each(leaf.pages[page]);
            }
        }
    }

    /// Replaces every page, in no order, by what `change(address, page)` makes of it; returns a
    /// copy with what it makes for the copy.
    ///
    /// # Errors
    /// `ENOMEM`: nothing has changed.
    pub fn fork(
        &mut self,
        mut change: impl FnMut(u64, Page) -> (Page, Page),
    ) -> Result<Self, Errno> {
        let mut copy = self.try_clone()?;
        for (leaf, twin) in self.leaves.iter_mut().zip(&mut copy.leaves) {
            let base = u64::from(leaf.key) << LEAF_BITS;
            let mut left = leaf.present;
            while left != 0 {
                let page = left.trailing_zeros() as usize;
                left &= left - 1;
                let address = base + (page * PAGE) as u64;
                (leaf.pages[page], twin.pages[page]) = change(address, leaf.pages[page]);
            }
        }
        Ok(copy)
    }

    /// Bit `n`: a page is at `address + n` pages, for `n` below 16; `address` is a multiple
    /// of 16 pages.
    #[must_use]
    pub fn window(&self, address: u64) -> u16 {
        match self.place(address) {
            Some((leaf, page)) => (self.leaves[leaf].present >> page) as u16,
            None => 0,
        }
    }

    /// Replaces those pages of [`Self::window`] whose bits are set by what `change` makes of them.
    pub fn change_window(
        &mut self,
        address: u64,
        bits: u16,
        mut change: impl FnMut(u64, Page) -> Page,
    ) {
        let Some((leaf, first)) = self.place(address) else { return };
        let leaf = &mut self.leaves[leaf];
        let mut left = bits & (leaf.present >> first) as u16;
        let Some(pages) = leaf.pages.get_mut(first..first + 16) else { return };
        while left != 0 {
            let number = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Some(page) = pages.get_mut(number) {
                *page = change(address + (number * PAGE) as u64, *page);
            }
        }
    }

    /// Number of pages.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.resident
    }
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
