//! Granting a page (Liedtke 1995, 2.1; Appendix A).
//!
//! The new node takes the old one's place, at once and with all that was derived from
//! the page; walks notice nothing. The children are told one by one: until then they know
//! their parent through the old node, a forwarder in front of those who have not been told.
//! A part of a larger page has no node that could be replaced: it becomes a page of its own, and
//! what was derived from it goes. Called by `map.rs`; argued in docs/decisions/0126.

use super::budget::Budget;
use super::map::{Memory, Placed};
use super::marker::MarkerRef;
use super::node::{LIVE, MARKER, NodeRef};
use super::piece::{Piece, insert};
use super::quiesce::quiet;
use super::quota::NoMemory;
use super::release::{free_ghosts, leave_status, take_status};
use super::revoke::{Revoke, Scope};
use super::table::{self, Slot};
use super::walk::Taken;
use super::{cost, slab};
use crate::arch::paging::Entry;

impl Memory {
    pub(super) fn grant_piece(
        &mut self,
        piece: Piece,
        budget: &mut Budget,
    ) -> Result<Placed, NoMemory> {
        let (node, end) = (piece.node, piece.from + piece.size());
        if node.level() > piece.level {
            let new = self.sibling(piece)?;
            self.inherit_status(piece, new);
            self.flush(self.src, piece.from, end);
            return Ok(Placed::Advance(piece.size()));
        }
        let lost = piece.source.entry.rights().without(piece.rights);
        if !lost.is_empty() && node.first_child().is_some() {
            let range = (piece.from, end);
            let taken = Taken { rights: lost, status: false };
            self.revoke = Some(Revoke::new(self.marker, self.src, range, Scope::Own, taken));
            return Ok(Placed::Again);
        }
        self.replace(piece, budget)
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
            // The new one is beside it: no ancestor goes.
            let _ = free_ghosts(old);
        } else {
            old.unlink();
            new.take_over(old);
            self.begin_to_spread(new);
        }
        Ok(Placed::Advance(piece.size()))
    }

    fn begin_to_spread(&mut self, parent: NodeRef) {
        // It belongs to no walk, and vanishes with the node.
        self.marker.put_first(parent, 0);
        self.spreads = true;
    }

    /// The new page beside the old one.
    fn sibling(&self, piece: Piece) -> Result<NodeRef, NoMemory> {
        let node = insert(self.dst, piece)?;
        node.link_behind(piece.node);
        Ok(node)
    }

    /// The new page has been used as the old one was.
    fn inherit_status(&self, piece: Piece, new: NodeRef) {
        quiet(self.src);
        let old = piece.source.table.get(piece.source.index);
        if let Slot::Leaf(leaf) = table::find(self.dst, piece.to) {
            leaf.table.set_bits(leaf.index, old.0 & (Entry::A | Entry::D));
        }
        leave_status(new, take_status(piece.node));
    }
}

/// Tells the children behind `marker` that its parent is theirs; false if the budget ran out. Those in front of
/// it know, and so does the marker itself, unless the page has been granted on: then all of them had been told
/// before, and to tell them of that grant is not this one's business.
pub(super) fn spread(marker: MarkerRef, budget: &mut Budget) -> bool {
    let Some(parent) = marker.parent() else { return true };
    if !marker.is_told() {
        marker.unlink();
        return true;
    }
    while let Some(next) = marker.next_raw() {
        if budget.is_used_up() {
            return false;
        }
        budget.spend(cost::VISIT);
        let child = if is_forwarder(next) { next.next_raw() } else { Some(next) };
        if let Some(child) = child {
            child.move_before(*marker, parent);
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
