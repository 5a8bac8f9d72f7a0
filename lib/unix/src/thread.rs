//! A thread of a program: what it is doing, and how it is woken.
//!
//! `process` owns its life; `signal` its mask and pending signals; `wait` and `call`
//! the fields that say what it waits for.

use alloc::boxed::Box;
use alloc::rc::Rc;
use core::any::Any;
use core::cell::{Cell, OnceCell, RefCell};

use crate::account::Charge;
use crate::call::{TABLE, Table};
use crate::machine::{Access, MachineThread, Reply, Urgency};
use crate::mm::policy::Policy;
use crate::process::boost::Credit;
use crate::process::processors::Whereabouts;
use crate::process::seccomp::Filter;
use crate::process::share::Tuning;
use crate::process::{Pid, Process};
use linux_raw_sys::general::SIGKILL;

use crate::signal::ThreadSignals;
use crate::signal::set::bit;
use crate::time::CpuTime;
use crate::trace::Tracee;
use crate::wait::{RunQueue, Seat};

/// What a thread is doing, as the server sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Runs its program.
    Running,
    /// Has made a system call that is not answered; it waits in queues or is queued to be tried.
    Call,
    /// Has raised a fault or exception that is not answered.
    Fault,
    /// Stopped by the server outside any call (to get a signal, or by job control).
    Stopped,
    /// Stopped for its tracer ([`crate::trace`]).
    Traced,
    /// Has ended; only its entry may still be there.
    Ended,
}

/// A thread.
pub struct Thread {
    /// Thread id.
    pub tid: Cell<Pid>,
    /// What it calls itself.
    pub own_tid: Cell<u32>,
    /// Its process.
    pub process: Rc<Process>,
    /// The machine's thread.
    pub machine: Cell<MachineThread>,
    /// What it is doing.
    pub doing: Cell<Doing>,
    /// The call it is in: number and arguments.
    pub number: Cell<u32>,
    /// Where its calls are found ([`crate::process::seccomp`]).
    pub table: Cell<&'static Table>,
    /// The newest of the filters that are asked about its calls.
    pub filter: RefCell<Option<Rc<Filter>>>,
    /// A tracer that has gone was asked about the call.
    pub asked: Cell<bool>,
    /// Arguments of the call.
    pub arguments: Cell<[u64; 6]>,

    // --- A call that waits. ---
    /// Counts the calls (and tries); an entry in a wait queue is void when it differs.
    pub wait_serial: Cell<u64>,
    /// Where wait queues find it, once it has waited in one.
    pub seat: OnceCell<Rc<Seat>>,
    /// The call has been tried before.
    pub retried: Cell<bool>,
    /// What the call has already done (bytes, objects), as the call itself counts.
    pub progress: Cell<u64>,
    /// What the call holds from one try to the next.
    pub held: RefCell<Option<Box<dyn Any>>>,
    /// The alarm set for that.
    pub alarm: Cell<Option<crate::time::Key>>,
    /// When the call gives up, in machine nanoseconds; set at its first try.
    pub deadline_ns: Cell<Option<u64>>,
    /// In the run queue.
    pub queued: Cell<bool>,
    /// The run queue of the server.
    pub run_queue: Rc<RunQueue>,
    /// The answer to give when the server next gives answers.
    pub reply: RefCell<Option<Reply>>,

    /// Signals.
    pub signals: ThreadSignals,
    /// `set_tid_address`: cleared and woken when the thread ends; 0 is none.
    pub clear_child_tid: Cell<u64>,
    /// `set_robust_list`: head of the list of held futexes.
    pub robust_list: Cell<u64>,
    /// Name (`prctl(PR_SET_NAME)`, `comm`), padded with zeroes.
    pub name: Cell<[u8; 16]>,
    /// The processors on which it may run (`sched_setaffinity`), a bit for each.
    pub affinity: Cell<u64>,
    /// Where it runs.
    pub whereabouts: Whereabouts,
    /// On which node it wants its memory.
    pub memory_policy: Cell<Policy>,
    /// How it asks to be scheduled.
    pub tuning: Cell<Tuning>,
    /// How urgent that makes it.
    pub urgency: Cell<Urgency>,
    /// What it may still have before others ([`crate::process::boost`]).
    pub credit: Credit,
    /// The lender knows it ([`crate::process::share`]).
    pub is_listed: Cell<bool>,
    /// The access of the fault it is in.
    pub fault_access: Cell<Access>,
    /// Who traces it, and how far.
    pub trace: RefCell<Option<Rc<Tracee>>>,
    /// What it costs its user.
    pub charges: RefCell<Option<[Charge; 2]>>,
    /// What machine threads that it had before have used (exec gives it another one).
    pub earlier: Cell<CpuTime>,
}

impl Thread {
    /// A thread that belongs to `process` and does not run yet.
    #[must_use]
    pub fn new(tid: Pid, process: Rc<Process>, run_queue: Rc<RunQueue>) -> Rc<Self> {
        Rc::new(Self {
            own_tid: Cell::new(process.sees(tid)),
            tid: Cell::new(tid),
            process,
            machine: Cell::default(),
            doing: Cell::new(Doing::Stopped),
            number: Cell::new(0),
            table: Cell::new(&TABLE),
            filter: RefCell::default(),
            asked: Cell::default(),
            arguments: Cell::default(),
            wait_serial: Cell::new(0),
            seat: OnceCell::new(),
            retried: Cell::new(false),
            progress: Cell::new(0),
            held: RefCell::new(None),
            alarm: Cell::new(None),
            deadline_ns: Cell::new(None),
            queued: Cell::new(false),
            run_queue,
            reply: RefCell::new(None),
            signals: ThreadSignals::default(),
            clear_child_tid: Cell::new(0),
            robust_list: Cell::new(0),
            name: Cell::default(),
            affinity: Cell::new(!0),
            whereabouts: Whereabouts::default(),
            memory_policy: Cell::default(),
            tuning: Cell::default(),
            urgency: Cell::default(),
            credit: Credit::default(),
            is_listed: Cell::default(),
            fault_access: Cell::new(Access::empty()),
            trace: RefCell::default(),
            charges: RefCell::default(),
            earlier: Cell::default(),
        })
    }

    /// The thread's process.
    #[must_use]
    pub fn process(&self) -> Rc<Process> {
        self.process.clone()
    }

    /// Whether somebody traces it.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.trace.borrow().is_some()
    }

    /// It, as its tracer knows it.
    #[must_use]
    pub fn tracee(&self) -> Option<Rc<Tracee>> {
        self.trace.borrow().clone()
    }

    /// Whether it is to end by SIGKILL.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        let pending = self.signals.pending.set() | self.process.signals.pending.set();
        pending & bit(SIGKILL) != 0
    }

    /// Where its calls are found when nobody traces it.
    #[must_use]
    pub fn own_table(&self) -> &'static Table {
        self.trace.borrow().as_ref().map_or(self.table.get(), |tracee| tracee.own_table().get())
    }

    /// Its calls are found there from now on.
    pub fn set_own_table(&self, table: &'static Table) {
        match &*self.trace.borrow() {
            Some(tracee) => tracee.own_table().set(table),
            None => self.table.set(table),
        }
    }

    /// Whether it is in a call that is not answered, also while it is stopped there for its tracer.
    #[must_use]
    pub fn is_in_call(&self) -> bool {
        match self.doing.get() {
            Doing::Call => true,
            Doing::Traced => self.trace.borrow().as_ref().is_some_and(|tracee| tracee.is_in_call()),
            _ => false,
        }
    }

    /// Has the call that waits under `serial` tried again, by who is stopped there when it is let go
    /// on; whether it still waited.
    pub fn wake(self: &Rc<Self>, serial: u64) -> bool {
        let waits = self.wait_serial.get() == serial && self.is_in_call();
        if waits {
            self.wait_serial.set(serial + 1);
            self.run_queue.push(self);
        }
        waits
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.get() {
            seat.leave();
        }
    }
}
