//! Clocks: what time it is.

use alloc::rc::{Rc, Weak};

use linux_raw_sys::general as l;
use zerocopy::IntoBytes;

use super::cpu;
use super::types::{SECOND_NS, Timespec, Timeval};
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::process::Process;
use crate::thread::Thread;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_clock_gettime, "clock_gettime", clock_gettime),
    full(l::__NR_clock_getres, "clock_getres", clock_getres),
    full(l::__NR_clock_settime, "clock_settime", clock_settime),
    full(l::__NR_gettimeofday, "gettimeofday", gettimeofday),
    partial(l::__NR_settimeofday, "settimeofday", settimeofday, "the time zone is ignored"),
    full(l::__NR_time, "time", time),
];

/// A clock.
#[derive(Clone)]
pub enum Clock {
    /// Time of day.
    Real,
    /// Time since boot.
    Monotonic,
    /// The same; namespaces put it forward by itself.
    Boot,
    /// What a process has used.
    Process(Weak<Process>),
    /// What a thread has used.
    Thread(Weak<Thread>),
}

/// Nanoseconds since 1970, now.
#[must_use]
pub fn real_time_ns(unix: &Unix) -> u64 {
    real_from_machine(unix, unix.machine.now_ns())
}

/// The real time at a time of the machine.
fn real_from_machine(unix: &Unix, ns: u64) -> u64 {
    boot_time_ns(unix).wrapping_add(ns)
}

/// The real time at boot, by how the clock is set now.
#[must_use]
pub fn boot_time_ns(unix: &Unix) -> u64 {
    unix.machine.boot_time_ns().wrapping_add(unix.timers.real_offset_ns.get())
}

/// The machine's time at a real time; 0 if that is before boot.
#[must_use]
pub fn machine_from_real(unix: &Unix, real_ns: u64) -> u64 {
    real_ns.saturating_sub(boot_time_ns(unix))
}

impl Clock {
    /// The clock of an id; negative ids are the processor time of processes and threads.
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn new(cx: &Cx, id: i32) -> Result<Self, Errno> {
        match id as u32 {
            l::CLOCK_REALTIME
            | l::CLOCK_REALTIME_COARSE
            | l::CLOCK_TAI
            | l::CLOCK_REALTIME_ALARM => Ok(Self::Real),
            l::CLOCK_MONOTONIC | l::CLOCK_MONOTONIC_RAW | l::CLOCK_MONOTONIC_COARSE => {
                Ok(Self::Monotonic)
            }
            l::CLOCK_BOOTTIME | l::CLOCK_BOOTTIME_ALARM => Ok(Self::Boot),
            l::CLOCK_PROCESS_CPUTIME_ID => Ok(Self::Process(Rc::downgrade(cx.process))),
            l::CLOCK_THREAD_CPUTIME_ID => Ok(Self::Thread(Rc::downgrade(cx.thread))),
            _ if id < 0 => Self::of_id(cx, id),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The clock of a process or thread: bits 31 to 3 are its id, inverted; bit 2 says
    /// thread; bits 1 and 0 which time (2 is the only one that makes sense here).
    fn of_id(cx: &Cx, id: i32) -> Result<Self, Errno> {
        let (who, thread) = (!(id >> 3) as u32, id & 4 != 0);
        if id & 3 == 3 {
            return Err(Errno::EINVAL);
        }
        match (thread, who) {
            (true, 0) => Ok(Self::Thread(Rc::downgrade(cx.thread))),
            (false, 0) => Ok(Self::Process(Rc::downgrade(cx.process))),
            (true, tid) => {
                let thread = cx.find_thread(tid).ok_or(Errno::EINVAL)?;
                let own = Rc::ptr_eq(&thread.process, cx.process);
                if own { Ok(Self::Thread(Rc::downgrade(&thread))) } else { Err(Errno::EINVAL) }
            }
            (false, pid) => {
                Ok(Self::Process(Rc::downgrade(&cx.find_process(pid).ok_or(Errno::EINVAL)?)))
            }
        }
    }

    /// What it shows, in nanoseconds; `None` if what it measured is gone.
    #[must_use]
    pub fn now_ns(&self, unix: &Unix) -> Option<u64> {
        match self {
            Self::Real => Some(real_time_ns(unix)),
            Self::Monotonic | Self::Boot => Some(unix.machine.now_ns()),
            Self::Process(process) => {
                let process = process.upgrade()?;
                Some(process.times.own(unix, &process).total_ns())
            }
            Self::Thread(thread) => Some(cpu::of_thread(unix, &*thread.upgrade()?).total_ns()),
        }
    }

    /// Whether it goes on while nobody runs.
    #[must_use]
    pub fn is_wall(&self) -> bool {
        matches!(self, Self::Real | Self::Monotonic | Self::Boot)
    }

    /// The machine's time at which a wall clock will show `ns`. Of processor time: when to
    /// look, the earliest that it can be, but a tick from now at least: it stands still
    /// while others run.
    #[must_use]
    pub fn machine_time(&self, unix: &Unix, ns: u64) -> u64 {
        match self {
            Self::Monotonic | Self::Boot => ns,
            Self::Real => machine_from_real(unix, ns),
            _ => {
                let left = ns.saturating_sub(self.now_ns(unix).unwrap_or(ns));
                unix.machine.now_ns().saturating_add(left.max(TICK_NS))
            }
        }
    }
}

fn clock_gettime(cx: &Cx) -> Answer {
    let ns = match cx.uint(0) {
        l::CLOCK_MONOTONIC => Clock::Monotonic.told(cx, cx.unix.machine.now_ns()),
        l::CLOCK_REALTIME => real_time_ns(cx.unix),
        _ => {
            let clock = Clock::new(cx, cx.int(0))?;
            clock.told(cx, clock.now_ns(cx.unix).ok_or(Errno::EINVAL)?)
        }
    };
    cx.user().write(cx.arg(1), &Timespec::from_ns(ns))?;
    Ok(0)
}

/// Resolution of the coarse clocks: Debian's tick.
const TICK_NS: u64 = 4_000_000;

fn clock_getres(cx: &Cx) -> Answer {
    Clock::new(cx, cx.int(0))?;
    let coarse = matches!(cx.uint(0), l::CLOCK_REALTIME_COARSE | l::CLOCK_MONOTONIC_COARSE);
    if cx.arg(1) != 0 {
        let resolution = if coarse { TICK_NS } else { 1 };
        cx.user().write(cx.arg(1), &Timespec::from_ns(resolution))?;
    }
    Ok(0)
}

/// Sets the time of day.
pub(super) fn set_real_time(cx: &Cx, ns: u64) -> Result<(), Errno> {
    if !cx.process.credentials.borrow().may(l::CAP_SYS_TIME) {
        return Err(Errno::EPERM);
    }
    let timers = &cx.unix.timers;
    let offset = timers.real_offset_ns.get().wrapping_add(ns.wrapping_sub(real_time_ns(cx.unix)));
    timers.real_offset_ns.set(offset);
    cx.unix.mm.vdso.set_boot_time(cx.unix);
    Ok(())
}

fn clock_settime(cx: &Cx) -> Answer {
    if cx.uint(0) != l::CLOCK_REALTIME {
        return Err(Errno::EINVAL.into());
    }
    let ns = cx.user().read::<Timespec>(cx.arg(1))?.nanoseconds()?;
    set_real_time(cx, ns)?;
    Ok(0)
}

fn gettimeofday(cx: &Cx) -> Answer {
    if cx.arg(0) != 0 {
        cx.user().write(cx.arg(0), &Timeval::from_ns(real_time_ns(cx.unix)))?;
    }
    if cx.arg(1) != 0 {
        cx.user().write(cx.arg(1), &[0_u32; 2])?;
    }
    Ok(0)
}

fn settimeofday(cx: &Cx) -> Answer {
    if cx.arg(1) != 0 {
        let mut zone = [0_u32; 2];
        cx.user().read_bytes(cx.arg(1), zone.as_mut_bytes())?;
    }
    if cx.arg(0) != 0 {
        let ns = cx.user().read::<Timeval>(cx.arg(0))?.nanoseconds()?;
        set_real_time(cx, ns)?;
    }
    Ok(0)
}

fn time(cx: &Cx) -> Answer {
    let seconds = real_time_ns(cx.unix) / SECOND_NS;
    if cx.arg(0) != 0 {
        cx.user().write(cx.arg(0), &seconds)?;
    }
    Ok(seconds)
}
