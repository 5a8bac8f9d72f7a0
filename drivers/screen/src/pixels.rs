//! The boot loader's framebuffer as a display: cells are drawn into it, and only those that have changed.
//! Reading it back would be slow, so what it shows is kept here.

use runtime::root::{self, Refusal};
use runtime::window::Window;
use screen::picture::Picture;
use screen::{Cell, Colours};

use crate::display::{COLUMNS, ROWS};

/// Where it is shown in this task: as large as any framebuffer, so that it never lies across the end.
const WINDOW: u64 = 0x200_0000_0000;
const BYTES: u64 = 1 << 32;

/// The picture.
pub struct Pixels {
    window: Window,
    /// Where its first pixel is in the window.
    first: u64,
    picture: Picture,
    shown: [[Cell; COLUMNS]; ROWS],
    cursor: Option<(usize, usize)>,
}

/// Why there is none.
pub enum NoPicture {
    /// The root task has none, or does not give it.
    Refused(Refusal),
    /// It is too small.
    Small(u32, u32),
}

impl Pixels {
    /// The framebuffer, empty.
    pub fn open() -> Result<Self, NoPicture> {
        let window = Window::claim(WINDOW, BYTES).ok_or(Refusal::Exhausted);
        let mut window = window.map_err(NoPicture::Refused)?;
        let (said, first) = root::framebuffer(&mut window).map_err(NoPicture::Refused)?;
        let picture = Picture::new(&said, ROWS as u32, COLUMNS as u32);
        let picture = picture.ok_or(NoPicture::Small(said.width, said.height))?;
        let shown = [[Cell::EMPTY; COLUMNS]; ROWS];
        window.zero(first, said.bytes() & !7);
        Ok(Self { window, first, picture, shown, cursor: None })
    }

    /// Draws a cell, or what a cursor makes of it.
    fn draw(&mut self, (row, column): (usize, usize), is_cursor: bool) {
        let mut cell = self.shown[row][column];
        if is_cursor {
            let Colours { front, back } = cell.colours;
            cell.colours = Colours { front: back, back: front };
        }
        let (window, first) = (&mut self.window, self.first);
        self.picture.draw(row as u32, column as u32, cell, |at, bytes| {
            window.write_bytes(first + at, bytes);
        });
    }

    /// Shows a row.
    pub fn show(&mut self, row: usize, cells: &[Cell; COLUMNS]) {
        for (column, cell) in cells.iter().enumerate() {
            if self.shown[row][column] != *cell {
                self.shown[row][column] = *cell;
                self.draw((row, column), self.cursor == Some((row, column)));
            }
        }
    }

    /// Shows the cursor.
    pub fn point(&mut self, cursor: Option<(usize, usize)>) {
        if cursor != self.cursor {
            let before = core::mem::replace(&mut self.cursor, cursor);
            before.into_iter().for_each(|place| self.draw(place, false));
            cursor.into_iter().for_each(|place| self.draw(place, true));
        }
    }
}
