//! `adjtimex`: what programs that discipline the clock set is kept and told. The clock goes as
//! the machine's does; only a step (`ADJ_SETOFFSET`) has an effect.

use linux_raw_sys::general as l;

use super::clock::{real_time_ns, set_real_time};
use super::types::SECOND_NS;
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;

const KEPT: &str = "frequency and slewing are kept and told, without effect";

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_adjtimex, "adjtimex", adjtimex, KEPT),
    partial(l::__NR_clock_adjtime, "clock_adjtime", clock_adjtime, KEPT),
];

/// Bits of `modes`.
const OFFSET: u32 = 0x1;
const FREQUENCY: u32 = 0x2;
const MAX_ERROR: u32 = 0x4;
const EST_ERROR: u32 = 0x8;
const STATUS: u32 = 0x10;
const CONSTANT: u32 = 0x20;
const TAI: u32 = 0x80;
const STEP: u32 = 0x100;
const MICRO: u32 = 0x1000;
const NANO: u32 = 0x2000;
const TICK: u32 = 0x4000;
/// The old way, of `adjtime`: with [`OFFSET`], and to look only with [`NANO`].
const OLD: u32 = 0x8000;

/// Bits of the status: steered, nobody has set the clock, in nanoseconds, not to be written.
const PLL: u64 = 0x1;
const UNSYNCHRONIZED: u64 = 0x40;
const STATUS_NANO: u64 = 0x2000;
const READ_ONLY: u64 = 0xFF00;
/// Highest frequency, in its unit; least and most microseconds of a tick; highest constant.
const FREQUENCY_MAX: i64 = 32_768_000;
const TICKS: core::ops::RangeInclusive<i64> = 9_000..=11_000;
const CONSTANT_MAX: i64 = 10;
/// Results: synchronized, not.
const OK: u64 = 0;
const ERROR: u64 = 5;

/// Words of `struct timex`.
const WORDS: usize = 26;
/// Places of what it has, in words.
const AT_OFFSET: usize = 1;
const AT_FREQUENCY: usize = 2;
const AT_MAX_ERROR: usize = 3;
const AT_EST_ERROR: usize = 4;
const AT_STATUS: usize = 5;
const AT_CONSTANT: usize = 6;
const AT_PRECISION: usize = 7;
const AT_TOLERANCE: usize = 8;
const AT_SECONDS: usize = 9;
const AT_PART: usize = 10;
const AT_TICK: usize = 11;
const AT_TAI: usize = 20;

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment {
    offset: i64,
    old_offset: i64,
    frequency: i64,
    max_error: i64,
    est_error: i64,
    status: u64,
    constant: i64,
    tick: i64,
    tai: i64,
}

impl Default for Adjustment {
    /// Of a clock that nobody steers.
    fn default() -> Self {
        Self {
            offset: 0,
            old_offset: 0,
            frequency: 0,
            max_error: 16_000_000,
            est_error: 16_000_000,
            status: UNSYNCHRONIZED,
            constant: 2,
            tick: 10_000,
            tai: 0,
        }
    }
}

fn clock_adjtime(cx: &Cx) -> Answer {
    match cx.uint(0) {
        l::CLOCK_REALTIME => adjust(cx, cx.arg(1)),
        other if other <= l::CLOCK_TAI => Err(Errno::EOPNOTSUPP.into()),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn adjtimex(cx: &Cx) -> Answer {
    adjust(cx, cx.arg(0))
}

fn adjust(cx: &Cx, at: u64) -> Answer {
    let mut timex: [u64; WORDS] = cx.user().read(at)?;
    let modes = timex[0] as u32;
    check(cx, modes, &timex)?;
    let mut now = cx.unix.timers.adjustment.get();
    let mut told = now.offset;
    if modes & OLD != 0 {
        told = now.old_offset;
        if modes & NANO == 0 {
            now.old_offset = timex[AT_OFFSET] as i64;
        }
    } else {
        now.change(modes, &timex);
        told = if modes & OFFSET != 0 { now.offset } else { told };
    }
    if modes & STEP != 0 && modes & OLD == 0 {
        let part = if modes & NANO != 0 { 1 } else { 1_000 };
        let by_ns = (timex[AT_SECONDS].wrapping_mul(SECOND_NS)).wrapping_add(timex[AT_PART] * part);
        set_real_time(cx, real_time_ns(cx.unix).wrapping_add(by_ns))?;
    }
    cx.unix.timers.adjustment.set(now);
    let real_ns = real_time_ns(cx.unix);
    let part = if now.status & STATUS_NANO != 0 { 1 } else { 1_000 };
    timex = [0; WORDS];
    timex[0] = modes.into();
    timex[AT_OFFSET] = told as u64;
    timex[AT_FREQUENCY] = now.frequency as u64;
    timex[AT_MAX_ERROR] = now.max_error as u64;
    timex[AT_EST_ERROR] = now.est_error as u64;
    timex[AT_STATUS] = now.status;
    timex[AT_CONSTANT] = now.constant as u64;
    timex[AT_PRECISION] = 1;
    timex[AT_TOLERANCE] = FREQUENCY_MAX as u64;
    timex[AT_SECONDS] = real_ns / SECOND_NS;
    timex[AT_PART] = real_ns % SECOND_NS / part;
    timex[AT_TICK] = now.tick as u64;
    timex[AT_TAI] = now.tai as u32 as u64;
    cx.user().write(at, &timex)?;
    Ok(if now.status & UNSYNCHRONIZED != 0 { ERROR } else { OK })
}

/// Whether the caller may do this, and it makes sense.
fn check(cx: &Cx, modes: u32, timex: &[u64; WORDS]) -> Result<(), Errno> {
    let may = cx.process.credentials.borrow().may(l::CAP_SYS_TIME);
    if modes & OLD != 0 {
        return match () {
            () if modes & OFFSET == 0 => Err(Errno::EINVAL),
            () if modes & NANO == 0 && !may => Err(Errno::EPERM),
            () => Ok(()),
        };
    }
    if modes != 0 && !may {
        return Err(Errno::EPERM);
    }
    let parts = if modes & NANO != 0 { SECOND_NS } else { SECOND_NS / 1_000 };
    let bad_tick = modes & TICK != 0 && !TICKS.contains(&(timex[AT_TICK] as i64));
    let bad_step = modes & STEP != 0 && timex[AT_PART] >= parts;
    if bad_tick || bad_step { Err(Errno::EINVAL) } else { Ok(()) }
}

impl Adjustment {
    fn change(&mut self, modes: u32, timex: &[u64; WORDS]) {
        let value = |at: usize| timex[at] as i64;
        if modes & STATUS != 0 {
            let wanted = u64::from(timex[AT_STATUS] as u32);
            self.status = self.status & READ_ONLY | wanted & !READ_ONLY;
        }
        if modes & NANO != 0 {
            self.status |= STATUS_NANO;
        }
        if modes & MICRO != 0 {
            self.status &= !STATUS_NANO;
        }
        if modes & FREQUENCY != 0 {
            self.frequency = value(AT_FREQUENCY).clamp(-FREQUENCY_MAX, FREQUENCY_MAX);
        }
        if modes & MAX_ERROR != 0 {
            self.max_error = value(AT_MAX_ERROR);
        }
        if modes & EST_ERROR != 0 {
            self.est_error = value(AT_EST_ERROR);
        }
        if modes & CONSTANT != 0 {
            let more = if self.status & STATUS_NANO == 0 { 4 } else { 0 };
            self.constant = value(AT_CONSTANT).clamp(0, CONSTANT_MAX).saturating_add(more);
            self.constant = self.constant.min(CONSTANT_MAX);
        }
        if modes & TAI != 0 && value(AT_CONSTANT) >= 0 {
            self.tai = value(AT_CONSTANT);
        }
        if modes & OFFSET != 0 && self.status & PLL != 0 {
            self.offset = value(AT_OFFSET).clamp(-500_000, 500_000);
        }
        if modes & TICK != 0 {
            self.tick = value(AT_TICK);
        }
    }
}
