//! The console's interface (`interfaces/console.wit`): text out, lines in. Registered as [`NAME`].

pub use interfaces::console::label::{
    COMPLETE, READ_CHAR, READ_LINE, READ_RAW, STATISTICS, WRITE, WRITE_LONG, WRITE_RAW,
};
pub use interfaces::voice::label::{DRAIN, WRITE_FOR};

/// The name under which a console driver registers.
pub const NAME: &str = "console";

/// Largest text of a [`WRITE`], and of what [`READ_RAW`] gives, bytes.
pub const WORD_BYTES: usize = interfaces::console::ROOM;
/// Largest text of a [`WRITE_LONG`], bytes.
pub const STRING_BYTES: usize = interfaces::console::INPUT;
/// Longest line of a [`READ_LINE`], bytes.
pub const LINE_BYTES: usize = 120;
