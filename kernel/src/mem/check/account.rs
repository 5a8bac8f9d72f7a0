//! The account of all frames: each frame of the pool is free, in use by exactly one
//! space, or the kernel's own since boot; limits move between quotas and are not made.
//!
//! Boot closes ("seals") the account when the initial spaces have been given
//! everything; before that, and in tests that never do, there is nothing to compare.

use super::{Rule, Violation, tables};
use crate::arch::paging::Entry;
use crate::arch::virt_to_phys;
use crate::mem::frames::{self, Info};
use crate::mem::ports;
use crate::mem::space::SpaceRef;
use crate::mem::table::{self, Slot};
use crate::mem::{slab, state};

/// Closes the account: `limits` is the sum of all quotas, `used` what they pay for.
pub fn seal(limits: u64, used: u64) {
    let pool = &state().frames;
    pool.granted.set(limits);
    pool.kept.set(frames::total() - frames::free() - used);
}

/// Whether the account is closed.
#[must_use]
pub fn is_sealed() -> bool {
    state().frames.granted.get() != 0
}

/// The sum of all quotas, once and for all.
#[must_use]
pub fn sealed_limits() -> u64 {
    state().frames.granted.get()
}

/// Marks every frame with an owner.
pub struct Ledger<'a> {
    report: &'a mut dyn FnMut(Violation),
    claimed: u64,
}

/// Begins an account: no frame has an owner but the free ones.
pub fn ledger(report: &mut dyn FnMut(Violation)) -> Ledger<'_> {
    frames::unmark_all();
    let mut ledger = Ledger { report, claimed: 0 };
    frames::for_each_free(|frame| ledger.claim(u32::MAX, frame));
    ledger
}

impl Ledger<'_> {
    /// Says that `frame` is space number `space`'s.
    pub fn claim(&mut self, space: u32, frame: u64) {
        let rule = match frames::mark(frame) {
            Some(true) => Rule::OneOwner,
            Some(false) => {
                self.claimed += 1;
                return;
            }
            None => Rule::FromPool,
        };
        (self.report)(Violation { space, at: frame, rule });
    }

    /// Claims everything that `space` has but the blocks of its threads; how many frames, with
    /// those that it has paid for and not taken.
    pub fn space(&mut self, space: SpaceRef) -> u64 {
        let (id, before) = (space.id(), self.claimed);
        self.claim(id, virt_to_phys(space.address()));
        tables::for_each(space, |table, _, _| {
            self.claim(id, table.address());
            match Info::of(table.address()).twin() {
                0 => {}
                twin => self.claim(id, twin),
            }
        });
        slab::for_each_frame(space, |frame| self.claim(id, frame));
        ports::for_each_frame(space, |frame| self.claim(id, frame));
        let (_, utcbs) = space.areas();
        let mut left = space.task.utcb_pages.get();
        let mut page = utcbs.start;
        while left > 0 && page < utcbs.end {
            if let Slot::Leaf(leaf) = table::find(space, page)
                && !leaf.entry.has(Entry::A_STACK)
            {
                self.claim(id, leaf.phys());
                left -= 1;
            }
            page += frames::FRAME;
        }
        self.claimed - before + tables::reserved(space)
    }

    /// Ends the account: how many frames have no owner.
    #[must_use]
    pub fn lost(self) -> i64 {
        frames::unmark_all();
        let kept = state().frames.kept.get();
        (frames::total() - kept) as i64 - self.claimed as i64
    }
}
