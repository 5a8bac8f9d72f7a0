//! Walking the subtree of a node in preorder, in bounded pieces.
//!
//! A walk takes rights (or everything) from all mappings derived from one page,
//! without recursion: it climbs back over the parent links. Preorder matters: a
//! page that the walk has passed cannot hand on what the walk takes away. A
//! walk that runs out of budget leaves a marker (`marker.rs`). That it ends is argued in
//! docs/decisions/0026.

use super::budget::Budget;
use super::cost;
use super::marker::MarkerRef;
use super::node::NodeRef;
use super::release::{free_node, status_of, take_status};
use super::table::{self, Leaf, Slot};
use crate::arch::paging::{Entry, span};
use crate::arch::tlb;
use abi::Rights;

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

/// Where a walk begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the page itself.
    Page,
    /// At what was derived from it.
    Derived,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// To look at the node's own pages, and then at its children.
    Enter,
    /// To leave it: its subtree is finished.
    Leave,
}

/// A walk; see the module.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    marker: MarkerRef,
    pub(super) root: NodeRef,
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
    /// The root vanished, with all that was derived from it, while the walk stood still.
    pub(super) rootless: bool,
    /// What was referenced and written so far.
    pub status: Rights,
}

impl Walk {
    /// Takes what it says from what is derived from `region` (physical) of `root`, and from the
    /// root's own pages, if it is to begin there.
    pub(crate) fn new(
        marker: MarkerRef,
        root: NodeRef,
        (start, end): (u64, u64),
        taken: Taken,
        from: Start,
    ) -> Self {
        let mut walk = Self {
            marker,
            root,
            cur: root,
            stage: Stage::Enter,
            depth: 0,
            pos: 0,
            start,
            end,
            taken,
            rootless: false,
            status: Rights::NONE,
        };
        if from == Start::Derived {
            walk.collect(root);
            walk.descend();
        }
        walk
    }

    /// Goes on; true when the walk is finished.
    pub(crate) fn run(&mut self, budget: &mut Budget) -> bool {
        while self.depth > 0 || self.stage == Stage::Enter {
            if budget.is_used_up() {
                self.stop();
                return false;
            }
            budget.spend(cost::VISIT);
            match self.stage {
                Stage::Enter => self.enter(budget),
                Stage::Leave => self.leave(),
            }
        }
        true
    }

    /// Leaves the marker where the walk stands.
    #[cold]
    fn stop(&mut self) {
        if self.stage == Stage::Enter {
            self.marker.put_first(self.cur, self.depth);
        } else {
            self.depth -= 1;
            self.marker.put_behind(self.cur, self.depth);
            free_if_bare(self.cur);
        }
    }

    /// Looks where the marker is by now; then the walk can go on.
    #[cold]
    pub(crate) fn resume(&mut self) {
        let Some(above) = self.marker.parent() else {
            self.rootless = true;
            (self.depth, self.stage) = (0, Stage::Leave);
            return;
        };
        let (depth, next) = (self.marker.depth(), self.marker.sibling());
        self.marker.take_out();
        self.cur = above;
        // Otherwise the node whose pages it was at has vanished.
        if self.stage == Stage::Leave || depth < self.depth {
            self.depth = depth;
            self.go_below(next);
        }
    }

    fn enter(&mut self, budget: &mut Budget) {
        let low = self.cur.phys();
        let high = low + self.cur.size();
        if high <= self.start || self.end <= low {
            self.stage = Stage::Leave;
            return;
        }
        self.collect(self.cur);
        if self.pages(budget) {
            self.descend();
        }
    }

    /// Adds what vanished children left in `node`.
    fn collect(&mut self, node: NodeRef) {
        let is_whole = self.start <= node.phys() && node.phys() + node.size() <= self.end;
        let resets = self.taken.status && is_whole;
        let status = if resets { take_status(node) } else { status_of(node.flags()) };
        self.status = self.status.or(status);
    }

    /// Goes to the children of `cur`.
    fn descend(&mut self) {
        self.go_below(self.cur.first_child());
    }

    /// Goes to `child`, one of `cur`'s, if there is one left.
    fn go_below(&mut self, child: Option<NodeRef>) {
        match child {
            Some(child) => {
                self.depth += 1;
                self.go_to(child);
            }
            None => self.stage = Stage::Leave,
        }
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
            }
            (None, None) => self.depth = 0,
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
        self.pos >= end
    }

    fn page(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut Budget) {
        let low = self.pos - (vaddr & (span(leaf.level) - 1));
        let high = low + span(leaf.level);
        if leaf.node == Some(node) {
            let rights = leaf.entry.rights().and(self.taken.rights);
            let changes = self.taken.removes() || !rights.is_empty();
            if changes && (low < self.start || self.end < high) {
                budget.spend(cost::SPLIT);
                table::split(node.space(), vaddr, leaf);
                return;
            }
            budget.spend(cost::REMOVE);
            self.apply(node, vaddr, leaf);
        }
        self.pos = high;
    }

    fn apply(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf) {
        if self.taken.removes() {
            let old = table::remove(node.space(), vaddr, leaf);
            self.status = self.status.or(old.status());
            return;
        }
        let (gone, barred) = Entry::taking(self.taken.rights);
        let status = if self.taken.status { Entry::A | Entry::D } else { 0 };
        let clear = leaf.entry.0 & (gone | status);
        let set = barred & !leaf.entry.0;
        let old = if clear | set == 0 {
            leaf.entry
        } else {
            tlb::quiet(node.space());
            let old = leaf.table.change(leaf.index, clear, set);
            tlb::invalidate(node.space(), vaddr);
            old
        };
        self.status = self.status.or(old.status());
    }
}

/// Frees `node` if it has neither pages nor children.
fn free_if_bare(node: NodeRef) {
    if node.count() == 0 && node.first_child().is_none() {
        free_node(node);
    }
}
