//! A space's page tables: entering, removing and splitting pages; `find.rs` finds them.
//!
//! Beside every table that holds leaf entries there is a *twin* page with the
//! mapping node of each of them; `frames::Info` of the table finds it. After a
//! split, the new small entries have no node of their own in their twin; they
//! inherit the large page's node, which stays in the twin of the table above
//! (marked by `Entry::INHERIT` there). Tables without entries are freed at once.

pub(crate) use super::find::{
    ENTRIES, Leaf, Slot, Way, at_level, behind_empty, find, find_in, large, node_at, pages,
    twin_word, way,
};
use super::frames::{self, Info, PhysFrame};
use super::node::NodeRef;
use super::quiesce::quiet;
use super::quota::NoMemory;
use super::space::SpaceRef;
use super::tlb;
use crate::arch::paging::{Entry, ROOT, Table, index};

/// The table of `level` on the way to `vaddr`; makes the missing ones. No page
/// larger than `span(level)` is in the way. For pages it has a twin.
#[inline]
pub(crate) fn ensure(space: SpaceRef, vaddr: u64, level: u32) -> Result<Table, NoMemory> {
    if level == 0
        && let Some(table) = pages(space, vaddr)
    {
        return Ok(table);
    }
    ensure_any(space, vaddr, level)
}

fn ensure_any(space: SpaceRef, vaddr: u64, level: u32) -> Result<Table, NoMemory> {
    let mut table = space.root_table();
    let mut at = ROOT;
    while at > level {
        let entry = table.get(index(vaddr, at));
        table = if entry.present() {
            entry.below()
        } else {
            match add_table(space, table, index(vaddr, at), at) {
                Ok(below) => below,
                Err(error) => {
                    prune(space, vaddr, at);
                    return Err(error);
                }
            }
        };
        at -= 1;
    }
    if Info::of(table.address()).twin() == 0 {
        add_twin(space, table).inspect_err(|_| prune(space, vaddr, level))?;
    }
    Ok(table)
}

#[cold]
fn add_table(space: SpaceRef, above: Table, at: usize, level: u32) -> Result<Table, NoMemory> {
    let frame = space.quota().take_zeroed_frame()?;
    space.count_tables(1);
    Info::of(frame.address()).init(0, 0);
    let entry = Entry::table(frame.address());
    if level == ROOT {
        space.root().link(at, entry)
    } else {
        above.set(at, entry)
    }
    let info = Info::of(above.address());
    if level < ROOT && info.twin() != 0 {
        info.twin_table().set_word(at, 0);
    }
    info.one_more();
    Ok(Table::of(frame))
}

#[cold]
fn add_twin(space: SpaceRef, table: Table) -> Result<(), NoMemory> {
    let frame = space.quota().take_zeroed_frame()?;
    space.count_tables(1);
    Info::of(table.address()).set_twin(frame.address());
    Ok(())
}

/// Enters a page into an empty slot of a table from [`ensure`] (or replaces a kernel page).
#[inline(always)] // a call would be a quarter of it
pub(crate) fn put(table: Table, at: usize, entry: Entry, node: Option<NodeRef>) {
    let info = Info::of(table.address());
    info.twin_table().set_word(at, node.map_or(0, NodeRef::word));
    if !table.get(at).present() {
        info.one_more();
    }
    table.set(at, entry);
}

/// Frees the empty tables on the way to `vaddr`, from that of `level` upward.
pub(crate) fn prune(space: SpaceRef, vaddr: u64, level: u32) {
    quiet(space);
    let mut tables = [space.root_table(); 4];
    let mut at = ROOT;
    while at > level {
        let entry = tables[at as usize & 3].get(index(vaddr, at));
        if !entry.present() || entry.is_leaf(at) {
            break;
        }
        at -= 1;
        tables[at as usize & 3] = entry.below();
    }
    while at < ROOT {
        let table = tables[at as usize & 3];
        let info = Info::of(table.address());
        if info.used() != 0 {
            break;
        }
        let above = tables[(at + 1) as usize & 3];
        let slot = index(vaddr, at + 1);
        if at + 1 == ROOT {
            space.root().unlink(slot);
        } else {
            above.take(slot);
        }
        Info::of(above.address()).one_less();
        free_table(space, table, info.twin());
        at += 1;
    }
}

fn free_table(space: SpaceRef, table: Table, twin: u64) {
    space.forget_near();
    if twin != 0 {
        space.quota().give_back(PhysFrame::at(twin));
        space.count_tables(-1);
    }
    space.quota().give_back(PhysFrame::at(table.address()));
    space.count_tables(-1);
}

/// Removes a page; its node loses one entry (and may become a ghost). Returns
/// the entry with its last status bits.
#[inline]
pub(crate) fn remove(space: SpaceRef, vaddr: u64, leaf: Leaf) -> Entry {
    quiet(space);
    if let Some(node) = leaf.node
        && node.one_less()
        && node.level() > leaf.level
    {
        forget_inherited(space, node);
    }
    if leaf.level > 0 && !space.is_sigma0() {
        space.quota().release(split_price(leaf.level));
    }
    let old = leaf.table.take(leaf.index);
    let info = Info::of(leaf.table.address());
    if info.twin() != 0 {
        info.twin_table().set_word(leaf.index, 0);
    }
    if info.one_less() {
        prune(space, vaddr, leaf.level);
    }
    tlb::invalidate(space, vaddr);
    old
}

/// Removes the node of a split page, none of whose parts are left, from the twin.
#[cold]
fn forget_inherited(space: SpaceRef, node: NodeRef) {
    let Some(table) = at_level(space, node.vaddr(), node.level()) else { return };
    let slot = index(node.vaddr(), node.level());
    if twin_word(table, slot) == node.word() {
        Info::of(table.address()).twin_table().set_word(slot, 0);
        table.change(slot, Entry::INHERIT, 0);
    }
}

/// Frames that splitting a page of `level`, and then its parts, can take: two for each table.
/// Who gets the page pays for them at once, so that taking a part of it back cannot fail.
pub(crate) const fn split_price(level: u32) -> u64 {
    match level {
        0 => 0,
        1 => 2,
        _ => 2 + ENTRIES as u64 * 2,
    }
}

const _: () = assert!(super::LARGEST_LEVEL <= 2);

/// Splits a large page into 512 of the next smaller size; the space has paid for the two
/// frames, and what is left of its price is that of the parts. Never one of σ0's. A flush that has
/// marked the page as dying marks the parts when it comes back.
pub(crate) fn split(space: SpaceRef, vaddr: u64, leaf: Leaf) {
    quiet(space);
    let quota = space.quota();
    let (Some(table), Some(twin)) = (quota.take_reserved(), quota.take_reserved()) else {
        // More frames were charged than there are: a defect. Less is the safe side.
        debug_assert!(false, "a frame that was paid for is not there");
        remove(space, vaddr, leaf);
        return;
    };
    frames::zero(twin);
    space.count_tables(2);
    let level = leaf.level - 1;
    // As it is now: until a moment ago somebody may have used it elsewhere.
    let entry = leaf.table.get(leaf.index);
    Table::of(table).fill(entry.part(level), level);
    Info::of(table.address()).init(twin.address(), 512);
    if let Some(node) = leaf.node {
        node.add_count(511);
        if entry.has(Entry::DYING) {
            node.is_spared();
        }
    }
    let own = twin_word(leaf.table, leaf.index) != 0;
    let inherit = if own { Entry::INHERIT } else { 0 };
    leaf.table.set(leaf.index, Entry(Entry::table(table.address()).0 | inherit));
    tlb::invalidate(space, vaddr);
}
