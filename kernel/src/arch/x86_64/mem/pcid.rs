//! Process-context ids: who owns which.
//!
//! Pure bookkeeping; flushing is the caller's. A space that gets a PCID keeps
//! its translations over switches. When all are taken, the next one in turn is
//! stolen; its former owner falls back to PCID 0, whose translations are
//! dropped at every load (a tagged TLB, Liedtke 1995, 4.1.2).

use core::cell::Cell;

/// PCIDs in use by this kernel, PCID 0 included (the processor has 4096).
pub const COUNT: usize = 1024;

/// The owners of all PCIDs; an owner is any non-zero word.
pub struct Pcids {
    owner: [Cell<u64>; COUNT],
    next: Cell<usize>,
    enabled: Cell<bool>,
}

/// The answer of [`Pcids::assign`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the translations of the former owner must be flushed"]
pub struct Assigned {
    /// The PCID, never 0.
    pub pcid: u16,
    /// Who lost it, if it was in use.
    pub stolen_from: Option<u64>,
}

impl Pcids {
    /// All free, not enabled.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            owner: [const { Cell::new(0) }; COUNT],
            next: Cell::new(1),
            enabled: Cell::new(false),
        }
    }

    /// Says that the processor has PCIDs and INVPCID and that CR4.PCIDE is set.
    pub fn enable(&self) {
        self.enabled.set(true);
    }

    /// Whether PCIDs are in use.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Gives `owner` a PCID: a free one among the next few in turn, else the next in turn.
    pub fn assign(&self, owner: u64) -> Assigned {
        const LOOK_AHEAD: usize = 16;
        let start = self.next.get();
        let mut chosen = start;
        for distance in 0..LOOK_AHEAD {
            let candidate = Self::after(start, distance);
            if self.owner[candidate].get() == 0 {
                chosen = candidate;
                break;
            }
        }
        self.next.set(Self::after(chosen, 1));
        let former = self.owner[chosen].replace(owner);
        Assigned { pcid: chosen as u16, stolen_from: (former != 0).then_some(former) }
    }

    /// Takes `pcid` back.
    pub fn release(&self, pcid: u16) {
        let index = usize::from(pcid) % COUNT;
        if index != 0 {
            self.owner[index].set(0);
        }
    }

    /// `start` + `distance`, going round from the last to 1 (0 is never given).
    const fn after(start: usize, distance: usize) -> usize {
        1 + (start - 1 + distance) % (COUNT - 1)
    }
}

impl Default for Pcids {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_given_once_then_stolen_in_turn() {
        let pcids = Pcids::new();
        let mut seen = [false; COUNT];
        for owner in 1..COUNT as u64 {
            let got = pcids.assign(owner);
            assert_eq!(got.stolen_from, None);
            assert!(got.pcid != 0 && !core::mem::replace(&mut seen[usize::from(got.pcid)], true));
        }
        let got = pcids.assign(5000);
        assert_eq!((got.pcid, got.stolen_from), (1, Some(1)));
        assert_eq!(pcids.assign(5001).stolen_from, Some(2));
    }

    #[test]
    fn a_released_one_is_found_again() {
        let pcids = Pcids::new();
        for owner in 1..COUNT as u64 {
            let _ = pcids.assign(owner);
        }
        pcids.release(7);
        pcids.release(0);
        assert_eq!(pcids.assign(9000), Assigned { pcid: 7, stolen_from: None });
    }
}
