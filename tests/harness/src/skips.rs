//! Tests that a machine cannot pass, and why: a raw file of the boot image, a line `NAME: reason` for each.
//! Empty lines and those that begin with `#` say nothing.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::file::File;

/// Longest list, bytes.
const ROOM: usize = 2048;
/// What the list begins with; another file is somebody else's.
const FIRST_LINE: &str = "# skips";

static TEXT: [AtomicU8; ROOM] = [const { AtomicU8::new(0) }; ROOM];
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Reads the list, if there is one.
pub(crate) fn read() {
    let Some(file) = File::first() else { return };
    let is_list = file.bytes().zip(FIRST_LINE.bytes()).all(|(is, should)| is == should);
    for byte in file.bytes().filter(|byte| is_list && *byte != 0) {
        let at = LEN.load(Ordering::Relaxed);
        let Some(place) = TEXT.get(at) else { break };
        place.store(byte, Ordering::Relaxed);
        LEN.store(at + 1, Ordering::Relaxed);
    }
}

/// Whether the test `name` is in the list.
#[must_use]
pub fn is_skipped(name: &str) -> bool {
    let text = &TEXT[..LEN.load(Ordering::Relaxed)];
    let byte = |at: &AtomicU8| at.load(Ordering::Relaxed);
    text.split(|at| byte(at) == b'\n').any(|line| {
        let word = || line.iter().map(byte).take_while(|byte| *byte != b':');
        word().eq(name.bytes())
    })
}
