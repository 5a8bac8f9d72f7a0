//! What belongs to a terminal's line: editing what is typed, strangers' text made visible,
//! and turns for those that write.
//!
//! Used by the console driver: [`Terminal`], [`Fair`] and [`visible`] are what it has to know. The keys are those of other shells: arrows, Home and End,
//! Delete and Backspace, ^A ^E ^B ^F ^K ^U ^W ^D, ^P ^N and the arrows for earlier lines,
//! Tab for completion, ^L for a fresh screen, ^C for a fresh line.
//!
//! A line is never shown in more than one row ([`COLUMNS`]): a longer one moves under the
//! cursor, so that nobody has to know how wide the terminal is. That is also what lets the
//! prompt be taken away ([`Editor::hide`]) while somebody else prints, and come back.
#![no_std]
#![forbid(unsafe_code)]

mod editor;
mod fair;
mod history;
mod keys;
mod prefix;
mod ring;
mod tail;
mod terminal;
mod visible;
mod words;

pub use editor::{Editor, Event};
pub use fair::{Fair, LONGEST_TURN, TURN};
pub use prefix::{PREFIX, Prefix, Typed};
pub use ring::Ring;
pub use tail::Tail;
pub use terminal::Terminal;
pub use visible::visible;

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
