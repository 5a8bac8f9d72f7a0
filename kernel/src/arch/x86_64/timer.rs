//! The 8254 interval timer: the kernel's tick on line 0, and the yardstick for
//! the time stamp counter.
//!
//! Channel 0 interrupts periodically; channel 2 (the loudspeaker's, with the
//! speaker off) measures the time stamp counter once at boot, unless CPUID knows
//! its frequency.

use super::cpu::{cpuid, in_byte, out_byte, ticks};

/// Input clock of the 8254, Hz (105/88 MHz).
const INPUT_HZ: u64 = 1_193_182;
/// Counts per tick of channel 0: the period nearest to a millisecond.
const TICK_COUNT: u16 = 1193;
/// Line of the tick.
pub const LINE: u8 = 0;
/// Period of the tick, microseconds (999.85, rounded).
pub const TICK_US: u64 = 1_000;
/// Counts of one measurement: 5 ms.
const MEASURE_COUNT: u16 = 5_966;
/// Measurements at most: a host with other work can disturb several in a row.
const MOST_RUNS: u32 = 20;
/// Two measurements agree when they differ by less than this part of them.
const AGREE_FRACTION: u64 = 500;
/// Polls after which a timer that does not count is given up.
const PATIENCE: u32 = 20_000_000;
/// Assumed when nothing can measure the counter, Hz.
const FALLBACK_HZ: u64 = 1_000_000_000;

const CHANNEL_0: u16 = 0x40;
const CHANNEL_2: u16 = 0x42;
const MODE: u16 = 0x43;
/// System control port: bit 0 gate of channel 2, bit 1 speaker, bit 5 output of channel 2.
const CONTROL: u16 = 0x61;

/// Stops channel 0, which firmware may have left counting: in mode 0 it waits for a count.
pub fn stop() {
    // SAFETY: the kernel owns the timer.
    unsafe { out_byte(MODE, 0x30) };
}

/// Starts the periodic tick; line 0 must still be unmasked at the controller.
pub fn start() {
    let [low, high] = TICK_COUNT.to_le_bytes();
    // SAFETY: the kernel owns the timer. Channel 0, both bytes, mode 3 (square wave): mode 2's
    // pulse of one count is so short that an emulator with a clock of its own can miss it.
    unsafe {
        out_byte(MODE, 0x36);
        out_byte(CHANNEL_0, low);
        out_byte(CHANNEL_0, high);
    }
}

/// Frequency of the time stamp counter, Hz: from CPUID, else measured.
#[must_use]
pub fn counter_hz() -> u64 {
    counter_hz_from_cpuid().or_else(measure).unwrap_or(FALLBACK_HZ)
}

/// What CPUID says: leaf 0x15 (crystal and ratio), else a hypervisor's leaf 0x4000_0010 (kHz).
fn counter_hz_from_cpuid() -> Option<u64> {
    let ratio = cpuid(0x15, 0);
    if ratio.eax != 0 && ratio.ebx != 0 && ratio.ecx != 0 {
        return plausible(u64::from(ratio.ecx) * u64::from(ratio.ebx) / u64::from(ratio.eax));
    }
    let hypervisor = cpuid(1, 0).ecx >> 31 != 0;
    if hypervisor { plausible(u64::from(cpuid(0x4000_0010, 0).eax) * 1_000) } else { None }
}

/// Counts ticks while channel 2 runs down; the quickest of some runs, since an
/// interruption (system management mode, a busy hypervisor) only ever lengthens one.
fn measure() -> Option<u64> {
    let counted = quickest(run_down)?;
    plausible(rounded(counted * INPUT_HZ / u64::from(MEASURE_COUNT)))
}

/// The least of the runs, which end when two agree with it.
pub(super) fn quickest(mut run: impl FnMut() -> Option<u64>) -> Option<u64> {
    let mut least = run()?;
    let mut agree = 1;
    for _ in 1..MOST_RUNS {
        let next = run()?;
        if least.abs_diff(next) <= least.min(next) / AGREE_FRACTION {
            agree += 1;
        } else if next < least {
            agree = 1;
        }
        least = least.min(next);
        if agree == 2 {
            break;
        }
    }
    Some(least)
}

fn run_down() -> Option<u64> {
    let [low, high] = MEASURE_COUNT.to_le_bytes();
    // SAFETY: the kernel owns timer and speaker. Channel 2, both bytes, mode 0:
    // the output rises when the count is through.
    unsafe {
        let control = in_byte(CONTROL) & !3;
        out_byte(CONTROL, control | 1);
        out_byte(MODE, 0xB0);
        out_byte(CHANNEL_2, low);
        out_byte(CHANNEL_2, high);
        let begin = ticks();
        for _ in 0..PATIENCE {
            if in_byte(CONTROL) & 0x20 != 0 {
                let end = ticks();
                out_byte(CONTROL, control);
                return Some(end - begin);
            }
        }
        out_byte(CONTROL, control);
    }
    None
}

/// The measurement's error is about 400 ppm (one poll of a port in 5 ms): a
/// frequency that lies that near to a multiple of 100 MHz, else of 1 MHz, is it.
const fn rounded(hz: u64) -> u64 {
    const COARSE: u64 = 100_000_000;
    const FINE: u64 = 1_000_000;
    let tolerance = hz / 2_500;
    let coarse = (hz + COARSE / 2) / COARSE * COARSE;
    if hz.abs_diff(coarse) <= tolerance { coarse } else { (hz + FINE / 2) / FINE * FINE }
}

/// A counter below 10 MHz or above 100 GHz is a mistake.
fn plausible(hz: u64) -> Option<u64> {
    (10_000_000..100_000_000_000).contains(&hz).then_some(hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_absorbs_the_error_of_measurement_only() {
        assert_eq!(rounded(1_000_300_000), 1_000_000_000);
        assert_eq!(rounded(2_999_100_000), 3_000_000_000);
        assert_eq!(rounded(2_394_200_000), 2_394_000_000);
        assert_eq!(rounded(1_009_000_000), 1_009_000_000);
    }

    #[test]
    fn disturbed_measurements_are_repeated() {
        let of = |runs: &[u64]| {
            let mut left = runs.iter().copied();
            (quickest(|| left.next()), left.count())
        };
        assert_eq!(of(&[1000, 1001, 7]), (Some(1000), 1));
        assert_eq!(of(&[31_000, 15_000, 1001, 20_000, 1000, 7]), (Some(1000), 1));
        assert_eq!(of(&[1000, 31_000]), (None, 0));
        let mut runs = 0;
        let never_the_same = quickest(|| {
            runs += 1;
            Some(1_000_000 >> runs)
        });
        assert_eq!((never_the_same, runs), (Some(0), MOST_RUNS));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(plausible(0), None);
        assert_eq!(plausible(u64::MAX), None);
        assert_eq!(plausible(FALLBACK_HZ), Some(FALLBACK_HZ));
    }
}
