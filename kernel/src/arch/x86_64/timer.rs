//! The 8254 interval timer: the kernel's tick on line 0, and the yardstick for
//! the time stamp counter.
//!
//! Channel 0 interrupts periodically; channel 2 (the loudspeaker's, with the
//! speaker off) measures the time stamp counter once at boot, unless CPUID knows
//! its frequency.

use super::cpu::{cpuid, in_byte, out_byte, ticks};

/// Input clock of the 8254, Hz (105/88 MHz).
const INPUT_HZ: u64 = 1_193_182;
/// Counts per tick of channel 0: the period nearest to [a millisecond](crate::arch::clock::TICK_US) (999.85 µs).
const TICK_COUNT: u16 = 1193;
/// Line of the tick.
pub const LINE: u8 = 0;
/// Counts of one measurement: 10 ms.
const MEASURE_COUNT: u16 = 11_932;
/// Counts of every second one, which fits into the turn that a busy host gives: 1 ms.
const SHORT_COUNT: u16 = 1_193;
/// Measurements at most: a host with other work can disturb many in a row.
const MOST_RUNS: usize = 40;
/// A measurement is good when it is known to this part of it,
pub(super) const GOOD: u64 = 2_500;
/// and can be used when it is known to this part.
const USABLE: u64 = 50;
/// How often all that is tried.
const TRIALS: u32 = 3;
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
    let measured = || (0..TRIALS).find_map(|_| measure());
    counter_hz_from_cpuid().or_else(measured).unwrap_or_else(|| {
        crate::kprintln!("baton: the clock's rate cannot be measured; it is taken for 1 GHz");
        FALLBACK_HZ
    })
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

/// Counts ticks while channel 2 runs down.
fn measure() -> Option<u64> {
    let mut is_short = true;
    let counted = narrowed(|| {
        is_short = !is_short;
        let count = if is_short { SHORT_COUNT } else { MEASURE_COUNT };
        Some(run_down(count)?.widened(u64::from(count)))
    })?;
    plausible(rounded(counted * INPUT_HZ / u64::from(MEASURE_COUNT)))
}

/// The least and the most that something can have lasted, in ticks of the counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub least: u64,
    pub most: u64,
}

impl Span {
    /// How much of it is not known.
    const fn doubt(self) -> u64 {
        self.most.saturating_sub(self.least)
    }

    /// Of `count` counts: widened by one at each end, since the timer takes its count at its
    /// own clock's edges, and as if it had been [`MEASURE_COUNT`].
    fn widened(self, count: u64) -> Self {
        let whole = |ticks: u64| ticks.saturating_mul(MEASURE_COUNT.into()) / count;
        let (least, most) = (self.least - self.least / count, self.most + self.most / count);
        Self { least: whole(least), most: whole(most).saturating_add(1) }
    }
}

/// How long something lasts each time, from runs that may be interrupted anywhere (system
/// management mode, a busy hypervisor): each is timed from outside and from inside, so that
/// an interruption makes it vague, and vague ones do not count. An emulator's own clock can
/// stand still for a while, too, which makes a run wrong: so two at least must agree, and more
/// than half of those that count. `None` if no run comes, or they never do.
pub(super) fn narrowed(mut run: impl FnMut() -> Option<Span>) -> Option<u64> {
    let mut runs = [Span { least: 0, most: 0 }; MOST_RUNS];
    let (mut count, mut answer) = (0, None);
    for _ in 0..MOST_RUNS {
        let next = run()?;
        if next.doubt() > next.most / USABLE {
            continue;
        }
        if let Some(slot) = runs.get_mut(count) {
            *slot = next;
            count += 1;
        }
        answer = agreed(runs.get(..count).unwrap_or_default());
        if answer.is_some_and(|span| span.doubt() <= span.most / GOOD) {
            break;
        }
    }
    answer.map(|span| span.least + span.doubt() / 2)
}

/// What most of `runs` have in common, if they are more than half and more than one.
fn agreed(runs: &[Span]) -> Option<Span> {
    let has = |span: &Span, point| span.least <= point && point <= span.most;
    let votes = |point| runs.iter().filter(|span| has(span, point)).count();
    let point = runs.iter().map(|span| span.least).max_by_key(|point| votes(*point))?;
    let mut common = Span { least: 0, most: u64::MAX };
    for span in runs.iter().filter(|span| has(span, point)) {
        common.least = common.least.max(span.least);
        common.most = common.most.min(span.most);
    }
    (votes(point) >= 2 && votes(point) > runs.len() / 2).then_some(common)
}

fn run_down(count: u16) -> Option<Span> {
    let [low, high] = count.to_le_bytes();
    // SAFETY: the kernel owns timer and speaker. Channel 2, both bytes, mode 0:
    // the output rises when the count is through.
    unsafe {
        let control = in_byte(CONTROL) & !3;
        out_byte(CONTROL, control | 1);
        out_byte(MODE, 0xB0);
        out_byte(CHANNEL_2, low);
        let before = ticks();
        out_byte(CHANNEL_2, high);
        let begin = ticks();
        let (mut end, mut span) = (begin, None);
        for _ in 0..PATIENCE {
            let is_through = in_byte(CONTROL) & 0x20 != 0;
            let now = ticks();
            if is_through {
                span = Some(Span { least: end - begin, most: now - before });
                break;
            }
            end = now;
        }
        out_byte(CONTROL, control);
        span
    }
}

/// The measurement's error is about 400 ppm at most where nothing disturbs ([`GOOD`]): a
/// frequency that lies that near to a multiple of 100 MHz, else of 1 MHz, is it.
pub(super) const fn rounded(hz: u64) -> u64 {
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
    use std::vec::Vec;

    #[test]
    fn rounding_absorbs_the_error_of_measurement_only() {
        assert_eq!(rounded(1_000_300_000), 1_000_000_000);
        assert_eq!(rounded(2_999_100_000), 3_000_000_000);
        assert_eq!(rounded(2_394_200_000), 2_394_000_000);
        assert_eq!(rounded(1_009_000_000), 1_009_000_000);
    }

    fn of(runs: &[(u64, u64)]) -> (Option<u64>, usize) {
        let mut left = runs.iter().map(|(least, most)| Span { least: *least, most: *most });
        (narrowed(|| left.next()), left.count())
    }

    #[test]
    fn disturbed_measurements_do_not_count() {
        let good = (10_000, 10_002);
        assert_eq!(of(&[good, good, (7, 7)]), (Some(10_001), 1), "two that agree are enough");
        assert_eq!(of(&[good, (10_000, 57_000)]), (None, 0), "one and a vague one are not");
        assert_eq!(of(&[(20_000, 20_001), good, good, (7, 7)]), (Some(10_001), 1), "most agree");
        assert_eq!(of(&[(20_000, 20_001), (20_000, 20_001)]).0, Some(20_000));
        assert_eq!(of(&[(10_000, 57_000); 50]), (None, 10), "it could be off by a factor");
        assert_eq!(of(&[(10_000, 10_100); 50]), (Some(10_050), 10), "it could be better");
        let halves: Vec<_> = (0..50).map(|at| [good, (20_000, 20_001)][at % 2]).collect();
        assert_eq!(of(&halves), (Some(10_001), 47), "two of three");
    }

    #[test]
    fn short_runs_say_the_same_less_exactly() {
        let long = Span { least: 26_000_000, most: 26_001_000 }.widened(MEASURE_COUNT.into());
        let short = Span { least: 2_599_600, most: 2_600_600 }.widened(SHORT_COUNT.into());
        assert!(short.least < long.least && long.most < short.most);
        assert!(short.most - short.least < short.most / USABLE / 4);
    }

    /// Interruptions anywhere, often in all runs: the answer is near the truth, or none.
    #[test]
    fn no_interruption_makes_it_wrong() {
        const TRUTH: u64 = 1_000_000;
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let mut answers = 0;
        for host in 0..2_000 {
            let busy = 1 + host % 8;
            let found = narrowed(|| {
                // At the start, while it counts, and before the end is seen.
                let mut held_up = || if below(8) < busy { below(3 * TRUTH) } else { below(100) };
                let (start, end) = (held_up(), held_up());
                let polled = TRUTH.saturating_sub(start + held_up());
                // Its own clock stands still, sometimes.
                let still = if below(8) == 0 { below(3 * TRUTH) } else { 0 };
                Some(Span { least: polled + still, most: start + TRUTH + end + still })
            });
            if let Some(found) = found {
                assert!(found.abs_diff(TRUTH) <= TRUTH / USABLE, "{found}");
                answers += 1;
            }
        }
        assert!(answers > 1_000, "{answers}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(plausible(0), None);
        assert_eq!(plausible(u64::MAX), None);
        assert_eq!(plausible(FALLBACK_HZ), Some(FALLBACK_HZ));
    }
}
