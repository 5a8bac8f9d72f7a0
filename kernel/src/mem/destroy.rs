//! Emptying a space before it is freed.
//!
//! No thread of the space runs any more and no processor has its tables loaded.

use super::budget::Budget;
use super::grant::{is_forwarder, spread};
use super::io_flush::IoRevoke;
use super::marker::MarkerRef;
use super::node::{NodeRef, PORTS};
use super::release::free_node;
use super::revoke::{Revoke, Scope};
use super::space::{Area, SpaceRef};
use super::table::{self, Slot};
use super::walk::{Region, Taken, Walk};
use super::{STEP_BUDGET, Step, cost, slab};
use super::{ports, tlb};
use crate::arch::paging::{Entry, span};
use abi::layout::USER_END;

/// Flushes everything a space has and frees its tables, nodes and port bitmap.
/// At the end the quota is charged for the descriptor and the root table (which
/// [`SpaceRef::free`] gives back) and what others charged to it.
pub struct DestroyJob {
    space: SpaceRef,
    memory: Revoke,
    ports: IoRevoke,
    /// Where kernel pages may be left.
    kernel_pages: [Area; 2],
    marker: MarkerRef,
    stopped: Option<Walk>,
}

impl DestroyJob {
    /// Prepares the job; nothing happens yet. Nobody else uses `marker` until it is done.
    #[must_use]
    pub fn new(space: SpaceRef, marker: MarkerRef) -> Self {
        Self {
            space,
            memory: Revoke::flush(marker, space, 0, USER_END),
            ports: IoRevoke::new(space, 0, 1 << 16, Scope::Own),
            kernel_pages: space.areas().into(),
            marker,
            stopped: None,
        }
    }

    /// Gives the job up between two steps: another one begins anew.
    pub fn abandon(&mut self) {
        self.memory.abandon();
    }

    /// The space being emptied.
    #[must_use]
    pub fn space(&self) -> SpaceRef {
        self.space
    }

    /// Goes on until an interrupt is pending, or until all is done; then the last step has
    /// spent nothing.
    pub fn advance(&mut self) -> Step {
        self.run(&mut Budget::until_interrupted())
    }

    /// Goes on for about `units` (see [`STEP_BUDGET`]); otherwise as [`DestroyJob::advance`].
    pub fn step(&mut self, units: u32) -> Step {
        self.run(&mut Budget::step(units))
    }

    fn run(&mut self, budget: &mut Budget) -> Step {
        if self.memory.step(budget) == Step::More
            || self.ports.step(budget) == Step::More
            || self.remove_kernel_pages(budget) == Step::More
            || self.remove_ghosts(budget) == Step::More
            || !budget.is_whole()
        {
            return Step::More;
        }
        // What an abandoned job has prepared.
        ports::release(self.space);
        tlb::flush_space(self.space);
        Step::Done
    }

    /// Runs the job to its end without letting anybody in between.
    pub fn finish(&mut self) {
        while self.step(STEP_BUDGET) == Step::More {}
    }

    /// KIP and UTCB pages that are still mapped; the frames are their owner's.
    fn remove_kernel_pages(&mut self, budget: &mut Budget) -> Step {
        for area in &mut self.kernel_pages {
            while area.start < area.end {
                if budget.is_used_up() {
                    return Step::More;
                }
                budget.spend(cost::LOOK);
                let vaddr = area.start;
                area.start = match table::find(self.space, vaddr) {
                    Slot::Leaf(leaf) => {
                        if leaf.entry.has(Entry::KERNEL) {
                            table::remove(self.space, vaddr, leaf);
                            budget.spend(cost::REMOVE);
                        }
                        (vaddr | (span(leaf.level) - 1)) + 1
                    }
                    Slot::Empty { level, table } => {
                        table::behind_empty(table, level, vaddr, area.end, budget)
                    }
                };
            }
        }
        Step::Done
    }

    /// Nodes without pages, left by walks that are under way (or were abandoned), and
    /// forwarders of grants.
    fn remove_ghosts(&mut self, budget: &mut Budget) -> Step {
        loop {
            if budget.is_used_up() {
                return Step::More;
            }
            if let Some(mut walk) = self.stopped.take() {
                if walk.resume(budget) {
                    self.walk(walk, budget);
                } else {
                    self.stopped = Some(walk);
                }
            } else if self.marker.parent().is_some() {
                let _ = spread(self.marker, budget);
            } else if let Some(node) = slab::any(self.space).filter(|node| !node.has(PORTS)) {
                budget.spend(cost::REMOVE);
                self.remove_ghost(node, budget);
            } else {
                return Step::Done;
            }
        }
    }

    fn walk(&mut self, mut walk: Walk, budget: &mut Budget) {
        if !walk.run(budget) {
            self.stopped = Some(walk);
        }
    }

    fn remove_ghost(&mut self, node: NodeRef, budget: &mut Budget) {
        match node.parent().filter(|_| is_forwarder(node)) {
            Some(parent) => self.marker.put_first(parent, 0),
            None if node.first_child().is_none() => free_node(node),
            None => {
                let all = Region::Page(node.phys(), node.phys() + node.size());
                let walk = Walk::new(self.marker, node, all, Taken::PAGES, Scope::Derived);
                self.walk(walk, budget);
            }
        }
    }
}
