//! Taking rights or pages from a range of a space and from all who got them
//! from there: the one mechanism behind unmap, flush, and overwriting.
//!
//! The range is worked off page by page; the position is an address, so others
//! may change the space between steps. For each page, or run of parts of a split one, there
//! is a walk (`walk.rs`), but for the usual case (`small.rs`). One that stops goes on where
//! it was, wherever its page has been granted to meanwhile.

use super::budget::Budget;
use super::frames::FRAME;
use super::marker::MarkerRef;
use super::node::{MARKER, NodeRef};
use super::small::take_back;
use super::space::SpaceRef;
use super::table::{self, Leaf, Slot, Way};
use super::walk::{Region, Taken, Walk};
use super::{LARGEST_LEVEL, Step, cost, split};
use crate::arch::paging::{Table, span};
use abi::Rights;

/// Whose pages are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Only those derived from the range.
    Derived,
    /// The range itself too.
    Own,
}

/// The operation and how far it is.
#[derive(Clone, Copy)]
pub(crate) struct Revoke {
    marker: MarkerRef,
    /// Whose pages are taken back.
    pub space: SpaceRef,
    pos: u64,
    end: u64,
    /// Up to where pages may be marked as dying: by a walk that ended before it.
    marked: u64,
    scope: Scope,
    taken: Taken,
    /// What was referenced (R, X) and written (W) so far.
    pub status: Rights,
    /// The walk that stopped.
    stopped: Option<Walk>,
}

impl Revoke {
    /// Takes `taken` from the pages in `start..end`, or from what was derived from them. Nobody
    /// else uses `marker` until it is done.
    pub(crate) fn new(
        marker: MarkerRef,
        space: SpaceRef,
        (start, end): (u64, u64),
        scope: Scope,
        taken: Taken,
    ) -> Self {
        Self {
            marker,
            space,
            pos: start,
            end,
            marked: start,
            scope,
            taken,
            status: Rights::NONE,
            stopped: None,
        }
    }

    /// Removes the space's own pages in `start..end` and all that was derived from them.
    pub(crate) fn flush(marker: MarkerRef, space: SpaceRef, start: u64, end: u64) -> Self {
        Self::new(marker, space, (start, end), Scope::Own, Taken::PAGES)
    }

    /// Of those whose mapping a walk that stopped has reached, or the next one will begin with, and who
    /// gave it to them, but `user`, who began all this: whom the rest of the walk is for.
    pub(crate) fn sharers(&self, user: SpaceRef) -> [Option<SpaceRef>; 2] {
        let reached = match self.stopped {
            Some(_) => self.marker.parent(),
            None => self.next_shared(),
        };
        let giver = reached.and_then(|node| node.parent());
        let other = |node: NodeRef| Some(node.space()).filter(|space| *space != user);
        [reached, giver].map(|node| node.and_then(other))
    }

    /// The newest mapping derived from the page at the position, unless another walk is there.
    fn next_shared(&self) -> Option<NodeRef> {
        if self.pos >= self.end {
            return None;
        }
        let Slot::Leaf(leaf) = table::find(self.space, self.pos) else { return None };
        leaf.node?.first_raw().filter(|first| !first.has(MARKER))
    }

    /// Goes on until done or the budget is used up.
    pub(crate) fn step(&mut self, budget: &mut Budget) -> Step {
        while self.pos < self.end {
            if budget.is_used_up() {
                return Step::More;
            }
            if let Some(mut walk) = self.stopped.take() {
                if walk.resume(budget) {
                    self.walk(walk, budget);
                } else {
                    self.stopped = Some(walk);
                }
                continue;
            }
            match table::way(self.space, self.pos) {
                Way::Hole { level, table } => {
                    budget.spend(cost::LOOK);
                    self.skip_empty(level, table, budget);
                }
                Way::Pages(table) => self.small(table, budget),
                Way::Large => self.look(None, budget),
            }
        }
        Step::Done
    }

    /// The pages from the position on, which are in `table`.
    fn small(&mut self, table: Table, budget: &mut Budget) {
        if self.taken.removes() {
            // To find the way here, perhaps for one page only.
            budget.spend(cost::SMALL);
            let range = (self.pos, self.end);
            let (pos, ghost) =
                take_back(self.space, table, range, self.scope, &mut self.status, budget);
            if let Some(ghost) = ghost {
                // The page is done when they are gone.
                self.pos = pos - FRAME;
                self.stopped = Some(Walk::above(self.marker, ghost, FRAME));
                return;
            }
            if pos != self.pos || budget.left() == 0 {
                self.pos = pos;
                return;
            }
        }
        self.look(Some(table), budget);
    }

    /// Whatever is at the position; `table`, if that of 4 KiB pages is there.
    fn look(&mut self, table: Option<Table>, budget: &mut Budget) {
        budget.spend(cost::LOOK);
        match table::find_in(self.space, self.pos, table) {
            Slot::Empty { level, table } => self.skip_empty(level, table, budget),
            Slot::Leaf(leaf) => self.begin(leaf, budget),
        }
    }

    fn skip_empty(&mut self, level: u32, table: Table, budget: &mut Budget) {
        self.pos = table::behind_empty(table, level, self.pos, self.end, budget);
    }

    /// Gives up between two steps: the pages that were about to go stay, without what
    /// has been taken from them already.
    #[inline(never)] // who asks has seldom one
    pub(crate) fn abandon(&mut self) {
        self.marker.take_out();
        if self.scope == Scope::Own && self.taken.removes() {
            let until = self.pos + self.stopped.map_or(0, |walk| walk.done());
            for end in [until, self.marked].into_iter().filter(|end| self.pos < *end) {
                split::keep(self.space, self.pos, end);
            }
        }
    }

    /// The position's page, with those of the same split one that follow it in its table.
    fn begin(&mut self, leaf: Leaf, budget: &mut Budget) {
        let next = (self.pos | (span(leaf.level) - 1)) + 1;
        // The kernel's own pages are found on the same way as large ones.
        let size = leaf.node.map_or(LARGEST_LEVEL, |node| node.level());
        if size > 0 {
            budget.spend(cost::LARGE);
        }
        let Some(node) = leaf.node else {
            self.pos = next;
            return;
        };
        let inside = self.pos & (span(leaf.level) - 1);
        let is_whole = inside == 0 && next <= self.end;
        let is_page = is_whole && leaf.level == size;
        let is_run = is_whole && !is_page;
        let until = if is_run { (self.pos | (span(leaf.level + 1) - 1)) + 1 } else { next };
        let start = leaf.phys() + inside;
        let end = start + self.end.min(until) - self.pos;
        let region = if is_page { Region::Page(start, end) } else { Region::Pages(start, end) };
        self.walk(Walk::new(self.marker, node, region, self.taken, self.scope), budget);
    }

    fn walk(&mut self, mut walk: Walk, budget: &mut Budget) {
        if !walk.run(budget) {
            self.stopped = Some(walk);
            return;
        }
        self.status = self.status.or(walk.status);
        self.marked = self.marked.max(self.pos + walk.marked());
        self.pos += walk.done();
    }
}
