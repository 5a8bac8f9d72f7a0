//! Line editing for a terminal: characters in, echo and lines out.
//!
//! Used by the console driver: [`Terminal`] is what it has to know. The keys are those of other shells: arrows, Home and End,
//! Delete and Backspace, ^A ^E ^B ^F ^K ^U ^W ^D, ^P ^N and the arrows for earlier lines,
//! Tab for completion, ^L for a fresh screen, ^C for a fresh line.
//!
//! A line is never shown in more than one row ([`COLUMNS`]): a longer one moves under the
//! cursor, so that nobody has to know how wide the terminal is. That is also what lets the
//! prompt be taken away ([`Editor::hide`]) while somebody else prints, and come back.
#![no_std]
#![forbid(unsafe_code)]

mod editor;
mod history;
mod keys;
mod terminal;
mod words;

pub use editor::{Editor, Event};
pub use terminal::Terminal;

/// Longest line, bytes; further characters are not taken (the bell rings).
pub const LINE_BYTES: usize = 120;
/// Longest prompt, bytes.
pub const PROMPT_BYTES: usize = 48;
/// Longest list of words to complete, bytes.
pub const WORDS_BYTES: usize = 480;
/// The columns that are used.
pub const COLUMNS: usize = 79;

#[cfg(test)]
mod tests;
