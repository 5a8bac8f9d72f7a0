//! What walks that stopped have left above a page that goes: ghosts, as many as users like. Whoever has
//! taken the last of what was below them frees them, in steps.

use super::{Stage, Taken, Walk};
use crate::mem::budget::Budget;
use crate::mem::cost;
use crate::mem::marker::MarkerRef;
use crate::mem::node::NodeRef;
use crate::mem::release::{AT_ONCE, free_ghosts};
use crate::mem::revoke::Scope;
use abi::Rights;

/// How far a walk that climbs is from its end: its marker goes up with the ghosts that vanish around it.
const FAR: u64 = 1 << 32;

impl Walk {
    /// A walk over `size` bytes that has stopped: it has nothing to do but to free the ghosts from `ghost` upward.
    #[cold]
    pub(crate) fn above(marker: MarkerRef, ghost: NodeRef, size: u64) -> Self {
        let mut walk = Self {
            marker,
            cur: ghost,
            stage: Stage::Climb,
            depth: FAR,
            pos: 0,
            start: 0,
            end: size,
            taken: Taken::PAGES,
            scope: Scope::Own,
            spared: 0,
            marked: 0,
            status: Rights::NONE,
        };
        walk.stop();
        walk
    }

    /// Frees the ghosts from `ghost` upward, as far as `budget` goes.
    #[cold]
    pub(super) fn climb(&mut self, ghost: NodeRef, budget: &mut Budget) {
        let mut next = Some(ghost);
        while let Some(ghost) = next
            && !budget.is_used_up()
        {
            budget.spend(AT_ONCE * cost::VISIT);
            next = free_ghosts(ghost);
        }
        self.stage = Stage::Done;
        if let Some(ghost) = next {
            (self.cur, self.depth, self.stage) = (ghost, FAR, Stage::Climb);
        }
    }

    /// Goes on with that from `cur`; whether all of them are gone.
    #[cold]
    pub(super) fn climb_on(&mut self, budget: &mut Budget) -> bool {
        self.climb(self.cur, budget);
        let is_done = self.stage == Stage::Done;
        if !is_done {
            self.stop();
        }
        is_done
    }
}
