//! The inverted page table of a pool of frames.

/// One entry: which page of which task a frame holds.
///
/// One word: `63..52` task slot + 1, `51..36` generation of the task, `35..0`
/// page number. 0: never used; [`Entry::FREED`]: free again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(pub u64);

impl Entry {
    /// Never used: a search ends here.
    pub const EMPTY: Self = Self(0);
    /// Used once, free again: a search goes on.
    pub const FREED: Self = Self(!0);

    /// The entry for page number `page` of the task in `slot`, generation `generation`.
    #[must_use]
    pub const fn new(slot: usize, generation: u64, page: u64) -> Self {
        Self((slot as u64 + 1) << 52 | (generation & 0xFFFF) << 36 | page & 0xF_FFFF_FFFF)
    }

    /// The task's slot; `None` for a frame that is not in use.
    #[must_use]
    pub const fn slot(self) -> Option<usize> {
        match self.0 {
            0 | 0xFFFF_FFFF_FFFF_FFFF => None,
            word => Some((word >> 52) as usize - 1),
        }
    }

    const fn hash(self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }
}

/// Where the entries are kept: words by index.
pub trait Storage {
    /// Entry `index`.
    fn get(&self, index: usize) -> Entry;
    /// Sets entry `index`.
    fn set(&mut self, index: usize, entry: Entry);
}

impl Storage for [Entry] {
    fn get(&self, index: usize) -> Entry {
        self[index]
    }
    fn set(&mut self, index: usize, entry: Entry) {
        self[index] = entry;
    }
}

/// The table over `len` frames; entry `i` belongs to frame `i`.
pub struct Frames<'a, S: Storage + ?Sized> {
    storage: &'a mut S,
    len: usize,
}

impl<'a, S: Storage + ?Sized> Frames<'a, S> {
    /// The table over `len` > 0 frames whose entries are in `storage`.
    pub fn new(storage: &'a mut S, len: usize) -> Self {
        Self { storage, len }
    }

    /// The frame that holds `key`, if one does.
    #[must_use]
    pub fn find(&self, key: Entry) -> Option<usize> {
        for index in self.probe(key) {
            match self.storage.get(index) {
                found if found == key => return Some(index),
                Entry::EMPTY => return None,
                _ => {}
            }
        }
        None
    }

    /// A free frame for `key`, which is not in the table yet. `None`: all are used.
    pub fn take(&mut self, key: Entry) -> Option<usize> {
        let index = self.probe(key).find(|index| self.storage.get(*index).slot().is_none())?;
        self.storage.set(index, key);
        Some(index)
    }

    /// Frees all frames whose entry `test` accepts; returns how many.
    pub fn free(&mut self, test: impl Fn(Entry) -> bool) -> usize {
        let mut count = 0;
        for index in 0..self.len {
            let entry = self.storage.get(index);
            if entry.slot().is_some() && test(entry) {
                self.storage.set(index, Entry::FREED);
                count += 1;
            }
        }
        self.clean();
        count
    }

    /// Frames whose entry `test` accepts.
    #[must_use]
    pub fn count(&self, test: impl Fn(Entry) -> bool) -> usize {
        (0..self.len)
            .filter(|index| {
                let entry = self.storage.get(*index);
                entry.slot().is_some() && test(entry)
            })
            .count()
    }

    /// A freed entry in front of an empty one need not stop a search: makes it empty.
    fn clean(&mut self) {
        for _ in 0..2 {
            for index in (0..self.len).rev() {
                let next = if index + 1 == self.len { 0 } else { index + 1 };
                if self.storage.get(index) == Entry::FREED && self.storage.get(next) == Entry::EMPTY
                {
                    self.storage.set(index, Entry::EMPTY);
                }
            }
            if self.storage.get(self.len - 1) != Entry::FREED {
                break;
            }
        }
        if (0..self.len).all(|index| self.storage.get(index).slot().is_none()) {
            (0..self.len).for_each(|index| self.storage.set(index, Entry::EMPTY));
        }
    }

    fn probe(&self, key: Entry) -> impl Iterator<Item = usize> + use<S> {
        let len = self.len;
        let start = key.hash() as usize % len;
        (0..len).map(move |step| (start + step) % len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::collections::BTreeMap;
    use std::vec;

    #[test]
    fn one_frame_per_page_until_all_are_used() {
        let mut words = vec![Entry::EMPTY; 16];
        let mut frames = Frames::new(&mut words[..], 16);
        let mut seen = 0u32;
        for page in 0..16 {
            let key = Entry::new(3, 1, page);
            assert_eq!(frames.find(key), None);
            let index = frames.take(key).unwrap();
            assert_eq!(frames.find(key), Some(index));
            seen |= 1 << index;
        }
        assert_eq!(seen, 0xFFFF);
        assert_eq!(frames.take(Entry::new(3, 1, 99)), None);
        assert_eq!(frames.free(|entry| entry.slot() == Some(3)), 16);
        assert!(words.iter().all(|entry| *entry == Entry::EMPTY));
    }

    #[test]
    fn generations_are_told_apart() {
        let mut words = vec![Entry::EMPTY; 8];
        let mut frames = Frames::new(&mut words[..], 8);
        let old = frames.take(Entry::new(0, 1, 5)).unwrap();
        assert_eq!(frames.find(Entry::new(0, 2, 5)), None);
        assert_ne!(frames.take(Entry::new(0, 2, 5)), Some(old));
        assert_eq!(frames.free(|entry| entry.0 >> 36 & 0xFFFF == 1), 1);
        assert!(frames.find(Entry::new(0, 2, 5)).is_some());
    }

    /// Random use against a map.
    #[test]
    fn agrees_with_a_map() {
        let mut words = vec![Entry::EMPTY; 64];
        let mut frames = Frames::new(&mut words[..], 64);
        let mut model: BTreeMap<u64, usize> = BTreeMap::new();
        let mut seed = 7u64;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (slot, page) = ((seed >> 33) as usize % 4, seed >> 40 & 31);
            let key = Entry::new(slot, 1, page);
            assert_eq!(frames.find(key), model.get(&key.0).copied());
            if !model.contains_key(&key.0) {
                match frames.take(key) {
                    Some(index) => assert_eq!(model.insert(key.0, index), None),
                    None => assert_eq!(model.len(), 64),
                }
            }
            if step % 37 == 0 {
                let freed = frames.free(|entry| entry.slot() == Some(slot));
                let before = model.len();
                model.retain(|key, _| Entry(*key).slot() != Some(slot));
                assert_eq!(freed, before - model.len());
            }
            assert_eq!(frames.count(|_| true), model.len());
        }
    }
}
