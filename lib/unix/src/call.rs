//! The way of a system call: number → entry of the table → handler → answer.
//!
//! Every subsystem has a `CALLS` list of [`Entry`]s; together they are the table.
//! A handler gets a [`Cx`] and returns the result, an error, or [`Stop::Block`]
//! after registering with a wait queue; then it is called again, from the start,
//! with [`Cx::is_retry`] true and the thread's `progress` and deadline kept.

use alloc::rc::Rc;

use crate::errno::Errno;
use crate::process::Process;
use crate::signal::OnSignal;
use crate::thread::Thread;
use crate::unix::Unix;
use crate::user::UserMemory;
use crate::wait::WaitQueue;

/// Why a call has no result (yet).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Refused.
    Errno(Errno),
    /// Waits: the handler has registered the thread with the queues that will wake it.
    Block,
    /// Answered otherwise: the thread has ended, or its registers were set
    /// (exec, sigreturn) and `Reply::Resume` is on its way.
    Done,
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// A call's outcome.
pub type Answer = Result<u64, Stop>;

/// How far a call is supported, for `docs/linux.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// As Linux documents it.
    Full,
    /// What is missing, in a phrase.
    Partial(&'static str),
}

/// A row of the table of system calls.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Number on x86-64 (`linux_raw_sys::general::__NR_*`).
    pub number: u32,
    /// Name.
    pub name: &'static str,
    /// Carries it out.
    pub handler: fn(&Cx) -> Answer,
    /// How far it goes.
    pub support: Support,
}

/// Table entry for a fully supported call.
#[must_use]
pub const fn full(number: u32, name: &'static str, handler: fn(&Cx) -> Answer) -> Entry {
    Entry { number, name, handler, support: Support::Full }
}

/// Table entry for a call with something missing.
#[must_use]
pub const fn partial(
    number: u32,
    name: &'static str,
    handler: fn(&Cx) -> Answer,
    missing: &'static str,
) -> Entry {
    Entry { number, name, handler, support: Support::Partial(missing) }
}

/// Numbers below this can have entries.
pub const NUMBERS: usize = 512;

/// The subsystems' lists.
pub const LISTS: &[&[Entry]] = &[
    crate::process::identity::CALLS,
    crate::process::capability::CALLS,
    crate::process::seccomp::CALLS,
    crate::process::groups::CALLS,
    crate::process::clone::CALLS,
    crate::process::program::CALLS,
    crate::process::end::CALLS,
    crate::process::descriptor::CALLS,
    crate::process::wait::CALLS,
    crate::process::limits::CALLS,
    crate::process::namespace::CALLS,
    crate::process::usage::CALLS,
    crate::process::control::CALLS,
    crate::process::schedule::CALLS,
    crate::process::tuning::CALLS,
    crate::process::kcmp::CALLS,
    crate::process::accounting::CALLS,
    crate::process::system::CALLS,
    crate::log::syslog::CALLS,
    crate::signal::action::CALLS,
    crate::signal::frame::CALLS,
    crate::signal::kill::CALLS,
    crate::signal::mask::CALLS,
    crate::signal::take::CALLS,
    crate::time::clock::CALLS,
    crate::time::adjust::CALLS,
    crate::time::sleep::CALLS,
    crate::time::interval::CALLS,
    crate::time::posix::CALLS,
    crate::mm::CALLS,
    crate::mm::futex_vector::CALLS,
    crate::exec::CALLS,
    crate::fs::CALLS,
    crate::fs::ustat::CALLS,
    crate::file::CALLS,
    crate::stream::CALLS,
    crate::stream::inotify::CALLS,
    crate::stream::aio::CALLS,
    crate::tty::CALLS,
    crate::trace::CALLS,
    crate::keys::calls::CALLS,
    crate::keys::control::CALLS,
    crate::ipc::messages::CALLS,
    crate::ipc::posix::CALLS,
    crate::ipc::segments::CALLS,
    crate::ipc::semaphores::CALLS,
];

/// Calls by number.
pub type Table = [Option<Entry>; NUMBERS];

/// All of them.
pub static TABLE: Table = {
    let mut table = [None; NUMBERS];
    let mut list = 0;
    while list < LISTS.len() {
        let mut index = 0;
        while index < LISTS[list].len() {
            let entry = LISTS[list][index];
            assert!(table[entry.number as usize].is_none(), "two entries for one call");
            table[entry.number as usize] = Some(entry);
            index += 1;
        }
        list += 1;
    }
    table
};

/// What a handler works with: the server, and who calls.
pub struct Cx<'a> {
    /// The server.
    pub unix: &'a Unix,
    /// The calling thread.
    pub thread: &'a Rc<Thread>,
    /// Its process.
    pub process: &'a Rc<Process>,
}

impl Cx<'_> {
    /// Argument `index`, 0 to 5.
    #[must_use]
    pub fn arg(&self, index: usize) -> u64 {
        self.thread.arguments.get()[index]
    }

    /// Argument `index` as a C `int`.
    #[must_use]
    pub fn int(&self, index: usize) -> i32 {
        self.arg(index) as i32
    }

    /// Argument `index` as an `unsigned int`.
    #[must_use]
    pub fn uint(&self, index: usize) -> u32 {
        self.arg(index) as u32
    }

    /// The program's memory.
    #[must_use]
    pub fn user(&self) -> UserMemory<'_> {
        UserMemory::new(self.unix, self.process.space())
    }

    /// Whether the call has waited before.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.thread.retried.get()
    }

    /// Registers with `queue`; return the value as the handler's error.
    #[must_use]
    pub fn block_on(&self, queue: &WaitQueue) -> Stop {
        queue.add(self.thread).map_or_else(Stop::Errno, |()| Stop::Block)
    }

    /// The call gives up at this machine time (only the first try counts).
    pub fn set_deadline(&self, at_ns: Option<u64>) {
        if !self.is_retry() {
            self.thread.deadline_ns.set(at_ns);
        }
    }

    /// What a signal's handler does to the call if it waits; to be said before `block_on`.
    pub fn on_signal(&self, on_signal: OnSignal) {
        self.thread.signals.on_signal.set(on_signal);
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn expired(&self) -> bool {
        self.thread.deadline_ns.get().is_some_and(|at| self.unix.machine.now_ns() >= at)
    }

    /// The call has done `progress` of its work and has more to do, but others their turn first; no signal ends it
    /// but `SIGKILL`. Return the value as the handler's error.
    #[must_use]
    pub fn give_way(&self, progress: u64) -> Stop {
        self.set_progress(progress);
        self.on_signal(OnSignal::Never);
        self.thread.deadline_ns.set(Some(self.unix.machine.now_ns()));
        Stop::Block
    }

    /// The call's own count of what it has done in earlier tries.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.thread.progress.get()
    }

    /// Sets it.
    pub fn set_progress(&self, progress: u64) {
        self.thread.progress.set(progress);
    }
}
