//! What the first processor asks of the others
//! (docs/decisions/0131-what-is-seldom-done-for-others-is-here-once.md): to answer, and to look at themselves when the
//! checker stops the machine.
//!
//! It asks one of them for one thing at a time, and waits for the answer, but not for ever. The words are
//! `between::errand`.

use core::fmt::Arguments;
use core::sync::atomic::Ordering;

use super::slots::{PATIENCE_US, interrupt, slot, started, wait};
use crate::between::errand::Errand;

/// Asks processor `number` for `errand`; whether it has been done. Only the first processor asks, for
/// one thing at a time, and waits.
pub(super) fn ask(number: u32, errand: Errand) -> bool {
    let errands = &slot(number).errands;
    let asked = errands.ask(errand);
    interrupt(number);
    wait(PATIENCE_US, &|| errands.is_done(asked))
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
