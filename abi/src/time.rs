//! Times (X.2 1.6): 16-bit periods and points in microseconds.

/// Period: `15` 0, `14..10` e, `9..0` m, value m·2^e µs.
/// Point: `15` 1, `14..11` e, `10` c, `9..0` m, relative to the clock's upper bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Time(pub u16);

/// What a [`Time`] means at a given clock value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// Wait for ever.
    Never,
    /// Do not wait at all.
    Now,
    /// Wait until the clock shows this many microseconds.
    At(u64),
}

impl Time {
    /// Infinite.
    pub const NEVER: Self = Self(0);
    /// Zero.
    pub const ZERO: Self = Self(0x0400);

    /// The shortest period of at least the precision of `us` microseconds (never if beyond range).
    #[must_use]
    pub const fn micros(us: u64) -> Self {
        if us == 0 {
            return Self::ZERO;
        }
        let mut e = 0;
        while e <= 31 && us >> e >= 1024 {
            e += 1;
        }
        if e > 31 { Self::NEVER } else { Self((e as u16) << 10 | (us >> e) as u16) }
    }

    /// The point nearest before clock value `at_us`, seen from `now_us`; `None` if too far.
    #[must_use]
    pub const fn point(now_us: u64, at_us: u64) -> Option<Self> {
        let mut e = 0;
        while e < 16 {
            let page = at_us >> (e + 10);
            let here = now_us >> (e + 10);
            if page == here || page == here + 1 {
                let carry = ((page ^ here) & 1) as u16;
                return Some(Self(1 << 15 | e << 11 | carry << 10 | (at_us >> e & 0x3FF) as u16));
            }
            e += 1;
        }
        None
    }

    /// Whether this is a point in time.
    #[must_use]
    pub const fn is_point(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Length of a period in microseconds; `None` for never and for points.
    #[must_use]
    pub const fn period_us(self) -> Option<u64> {
        if self.is_point() || self.0 == 0 {
            return None;
        }
        Some((self.0 as u64 & 0x3FF) << (self.0 >> 10 & 0x1F))
    }

    /// The deadline this time means when the clock shows `now_us`.
    #[must_use]
    pub const fn deadline(self, now_us: u64) -> Deadline {
        if self.is_point() {
            let e = (self.0 >> 11 & 0xF) as u32;
            let carry = (self.0 >> 10 & 1) as u64;
            let m = self.0 as u64 & 0x3FF;
            // X.2 flips the lowest bit of the upper part; a point just past a
            // boundary whose lowest bit is 1 would land one span early, so a set
            // carry means "the next span".
            let page = (now_us >> (e + 10)) + carry;
            let at = (page << 10 | m) << e;
            return if at <= now_us { Deadline::Now } else { Deadline::At(at) };
        }
        match self.period_us() {
            None => Deadline::Never,
            Some(0) if self.0 == Self::ZERO.0 => Deadline::Now,
            Some(us) => Deadline::At(now_us.saturating_add(us)),
        }
    }
}

/// The two timeouts of an IPC: `31..16` send, `15..0` receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Timeouts(pub u64);

impl Timeouts {
    /// Both infinite.
    pub const NEVER: Self = Self(0);
    /// Send: zero, receive: infinite (ReplyWait).
    pub const REPLY_WAIT: Self = Self::new(Time::ZERO, Time::NEVER);

    /// Both timeouts in one word.
    #[must_use]
    pub const fn new(send: Time, receive: Time) -> Self {
        Self((send.0 as u64) << 16 | receive.0 as u64)
    }

    /// The send timeout.
    #[must_use]
    pub const fn send(self) -> Time {
        Time((self.0 >> 16) as u16)
    }

    /// The receive timeout.
    #[must_use]
    pub const fn receive(self) -> Time {
        Time(self.0 as u16)
    }
}
