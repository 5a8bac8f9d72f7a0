//! Walking the subtree of a node in preorder, in bounded pieces.
//!
//! A walk takes rights (or everything) from all mappings derived from one page,
//! without recursion: it climbs back over the parent links. Preorder matters: a
//! page that the walk has passed cannot hand on what the walk takes away. A page of
//! the root that is to go is marked as dying first, so that nobody can derive from it any
//! more, and goes when the walk is back. A walk that runs out of budget leaves a marker
//! (`marker.rs`). That it ends is argued in docs/decisions/0126.

use super::budget::Budget;
use super::cost;
use super::marker::MarkerRef;
use super::node::NodeRef;
use super::quiesce::quiet;
use super::release::{free_ghosts, free_node, is_bare, leave_status, status_of, take_status};
use super::revoke::Scope;
use super::split;
use super::table::{self, Leaf, Slot};
use super::tlb;
use crate::arch::paging::{Entry, span};
use abi::Rights;

mod climb;
mod stand;

/// What is taken back.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    /// The rights; R means everything.
    pub rights: Rights,
    /// The status bits are reset, too.
    pub status: bool,
}

impl Taken {
    /// The pages themselves.
    pub(crate) const PAGES: Self = Self { rights: Rights::RWX, status: false };

    pub(crate) fn removes(self) -> bool {
        self.rights.contains(Rights::R)
    }
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// To look at the root's own pages, and then at its children.
    Begin,
    /// The same of a node that was derived from it.
    Enter,
    /// To leave it: its subtree is finished.
    Leave,
    /// To remove the root's own pages, and the root when it has none.
    Finish,
    /// To free the ghosts from `cur` upward: nothing else is left to do.
    Climb,
    /// Nothing.
    Done,
}

/// A walk; see the module.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    marker: MarkerRef,
    cur: NodeRef,
    stage: Stage,
    /// How far `cur` is from the root; a walk that stands still: how far the node is among
    /// whose children its marker was put.
    depth: u64,
    /// Physical address up to which `cur`'s pages are done.
    pos: u64,
    /// The physical region concerned.
    start: u64,
    end: u64,
    taken: Taken,
    scope: Scope,
    /// [`Node::times_spared`](super::node::Node::times_spared) of the root when its pages began to be marked.
    spared: u64,
    /// Where the marks end that a walk has left which ended early.
    marked: u64,
    /// What was referenced and written so far.
    pub status: Rights,
}

/// What of its root's pages a walk is for, from one physical address to another.
#[derive(Clone, Copy)]
pub(crate) enum Region {
    /// A whole page.
    Page(u64, u64),
    /// Part of one, or several: the walk finds out how far they are the root's.
    Pages(u64, u64),
}

impl Walk {
    /// Takes what it says from what is derived from `region` (physical) of `root`, and from the
    /// root's own pages, if they are concerned. If the region is no single page, they are looked at in any case, and
    /// the region ends before one that is not the root's.
    pub(crate) fn new(
        marker: MarkerRef,
        root: NodeRef,
        region: Region,
        taken: Taken,
        scope: Scope,
    ) -> Self {
        let (Region::Page(start, end) | Region::Pages(start, end)) = region;
        let mut walk = Self {
            marker,
            cur: root,
            stage: Stage::Begin,
            depth: 0,
            pos: 0,
            start,
            end,
            taken,
            scope,
            spared: root.times_spared(),
            marked: start,
            status: Rights::NONE,
        };
        // One from which nothing is derived goes at once: nobody is let in before, so it needs no mark.
        let goes = || taken.removes() && root.first_child().is_none();
        if matches!(region, Region::Page(..)) && (walk.keeps(root) || goes()) {
            walk.collect(root);
            walk.go_below(root.first_child());
        }
        walk
    }

    /// Goes on; true when the walk is finished. It gets on however small the budget: nobody is let
    /// in before the root's page is marked, so it cannot be granted to somebody else first.
    pub(crate) fn run(&mut self, budget: &mut Budget) -> bool {
        while self.stage != Stage::Done {
            budget.spend(cost::VISIT);
            if self.stage == Stage::Leave {
                self.leave();
            } else {
                self.visit(budget);
            }
            if self.stage != Stage::Done && budget.is_used_up() {
                self.stop();
                return false;
            }
        }
        true
    }

    /// Bytes that are done by a walk that is finished: it ends before a page that may have been handed on, and one that
    /// is none of the root's, or is not as large as the first.
    pub(crate) fn done(&self) -> u64 {
        self.end - self.start
    }

    /// Bytes from the start on in which such a walk has left marks of dying.
    pub(crate) fn marked(&self) -> u64 {
        self.marked - self.start
    }

    /// The root's pages have been looked at, or none are left: what is behind the last one is not this walk's.
    fn end_region(&mut self) {
        if self.stage == Stage::Begin {
            self.end = self.end.min(self.pos);
        }
    }

    /// Whether `node`, the root, does not lose what is taken: σ0's own pages keep their rights, its identity cannot be lost.
    fn keeps(&self, node: NodeRef) -> bool {
        self.scope == Scope::Derived || node.space().is_sigma0()
    }

    fn visit(&mut self, budget: &mut Budget) {
        let low = self.cur.phys();
        let high = low + self.cur.size();
        if high <= self.start || self.end <= low {
            self.stage = Stage::Leave;
            return;
        }
        self.collect(self.cur);
        if !self.pages(budget) {
            return;
        }
        if matches!(self.stage, Stage::Begin | Stage::Enter) {
            self.end_region();
            self.go_below(self.cur.first_child());
        } else {
            self.stage = Stage::Done;
            if self.cur.count() == 0 {
                leave_status(self.cur, self.status);
            }
            if let Some(ghost) = free_ghosts(self.cur) {
                self.climb(ghost, budget);
            }
        }
    }

    /// Adds what vanished children left in `node`.
    fn collect(&mut self, node: NodeRef) {
        let is_whole = self.start <= node.phys() && node.phys() + node.size() <= self.end;
        let resets = self.taken.status && is_whole;
        let status = if resets { take_status(node) } else { status_of(node.flags()) };
        self.status = self.status.or(status);
    }

    /// Goes to `child`, one of `cur`'s, if there is one left.
    fn go_below(&mut self, child: Option<NodeRef>) {
        match child {
            Some(child) => {
                self.depth += 1;
                self.go_to(child);
            }
            None => self.end_subtree(),
        }
    }

    /// All that was derived from `cur` is done.
    fn end_subtree(&mut self) {
        self.pos = 0;
        self.stage = match self.scope {
            _ if self.depth > 0 => Stage::Leave,
            Scope::Own if self.taken.removes() => Stage::Finish,
            // Another walk has taken its pages, and may have been given up.
            _ if self.cur.count() == 0 => Stage::Finish,
            _ => Stage::Done,
        };
    }

    fn go_to(&mut self, node: NodeRef) {
        self.cur = node;
        self.pos = 0;
        self.stage = Stage::Enter;
    }

    fn leave(&mut self) {
        let node = self.cur;
        match (node.sibling(), node.parent()) {
            (Some(next), _) => self.go_to(next),
            (None, Some(parent)) => {
                self.depth -= 1;
                self.cur = parent;
                self.end_subtree();
            }
            (None, None) => self.stage = Stage::Done,
        }
        free_if_bare(node);
    }

    /// Applies the walk to the pages of `cur`; false if the budget ran out.
    fn pages(&mut self, budget: &mut Budget) -> bool {
        let node = self.cur;
        if node.count() == 0 {
            return true;
        }
        let base = node.phys();
        let end = self.end.min(base + node.size());
        self.pos = self.pos.max(self.start).max(base);
        // At least one page in every step, however small the budget.
        while self.pos < end {
            budget.spend(cost::LOOK);
            let vaddr = node.vaddr() + (self.pos - base);
            match table::find(node.space(), vaddr) {
                Slot::Empty { level, .. } => self.pos += span(level) - (vaddr & (span(level) - 1)),
                Slot::Leaf(leaf) => self.page(node, vaddr, leaf, budget),
            }
            if budget.is_used_up() {
                break;
            }
        }
        self.pos >= end || node.count() == 0
    }

    fn page(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut Budget) {
        let low = self.pos - (vaddr & (span(leaf.level) - 1));
        let high = low + span(leaf.level);
        let whole = self.start <= low && high <= self.end;
        let (begins, finishes) = (self.stage == Stage::Begin, self.stage == Stage::Finish);
        let is_own = leaf.node == Some(node);
        if begins && self.pos > self.start {
            // Pages of one size that follow each other: so a walk's marks are all in one table.
            let is_like = || split::is_marked_at(leaf.level, self.end - self.start);
            if !is_own || !whole || !is_like() {
                return self.end_here();
            }
        }
        if !is_own {
            // Mapped anew meanwhile, or there before: another walk's.
        } else if begins && self.keeps(node) {
            // It stays as it is.
        } else if finishes && node.space().is_sigma0() && (node.first_child().is_some() || !whole) {
            // One that nobody else has goes, and comes again when it is needed.
        } else if finishes && self.may_be_handed_on(node, leaf) {
            self.marked = self.end;
            return self.end_here();
        } else {
            let rights = leaf.entry.rights().and(self.taken.rights);
            if !whole && (self.taken.removes() || !rights.is_empty()) {
                budget.spend(cost::SPLIT);
                table::split(node.space(), vaddr, leaf);
                if begins {
                    self.end_here();
                }
                return;
            }
            self.apply(node, vaddr, leaf, budget);
        }
        self.pos = high;
    }

    /// Here the walk's region ends, and the next walk's begins.
    fn end_here(&mut self) {
        (self.pos, self.end) = (self.end, self.pos);
        if self.end == self.start {
            self.stage = Stage::Done;
        }
    }

    /// Whether the root's page has been without its mark since this walk began with it, and so may have been handed on:
    /// another flush of it was given up, or it was split. Whose mark it has now does not matter, nor whether anything is
    /// derived from it: it may be somebody else's.
    #[inline]
    fn may_be_handed_on(&self, root: NodeRef, leaf: Leaf) -> bool {
        let is_unmarked = !leaf.entry.has(Entry::DYING);
        root.times_spared() != self.spared || is_unmarked && root.first_child().is_some()
    }

    fn apply(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut Budget) {
        if self.taken.removes() {
            if self.stage == Stage::Begin {
                leaf.table.set_bits(leaf.index, Entry::DYING);
            } else {
                self.remove(node, vaddr, leaf, budget);
            }
            return;
        }
        budget.spend(cost::REMOVE);
        let (gone, barred) = Entry::taking(self.taken.rights);
        let status = if self.taken.status { Entry::A | Entry::D } else { 0 };
        let clear = leaf.entry.0 & (gone | status);
        let set = barred & !leaf.entry.0;
        let old = if clear | set == 0 {
            leaf.entry
        } else {
            quiet(node.space());
            let old = leaf.table.change(leaf.index, clear, set);
            tlb::invalidate(node.space(), vaddr);
            old
        };
        self.status = self.status.or(old.status());
    }

    fn remove(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut Budget) {
        budget.spend(cost::REMOVE);
        let old = table::remove(node.space(), vaddr, leaf);
        self.status = self.status.or(old.status());
        if self.depth == 0
            && let Some(parent) = node.parent()
        {
            leave_status(parent, self.status);
        }
    }
}

/// Frees `node` if it has neither pages nor children.
fn free_if_bare(node: NodeRef) {
    if is_bare(node) {
        free_node(node);
    }
}
