//! Typed items and the acceptor (X.2 4.2, 4.3).

use crate::fpage::Fpage;

/// A map or grant item: `63..10` send base / 1024, `9..4` 0, `3..1` type, `0` C; then the flexpage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapItem {
    /// Where in a larger window the flexpage goes; bytes (a port number for I/O).
    pub send_base: u64,
    /// What is sent.
    pub fpage: Fpage,
    /// Whether the sender gives its own mapping away.
    pub grant: bool,
}

impl MapItem {
    /// A map item.
    #[must_use]
    pub const fn map(fpage: Fpage, send_base: u64) -> Self {
        Self { send_base, fpage, grant: false }
    }

    /// A grant item.
    #[must_use]
    pub const fn grant(fpage: Fpage, send_base: u64) -> Self {
        Self { send_base, fpage, grant: true }
    }

    /// The item's two words.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        let kind = if self.grant { 0xA } else { 0x8 };
        [self.send_base & !0x3FF | kind, self.fpage.0]
    }
}

/// First word of a string item: `63..10` substring length, `9` c, `8..4` j, `3` 0, `2..1` hints, `0` C.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct StringItem(pub u64);

impl StringItem {
    /// A string (or buffer) of `substrings` ≥ 1 pieces of `len` bytes each.
    #[must_use]
    pub const fn new(len: u64, substrings: u32, continued: bool) -> Self {
        Self(len << 10 | (continued as u64) << 9 | (substrings as u64 - 1 & 0x1F) << 4)
    }

    /// The words of a simple string item.
    #[must_use]
    pub const fn simple(addr: u64, len: u64) -> [u64; 2] {
        [Self::new(len, 1, false).0, addr]
    }

    /// Length in bytes of each substring.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.0 >> 10
    }

    /// Whether the substrings are empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Number of substrings, 1 to 32: as many addresses follow.
    #[must_use]
    pub const fn substrings(self) -> usize {
        (self.0 >> 4 & 0x1F) as usize + 1
    }

    /// Whether the next item continues this string.
    #[must_use]
    pub const fn is_continued(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// Bit 0, C: a further item (in buffer registers: a further buffer) follows.
    #[must_use]
    pub const fn has_more(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The kinds of typed items, from bits 3..1 of the first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// A string; its addresses follow.
    String(StringItem),
    /// A map or grant item (its flexpage is the second word).
    Map(MapItem),
    /// A type that Baton does not transfer: message overflow.
    Reserved,
}

impl Item {
    /// Decodes an item from its first two words.
    #[must_use]
    pub const fn decode(first: u64, second: u64) -> Self {
        match first >> 1 & 7 {
            0..=3 => Self::String(StringItem(first)),
            4 => Self::Map(MapItem::map(Fpage(second), first & !0x3FF)),
            5 => Self::Map(MapItem::grant(Fpage(second), first & !0x3FF)),
            _ => Self::Reserved,
        }
    }
}

/// BR0: `63..4` receive window, `0` strings accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Acceptor(pub u64);

impl Acceptor {
    /// Accepts untyped words only.
    pub const UNTYPED: Self = Self(0);
    /// Accepts strings into the buffers from BR1 on.
    pub const STRINGS: Self = Self(1);

    /// Accepts mappings into `window`.
    #[must_use]
    pub const fn window(window: Fpage) -> Self {
        Self(window.0 & !0xF)
    }

    /// The receive window, without rights; nil if none.
    #[must_use]
    pub const fn receive_window(self) -> Fpage {
        Fpage(self.0 & !0xF)
    }

    /// Whether strings are accepted.
    #[must_use]
    pub const fn accepts_strings(self) -> bool {
        self.0 & 1 != 0
    }
}
