//! `timer_create` and its like.

use alloc::rc::{Rc, Weak};
use core::cell::Cell;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::Alarm;
use super::clock::Clock;
use super::countdown::Countdown;
use super::cpu::ProcessTimes;
use super::types::{Interval, Timespec};
use crate::account::{Charge, What, check_signals};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::process::Process;
use crate::signal::{self, Info, set};
use crate::thread::Thread;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_timer_create, "timer_create", timer_create),
    full(l::__NR_timer_settime, "timer_settime", timer_settime),
    full(l::__NR_timer_gettime, "timer_gettime", timer_gettime),
    full(l::__NR_timer_getoverrun, "timer_getoverrun", timer_getoverrun),
    full(l::__NR_timer_delete, "timer_delete", timer_delete),
];

/// What a timer costs in memory.
const TIMER_BYTES: usize = 384;
/// Most timers of a process.
const MAX_TIMERS: usize = 1024;

/// `struct sigevent`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Event {
    value: u64,
    signal: u32,
    notify: u32,
    tid: u32,
    rest: [u32; 11],
}

/// Whom a timer tells.
enum Target {
    Nobody,
    Process,
    Thread(Weak<Thread>),
}

/// A process's timer.
pub struct Timer {
    number: u32,
    process: Weak<Process>,
    countdown: Countdown,
    target: Target,
    signal: u32,
    value: u64,
    /// Expirations beyond the one that the queued signal tells of.
    overrun: Cell<u64>,
    /// What was told with the signal taken last.
    told: Cell<u64>,
    /// What it costs its user: memory, and a place among the signals.
    _charges: [Charge; 2],
    this: Weak<Timer>,
}

/// A timer whose signal is ignored is looked at again after this.
const IGNORED_NS: u64 = 4_000_000;
/// Overruns are told up to this.
const MAX_OVERRUN: u64 = i32::MAX as u64;

impl Timer {
    fn is_queued(&self, process: &Process) -> bool {
        let number = self.number + 1;
        match &self.target {
            Target::Thread(thread) => {
                thread.upgrade().is_some_and(|one| one.signals.pending.has_timer(number))
            }
            _ => process.signals.pending.has_timer(number),
        }
    }
}

impl Alarm for Timer {
    fn ring(&self, unix: &Unix) {
        let count = self.countdown.rang(unix, self.this.clone());
        let Some(process) = self.process.upgrade().filter(|_| count > 0) else { return };
        if self.is_queued(&process) {
            self.overrun.set(self.overrun.get().saturating_add(count));
            return;
        }
        self.overrun.set(count - 1);
        let info = Info::timer(self.signal, self.number, self.value);
        match &self.target {
            Target::Nobody => {}
            Target::Process => signal::send(unix, &process, info),
            Target::Thread(thread) => {
                if let Some(thread) = thread.upgrade() {
                    signal::send_thread(unix, &thread, info);
                }
            }
        }
        // It is armed again when the signal is taken: who is not done with one gets no other.
        let waits = matches!(self.target, Target::Nobody) || self.is_queued(&process);
        if !waits {
            let at_ns = unix.machine.now_ns().saturating_add(IGNORED_NS);
            self.countdown.go_on(unix, at_ns, self.this.clone());
        }
    }
}

/// A signal was taken: if a timer has sent it, it tells how often that expired meanwhile.
pub fn signal_taken(unix: &Unix, process: &Process, info: &mut Info) {
    if info.timer == 0 {
        return;
    }
    let timer = process.times.timers.borrow().get(&(info.timer - 1)).cloned();
    if let Some(timer) = timer {
        let late = timer.countdown.go_on(unix, 0, timer.this.clone());
        let overrun = timer.overrun.take().saturating_add(late).min(MAX_OVERRUN);
        timer.told.set(overrun);
        info.data[0] = info.data[0] & 0xFFFF_FFFF | overrun << 32;
    }
}

/// Whom the event tells, and with which signal.
fn target(cx: &Cx, event: &Event) -> Result<Target, Errno> {
    let valid = (1..=set::LAST).contains(&event.signal);
    match event.notify {
        l::SIGEV_NONE => Ok(Target::Nobody),
        l::SIGEV_SIGNAL | l::SIGEV_THREAD if valid => Ok(Target::Process),
        l::SIGEV_THREAD_ID if valid => {
            let thread = cx.find_thread(event.tid).ok_or(Errno::EINVAL)?;
            let own = Rc::ptr_eq(&thread.process, cx.process);
            if own { Ok(Target::Thread(Rc::downgrade(&thread))) } else { Err(Errno::EINVAL) }
        }
        _ => Err(Errno::EINVAL),
    }
}

fn timer_create(cx: &Cx) -> Answer {
    let clock = Clock::new(cx, cx.int(0))?;
    let times = &cx.process.times;
    if times.timers.borrow().len() >= MAX_TIMERS {
        return Err(Errno::EAGAIN.into());
    }
    let number = free_number(times);
    let event = match cx.arg(1) {
        0 => Event { value: u64::from(number), signal: l::SIGALRM, ..Event::default() },
        address => cx.user().read(address)?,
    };
    let target = target(cx, &event)?;
    check_signals(cx.process)?;
    let charges = [cx.pay(TIMER_BYTES).map_err(|_| Errno::EAGAIN)?, cx.charge(What::Signals)];
    charges[1].set(1);
    cx.user().write(cx.arg(2), &number)?;
    let timer = Rc::new_cyclic(|this| Timer {
        number,
        process: Rc::downgrade(cx.process),
        countdown: Countdown::new(clock),
        target,
        signal: event.signal,
        value: event.value,
        overrun: Cell::new(0),
        told: Cell::new(0),
        _charges: charges,
        this: this.clone(),
    });
    times.timers.borrow_mut().insert(number, timer);
    Ok(0)
}

/// A number that no timer has; numbers are not used again soon.
fn free_number(times: &ProcessTimes) -> u32 {
    let timers = times.timers.borrow();
    let mut number = times.next_timer.get();
    while timers.contains_key(&number) {
        number = (number + 1) & i32::MAX as u32;
    }
    times.next_timer.set((number + 1) & i32::MAX as u32);
    number
}

/// The timer that the first argument names.
fn timer(cx: &Cx) -> Result<Rc<Timer>, Errno> {
    cx.process.times.timers.borrow().get(&cx.uint(0)).cloned().ok_or(Errno::EINVAL)
}

fn state(cx: &Cx, timer: &Timer) -> Interval<Timespec> {
    let (left_ns, period_ns) = timer.countdown.state_ns(cx.unix);
    Interval { period: Timespec::from_ns(period_ns), first: Timespec::from_ns(left_ns) }
}

fn timer_settime(cx: &Cx) -> Answer {
    if cx.arg(2) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let new: Interval<Timespec> = cx.user().read(cx.arg(2))?;
    let (first_ns, period_ns) = (new.first.nanoseconds()?, new.period.nanoseconds()?);
    let timer = timer(cx)?;
    let old = state(cx, &timer);
    timer.overrun.set(0);
    if cx.uint(1) & l::TIMER_ABSTIME != 0 {
        let first = Some(first_ns).filter(|ns| *ns != 0);
        let first = first.map(|ns| timer.countdown.clock().meant(cx, ns));
        timer.countdown.start(cx.unix, first, period_ns, timer.this.clone());
    } else {
        timer.countdown.start_in(cx.unix, first_ns, period_ns, timer.this.clone());
    }
    if cx.arg(3) != 0 {
        cx.user().write(cx.arg(3), &old)?;
    }
    Ok(0)
}

fn timer_gettime(cx: &Cx) -> Answer {
    let timer = timer(cx)?;
    cx.user().write(cx.arg(1), &state(cx, &timer))?;
    Ok(0)
}

fn timer_getoverrun(cx: &Cx) -> Answer {
    Ok(timer(cx)?.told.get())
}

fn timer_delete(cx: &Cx) -> Answer {
    let timer = timer(cx)?;
    cx.process.times.timers.borrow_mut().remove(&timer.number);
    delete(cx.process, &timer);
    Ok(0)
}

/// Stops a timer and takes its signal back.
fn delete(process: &Process, timer: &Timer) {
    timer.countdown.stop();
    process.signals.pending.remove_timer(timer.number + 1);
    if let Target::Thread(thread) = &timer.target
        && let Some(thread) = thread.upgrade()
    {
        thread.signals.pending.remove_timer(timer.number + 1);
    }
    signal::recalculate(process);
}

impl ProcessTimes {
    /// The process has a new program, or ends: its timers are gone.
    pub fn forget_timers(&self, process: &Process) {
        for timer in self.timers.take().values() {
            delete(process, timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_is_the_kernel_s() {
        assert_eq!(size_of::<Event>(), size_of::<l::sigevent>());
    }
}
