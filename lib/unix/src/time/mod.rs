//! Time: clocks, sleeping, interval timers, deadlines of waiting calls.
//!
//! All times are the machine's nanoseconds since boot unless a name says otherwise. One
//! list of alarms, earliest first; the machine is asked for the earliest only.

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use crate::thread::Thread;
use crate::unix::Unix;

pub mod adjust;
pub mod clock;
pub mod countdown;
pub mod cpu;
pub mod interval;
pub mod limit;
pub mod posix;
pub mod sleep;
pub mod types;

pub use clock::{Clock, real_time_ns};
pub use countdown::Countdown;
pub use cpu::{CpuTime, ProcessTimes, of_thread};
pub use posix::signal_taken;
pub use types::{Interval, Timespec, Timeval};

/// Least time between two looks at what is due, in nanoseconds: Linux's slack for timers.
/// Alarms that rang more often would leave programs no time.
const GAP_NS: u64 = 50_000;

/// Something that is to be called at a time.
pub trait Alarm {
    /// The time has come; the alarm is not set any more.
    fn ring(&self, unix: &Unix);
}

/// A deadline: its time, and a number.
pub type Key = (u64, u64);

/// Deadlines, earliest first.
type Events = RefCell<BTreeMap<Key, Event>>;

/// Nothing happens at this deadline any more.
fn cancel(events: &Events, key: Key) {
    // What is dropped may cancel alarms of its own: not while the list is borrowed.
    let event = events.borrow_mut().remove(&key);
    drop(event);
}

/// An alarm that is set, for as long as this is kept.
#[must_use]
pub struct Armed {
    key: Key,
    events: Rc<Events>,
}

impl Drop for Armed {
    fn drop(&mut self) {
        cancel(&self.events, self.key);
    }
}

/// What happens at a time.
enum Event {
    /// The call of a thread, waiting under this serial number, is tried again.
    Wake(Rc<Thread>),
    /// Another module's business.
    Ring(Weak<dyn Alarm>),
}

/// What is to happen when.
#[derive(Default)]
pub struct Timers {
    events: Rc<Events>,
    serial: Cell<u64>,
    /// What the machine was asked for.
    armed: Cell<Option<u64>>,
    /// Nothing is looked at before: the last look has taken as long, and at least [`GAP_NS`]
    /// ago. So the work of alarms is at most half of all, however many there are.
    quiet_until_ns: Cell<u64>,
    /// How much the real-time clock was set, in nanoseconds (wrapping).
    pub real_offset_ns: Cell<u64>,
    /// What programs that discipline the clock have set.
    pub adjustment: Cell<adjust::Adjustment>,
}

impl Timers {
    fn add(&self, unix: &Unix, at_ns: u64, event: Event) -> Key {
        self.serial.set(self.serial.get() + 1);
        let key = (at_ns, self.serial.get());
        self.events.borrow_mut().insert(key, event);
        if self.armed.get().is_none_or(|armed| at_ns < armed) {
            self.arm(unix, Some(at_ns));
        }
        key
    }

    /// Asks the machine for an alarm at this time, or as soon as may be.
    fn arm(&self, unix: &Unix, at_ns: Option<u64>) {
        let at_ns = at_ns.map(|at_ns| at_ns.max(self.quiet_until_ns.get()));
        self.armed.set(at_ns);
        unix.machine.set_alarm(at_ns);
    }

    /// Calls `alarm` at this time, if what is returned is kept until then.
    pub fn set(&self, unix: &Unix, at_ns: u64, alarm: Weak<dyn Alarm>) -> Armed {
        let key = self.add(unix, at_ns, Event::Ring(alarm));
        Armed { key, events: self.events.clone() }
    }

    /// Wakes the call of `thread` at this time.
    pub fn wake_at(&self, unix: &Unix, thread: &Rc<Thread>, at_ns: u64) {
        match thread.alarm.get() {
            Some((at, _)) if at == at_ns => {}
            _ => {
                self.forget(thread);
                thread.alarm.set(Some(self.add(unix, at_ns, Event::Wake(thread.clone()))));
            }
        }
    }

    /// The call of `thread` has ended; a deadline of it means nothing any more.
    pub fn forget(&self, thread: &Rc<Thread>) {
        if let Some(key) = thread.alarm.take() {
            cancel(&self.events, key);
        }
    }

    /// The first event that is due.
    fn due(&self, now_ns: u64) -> Option<Event> {
        let mut events = self.events.borrow_mut();
        let first = events.first_entry()?;
        if first.key().0 > now_ns {
            return None;
        }
        Some(first.remove())
    }

    /// Does what is due, and asks for the next alarm.
    pub fn expire(&self, unix: &Unix) {
        let now_ns = unix.machine.now_ns();
        while let Some(event) = self.due(now_ns) {
            match event {
                Event::Wake(thread) => {
                    thread.alarm.set(None);
                    thread.wake(thread.wait_serial.get());
                }
                Event::Ring(alarm) => {
                    if let Some(alarm) = alarm.upgrade() {
                        alarm.ring(unix);
                    }
                }
            }
        }
        let end_ns = unix.machine.now_ns();
        let pause_ns = GAP_NS.max(end_ns.saturating_sub(now_ns));
        self.quiet_until_ns.set(end_ns.saturating_add(pause_ns));
        let next = self.events.borrow().keys().next().map(|key| key.0);
        self.arm(unix, next);
    }
}
