//! What is behind a user address: as the processor would find it, which marks the page,
//! and as the page tables have it.

use super::node::NodeRef;
use super::space::SpaceRef;
use super::table;
use crate::arch::paging::{Access, Entry, ROOT, Table, index, shift, span};
use abi::Rights;
use abi::layout::USER_END;

/// The physical memory behind a user address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The physical address.
    pub phys: u64,
    /// Bytes from there to the end of the page.
    pub bytes_left_in_page: u64,
    /// It is not RAM: the kernel's map of memory may not reach it, and reading it may act.
    pub is_device: bool,
}

/// What is left of a page of memory that was looked up. Only a look-up makes one, so whoever has
/// one may read there, or write if it looked up for writing, as long as the space stays as it is.
#[derive(Clone, Copy)]
pub struct Span {
    phys: u64,
    left: u64,
}

impl Span {
    /// Nothing.
    pub const NONE: Self = Self { phys: 0, left: 0 };

    /// How many bytes.
    #[inline(always)]
    #[must_use]
    pub const fn left(self) -> u64 {
        self.left
    }

    /// The physical address of the first of them.
    #[inline(always)]
    pub(crate) const fn phys(self) -> u64 {
        self.phys
    }

    /// Goes on behind the first `count` bytes.
    ///
    /// # Safety
    /// There are as many.
    #[inline(always)]
    pub(crate) unsafe fn advance(&mut self, count: u64) {
        self.phys += count;
        self.left -= count;
    }
}

impl Resolved {
    /// The rest of the page, if it is memory.
    #[inline(always)]
    #[must_use]
    pub fn memory(self) -> Option<Span> {
        let span = Span { phys: self.phys, left: self.bytes_left_in_page };
        (!self.is_device).then_some(span)
    }
}

impl SpaceRef {
    /// Looks up a user address like the processor would: needs the page present
    /// (and writable to write), sets its accessed (and dirty) bits.
    ///
    /// Strings are near the last ones more often than not: the space knows the last table of 2 MiB
    /// entries that was walked, which restricts nothing, as all above it.
    #[inline(always)]
    #[must_use]
    pub fn resolve(self, vaddr: u64, access: Access) -> Option<Resolved> {
        let near = self.near();
        if near.0.get() != piece(vaddr) {
            return self.resolve_far(vaddr, access);
        }
        low(near.1.get(), vaddr, access)
    }

    #[cold]
    fn resolve_far(self, vaddr: u64, access: Access) -> Option<Resolved> {
        if vaddr >= USER_END {
            return None;
        }
        // Level by level, so that all shifts and masks are constants.
        let entry = self.root_table().get(index(vaddr, ROOT));
        let table = entry.admits(access).then_some(entry)?.below();
        let entry = table.get(index(vaddr, 2));
        if !entry.admits(access) || entry.is_leaf(2) {
            return leaf::<2>(table, entry, vaddr, access);
        }
        self.near().0.set(piece(vaddr));
        self.near().1.set(entry.below());
        low(entry.below(), vaddr, access)
    }

    /// A table is about to go: whatever table was walked last is looked for anew.
    pub(crate) fn forget_near(self) {
        self.near().0.set(0);
    }

    /// Whether the table that was walked last, if one is known, is the one on the way; for checks.
    pub(super) fn is_near_right(self) -> bool {
        let (near, table) = (self.near().0.get(), self.near().1.get());
        let Some(vaddr) = near.checked_sub(1).map(|number| number << shift(2)) else { return true };
        let entry = self.root_table().get(index(vaddr, ROOT));
        let below = |entry: Entry| entry.below().get(index(vaddr, 2));
        entry.present() && below(entry).is_table() && below(entry).below() == table
    }

    /// The frame behind the kernel's own page at `vaddr`, a user address; none for users' pages
    /// and A-stacks.
    #[must_use]
    pub fn kernel_page(self, vaddr: u64) -> Option<u64> {
        self.any_kernel_page(vaddr).filter(|page| !page.1).map(|page| page.0)
    }

    /// The frame behind the page of A-stacks at `vaddr`.
    #[must_use]
    pub fn a_stack_page(self, vaddr: u64) -> Option<u64> {
        self.any_kernel_page(vaddr).filter(|page| page.1).map(|page| page.0)
    }

    /// The frame behind either of them, and whether it holds A-stacks.
    #[inline(always)]
    #[must_use]
    pub fn any_kernel_page(self, vaddr: u64) -> Option<(u64, bool)> {
        let entry = table::pages(self, vaddr)?.get(index(vaddr, 0));
        let is_there = entry.present() && entry.has(Entry::KERNEL);
        is_there.then(|| (entry.address(), entry.has(Entry::A_STACK)))
    }

    /// The page at `vaddr` as the page table has it: for checks and tests.
    #[must_use]
    pub fn page(self, vaddr: u64) -> Option<Page> {
        if vaddr >= USER_END {
            return None;
        }
        match table::find(self, vaddr) {
            table::Slot::Leaf(leaf) => Some(Page {
                phys: leaf.phys() + (vaddr & (span(leaf.level) - 1)),
                bits: shift(leaf.level),
                rights: leaf.entry.rights(),
                node: leaf.node,
            }),
            table::Slot::Empty { .. } => None,
        }
    }
}

/// Which piece of 1 GiB `vaddr` is in, counted from 1.
#[inline(always)]
const fn piece(vaddr: u64) -> u64 {
    (vaddr >> shift(2)) + 1
}

/// The lower half of `resolve`: from the table of 2 MiB entries on.
#[inline(always)]
fn low(table: Table, vaddr: u64, access: Access) -> Option<Resolved> {
    let entry = table.get(index(vaddr, 1));
    if !entry.admits(access) || entry.is_leaf(1) {
        return leaf::<1>(table, entry, vaddr, access);
    }
    let table = entry.below();
    leaf::<0>(table, table.get(index(vaddr, 0)), vaddr, access)
}

/// The end of `resolve`: `entry` of `table` maps `vaddr` at `LEVEL`, or nothing.
#[inline(always)]
fn leaf<const LEVEL: u32>(
    table: Table,
    entry: Entry,
    vaddr: u64,
    access: Access,
) -> Option<Resolved> {
    let is_device =
        !entry.is_at_hand(access) && first_access(table, entry, LEVEL, (vaddr, access))?;
    let inside = vaddr & (span(LEVEL) - 1);
    Some(Resolved {
        phys: entry.address() & !(span(LEVEL) - 1) | inside,
        bytes_left_in_page: span(LEVEL) - inside,
        is_device,
    })
}

/// Of an entry that admits nobody, or nobody has used like that, or of a device: whether it is
/// a device's, if it admits the access.
#[cold]
fn first_access(
    table: Table,
    entry: Entry,
    level: u32,
    (vaddr, access): (u64, Access),
) -> Option<bool> {
    if !entry.admits(access) {
        return None;
    }
    table.set_bits(index(vaddr, level), Entry::marks(access));
    Some(entry.has(Entry::UNCACHED))
}

/// One page as [`SpaceRef::page`] found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// Physical address of the byte asked for.
    pub phys: u64,
    /// Log2 of the page's size.
    pub bits: u32,
    /// What the user may do.
    pub rights: Rights,
    /// Its mapping node; none for the kernel's pages.
    pub node: Option<NodeRef>,
}
