//! The console's interface: text out, lines in. Registered as [`NAME`].

/// The name under which a console driver registers.
pub const NAME: &str = "console";

const BASE: u64 = 0x200;

/// MR1 bytes, then the text in words (at most [`WORD_BYTES`]). Reply: empty.
pub const WRITE: u64 = BASE;
/// A string item of at most [`STRING_BYTES`]. Reply: empty.
pub const WRITE_STRING: u64 = BASE + 1;
/// Reply when there is a line: MR1 bytes, then its text without the line end.
pub const READ_LINE: u64 = BASE + 2;
/// Reply when there is a character: MR1 its code.
pub const READ_CHAR: u64 = BASE + 3;
/// MR1, MR2 nothing. Reply: MR1 bytes written, MR2 bytes read, MR3 interrupts taken.
pub const STATISTICS: u64 = BASE + 4;

/// As [`WRITE`], but not a byte is changed: line ends are the sender's.
pub const WRITE_RAW: u64 = BASE + 5;
/// Reply when there is input: MR1 bytes, then the bytes as they came. From the first such
/// request on, the driver edits no lines.
pub const READ_RAW: u64 = BASE + 6;

/// MR1 bytes, then text in words: what the sender's next [`READ_LINE`] completes. Words for
/// the first place of a line, separated by blanks; behind a line feed those for later places.
/// Reply: empty.
pub const WORDS: u64 = BASE + 7;

/// From the root task: MR1 bytes, MR2 the task that it is for (all ones: the root task itself),
/// then text, fit for a terminal but for its line ends. No reply.
pub const WRITE_FOR: u64 = BASE + 8;

/// From the root task: the machine is to end when all text is sent. The answer is a message
/// [`crate::root::DRAINED`].
pub const DRAIN: u64 = BASE + 9;

/// Largest text of a [`WRITE`], bytes.
pub const WORD_BYTES: usize = 60 * 8;
/// Largest string of a [`WRITE_STRING`], bytes.
pub const STRING_BYTES: usize = 4096;
/// Longest line of a [`READ_LINE`], bytes.
pub const LINE_BYTES: usize = 120;
