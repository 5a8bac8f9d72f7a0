//! Processor time and memory that processes have used.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::ops::Add;

use super::interval::IntervalTimer;
use super::limit::CpuLimit;
use super::posix::Timer;
use crate::memory::PAGE;
use crate::process::Process;
use crate::thread::Thread;
use crate::unix::Unix;

/// User and system time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl Add for CpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }
}

impl CpuTime {
    /// What has come to it since it was `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }

    /// Both together.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// What a thread has used.
#[must_use]
pub fn of_thread(unix: &Unix, thread: &Thread) -> CpuTime {
    let now = match thread.machine.get() {
        machine if machine.0 == 0 => CpuTime::default(),
        machine => CpuTime {
            user_ns: unix.machine.user_time_ns(machine),
            system_ns: unix.machine.system_time_ns(machine),
        },
    };
    thread.earlier.get() + now
}

/// A process's times and timers.
#[derive(Default)]
pub struct ProcessTimes {
    /// When it was born.
    pub start_ns: u64,
    /// What threads that have ended have used.
    ended: Cell<CpuTime>,
    /// What children that were waited for have used, their own children included.
    children: Cell<CpuTime>,
    /// Of those: the largest (KiB), and page faults.
    children_memory: Cell<(u64, u64)>,
    /// Peak (KiB) and page faults of memory the process has no more.
    memory: Cell<(u64, u64)>,
    /// `setitimer`'s timers that are in use.
    pub(super) intervals: RefCell<[Option<Rc<IntervalTimer>>; 3]>,
    /// What looks after `RLIMIT_CPU`, if there is such a limit.
    pub(super) limit: RefCell<Option<Rc<CpuLimit>>>,
    /// `timer_create`'s timers.
    pub(super) timers: RefCell<BTreeMap<u32, Rc<Timer>>>,
    /// Number of the next one.
    pub(super) next_timer: Cell<u32>,
}

impl ProcessTimes {
    /// Of a process born now.
    #[must_use]
    pub fn new(unix: &Unix) -> Self {
        Self { start_ns: unix.machine.now_ns(), ..Self::default() }
    }

    /// What the process's threads have used, ended ones included.
    #[must_use]
    pub fn own(&self, unix: &Unix, process: &Process) -> CpuTime {
        let threads = process.threads.borrow();
        threads.iter().fold(self.ended.get(), |sum, thread| sum + of_thread(unix, thread))
    }

    /// What children that were waited for have used.
    #[must_use]
    pub fn children(&self) -> CpuTime {
        self.children.get()
    }

    /// Peak of resident memory in KiB, and page faults.
    #[must_use]
    pub fn memory(&self, process: &Process) -> (u64, u64) {
        let (peak, faults) = self.memory.get();
        if process.ended.get().is_some() {
            return (peak, faults);
        }
        let space = process.space();
        let now = (space.peak() * PAGE / 1024) as u64;
        (peak.max(now), faults + space.faults.get())
    }

    /// Of children: the largest peak in KiB, and their page faults.
    #[must_use]
    pub fn children_memory(&self) -> (u64, u64) {
        self.children_memory.get()
    }

    /// A thread of the process has ended.
    pub fn thread_ended(&self, time: CpuTime) {
        self.ended.set(self.ended.get() + time);
    }

    /// The process loses its memory (to exec, or because it ends).
    pub fn leave_memory(&self, process: &Process) {
        self.memory.set(self.memory(process));
    }

    /// A child was waited for.
    pub fn add_child(&self, child: &Self) {
        self.children.set(self.children.get() + child.ended.get() + child.children.get());
        let (peak, faults) = self.children_memory.get();
        let (of_child, grandchildren) = (child.memory.get(), child.children_memory.get());
        let peak = peak.max(of_child.0).max(grandchildren.0);
        self.children_memory.set((peak, faults + of_child.1 + grandchildren.1));
    }
}
