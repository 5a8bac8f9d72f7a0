//! The system clock: microseconds since power-on, from the processor's time
//! stamp counter.
//!
//! One multiplier converts ticks to microseconds here and in the user page, so
//! that the kernel and SystemClock never disagree. [`start`] is called once at
//! boot; everything else only reads.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch;

/// Microseconds per second.
const US_PER_S: u64 = 1_000_000;

/// Time between two ticks of the timer, µs.
pub const TICK_US: u64 = 1_000;

/// The user data page: read by the SystemClock stub, written by the kernel.
#[repr(C, align(4096))]
pub struct ClockPage {
    /// Microseconds per tick, times 2^64.
    pub multiplier: AtomicU64,
    /// Added to the converted count, microseconds.
    pub offset_us: AtomicU64,
    /// Ticks per second.
    pub frequency_hz: AtomicU64,
    unused: [u64; 509],
}

const _: () = assert!(size_of::<ClockPage>() == 4096);

impl ClockPage {
    /// A clock that stands still.
    #[must_use]
    pub const fn new() -> Self {
        let [multiplier, offset_us, frequency_hz] = [const { AtomicU64::new(0) }; 3];
        Self { multiplier, offset_us, frequency_hz, unused: [0; 509] }
    }
}

impl Default for ClockPage {
    fn default() -> Self {
        Self::new()
    }
}

/// The page that every space sees at [`abi::layout::USER_DATA`].
#[cfg(target_os = "none")]
pub static PAGE: ClockPage = ClockPage::new();
#[cfg(not(target_os = "none"))]
pub use super::host::console::PAGE;

/// The multiplier for a counter of `frequency_hz` > 1 MHz: rounded up, so that a
/// whole number of microseconds never reads as one less.
#[must_use]
pub const fn multiplier(frequency_hz: u64) -> u64 {
    ((US_PER_S as u128) << 64).div_ceil(frequency_hz as u128) as u64
}

/// Converts ticks to microseconds.
#[must_use]
pub const fn ticks_to_us(ticks: u64, multiplier: u64) -> u64 {
    ((ticks as u128 * multiplier as u128) >> 64) as u64
}

/// Sets the clock going with a counter of `frequency_hz` (more than 1 MHz).
pub fn start(frequency_hz: u64) {
    PAGE.frequency_hz.store(frequency_hz, Ordering::Relaxed);
    PAGE.multiplier.store(multiplier(frequency_hz), Ordering::Relaxed);
}

/// Microseconds since power-on.
#[must_use]
pub fn now_us() -> u64 {
    let ticks = ticks_to_us(arch::ticks(), PAGE.multiplier.load(Ordering::Relaxed));
    ticks.wrapping_add(PAGE.offset_us.load(Ordering::Relaxed))
}

/// Ticks of the counter per second; 0 before [`start`].
#[must_use]
pub fn frequency_hz() -> u64 {
    PAGE.frequency_hz.load(Ordering::Relaxed)
}

/// Ticks in `us` microseconds, rounded up.
#[must_use]
pub fn us_to_ticks(us: u64) -> u64 {
    let ticks = (u128::from(us) * u128::from(frequency_hz())).div_ceil(u128::from(US_PER_S));
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// By how many ticks another processor's counter is off that showed `theirs` between `asked` and
/// `answered`, by this one's: 0 if it lies between them.
#[must_use]
pub const fn disagreement(asked: u64, theirs: u64, answered: u64) -> i64 {
    let (early, late) = (asked.saturating_sub(theirs), theirs.saturating_sub(answered));
    let off = if early > 0 { early } else { late };
    let off = if off < i64::MAX as u64 { off as i64 } else { i64::MAX };
    if early > 0 { -off } else { off }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_disagree_by_what_lies_outside() {
        for (theirs, off) in [(100, 0), (150, 0), (200, 0), (99, -1), (203, 3), (0, -100)] {
            assert_eq!(disagreement(100, theirs, 200), off);
        }
        assert_eq!(disagreement(u64::MAX - 1, u64::MAX, u64::MAX), 0);
        assert_eq!(disagreement(0, u64::MAX, 1), i64::MAX, "the sign is kept");
    }

    #[test]
    fn whole_microseconds_are_exact() {
        for frequency_hz in [1_000_000_000, 2_399_999_000, 3_333_333_333, 5_000_000_000] {
            let multiplier = multiplier(frequency_hz);
            for seconds in [0, 1, 59, 86_400, 31_536_000] {
                assert_eq!(ticks_to_us(seconds * frequency_hz, multiplier), seconds * US_PER_S);
            }
        }
    }

    #[test]
    fn drift_stays_below_a_microsecond_in_a_year() {
        let (frequency_hz, year_s) = (2_999_999_999_u64, 31_536_000);
        let ticks = frequency_hz * year_s + 12_345;
        let exact = (u128::from(ticks) * 1_000_000 / u128::from(frequency_hz)) as u64;
        assert!(ticks_to_us(ticks, multiplier(frequency_hz)) - exact <= 1);
    }
}
