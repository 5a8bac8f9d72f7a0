//! Kernel memory quotas: what a space may use, in pages of 4 KiB.
//!
//! Every frame the kernel takes after boot is paid from one quota; when it is
//! exhausted only its owner notices. Limits move between quotas, they are not made.

use super::frames::{self, PhysFrame};
use core::cell::Cell;

/// The quota that had to pay is exhausted (or the pool, if quotas exceed it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// A limit and what is used of it, in pages.
#[derive(Debug)]
pub struct Quota {
    limit: Cell<u64>,
    used: Cell<u64>,
}

impl Quota {
    /// A quota of `limit` pages, unused. The sum of all limits should not exceed the pool.
    #[must_use]
    pub const fn new(limit: u64) -> Self {
        Self { limit: Cell::new(limit), used: Cell::new(0) }
    }

    /// Pages that may be used.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// Pages in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    /// Takes a frame with arbitrary content.
    pub fn take_frame(&self) -> Result<PhysFrame, NoMemory> {
        self.pay(frames::take)
    }

    /// Takes a frame full of zeros.
    pub fn take_zeroed_frame(&self) -> Result<PhysFrame, NoMemory> {
        self.pay(frames::take_zeroed)
    }

    /// Pays for what `take` takes.
    #[inline(always)]
    fn pay(&self, take: fn() -> Option<PhysFrame>) -> Result<PhysFrame, NoMemory> {
        if self.used.get() >= self.limit.get() {
            return Err(NoMemory);
        }
        let frame = take().ok_or(NoMemory)?;
        self.used.set(self.used.get() + 1);
        Ok(frame)
    }

    /// Gives back a frame that this quota paid for.
    pub fn give_back(&self, frame: PhysFrame) {
        frames::give_back(frame);
        self.used.set(self.used.get().saturating_sub(1));
    }

    /// Whether `pages` more can be charged.
    pub(crate) fn has(&self, pages: u64) -> bool {
        pages <= self.limit.get().saturating_sub(self.used.get())
    }

    /// Charges `pages` that [`Quota::take_reserved`] can take later, come what may.
    ///
    /// # Errors
    /// [`NoMemory`]: so many are not left; nothing is charged.
    pub(crate) fn reserve(&self, pages: u64) -> Result<(), NoMemory> {
        if !self.has(pages) {
            return Err(NoMemory);
        }
        self.used.set(self.used.get() + pages);
        Ok(())
    }

    /// Gives back what was reserved and not taken.
    pub(crate) fn release(&self, pages: u64) {
        self.used.set(self.used.get().saturating_sub(pages));
    }

    /// Takes a frame that was charged before. There is one: limits are never made, so all
    /// that is charged, taken or not, fits into the pool.
    pub(crate) fn take_reserved(&self) -> Option<PhysFrame> {
        frames::take()
    }

    /// Moves `pages` of unused limit to `to`.
    pub fn transfer(&self, to: &Self, pages: u64) -> Result<(), NoMemory> {
        let unused = self.limit.get().saturating_sub(self.used.get());
        if pages > unused {
            return Err(NoMemory);
        }
        self.limit.set(self.limit.get() - pages);
        to.limit.set(to.limit.get().saturating_add(pages));
        Ok(())
    }

    /// `pages` that are in use, and their limit, are `heir`'s from now on.
    pub(crate) fn pass_on(&self, heir: &Self, pages: u64) {
        for (from, to) in [(&self.limit, &heir.limit), (&self.used, &heir.used)] {
            from.set(from.get().saturating_sub(pages));
            to.set(to.get().saturating_add(pages));
        }
    }

    /// Gives the whole limit to `heir`; the quota is finished.
    pub(crate) fn bequeath(&self, heir: &Self) {
        heir.limit.set(heir.limit.get().saturating_add(self.limit.replace(0)));
    }
}
