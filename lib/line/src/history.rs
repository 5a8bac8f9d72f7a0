//! Lines that were typed before.

use crate::LINE_BYTES;

/// How many are kept.
const LINES: usize = 16;

/// The newest lines, the oldest of which makes room for the next.
pub struct History {
    lines: [[u8; LINE_BYTES]; LINES],
    lens: [usize; LINES],
    /// Where the next one goes.
    next: usize,
    count: usize,
}

impl History {
    /// No line yet.
    pub const fn new() -> Self {
        Self { lines: [[0; LINE_BYTES]; LINES], lens: [0; LINES], next: 0, count: 0 }
    }

    /// Keeps `line`, unless it is empty or the same as the newest.
    pub fn keep(&mut self, line: &[u8]) {
        if line.is_empty() || line.len() > LINE_BYTES || self.line(1) == Some(line) {
            return;
        }
        self.lines[self.next][..line.len()].copy_from_slice(line);
        self.lens[self.next] = line.len();
        self.next = (self.next + 1) % LINES;
        self.count = (self.count + 1).min(LINES);
    }

    /// The line that was typed `age` lines ago; 1 is the newest.
    pub fn line(&self, age: usize) -> Option<&[u8]> {
        if age == 0 || age > self.count {
            return None;
        }
        let at = (self.next + LINES - age) % LINES;
        Some(&self.lines[at][..self.lens[at]])
    }
}
