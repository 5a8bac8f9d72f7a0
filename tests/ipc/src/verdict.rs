//! Verdicts: a test passes, or complains in a sentence.

use core::fmt::{self, Write};

use crate::stage::Stage;

/// Why a test failed.
#[derive(Clone, Copy)]
pub struct Complaint {
    text: [u8; 300],
    len: usize,
}

/// What a test returns.
pub type Verdict = Result<(), Complaint>;

/// A test and its name.
pub type Test = (&'static str, fn(&Stage) -> Verdict);

impl Complaint {
    /// A complaint with this text (cut at 300 bytes).
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut complaint = Self { text: [0; 300], len: 0 };
        let _ = complaint.write_fmt(text);
        complaint
    }
}

impl Write for Complaint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.len() - self.len;
        let bytes = &text.as_bytes()[..text.len().min(room)];
        self.text[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(&self.text[..self.len]).unwrap_or("(not text)"))
    }
}

/// Returns a complaint unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err($crate::verdict::Complaint::new(format_args!("{} (line {})", format_args!($($text)*), line!())));
        }
    };
}

/// Returns a complaint unless both words are the same.
#[macro_export]
macro_rules! same {
    ($what:expr, $is:expr, $expected:expr) => {{
        let (is, expected): (u64, u64) = ($is, $expected);
        $crate::ensure!(is == expected, "{} is {is:#x}, expected {expected:#x}", $what);
    }};
}
