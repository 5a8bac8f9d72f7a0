//! Line editing for a terminal: characters in, echo and lines out.
//!
//! Used by the console driver. Erase (backspace, delete), kill line (^U), erase
//! word (^W), redraw nothing else: everything a terminal needs and no more.
#![no_std]
#![forbid(unsafe_code)]

/// Longest line, bytes; further characters are not taken (the bell rings).
pub const LINE_BYTES: usize = 120;

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
    after_return: bool,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    /// An empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: [0; LINE_BYTES], len: 0, after_return: false }
    }

    /// What has been typed.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        &self.text[..self.len]
    }

    /// Begins the next line.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Takes one character; `echo` gets what the terminal is to show.
    pub fn put(&mut self, byte: u8, mut echo: impl FnMut(&[u8])) -> Event {
        let after_return = core::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            // The second half of a CR LF pair.
            b'\n' if after_return => {}
            b'\r' | b'\n' => {
                echo(b"\r\n");
                return Event::Line;
            }
            0x08 | 0x7F => self.erase(&mut echo),
            0x15 => {
                while self.len > 0 {
                    self.erase(&mut echo);
                }
            }
            0x17 => {
                while self.text[..self.len].last() == Some(&b' ') {
                    self.erase(&mut echo);
                }
                while self.len > 0 && self.text[self.len - 1] != b' ' {
                    self.erase(&mut echo);
                }
            }
            b' '..=0x7E if self.len < LINE_BYTES => {
                self.text[self.len] = byte;
                self.len += 1;
                echo(&[byte]);
            }
            _ => echo(b"\x07"),
        }
        Event::Editing
    }

    fn erase(&mut self, echo: &mut impl FnMut(&[u8])) {
        if self.len > 0 {
            self.len -= 1;
            echo(b"\x08 \x08");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::vec::Vec;

    /// Types `input`; returns the complete lines and the echo.
    fn typed(input: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut editor, mut lines, mut shown) = (Editor::new(), Vec::new(), Vec::new());
        for byte in input {
            if editor.put(*byte, |text| shown.extend_from_slice(text)) == Event::Line {
                lines.push(editor.line().to_vec());
                editor.clear();
            }
        }
        (lines, shown)
    }

    #[test]
    fn lines_end_with_any_line_end() {
        assert_eq!(typed(b"one\rtwo\nthree\r\nfour\r").0, [&b"one"[..], b"two", b"three", b"four"]);
        assert_eq!(typed(b"\r\r").0, [b"", b""]);
    }

    #[test]
    fn erasing() {
        assert_eq!(typed(b"ab\x7Fc\r").0, [b"ac"]);
        assert_eq!(typed(b"\x08\x08x\r").0, [b"x"]);
        assert_eq!(typed(b"kill this\x15word\r").0, [b"word"]);
        assert_eq!(typed(b"two words  \x17x\r").0, [b"two x"]);
        assert_eq!(typed(b"a\x08").1, b"a\x08 \x08");
    }

    #[test]
    fn a_full_line_rings() {
        let (lines, shown) = typed(&[[b'a'; LINE_BYTES + 3].as_slice(), b"\r"].concat());
        assert_eq!(lines[0].len(), LINE_BYTES);
        assert_eq!(shown.iter().filter(|byte| **byte == 7).count(), 3);
    }
}
