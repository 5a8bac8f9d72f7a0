//! A ring of bytes.

/// At most `N` bytes, first in, first out.
pub struct Ring<const N: usize> {
    bytes: [u8; N],
    first: usize,
    len: usize,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Ring<N> {
    /// An empty ring.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], first: 0, len: 0 }
    }

    /// Bytes in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that still fit.
    #[must_use]
    pub const fn room(&self) -> usize {
        N - self.len
    }

    /// Adds a byte; false if there is no room.
    #[must_use]
    pub fn put(&mut self, byte: u8) -> bool {
        if self.len == N {
            return false;
        }
        self.bytes[(self.first + self.len) % N] = byte;
        self.len += 1;
        true
    }

    /// The oldest byte.
    pub fn take(&mut self) -> Option<u8> {
        if self.len == 0 {
            return None;
        }
        let byte = self.bytes[self.first];
        self.first = (self.first + 1) % N;
        self.len -= 1;
        Some(byte)
    }

    /// The oldest line, without its end, into `line`; its length.
    pub fn take_line(&mut self, line: &mut [u8]) -> Option<usize> {
        (0..self.len).find(|index| self.bytes[(self.first + index) % N] == b'\n')?;
        let mut len = 0;
        while let Some(byte) = self.take().filter(|byte| *byte != b'\n') {
            if let Some(place) = line.get_mut(len) {
                *place = byte;
                len += 1;
            }
        }
        Some(len)
    }

    /// Puts bytes back in front, if they all fit.
    pub fn put_back(&mut self, bytes: &[u8]) {
        if self.room() < bytes.len() {
            return;
        }
        for byte in bytes.iter().rev() {
            self.first = (self.first + N - 1) % N;
            self.bytes[self.first] = *byte;
            self.len += 1;
        }
    }
}
