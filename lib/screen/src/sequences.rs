//! What control characters and sequences mean (ECMA-48; `console_codes(4)`).

use vte::{Params, Perform};

use crate::cells::{Cells, Pen};

/// A PC's colours have red and blue where ECMA-48's have blue and red.
const PC: [u8; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

impl<const ROWS: usize, const COLUMNS: usize> Perform for Cells<ROWS, COLUMNS> {
    fn print(&mut self, character: char) {
        self.character(character);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            b'\n' | 0x0B | 0x0C => self.line_feed(),
            8 => self.column = self.column.min(COLUMNS - 1).saturating_sub(1),
            b'\t' => self.column = ((self.column | 7) + 1).min(COLUMNS - 1),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        if !intermediates.is_empty() {
            return;
        }
        match byte {
            b'7' => self.saved = (self.row, self.column, self.pen),
            b'8' => (self.row, self.column, self.pen) = self.saved,
            b'D' => self.line_feed(),
            b'E' => {
                self.column = 0;
                self.line_feed();
            }
            b'M' => self.reverse_line_feed(),
            b'c' => *self = Self::new(),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, marks: &[u8], _ignore: bool, action: char) {
        let number = |index: usize| {
            params.iter().nth(index).and_then(|param| param.first()).map_or(0, |n| usize::from(*n))
        };
        let count = number(0).max(1);
        if marks == b"?" {
            if matches!(action, 'h' | 'l') {
                let on = action == 'h';
                params.iter().for_each(|param| self.switch(param.first(), on));
            }
            return;
        }
        if !marks.is_empty() {
            return;
        }
        let (row, column) = (self.row, self.column.min(COLUMNS - 1));
        match action {
            'A' => self.go(row.saturating_sub(count), column),
            'B' | 'e' => self.go(row + count, column),
            'C' | 'a' => self.go(row, column + count),
            'D' => self.go(row, column.saturating_sub(count)),
            'E' => self.go(row + count, 0),
            'F' => self.go(row.saturating_sub(count), 0),
            'G' | '`' => self.go(row, count - 1),
            'd' => self.go(count - 1, column),
            'H' | 'f' => self.go(count - 1, number(1).max(1) - 1),
            'J' => self.erase_display(number(0)),
            'K' => self.erase_line(number(0)),
            'L' if row <= self.region.1 => self.scroll_down(row, count),
            'M' if row <= self.region.1 => self.scroll_up(row, count),
            'P' => self.delete(count),
            '@' => self.insert(count),
            'X' => self.erase(column..column + count),
            'S' => self.scroll_up(self.region.0, count),
            'T' => self.scroll_down(self.region.0, count),
            'm' => self.colours(params),
            'n' if number(0) == 6 => self.say_place(),
            'n' if number(0) == 5 => self.answer.say(b"\x1B[0n"),
            'c' if number(0) == 0 => self.answer.say(b"\x1B[?6c"),
            'r' => self.set_region(number(0).max(1), number(1)),
            's' => self.saved = (self.row, self.column, self.pen),
            'u' => (self.row, self.column, self.pen) = self.saved,
            _ => {}
        }
    }
}

impl<const ROWS: usize, const COLUMNS: usize> Cells<ROWS, COLUMNS> {
    fn switch(&mut self, what: Option<&u16>, on: bool) {
        match what {
            Some(7) => self.wraps = on,
            Some(25) => self.visible = on,
            _ => {}
        }
    }

    fn erase_display(&mut self, what: usize) {
        match what {
            0 => {
                self.erase(self.column..COLUMNS);
                self.erase_rows(self.row + 1..ROWS);
            }
            1 => {
                self.erase(0..self.column + 1);
                self.erase_rows(0..self.row);
            }
            2 | 3 => self.erase_rows(0..ROWS),
            _ => {}
        }
    }

    fn erase_line(&mut self, what: usize) {
        match what {
            0 => self.erase(self.column..COLUMNS),
            1 => self.erase(0..self.column + 1),
            2 => self.erase(0..COLUMNS),
            _ => {}
        }
    }

    /// Rows from `first` to `last` scroll, counted from 1; `last` 0 is the last.
    fn set_region(&mut self, first: usize, last: usize) {
        let last = if last == 0 { ROWS } else { last.min(ROWS) };
        if first < last {
            self.region = (first - 1, last - 1);
            self.go(0, 0);
        }
    }

    fn say_place(&mut self) {
        let (row, column) = (self.row + 1, self.column.min(COLUMNS - 1) + 1);
        let mut text = [0; 16];
        let mut at = text.len();
        let mut put = |byte: u8| {
            at -= 1;
            text[at] = byte;
        };
        put(b'R');
        digits(column, &mut put);
        put(b';');
        digits(row, &mut put);
        put(b'[');
        put(0x1B);
        self.answer.say(&text[at..]);
    }

    fn colours(&mut self, params: &Params) {
        if params.is_empty() {
            self.pen = Pen::PLAIN;
        }
        let mut numbers = params.iter().flatten().copied();
        while let Some(number) = numbers.next() {
            let colour = |first: u16| PC[usize::from(number - first) & 7];
            match number {
                0 => self.pen = Pen::PLAIN,
                1 => self.pen.bold = true,
                2 | 21 | 22 => self.pen.bold = false,
                7 => self.pen.reverse = true,
                27 => self.pen.reverse = false,
                30..=37 => self.pen.front = colour(30),
                39 => self.pen.front = Pen::PLAIN.front,
                40..=47 => self.pen.back = colour(40),
                49 => self.pen.back = Pen::PLAIN.back,
                90..=97 => self.pen.front = colour(90) | 8,
                100..=107 => self.pen.back = colour(100),
                // More colours than there are: 5 and one number, or 2 and three.
                38 | 48 => match numbers.next() {
                    Some(5) => _ = numbers.next(),
                    Some(2) => _ = numbers.nth(2),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// The digits of a number, the last one first.
fn digits(mut number: usize, put: &mut impl FnMut(u8)) {
    loop {
        put(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
}
