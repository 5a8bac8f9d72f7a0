//! Requests of the root task's interfaces that are none: of wrong length, with lengths that lie,
//! with bytes that are no text. Each is answered with an error, and has no other effect.

use alloc::format;

use abi::{ThreadId, Time, Timeouts};
use proto::root as op;
use runtime::service::{BIND, label};
use runtime::{Msg, ipc};

use crate::Outcome;

/// How long an answer may take, µs.
const PATIENCE_US: u64 = 200_000;

/// A function's label, the words of a request, and what they have to be answered with.
type Case = (&'static str, u64, &'static [u64], u64);

const CASES: [Case; 13] = [
    ("no words at all", op::KILL, &[], label::MALFORMED),
    ("a length without a text", op::KILL, &[5], label::MALFORMED),
    ("a length of 2^64 - 1", op::RESTART, &[!0, 0x61], label::MALFORMED),
    ("a name longer than names are", op::START, &[17, 0, 0, 0], label::MALFORMED),
    ("a word too many", op::START, &[3, 0x61_6161, 0], label::MALFORMED),
    ("bytes that are no UTF-8", op::WAIT, &[2, 0xFFFE], label::MALFORMED),
    ("half a character", op::LOOKUP, &[1, 0xC3], label::MALFORMED),
    ("two words for one", op::DESCRIBE, &[0, 0], label::MALFORMED),
    ("one word for three", op::INSPECT, &[1], label::MALFORMED),
    ("a word for none", op::MEMORY_USE, &[1], label::MALFORMED),
    ("no code", op::HALT, &[], label::MALFORMED),
    ("no thread", op::CLIENT, &[], label::MALFORMED),
    ("a binding without a version", BIND, &[1], label::MALFORMED),
];

/// Sends each; and the root task goes on.
pub fn malformed() -> Outcome {
    let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
    for (what, function, words, expected) in CASES {
        let request = Msg::new(function).words(words);
        match ipc::call_within(ThreadId::ROOT, &request, patience) {
            Ok(answer) if answer.label() == expected && answer.tag.untyped() == 0 => {}
            Ok(answer) => return Err(format!("{what}: label {}", answer.label())),
            Err(error) => return Err(format!("{what}: no answer, {error:?}")),
        }
    }
    Ok(())
}
