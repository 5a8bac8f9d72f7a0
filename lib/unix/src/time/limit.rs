//! `RLIMIT_CPU`: SIGXCPU at the soft limit and a second later each time again, SIGKILL
//! at the hard limit. A process with such a limit has an alarm at the earliest moment at
//! which it can reach it; others have none.

use alloc::rc::{Rc, Weak};
use core::cell::Cell;

use linux_raw_sys::general as l;

use super::clock::Clock;
use super::cpu::ProcessTimes;
use super::types::SECOND_NS;
use super::{Alarm, Armed};
use crate::process::Process;
use crate::signal::{self, Info};
use crate::unix::Unix;

/// No limit.
const UNLIMITED: u64 = u64::MAX;

/// Looks after a process's limit.
pub struct CpuLimit {
    process: Weak<Process>,
    clock: Clock,
    alarm: Cell<Option<Armed>>,
    this: Weak<CpuLimit>,
}

impl CpuLimit {
    /// Sets the alarm for the soft limit, in seconds.
    fn arm(&self, unix: &Unix, soft_s: u64) {
        let at_ns = self.clock.machine_time(unix, soft_s.saturating_mul(SECOND_NS));
        self.alarm.set(Some(unix.timers.set(unix, at_ns, self.this.clone())));
    }
}

impl Alarm for CpuLimit {
    fn ring(&self, unix: &Unix) {
        self.alarm.set(None);
        let Some(process) = self.process.upgrade().filter(|one| one.ended.get().is_none()) else {
            return;
        };
        let used_s = process.times.own(unix, &process).total_ns() / SECOND_NS;
        let (mut soft_s, hard_s) = process.limits.borrow()[l::RLIMIT_CPU as usize];
        if used_s >= hard_s {
            return signal::send(unix, &process, Info::kernel(l::SIGKILL));
        }
        if used_s >= soft_s {
            soft_s += 1;
            process.limits.borrow_mut()[l::RLIMIT_CPU as usize].0 = soft_s;
            signal::send(unix, &process, Info::kernel(l::SIGXCPU));
        }
        self.arm(unix, soft_s);
    }
}

impl ProcessTimes {
    /// The process has got a limit of processor time, by `setrlimit` or at its birth.
    pub fn watch_limit(&self, unix: &Unix, process: &Rc<Process>) {
        self.forget_limit();
        let (soft_s, _) = process.limits.borrow()[l::RLIMIT_CPU as usize];
        // As on Linux, it is the soft limit that has the process watched.
        if soft_s == UNLIMITED {
            return;
        }
        let process = Rc::downgrade(process);
        let limit = Rc::new_cyclic(|this: &Weak<CpuLimit>| CpuLimit {
            clock: Clock::Process(process.clone()),
            process,
            alarm: Cell::new(None),
            this: this.clone(),
        });
        limit.arm(unix, soft_s);
        *self.limit.borrow_mut() = Some(limit);
    }

    /// The process ends, or has another limit.
    pub fn forget_limit(&self) {
        drop(self.limit.take());
    }
}
