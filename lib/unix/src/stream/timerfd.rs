//! timerfd: a timer with a descriptor. Expirations are counted when somebody looks; the
//! alarm only wakes who waits, so that a short period costs nothing while nobody reads.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::Cell;

use linux_raw_sys::general::{
    CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_ALARM,
    O_CLOEXEC, O_NONBLOCK, O_RDWR, TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET,
};

use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::time::{Alarm, Armed, Clock, Interval, Timespec};
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// A timer.
struct Timer {
    clock: Clock,
    /// When it expires next, on its clock.
    next_ns: Cell<Option<u64>>,
    /// 0: only once.
    period_ns: Cell<u64>,
    /// The alarm that is set.
    alarm: Cell<Option<Armed>>,
    this: Weak<Timer>,
    expired: WaitQueue,
    inode: Rc<Inode>,
}

impl Alarm for Timer {
    fn ring(&self, unix: &Unix) {
        self.alarm.set(None);
        if self.count(unix) == 0 {
            self.arm(unix);
        } else {
            self.expired.wake_all();
        }
    }
}

impl Timer {
    /// How often it has expired since it was read.
    fn count(&self, unix: &Unix) -> u64 {
        let (Some(next_ns), Some(now_ns)) = (self.next_ns.get(), self.clock.now_ns(unix)) else {
            return 0;
        };
        match now_ns.checked_sub(next_ns) {
            None => 0,
            Some(late_ns) => {
                late_ns.checked_div(self.period_ns.get()).unwrap_or(0).saturating_add(1)
            }
        }
    }

    fn arm(&self, unix: &Unix) {
        self.alarm.set(None);
        if let Some(next_ns) = self.next_ns.get() {
            let at_ns = self.clock.machine_time(unix, next_ns);
            let this: Weak<dyn Alarm> = self.this.clone();
            self.alarm.set(Some(unix.timers.set(unix, at_ns, this)));
        }
    }

    /// Counts the expirations off and waits for the next.
    fn acknowledge(&self, unix: &Unix, count: u64) {
        let period_ns = self.period_ns.get();
        let next = self.next_ns.get().filter(|_| period_ns != 0);
        self.next_ns.set(next.map(|next| next.saturating_add(count.saturating_mul(period_ns))));
        self.arm(unix);
    }

    /// What is left until it expires, and its period.
    fn state(&self, unix: &Unix) -> Interval<Timespec> {
        let period_ns = self.period_ns.get();
        let now_ns = self.clock.now_ns(unix).unwrap_or(0);
        let left_ns = self.next_ns.get().map_or(0, |next_ns| match next_ns.checked_sub(now_ns) {
            Some(left_ns) if left_ns > 0 => left_ns,
            _ if period_ns == 0 => 0,
            _ => period_ns - (now_ns - next_ns) % period_ns,
        });
        Interval { period: Timespec::from_ns(period_ns), first: Timespec::from_ns(left_ns) }
    }
}

impl File for Timer {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        if sink.room() < 8 {
            return Err(Errno::EINVAL.into());
        }
        let count = self.count(cx.unix);
        if count > 0 {
            self.acknowledge(cx.unix, count);
            return Ok(sink.put(&count.to_ne_bytes())?);
        }
        if open.is_nonblocking() {
            Err(Errno::EAGAIN.into())
        } else {
            Err(cx.block_on(&self.expired))
        }
    }

    fn write(&self, _: &Cx, _: &Open, _: &mut Source, _: u64) -> Result<usize, Stop> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, cx: &Cx) -> Events {
        if self.count(cx.unix) > 0 { Events::IN } else { Events::empty() }
    }

    fn watch(&self, _cx: &Cx, _interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        visit(&self.expired);
    }

    fn inode(&self) -> Rc<Inode> {
        self.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// `timerfd_create(clock, flags)`.
pub(super) fn timerfd_create(cx: &Cx) -> Answer {
    let (clock, flags) = (cx.uint(0), cx.uint(1));
    let known = [
        CLOCK_REALTIME,
        CLOCK_MONOTONIC,
        CLOCK_BOOTTIME,
        CLOCK_REALTIME_ALARM,
        CLOCK_BOOTTIME_ALARM,
    ];
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 || !known.contains(&clock) {
        return Err(Errno::EINVAL.into());
    }
    let clock = Clock::new(cx, clock as i32)?;
    let inode = cx.unix.fs.anonymous(cx, "[timerfd]")?;
    let timer = Rc::new_cyclic(|this| Timer {
        clock,
        next_ns: Cell::new(None),
        period_ns: Cell::new(0),
        alarm: Cell::new(None),
        this: this.clone(),
        expired: WaitQueue::default(),
        inode,
    });
    let open = Open::new(cx, timer, O_RDWR | flags & O_NONBLOCK, Vec::new())?;
    Ok(cx.add_file(open, flags & O_CLOEXEC != 0)?.into())
}

/// `timerfd_settime(fd, flags, new, old)`.
pub(super) fn timerfd_settime(cx: &Cx) -> Answer {
    let new = cx.user().read::<Interval<Timespec>>(cx.arg(2))?;
    let flags = cx.uint(1);
    let (first_ns, period_ns) = (new.first.nanoseconds()?, new.period.nanoseconds()?);
    if flags & !(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let open = cx.file(cx.uint(0))?;
    let timer = of(&open)?;
    let old = timer.state(cx.unix);
    timer.alarm.set(None);
    let next = |ns: u64| match flags & TFD_TIMER_ABSTIME {
        0 => timer.clock.now_ns(cx.unix).unwrap_or(0).saturating_add(ns),
        _ => timer.clock.meant(cx, ns),
    };
    timer.next_ns.set(Some(first_ns).filter(|ns| *ns != 0).map(next));
    timer.period_ns.set(period_ns);
    timer.arm(cx.unix);
    timer.expired.wake_all();
    if cx.arg(3) != 0 {
        cx.user().write(cx.arg(3), &old)?;
    }
    Ok(0)
}

/// `timerfd_gettime(fd, state)`.
pub(super) fn timerfd_gettime(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let state = of(&open)?.state(cx.unix);
    cx.user().write(cx.arg(1), &state)?;
    Ok(0)
}

fn of(open: &Open) -> Result<&Timer, Errno> {
    open.file.as_any().downcast_ref::<Timer>().ok_or(Errno::EINVAL)
}
