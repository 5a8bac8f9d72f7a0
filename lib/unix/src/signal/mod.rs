//! Signals: sending, masks, actions, frames on the program's stack, the return from
//! them, and what an interrupted call does.
//!
//! A signal is queued with a thread or a process ([`send`]); one thread that may take it
//! is told ([`ThreadSignals::is_due`]) and takes it on its way back to its program
//! ([`deliver`]). A thread that runs meanwhile is stopped by the machine; one that
//! waits in a call tries the call once more and, if it would wait again, is interrupted.
//! Nothing is delivered while another module is at work: threads go through the run queue.

use alloc::rc::Rc;
use core::cell::Cell;

use linux_raw_sys::general as l;

use crate::process::Process;
use crate::thread::Thread;
use crate::wait::WaitQueue;

pub mod action;
pub mod deliver;
pub mod exception;
pub mod frame;
pub mod info;
pub mod kill;
pub mod mask;
pub mod queue;
pub mod send;
pub mod set;
pub mod take;
pub mod vector;

pub use action::{Action, Actions};
pub use deliver::{go_on, interrupt_call, leave_call};
pub use exception::{bad_access, exception};
pub use info::Info;
pub use mask::{set_mask, set_temporary_mask, set_temporary_mask_from};
pub use send::{send, send_group, send_thread};
pub use take::{pending_for, take};

/// The only size of a mask that calls accept.
pub const MASK_BYTES: u64 = 8;

/// What a signal with a handler does to a call that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnSignal {
    /// It ends with `EINTR`, or starts again after the handler if that has `SA_RESTART`.
    #[default]
    Restart,
    /// It ends with `EINTR`.
    Return,
    /// It ends with [`crate::Cx::progress`] as its result if that is not 0, else as `Restart`.
    Partial,
    /// It starts again after the handler, whatever that has.
    Again,
    /// Only the process's end ends it.
    Never,
}

/// The alternate stack for handlers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct AltStack {
    pub base: u64,
    pub size: u64,
    /// `SS_DISABLE`, `SS_AUTODISARM`.
    pub flags: u32,
}

/// What the processor said about a fault or exception.
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Trap {
    pub vector: u64,
    pub error: u64,
    pub address: u64,
}

/// No alternate stack.
pub const NO_STACK: AltStack = AltStack { base: 0, size: 0, flags: l::SS_DISABLE };

/// A signal is due, or the process ends.
const DUE: u8 = 1;
/// A mask is to be put back when the call ends.
const RESTORE: u8 = 2;

/// A thread's signals.
pub struct ThreadSignals {
    due: Cell<u8>,
    /// Blocked signals.
    pub blocked: Cell<u64>,
    /// Signals sent to this thread.
    pub pending: queue::Queue,
    /// The mask to put back after `sigsuspend`, `ppoll` and the like.
    saved: Cell<u64>,
    /// Where handlers with `SA_ONSTACK` run.
    pub stack: Cell<AltStack>,
    /// What a signal does to the call that waits; each call starts with the default.
    pub on_signal: Cell<OnSignal>,
    /// About the last fault or exception, for the frame.
    pub trap: Cell<Trap>,
}

impl Default for ThreadSignals {
    fn default() -> Self {
        Self {
            due: Cell::new(0),
            blocked: Cell::new(0),
            pending: queue::Queue::default(),
            saved: Cell::new(0),
            stack: Cell::new(NO_STACK),
            on_signal: Cell::default(),
            trap: Cell::default(),
        }
    }
}

impl ThreadSignals {
    /// Whether the thread has something to do here before it returns to its program: a
    /// signal to take, a mask to put back. One look at a call's exit.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due.get() != 0
    }

    /// Whether a signal is there that may interrupt a call.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        self.due.get() & DUE != 0
    }

    fn mark(&self, flag: u8, on: bool) {
        let others = self.due.get() & !flag;
        self.due.set(if on { others | flag } else { others });
    }
}

/// A process's signals.
#[derive(Default)]
pub struct ProcessSignals {
    /// Signals sent to the process; any thread may take them.
    pub pending: queue::Queue,
    /// Woken when a signal is queued with the process or one of its threads (signalfd,
    /// sigtimedwait).
    pub arrived: WaitQueue,
    /// The signal that has stopped the process; no thread of it runs.
    pub stopped: Cell<Option<u32>>,
    /// Process 1: what it has no handler for does not reach it.
    pub protected: Cell<bool>,
}

/// What `thread` could take now.
fn deliverable(thread: &Thread) -> u64 {
    (thread.signals.pending.set() | thread.process.signals.pending.set())
        & (!thread.signals.blocked.get() | set::UNSTOPPABLE)
}

/// The signals or masks of a process changed: which threads have a signal due?
pub fn recalculate(process: &Process) {
    for thread in process.threads.borrow().iter() {
        recalculate_thread(thread);
    }
}

/// As [`recalculate`], for one thread.
pub fn recalculate_thread(thread: &Rc<Thread>) {
    let traced = || thread.tracee().is_some_and(|tracee| tracee.is_due());
    thread.signals.mark(DUE, deliverable(thread) != 0 || traced());
}
