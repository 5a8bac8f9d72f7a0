//! A terminal shared by those who print and the person who types: whatever is printed
//! while a line is being typed goes above it, and the prompt comes back.
//!
//! Nobody has to say what the prompt is: it is what stands in the row when a line is asked
//! for.

use crate::{Editor, Event, PROMPT_BYTES};

/// What was printed since the last line end.
struct Row {
    text: [u8; PROMPT_BYTES],
    /// Bytes printed, more than fit perhaps.
    len: usize,
    /// Whether there is anything but plain characters.
    odd: bool,
}

impl Row {
    const fn new() -> Self {
        Self { text: [0; PROMPT_BYTES], len: 0, odd: false }
    }

    fn put(&mut self, byte: u8) {
        if byte == b'\n' {
            *self = Self::new();
            return;
        }
        self.odd |= !matches!(byte, b' '..=0x7E);
        if let Some(place) = self.text.get_mut(self.len) {
            *place = byte;
        }
        self.len += 1;
    }

    /// The text, if it can be written once more.
    fn text(&self) -> Option<&[u8]> {
        self.text.get(..self.len).filter(|_| !self.odd)
    }
}

/// The terminal.
pub struct Terminal {
    editor: Editor,
    row: Row,
    /// Whether somebody waits for a line.
    asked: bool,
    /// Whether prompt and line were taken away because of what others print.
    hidden: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// An empty row.
    #[must_use]
    pub const fn new() -> Self {
        Self { editor: Editor::new(), row: Row::new(), asked: false, hidden: false }
    }

    /// What has been typed, until [`Terminal::clear`].
    #[must_use]
    pub fn line(&self) -> &[u8] {
        self.editor.line()
    }

    /// Begins the next line.
    pub fn clear(&mut self) {
        self.editor.clear();
    }

    /// Gives what has been typed of a line to somebody who wants no lines, and edits nothing any more.
    pub fn give_up(&mut self, to: impl FnMut(u8)) {
        self.line().iter().copied().for_each(to);
        self.clear();
        (self.asked, self.hidden) = (false, false);
    }

    /// As [`Editor::set_words`].
    pub fn set_words(&mut self, words: &[u8]) {
        self.editor.set_words(words);
    }

    /// Somebody prints; line ends become those of terminals.
    pub fn print(&mut self, text: &[u8], mut echo: impl FnMut(&[u8])) {
        if !self.hidden && (self.asked || !self.line().is_empty()) {
            self.editor.hide(&mut echo);
            self.hidden = true;
            self.row = Row::new();
        }
        for byte in text {
            if *byte == b'\n' {
                echo(b"\r");
            }
            echo(&[*byte]);
            self.row.put(*byte);
        }
        if self.hidden && self.row.len == 0 {
            self.editor.show(&mut echo);
            self.hidden = false;
        }
    }

    /// Somebody begins to wait for a line; what stands in the row is the prompt.
    pub fn ask(&mut self, mut echo: impl FnMut(&[u8])) {
        self.asked = true;
        if self.hidden || self.line().is_empty() {
            self.take_prompt(&mut echo);
        }
        if self.hidden {
            self.editor.show(&mut echo);
            self.hidden = false;
        }
    }

    /// Takes one character; `echo` gets what the terminal is to show.
    pub fn put(&mut self, byte: u8, mut echo: impl FnMut(&[u8])) -> Event {
        if self.hidden {
            if self.row.len != 0 {
                echo(b"\r\n");
            }
            self.editor.show(&mut echo);
            self.hidden = false;
            self.row = Row::new();
        } else if !self.asked && self.line().is_empty() {
            self.take_prompt(&mut echo);
        }
        let event = self.editor.put(byte, echo);
        if event == Event::Line {
            self.asked = false;
            self.row = Row::new();
            self.editor.set_prompt(b"");
        }
        event
    }

    /// Makes what is in the row the prompt; what cannot be one gets a row of its own.
    fn take_prompt(&mut self, echo: &mut impl FnMut(&[u8])) {
        match self.row.text() {
            Some(text) => self.editor.set_prompt(text),
            None => {
                echo(b"\r\n");
                self.row = Row::new();
                self.editor.set_prompt(b"");
            }
        }
    }
}
