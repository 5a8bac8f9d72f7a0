//! Time: the time stamp counter scaled to nanoseconds, and the date at boot.

use runtime::{clock, root};

/// The CMOS clock's ports.
const CMOS: u16 = 0x70;
const NS: u64 = 1_000_000_000;

/// A clock.
pub struct Clock {
    /// Time stamp at which nanosecond 0 was.
    start: u64,
    /// Nanoseconds per tick, times 2^32.
    scale: u64,
    /// Nanoseconds from 1970 to `start`.
    boot: u64,
}

impl Clock {
    /// Starts from the kernel's clock and the machine's date.
    pub fn new() -> Self {
        let scale = clock::nanoseconds_per_tick();
        let start = clock::ticks() - ns_to_ticks(clock::now_us() * 1000, scale);
        let mut clock = Self { start, scale, boot: 0 };
        clock.boot = date().unwrap_or(0) * NS - clock.now_ns().min(NS);
        clock
    }

    /// Nanoseconds since boot.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.ns(clock::ticks().wrapping_sub(self.start))
    }

    /// Ticks as nanoseconds.
    #[inline(always)]
    pub fn ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * u128::from(self.scale) >> 32) as u64
    }

    /// Ticks in a time.
    pub fn ticks_in(&self, ns: u64) -> u64 {
        ns_to_ticks(ns, self.scale)
    }

    /// For the vDSO.
    pub fn scale(&self) -> (u64, u64) {
        (self.start, self.scale)
    }

    /// Nanoseconds from 1970 to boot.
    pub fn boot_ns(&self) -> u64 {
        self.boot
    }
}

fn ns_to_ticks(ns: u64, scale: u64) -> u64 {
    ((u128::from(ns) << 32) / u128::from(scale.max(1))) as u64
}

/// Seconds since 1970 by the CMOS clock, if this task may read it.
fn date() -> Option<u64> {
    let ports = root::ports(CMOS, 2).ok()?;
    let read = |index: u8| {
        ports.write8(0, index);
        ports.read8(1)
    };
    // An update in progress may tear the fields: until two readings agree.
    let fields = [0_u8, 2, 4, 7, 8, 9, 0x32];
    let mut last = fields.map(read);
    for _ in 0..100 {
        while read(0x0A) & 0x80 != 0 {}
        let now = fields.map(read);
        if now == last {
            break;
        }
        last = now;
    }
    let binary = read(0x0B) & 4 != 0;
    let [second, minute, hour, day, month, year, century] =
        last.map(|field| u64::from(if binary { field } else { (field >> 4) * 10 + (field & 15) }));
    let century = if (19..=21).contains(&century) { century } else { 20 };
    Some(((days(century * 100 + year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from 1970-01-01 (Gregorian; year ≥ 1970).
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years that begin in March end with the leap day.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap = year / 4 - year / 100 + year / 400;
    year * 365 + leap + (month * 153 + 2) / 5 + day - 1 - 719_468
}
