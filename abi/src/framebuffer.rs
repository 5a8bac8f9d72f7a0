//! A picture in memory as the boot loader has set it up: what the kernel passes on in a record of the
//! bootinfo, and the root task to the screen's driver.
//!
//! Everything here comes from outside; [`Framebuffer::check`] says whether it can be true by itself.
//! Where in the machine it may lie, the root task decides.

/// Where one colour is in a pixel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Its lowest bit.
    pub position: u8,
    /// How many it has.
    pub bits: u8,
}

/// Rows of pixels, each a number of [`Framebuffer::bits`] bits, lowest byte first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framebuffer {
    /// Physical address of the first pixel.
    pub address: u64,
    /// Bytes from a row to the next.
    pub pitch: u32,
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bits of a pixel.
    pub bits: u8,
    /// Red, green and blue.
    pub channels: [Channel; 3],
}

/// Why a framebuffer cannot be as it is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// It has no pixels, or more than any screen.
    Size(u32, u32),
    /// Its pixels have a number of bits that is not known.
    Bits(u8),
    /// A colour is not inside a pixel.
    Channel(Channel),
    /// A row is longer than the way to the next one, or that is far too long.
    Pitch(u32),
    /// It does not begin with a word.
    Unaligned(u64),
    /// It ends behind the last address.
    Wraps(u64),
}

impl core::fmt::Display for Defect {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Size(width, height) => write!(
                f,
                "{width} by {height} pixels; expected 1 by 1 to {MOST_PIXELS} by {MOST_PIXELS}"
            ),
            Self::Bits(bits) => write!(f, "{bits} bits a pixel; expected 15, 16, 24 or 32"),
            Self::Channel(Channel { position, bits }) => {
                write!(f, "a colour of {bits} bits from bit {position} on is not inside a pixel")
            }
            Self::Pitch(pitch) => write!(f, "{pitch} bytes from a row to the next do not fit it"),
            Self::Unaligned(at) => write!(f, "it begins at {at:#x}, which is no multiple of 8"),
            Self::Wraps(at) => write!(f, "it begins at {at:#x} and ends behind the last address"),
        }
    }
}

/// The longest row, and the most rows.
const MOST_PIXELS: u32 = 16_384;
/// The longest way from a row to the next, bytes.
const MOST_PITCH: u32 = 8 * MOST_PIXELS;
/// Words that it takes up.
pub const WORDS: usize = 5;

impl Framebuffer {
    /// As words of a record or a message.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let format = self.channels.iter().rev().fold(0, |word: u64, channel| {
            word << 16 | u64::from(channel.bits) << 8 | u64::from(channel.position)
        });
        let [pitch, width, height] = [self.pitch, self.width, self.height].map(u64::from);
        [self.address, width << 32 | pitch, height, u64::from(self.bits), format]
    }

    /// From [`Framebuffer::words`].
    #[must_use]
    pub const fn decode(words: [u64; WORDS]) -> Self {
        let [address, row, height, bits, format] = words;
        const fn channel(format: u64, index: u32) -> Channel {
            let [position, bits, ..] = (format >> (16 * index)).to_le_bytes();
            Channel { position, bits }
        }
        Self {
            address,
            pitch: row as u32,
            width: (row >> 32) as u32,
            height: height as u32,
            bits: bits as u8,
            channels: [channel(format, 0), channel(format, 1), channel(format, 2)],
        }
    }

    /// Bytes of a pixel.
    #[must_use]
    pub const fn pixel_bytes(&self) -> u32 {
        self.bits.div_ceil(8) as u32
    }

    /// Bytes of all rows.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.pitch as u64 * self.height as u64
    }

    /// First and last physical address of the pages that it lies in. For one that was checked.
    #[must_use]
    pub const fn pages(&self) -> (u64, u64) {
        (self.address & !0xFFF, (self.address + self.bytes() - 1) | 0xFFF)
    }

    /// Whether it can be as it is said.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn check(&self) -> Result<(), Defect> {
        let sizes = 1..=MOST_PIXELS;
        if !sizes.contains(&self.width) || !sizes.contains(&self.height) {
            return Err(Defect::Size(self.width, self.height));
        }
        if !matches!(self.bits, 15 | 16 | 24 | 32) {
            return Err(Defect::Bits(self.bits));
        }
        let inside = |channel: &Channel| {
            (1..=8).contains(&channel.bits)
                && u32::from(channel.position) + u32::from(channel.bits) <= u32::from(self.bits)
        };
        if let Some(channel) = self.channels.iter().find(|channel| !inside(channel)) {
            return Err(Defect::Channel(*channel));
        }
        if !(self.width * self.pixel_bytes()..=MOST_PITCH).contains(&self.pitch) {
            return Err(Defect::Pitch(self.pitch));
        }
        if !self.address.is_multiple_of(8) || self.address == 0 {
            return Err(Defect::Unaligned(self.address));
        }
        // A page less than all: the last byte's page has an end, too.
        let end = self.address.checked_add(self.bytes());
        end.filter(|end| *end < !0xFFF).map(|_| ()).ok_or(Defect::Wraps(self.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::ToString;

    const GOOD: Framebuffer = Framebuffer {
        address: 0xFD00_0000,
        pitch: 4096,
        width: 1024,
        height: 768,
        bits: 32,
        channels: [
            Channel { position: 16, bits: 8 },
            Channel { position: 8, bits: 8 },
            Channel { position: 0, bits: 8 },
        ],
    };

    #[test]
    fn words_say_all() {
        assert_eq!(Framebuffer::decode(GOOD.words()), GOOD);
        assert_eq!((GOOD.check(), GOOD.bytes(), GOOD.pixel_bytes()), (Ok(()), 3 << 20, 4));
        assert_eq!(GOOD.pages(), (0xFD00_0000, 0xFD2F_FFFF));
        let odd = Framebuffer { address: 0xFD00_0008, ..GOOD };
        assert_eq!(odd.pages(), (0xFD00_0000, 0xFD30_0FFF));
    }

    #[test]
    fn each_lie_has_its_sentence() {
        let channel = |position, bits| {
            let channels = [GOOD.channels[0], Channel { position, bits }, GOOD.channels[2]];
            Framebuffer { channels, ..GOOD }
        };
        let cases = [
            (Framebuffer { width: 0, ..GOOD }, "0 by 768 pixels"),
            (Framebuffer { height: u32::MAX, ..GOOD }, "by 4294967295 pixels"),
            (Framebuffer { width: 16_385, pitch: u32::MAX, ..GOOD }, "16385 by 768 pixels"),
            (Framebuffer { bits: 8, ..GOOD }, "8 bits a pixel"),
            (Framebuffer { bits: 255, ..GOOD }, "255 bits a pixel"),
            (channel(25, 8), "8 bits from bit 25"),
            (channel(255, 255), "not inside a pixel"),
            (channel(0, 0), "0 bits from bit 0"),
            (Framebuffer { pitch: 4095, ..GOOD }, "4095 bytes"),
            (Framebuffer { pitch: u32::MAX, ..GOOD }, "4294967295 bytes"),
            (Framebuffer { address: 0xFD00_0001, ..GOOD }, "no multiple of 8"),
            (Framebuffer { address: 0, ..GOOD }, "begins at 0x0"),
            (Framebuffer { address: !0xFFF, ..GOOD }, "behind the last address"),
            (Framebuffer { address: !0xFFF - (3 << 20), ..GOOD }, "behind the last address"),
        ];
        for (lie, sentence) in cases {
            let said = lie.check().unwrap_err().to_string();
            assert!(said.contains(sentence), "{lie:?}: {said}");
        }
    }
}
