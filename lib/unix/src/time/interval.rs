//! `alarm` and `setitimer`.

use alloc::rc::{Rc, Weak};

use linux_raw_sys::general as l;

use super::Alarm;
use super::clock::Clock;
use super::countdown::Countdown;
use super::cpu::ProcessTimes;
use super::types::{Interval, SECOND_NS, Timeval};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::process::Process;
use crate::signal::{self, Info};
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_alarm, "alarm", alarm),
    full(l::__NR_setitimer, "setitimer", setitimer),
    full(l::__NR_getitimer, "getitimer", getitimer),
];

/// The signals of the three timers.
const SIGNALS: [u32; 3] = [l::SIGALRM, l::SIGVTALRM, l::SIGPROF];

/// One of a process's three interval timers.
pub struct IntervalTimer {
    which: usize,
    process: Weak<Process>,
    countdown: Countdown,
    this: Weak<IntervalTimer>,
}

impl Alarm for IntervalTimer {
    fn ring(&self, unix: &Unix) {
        let count = self.countdown.expirations(unix, self.this.clone());
        if let Some(process) = self.process.upgrade().filter(|_| count > 0) {
            signal::send(unix, &process, Info::kernel(SIGNALS[self.which]));
        }
    }
}

/// The timer `which` of the process, made when first needed.
fn timer(process: &Rc<Process>, which: usize) -> Rc<IntervalTimer> {
    let mut timers = process.times.intervals.borrow_mut();
    timers[which]
        .get_or_insert_with(|| {
            Rc::new_cyclic(|this| {
                let clock = match which {
                    0 => Clock::Monotonic,
                    _ => Clock::Process(Rc::downgrade(process)),
                };
                let (process, this) = (Rc::downgrade(process), this.clone());
                IntervalTimer { which, process, countdown: Countdown::new(clock), this }
            })
        })
        .clone()
}

/// What is left of a timer, and its period.
fn state(cx: &Cx, which: usize) -> (u64, u64) {
    let timers = cx.process.times.intervals.borrow();
    timers[which].as_ref().map_or((0, 0), |timer| timer.countdown.state_ns(cx.unix))
}

fn start(cx: &Cx, which: usize, first_ns: u64, period_ns: u64) {
    let timer = timer(cx.process, which);
    timer.countdown.start_in(cx.unix, first_ns, period_ns, timer.this.clone());
}

fn alarm(cx: &Cx) -> Answer {
    let (left_ns, _) = state(cx, 0);
    start(cx, 0, u64::from(cx.uint(0)) * SECOND_NS, 0);
    // Rounded to seconds, but what is left is never nothing.
    let rounded = left_ns.saturating_add(SECOND_NS / 2) / SECOND_NS;
    Ok(if left_ns == 0 { 0 } else { rounded.max(1) })
}

/// The timer that the first argument names.
fn which(cx: &Cx) -> Result<usize, Errno> {
    if cx.uint(0) <= l::ITIMER_PROF { Ok(cx.uint(0) as usize) } else { Err(Errno::EINVAL) }
}

fn write_state(cx: &Cx, address: u64, (left_ns, period_ns): (u64, u64)) -> Result<(), Errno> {
    // Less than a microsecond left is not nothing.
    let first = Timeval::from_ns(if left_ns == 0 { 0 } else { left_ns.max(1000) });
    cx.user().write(address, &Interval { period: Timeval::from_ns(period_ns), first })
}

fn getitimer(cx: &Cx) -> Answer {
    let which = which(cx)?;
    write_state(cx, cx.arg(1), state(cx, which))?;
    Ok(0)
}

fn setitimer(cx: &Cx) -> Answer {
    let new: Interval<Timeval> = match cx.arg(1) {
        0 => Interval::default(),
        address => cx.user().read(address)?,
    };
    let (first_ns, period_ns) = (new.first.nanoseconds()?, new.period.nanoseconds()?);
    let which = which(cx)?;
    let old = state(cx, which);
    start(cx, which, first_ns, period_ns);
    if cx.arg(2) != 0 {
        write_state(cx, cx.arg(2), old)?;
    }
    Ok(0)
}

impl ProcessTimes {
    /// The process ends: its interval timers stop.
    pub fn forget_intervals(&self) {
        for timer in self.intervals.take().iter().flatten() {
            timer.countdown.stop();
        }
    }
}
