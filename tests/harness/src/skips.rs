//! What the first raw file of the boot image says, if it is a text: its first line tells for whom it is.
//!
//! `# skips` is for all: tests that a machine cannot pass, and why, a line `NAME: reason` for each.
//! Empty lines and those that begin with `#` say nothing.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::file::File;

/// Longest text, bytes.
const ROOM: usize = 2048;
/// What the list of skips begins with; another file is somebody else's.
const FIRST_LINE: &str = "# skips";

static TEXT: [AtomicU8; ROOM] = [const { AtomicU8::new(0) }; ROOM];
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Reads the file, if there is one.
pub(crate) fn read() {
    let Some(file) = File::first() else { return };
    for byte in file.bytes().filter(|byte| *byte != 0) {
        let at = LEN.load(Ordering::Relaxed);
        let Some(place) = TEXT.get(at) else { break };
        place.store(byte, Ordering::Relaxed);
        LEN.store(at + 1, Ordering::Relaxed);
    }
}

/// The file's bytes behind its first line, if that begins with `first_line`.
pub fn text(first_line: &str) -> impl Iterator<Item = u8> {
    let is_ours = bytes().take(first_line.len()).eq(first_line.bytes());
    bytes().filter(move |_| is_ours).skip_while(|byte| *byte != b'\n')
}

fn bytes() -> impl Iterator<Item = u8> {
    TEXT[..LEN.load(Ordering::Relaxed)].iter().map(|byte| byte.load(Ordering::Relaxed))
}

/// Whether the test `name` is in the list.
#[must_use]
pub fn is_skipped(name: &str) -> bool {
    let text = &TEXT[..LEN.load(Ordering::Relaxed)];
    let byte = |at: &AtomicU8| at.load(Ordering::Relaxed);
    let is_list = bytes().take(FIRST_LINE.len()).eq(FIRST_LINE.bytes());
    is_list
        && text.split(|at| byte(at) == b'\n').any(|line| {
            let word = || line.iter().map(byte).take_while(|byte| *byte != b':');
            word().eq(name.bytes())
        })
}
