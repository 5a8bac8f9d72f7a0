//! How a walk stands still between two steps, and goes on.

use super::{Stage, Walk, free_if_bare};
use crate::mem::budget::Budget;
use crate::mem::release::leave_status;
use crate::mem::revoke::Scope;

impl Walk {
    /// Leaves the marker where the walk stands, and in the tree what it has found: if the root vanishes meanwhile,
    /// or the walk is given up, the root's giver hears of it all the same. Above the node at which it is, up to
    /// the root, nobody has what it takes, so nobody else is told. An Unmap that leaves its own page tells its caller
    /// alone.
    #[cold]
    pub(super) fn stop(&mut self) {
        if self.taken.removes() && (self.scope == Scope::Own || !self.taken.status) {
            let above = self.cur.parent().filter(|_| self.depth > 0);
            leave_status(above.unwrap_or(self.cur), self.status);
        }
        self.marker.put_first(self.cur, self.depth);
        if self.stage == Stage::Leave {
            free_if_bare(self.cur);
        }
    }

    /// Looks where the marker is by now; whether the walk can go on, or has stopped again.
    #[cold]
    pub(crate) fn resume(&mut self, budget: &mut Budget) -> bool {
        let Some(above) = self.marker.parent() else {
            // The root has vanished, with all that was derived from it.
            self.end_region();
            self.stage = Stage::Done;
            return true;
        };
        let (depth, next) = (self.marker.depth(), self.marker.sibling());
        self.marker.take_out();
        self.cur = above;
        if self.stage == Stage::Climb {
            return self.climb_on(budget);
        }
        // The node at which it was has vanished.
        if depth < self.depth {
            self.depth = depth;
            self.go_below(next);
        }
        true
    }
}
