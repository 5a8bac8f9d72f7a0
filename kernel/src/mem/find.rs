//! Finding what is behind an address in a space's page tables, and the nodes beside it.
//!
//! Everybody in the memory room looks things up here; nothing changes.

use super::budget::Budget;
use super::frames::Info;
use super::node::NodeRef;
use super::space::SpaceRef;
use crate::arch::paging::{Entry, ROOT, Table, index, shift, span};
use crate::arch::table_page::TOGETHER;

/// A present page.
#[derive(Clone, Copy)]
pub(crate) struct Leaf {
    pub table: Table,
    pub index: usize,
    pub level: u32,
    pub entry: Entry,
    pub node: Option<NodeRef>,
}

impl Leaf {
    /// Physical address of the page's first byte.
    #[inline]
    pub(crate) fn phys(&self) -> u64 {
        self.entry.address() & !(span(self.level) - 1)
    }
}

/// What a lookup finds.
pub(crate) enum Slot {
    /// A page.
    Leaf(Leaf),
    /// Nothing: the entry of this level, in this table, is not present.
    Empty { level: u32, table: Table },
}

/// Where the way to the 4 KiB pages at an address ends.
pub(crate) enum Way {
    /// At a table of them.
    Pages(Table),
    /// Above: the entry of this level, in this table, is not present.
    Hole { level: u32, table: Table },
    /// At a large page.
    Large,
}

/// The way to the 4 KiB pages at `vaddr`. Written out, for this is what most operations begin with.
#[inline]
pub(crate) fn way(space: SpaceRef, vaddr: u64) -> Way {
    let top = space.root_table();
    let upper = top.get(index(vaddr, 3));
    if !upper.present() {
        return Way::Hole { level: 3, table: top };
    }
    let table = upper.below();
    let middle = table.get(index(vaddr, 2));
    if !middle.is_table() {
        return Way::short(middle, 2, table);
    }
    let table = middle.below();
    let lower = table.get(index(vaddr, 1));
    if !lower.is_table() {
        return Way::short(lower, 1, table);
    }
    Way::Pages(lower.below())
}

impl Way {
    #[inline(always)]
    fn short(entry: Entry, level: u32, table: Table) -> Self {
        if entry.present() { Self::Large } else { Self::Hole { level, table } }
    }
}

/// The table of 4 KiB pages for `vaddr`, if there is one.
#[inline]
pub(crate) fn pages(space: SpaceRef, vaddr: u64) -> Option<Table> {
    match way(space, vaddr) {
        Way::Pages(table) => Some(table),
        Way::Hole { .. } | Way::Large => None,
    }
}

/// The large page at `vaddr` that was mapped as such: no part of a larger one.
#[inline]
pub(crate) fn large(space: SpaceRef, vaddr: u64) -> Option<Leaf> {
    let upper = space.root_table().get(index(vaddr, 3));
    if !upper.present() {
        return None;
    }
    let mut found = (upper.below(), 2);
    let middle = found.0.get(index(vaddr, 2));
    if middle.is_table() {
        found = (middle.below(), 1);
    }
    let (table, level) = found;
    let at = index(vaddr, level);
    let entry = table.get(at);
    if !entry.present() || entry.is_table() {
        return None;
    }
    let node = node_at(Info::of(table.address()).twin_table(), at)?;
    Some(Leaf { table, index: at, level, entry, node: Some(node) })
}

/// The 4 KiB page at `vaddr` that was mapped as such: no split page, no kernel page.
#[inline]
pub(crate) fn small(table: Table, vaddr: u64) -> Option<Leaf> {
    let at = index(vaddr, 0);
    let entry = table.get(at);
    let node = node_at(Info::of(table.address()).twin_table(), at)?;
    Some(Leaf { table, index: at, level: 0, entry, node: Some(node) })
}

/// Looks up `vaddr`, a user address.
#[inline]
pub(crate) fn find(space: SpaceRef, vaddr: u64) -> Slot {
    find_in(space, vaddr, pages(space, vaddr))
}

/// Looks up `vaddr`, for which [`pages`] has found `table`.
#[inline]
pub(crate) fn find_in(space: SpaceRef, vaddr: u64, table: Option<Table>) -> Slot {
    if let Some(table) = table {
        if let Some(leaf) = small(table, vaddr) {
            return Slot::Leaf(leaf);
        }
        if !table.get(index(vaddr, 0)).present() {
            return Slot::Empty { level: 0, table };
        }
    }
    find_any(space, vaddr)
}

/// Looks up pages of any size, split ones, and the kernel's.
fn find_any(space: SpaceRef, vaddr: u64) -> Slot {
    let mut table = space.root_table();
    let mut inherited = 0;
    let mut level = ROOT;
    loop {
        let at = index(vaddr, level);
        let entry = table.get(at);
        if !entry.present() {
            return Slot::Empty { level, table };
        }
        if entry.is_leaf(level) {
            let own = if entry.has(Entry::KERNEL) { 0 } else { twin_word(table, at) };
            let word = if own == 0 { inherited } else { own };
            // SAFETY: a word of a twin, as in `node_at`.
            let node = unsafe { NodeRef::from_word(word) };
            let node = node.filter(|_| !entry.has(Entry::KERNEL));
            return Slot::Leaf(Leaf { table, index: at, level, entry, node });
        }
        if entry.has(Entry::INHERIT) {
            inherited = twin_word(table, at);
        }
        table = entry.below();
        level = level.wrapping_sub(1) & 3;
    }
}

/// The table of `level` on the way to `vaddr`, if there is one.
pub(crate) fn at_level(space: SpaceRef, vaddr: u64, level: u32) -> Option<Table> {
    let mut table = space.root_table();
    for at in (level + 1..=ROOT).rev() {
        let entry = table.get(index(vaddr, at));
        if !entry.present() || entry.is_leaf(at) {
            return None;
        }
        table = entry.below();
    }
    Some(table)
}

/// Entries of a table.
pub(crate) const ENTRIES: usize = 512;
/// How many of them are looked at for one unit of a step's budget, eight of them in some 27 instructions.
const ENTRIES_PER_UNIT: usize = 4;

/// The address behind the empty entry of `level` in `table` at `vaddr`, and behind the empty
/// ones that follow it in the same table up to `end`, as far as `budget` pays for looking.
#[inline]
pub(crate) fn behind_empty(
    table: Table,
    level: u32,
    vaddr: u64,
    end: u64,
    budget: &mut Budget,
) -> u64 {
    let next = (vaddr | (span(level) - 1)) + 1;
    if next >= end { next } else { behind_all(table, level, next, end, budget) }
}

/// The address behind the empty entries from `vaddr` on; they are not looked at beyond the table.
#[inline(never)]
fn behind_all(table: Table, level: u32, vaddr: u64, end: u64, budget: &mut Budget) -> u64 {
    let first = index(vaddr - 1, level) + 1;
    let wanted = ((end - 1 - vaddr) >> shift(level)) as usize + 1;
    let paid = budget.left() as usize * ENTRIES_PER_UNIT;
    let last = first + paid.min(wanted).min(ENTRIES - first);
    let mut at = first;
    while at + TOGETHER <= last && !table.some(at) {
        at += TOGETHER;
    }
    while at < last && !table.get(at).present() {
        at += 1;
    }
    budget.spend(((at - first) / ENTRIES_PER_UNIT) as u32);
    vaddr + (at - first) as u64 * span(level)
}

/// The node that `twin`, which stands beside a table, has for entry number `at`.
#[inline(always)]
pub(crate) fn node_at(twin: Table, at: usize) -> Option<NodeRef> {
    // SAFETY: twins are zero or hold the words of nodes, which are taken out before the slots
    // are freed; a table without a twin is never asked.
    unsafe { NodeRef::from_word(twin.word_at(at)) }
}

#[inline]
pub(crate) fn twin_word(table: Table, at: usize) -> u64 {
    let info = Info::of(table.address());
    if info.twin() == 0 { 0 } else { info.twin_table().word_at(at) }
}
