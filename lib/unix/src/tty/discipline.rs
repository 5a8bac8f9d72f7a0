//! The line discipline: from typed bytes to what a read gets. Pure: it knows settings and
//! bytes, and says what is to be echoed and which signal is to be sent.
//!
//! The buffer holds characters, of which the first `lines_end` belong to lines that are
//! complete (in canonical mode). A line's last character is marked; the mark of an end of
//! file is a character of its own that no read gets.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use linux_raw_sys::general::{
    ECHO, ECHOCTL, ECHONL, EXTPROC, ICANON, ICRNL, IEXTEN, IGNCR, INLCR, ISIG, ISTRIP, IUCLC,
    IXANY, IXON, NOFLSH, PARMRK, SIGINT, SIGQUIT, SIGTSTP, VEOF, VEOL, VEOL2, VERASE, VINTR, VKILL,
    VLNEXT, VQUIT, VREPRINT, VSTART, VSTOP, VSUSP, VWERASE,
};

use super::termios::Termios;

/// Characters the buffer holds.
pub const BUFFER: usize = 4095;

/// A character, or the end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Char {
    pub byte: u8,
    /// Ends a line.
    pub ends: bool,
    /// Is no character, only the end (`VEOF`).
    pub mark: bool,
}

/// What else a typed byte does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    None,
    /// Sends a signal to the foreground group; whether both buffers are flushed.
    Signal(u32, bool),
    /// Output stops (`^S`).
    Stop,
    /// Output goes on.
    Start,
}

/// The input side of a terminal.
#[derive(Default)]
pub struct Discipline {
    pub(super) buffer: VecDeque<Char>,
    /// Characters of complete lines.
    pub(super) lines_end: usize,
    /// Column in which the line that is being typed began.
    pub(super) line_column: usize,
    /// The next byte is taken literally (`^V`).
    literal: bool,
    /// What is to be shown; the caller takes it.
    pub(super) echo: Vec<u8>,
}

impl Discipline {
    /// Whether bytes would not be lost: there is room, or a line can be finished.
    #[must_use]
    pub fn has_room(&self, termios: &Termios) -> bool {
        self.buffer.len() < BUFFER || termios.l(ICANON) && self.lines_end == 0
    }

    /// How many characters a read could get now.
    #[must_use]
    pub fn readable(&self, termios: &Termios) -> usize {
        if termios.l(ICANON) && !termios.l(EXTPROC) { self.lines_end } else { self.buffer.len() }
    }

    /// Forgets all input.
    pub fn flush(&mut self) {
        self.buffer.clear();
        self.lines_end = 0;
        self.literal = false;
    }

    /// The settings change.
    pub fn change(&mut self, old: &Termios, new: &Termios) {
        if (old.local ^ new.local) & ICANON == 0 {
            return;
        }
        for character in &mut self.buffer {
            character.ends = false;
            character.mark = false;
        }
        self.literal = false;
        self.lines_end = 0;
        if new.l(ICANON) {
            // What was there is a line of its own.
            self.lines_end = self.buffer.len();
            if let Some(last) = self.buffer.back_mut() {
                last.ends = true;
            }
        }
    }

    /// A byte was typed.
    pub fn receive(&mut self, termios: &Termios, byte: u8) -> Effect {
        let mut byte = byte;
        if termios.i(ISTRIP) {
            byte &= 0x7f;
        }
        if termios.i(IUCLC) && termios.l(IEXTEN) {
            byte = byte.to_ascii_lowercase();
        }
        if termios.l(EXTPROC) {
            self.store(byte, false);
            return Effect::None;
        }
        if self.literal {
            self.literal = false;
            self.plain(termios, byte);
            return Effect::None;
        }
        match self.flow_or_signal(termios, byte) {
            Some(effect) => effect,
            None => {
                self.character(termios, byte);
                Effect::None
            }
        }
    }

    /// `^S`, `^Q` and the characters that signal.
    fn flow_or_signal(&mut self, termios: &Termios, byte: u8) -> Option<Effect> {
        if termios.i(IXON) {
            if termios.is(VSTART, byte) {
                return Some(Effect::Start);
            }
            if termios.is(VSTOP, byte) {
                return Some(Effect::Stop);
            }
        }
        if !termios.l(ISIG) {
            return None;
        }
        let signal = match byte {
            _ if termios.is(VINTR, byte) => SIGINT,
            _ if termios.is(VQUIT, byte) => SIGQUIT,
            _ if termios.is(VSUSP, byte) => SIGTSTP,
            _ => return None,
        };
        let flush = !termios.l(NOFLSH);
        if flush {
            self.flush();
        }
        self.show(termios, byte);
        Some(Effect::Signal(signal, flush))
    }

    /// A byte that neither signals nor stops.
    fn character(&mut self, termios: &Termios, byte: u8) {
        let byte = match byte {
            b'\r' if termios.i(IGNCR) => return,
            b'\r' if termios.i(ICRNL) => b'\n',
            b'\n' if termios.i(INLCR) => b'\r',
            byte => byte,
        };
        if !termios.l(ICANON) {
            self.plain(termios, byte);
            return;
        }
        let extended = termios.l(IEXTEN);
        match byte {
            _ if termios.is(VERASE, byte) || termios.is(VKILL, byte) => self.erase(termios, byte),
            _ if extended && termios.is(VWERASE, byte) => self.erase(termios, byte),
            _ if extended && termios.is(VLNEXT, byte) => {
                self.literal = true;
                if termios.l(ECHO) && termios.l(ECHOCTL) {
                    self.echo.extend_from_slice(b"^\x08");
                }
            }
            _ if extended && termios.is(VREPRINT, byte) && termios.l(ECHO) => {
                self.reprint(termios, byte);
            }
            b'\n' => {
                if termios.l(ECHO) || termios.l(ECHONL) {
                    self.echo.push(b'\n');
                }
                self.end_line(byte, false);
            }
            _ if termios.is(VEOF, byte) => self.end_line(0, true),
            _ if termios.is(VEOL, byte) || extended && termios.is(VEOL2, byte) => {
                self.show(termios, byte);
                if byte == 0xff && termios.i(PARMRK) {
                    self.store(byte, false);
                }
                self.end_line(byte, false);
            }
            _ => self.plain(termios, byte),
        }
    }

    /// A character without a meaning of its own.
    fn plain(&mut self, termios: &Termios, byte: u8) {
        let full = self.buffer.len() >= BUFFER;
        if full && termios.l(ICANON) {
            self.echo.push(7);
            return;
        }
        if termios.l(ECHO) {
            if byte == b'\n' {
                self.echo.push(b'\n');
            } else {
                self.show(termios, byte);
            }
        }
        if byte == 0xff && termios.i(PARMRK) {
            self.store(byte, false);
        }
        self.store(byte, false);
    }

    /// Adds a character, if there is room (a line's end always finds some).
    fn store(&mut self, byte: u8, ends: bool) {
        if self.buffer.len() < BUFFER || ends && self.buffer.len() == BUFFER {
            self.buffer.push_back(Char { byte, ends, mark: false });
        }
    }

    fn end_line(&mut self, byte: u8, mark: bool) {
        self.store(byte, true);
        if let Some(last) = self.buffer.back_mut() {
            last.ends = true;
            last.mark = mark;
        }
        self.lines_end = self.buffer.len();
    }

    /// Echoes a byte, control characters as `^X`.
    pub(super) fn show(&mut self, termios: &Termios, byte: u8) {
        if !termios.l(ECHO) {
            return;
        }
        if termios.l(ECHOCTL) && byte.is_ascii_control() && byte != b'\t' {
            self.echo.extend_from_slice(&[b'^', byte ^ 0x40]);
        } else {
            self.echo.push(byte);
        }
    }

    /// Whether a byte that is typed now starts output again.
    #[must_use]
    pub fn restarts(termios: &Termios, byte: u8) -> bool {
        termios.i(IXON) && termios.i(IXANY) && !termios.is(VSTOP, byte)
    }

    /// Takes characters for a read of up to `max`: in canonical mode up to a line's end,
    /// which is consumed with it. The bytes, and whether a line (or the file) ended.
    pub fn take(&mut self, termios: &Termios, max: usize) -> (Vec<u8>, bool) {
        let count = self.readable(termios).min(max);
        let mut bytes = Vec::with_capacity(count);
        let lines = termios.l(ICANON) && !termios.l(EXTPROC);
        loop {
            // The mark of an end is consumed even if the buffer of the read is full.
            let mark = lines && self.lines_end > 0 && self.buffer.front().is_some_and(|c| c.mark);
            if bytes.len() >= count && !mark || self.readable(termios) == 0 {
                return (bytes, false);
            }
            let Some(character) = self.buffer.pop_front() else { return (bytes, false) };
            self.lines_end = self.lines_end.saturating_sub(1);
            if !(lines && character.mark) {
                bytes.push(character.byte);
            }
            if lines && character.ends {
                return (bytes, true);
            }
        }
    }
}
