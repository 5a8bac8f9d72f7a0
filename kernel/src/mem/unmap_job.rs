//! Unmap and flush (X.2 5.8) as a job.

use super::budget::Budget;
use super::io_flush::IoRevoke;
use super::marker::MarkerRef;
use super::revoke::{Revoke, Scope};
use super::space::SpaceRef;
use super::walk::Taken;
use super::{STEP_BUDGET, Step};
use abi::fpage::PAGE_BITS;
use abi::layout::USER_END;
use abi::{Fpage, Rights};

/// Takes the rights named in a flexpage from all mappings derived from it, with
/// `flush` from the space's own pages too. Revoking R removes the mapping (the
/// processor has no page that can be written but not read); no rights: the
/// status bits are only read and reset. A part of a large page is split off;
/// whoever has it paid for that when it was mapped.
pub struct UnmapJob(Of);

/// Of what the flexpage is.
enum Of {
    Memory(Revoke),
    Ports(IoRevoke),
    Nothing,
}

impl UnmapJob {
    /// Gives the job up between two steps; what is done stays done.
    pub fn abandon(&mut self) {
        if let Of::Memory(revoke) = &mut self.0 {
            revoke.abandon();
        }
    }

    /// Prepares the job; nothing happens yet. Nobody else uses `marker` until it is done.
    #[must_use]
    pub fn new(space: SpaceRef, fpage: Fpage, scope: Scope, marker: MarkerRef) -> Self {
        if fpage.is_nil() {
            Self(Of::Nothing)
        } else if fpage.is_io() {
            let start = u64::from(fpage.io_base());
            Self(Of::Ports(IoRevoke::new(space, start, start + (1 << fpage.io_bits()), scope)))
        } else {
            // A complete space is 64 bits large: all of a flexpage's bits are below its size.
            let bits = fpage.bits().clamp(PAGE_BITS, 63);
            let inside = (1 << bits) - 1;
            let start = fpage.0 & !inside;
            let end = (fpage.0 | inside).min(USER_END - 1) + 1;
            let taken = Taken { rights: fpage.rights(), status: true };
            Self(Of::Memory(Revoke::new(marker, space, (start, end), scope, taken)))
        }
    }

    /// Between two steps: the tasks that have shared what is now taken back, if it was others.
    #[must_use]
    pub fn sharers(&self) -> [Option<SpaceRef>; 2] {
        match &self.0 {
            Of::Memory(revoke) => revoke.sharers(revoke.space),
            Of::Ports(_) | Of::Nothing => [None; 2],
        }
    }

    /// Goes on until done ([`Step::Done`]) or until an interrupt is pending.
    #[inline]
    pub fn advance(&mut self) -> Step {
        self.run(&mut Budget::until_interrupted())
    }

    /// Goes on for about `units` (see [`STEP_BUDGET`]).
    pub fn step(&mut self, units: u32) -> Step {
        self.run(&mut Budget::step(units))
    }

    fn run(&mut self, budget: &mut Budget) -> Step {
        match &mut self.0 {
            Of::Memory(revoke) => revoke.step(budget),
            Of::Ports(revoke) => revoke.step(budget),
            Of::Nothing => Step::Done,
        }
    }

    /// What was referenced (R and X) and written (W) since the last reset.
    #[must_use]
    pub fn status(&self) -> Rights {
        match &self.0 {
            Of::Memory(revoke) => revoke.status,
            _ => Rights::NONE,
        }
    }

    /// Runs the job to its end without letting anybody in between.
    pub fn finish(&mut self) {
        while self.step(STEP_BUDGET) == Step::More {}
    }
}
