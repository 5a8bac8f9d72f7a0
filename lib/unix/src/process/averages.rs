//! Load averages: how many threads had something to do, over the last minute, five and fifteen, as Linux counts
//! them: a sample each five seconds, of which older ones count less and less.
//!
//! How many they are changes at events only. So nobody has to be woken for a sample: whoever looks before an event
//! is worked on takes all that have become due since, which were alike.

use core::cell::Cell;

/// Time between two samples.
const PERIOD_NS: u64 = 5_000_000_000;
/// Bits behind the point of an average.
pub const BITS: u32 = 11;
/// A load of one.
pub const ONE: u64 = 1 << BITS;
/// What is left of an average after a period: e to the power of -5 s through its time.
const LEFT: [u64; 3] = [1884, 2014, 2037];

/// The averages, from a time on.
pub struct Averages {
    next_ns: Cell<u64>,
    all: Cell<[u64; 3]>,
}

impl Averages {
    /// From `now_ns` on.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self { next_ns: Cell::new(now_ns + PERIOD_NS), all: Cell::default() }
    }

    /// They, in units of 1/[`ONE`].
    #[must_use]
    pub fn get(&self) -> [u64; 3] {
        self.all.get()
    }

    /// Whether a sample is due.
    #[inline]
    #[must_use]
    pub fn are_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns.get()
    }

    /// Takes the samples that are due: so many threads had something to do at each.
    pub fn sample(&self, now_ns: u64, load: u32) {
        let Some(late_ns) = now_ns.checked_sub(self.next_ns.get()) else { return };
        let periods = late_ns / PERIOD_NS + 1;
        self.next_ns.set(self.next_ns.get().saturating_add(periods.saturating_mul(PERIOD_NS)));
        let (mut all, load) = (self.all.get(), u64::from(load) * ONE);
        for (average, left) in all.iter_mut().zip(LEFT) {
            let left = power(left, periods);
            // Towards the load, so that it is reached.
            let up = if load >= *average { ONE - 1 } else { 0 };
            *average = (*average * left + load * (ONE - left) + up) / ONE;
        }
        self.all.set(all);
    }
}

/// `base`, in units of 1/[`ONE`], to this power.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let times = |one: u64, other: u64| (one * other + ONE / 2) / ONE;
    let mut product = ONE;
    while exponent != 0 {
        if exponent & 1 != 0 {
            product = times(product, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hundredths(averages: &Averages) -> [u64; 3] {
        averages.get().map(|average| (average * 100 + ONE / 2) / ONE)
    }

    #[test]
    fn a_load_is_approached_and_forgotten_by_powers_of_e() {
        let averages = Averages::new(7);
        averages.sample(6, 9);
        averages.sample(7 + PERIOD_NS - 1, 9);
        assert_eq!(averages.get(), [0; 3]);
        for period in 1..=12 {
            averages.sample(7 + period * PERIOD_NS + period, 2);
        }
        // 2 (1 - 1/e), and so on.
        let [one, five, fifteen] = hundredths(&averages);
        assert!((126..=127).contains(&one) && (36..=37).contains(&five), "{one} {five}");
        assert!((13..=14).contains(&fifteen), "{fifteen}");
        averages.sample(7 + 72 * PERIOD_NS, 0);
        let [one, five, fifteen] = hundredths(&averages);
        assert!(one <= 1 && (13..=14).contains(&five) && (9..=10).contains(&fifteen));
    }

    #[test]
    fn many_periods_at_once_are_as_many_periods() {
        let (together, apart) = (Averages::new(0), Averages::new(0));
        for (periods, load) in [(3, 5), (100, 1), (7, 0), (1, 40), (1000, 2)] {
            let end = |averages: &Averages| averages.next_ns.get() + (periods - 1) * PERIOD_NS;
            together.sample(end(&together), load);
            for _ in 0..periods {
                apart.sample(apart.next_ns.get(), load);
            }
            for (one, other) in together.get().into_iter().zip(apart.get()) {
                assert!(one.abs_diff(other) <= ONE / 50, "{one} {other}");
            }
        }
        together.sample(u64::MAX, 3);
        assert_eq!(together.get(), [3 * ONE; 3]);
    }
}
