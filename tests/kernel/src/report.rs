//! What a test says: one line each, a sentence if it failed, the verdict at the
//! end through the emulator's exit port.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, Ordering};

use runtime::direct_println;

use crate::{victim, world};

/// Longest sentence, bytes.
const ROOM: usize = 240;

static FAILED: AtomicU32 = AtomicU32::new(0);

/// Why a test failed: a sentence.
pub struct Sentence {
    text: [u8; ROOM],
    len: usize,
}

impl Sentence {
    /// Formats a sentence; what does not fit is cut off.
    #[must_use]
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut sentence = Self { text: [0; ROOM], len: 0 };
        let _ = sentence.write_fmt(text);
        sentence
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.text[..self.len]).unwrap_or("the reason is not text")
    }
}

impl Write for Sentence {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes().filter(u8::is_ascii) {
            if self.len < ROOM {
                self.text[self.len] = byte;
                self.len += 1;
            }
        }
        Ok(())
    }
}

/// What a test or one of its steps comes to.
pub type Outcome<T = ()> = Result<T, Sentence>;

/// Ends the test with a sentence unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr, $($arg:tt)*) => {
        if !$condition {
            return Err($crate::report::Sentence::new(format_args!($($arg)*)));
        }
    };
}

/// Ends the test with a sentence unless both values are equal.
#[macro_export]
macro_rules! same {
    ($what:expr, $is:expr, $expected:expr) => {{
        let (is, expected) = ($is, $expected);
        if is != expected {
            return Err($crate::report::Sentence::new(format_args!(
                "{} is {:x?}, expected {:x?}",
                $what, is, expected
            )));
        }
    }};
}

/// A failed step as a sentence.
pub fn because<T, E: fmt::Debug>(result: Result<T, E>, what: &str) -> Outcome<T> {
    result.map_err(|error| Sentence::new(format_args!("{what} failed: {error:?}")))
}

/// Runs one test, prints its line.
pub fn case(name: &str, test: fn() -> Outcome) {
    if root_harness::is_skipped(name) {
        direct_println!("test {name} ... skipped");
        return;
    }
    match test() {
        Ok(()) => direct_println!("test {name} ... ok"),
        Err(sentence) => {
            FAILED.fetch_add(1, Ordering::Relaxed);
            direct_println!("test {name} ... FAILED: {}", sentence.as_str());
        }
    }
    world::reset();
    victim::reset();
}

/// Prints the end and stops the machine with the verdict.
pub fn done() -> ! {
    root_harness::end(FAILED.load(Ordering::Relaxed) == 0)
}
