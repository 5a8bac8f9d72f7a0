//! The text in a picture of the screen: a portable pixmap, as the emulator's `screendump` writes it, and
//! the cells that `drivers/screen` draws into a framebuffer of that size.

use std::collections::HashMap;

use abi::Framebuffer;
use abi::framebuffer::Channel;
use anyhow::{Context, Result, ensure};
use screen::picture::Picture;
use screen::{Cell, Colours};

const ROWS: u32 = 25;
const COLUMNS: u32 = 80;
/// What stands for a cell that shows none of the characters.
const UNKNOWN: char = '\u{FFFD}';

/// Dots of a cell, those like its first one false.
type Dots = Vec<bool>;

/// A picture: its size and its pixels.
struct Pixmap<'a> {
    screen: Framebuffer,
    pixels: &'a [u8],
}

/// The rows of text in `file`, without blanks behind them.
///
/// # Errors
/// When it is no picture, or too small for the cells.
pub fn rows(file: &[u8]) -> Result<String> {
    let pixmap = Pixmap::read(file)?;
    let picture = Picture::new(&pixmap.screen, ROWS, COLUMNS);
    let picture = picture.context("the screen is too small for 25 rows of 80 characters")?;
    let known = alphabet(&picture);
    let text = (0..ROWS).map(|row| {
        let cells = (0..COLUMNS).map(|column| {
            let dots = pixmap.dots(&picture, row, column);
            known.get(&dots).copied().unwrap_or(UNKNOWN)
        });
        format!("{}\n", cells.collect::<String>().trim_end())
    });
    Ok(text.collect())
}

/// The characters that are looked for, by their dots.
fn alphabet(picture: &Picture) -> HashMap<Dots, char> {
    let mut known = HashMap::new();
    for character in (' '..='~').chain('\u{A1}'..='\u{FF}').chain('─'..='╬') {
        let cell = Cell { character, colours: Colours { front: 15, back: 0 } };
        let mut dots = Vec::new();
        picture.draw(0, 0, cell, |_, bytes| {
            dots.extend(bytes.chunks_exact(4).map(|pixel| pixel[0] != 0));
        });
        known.entry(like_the_first(&dots)).or_insert(character);
    }
    known
}

/// Dots, or pixels, as to whether they differ from the first.
fn like_the_first<T: PartialEq>(all: &[T]) -> Dots {
    all.iter().map(|one| *one != all[0]).collect()
}

impl<'a> Pixmap<'a> {
    /// `P6`, width, height, 255, and three bytes a pixel.
    fn read(file: &'a [u8]) -> Result<Self> {
        let mut words = file.splitn(4, |byte| byte.is_ascii_whitespace());
        let mut word = || std::str::from_utf8(words.next()?).ok();
        ensure!(word() == Some("P6"), "the emulator's picture of the screen is no pixmap");
        let mut number = || word()?.parse().ok();
        let (width, height): (u32, u32) =
            number().zip(number()).context("the picture of the screen has no size")?;
        let rest = words.next().unwrap_or_default();
        let from = rest.len().saturating_sub((width * height * 3) as usize);
        let channel = |position| Channel { position, bits: 8 };
        let channels = [16, 8, 0].map(channel);
        let screen =
            Framebuffer { address: 8, pitch: width * 4, width, height, bits: 32, channels };
        let sound = screen.check().is_ok() && rest.len() >= (width * height * 3) as usize;
        ensure!(sound, "the picture of the screen is not whole");
        Ok(Self { screen, pixels: &rest[from..] })
    }

    /// The dots of a cell.
    fn dots(&self, picture: &Picture, row: u32, column: u32) -> Dots {
        let mut pixels = Vec::new();
        picture.draw(row, column, Cell::EMPTY, |at, bytes| {
            let first = at as usize / 4 * 3;
            let line = &self.pixels[first..first + bytes.len() / 4 * 3];
            pixels.extend(line.chunks_exact(3).map(<[u8]>::to_vec));
        });
        like_the_first(&pixels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_is_read() {
        let header = b"P6\n1024 768\n255\n";
        let mut file = header.to_vec();
        file.resize(header.len() + 1024 * 768 * 3, 0);
        let screen = Pixmap::read(&file).unwrap().screen;
        let picture = Picture::new(&screen, ROWS, COLUMNS).unwrap();
        for (column, character) in "grün ~$ │".chars().enumerate() {
            let cell = Cell { character, colours: Colours { front: 12, back: 1 } };
            picture.draw(24, column as u32 + 2, cell, |at, bytes| {
                for (index, pixel) in bytes.chunks_exact(4).enumerate() {
                    let place = header.len() + (at as usize / 4 + index) * 3;
                    file[place..place + 3].copy_from_slice(&[pixel[2], pixel[1], pixel[0]]);
                }
            });
        }
        assert_eq!(rows(&file).unwrap().trim_start_matches('\n'), "  grün ~$ │\n");
        assert!(rows(&file[..100]).is_err() && rows(b"P5\n1 1\n255\n\0").is_err());
    }
}
