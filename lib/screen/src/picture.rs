//! Cells as pixels of a framebuffer: which font, how large, where, in which numbers.
//!
//! Pure arithmetic: the driver puts the bytes where they belong, a test reads them again. The font is
//! Spleen (Frederic Cambus, BSD licence); of `spleen-font` only its files are used, since it takes ASCII's
//! numbers for places in them.

use abi::Framebuffer;
use spleen_font::{FONT_6X12, FONT_12X24, FONT_16X32};

use crate::font::Font;
use crate::{Cell, Colours};

/// The sizes in which a character is drawn; larger than the last are multiples of that.
const SIZES: [(u32, u32, &[u8]); 3] =
    [(6, 12, FONT_6X12), (12, 24, FONT_12X24), (16, 32, FONT_16X32)];
/// Most bytes of a row of a character's pixels.
const LINE_BYTES: usize = 1024;
/// What is shown instead of a character that the font has not.
const STRANGE: char = '?';
/// The 16 colours of a PC's text mode: red, green, blue.
pub const PALETTE: [[u8; 3]; 16] = [
    [0, 0, 0],
    [0, 0, 170],
    [0, 170, 0],
    [0, 170, 170],
    [170, 0, 0],
    [170, 0, 170],
    [170, 85, 0],
    [170, 170, 170],
    [85, 85, 85],
    [85, 85, 255],
    [85, 255, 85],
    [85, 255, 255],
    [255, 85, 85],
    [255, 85, 255],
    [255, 255, 85],
    [255, 255, 255],
];

/// A screen of cells in the middle of a framebuffer.
pub struct Picture {
    font: Font,
    /// How many times larger it is drawn.
    scale: u32,
    /// Byte of the first pixel of the first cell, and bytes of a row of pixels and of a pixel.
    first: u64,
    pitch: u64,
    pixel: usize,
    /// The 16 colours as pixels.
    colours: [u32; 16],
}

/// The size that fills most of `width` by `height` pixels: the font, and how many times it.
fn size(screen: &Framebuffer, rows: u32, columns: u32) -> Option<(usize, u32)> {
    let most = |(index, (width, height, _)): (usize, &(u32, u32, &[u8]))| {
        let room = LINE_BYTES as u32 / (width * screen.pixel_bytes());
        let fits = (screen.width / (width * columns)).min(screen.height / (height * rows));
        fits.min(if index + 1 == SIZES.len() { room } else { 1 })
    };
    let scales = SIZES.iter().enumerate().map(most).enumerate().filter(|(_, scale)| *scale > 0);
    scales.max_by_key(|(index, scale)| SIZES[*index].0 * scale)
}

impl Picture {
    /// `rows` of `columns` cells in a framebuffer that was checked; `None` if they are too many for
    /// the smallest font.
    #[must_use]
    pub fn new(screen: &Framebuffer, rows: u32, columns: u32) -> Option<Self> {
        let (index, scale) = size(screen, rows, columns)?;
        let (width, height, font) = SIZES[index];
        let left = (screen.width - columns * width * scale) / 2;
        let top = (screen.height - rows * height * scale) / 2;
        let (pixel, pitch) = (screen.pixel_bytes(), u64::from(screen.pitch));
        let colour = |parts: [u8; 3]| {
            let parts = parts.into_iter().zip(screen.channels);
            parts.fold(0, |sum, (part, channel)| {
                sum | (u32::from(part) >> (8 - channel.bits)) << channel.position
            })
        };
        Some(Self {
            font: Font::new(font)?,
            scale,
            first: u64::from(top) * pitch + u64::from(left * pixel),
            pitch,
            pixel: pixel as usize,
            colours: PALETTE.map(colour),
        })
    }

    /// Pixels of a cell: of a row, and rows.
    #[must_use]
    pub const fn cell(&self) -> (u32, u32) {
        (self.font.width * self.scale, self.font.height * self.scale)
    }

    /// Gives `put` each row of a cell's pixels, and how many bytes behind the framebuffer's first
    /// they belong.
    pub fn draw(&self, row: u32, column: u32, cell: Cell, mut put: impl FnMut(u64, &[u8])) {
        let (across, down) = self.cell();
        let corner = self.first
            + u64::from(row * down) * self.pitch
            + u64::from(column * across) * self.pixel as u64;
        let Colours { front, back } = cell.colours;
        let pixels = [back, front].map(|colour| self.colours[usize::from(colour & 15)]);
        let rows = self.font.rows(cell.character).or_else(|| self.font.rows(STRANGE));
        let mut line = [0; LINE_BYTES];
        for (index, dots) in rows.into_iter().flatten().enumerate() {
            let pixel = |dot: u32| pixels[(dots >> (31 - dot) & 1) as usize].to_le_bytes();
            let repeated = (0..across).map(|place| pixel(place / self.scale));
            let places = line.chunks_exact_mut(self.pixel);
            let used = places.zip(repeated).map(|(place, bytes)| {
                place.copy_from_slice(&bytes[..self.pixel]);
                self.pixel
            });
            let bytes = used.sum();
            for again in 0..self.scale {
                let down = index as u32 * self.scale + again;
                put(corner + u64::from(down) * self.pitch, &line[..bytes]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use abi::framebuffer::Channel;
    use std::vec::Vec;

    fn screen(width: u32, height: u32, bits: u8) -> Framebuffer {
        let sizes = if bits < 24 { [(10, 5), (5, 5), (0, 5)] } else { [(16, 8), (8, 8), (0, 8)] };
        let channels = sizes.map(|(position, bits)| Channel { position, bits });
        let pitch = width * u32::from(bits).div_ceil(8) + 24;
        let screen = Framebuffer { address: 4096, pitch, width, height, bits, channels };
        screen.check().expect("it can be");
        screen
    }

    #[test]
    fn the_largest_font_that_fits_is_taken() {
        let cell = |width, height| {
            Picture::new(&screen(width, height, 32), 25, 80).map(|picture| picture.cell())
        };
        assert_eq!(cell(479, 300), None);
        assert_eq!(cell(480, 299), None);
        assert_eq!(cell(640, 400), Some((6, 12)));
        assert_eq!(cell(1024, 768), Some((12, 24)));
        assert_eq!(cell(1280, 800), Some((16, 32)));
        assert_eq!(cell(1920, 1080), Some((16, 32)));
        assert_eq!(cell(3840, 2160), Some((32, 64)));
        assert_eq!(cell(16_384, 16_384), Some((192, 384)), "12 times the largest");
    }

    /// Every byte lies inside, whatever the size, and two cells never share one.
    #[test]
    fn cells_stay_inside_and_apart() {
        for (width, height) in [(640, 400), (801, 613), (1366, 768), (2560, 1440), (16_384, 9_000)]
        {
            for bits in [15, 16, 24, 32] {
                let screen = screen(width, height, bits);
                let picture = Picture::new(&screen, 25, 80).unwrap();
                let (across, down) = picture.cell();
                let line = u64::from(across * screen.pixel_bytes());
                let corners = [(0, 0), (0, 79), (24, 0), (24, 79), (12, 40)];
                for (row, column) in corners {
                    let mut rows = 0;
                    picture.draw(row, column, Cell::EMPTY, |at, bytes| {
                        rows += 1;
                        assert_eq!(bytes.len() as u64, line);
                        let (in_row, pitch) = (at % u64::from(screen.pitch), screen.pitch);
                        assert!(at + line <= screen.bytes(), "{screen:?}");
                        assert!(in_row + line <= u64::from(pitch - 24), "{screen:?}");
                    });
                    assert_eq!(rows, down, "{width} by {height}");
                }
                let mut places = [0, 1].map(|column| {
                    let mut at = Vec::new();
                    picture.draw(3, column, Cell::EMPTY, |place, _| at.push(place));
                    at
                });
                places[0].iter_mut().for_each(|at| *at += line);
                assert_eq!(places[0], places[1], "side by side");
            }
        }
    }

    #[test]
    fn pixels_have_the_colours_of_the_cell() {
        let colours = Colours { front: 12, back: 1 };
        for (bits, front, back) in
            [(32, 0xFF_5555, 0xAA), (24, 0xFF_5555, 0xAA), (16, 0x7D4A, 0x15)]
        {
            let screen = screen(640, 400, bits);
            let picture = Picture::new(&screen, 25, 80).unwrap();
            let mut dots = 0;
            picture.draw(
                0,
                0,
                Cell { character: ' ', colours: Colours { front: 1, back: 12 } },
                |_, bytes| {
                    for pixel in bytes.chunks_exact(screen.pixel_bytes() as usize) {
                        let mut word = [0; 4];
                        word[..pixel.len()].copy_from_slice(pixel);
                        assert_eq!(u32::from_le_bytes(word), front);
                        dots += 1;
                    }
                },
            );
            assert_eq!(dots, 6 * 12);
            picture.draw(0, 0, Cell { character: ' ', colours }, |_, bytes| {
                assert_eq!(bytes[0], back as u8);
            });
        }
    }

    /// Whatever a program writes has a picture.
    #[test]
    fn any_character_is_drawn() {
        let picture = Picture::new(&screen(640, 400, 32), 25, 80).unwrap();
        for character in (0..0x11_0000).step_by(7).filter_map(char::from_u32) {
            let mut rows = 0;
            let cell = Cell { character, colours: Colours::PLAIN };
            picture.draw(0, 0, cell, |_, _| rows += 1);
            assert_eq!(rows, 12, "{character:?}");
        }
    }
}
