//! Times as programs write them.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::errno::Errno;

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// `struct timespec`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl Timespec {
    /// From nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self { seconds: (ns / SECOND_NS) as i64, nanoseconds: (ns % SECOND_NS) as i64 }
    }

    /// In nanoseconds, at most `u64::MAX`.
    ///
    /// # Errors
    /// `EINVAL` for negative times and nanoseconds of a second and more.
    pub fn nanoseconds(&self) -> Result<u64, Errno> {
        if self.seconds < 0 || !(0..SECOND_NS as i64).contains(&self.nanoseconds) {
            return Err(Errno::EINVAL);
        }
        Ok((self.seconds as u64).saturating_mul(SECOND_NS).saturating_add(self.nanoseconds as u64))
    }
}

/// `struct timeval`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Timeval {
    pub seconds: i64,
    pub microseconds: i64,
}

impl Timeval {
    /// From nanoseconds; parts of a microsecond are dropped.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self { seconds: (ns / SECOND_NS) as i64, microseconds: (ns % SECOND_NS / 1000) as i64 }
    }

    /// In nanoseconds, at most `u64::MAX`.
    ///
    /// # Errors
    /// `EINVAL` for negative times and microseconds of a second and more.
    pub fn nanoseconds(&self) -> Result<u64, Errno> {
        if !(0..1_000_000).contains(&self.microseconds) {
            return Err(Errno::EINVAL);
        }
        let nanoseconds = self.microseconds * 1000;
        Timespec { seconds: self.seconds, nanoseconds }.nanoseconds()
    }
}

/// `struct itimerspec` and, with other units, `struct itimerval`: period and first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Interval<T> {
    /// From one time to the next; zero: once.
    pub period: T,
    /// The first time; zero: never.
    pub first: T,
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_raw_sys::general as l;

    #[test]
    fn times_are_the_kernel_s() {
        assert_eq!(size_of::<Timespec>(), size_of::<l::timespec>());
        assert_eq!(size_of::<Timeval>(), size_of::<l::timeval>());
        assert_eq!(size_of::<Interval<Timespec>>(), size_of::<l::itimerspec>());
    }

    #[test]
    fn bad_times_are_refused_and_long_ones_bounded() {
        let time = |seconds, nanoseconds| Timespec { seconds, nanoseconds }.nanoseconds();
        assert_eq!(time(1, 5), Ok(1_000_000_005));
        assert_eq!(time(-1, 0), Err(Errno::EINVAL));
        assert_eq!(time(0, 1_000_000_000), Err(Errno::EINVAL));
        assert_eq!(time(0, -1), Err(Errno::EINVAL));
        assert_eq!(time(i64::MAX, 0), Ok(u64::MAX));
        assert_eq!(
            Timeval { seconds: 1, microseconds: i64::MIN }.nanoseconds(),
            Err(Errno::EINVAL)
        );
    }
}
