//! Names: up to 16 bytes, in two message words.

/// A name in two words, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Name {
    bytes: [u8; 16],
}

impl Name {
    /// The name `text`; longer ones lose their end.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; 16];
        let mut len = text.len().min(16);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes }
    }

    /// From two message words.
    #[must_use]
    pub fn from_words(first: u64, second: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..].copy_from_slice(&second.to_le_bytes());
        Self { bytes }
    }

    /// As two message words.
    #[must_use]
    pub fn words(self) -> [u64; 2] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.bytes;
        [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p])]
    }

    /// As text; bytes that are not UTF-8 end it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
        match core::str::from_utf8(&self.bytes[..end]) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&self.bytes[..error.valid_up_to()]).unwrap_or(""),
        }
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes[0] == 0
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.as_str())
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn survives_words() {
        for text in ["", "a", "console", "exactly-16-bytes"] {
            let [first, second] = Name::new(text).words();
            assert_eq!(Name::from_words(first, second).as_str(), text);
        }
    }

    #[test]
    fn cuts_at_a_character() {
        assert_eq!(Name::new("0123456789abcdef!").as_str(), "0123456789abcdef");
        assert_eq!(Name::new("0123456789abcdeé").as_str(), "0123456789abcde");
        assert_eq!(Name::from_words(0xFF61, 0).as_str(), "a");
    }
}
