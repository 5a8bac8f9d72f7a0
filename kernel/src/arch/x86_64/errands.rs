//! What the first processor asks of the others
//! (docs/decisions/0131-what-is-seldom-done-for-others-is-here-once.md): to answer, and to look at themselves when the
//! checker stops the machine.
//!
//! It asks one of them for one thing at a time, and waits for the answer, but not for ever.

use core::fmt::Arguments;
use core::sync::atomic::Ordering;

use super::slots::{PATIENCE_US, interrupt, slot, started, wait};

/// The bits of the word that say what; the others number the errands.
pub const WHAT: u32 = 3;

/// What the first processor asks of another.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Errand {
    /// Nothing but an answer.
    Hello = 1,
    /// To look whether it is as the kernel has set it up.
    Check = 2,
}

/// Asks processor `number` for `errand`; whether it has been done. Only the first processor asks, for
/// one thing at a time, and waits.
pub(super) fn ask(number: u32, errand: Errand) -> bool {
    let slot = slot(number);
    // No two are the same word: whoever answers late answers what it was asked.
    let latest = match slot.errand.load(Ordering::Relaxed) {
        0 => slot.done.load(Ordering::Relaxed),
        late => late,
    };
    let asked = (latest & !WHAT).wrapping_add(WHAT + 1) | errand as u32;
    slot.errand.store(asked, Ordering::Release);
    interrupt(number);
    wait(PATIENCE_US, &|| slot.done.load(Ordering::Acquire) == asked)
}

/// Lets every other processor look at itself; says to `note` which of them found something (and
/// has said what), or said nothing.
pub fn check_others(note: &mut dyn FnMut(Arguments<'_>)) {
    for (number, slot) in started() {
        if !ask(number, Errand::Check) {
            note(format_args!("processor {number} does not answer"));
            continue;
        }
        let count = slot.violations.load(Ordering::Relaxed);
        if count != 0 {
            note(format_args!("processor {number} is not as the kernel has set it up: {count}"));
        }
    }
}
