//! Emptying a space before it is freed.
//!
//! No thread of the space runs any more and no processor has its tables loaded.

use super::budget::Budget;
use super::io_flush::IoRevoke;
use super::node::{NodeRef, PORTS};
use super::parking::Parked;
use super::release::free_node;
use super::revoke::{Revoke, Scope};
use super::space::SpaceRef;
use super::table::{self, Slot};
use super::walk::Walk;
use super::{STEP_BUDGET, Step, cost, slab, state};
use crate::arch::paging::{Entry, span};
use crate::arch::tlb;
use abi::Rights;
use abi::layout::USER_END;

/// Flushes everything a space has and frees its tables, nodes and port bitmap.
/// At the end the quota is charged for the descriptor and the root table (which
/// [`SpaceRef::free`] gives back) and what others charged to it.
pub struct DestroyJob {
    space: SpaceRef,
    memory: Revoke,
    ports: IoRevoke,
    kernel_pages: u64,
    parked: Option<Parked>,
}

impl DestroyJob {
    /// Prepares the job; nothing happens yet.
    #[must_use]
    pub fn new(space: SpaceRef) -> Self {
        Self {
            space,
            memory: Revoke::flush(space, 0, USER_END),
            ports: IoRevoke::new(space, 0, 1 << 16, Scope::Own),
            kernel_pages: 0,
            parked: None,
        }
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
        tlb::flush_space(self.space);
        Step::Done
    }

    /// Runs the job to its end without letting anybody in between.
    pub fn finish(&mut self) {
        while self.step(STEP_BUDGET) == Step::More {}
    }

    /// KIP and UTCB pages that are still mapped; the frames are their owner's.
    fn remove_kernel_pages(&mut self, budget: &mut Budget) -> Step {
        while self.kernel_pages < USER_END {
            if budget.is_used_up() {
                return Step::More;
            }
            budget.spend(cost::LOOK);
            let vaddr = self.kernel_pages;
            self.kernel_pages = match table::find(self.space, vaddr) {
                Slot::Leaf(leaf) => {
                    if leaf.entry.has(Entry::KERNEL) {
                        table::remove(self.space, vaddr, leaf);
                        budget.spend(cost::REMOVE);
                    }
                    (vaddr | (span(leaf.level) - 1)) + 1
                }
                Slot::Empty { level, table } => {
                    table::behind_empty(table, level, vaddr, USER_END, budget)
                }
            };
        }
        Step::Done
    }

    /// Nodes without pages, left by walks that are under way (or were abandoned).
    fn remove_ghosts(&mut self, budget: &mut Budget) -> Step {
        while let Some(node) = slab::any(self.space).filter(|node| !node.has(PORTS)) {
            if budget.is_used_up() {
                return Step::More;
            }
            budget.spend(cost::REMOVE);
            let walk = self.parked.take().and_then(|claim| state().walks.resume(claim).ok());
            let mut walk = walk.unwrap_or_else(|| Self::whole(node));
            if !walk.run(budget) {
                self.parked = Some(state().walks.park(walk));
                return Step::More;
            }
            if node.first_child().is_none() && node.count() == 0 {
                free_node(node);
            }
        }
        Step::Done
    }

    /// A walk over everything below `node`; addresses relative to its start.
    fn whole(node: NodeRef) -> Walk {
        Walk::new(node, 0, (0, node.size()), Rights::RWX)
    }
}
