//! ptrace: threads that another process stops, looks into and lets go on.
//!
//! A traced thread has a [`Tracee`]. At certain points ([`Why`]) it stops ([`stop`]): its state is
//! [`Doing::Traced`], and what it was about to do is kept until its tracer lets it go on
//! ([`resume`]). Threads that nobody traces pay nothing: the points are on the way of signals, and a
//! traced thread has a table of calls of its own ([`system_calls::TRACED`]), as a strict one or one with filters has
//! ([`crate::process::seccomp`]).
//!
//! | file | owns |
//! |---|---|
//! | `attach` | who traces whom; births and ends |
//! | `requests` | the call `ptrace` |
//! | `registers`, `memory` | what a tracer reads and writes |
//! | `stops` | stopping and going on |
//! | `system_calls` | the way of a traced thread's calls |

use alloc::collections::VecDeque;
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;

use crate::account::Charge;
use crate::call::Table;
use crate::machine::Reply;
use crate::process::{Pid, Process};
use crate::signal::Info;
use crate::thread::{Doing, Thread};

pub mod attach;
pub(crate) mod memory;
pub(crate) mod registers;
pub mod requests;
pub mod stops;
pub mod system_calls;

pub use attach::{born, thread_ended, tracer_ended};
pub use registers::TRAP_FLAG;
pub use requests::CALLS;
pub use stops::{continued, dies, ends, executed, group_stop, killed, stop};

/// Why a traced thread stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Before a signal is delivered.
    Signal(Info),
    /// Before a call.
    Entry,
    /// After a call.
    Exit,
    /// One of `PTRACE_EVENT_*`, with its message.
    Event(u32, u64),
    /// A stop signal has stopped its process.
    Group(u32),
    /// `PTRACE_INTERRUPT`, or the birth of a thread whose tracer has seized it.
    Interrupt,
}

impl Why {
    /// Whether a call comes next, whose number and arguments can be changed.
    fn is_before_call(self) -> bool {
        matches!(self, Self::Entry | Self::Event(p::PTRACE_EVENT_SECCOMP, _))
    }
}

/// What its tracer has a thread do.
pub enum Granted {
    /// It dies of this signal.
    Death(u32),
    /// It stops.
    Stop(Why),
    /// It takes this signal, if any, and no other without asking.
    Signal(Option<Info>),
}

/// How far a traced thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// To the next signal or event.
    #[default]
    Continue,
    /// Also to the beginning or the end of the next call.
    Calls,
    /// One instruction.
    Step,
}

/// Where a traced thread is in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// In none, or its tracer has been told that the call was broken off.
    #[default]
    None,
    /// Stopped before it.
    Entry,
    /// The call is carried out.
    Inside,
    /// A signal has broken it off, and the tracer is told of its end.
    Broken,
    /// It begins again.
    Again,
    /// Stopped before it begins again.
    EntryAgain,
}

/// A traced thread, as its tracer knows it.
pub struct Tracee {
    /// What its tracer calls it.
    pub tid: Cell<u32>,
    /// It, while it is there.
    thread: Weak<Thread>,
    /// Its process.
    pub process: Weak<Process>,
    /// Who traces it.
    pub tracer: Weak<Process>,
    /// Whoever made it one might trace anybody: it may get rights from files. The tracer's rights of today
    /// do not count: it may be a set-id program that its user runs.
    privileged: Cell<bool>,
    /// By `PTRACE_SEIZE`.
    seized: bool,
    /// `PTRACE_O_*`.
    options: Cell<u32>,
    mode: Cell<Mode>,
    phase: Cell<Phase>,
    /// The stop it is in.
    stopped: Cell<Option<Why>>,
    /// The wait status that its tracer has not been told yet: of a stop, or of its end.
    report: Cell<Option<u32>>,
    /// It has ended.
    ended: Cell<bool>,
    /// What it goes on with.
    goes_on: RefCell<(Doing, Option<Reply>)>,
    /// Stops that are still to come before it goes on.
    next: RefCell<VecDeque<Why>>,
    /// A signal that its tracer lets it have.
    deliver: Cell<Option<Info>>,
    /// It is to stop soon, for this.
    wanted: Cell<Option<Why>>,
    /// `PTRACE_GETEVENTMSG`.
    message: Cell<u64>,
    /// The number of the call it is or was in, -1 outside.
    call: Cell<u64>,
    /// What is shown as the result of the call it is in.
    result: Cell<u64>,
    /// The child it waits for in `vfork`.
    vforked: Cell<u64>,
    /// The signal it dies of when it goes on.
    death: Cell<Option<u32>>,
    /// Has stopped for its end.
    told_end: Cell<bool>,
    /// A filter has asked the tracer about the call it is in.
    asked: Cell<bool>,
    /// Its registers are set while it is in a call.
    touched: Cell<bool>,
    /// The trap flag is set on the tracer's behalf.
    stepping: Cell<bool>,
    /// `PTRACE_LISTEN`: stays stopped, and tells when its process is continued.
    listens: Cell<bool>,
    /// Its process was continued while it was stopped: it stops once more to tell.
    tells_again: Cell<bool>,
    /// Its table of calls when nobody traces it.
    inner: Cell<&'static Table>,
    /// What was written to the debug registers; none is enabled.
    debug: Cell<[u64; 8]>,
    /// What it costs the tracer's user.
    _charge: Charge,
}

impl Tracee {
    /// The thread.
    #[must_use]
    pub fn thread(&self) -> Option<Rc<Thread>> {
        self.thread.upgrade()
    }

    /// Whether this process traces it.
    #[must_use]
    pub fn is_of(&self, process: &Process) -> bool {
        core::ptr::eq(self.tracer.as_ptr(), process)
    }

    /// The wait status that has not been told yet.
    #[must_use]
    pub fn report(&self) -> Option<u32> {
        self.report.get()
    }

    /// Whether its end is that status.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Whether what it goes on with is a call.
    pub(crate) fn is_in_call(&self) -> bool {
        self.goes_on.borrow().0 == Doing::Call
    }

    /// Where the calls of its thread are found when nobody traces it.
    pub(crate) fn own_table(&self) -> &Cell<&'static Table> {
        &self.inner
    }

    fn has(&self, option: u32) -> bool {
        self.options.get() & option != 0
    }

    /// What its thread has to do before anything else.
    pub fn granted(&self) -> Granted {
        match (self.death.take(), self.wanted.take()) {
            (Some(signal), _) => Granted::Death(signal),
            (None, Some(why)) => Granted::Stop(why),
            (None, None) => Granted::Signal(self.deliver.take()),
        }
    }

    /// Whether it has something to do before it returns to its program.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.wanted.get().is_some() || self.deliver.get().is_some() || self.death.get().is_some()
    }

    /// What `wait` tells of a stop, without the low byte.
    fn code(&self, why: Why) -> u32 {
        let interrupt = p::PTRACE_EVENT_STOP << 8;
        match why {
            Why::Signal(info) => info.signal,
            Why::Entry | Why::Exit if self.has(p::PTRACE_O_TRACESYSGOOD) => l::SIGTRAP | 0x80,
            Why::Entry | Why::Exit => l::SIGTRAP,
            Why::Event(event, _) => l::SIGTRAP | event << 8,
            Why::Group(signal) if self.seized => signal | interrupt,
            Why::Group(signal) => signal,
            Why::Interrupt => l::SIGTRAP | interrupt,
        }
    }
}

/// Whether somebody traces a thread of `process`.
#[must_use]
pub fn is_traced(process: &Process) -> bool {
    process.threads.borrow().iter().any(|thread| thread.is_traced())
}

/// The id of who traces `thread`.
#[must_use]
pub fn tracer_of(thread: &Thread) -> Pid {
    let tracer = thread.tracee().and_then(|tracee| tracee.tracer.upgrade());
    tracer.map_or(Pid::NONE, |tracer| tracer.pid)
}
