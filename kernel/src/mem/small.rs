//! The usual case, written out: runs of 4 KiB pages that were mapped as such, between
//! tables that are there; and 4 KiB pages out of a large one, to a table that is there.
//!
//! Whatever is not usual ends a run, with nothing changed, and `map.rs` and `revoke.rs` know what to do. A
//! run may let interrupts in: they are only noted, so the tables that it has looked up stay where they are.

use super::budget::Budget;
use super::frames::{FRAME, Info};
use super::node::{MARKER, NodeRef};
use super::quiesce::quiet;
use super::release::{free_ghosts, leave_status, status_of, take_status};
use super::revoke::Scope;
use super::space::SpaceRef;
use super::table::{self, ENTRIES};
use super::tlb;
use super::window::{self, Stretch};
use super::{cost, slab};
use crate::arch::paging::{Entry, Table, index};
use abi::{Fpage, MapItem, Rights};

/// Bytes that a table of 4 KiB pages covers.
const TABLE: u64 = FRAME * ENTRIES as u64;

/// Does what a [`super::MapJob`] would do, if that is only to map one 4 KiB page to an
/// empty place whose tables exist. False, and nothing has changed, otherwise.
#[inline]
#[must_use]
pub fn map_one_page(src: SpaceRef, dst: SpaceRef, item: MapItem, window: Fpage) -> bool {
    let Some(moved) = one_page(item, window) else { return false };
    match Source::table(src, moved.from) {
        Some(source) => map_from(source, dst, moved, item),
        None => map_part(src, dst, moved, item),
    }
}

/// [`map_one_page`] out of a large page.
#[inline(never)]
fn map_part(src: SpaceRef, dst: SpaceRef, moved: Stretch, item: MapItem) -> bool {
    Source::part(src, moved).is_some_and(|source| map_from(source, dst, moved, item))
}

#[inline(always)]
fn map_from(source: Source, dst: SpaceRef, moved: Stretch, item: MapItem) -> bool {
    let Some(way) = Way::new(source, dst, moved, item.fpage.rights()) else { return false };
    let mapped = way.page(moved.from, moved.to);
    way.arrived(u64::from(mapped));
    mapped
}

/// What the item maps, if that is a 4 KiB page.
#[inline(always)]
fn one_page(item: MapItem, window: Fpage) -> Option<Stretch> {
    let moved = window::memory(item, window);
    (!item.grant && !item.fpage.is_io() && moved.len == FRAME).then_some(moved)
}

/// Carries out map items that are one 4 KiB page each, in the usual case; between two of the same
/// tables nothing is looked up again.
pub struct OnePage {
    src: SpaceRef,
    dst: SpaceRef,
    window: Fpage,
    /// The last way, and the pieces of both spaces, of a table's size, between which it leads.
    way: Option<(Way, (u64, u64))>,
}

impl OnePage {
    /// For items from `src` into `window` of `dst`.
    #[inline(always)]
    #[must_use]
    pub const fn new(src: SpaceRef, dst: SpaceRef, window: Fpage) -> Self {
        Self { src, dst, window, way: None }
    }

    /// As [`map_one_page`]; nobody but this value has changed the spaces since the last item.
    #[inline(always)]
    #[must_use]
    pub fn map(&mut self, item: MapItem) -> bool {
        let Some(moved) = one_page(item, self.window) else { return false };
        let rights = item.fpage.rights();
        let pieces = (moved.from / TABLE, moved.to / TABLE);
        let way = match &mut self.way {
            Some((way, known)) if *known == pieces => way,
            way => {
                let source = Source::at(self.src, moved);
                let new = source.and_then(|from| Way::new(from, self.dst, moved, rights));
                let Some(new) = new else { return false };
                &mut way.insert((new, pieces)).0
            }
        };
        let refused = self.dst.is_protected(moved.to, moved.to + FRAME);
        if refused || !rights.contains(Rights::R) {
            return false;
        }
        way.limit = Entry::page(0, 0, rights, 0).0;
        let mapped = way.page(moved.from, moved.to);
        way.arrived(u64::from(mapped));
        mapped
    }
}

/// Maps pages from the beginning of `moved` on, as long as they were mapped as such to the
/// source, or with a large page that is not to be passed on whole, the destination is empty,
/// the tables are there; returns how many bytes.
pub(super) fn map(
    src: SpaceRef,
    dst: SpaceRef,
    moved: Stretch,
    rights: Rights,
    budget: &mut Budget,
) -> u64 {
    // To the end of the first of the two tables that ends.
    let room = TABLE - (moved.from % TABLE).max(moved.to % TABLE);
    let len = moved.len.min(room);
    let part = Stretch { len, ..moved };
    budget.spend(cost::LOOK); // perhaps for one page only
    let way = Source::at(src, part).and_then(|source| Way::new(source, dst, part, rights));
    let Some(way) = way else { return 0 };
    let mut done = 0;
    while done < len && !budget.is_used_up() && way.page(moved.from + done, moved.to + done) {
        done += FRAME;
        budget.spend(cost::PAGE);
    }
    way.arrived(done / FRAME);
    done
}

/// Where pages come from.
#[derive(Clone, Copy)]
enum Source {
    /// A table of small pages, and its twin.
    Table(Table, Table),
    /// A large page: its node, and the entry of the first small one that would be in a table.
    Page(NodeRef, Entry),
}

impl Source {
    #[inline(always)]
    fn at(src: SpaceRef, moved: Stretch) -> Option<Self> {
        Self::table(src, moved.from).or_else(|| Self::part(src, moved))
    }

    #[inline(always)]
    fn table(src: SpaceRef, from: u64) -> Option<Self> {
        let table = table::pages(src, from)?;
        Some(Self::Table(table, Info::of(table.address()).twin_table()))
    }

    #[inline(never)]
    fn part(src: SpaceRef, moved: Stretch) -> Option<Self> {
        // As many as a table has at the right place: they go as a large page.
        let leaf = table::large(src, moved.from).filter(|_| moved.len < TABLE)?;
        if leaf.entry.has(Entry::DYING) {
            return None;
        }
        let mut entry = leaf.entry;
        for level in (0..leaf.level).rev() {
            let which = if level == 0 { 0 } else { index(moved.from, level) };
            entry = Entry(entry.part(level).0 + which as u64 * Entry::step(level));
        }
        Some(Self::Page(leaf.node?, entry))
    }

    /// The node and the entry of the page at `from`, if it can be handed on.
    #[inline(always)]
    fn page(self, from: u64) -> Option<(NodeRef, Entry)> {
        let at = index(from, 0);
        match self {
            Self::Table(pages, nodes) => {
                let (node, entry) = (table::node_at(nodes, at)?, pages.get(at));
                (!entry.has(Entry::DYING)).then_some((node, entry))
            }
            Self::Page(node, first) => Some((node, Entry(first.0 + at as u64 * Entry::step(0)))),
        }
    }
}

/// From small pages, or out of a large one, to a table that is there.
struct Way {
    dst: SpaceRef,
    source: Source,
    targets: Table,
    target_nodes: Table,
    target_info: Info,
    /// A page with the rights that are asked for.
    limit: u64,
}

impl Way {
    #[inline(always)]
    fn new(source: Source, dst: SpaceRef, moved: Stretch, rights: Rights) -> Option<Self> {
        let targets = table::pages(dst, moved.to)?;
        // σ0's pages are no exception, but nothing is ever mapped to σ0.
        let refused = dst.is_sigma0() || dst.is_protected(moved.to, moved.to + moved.len);
        if refused || !rights.contains(Rights::R) {
            return None;
        }
        let target_info = Info::of(targets.address());
        let target_nodes = target_info.twin_table();
        let limit = Entry::page(0, 0, rights, 0).0;
        Some(Self { dst, source, targets, target_nodes, target_info, limit })
    }

    /// Maps one page; false, and nothing has changed, if it is not the usual case.
    #[inline(always)]
    fn page(&self, from: u64, to: u64) -> bool {
        let there = index(to, 0);
        let Some((parent, source)) = self.source.page(from) else { return false };
        if self.targets.get(there).present() {
            return false;
        }
        let Ok(node) = slab::alloc(self.dst) else { return false };
        // POINT OF NO RETURN
        node.init(source.address(), to, 0);
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

/// A space's table of 4 KiB pages, and its twin.
#[derive(Clone, Copy)]
struct Small {
    space: SpaceRef,
    pages: Table,
    nodes: Table,
}

impl Small {
    #[inline(always)]
    fn at(space: SpaceRef, pages: Table) -> Self {
        Self { space, pages, nodes: Info::of(pages.address()).twin_table() }
    }

    /// The node of the page at `vaddr`, if that was mapped as such.
    #[inline(always)]
    fn node(self, vaddr: u64) -> Option<NodeRef> {
        table::node_at(self.nodes, index(vaddr, 0))
    }

    /// Removes the page; whether it was the last of its table, which is gone then, and `home`, which
    /// is there, takes its place.
    #[inline(always)]
    fn remove(&mut self, home: Self, vaddr: u64, seen: &mut Seen) -> bool {
        let space = self.space;
        quiet(space);
        let at = index(vaddr, 0);
        seen.entries |= self.pages.take(at).0;
        self.nodes.set_word(at, 0);
        let is_last = Info::of(self.pages.address()).one_less();
        if is_last {
            table::prune(space, vaddr, 0);
            *self = home;
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
/// in `table` and nothing was derived from that; with [`Scope::Own`] the pages, too. Returns where it
/// ended, and behind which page there are ghosts to be freed. What was referenced and
/// written is forgotten there and added to `status`.
///
/// Not inlined: walks, which need the most of the kernel stack, lie below its caller.
#[inline(never)]
pub(super) fn take_back(
    space: SpaceRef,
    table: Table,
    (pos, end): (u64, u64),
    scope: Scope,
    status: &mut Rights,
    budget: &mut Budget,
) -> (u64, Option<NodeRef>) {
    let mut ghost = None;
    let (table, mut pos, own) = (Small::at(space, table), pos, scope == Scope::Own);
    let (mut near, mut seen) = (table, Seen::default());
    let end = end.min((pos | (TABLE - 1)) + 1);
    while let Some(node) = table.node(pos) {
        let bare =
            node.first_child().is_none() || children(node, table, &mut near, &mut seen, budget);
        seen.flags |= node.flags();
        take_status(node);
        if !bare {
            if own {
                leave_status(node, seen.status());
            }
            break;
        }
        budget.spend(cost::SMALL);
        pos += FRAME;
        let page = (pos - FRAME, node);
        let stops = own && own_page(table, page, &mut seen, status, budget, &mut ghost);
        if stops || pos >= end || budget.is_used_up() {
            break;
        }
    }
    *status = status.or(seen.status());
    (pos, ghost)
}

/// Removes the page of `node`, which has no children; what was seen is left with its parent
/// and added to `status`. Whether it was the last of its table, which is gone then, or `ghost` is to be freed first.
fn own_page(
    mut table: Small,
    (vaddr, node): (u64, NodeRef),
    seen: &mut Seen,
    status: &mut Rights,
    budget: &mut Budget,
    ghost: &mut Option<NodeRef>,
) -> bool {
    budget.spend(cost::CHILD);
    node.one_less();
    let is_last = table.remove(table, vaddr, seen);
    let found = core::mem::take(seen).status();
    *status = status.or(found);
    *ghost = forget(node, found);
    is_last || ghost.is_some()
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
    let Some(mut child) = node.first_raw() else { return true };
    // Where walks have stopped one goes around their markers with a walk, which passes each once.
    loop {
        if child.first_raw().is_some() || child.has(MARKER) {
            return false;
        }
        let vaddr = child.vaddr();
        // A node of a 4 KiB page is in one twin, at one place; and no other is in twins of such pages.
        if near.node(vaddr) != Some(child) {
            let space = child.space();
            let Some(table) = table::pages(space, vaddr) else { return false };
            let table = Small::at(space, table);
            if table.node(vaddr) != Some(child) {
                return false;
            }
            *near = table;
        }
        budget.spend(cost::CHILD);
        let space = near.space;
        near.remove(home, vaddr, seen);
        seen.flags |= child.flags();
        let next = child.next_raw();
        slab::free(space, child);
        let Some(next) = next else {
            node.first_is_gone(None);
            return true;
        };
        node.first_is_gone(Some(next));
        if budget.is_used_up() {
            return false;
        }
        child = next;
    }
}

/// Frees a node that has lost its page, and leaves `status` with its parent.
#[inline]
fn forget(node: NodeRef, status: Rights) -> Option<NodeRef> {
    if let Some(parent) = node.parent() {
        leave_status(parent, status);
    }
    free_ghosts(node)
}
