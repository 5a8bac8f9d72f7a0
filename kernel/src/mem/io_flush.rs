//! Taking ports from a range of a space and from all who got them from there.
//!
//! Deepest mappings first, one per round; every round looks up everything anew.
//! A node that loses a part is cut into halves until the part is a node. If its
//! space cannot pay for the pieces, it loses all of its ports.

use super::budget::Budget;
use super::io::{self, end, start};
use super::node::NodeRef;
use super::revoke::Scope;
use super::space::SpaceRef;
use super::{Step, cost};

/// The operation and how far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoRevoke {
    space: SpaceRef,
    pos: u64,
    end: u64,
    scope: Scope,
}

impl IoRevoke {
    /// Takes the ports `start..end`.
    pub(crate) fn new(space: SpaceRef, start: u64, end: u64, scope: Scope) -> Self {
        Self { space, pos: start, end, scope }
    }

    /// Goes on until done or the budget is used up.
    pub(crate) fn step(&mut self, budget: &mut Budget) -> Step {
        while self.pos < self.end {
            if budget.is_used_up() {
                return Step::More;
            }
            budget.spend(cost::REMOVE);
            let node = io::find(self.space, self.pos)
                .or_else(|| io::first_in(self.space, self.pos, self.end));
            match node {
                Some(node) => self.round(node),
                None => self.pos = self.end,
            }
        }
        Step::Done
    }

    fn round(&mut self, node: NodeRef) {
        let (low, high) = (self.pos.max(start(node)), self.end.min(end(node)));
        let last = io::deepest(node, |child| io::overlaps(child, low, high));
        if last != node {
            take_part(last, low, high);
        } else if self.scope == Scope::Own && !self.space.is_sigma0() {
            take_part(node, low, high);
        } else if self.scope == Scope::Own && low == start(node) && high == end(node) {
            io::remove(node);
        } else {
            self.pos = high;
        }
    }
}

/// Removes `low..high` from a node none of whose children overlap that; or does
/// a first part of it.
fn take_part(node: NodeRef, low: u64, high: u64) {
    if low <= start(node) && end(node) <= high {
        io::remove(node);
    } else if io::halve(node).is_err() {
        io::remove(io::deepest(node, |_| true));
    }
}
