//! Known loops and a known set of lines: what the instrument has to get right
//! before anything that it says is believed. The host tool knows the same numbers
//! from the rows' names.

use crate::marks::{copy, sample, spin, walk};
use crate::{Samples, row};

const LINES: usize = 192;

#[repr(align(4096))]
struct Page([u64; LINES * 8]);

static FIELD: Page = Page([1; LINES * 8]);

/// Prints the rows `check/...`; each names the expected count in its parameters.
pub fn run() {
    // No page fault later: every page of the field is touched once.
    let touched: u64 = core::hint::black_box(&FIELD).0.iter().step_by(512).sum();
    assert!(touched == (LINES as u64 * 8).div_ceil(512));
    for rounds in [1, 2, 1000, 4321] {
        let samples = Samples::start();
        spin(rounds);
        row!(samples, "check/loop instructions={}", 2 * rounds);
    }
    for lines in [1, 63, 64, 65, LINES] {
        let samples = Samples::start();
        walk(&FIELD.0, lines);
        row!(
            samples,
            "check/lines instructions={} lines={lines} pages={}",
            4 * lines,
            lines.div_ceil(64)
        );
    }
    for words in [1, 8, 57] {
        let mut to = [0; 64];
        let samples = Samples::start();
        copy(&mut to[..words], &FIELD.0);
        row!(samples, "check/copy instructions={}", words + 1);
    }
    let samples = Samples::start();
    sample(|| ());
    row!(samples, "check/nothing instructions=0");
}
