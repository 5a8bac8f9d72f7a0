//! The record locks on a file, and who pays for them.

use alloc::vec::Vec;

use super::locks::Owner;
use crate::account::{Charge, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::room::Room;

/// Most record locks of one user on one file: all are looked at by whoever locks there.
const RECORDS_MAX: u64 = 4096;

/// What one costs.
pub(super) const RECORD_BYTES: u64 = 160;

/// A record lock: bytes `start` to `end`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) exclusive: bool,
    pub(super) owner: Owner,
    /// The user who pays for it.
    pub(super) payer: u32,
}

impl Record {
    fn overlaps(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether something is left of it on both sides of `range`.
    fn is_split_by(&self, range: &Self) -> bool {
        self.owner == range.owner && self.start < range.start && self.end > range.end
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.owner != other.owner && (self.exclusive || other.exclusive) && self.overlaps(other)
    }
}

/// All on one file.
#[derive(Default)]
pub(super) struct Records {
    all: Vec<Record>,
    /// What they cost the users who have some.
    charges: Vec<Charge>,
}

impl Records {
    /// The first that keeps `wanted` from being taken.
    pub(super) fn in_the_way(&self, wanted: &Record) -> Option<Record> {
        self.all.iter().find(|held| held.conflicts(wanted)).copied()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether `owner` holds any.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.all.iter().any(|record| record.owner == owner)
    }

    /// Everything that `owner` holds ends.
    pub(super) fn release(&mut self, owner: Owner) {
        self.all.retain(|record| record.owner != owner);
        self.settle();
    }

    /// Replaces what `range.owner` holds of the range by `new`, or (`None`) by nothing.
    ///
    /// # Errors
    /// `ENOLCK` if somebody cannot pay for what that makes more, or has too many: nothing is changed.
    pub(super) fn change(
        &mut self,
        cx: &Cx,
        range: Record,
        new: Option<Record>,
    ) -> Result<(), Errno> {
        let done = self.pay(cx, &range, new).and_then(|()| replace(&mut self.all, range, new));
        self.settle();
        done
    }

    /// Has the users pay for what [`replace`] may make more: the caller for a new one, and who had what is split
    /// for another part of it.
    fn pay(&mut self, cx: &Cx, range: &Record, new: Option<Record>) -> Result<(), Errno> {
        let split = self.all.iter().find(|record| record.is_split_by(range));
        let split = split.map(|record| record.payer);
        if let Some(new) = new
            && !self.charges.iter().any(|charge| charge.user().uid == new.payer)
        {
            self.charges.try_reserve(1).map_err(|_| Errno::ENOLCK)?;
            self.charges.push(cx.charge(What::Heap));
        }
        for payer in new.map(|new| new.payer).into_iter().chain(split) {
            if self.count(payer) >= RECORDS_MAX {
                return Err(Errno::ENOLCK);
            }
            if let Some(charge) = self.charges.iter().find(|charge| charge.user().uid == payer) {
                charge.grow(RECORD_BYTES).map_err(|_| Errno::ENOLCK)?;
            }
        }
        Ok(())
    }

    /// How many a user has.
    fn count(&self, payer: u32) -> u64 {
        self.all.iter().filter(|record| record.payer == payer).count() as u64
    }

    /// Every user pays for what it has.
    fn settle(&mut self) {
        let (all, charges) = (&self.all, &mut self.charges);
        charges.retain(|charge| {
            let own = all.iter().filter(|record| record.payer == charge.user().uid);
            charge.set(own.count() as u64 * RECORD_BYTES);
            charge.amount() != 0
        });
        self.all.trim();
        self.charges.trim();
    }
}

/// Replaces what `range.owner` holds of the range by `new`, or (`None`) by nothing.
///
/// # Errors
/// `ENOLCK` without memory: nothing is changed.
fn replace(records: &mut Vec<Record>, range: Record, new: Option<Record>) -> Result<(), Errno> {
    let mut kept = Vec::new();
    kept.try_reserve(records.len() + 2).map_err(|_| Errno::ENOLCK)?;
    for record in records.drain(..) {
        if record.owner != range.owner || !record.overlaps(&range) {
            kept.push(record);
            continue;
        }
        if record.start < range.start {
            kept.push(Record { end: range.start - 1, ..record });
        }
        if record.end > range.end {
            kept.push(Record { start: range.end + 1, ..record });
        }
    }
    if let Some(mut new) = new {
        kept.retain(|record| {
            let joins = record.owner == new.owner
                && record.exclusive == new.exclusive
                && record.start <= new.end.saturating_add(1)
                && new.start <= record.end.saturating_add(1);
            if joins {
                new.start = new.start.min(record.start);
                new.end = new.end.max(record.end);
            }
            !joins
        });
        kept.push(new);
    }
    kept.sort_unstable_by_key(|record| (record.start, record.end));
    *records = kept;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Pid;

    fn record(start: u64, end: u64, exclusive: bool) -> Record {
        Record { start, end, exclusive, owner: Owner::Process(Pid::FIRST), payer: 0 }
    }

    #[test]
    fn unlocking_the_middle_leaves_both_ends() {
        let mut records = alloc::vec![record(0, 99, true)];
        replace(&mut records, record(40, 59, false), None).unwrap();
        assert_eq!(records, [record(0, 39, true), record(60, 99, true)]);
    }

    #[test]
    fn neighbours_of_one_kind_become_one() {
        let mut records = alloc::vec![record(0, 9, false), record(20, 29, false)];
        let new = record(10, 19, false);
        replace(&mut records, new, Some(new)).unwrap();
        assert_eq!(records, [record(0, 29, false)]);
        let new = record(5, 6, true);
        replace(&mut records, new, Some(new)).unwrap();
        assert_eq!(records, [record(0, 4, false), new, record(7, 29, false)]);
    }
}
