//! The tick's source: the local APIC's timer, or channel 0 of the 8254 without one.
//!
//! The local timer counts with a clock of its own, whose rate nothing tells reliably: it is
//! counted against the time stamp counter, whose rate is known.

use super::cpu::ticks;
use super::{apic, lines, pic, timer};
use crate::clock;

/// A measurement takes this part of a second.
const PART: u64 = 500;
/// Ticks per second.
const RATE: u64 = 1_000_000 / timer::TICK_US;

/// Starts the periodic tick.
pub fn start() {
    if lines::has_apics() {
        timer::stop();
        apic::start_ticking(count());
    } else {
        timer::start();
        pic::unmask(timer::LINE);
    }
}

/// What the local timer counts between two ticks.
fn count() -> u32 {
    let counted = timer::quickest(|| Some(measure())).unwrap_or(0);
    u32::try_from(counted * PART / RATE).unwrap_or(u32::MAX).max(1)
}

/// What it counts in a part of a second.
fn measure() -> u64 {
    let duration = clock::frequency_hz() / PART;
    apic::start_counting(u32::MAX);
    let begin = ticks();
    while ticks() - begin < duration {}
    let left = apic::counting();
    // The loop may have been held up, and the counter with it.
    let took = ticks() - begin;
    let counted = u64::from(u32::MAX - left);
    (u128::from(counted) * u128::from(duration) / u128::from(took.max(1))) as u64
}
