//! Editing a line while it is typed: erase, word erase, kill, reprint.

use alloc::vec::Vec;

use linux_raw_sys::general::{
    ECHO, ECHOCTL, ECHOE, ECHOK, ECHOKE, ECHOPRT, IUTF8, VERASE, VKILL, VWERASE,
};

use super::discipline::Discipline;
use super::termios::Termios;

/// What an erasing key removes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Erase {
    Character,
    Word,
    Line,
}

impl Discipline {
    /// The characters of the line that is being typed.
    fn line(&self) -> impl DoubleEndedIterator<Item = u8> + '_ {
        self.buffer.range(self.lines_end..).map(|character| character.byte)
    }

    /// `key` erases.
    pub(super) fn erase(&mut self, termios: &Termios, key: u8) {
        let kind = match key {
            _ if termios.is(VERASE, key) => Erase::Character,
            _ if termios.is(VWERASE, key) => Erase::Word,
            _ => Erase::Line,
        };
        if self.buffer.len() <= self.lines_end {
            return;
        }
        let blind = kind == Erase::Line
            && !(termios.l(ECHO) && termios.l(ECHOE) && termios.l(ECHOK) && termios.l(ECHOKE));
        if blind {
            self.buffer.truncate(self.lines_end);
            if termios.l(ECHO) {
                self.show(termios, termios.character(VKILL));
                if termios.l(ECHOK) {
                    self.echo.push(b'\n');
                }
            }
            return;
        }
        let mut seen_alnum = false;
        while self.buffer.len() > self.lines_end {
            let Some(character) = self.last_character(termios) else { break };
            if kind == Erase::Word {
                let is_word = character[0].is_ascii_alphanumeric() || character[0] == b'_';
                if is_word {
                    seen_alnum = true;
                } else if seen_alnum {
                    break;
                }
            }
            self.buffer.truncate(self.buffer.len() - character.len());
            self.show_erased(termios, key, &character);
            if kind == Erase::Character {
                break;
            }
        }
    }

    /// The bytes of the last character of the line (several in UTF-8).
    fn last_character(&self, termios: &Termios) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for byte in self.line().rev() {
            bytes.insert(0, byte);
            if !(termios.i(IUTF8) && byte & 0xc0 == 0x80) {
                return Some(bytes);
            }
        }
        // Only continuation bytes: Linux leaves them alone.
        None
    }

    fn show_erased(&mut self, termios: &Termios, key: u8, character: &[u8]) {
        if !termios.l(ECHO) {
            return;
        }
        let byte = character[0];
        if termios.l(ECHOPRT) {
            self.echo.push(b'\\');
            self.show(termios, byte);
            self.echo.push(b'/');
        } else if termios.is(VERASE, key) && !termios.l(ECHOE) {
            self.show(termios, key);
        } else if byte == b'\t' {
            let back = 8 - self.columns(termios) % 8;
            self.echo.extend(core::iter::repeat_n(8, back));
        } else {
            let columns = match byte {
                _ if !byte.is_ascii_control() => 1,
                _ if termios.l(ECHOCTL) => 2,
                _ => 0,
            };
            for _ in 0..columns {
                self.echo.extend_from_slice(b"\x08 \x08");
            }
        }
    }

    /// How many columns the line takes, from where it began.
    fn columns(&self, termios: &Termios) -> usize {
        let mut columns = 0;
        for byte in self.line() {
            columns += match byte {
                b'\t' => 8 - columns % 8,
                _ if byte.is_ascii_control() && termios.l(ECHOCTL) => 2,
                _ if byte.is_ascii_control() => 0,
                _ if termios.i(IUTF8) && byte & 0xc0 == 0x80 => 0,
                _ => 1,
            };
        }
        columns + self.line_column
    }

    /// Shows the line again.
    pub(super) fn reprint(&mut self, termios: &Termios, key: u8) {
        self.show(termios, key);
        self.echo.push(b'\n');
        let line: Vec<u8> = self.line().collect();
        for byte in line {
            self.show(termios, byte);
        }
    }
}
