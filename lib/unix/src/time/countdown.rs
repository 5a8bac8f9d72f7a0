//! A timer that may repeat, on any clock: what `setitimer`, `timer_settime` and
//! `timerfd_settime` have in common.

use alloc::rc::Weak;
use core::cell::Cell;

use super::clock::Clock;
use super::{Alarm, Armed};
use crate::unix::Unix;

/// A timer that may repeat.
pub struct Countdown {
    clock: Clock,
    /// When it expires next, on its clock; `None`: it does not run.
    next_ns: Cell<Option<u64>>,
    period_ns: Cell<u64>,
    alarm: Cell<Option<Armed>>,
}

impl Countdown {
    /// One that does not run.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (next_ns, period_ns, alarm) = Default::default();
        Self { clock, next_ns, period_ns, alarm }
    }

    /// What it goes by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Starts it: it expires at `first_ns` on its clock and then every `period_ns` (0:
    /// once); `None` stops it. `alarm` is what calls [`Self::expirations`].
    pub fn start(
        &self,
        unix: &Unix,
        first_ns: Option<u64>,
        period_ns: u64,
        alarm: Weak<dyn Alarm>,
    ) {
        self.stop();
        self.period_ns.set(period_ns);
        self.next_ns.set(first_ns);
        self.arm(unix, alarm);
    }

    /// As [`Self::start`], in `first_ns` from now; 0 stops it.
    pub fn start_in(&self, unix: &Unix, first_ns: u64, period_ns: u64, alarm: Weak<dyn Alarm>) {
        let now_ns = self.clock.now_ns(unix).filter(|_| first_ns != 0);
        self.start(unix, now_ns.map(|now| now.saturating_add(first_ns)), period_ns, alarm);
    }

    /// Stops it.
    pub fn stop(&self) {
        self.next_ns.set(None);
        self.alarm.set(None);
    }

    fn arm(&self, unix: &Unix, alarm: Weak<dyn Alarm>) {
        if let Some(next_ns) = self.next_ns.get() {
            let at_ns = self.clock.machine_time(unix, next_ns);
            self.alarm.set(Some(unix.timers.set(unix, at_ns, alarm)));
        }
    }

    /// How long until it expires (at least 1 while it runs), and its period; 0 if it does not run.
    #[must_use]
    pub fn state_ns(&self, unix: &Unix) -> (u64, u64) {
        let now_ns = self.clock.now_ns(unix).unwrap_or(0);
        let period_ns = self.period_ns.get();
        let left = |next: u64| match next.checked_sub(now_ns) {
            Some(left) => left.max(1),
            // Nobody has looked since it expired.
            None => period_ns - (now_ns - next).checked_rem(period_ns).unwrap_or(0),
        };
        (self.next_ns.get().map_or(0, |next| left(next).max(1)), period_ns)
    }

    /// To be called when the alarm rings: how often it has expired since the last time (0:
    /// too early, the clock of a process was slower). It is armed again as needed.
    pub fn expirations(&self, unix: &Unix, alarm: Weak<dyn Alarm>) -> u64 {
        let count = self.count(unix);
        self.arm(unix, alarm);
        count
    }

    /// As [`Self::expirations`], but it is not armed again if it has expired.
    pub fn rang(&self, unix: &Unix, alarm: Weak<dyn Alarm>) -> u64 {
        let count = self.count(unix);
        if count == 0 {
            self.arm(unix, alarm);
        }
        count
    }

    /// Arms it again after [`Self::rang`], for `at_ns` of the machine at the earliest; how
    /// often it has expired meanwhile.
    pub fn go_on(&self, unix: &Unix, not_before_ns: u64, alarm: Weak<dyn Alarm>) -> u64 {
        if let Some(set) = self.alarm.take() {
            self.alarm.set(Some(set));
            return 0;
        }
        let count = self.count(unix);
        if let Some(next_ns) = self.next_ns.get() {
            let at_ns = self.clock.machine_time(unix, next_ns).max(not_before_ns);
            self.alarm.set(Some(unix.timers.set(unix, at_ns, alarm)));
        }
        count
    }

    /// Counts what has expired.
    fn count(&self, unix: &Unix) -> u64 {
        self.alarm.set(None);
        let (Some(next_ns), Some(now_ns)) = (self.next_ns.get(), self.clock.now_ns(unix)) else {
            return 0;
        };
        let mut count = 0;
        if now_ns >= next_ns {
            let period_ns = self.period_ns.get();
            count = 1 + (now_ns - next_ns).checked_div(period_ns).unwrap_or(0);
            let next = next_ns.saturating_add(count.saturating_mul(period_ns));
            self.next_ns.set(Some(next).filter(|_| period_ns != 0));
        }
        count
    }
}
