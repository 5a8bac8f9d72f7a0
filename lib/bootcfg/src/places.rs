//! The lists of the words in the programs of an image that are addresses of the program's own:
//! whoever moves a program adds the distance to each.
//!
//! The raw file [`FILE`], the first record of an image, has a list for each program, in the order of
//! the programs: words of two bytes, each the way from one place to the next in bytes, the first one
//! from one byte before the program; 0xFFFF is 0xFFFE bytes of way and no place; 0 ends the list.
//! A program with an empty list stays where it was linked.

/// The file's name.
pub const FILE: &str = "places";

/// A word that is no place, and its way in bytes.
const LONG_WAY: (u16, u64) = (u16::MAX, u16::MAX as u64 - 1);

/// Where reading is in the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lists {
    at: u64,
    bytes: u64,
}

impl Lists {
    /// The beginning of a file of `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self { at: 0, bytes }
    }

    /// Whether the next program's list is empty, or missing. `read` returns the word of eight bytes
    /// at a multiple of eight.
    #[must_use]
    pub fn is_empty(&self, read: impl Fn(u64) -> u64) -> bool {
        Self { ..*self }.word(&read) == 0
    }

    /// Reads the next program's list, and calls `visit` with the distance of each place from the
    /// program's first byte.
    pub fn each(&mut self, read: impl Fn(u64) -> u64, mut visit: impl FnMut(u64)) {
        let mut way = 0_u64;
        loop {
            match self.word(&read) {
                0 => return,
                word if word == LONG_WAY.0 => way += LONG_WAY.1,
                word => {
                    way += u64::from(word);
                    visit(way - 1);
                }
            }
        }
    }

    /// The next word; 0 behind the file.
    fn word(&mut self, read: &impl Fn(u64) -> u64) -> u16 {
        if self.at + 2 > self.bytes {
            return 0;
        }
        let word = read(self.at & !7) >> ((self.at & 7) * 8);
        self.at += 2;
        word as u16
    }
}

/// Adds `distance` to the four bytes at `place`; those of an address of eight bytes that stays below
/// 4 GiB are its lower ones. `read` and `write` know the words of eight bytes at multiples of eight.
pub fn add(place: u64, distance: u64, read: impl Fn(u64) -> u64, mut write: impl FnMut(u64, u64)) {
    let (word, shift) = (place & !7, (place & 7) * 8);
    let more = shift > 32;
    let high = if more { read(word + 8) } else { 0 };
    let both = u128::from(high) << 64 | u128::from(read(word));
    let changed = ((both >> shift) as u32).wrapping_add(distance as u32);
    let mask = u128::from(u32::MAX) << shift;
    let both = both & !mask | u128::from(changed) << shift;
    write(word, both as u64);
    if more {
        write(word + 8, (both >> 64) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use core::cell::RefCell;
    use std::vec::Vec;

    /// The file of these words.
    fn file(words: &[u16]) -> (Vec<u64>, Lists) {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let lists = Lists::new(bytes.len() as u64);
        bytes.resize(bytes.len().next_multiple_of(8), 0xAA);
        (bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect(), lists)
    }

    fn next(file: &[u64], lists: &mut Lists) -> Vec<u64> {
        let mut found = Vec::new();
        lists.each(|at| file[at as usize / 8], |place| found.push(place));
        found
    }

    #[test]
    fn each_program_has_its_list() {
        let (file, mut lists) = file(&[1, 8, 0xFFFF, 4, 0, 0, 7, 0, 3]);
        let read = |at: u64| file[at as usize / 8];
        assert!(!lists.is_empty(read));
        assert_eq!(next(&file, &mut lists), [0, 8, 8 + 0xFFFE + 4]);
        assert!(lists.is_empty(read));
        assert_eq!(next(&file, &mut lists), []);
        assert_eq!(next(&file, &mut lists), [6]);
        // A list that is cut short, and programs without one.
        assert_eq!(next(&file, &mut lists), [2]);
        assert!(lists.is_empty(read));
        assert_eq!(next(&file, &mut lists), []);
    }

    #[test]
    fn four_bytes_change_wherever_they_are() {
        for place in 0..12 {
            let before: Vec<u8> = (0..16_u8).map(|at| at.wrapping_add(0xF8)).collect();
            let word =
                |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let words = RefCell::new([word(&before, 0), word(&before, 8)]);
            let write = |at: u64, value| words.borrow_mut()[at as usize / 8] = value;
            add(place, 0x0102_0304, |at| words.borrow()[at as usize / 8], write);
            let mut wanted = before.clone();
            let four = &mut wanted[place as usize..place as usize + 4];
            let sum = u32::from_le_bytes((&*four).try_into().unwrap()).wrapping_add(0x0102_0304);
            four.copy_from_slice(&sum.to_le_bytes());
            assert_eq!(*words.borrow(), [word(&wanted, 0), word(&wanted, 8)], "at {place}");
        }
    }
}
