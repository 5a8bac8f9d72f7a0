//! What the first processor asks of the others, by their inboxes
//! (docs/decisions/0049-an-inbox-per-processor.md): to answer, and to look at themselves when the
//! checker stops the machine.
//!
//! Only the first one asks, for one thing at a time, and waits for the answer, but not for ever.

use core::fmt::Arguments;
use core::sync::atomic::Ordering;

use super::apic::{self, Message};
use super::processors::{PATIENCE_US, Slot, started, state, wait};
use super::vectors;
use crate::between::inbox::Owner;

/// What the first processor asks of another; requests have numbers from 2 on.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Errand {
    /// Nothing but an answer.
    Hello = 2,
    /// To look whether it is as the kernel has set it up.
    Check = 3,
}

/// Asks a processor for `errand`; whether it has been done. Only the first processor asks, for
/// one thing at a time, and waits.
pub(super) fn ask(slot: &Slot, errand: Errand) -> bool {
    let before = slot.done.load(Ordering::Acquire);
    let sent = match slot.inbox.push(errand as u64, &slot.errand) {
        Owner::Looks => true,
        Owner::IsAway => {
            let interrupt = Message::Interrupt(vectors::HELLO);
            apic::send(slot.apic.load(Ordering::Relaxed), interrupt)
        }
    };
    let answers = sent && wait(PATIENCE_US, || slot.done.load(Ordering::Acquire) != before);
    if !answers {
        // The request is still there: a second one would break the list.
        slot.state.store(state::LOST, Ordering::Relaxed);
    }
    answers
}

/// Lets every other processor look at itself; says to `note` which of them found something (and
/// has said what), or said nothing.
pub fn check_others(note: &mut dyn FnMut(Arguments<'_>)) {
    for (number, slot) in started() {
        if slot.state.load(Ordering::Relaxed) == state::LOST || !ask(slot, Errand::Check) {
            note(format_args!("processor {number} does not answer"));
            continue;
        }
        let count = slot.violations.load(Ordering::Relaxed);
        if count != 0 {
            note(format_args!("processor {number} is not as the kernel has set it up: {count}"));
        }
    }
}
