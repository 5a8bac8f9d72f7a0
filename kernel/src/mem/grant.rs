//! Granting a page (Liedtke 1995, 2.1; Appendix A).
//!
//! Usually the new node takes the old one's place, at once and with all that was derived from
//! the page; walks notice nothing. The children are told one by one: until then they know
//! their parent through the old node, a forwarder in front of those who have not been told.
//! Where the new page cannot take the place, because it is a part of a larger one or was
//! there before, the children move one by one, unless a walk is among them: then those that
//! are left lose the page. Called by `map.rs`.

use super::budget::Budget;
use super::map::{Memory, Placed};
use super::marker::{MarkerRef, Position};
use super::node::{LIVE, MARKER, NodeRef};
use super::piece::{Piece, insert};
use super::quota::NoMemory;
use super::release::{free_ghosts, leave_status, take_status};
use super::revoke::{Revoke, Scope};
use super::small::take_own;
use super::table::{self, Slot};
use super::{cost, slab};
use crate::arch::paging::Entry;
use crate::arch::tlb;
use abi::Rights;

/// Where a marker is that belongs to no walk: it vanishes with the node.
pub(super) const ALONE: Position = Position { base: 0, depth: 0, entering: None };

impl Memory {
    pub(super) fn grant_piece(
        &mut self,
        piece: Piece,
        there: Option<NodeRef>,
        budget: &mut Budget,
    ) -> Result<Placed, NoMemory> {
        let lost = piece.source.entry.rights().without(piece.rights);
        let (node, end) = (piece.node, piece.from + piece.size());
        if !lost.is_empty() && node.first_child().is_some() {
            let range = (piece.from, end);
            self.revoke = Some(Revoke::new(self.marker, self.src, range, Scope::Own, lost));
            return Ok(Placed::Again);
        }
        if there.is_none() && node.level() == piece.level {
            return self.replace(piece, budget);
        }
        let new = match there {
            Some(node) => node,
            None => self.sibling(piece)?,
        };
        if node.first_child().is_some() && !self.adopt(piece, new, budget) {
            return Ok(Placed::Again);
        }
        self.inherit_status(piece, new);
        if piece.source.level == piece.level && node.first_child().is_none() {
            budget.spend(cost::REMOVE);
            take_own(self.src, piece.from, piece.source, node, Rights::NONE);
            return Ok(Placed::Advance(piece.size()));
        }
        self.flush(self.src, piece.from, end);
        self.skip = piece.size();
        Ok(Placed::Again)
    }

    /// The new page takes the place of the old one.
    fn replace(&mut self, piece: Piece, budget: &mut Budget) -> Result<Placed, NoMemory> {
        let old = piece.node;
        if old.is_passed_on() {
            // The grant that brought it was given up.
            self.begin_to_spread(old);
            return Ok(Placed::Again);
        }
        let new = self.sibling(piece)?;
        self.inherit_status(piece, new);
        budget.spend(cost::REMOVE);
        let status = table::remove(self.src, piece.from, piece.source).status();
        if let Some(parent) = old.parent() {
            leave_status(parent, status);
        }
        if old.first_raw().is_none() {
            free_ghosts(old);
        } else {
            old.unlink();
            new.take_over(old);
            self.begin_to_spread(new);
        }
        Ok(Placed::Advance(piece.size()))
    }

    fn begin_to_spread(&mut self, parent: NodeRef) {
        self.marker.put_first(parent, ALONE);
        self.spreads = true;
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
        tlb::quiet(self.src);
        let old = piece.source.table.get(piece.source.index);
        if let Slot::Leaf(leaf) = table::find(self.dst, piece.to) {
            leaf.table.set_bits(leaf.index, old.0 & (Entry::A | Entry::D));
        }
        leave_status(new, take_status(piece.node));
    }

    /// Moves the children inside the piece to `new`, as long as no walk is among them; false
    /// if the budget ran out. In front of the marker are those that stay.
    fn adopt(&mut self, piece: Piece, new: NodeRef, budget: &mut Budget) -> bool {
        let (old, marker) = (piece.node, self.marker);
        let (low, high) = (piece.phys(), piece.phys() + piece.size());
        let new_base = low - (piece.to - new.vaddr());
        if marker.parent() != Some(old) {
            marker.put_first(old, ALONE);
        }
        while let Some(child) = marker.node().next_raw().filter(|_| !is_walked(old)) {
            if budget.is_used_up() {
                return false;
            }
            budget.spend(cost::VISIT);
            let start = piece.base() + child.offset();
            let fits = !child.has(MARKER) && low <= start && start + child.size() <= high;
            if fits {
                child.unlink();
                child.set_offset(start - new_base);
                child.link_below(new);
            } else {
                child.move_before(marker.node(), old);
            }
        }
        marker.take_out();
        true
    }
}

/// Whether a walk is among the children of `node` or among its siblings: moving what is below it
/// elsewhere could hide that from the walk, or show it twice.
pub(super) fn is_walked(node: NodeRef) -> bool {
    node.is_walked() || node.parent().is_some_and(|parent| parent.is_walked())
}

/// Tells the children behind `marker` that its parent is theirs; false if the budget ran out.
pub(super) fn spread(marker: MarkerRef, budget: &mut Budget) -> bool {
    let Some(parent) = marker.parent() else { return true };
    let marker = marker.node();
    marker.set_parent(parent);
    while let Some(next) = marker.next_raw() {
        if budget.is_used_up() {
            return false;
        }
        budget.spend(cost::VISIT);
        if !is_forwarder(next) {
            next.move_before(marker, parent);
        } else if let Some(child) = next.next_raw() {
            child.move_before(marker, parent);
        } else {
            next.unlink();
            slab::free(next.space(), next);
        }
    }
    parent.is_known();
    marker.unlink();
    true
}

/// Whether `node` is what is left of a granted page's node.
pub(super) fn is_forwarder(node: NodeRef) -> bool {
    node.has(MARKER | LIVE)
}
