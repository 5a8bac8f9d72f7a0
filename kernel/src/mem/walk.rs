//! Walking the subtree of a node in preorder, in bounded pieces.
//!
//! A walk takes rights (or everything) from all mappings derived from one page,
//! without recursion: it climbs back over the parent links. Preorder matters: a
//! page that the walk has passed cannot hand on what the walk takes away. A
//! walk that runs out of budget leaves a marker (`marker.rs`). That it ends is argued in
//! docs/decisions/0026.

use super::budget::Budget;
use super::cost;
use super::marker::{MarkerRef, Position};
use super::node::NodeRef;
use super::release::{free_node, status_of, take_status};
use super::table::{self, Leaf, Slot};
use crate::arch::paging::{Entry, span};
use crate::arch::tlb;
use abi::Rights;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Where the marker says.
    Stopped,
    /// Look at the node's own pages.
    Enter,
    /// Look at its children.
    Below,
    /// Its subtree is finished.
    Leave,
    /// Everything is finished.
    Done,
}

/// How much of a node's pages a walk is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// All of them.
    Whole,
    /// Some.
    Part,
}

/// A walk; see the module.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    marker: MarkerRef,
    pub(super) root: NodeRef,
    cur: NodeRef,
    /// How far `cur` is from the root.
    depth: u64,
    /// Physical address up to which `cur`'s pages are done.
    pos: u64,
    /// The physical region concerned.
    start: u64,
    end: u64,
    stage: Stage,
    revoke: Rights,
    reset: bool,
    /// The root vanished, with all that was derived from it, while the walk stood still.
    pub(super) rootless: bool,
    /// What was referenced and written so far.
    pub status: Rights,
}

impl Walk {
    /// Takes `revoke` from what is derived from `region` (physical) of `root`.
    pub(crate) fn new(
        marker: MarkerRef,
        root: NodeRef,
        region: (u64, u64),
        revoke: Rights,
    ) -> Self {
        Self {
            marker,
            root,
            cur: root,
            depth: 0,
            pos: 0,
            start: region.0,
            end: region.1,
            stage: Stage::Below,
            revoke,
            reset: false,
            rootless: false,
            status: Rights::NONE,
        }
    }

    /// Takes it from the root's own page, too.
    pub(crate) fn including_root(mut self) -> Self {
        self.stage = Stage::Enter;
        self
    }

    /// Also resets the status bits that it reads.
    pub(crate) fn resetting(mut self) -> Self {
        self.reset = true;
        self
    }

    /// Goes on; true when the walk is finished.
    pub(crate) fn run(&mut self, budget: &mut Budget) -> bool {
        if self.stage == Stage::Stopped {
            self.resume();
        }
        while self.stage != Stage::Done {
            if budget.is_used_up() {
                self.stop();
                return self.stage == Stage::Done;
            }
            budget.spend(cost::VISIT);
            match self.stage {
                Stage::Enter => self.enter(budget),
                Stage::Below => self.below(),
                _ => self.leave(),
            }
        }
        true
    }

    /// Leaves the marker where the walk stands.
    #[cold]
    fn stop(&mut self) {
        let node = self.cur;
        let mut position = Position { depth: self.depth, entering: None };
        match self.stage {
            Stage::Enter => {
                position.entering = Some(self.pos);
                self.marker.put_first(node, position);
            }
            Stage::Below => {
                self.marker.put_first(node, position);
            }
            _ if self.depth == 0 => {
                self.stage = Stage::Done;
                return;
            }
            _ => {
                position.depth -= 1;
                self.marker.put_behind(node, position);
                free_if_bare(node);
            }
        }
        self.stage = Stage::Stopped;
    }

    /// Goes on at the marker.
    #[cold]
    fn resume(&mut self) {
        let Some(above) = self.marker.parent() else {
            self.rootless = true;
            self.stage = Stage::Done;
            return;
        };
        let (position, next) = (self.marker.position(), self.marker.sibling());
        self.marker.take_out();
        self.depth = position.depth;
        match (position.entering, next) {
            (Some(pos), _) => {
                self.cur = above;
                self.pos = pos;
                self.stage = Stage::Enter;
            }
            (None, Some(next)) => {
                self.depth += 1;
                self.enter_node(next);
            }
            (None, None) => self.climb_to(above),
        }
    }

    fn enter(&mut self, budget: &mut Budget) {
        let low = self.cur.phys();
        let high = low + self.cur.size();
        if high <= self.start || self.end <= low {
            self.stage = Stage::Leave;
            return;
        }
        let is_whole = self.start <= low && high <= self.end;
        self.collect(self.cur, if is_whole { Extent::Whole } else { Extent::Part });
        if self.pages(budget) {
            self.stage = Stage::Below;
        }
    }

    /// Adds what vanished children left in `node`, so much of which is concerned.
    pub(crate) fn collect(&mut self, node: NodeRef, extent: Extent) {
        let resets = self.reset && extent == Extent::Whole;
        let status = if resets { take_status(node) } else { status_of(node.flags()) };
        self.status = self.status.or(status);
    }

    fn below(&mut self) {
        match self.cur.first_child() {
            Some(child) => {
                self.depth += 1;
                self.enter_node(child);
            }
            None => self.stage = Stage::Leave,
        }
    }

    fn enter_node(&mut self, node: NodeRef) {
        self.cur = node;
        self.pos = 0;
        self.stage = Stage::Enter;
    }

    /// All children of `node` are done.
    fn climb_to(&mut self, node: NodeRef) {
        self.cur = node;
        self.stage = Stage::Leave;
    }

    fn leave(&mut self) {
        let node = self.cur;
        if self.depth == 0 {
            self.stage = Stage::Done;
            return;
        }
        match (node.sibling(), node.parent()) {
            (Some(next), _) => self.enter_node(next),
            (None, Some(parent)) => {
                self.depth -= 1;
                self.climb_to(parent);
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
        self.pos >= end
    }

    fn page(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut Budget) {
        let low = self.pos - (vaddr & (span(leaf.level) - 1));
        let high = low + span(leaf.level);
        if leaf.node == Some(node) {
            let removes = self.revoke.contains(Rights::R);
            let changes = removes || !leaf.entry.rights().and(self.revoke).is_empty();
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
        if self.revoke.contains(Rights::R) {
            let old = table::remove(node.space(), vaddr, leaf);
            self.status = self.status.or(old.status());
            return;
        }
        let (gone, barred) = Entry::taking(self.revoke);
        let status = if self.reset { Entry::A | Entry::D } else { 0 };
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
