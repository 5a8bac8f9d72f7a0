//! Processor time of a test, for what has to be quick however busy the machine is.

use std::time::Duration;

/// What this thread has computed so far.
fn computed() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    Duration::from_nanos(told.split(' ').next().and_then(|first| first.parse().ok()).expect("ns"))
}

/// A stretch of the test.
pub struct Effort(Duration);

impl Effort {
    /// It begins now.
    pub fn begin() -> Self {
        Self(computed())
    }

    /// It ends, and has taken less than so many seconds.
    #[track_caller]
    pub fn is_less_than(&self, seconds: u64) {
        let taken = computed() - self.0;
        assert!(taken.as_secs() < seconds, "{taken:?} of this thread");
    }
}
