//! Walks that ran out of budget, until their jobs go on with them.
//!
//! The node where a parked walk stands carries a mark, and who frees a marked
//! node moves the walk on. When nodes have moved between parents, every walk
//! starts again from its root. That is not enough for a walk that has lost
//! children of its root to another node, or has taken rights from more of a page
//! than it was asked to: what it leaves unfinished has to be settled
//! (`Walk::settling`). Called by `walk.rs` and the jobs that have walks.

use super::node::{CURSOR, NodeRef};
use super::walk::Walk;
use core::cell::Cell;

/// How many walks can be parked at once; beyond that the oldest starts again.
const SLOTS: usize = 32;

#[derive(Clone, Copy)]
struct Place {
    stamp: u64,
    epoch: u64,
    /// Children of the walk's root went to another node, with what the walk has
    /// begun below them.
    torn: bool,
    walk: Walk,
}

/// The parked walks.
pub(crate) struct Parking {
    slot: [Cell<Option<Place>>; SLOTS],
    stamp: Cell<u64>,
    /// Counts what parked walks cannot follow: moves of nodes between parents, and pages
    /// that got rights from a sibling.
    epoch: Cell<u64>,
}

/// The claim on a parked walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked {
    stamp: u64,
    touched: (u64, u64),
    owes: bool,
}

/// A walk that cannot go on where it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// The physical region that has to be settled before anything else.
    pub owed: Option<(u64, u64)>,
}

impl Parking {
    pub(crate) const fn new() -> Self {
        Self { slot: [const { Cell::new(None) }; SLOTS], stamp: Cell::new(0), epoch: Cell::new(0) }
    }

    /// Keeps `walk` until [`Parking::resume`].
    pub(crate) fn park(&self, walk: Walk) -> Parked {
        let stamp = self.stamp.get() + 1;
        self.stamp.set(stamp);
        walk.cur.set_flags(CURSOR);
        if !walk.adopts() {
            walk.root.set_flags(CURSOR);
        }
        let place = Place { stamp, epoch: self.epoch.get(), torn: false, walk };
        // In turn: a walk that its job abandoned is overwritten some day.
        self.slot[stamp as usize % SLOTS].set(Some(place));
        Parked { stamp, touched: walk.touched(), owes: walk.owes() }
    }

    /// The walk again.
    ///
    /// # Errors
    /// [`Lost`]: it has to start from its root.
    pub(crate) fn resume(&self, claim: Parked) -> Result<Walk, Lost> {
        let slot = &self.slot[claim.stamp as usize % SLOTS];
        let Some(place) = slot.get().filter(|place| place.stamp == claim.stamp) else {
            // Nobody knows what happened to its root.
            return Err(Lost { owed: Some(claim.touched) });
        };
        slot.set(None);
        if place.torn {
            return Err(Lost { owed: Some(claim.touched) });
        }
        if place.epoch == self.epoch.get() || place.walk.is_done() {
            return Ok(place.walk);
        }
        Err(Lost { owed: claim.owes.then_some(claim.touched) })
    }

    /// Makes every parked walk start again.
    pub(crate) fn start_again(&self) {
        self.epoch.set(self.epoch.get() + 1);
    }

    /// Children of `root` go to another node: walks below `root` have to be settled.
    #[cold]
    pub(crate) fn lose_children(&self, root: NodeRef) {
        let mut marked = false;
        for slot in &self.slot {
            if let Some(mut place) = slot.get() {
                place.torn |= place.walk.root == root;
                marked |= place.walk.cur == root;
                slot.set(Some(place));
            }
        }
        if !marked {
            root.clear_flags(CURSOR);
        }
    }

    /// Moves every walk that stands at `node` on.
    #[cold]
    pub(crate) fn node_vanishes(&self, node: NodeRef) {
        for slot in &self.slot {
            if let Some(mut place) = slot.get()
                && place.walk.cur == node
                && !place.walk.is_done()
            {
                place.walk.advance();
                if !place.walk.is_done() {
                    place.walk.cur.set_flags(CURSOR);
                }
                slot.set(Some(place));
            }
        }
    }
}
