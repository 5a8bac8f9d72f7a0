//! The last of what was shown.

/// The last `N` bytes of what was put.
pub struct Tail<const N: usize> {
    bytes: [u8; N],
    next: usize,
    /// All `N` bytes have been put, and more perhaps.
    full: bool,
}

impl<const N: usize> Default for Tail<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Tail<N> {
    /// Nothing was shown.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], next: 0, full: false }
    }

    /// Shows more.
    pub fn put(&mut self, text: &[u8]) {
        for byte in text {
            self.bytes[self.next] = *byte;
            self.next = (self.next + 1) % N;
            self.full |= self.next == 0;
        }
    }

    /// How many bytes are kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        if self.full { N } else { self.next }
    }

    /// Whether nothing was shown.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The byte `at`, counted from the oldest that is kept.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<u8> {
        let first = if self.full { self.next } else { 0 };
        (at < self.len()).then(|| self.bytes[(first + at) % N])
    }

    /// Where the first whole line begins, of those that are kept: what came before it may be the rest of one, or of
    /// a control sequence.
    #[must_use]
    pub fn first_line(&self) -> usize {
        if !self.full {
            return 0;
        }
        let end = (0..N).find(|at| self.get(*at) == Some(b'\n'));
        end.map_or(0, |end| end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::String;

    fn kept<const N: usize>(tail: &Tail<N>) -> String {
        (tail.first_line()..tail.len()).filter_map(|at| tail.get(at)).map(char::from).collect()
    }

    #[test]
    fn the_last_whole_lines_are_kept() {
        let mut tail = Tail::<8>::new();
        assert!(tail.is_empty());
        tail.put(b"ab\ncd");
        assert_eq!(kept(&tail), "ab\ncd");
        tail.put(b"e\nf");
        assert_eq!((tail.len(), kept(&tail).as_str()), (8, "cde\nf"));
        tail.put(b"g");
        assert_eq!(kept(&tail), "cde\nfg", "the line end has gone, but the line begins");
        tail.put(b"hijklmnop");
        assert_eq!(kept(&tail), "ijklmnop", "no line begins");
        assert_eq!(tail.get(8), None);
    }
}
