//! Bodies in words, for what carries messages: the first words travel in registers, the others somewhere else.

use core::ops::Range;

use crate::call::SHORT;

/// Bytes `bytes`, of which there are eight at most, as a word that is filled up with zeros.
#[inline(never)]
#[must_use]
pub fn partial(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The first bytes of `word`, as many as `room` has, which is eight at most.
#[inline(never)]
pub fn take_partial(word: u64, room: &mut [u8]) {
    room.iter_mut().zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
}

/// Fills `registers` in these `places` with the words that `body` is, the last one filled up with zeros; what is left
/// of it.
#[inline(always)]
pub fn to_registers<'b>(
    registers: &mut [u64; SHORT],
    places: Range<usize>,
    body: &'b [u8],
) -> &'b [u8] {
    let registers = registers.get_mut(places).unwrap_or_default();
    let Some((most, rest)) = body.split_at_checked(8 * registers.len()) else {
        registers.iter_mut().zip(few_words(body)).for_each(|(word, few)| *word = few);
        return &[];
    };
    let (whole, _) = most.as_chunks::<8>();
    registers.iter_mut().zip(whole).for_each(|(word, chunk)| *word = u64::from_le_bytes(*chunk));
    rest
}

/// The words that `body` is, if there is a register for each. A call, and by value: where all registers are filled, that
/// is a load each, and nothing else.
#[inline(never)]
fn few_words(body: &[u8]) -> [u64; SHORT] {
    let mut words = [0; SHORT];
    words.iter_mut().zip(body.chunks(8)).for_each(|(word, chunk)| *word = partial(chunk));
    words
}

/// Fills `room` with the bytes of `registers` from `first` on; what is left of it.
#[inline(always)]
pub fn from_registers<'r>(
    registers: &[u64; SHORT],
    first: usize,
    room: &'r mut [u8],
) -> &'r mut [u8] {
    let registers = registers.get(first..).unwrap_or_default();
    if room.len() < 8 * registers.len() {
        few_bytes(core::array::from_fn(|index| registers.get(index).copied().unwrap_or(0)), room);
        return &mut [];
    }
    let (most, rest) = room.split_at_mut(8 * registers.len());
    let (whole, _) = most.as_chunks_mut::<8>();
    whole.iter_mut().zip(registers).for_each(|(chunk, word)| *chunk = word.to_le_bytes());
    rest
}

/// The other direction of [`few_words`].
#[inline(never)]
fn few_bytes(words: [u64; SHORT], room: &mut [u8]) {
    room.chunks_mut(8).zip(words).for_each(|(chunk, word)| take_partial(word, chunk));
}

/// Where the body of a request may be copied to: nothing until it is needed, which a server's loop that has a place of
/// its own for that sees to.
#[derive(Debug)]
pub struct Scratch<const N: usize>(Option<[u8; N]>);

impl<const N: usize> Scratch<N> {
    /// Nothing yet.
    #[inline(always)]
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// The first `len` bytes of it, or all.
    #[inline(always)]
    pub fn bytes(&mut self, len: usize) -> &mut [u8] {
        &mut self.0.insert([0; N])[..len.min(N)]
    }
}

impl<const N: usize> Default for Scratch<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_words_are_their_bytes() {
        let mut room = [0; 3];
        take_partial(partial(&[1, 2, 255]), &mut room);
        assert_eq!((partial(&[1, 2, 255]), room), (0xFF_0201, [1, 2, 255]));
    }

    #[test]
    fn what_registers_take_they_give_back() {
        let bytes: [u8; 80] = core::array::from_fn(|index| index as u8 + 1);
        for len in 0..=bytes.len() {
            for first in 0..=SHORT {
                let (mut registers, mut room) = ([99; SHORT], [0; 80]);
                let rest = to_registers(&mut registers, first..SHORT, &bytes[..len]);
                let here = len.min(8 * (SHORT - first));
                assert_eq!(rest, &bytes[here..len]);
                assert!(registers[..first].iter().all(|word| *word == 99));
                let left = from_registers(&registers, first, &mut room[..len]).len();
                assert_eq!((left, &room[..here]), (len - here, &bytes[..here]));
            }
        }
    }
}
