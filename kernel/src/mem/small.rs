//! The usual case, written out: runs of 4 KiB pages that were mapped as such, between
//! tables that are there.
//!
//! Whatever is not usual ends a run, with nothing changed; `map.rs` and `revoke.rs`, the
//! callers, know what to do then. A run may let interrupts in: they are only noted, so the
//! tables that were looked up at its beginning stay where they are.

use super::budget::Budget;
use super::cost;
use super::frames::{FRAME, Info};
use super::node::NodeRef;
use super::release::{free_ghosts, free_leaf, leave_status, status_of, take_status};
use super::slab;
use super::space::SpaceRef;
use super::table::{self, ENTRIES, Leaf};
use super::window::{self, Transfer};
use crate::arch::paging::{Entry, Table, index};
use crate::arch::tlb;
use abi::{Fpage, MapItem, Rights};

/// Bytes that a table of 4 KiB pages covers.
const TABLE: u64 = FRAME * ENTRIES as u64;

/// Does what a [`super::MapJob`] would do, if that is only to map one 4 KiB page to an
/// empty place whose tables exist. False, and nothing has changed, otherwise.
#[inline]
#[must_use]
pub fn map_one_page(src: SpaceRef, dst: SpaceRef, item: MapItem, window: Fpage) -> bool {
    let moved = window::memory(item, window);
    if item.grant || item.fpage.is_io() || moved.len != FRAME {
        return false;
    }
    let Some(way) = Way::new(src, dst, moved, item.fpage.rights()) else { return false };
    let mapped = way.page(moved.from, moved.to);
    way.arrived(u64::from(mapped));
    mapped
}

/// Maps pages from the beginning of `moved` on, as long as they were mapped as such to the
/// source, the destination is empty, the tables are there; returns how many bytes.
pub(super) fn map(
    src: SpaceRef,
    dst: SpaceRef,
    moved: Transfer,
    rights: Rights,
    budget: &mut Budget,
) -> u64 {
    // To the end of the first of the two tables that ends.
    let room = TABLE - (moved.from % TABLE).max(moved.to % TABLE);
    let len = moved.len.min(room);
    let Some(way) = Way::new(src, dst, Transfer { len, ..moved }, rights) else { return 0 };
    let mut done = 0;
    while done < len && !budget.is_used_up() && way.page(moved.from + done, moved.to + done) {
        done += FRAME;
        budget.spend(cost::PAGE);
    }
    way.arrived(done / FRAME);
    done
}

/// From a table of small pages to one that is there.
struct Way {
    dst: SpaceRef,
    sources: Table,
    source_nodes: Table,
    targets: Table,
    target_nodes: Table,
    target_info: Info,
    /// A page with the rights that are asked for.
    limit: u64,
}

impl Way {
    #[inline(always)]
    fn new(src: SpaceRef, dst: SpaceRef, moved: Transfer, rights: Rights) -> Option<Self> {
        let sources = table::pages(src, moved.from)?;
        let targets = table::pages(dst, moved.to)?;
        // σ0's pages are no exception, but nothing is ever mapped to σ0.
        let refused = dst.is_sigma0() || dst.is_protected(moved.to, moved.to + moved.len);
        if refused || !rights.contains(Rights::R) {
            return None;
        }
        let source_nodes = Table(Info::of(sources.0).twin());
        let target_info = Info::of(targets.0);
        let target_nodes = Table(target_info.twin());
        let limit = Entry::page(0, 0, rights, 0).0;
        Some(Self { dst, sources, source_nodes, targets, target_nodes, target_info, limit })
    }

    /// Maps one page; false, and nothing has changed, if it is not the usual case.
    #[inline(always)]
    fn page(&self, from: u64, to: u64) -> bool {
        let (at, there) = (index(from, 0), index(to, 0));
        let Some(parent) = table::node_at(self.source_nodes, at) else { return false };
        let source = self.sources.get(at);
        if self.targets.get(there).present() || source.has(Entry::DYING) {
            return false;
        }
        let Ok(node) = slab::alloc(self.dst) else { return false };
        // POINT OF NO RETURN
        node.init(self.dst, to, 0, from - parent.vaddr());
        node.link_below(parent);
        self.target_nodes.set_word(there, node.word());
        self.targets.set(there, source.handed_on(self.limit));
        true
    }

    /// Counts the pages that were mapped.
    #[inline(always)]
    fn arrived(&self, count: u64) {
        self.target_info.more(count);
    }
}

/// A table of 4 KiB pages, and its twin.
#[derive(Clone, Copy)]
struct Small {
    pages: Table,
    nodes: Table,
}

impl Small {
    #[inline(always)]
    fn at(pages: Table) -> Self {
        Self { pages, nodes: Table(Info::of(pages.0).twin()) }
    }

    /// The node of the page at `vaddr`, if that was mapped as such.
    #[inline(always)]
    fn node(self, vaddr: u64) -> Option<NodeRef> {
        table::node_at(self.nodes, index(vaddr, 0))
    }

    /// Removes the page; whether it was the last of its table, which is gone then.
    #[inline(always)]
    fn remove(self, space: SpaceRef, vaddr: u64, seen: &mut Seen) -> bool {
        let at = index(vaddr, 0);
        seen.entries |= self.pages.take(at).0;
        self.nodes.set_word(at, 0);
        let is_last = Info::of(self.pages.0).one_less();
        if is_last {
            table::prune(space, vaddr, 0);
        }
        tlb::invalidate(space, vaddr);
        is_last
    }
}

/// All bits of the entries that were removed, and all flags of their nodes: what was
/// referenced and written, without a look at each.
#[derive(Clone, Copy, Default)]
struct Seen {
    entries: u64,
    flags: u64,
}

impl Seen {
    fn status(self) -> Rights {
        Entry(self.entries).status().or(status_of(self.flags))
    }
}

/// Takes back what was derived from the small pages from `pos` to `end` as long as they are
/// in `table` and nothing was derived from that; with `own` the pages, too. Returns where it
/// ended. What was referenced and written is forgotten there and added to `status`.
///
/// Not inlined: walks, which need the most of the kernel stack, lie below its caller.
#[inline(never)]
pub(super) fn take_back(
    space: SpaceRef,
    table: Table,
    (pos, end): (u64, u64),
    own: bool,
    status: &mut Rights,
    budget: &mut Budget,
) -> u64 {
    let (table, mut pos) = (Small::at(table), pos);
    let (mut near, mut seen) = (table, Seen::default());
    let end = end.min((pos | (TABLE - 1)) + 1);
    while let Some(node) = table.node(pos) {
        let bare =
            node.first_child().is_none() || children(node, table, &mut near, &mut seen, budget);
        seen.flags |= node.flags();
        take_status(node, true);
        if !bare {
            if own {
                leave_status(node, seen.status());
            }
            break;
        }
        budget.spend(cost::SMALL);
        pos += FRAME;
        let is_last = own && own_page(space, table, (pos - FRAME, node), &mut seen, status, budget);
        if is_last || pos >= end || budget.is_used_up() {
            break;
        }
    }
    *status = status.or(seen.status());
    pos
}

/// Removes the page of `node`, which has no children; what was seen is left with its parent
/// and added to `status`. Whether it was the last of its table, which is gone then.
fn own_page(
    space: SpaceRef,
    table: Small,
    (vaddr, node): (u64, NodeRef),
    seen: &mut Seen,
    status: &mut Rights,
    budget: &mut Budget,
) -> bool {
    budget.spend(cost::CHILD);
    node.one_less();
    let is_last = table.remove(space, vaddr, seen);
    let found = core::mem::take(seen).status();
    forget(node, found);
    *status = status.or(found);
    is_last
}

/// Removes the children of a 4 KiB page as far as the budget goes, but at least one; whether
/// none are left. Stops at one that has children itself. `near` is the table in which the
/// last one was: those that are taken back one after the other often are beside each other.
#[inline(always)]
fn children(
    node: NodeRef,
    home: Small,
    near: &mut Small,
    seen: &mut Seen,
    budget: &mut Budget,
) -> bool {
    // Where walks have stopped one goes around their markers with a walk, which passes each once.
    while let Some(child) = node.first_raw() {
        if child.first_raw().is_some() || !child.is_single() {
            return false;
        }
        let (space, vaddr) = (child.space(), child.vaddr());
        // A node of a 4 KiB page is in one twin, at one place.
        if near.node(vaddr) != Some(child) {
            let Some(table) = table::pages(space, vaddr).map(Small::at) else { return false };
            if table.node(vaddr) != Some(child) {
                return false;
            }
            *near = table;
        }
        budget.spend(cost::CHILD);
        let is_last = near.remove(space, vaddr, seen);
        seen.flags |= child.flags();
        free_leaf(space, child);
        if is_last {
            // One that is there, and is looked at in vain.
            *near = home;
        }
        if node.first_raw().is_none() {
            return true;
        }
        if budget.is_used_up() {
            return false;
        }
    }
    true
}

/// Removes a space's own page from which nothing is derived any more. Its status
/// and `status`, that of its descendants, are left with its parent.
pub(super) fn take_own(
    space: SpaceRef,
    vaddr: u64,
    leaf: Leaf,
    node: NodeRef,
    status: Rights,
) -> Rights {
    let status = status.or(table::remove(space, vaddr, leaf).status());
    forget(node, status);
    status
}

/// Frees a node that has lost its page, and leaves `status` with its parent.
#[inline]
fn forget(node: NodeRef, status: Rights) {
    if let Some(parent) = node.parent() {
        leave_status(parent, status);
    }
    free_ghosts(node);
}
