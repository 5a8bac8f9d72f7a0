//! Walking the subtree of a node in preorder, in bounded pieces.
//!
//! A walk takes rights (or everything) from all mappings derived from one page,
//! without recursion: it climbs back over the parent links. Preorder matters: a
//! page that the walk has passed cannot hand on what the walk takes away. A
//! walk that runs out of budget is *parked* (`parking.rs`).
//!
//! A walk that cannot go on where it stopped may leave pages with rights that
//! the pages they are derived from have lost to it. Another walk *settles* that:
//! it compares every page with the one that it is derived from.

use super::budget::Budget;
use super::cost;
use super::node::{CURSOR, NodeRef};
use super::release::{free_node, parked_cost, take_status};
use super::state;
use super::table::{self, Leaf, Slot};
use crate::arch::paging::{Entry, span};
use crate::arch::tlb;
use abi::Rights;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Look at the node's own pages.
    Enter,
    /// Look at its children.
    Below,
    /// Its subtree is finished.
    Leave,
    /// Everything is finished.
    Done,
}

/// A walk; see the module.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub(super) root: NodeRef,
    pub(super) cur: NodeRef,
    /// Physical address of the start of `cur`'s region.
    base: u64,
    /// Physical address up to which `cur`'s pages are done.
    pos: u64,
    /// The physical region concerned.
    start: u64,
    end: u64,
    stage: Stage,
    revoke: Rights,
    reset: bool,
    /// Takes from each page what the page that it is derived from lacks.
    settles: bool,
    /// What was referenced and written so far.
    pub status: Rights,
    /// Children inside the region become children of this node, whose own region
    /// begins at this physical address.
    adopter: Option<(NodeRef, u64)>,
}

impl Walk {
    /// Takes `revoke` from what is derived from `start..end` (physical) of `root`,
    /// whose region begins at `base`; with `own` from its own page too.
    pub(crate) fn new(root: NodeRef, base: u64, region: (u64, u64), revoke: Rights) -> Self {
        Self {
            root,
            cur: root,
            base,
            pos: 0,
            start: region.0,
            end: region.1,
            stage: Stage::Below,
            revoke,
            reset: false,
            settles: false,
            status: Rights::NONE,
            adopter: None,
        }
    }

    /// Takes from what is derived from σ0's page of `root` in the region what other
    /// walks have begun to take.
    pub(crate) fn settling(root: NodeRef, region: (u64, u64)) -> Self {
        let walk = Self::new(root, root.vaddr(), region, Rights::NONE);
        Self { settles: true, ..walk }
    }

    pub(crate) fn including_root(mut self) -> Self {
        self.stage = Stage::Enter;
        self
    }

    pub(crate) fn resetting(mut self, reset: bool) -> Self {
        self.reset = reset;
        self
    }

    /// Makes the children inside the region those of `adopter`, whose own region
    /// begins at `base` and covers the walk's. To be named again after parking.
    pub(crate) fn adopting(mut self, adopter: NodeRef, base: u64) -> Self {
        self.adopter = Some((adopter, base));
        self
    }

    /// Whether this is still a walk below `root` about the region from `start`.
    pub(crate) fn concerns(&self, root: NodeRef, start: u64) -> bool {
        self.stage != Stage::Done && self.root == root && self.start == start
    }

    /// Whether this only compares pages.
    pub(crate) fn settles(&self) -> bool {
        self.settles
    }

    /// Whether this hands children to another node.
    pub(super) fn adopts(&self) -> bool {
        self.adopter.is_some()
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Where pages may have more rights than those that they are derived from, if it is lost.
    pub(super) fn touched(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// Whether starting again from the root would miss a part of what this walk has begun.
    pub(super) fn owes(&self) -> bool {
        self.settles
    }

    /// Goes on; true when the walk is finished.
    pub(crate) fn run(&mut self, budget: &mut Budget) -> bool {
        loop {
            if self.stage == Stage::Done {
                return true;
            }
            if budget.is_used_up() {
                return false;
            }
            budget.spend(cost::VISIT);
            match self.stage {
                Stage::Enter => self.enter(budget),
                Stage::Below => self.below(),
                Stage::Leave => self.leave(budget),
                Stage::Done => {}
            }
        }
    }

    fn enter(&mut self, budget: &mut Budget) {
        let (low, high) = (self.base, self.base + self.cur.size());
        if high <= self.start || self.end <= low {
            self.stage = Stage::Leave;
            return;
        }
        if self.adopter.is_some() {
            self.adopt(low, high, budget);
            return;
        }
        if !self.settles || self.cur.count() == 0 {
            self.collect(self.cur, self.start <= low && high <= self.end);
        }
        if self.pages(budget) {
            self.stage = Stage::Below;
        }
    }

    /// Adds what vanished children left in `node`.
    pub(crate) fn collect(&mut self, node: NodeRef, whole: bool) {
        self.status = self.status.or(take_status(node, self.reset && whole));
    }

    fn below(&mut self) {
        match self.cur.first_child() {
            Some(child) => self.enter_node(child, self.base + child.offset()),
            None => self.stage = Stage::Leave,
        }
    }

    fn enter_node(&mut self, node: NodeRef, base: u64) {
        self.cur = node;
        self.base = base;
        self.pos = 0;
        self.stage = Stage::Enter;
    }

    fn leave(&mut self, budget: &mut Budget) {
        let node = self.cur;
        self.advance();
        let finished = self.stage == Stage::Done;
        if !finished && node.count() == 0 && node.first_child().is_none() {
            budget.spend(parked_cost(node));
            free_node(node);
        }
    }

    /// Moves on from `cur`, whose subtree is finished or gone.
    pub(super) fn advance(&mut self) {
        let node = self.cur;
        if node == self.root {
            self.stage = Stage::Done;
            return;
        }
        let above = self.base - node.offset();
        match (node.sibling(), node.parent()) {
            (Some(next), _) => self.enter_node(next, above + next.offset()),
            (None, Some(parent)) => {
                self.cur = parent;
                self.base = above;
                self.stage = Stage::Leave;
            }
            (None, None) => self.stage = Stage::Done,
        }
    }

    /// Applies the walk to the pages of `cur`; false if the budget ran out.
    fn pages(&mut self, budget: &mut Budget) -> bool {
        let node = self.cur;
        if node.count() == 0 {
            return true;
        }
        let space = node.space();
        self.pos = self.pos.max(self.start).max(self.base);
        // At least one page in every step, however small the budget.
        while self.pos < self.end.min(self.base + node.size()) {
            budget.spend(cost::LOOK);
            let vaddr = node.vaddr() + (self.pos - self.base);
            match table::find(space, vaddr) {
                Slot::Empty { level, .. } => self.pos += span(level) - (vaddr & (span(level) - 1)),
                Slot::Leaf(leaf) => self.page(node, vaddr, leaf, budget),
            }
            if budget.is_used_up() {
                break;
            }
        }
        self.pos >= self.end.min(self.base + node.size())
    }

    fn page(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut Budget) {
        let low = self.pos - (vaddr & (span(leaf.level) - 1));
        let high = low + span(leaf.level);
        if leaf.node != Some(node) {
            self.pos = high;
            return;
        }
        let (revoke, start, end) = self.due(node, leaf, budget);
        let removes = revoke.contains(Rights::R);
        let changes = removes || !leaf.entry.rights().and(revoke).is_empty();
        if changes && (low < start || end < high) {
            budget.spend(cost::SPLIT);
            table::split(node.space(), vaddr, leaf);
            return;
        }
        if changes || !self.settles {
            budget.spend(cost::REMOVE);
            self.apply(node, vaddr, leaf, revoke);
        }
        self.pos = if self.settles { high.min(end) } else { high };
    }

    /// What the page of `node` at the position is to lose, and the physical range for
    /// which that holds.
    fn due(&self, node: NodeRef, leaf: Leaf, budget: &mut Budget) -> (Rights, u64, u64) {
        if !self.settles {
            return (self.revoke, self.start, self.end);
        }
        let Some(parent) = node.parent() else { return (Rights::NONE, 0, u64::MAX) };
        budget.spend(cost::LOOK);
        let vaddr = parent.vaddr() + node.offset() + (self.pos - self.base);
        let (rights, level) = match table::find(parent.space(), vaddr) {
            Slot::Leaf(above) if above.node == Some(parent) => (above.entry.rights(), above.level),
            Slot::Leaf(other) => (Rights::NONE, other.level),
            Slot::Empty { level, .. } => (Rights::NONE, level),
        };
        let inside = vaddr & (span(level) - 1);
        let end = self.pos + (span(level) - inside);
        (leaf.entry.rights().without(rights), self.pos.saturating_sub(inside), end)
    }

    fn apply(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, revoke: Rights) {
        if revoke.contains(Rights::R) {
            let old = table::remove(node.space(), vaddr, leaf);
            self.status = self.status.or(old.status());
            return;
        }
        let (gone, barred) = Entry::taking(revoke);
        let status = if self.reset { Entry::A | Entry::D } else { 0 };
        let clear = leaf.entry.0 & (gone | status);
        let set = barred & !leaf.entry.0;
        let old = if clear | set == 0 {
            leaf.entry
        } else {
            let old = leaf.table.change(leaf.index, clear, set);
            tlb::invalidate(node.space(), vaddr);
            old
        };
        self.status = self.status.or(old.status());
    }

    /// Hands `cur`, a child of the root, to the adopter if it fits.
    fn adopt(&mut self, low: u64, high: u64, budget: &mut Budget) {
        let child = self.cur;
        self.stage = Stage::Leave;
        let Some((adopter, base)) = self.adopter else { return };
        if low < self.start || self.end < high || child == adopter {
            return;
        }
        if self.root.has(CURSOR) {
            budget.spend(cost::PARKED);
            state().walks.lose_children(self.root);
        }
        self.advance();
        child.unlink();
        child.set_offset(low - base);
        child.link_below(adopter);
        state().walks.start_again();
    }
}
