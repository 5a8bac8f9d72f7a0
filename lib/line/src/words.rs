//! Words that can be completed.

use crate::WORDS_BYTES;

/// Two lists in one text: what a line can begin with, separated by blanks, and behind a
/// line feed what can come later in it.
pub struct Words {
    text: [u8; WORDS_BYTES],
    len: usize,
}

impl Words {
    /// None.
    pub const fn new() -> Self {
        Self { text: [0; WORDS_BYTES], len: 0 }
    }

    /// Takes a new list; what does not fit is left out.
    pub fn set(&mut self, text: &[u8]) {
        self.len = text.len().min(WORDS_BYTES);
        self.text[..self.len].copy_from_slice(&text[..self.len]);
    }

    /// The words that begin with `start`, in the first place of a line or later.
    pub fn matching<'a>(&'a self, first: bool, start: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut lists = self.text[..self.len].split(|byte| *byte == b'\n');
        let list = lists.nth(usize::from(!first)).unwrap_or_default();
        let words = list.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        words.filter(move |word| word.starts_with(start))
    }

    /// How many bytes all these words have in common, and how many words there are.
    pub fn common(&self, first: bool, start: &[u8]) -> (usize, usize) {
        let mut words = self.matching(first, start);
        let Some(one) = words.next() else { return (0, 0) };
        words.fold((one.len(), 1), |(common, count), word| {
            let same = one.iter().zip(word).take_while(|(a, b)| a == b).count();
            (common.min(same), count + 1)
        })
    }
}
