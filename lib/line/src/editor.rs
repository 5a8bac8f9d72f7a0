//! The line and what is seen of it.

use crate::history::History;
use crate::keys::{Key, Keys};
use crate::words::Words;
use crate::{COLUMNS, LINE_BYTES, PROMPT_BYTES};

/// What a character did to the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The line goes on.
    Editing,
    /// The line is complete: [`Editor::line`] until [`Editor::clear`].
    Line,
}

/// A line being typed.
pub struct Editor {
    text: [u8; LINE_BYTES],
    len: usize,
    /// Where the next character goes.
    cursor: usize,
    keys: Keys,
    history: History,
    /// How many lines back the shown one is; 0 is the one being typed.
    age: usize,
    /// The one being typed while an earlier one is shown.
    draft: [u8; LINE_BYTES],
    draft_len: usize,
    prompt: [u8; PROMPT_BYTES],
    prompt_len: usize,
    words: Words,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    /// An empty line, no prompt, nothing to complete.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            text: [0; LINE_BYTES],
            len: 0,
            cursor: 0,
            keys: Keys::new(),
            history: History::new(),
            age: 0,
            draft: [0; LINE_BYTES],
            draft_len: 0,
            prompt: [0; PROMPT_BYTES],
            prompt_len: 0,
            words: Words::new(),
        }
    }

    /// What has been typed.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// Begins the next line.
    pub fn clear(&mut self) {
        (self.len, self.cursor, self.age) = (0, 0, 0);
    }

    /// What stands before the line; its printable characters.
    pub fn set_prompt(&mut self, prompt: &[u8]) {
        self.prompt_len = 0;
        for byte in prompt.iter().filter(|byte| matches!(byte, b' '..=0x7E)) {
            let Some(place) = self.prompt.get_mut(self.prompt_len) else { return };
            *place = *byte;
            self.prompt_len += 1;
        }
    }

    /// What Tab completes: words for the first place of a line, separated by blanks, and
    /// behind a line feed those for later places.
    pub fn set_words(&mut self, words: &[u8]) {
        self.words.set(words);
    }

    /// Takes prompt and line off the screen; the cursor is at the row's beginning.
    pub fn hide(&self, mut echo: impl FnMut(&[u8])) {
        echo(b"\r\x1B[K");
    }

    /// Shows prompt and line in the row where the cursor is.
    pub fn show(&self, mut echo: impl FnMut(&[u8])) {
        self.draw(&mut echo);
    }

    /// Takes one character; `echo` gets what the terminal is to show.
    pub fn put(&mut self, byte: u8, mut echo: impl FnMut(&[u8])) -> Event {
        let echo = &mut echo;
        match self.keys.key(byte) {
            Key::Return => {
                self.move_to(self.len, echo);
                echo(b"\r\n");
                self.history.keep(&self.text[..self.len]);
                return Event::Line;
            }
            Key::Character(byte) => self.insert(byte, echo),
            Key::Left => self.move_to(self.cursor.saturating_sub(1), echo),
            Key::Right => self.move_to((self.cursor + 1).min(self.len), echo),
            Key::Home => self.move_to(0, echo),
            Key::End => self.move_to(self.len, echo),
            Key::Up => self.recall(self.age + 1, echo),
            Key::Down => self.recall(self.age.wrapping_sub(1), echo),
            Key::Backspace => self.erase(self.cursor.saturating_sub(1), self.cursor, echo),
            Key::Delete => self.erase(self.cursor, (self.cursor + 1).min(self.len), echo),
            Key::EraseWord => self.erase(self.word_before(), self.cursor, echo),
            Key::EraseLeft => self.erase(0, self.cursor, echo),
            Key::EraseRight => self.erase(self.cursor, self.len, echo),
            Key::Tab => self.complete(echo),
            Key::Clear => {
                echo(b"\x1B[H\x1B[2J");
                self.draw(echo);
            }
            Key::Cancel => {
                echo(b"^C\r\n");
                self.clear();
                self.draw(echo);
            }
            Key::Refused => echo(b"\x07"),
            Key::Nothing => {}
        }
        Event::Editing
    }

    fn insert(&mut self, byte: u8, echo: &mut impl FnMut(&[u8])) {
        if self.len == LINE_BYTES {
            return echo(b"\x07");
        }
        self.text.copy_within(self.cursor..self.len, self.cursor + 1);
        self.text[self.cursor] = byte;
        self.len += 1;
        self.cursor += 1;
        if self.cursor == self.len && self.first_shown() == 0 {
            echo(&[byte]);
        } else {
            self.draw(echo);
        }
    }

    fn move_to(&mut self, cursor: usize, echo: &mut impl FnMut(&[u8])) {
        if cursor != self.cursor {
            self.cursor = cursor;
            self.draw(echo);
        }
    }

    /// Erases the characters from `from` to before `to`.
    fn erase(&mut self, from: usize, to: usize, echo: &mut impl FnMut(&[u8])) {
        if from == to {
            return;
        }
        let at_end = to == self.len && self.cursor == self.len && self.first_shown() == 0;
        self.text.copy_within(to..self.len, from);
        self.len -= to - from;
        self.cursor = from;
        if at_end {
            (from..to).for_each(|_| echo(b"\x08 \x08"));
        } else {
            self.draw(echo);
        }
    }

    /// Where the word to the left of the cursor begins.
    fn word_before(&self) -> usize {
        let left = &self.text[..self.cursor];
        let end = left.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1);
        left[..end].iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1)
    }

    /// Shows the line of `age`, if there is one; 0 is the one being typed.
    fn recall(&mut self, age: usize, echo: &mut impl FnMut(&[u8])) {
        if self.age == 0 {
            self.draft = self.text;
            self.draft_len = self.len;
        }
        let line = match age {
            0 => &self.draft[..self.draft_len],
            _ => match self.history.line(age) {
                Some(line) => line,
                None => return echo(b"\x07"),
            },
        };
        self.text[..line.len()].copy_from_slice(line);
        self.len = line.len();
        self.cursor = self.len;
        self.age = age;
        self.draw(echo);
    }

    /// Completes the word to the left of the cursor as far as it is clear, or lists how
    /// it can go on.
    fn complete(&mut self, echo: &mut impl FnMut(&[u8])) {
        let left = &self.text[..self.cursor];
        let begin = left.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
        let first = left[..begin].iter().all(|byte| *byte == b' ');
        let mut start = [0; LINE_BYTES];
        let typed = self.cursor - begin;
        start[..typed].copy_from_slice(&left[begin..]);
        let start = &start[..typed];
        let (common, count) = self.words.common(first, start);
        if count == 0 {
            return echo(b"\x07");
        }
        if count > 1 && common == typed {
            echo(b"\r\n");
            let mut column = 0;
            for word in self.words.matching(first, start) {
                if column != 0 && column + 2 + word.len() > COLUMNS {
                    echo(b"\r\n");
                    column = 0;
                }
                echo(if column == 0 { b"" } else { b"  " });
                echo(word);
                column += word.len() + 2;
            }
            echo(b"\r\n");
            return self.draw(echo);
        }
        let mut rest = [0; LINE_BYTES];
        let mut len = 0;
        if let Some(word) = self.words.matching(first, start).next() {
            for byte in &word[typed..common] {
                if let Some(place) = rest.get_mut(len) {
                    *place = *byte;
                    len += 1;
                }
            }
        }
        rest[..len].iter().for_each(|byte| self.insert(*byte, echo));
        if count == 1 && self.text[self.cursor..self.len].first() != Some(&b' ') {
            self.insert(b' ', echo);
        }
    }

    /// The first character that is shown: the cursor has to be in the row.
    fn first_shown(&self) -> usize {
        (self.prompt_len + self.cursor).saturating_sub(COLUMNS - 1)
    }

    fn draw(&self, echo: &mut impl FnMut(&[u8])) {
        let first = self.first_shown();
        let end = self.len.min(first + COLUMNS - self.prompt_len);
        echo(b"\r");
        echo(&self.prompt[..self.prompt_len]);
        echo(&self.text[first..end]);
        echo(b"\x1B[K");
        // Back to the cursor, as decimal digits: at most COLUMNS.
        match (end - self.cursor) as u8 {
            0 => {}
            back @ 1..=9 => echo(&[0x1B, b'[', b'0' + back, b'D']),
            back => echo(&[0x1B, b'[', b'0' + back / 10, b'0' + back % 10, b'D']),
        }
    }
}
