//! Areas: ranges of an address space with one origin and one set of rights, sorted and
//! disjoint; neighbours that are alike become one.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::row::Row;
use super::shared::SharedMemory;
use super::{USER_END, USER_START};
use crate::errno::Errno;
use crate::file::Open;
use crate::fs::inode::Inode;
use crate::machine::Access;
use crate::memory::Frame;

/// Linux's `vm.max_map_count`: most areas of a space.
pub const AREAS_MAX: usize = 65_530;
/// Areas that are taken out at once: as many as it takes little memory to remember.
const SOME: usize = 1024;
/// Most areas that a call adds.
const SPARE: usize = 4;
/// What stays free below a stack that grows, in bytes.
pub const GUARD_GAP: u64 = 256 << 12;

bitflags::bitflags! {
    /// What else is known of an area.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AreaFlags: u16 {
        /// Writes are seen by everybody who maps the same thing.
        const SHARED = 1;
        /// A stack: grows to lower addresses when touched there.
        const GROWS_DOWN = 2;
        /// `mlock`.
        const LOCKED = 4;
        /// `MADV_DONTFORK`.
        const DONT_FORK = 8;
        /// `MADV_WIPEONFORK`.
        const WIPE_ON_FORK = 16;
        /// `MADV_DONTDUMP`.
        const DONT_DUMP = 32;
        /// `MAP_NORESERVE`.
        const NO_RESERVE = 64;
        /// Of the system (vDSO): cannot be changed, only unmapped or moved.
        const SPECIAL = 128;
        /// On which node it is to be ([`super::policy`]).
        const POLICY = 0x3F00;
    }
}

/// Where an area's pages come from.
#[derive(Clone)]
pub enum Backing {
    /// Zeroes.
    Anonymous,
    /// Memory shared by the spaces that inherited it.
    Shared(Rc<SharedMemory>),
    /// A file.
    File {
        /// As opened; a mapping keeps it open.
        open: Rc<Open>,
        /// Its inode.
        inode: Rc<Inode>,
    },
    /// A frame of the system, with a name for `/proc/pid/maps`.
    Special(&'static str, Rc<Frame>),
}

impl Backing {
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Anonymous, Self::Anonymous) => true,
            (Self::Shared(one), Self::Shared(other)) => Rc::ptr_eq(one, other),
            (Self::File { open: one, .. }, Self::File { open: other, .. }) => {
                Rc::ptr_eq(one, other)
            }
            _ => false,
        }
    }

    /// Whether pages have a place (`offset`) in what backs them.
    fn has_offset(&self) -> bool {
        !matches!(self, Self::Anonymous)
    }
}

/// An area.
#[derive(Clone)]
pub struct Area {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What the program may do.
    pub access: Access,
    /// What `mprotect` may allow.
    pub may: Access,
    /// The rest.
    pub flags: AreaFlags,
    /// Origin of the pages.
    pub backing: Backing,
    /// Byte of the backing that is at `start`.
    pub offset: u64,
}

impl Area {
    /// Bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether there is nothing in it (never, in a list).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// Whether it is private and writable, what `RLIMIT_DATA` counts.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.access.contains(Access::WRITE)
            && !self.flags.intersects(AreaFlags::SHARED | AreaFlags::GROWS_DOWN)
    }

    /// Byte of the backing that is at `address`, inside (or at the end).
    #[must_use]
    pub fn offset_at(&self, address: u64) -> u64 {
        if self.backing.has_offset() { self.offset + (address - self.start) } else { 0 }
    }

    /// Whether `next` continues this area.
    fn continues(&self, next: &Self) -> bool {
        self.end == next.start
            && self.access == next.access
            && self.may == next.may
            && self.flags == next.flags
            && self.backing.same(&next.backing)
            && self.offset_at(self.end) == next.offset
    }

    /// The part from `start` to `end`, both inside.
    fn part(&self, start: u64, end: u64) -> Self {
        Self { start, end, offset: self.offset_at(start), ..self.clone() }
    }
}

/// The areas of a space.
#[derive(Default)]
pub struct Areas {
    list: Row,
}

impl Areas {
    /// All of them, in order.
    #[must_use]
    pub fn list(&self) -> &[Area] {
        &self.list
    }

    /// A copy.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn try_clone(&self) -> Result<Self, Errno> {
        let list = self.list.try_clone(SPARE).map_err(|_| Errno::ENOMEM)?;
        Ok(Self { list })
    }

    /// Makes room for what one call adds; `pay` is asked when that needs so many bytes more.
    ///
    /// # Errors
    /// `ENOMEM`, or what `pay` says.
    pub fn make_room(&mut self, pay: impl FnOnce(u64) -> Result<(), Errno>) -> Result<(), Errno> {
        if self.list.room() >= SPARE {
            return Ok(());
        }
        pay(self.bytes_taken().max(size_of::<[Area; SPARE]>() as u64))?;
        self.list.try_reserve(SPARE).map_err(|_| Errno::ENOMEM)
    }

    /// Bytes that the list takes.
    #[must_use]
    pub fn bytes_taken(&self) -> u64 {
        (self.list.capacity() * size_of::<Area>()) as u64
    }

    /// A copy of the areas that touch a range.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn copy_within(&self, start: u64, end: u64) -> Result<Vec<Area>, Errno> {
        let within = self.within(start, end);
        let mut copy = Vec::new();
        copy.try_reserve_exact(within.len()).map_err(|_| Errno::ENOMEM)?;
        copy.extend_from_slice(within);
        Ok(copy)
    }

    /// Number of the first area that ends behind `address`.
    fn first_behind(&self, address: u64) -> usize {
        self.list.partition_point(|area| area.end <= address)
    }

    /// The area at `address`.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Area> {
        self.list.get(self.first_behind(address)).filter(|area| area.start <= address)
    }

    /// The area at `address` or the next one above.
    #[must_use]
    pub fn at_or_above(&self, address: u64) -> Option<&Area> {
        self.list.get(self.first_behind(address))
    }

    /// The areas that touch a range.
    #[must_use]
    pub fn within(&self, start: u64, end: u64) -> &[Area] {
        let from = self.first_behind(start);
        let count = self.list[from..].partition_point(|area| area.start < end);
        &self.list[from..from + count]
    }

    /// Whether areas cover a range without a gap.
    #[must_use]
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        for area in self.within(start, end) {
            if area.start > at {
                return false;
            }
            at = area.end;
        }
        at >= end
    }

    /// Divides the area that has `address` inside.
    fn split(&mut self, address: u64) {
        let at = self.first_behind(address);
        if let Some(area) = self.list.get_mut(at).filter(|area| area.start < address) {
            let upper = area.part(address, area.end);
            area.end = address;
            self.list.insert(at + 1, upper);
        }
    }

    /// Joins area `at` to the one before, if they are alike.
    fn join(&mut self, at: usize) -> bool {
        let joins = at > 0 && at < self.list.len() && self.list[at - 1].continues(&self.list[at]);
        if joins {
            self.list[at - 1].end = self.list[at].end;
            self.list.remove(at);
        }
        joins
    }

    /// Adds an area where nothing is.
    pub fn insert(&mut self, area: Area) {
        let at = self.first_behind(area.start);
        if at > 0 && self.list[at - 1].continues(&area) {
            self.list[at - 1].end = area.end;
            self.join(at);
            return;
        }
        self.list.insert(at, area);
        self.join(at + 1);
    }

    /// Where the first part of a range ends that has no more areas than [`SOME`].
    #[must_use]
    pub fn end_of_some(&self, start: u64, end: u64) -> u64 {
        if self.list.len() <= SOME {
            return end;
        }
        self.within(start, end).get(SOME).map_or(end, |next| next.start)
    }

    /// Takes a range out; what was in it.
    pub fn remove(&mut self, start: u64, end: u64) -> Vec<Area> {
        self.split(start);
        self.split(end);
        let from = self.first_behind(start);
        let count = self.list[from..].partition_point(|area| area.start < end);
        self.list.take(from, count)
    }

    /// Changes the areas of a range.
    pub fn change(&mut self, start: u64, end: u64, mut change: impl FnMut(&mut Area)) {
        self.split(start);
        self.split(end);
        let from = self.first_behind(start);
        let mut at = from;
        while at < self.list.len() && self.list[at].start < end {
            change(&mut self.list[at]);
            at += 1;
        }
        // With the one before and the one behind.
        self.list.merge(from.saturating_sub(1), at + 1, |one, next| {
            let joins = one.continues(next);
            if joins {
                one.end = next.end;
            }
            joins
        });
    }

    /// Lets the stack that begins at `old` begin at `new`, below.
    pub fn grow_down(&mut self, old: u64, new: u64) {
        let at = self.first_behind(old);
        if let Some(area) = self.list.get_mut(at).filter(|area| area.start == old) {
            area.start = new;
        }
    }

    /// First address of the highest free range of `len` bytes below `top`.
    #[must_use]
    pub fn gap_below(&self, top: u64, len: u64) -> Option<u64> {
        let mut end = top.min(USER_END);
        for area in self.list.iter().rev() {
            if area.end <= end && end - area.end >= len {
                return Some(end - len);
            }
            let guard = if area.flags.contains(AreaFlags::GROWS_DOWN) { GUARD_GAP } else { 0 };
            end = end.min(area.start.saturating_sub(guard));
        }
        (end >= len && end - len >= USER_START).then(|| end - len)
    }

    /// First address of the lowest free range of `len` bytes from `bottom` on.
    #[must_use]
    pub fn gap_above(&self, bottom: u64, len: u64) -> Option<u64> {
        let mut start = bottom.max(USER_START);
        for area in self.list.iter() {
            let guard = if area.flags.contains(AreaFlags::GROWS_DOWN) { GUARD_GAP } else { 0 };
            if area.end > start && area.start.saturating_sub(guard).saturating_sub(start) >= len {
                return Some(start);
            }
            start = start.max(area.end);
        }
        (USER_END.saturating_sub(start) >= len).then_some(start)
    }

    /// Bytes of all areas for which `test` holds.
    pub fn bytes(&self, test: impl Fn(&Area) -> bool) -> u64 {
        self.list.iter().filter(|area| test(area)).map(Area::len).sum()
    }
}
