//! Fonts in the form of Linux's console (PSF2): a header, the characters' dots, and a table that says
//! which characters each of them shows.

/// Bytes of the header, as all fonts here have it.
const HEADER: usize = 32;
/// In the table: the end of a character's list, and the beginning of a sequence of several.
const END: u8 = 0xFF;
const SEQUENCE: u8 = 0xFE;

/// A font.
#[derive(Clone, Copy)]
pub struct Font {
    /// Dots of a row, and rows.
    pub width: u32,
    pub height: u32,
    dots: &'static [u8],
    table: &'static [u8],
}

impl Font {
    /// A file's content.
    #[must_use]
    pub fn new(file: &'static [u8]) -> Option<Self> {
        let word = |index: usize| {
            let bytes = file.get(index * 4..index * 4 + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (count, each) = (word(4)? as usize, word(5)? as usize);
        let (dots, table) = file.get(HEADER..)?.split_at_checked(count.checked_mul(each)?)?;
        let (height, width) = (word(6)?, word(7)?);
        let fits = each == (width.div_ceil(8) * height) as usize && each > 0;
        (word(0)? == 0x864A_B572 && fits).then_some(Self { width, height, dots, table })
    }

    /// Which of the characters shows `wanted`: those of each are a list, without sequences.
    fn index(&self, wanted: char) -> Option<usize> {
        let mut utf8 = [0; 4];
        let wanted = wanted.encode_utf8(&mut utf8).as_bytes();
        self.table.split(|byte| *byte == END).position(|list| {
            let single = list.split(|byte| *byte == SEQUENCE).next().unwrap_or_default();
            // A character begins where no byte of another one goes on.
            single.windows(wanted.len()).any(|bytes| bytes == wanted)
        })
    }

    /// The rows of a character's dots, the first dot in the highest bit.
    #[must_use]
    pub fn rows(&self, character: char) -> Option<impl Iterator<Item = u32> + use<>> {
        let (row, each) = (self.width.div_ceil(8) as usize, self.dots_bytes());
        let first = self.index(character)? * each;
        let dots = self.dots.get(first..first + each)?;
        Some(dots.chunks_exact(row).map(|bytes| {
            bytes.iter().zip([24, 16, 8, 0]).fold(0, |sum, (byte, at)| sum | u32::from(*byte) << at)
        }))
    }

    fn dots_bytes(&self) -> usize {
        (self.width.div_ceil(8) * self.height) as usize
    }
}
