//! A terminal on a screen of characters: what bytes with control sequences (ECMA-48, as a `vt100` and a
//! Linux console have them) make of the cells. Drivers show the cells.
//!
//! `vte` takes the sequences apart; here is what they mean. What is not known is ignored.
#![no_std]
#![forbid(unsafe_code)]

mod cells;
pub mod font;
pub mod picture;
mod sequences;

use cells::Cells;
pub use cells::{Cell, Colours};
use vte::Parser;

/// A terminal of `ROWS` × `COLUMNS` cells.
pub struct Screen<const ROWS: usize, const COLUMNS: usize> {
    parser: Parser,
    cells: Cells<ROWS, COLUMNS>,
}

impl<const ROWS: usize, const COLUMNS: usize> Default for Screen<ROWS, COLUMNS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const ROWS: usize, const COLUMNS: usize> Screen<ROWS, COLUMNS> {
    /// Nothing on it.
    #[must_use]
    pub fn new() -> Self {
        Self { parser: Parser::new(), cells: Cells::new() }
    }

    /// Shows bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.cells, bytes);
    }

    /// The rows that have changed since the last time.
    pub fn changed(&mut self, mut visit: impl FnMut(usize, &[Cell; COLUMNS])) {
        for (row, cells) in self.cells.rows.iter().enumerate() {
            if core::mem::take(&mut self.cells.changed[row]) {
                visit(row, cells);
            }
        }
    }

    /// Where the cursor is, if it is to be seen: row and column.
    #[must_use]
    pub fn cursor(&self) -> Option<(usize, usize)> {
        self.cells.cursor()
    }

    /// The next byte of what the terminal answers to whoever asked it something.
    pub fn answer(&mut self) -> Option<u8> {
        self.cells.answer.take()
    }
}

#[cfg(test)]
mod tests;
