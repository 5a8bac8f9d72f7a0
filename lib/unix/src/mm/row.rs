//! A row of areas, of which those in front go as cheaply as those at the end: a program that gives back its
//! mappings from the lowest on would otherwise move all the others for each.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use super::area::{Area, AreaFlags, Backing};
use crate::machine::Access;

/// What stands in the places in front.
const NOTHING: Area = Area {
    start: 0,
    end: 0,
    access: Access::empty(),
    may: Access::empty(),
    flags: AreaFlags::empty(),
    backing: Backing::Anonymous,
    offset: 0,
};

/// Areas, and before them places that are left of others. No more places than areas, but for a few.
#[derive(Default)]
pub struct Row {
    all: Vec<Area>,
    front: usize,
}

/// Places in front that are no waste.
const FEW: usize = 64;

impl Deref for Row {
    type Target = [Area];

    fn deref(&self) -> &[Area] {
        &self.all[self.front..]
    }
}

impl DerefMut for Row {
    fn deref_mut(&mut self) -> &mut [Area] {
        &mut self.all[self.front..]
    }
}

impl Row {
    /// A copy, with room for `spare` more.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn try_clone(&self, spare: usize) -> Result<Self, TryReserveError> {
        let mut all = Vec::new();
        all.try_reserve_exact(self.len() + spare)?;
        all.extend_from_slice(self);
        Ok(Self { all, front: 0 })
    }

    /// Makes room for `more`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.all.try_reserve(more)
    }

    /// How many more fit without further memory.
    #[must_use]
    pub fn room(&self) -> usize {
        self.all.capacity() - self.all.len()
    }

    /// How many there can be, and places, in the memory that it has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.all.capacity()
    }

    /// Puts `area` in front of number `at`. There is room for it.
    pub fn insert(&mut self, at: usize, area: Area) {
        if self.front > 0 && at < self.len() / 2 {
            self.front -= 1;
            let moved = &mut self[..=at];
            moved.rotate_left(1);
            moved[at] = area;
        } else {
            self.all.insert(self.front + at, area);
        }
    }

    /// Takes number `at` out.
    pub fn remove(&mut self, at: usize) {
        drop(self.take(at, 1));
    }

    /// Takes out those from number `from` to `to` (that of the last is lower) that `joins` has added to the one before,
    /// all at once.
    pub fn merge(&mut self, from: usize, to: usize, joins: impl Fn(&mut Area, &Area) -> bool) {
        let to = to.min(self.len());
        let mut last = from;
        for number in from + 1..to {
            let (before, behind) = self.split_at_mut(number);
            if !joins(&mut before[last], &behind[0]) {
                last += 1;
                if last < number {
                    self.swap(last, number);
                }
            }
        }
        if last + 1 < to {
            self.all.drain(self.front + last + 1..self.front + to);
            self.tidy();
        }
    }

    /// No more places in front than areas.
    fn tidy(&mut self) {
        if self.front > self.len() + FEW {
            self.all.drain(..core::mem::take(&mut self.front));
        }
    }

    /// Takes `count` of them out, from number `at` on.
    pub fn take(&mut self, at: usize, count: usize) -> Vec<Area> {
        if at >= self.len() - at - count {
            return self.all.drain(self.front + at..self.front + at + count).collect();
        }
        self[..at + count].rotate_right(count);
        let taken = self[..count].iter_mut().map(|place| core::mem::replace(place, NOTHING));
        let taken = taken.collect();
        self.front += count;
        self.tidy();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn area(number: u64) -> Area {
        Area { start: number, end: number + 1, ..NOTHING }
    }

    fn numbers(row: &[Area]) -> Vec<u64> {
        row.iter().map(|area| area.start).collect()
    }

    /// Any order of insertions and removals is that of a vector.
    #[test]
    fn it_is_a_vector() {
        for seed in 1..200_u64 {
            let mut random = seed;
            let mut below = |limit: usize| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
                (random >> 33) as usize % limit.max(1)
            };
            let (mut row, mut model) = (Row::default(), Vec::new());
            for number in 0..300 {
                if below(5) < 3 || model.is_empty() {
                    let at = if below(3) == 0 { 0 } else { below(model.len() + 1) };
                    row.insert(at, area(number));
                    model.insert(at, number);
                } else {
                    let at = if below(2) == 0 { 0 } else { below(model.len()) };
                    let count = below(model.len() - at + 1);
                    let gone: Vec<u64> = model.drain(at..at + count).collect();
                    assert_eq!(numbers(&row.take(at, count)), gone, "seed {seed}");
                }
                assert_eq!(numbers(&row), model, "seed {seed}");
                assert!(row.front <= row.len() + FEW, "seed {seed}: places that nobody needs");
                assert!(row.all[..row.front].iter().all(|place| place.end == 0));
            }
        }
    }

    #[test]
    fn those_in_front_go_without_the_others() {
        let mut row = Row::default();
        (0..1_000).for_each(|number| row.insert(number as usize, area(number)));
        let behind = row.as_ptr_range().end;
        let gone: Vec<u64> = (0..500).flat_map(|_| numbers(&row.take(0, 1))).collect();
        assert_eq!(gone, (0..500).collect::<Vec<u64>>());
        assert_eq!(row.as_ptr_range().end, behind, "the others have moved");
        row.insert(0, area(7));
        assert_eq!((row.as_ptr_range().end, row[0].start), (behind, 7));
        assert_eq!(vec![row.len(), row.front], vec![501, 499]);
    }
}
