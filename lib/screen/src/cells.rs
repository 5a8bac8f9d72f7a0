//! The cells, and what can be done with them.

/// Colours of a cell: 0 to 15 as a PC's text mode has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colours {
    /// Of the character.
    pub front: u8,
    /// Of what is behind it.
    pub back: u8,
}

impl Colours {
    /// Light grey on black.
    pub const PLAIN: Self = Self { front: 7, back: 0 };
}

/// A cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Its character.
    pub character: char,
    /// Its colours.
    pub colours: Colours,
}

impl Cell {
    /// Nothing, in plain colours.
    pub const EMPTY: Self = Self { character: ' ', colours: Colours::PLAIN };
}

/// Bytes that the terminal answers and nobody has read; more are lost.
const ANSWERS: usize = 64;

/// What the terminal says, first in first out.
pub struct Answers {
    bytes: [u8; ANSWERS],
    first: usize,
    len: usize,
}

impl Answers {
    /// Says all of `text`, or nothing.
    pub fn say(&mut self, text: &[u8]) {
        if self.len + text.len() <= ANSWERS {
            for byte in text {
                self.bytes[(self.first + self.len) % ANSWERS] = *byte;
                self.len += 1;
            }
        }
    }

    /// The next byte.
    pub fn take(&mut self) -> Option<u8> {
        self.len = self.len.checked_sub(1)?;
        let byte = self.bytes[self.first];
        self.first = (self.first + 1) % ANSWERS;
        Some(byte)
    }
}

/// How the next character is written.
#[derive(Clone, Copy)]
pub struct Pen {
    pub front: u8,
    pub back: u8,
    pub bold: bool,
    pub reverse: bool,
}

impl Pen {
    pub const PLAIN: Self = Self {
        front: Colours::PLAIN.front,
        back: Colours::PLAIN.back,
        bold: false,
        reverse: false,
    };

    pub fn colours(self) -> Colours {
        let front = if self.bold { self.front | 8 } else { self.front };
        let (front, back) = if self.reverse { (self.back, front & 7) } else { (front, self.back) };
        Colours { front, back }
    }
}

/// The cells, the cursor, and what changes how characters are written.
pub struct Cells<const ROWS: usize, const COLUMNS: usize> {
    pub rows: [[Cell; COLUMNS]; ROWS],
    pub changed: [bool; ROWS],
    pub answer: Answers,
    pub row: usize,
    /// At most `COLUMNS`: then the next character begins the next row.
    pub column: usize,
    pub pen: Pen,
    /// First and last row of what scrolls.
    pub region: (usize, usize),
    pub saved: (usize, usize, Pen),
    pub visible: bool,
    pub wraps: bool,
}

impl<const ROWS: usize, const COLUMNS: usize> Cells<ROWS, COLUMNS> {
    pub const fn new() -> Self {
        Self {
            rows: [[Cell::EMPTY; COLUMNS]; ROWS],
            changed: [true; ROWS],
            answer: Answers { bytes: [0; ANSWERS], first: 0, len: 0 },
            row: 0,
            column: 0,
            pen: Pen::PLAIN,
            region: (0, ROWS - 1),
            saved: (0, 0, Pen::PLAIN),
            visible: true,
            wraps: true,
        }
    }

    pub fn cursor(&self) -> Option<(usize, usize)> {
        self.visible.then_some((self.row, self.column.min(COLUMNS - 1)))
    }

    /// A cell with nothing, in the colours of the time.
    fn empty(&self) -> Cell {
        Cell { character: ' ', colours: self.pen.colours() }
    }

    /// Writes a character.
    pub fn character(&mut self, character: char) {
        if self.column >= COLUMNS {
            if self.wraps {
                self.column = 0;
                self.line_feed();
            } else {
                self.column = COLUMNS - 1;
            }
        }
        self.rows[self.row][self.column] = Cell { character, colours: self.pen.colours() };
        self.changed[self.row] = true;
        self.column += 1;
    }

    /// Goes to the next row; at the end of what scrolls that does.
    pub fn line_feed(&mut self) {
        if self.row == self.region.1 {
            self.scroll_up(self.region.0, 1);
        } else if self.row + 1 < ROWS {
            self.row += 1;
        }
    }

    /// Goes to the row before; at the beginning of what scrolls that does.
    pub fn reverse_line_feed(&mut self) {
        if self.row == self.region.0 {
            self.scroll_down(self.region.0, 1);
        } else {
            self.row = self.row.saturating_sub(1);
        }
    }

    /// Rows from `first` to the end of what scrolls go up by `count`.
    pub fn scroll_up(&mut self, first: usize, count: usize) {
        self.scroll(first, |rows, count| rows.rotate_left(count), count, true);
    }

    /// The same, down.
    pub fn scroll_down(&mut self, first: usize, count: usize) {
        self.scroll(first, |rows, count| rows.rotate_right(count), count, false);
    }

    fn scroll(
        &mut self,
        first: usize,
        rotate: fn(&mut [[Cell; COLUMNS]], usize),
        count: usize,
        up: bool,
    ) {
        let (empty, last) = (self.empty(), self.region.1);
        if first < self.region.0 || first > last {
            return;
        }
        let rows = &mut self.rows[first..=last];
        let count = count.min(rows.len());
        rotate(rows, count);
        let new = if up { rows.len() - count..rows.len() } else { 0..count };
        rows[new].fill([empty; COLUMNS]);
        self.changed[first..=last].fill(true);
    }

    /// Goes to a place, or as far as it can.
    pub fn go(&mut self, row: usize, column: usize) {
        (self.row, self.column) = (row.min(ROWS - 1), column.min(COLUMNS - 1));
    }

    /// Empties cells of the cursor's row.
    pub fn erase(&mut self, columns: core::ops::Range<usize>) {
        let empty = self.empty();
        let range = columns.start.min(COLUMNS)..columns.end.min(COLUMNS);
        self.rows[self.row][range].fill(empty);
        self.changed[self.row] = true;
    }

    /// Empties whole rows.
    pub fn erase_rows(&mut self, rows: core::ops::Range<usize>) {
        let empty = self.empty();
        self.rows[rows.clone()].fill([empty; COLUMNS]);
        self.changed[rows].fill(true);
    }

    /// Makes room for `count` cells at the cursor.
    pub fn insert(&mut self, count: usize) {
        let from = self.column.min(COLUMNS - 1);
        let count = count.min(COLUMNS - from);
        self.rows[self.row][from..].rotate_right(count);
        self.erase(from..from + count);
    }

    /// Takes `count` cells at the cursor away.
    pub fn delete(&mut self, count: usize) {
        let from = self.column.min(COLUMNS - 1);
        let count = count.min(COLUMNS - from);
        self.rows[self.row][from..].rotate_left(count);
        self.erase(COLUMNS - count..COLUMNS);
    }
}
