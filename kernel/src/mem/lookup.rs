//! What is behind a user address: as the processor would find it, which marks the page,
//! and as the page tables have it.

use super::node::NodeRef;
use super::space::SpaceRef;
use super::table;
use crate::arch::paging::{Entry, ROOT, Table, index, shift, span};
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

impl SpaceRef {
    /// Looks up a user address like the processor would: needs the page present
    /// (and writable if `write`), sets its accessed (and dirty) bits.
    #[inline(always)]
    #[must_use]
    pub fn resolve(self, vaddr: u64, write: bool) -> Option<Resolved> {
        if vaddr >= USER_END {
            return None;
        }
        // Level by level, so that all shifts and masks are constants.
        let entry = self.root_table().get(index(vaddr, ROOT));
        let table = Table(entry.admits(write).then_some(entry)?.address());
        let entry = table.get(index(vaddr, 2));
        if !entry.admits(write) || entry.is_leaf(2) {
            return leaf::<2>(table, entry, vaddr, write);
        }
        let table = Table(entry.address());
        let entry = table.get(index(vaddr, 1));
        if !entry.admits(write) || entry.is_leaf(1) {
            return leaf::<1>(table, entry, vaddr, write);
        }
        let table = Table(entry.address());
        leaf::<0>(table, table.get(index(vaddr, 0)), vaddr, write)
    }

    /// The frame behind the kernel's own page at `vaddr`, a user address; none for users' pages.
    #[must_use]
    pub fn kernel_page(self, vaddr: u64) -> Option<u64> {
        let entry = table::pages(self, vaddr)?.get(index(vaddr, 0));
        (entry.present() && entry.has(Entry::KERNEL)).then_some(entry.address())
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

/// The end of `resolve`: `entry` of `table` maps `vaddr` at `LEVEL`, or nothing.
#[inline(always)]
fn leaf<const LEVEL: u32>(table: Table, entry: Entry, vaddr: u64, write: bool) -> Option<Resolved> {
    if !entry.admits(write) {
        return None;
    }
    let mark = Entry::marks(write);
    if entry.0 & mark != mark {
        table.set_bits(index(vaddr, LEVEL), mark);
    }
    let inside = vaddr & (span(LEVEL) - 1);
    Some(Resolved {
        phys: entry.address() & !(span(LEVEL) - 1) | inside,
        bytes_left_in_page: span(LEVEL) - inside,
        is_device: entry.has(Entry::UNCACHED),
    })
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
