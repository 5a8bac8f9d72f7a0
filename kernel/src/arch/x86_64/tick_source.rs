//! The tick's source: the local APIC's timer, or channel 0 of the 8254 without one.
//!
//! The local timer counts with a clock of its own, whose rate nothing tells reliably: it is
//! counted against the time stamp counter, whose rate is known.

use core::sync::atomic::{AtomicU32, Ordering};

use super::cpu::ticks;
use super::timer::Span;
use super::{apic, lines, pic, timer};
use crate::arch::clock;

/// A measurement takes this part of a second.
const PART: u64 = 200;
/// Ticks per second.
const RATE: u64 = 1_000_000 / clock::TICK_US;
/// The local timer's counts whose length is measured, log2.
const COUNTS: u32 = 20;
/// Where nothing can be measured: the emulator's, and slow rather than fast elsewhere.
const FALLBACK: u32 = 1_000_000;

/// Soonest interrupt between two ticks, µs.
const SOONEST_US: u64 = 10;
/// How much the local timer may be ahead of the time stamp counter at its end, µs.
const AHEAD_US: u64 = 1;

/// What the local timer counts between two ticks; 0 without one.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Starts the periodic tick.
pub fn start() {
    if lines::has_apics() {
        timer::stop();
        let count = count();
        COUNT.store(count, Ordering::Relaxed);
        apic::start_ticking(count);
    } else {
        timer::start();
        pic::unmask(timer::LINE);
    }
}

/// Lets the timer interrupt at clock value `at_us`, or soon after it, instead of at the next tick, which must come
/// later; false if it cannot. There is no tick then until [`tick_again`]. (Periods as short as this are not kept by
/// every hypervisor, so it is no period.)
#[must_use]
pub fn interrupt_at(at_us: u64) -> bool {
    let in_us = at_us.saturating_sub(clock::now_us()) + AHEAD_US;
    let count = u64::from(COUNT.load(Ordering::Relaxed)) * in_us.clamp(SOONEST_US, clock::TICK_US);
    let count = (count / clock::TICK_US) as u32;
    if count != 0 {
        apic::interrupt_once(count);
    }
    count != 0
}

/// The timer has interrupted, and the next tick comes when one is over from now.
pub fn tick_again() {
    apic::start_ticking(COUNT.load(Ordering::Relaxed));
}

/// What the local timer counts between two ticks.
fn count() -> u32 {
    let Some(length) = timer::narrowed(measure) else {
        crate::kprintln!("baton: the local timer's rate cannot be measured; ticks may be rare");
        return FALLBACK;
    };
    let counts = u128::from(clock::frequency_hz()) << COUNTS;
    let hz = u64::try_from(counts / u128::from(length.max(1))).unwrap_or(u64::MAX);
    let rounded = timer::rounded(hz);
    let is_near = hz.abs_diff(rounded) <= hz / timer::GOOD;
    let count = if is_near { rounded } else { hz } / RATE;
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// How many ticks of the time stamp counter 2^[`COUNTS`] counts last.
fn measure() -> Option<Span> {
    let duration = clock::frequency_hz() / PART;
    let before = ticks();
    apic::start_counting(u32::MAX);
    let begin = ticks();
    while ticks() - begin < duration {}
    let end = ticks();
    let left = apic::counting();
    let after = ticks();
    let counted = u128::from(u32::MAX - left);
    let length = |ticks: u64, counted: u128| {
        u64::try_from((u128::from(ticks) << COUNTS).checked_div(counted)?).ok()
    };
    // By a count at each end, at the timer's own edges.
    let (least, most) = (length(end - begin, counted + 1)?, counted.saturating_sub(1));
    Some(Span { least, most: length(after - before, most)? })
}
