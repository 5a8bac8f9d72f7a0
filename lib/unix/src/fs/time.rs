//! Time stamps of files.

use crate::unix::Unix;

const NANOSECONDS: u64 = 1_000_000_000;

/// Seconds since 1970 and nanoseconds, as inodes keep them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Time {
    /// Now.
    #[must_use]
    pub fn now(unix: &Unix) -> Self {
        let now = crate::time::real_time_ns(unix);
        Self { seconds: (now / NANOSECONDS) as i64, nanoseconds: (now % NANOSECONDS) as u32 }
    }
}
