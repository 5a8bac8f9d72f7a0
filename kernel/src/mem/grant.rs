//! Granting a page (Liedtke 1995, 2.1; Appendix A).
//!
//! The new page first becomes a sibling of the old one, then adopts its children
//! one by one, then the old page goes: at every point in between both spaces are
//! in a state that mapping alone could have produced. Called by `map.rs`.

use super::budget::Budget;
use super::cost;
use super::map::{Memory, Piece, Progress, insert};
use super::node::NodeRef;
use super::quota::NoMemory;
use super::release::{leave_status, take_status};
use super::revoke::{Revoke, Scope};
use super::small::take_own;
use super::state;
use super::table::{self, Slot};
use super::walk::Walk;
use crate::arch::paging::Entry;
use abi::Rights;

impl Memory {
    pub(super) fn grant_piece(
        &mut self,
        piece: Piece,
        there: Option<NodeRef>,
        budget: &mut Budget,
    ) -> Result<Progress, NoMemory> {
        let lost = piece.source.entry.rights().without(piece.rights);
        let end = piece.from + piece.size();
        if !lost.is_empty() && piece.node.first_child().is_some() {
            let revoke = Revoke::new(self.src, piece.from, end, Scope::Own, lost);
            self.revoke = Some(revoke);
            return Ok(Progress::Again);
        }
        let new = match there {
            Some(node) => node,
            None => self.sibling(piece)?,
        };
        if piece.node.first_child().is_some() && !self.adopt(piece, new, budget) {
            return Ok(Progress::Again);
        }
        self.inherit_status(piece, new);
        if piece.source.level == piece.level && piece.node.first_child().is_none() {
            budget.spend(cost::REMOVE);
            take_own(self.src, piece.from, piece.source, piece.node, Rights::NONE);
            return Ok(Progress::Advance(piece.size()));
        }
        self.revoke = Some(Revoke::flush(self.src, piece.from, end));
        self.skip = piece.size();
        Ok(Progress::Again)
    }

    /// The new page beside the old one.
    fn sibling(&self, piece: Piece) -> Result<NodeRef, NoMemory> {
        let node = insert(self.dst, piece)?;
        let parent_offset = piece.node.offset() + (piece.from - piece.node.vaddr());
        node.set_offset(parent_offset);
        node.link_behind(piece.node);
        Ok(node)
    }

    /// The new page has been used as the old one was.
    fn inherit_status(&self, piece: Piece, new: NodeRef) {
        if let Slot::Leaf(leaf) = table::find(self.dst, piece.to) {
            leaf.table.set_bits(leaf.index, piece.source.entry.0 & (Entry::A | Entry::D));
        }
        leave_status(new, take_status(piece.node, true));
    }

    /// Moves the children inside the piece to `new`; false if the budget ran out.
    fn adopt(&mut self, piece: Piece, new: NodeRef, budget: &mut Budget) -> bool {
        let parked = self.adoption.take().and_then(|claim| state().walks.resume(claim).ok());
        let region = (piece.phys(), piece.phys() + piece.size());
        let walk = parked
            .filter(|walk| walk.concerns(piece.node, region.0))
            .unwrap_or_else(|| Walk::new(piece.node, piece.base(), region, Rights::NONE));
        let mut walk = walk.adopting(new, piece.phys() - (piece.to - new.vaddr()));
        if walk.run(budget) {
            return true;
        }
        self.adoption = Some(state().walks.park(walk));
        false
    }
}
