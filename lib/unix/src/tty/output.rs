//! What happens to bytes on their way to the screen: `OPOST` and its friends, and the
//! column the cursor is in.

use alloc::vec::Vec;

use linux_raw_sys::general::{IUTF8, OCRNL, OLCUC, ONLCR, ONLRET, ONOCR, OPOST};

use super::termios::Termios;

/// The most bytes one byte can become (a tab).
pub const GROWTH: usize = 8;

/// The output side's state.
#[derive(Default)]
pub struct Output {
    /// Column of the cursor.
    pub column: usize,
}

impl Output {
    /// Appends what is to be shown for `bytes` to `to`.
    pub fn process(&mut self, termios: &Termios, bytes: &[u8], to: &mut Vec<u8>) {
        if !termios.o(OPOST) {
            to.extend_from_slice(bytes);
            return;
        }
        for byte in bytes {
            self.byte(termios, *byte, to);
        }
    }

    fn byte(&mut self, termios: &Termios, byte: u8, to: &mut Vec<u8>) {
        match byte {
            b'\n' => {
                if termios.o(ONLRET) {
                    self.column = 0;
                }
                if termios.o(ONLCR) {
                    self.column = 0;
                    to.push(b'\r');
                }
                to.push(b'\n');
            }
            b'\r' if termios.o(ONOCR) && self.column == 0 => {}
            b'\r' if termios.o(OCRNL) => {
                if termios.o(ONLRET) {
                    self.column = 0;
                }
                to.push(b'\n');
            }
            b'\r' => {
                self.column = 0;
                to.push(b'\r');
            }
            b'\t' => {
                let spaces = 8 - self.column % 8;
                self.column += spaces;
                if termios.expands_tabs() {
                    to.extend(core::iter::repeat_n(b' ', spaces));
                } else {
                    to.push(b'\t');
                }
            }
            8 => {
                self.column = self.column.saturating_sub(1);
                to.push(8);
            }
            _ => {
                let byte = if termios.o(OLCUC) { byte.to_ascii_uppercase() } else { byte };
                let continues = termios.i(IUTF8) && byte & 0xc0 == 0x80;
                if !byte.is_ascii_control() && !continues {
                    self.column += 1;
                }
                to.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(termios: &Termios, bytes: &[u8]) -> Vec<u8> {
        let mut to = Vec::new();
        Output::default().process(termios, bytes, &mut to);
        to
    }

    #[test]
    fn newlines_and_tabs() {
        let mut termios = Termios::default();
        assert_eq!(shown(&termios, b"a\n\tb"), b"a\r\n\tb");
        termios.output |= linux_raw_sys::general::XTABS;
        assert_eq!(shown(&termios, b"ab\tc\n\td"), b"ab      c\r\n        d");
        termios.output = OPOST | OCRNL;
        assert_eq!(shown(&termios, b"a\rb\n"), b"a\nb\n");
        termios.output = 0;
        assert_eq!(shown(&termios, b"a\n\tb"), b"a\n\tb");
    }
}
