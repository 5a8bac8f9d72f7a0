//! Processes: the table of ids, families, groups, sessions, credentials, limits; their
//! birth (clone, fork, vfork), end and burial (wait).
//!
//! | file | owns |
//! |---|---|
//! | `table` | all processes and threads, their ids |
//! | `pid`, `numbers` | ids, and what they are called in namespaces |
//! | `birth`, `clone`, `inheritance` | process 1, clone, fork, vfork |
//! | `program` | what exec changes in a process |
//! | `end` | exit, the end of threads and processes, orphans |
//! | `wait` | changes of state told to parents |
//! | `groups` | process groups and sessions |
//! | `identity`, `capability`, `seccomp` | who it is and what it may do |
//! | `descriptor` | pidfd |
//! | `accounting` | records of those that have ended |
//! | `namespace` | what it sees under names |
//! | `user_space`, `user_maps` | namespaces of users |
//! | `processors` | which processor a thread runs on |
//! | `share` | how much of it |
//! | `limits`, `usage`, `control`, `schedule`, `tuning`, `kcmp`, `system` | the remaining calls |

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use self::user_space::Users;
use crate::account::{Charge, User};
use crate::file::Descriptors;
use crate::fs::Place;
use crate::ipc::Ipc;
use crate::mm::AddressSpace;
use crate::signal::{Actions, ProcessSignals};
use crate::thread::Thread;
use crate::time::ProcessTimes;
use crate::trace::Tracee;
use crate::unix::Unix;
use crate::wait::WaitQueue;

pub mod accounting;
pub mod averages;
pub mod birth;
pub mod boost;
pub mod capability;
pub mod clocks;
pub mod clone;
pub mod control;
pub mod descriptor;
pub mod end;
pub mod groups;
pub mod identity;
mod inheritance;
pub mod kcmp;
pub mod limits;
pub mod namespace;
pub mod numbers;
pub mod pid;
pub mod processors;
pub mod program;
pub mod schedule;
pub mod seccomp;
pub mod share;
pub mod system;
pub mod table;
pub mod tuning;
pub mod usage;
pub mod user_maps;
pub mod user_space;
pub mod wait;

pub use birth::first;
pub use clocks::Clocks;
pub use end::{end_by_signal, end_process, end_thread, release_vfork};
pub use groups::is_orphaned;
pub use identity::{Credentials, LookingBy};
pub use numbers::Numbers;
pub use pid::Pid;
pub use table::Processes;
pub use wait::{report_continued, report_stopped};

/// A process: what its threads share.
pub struct Process {
    /// Process id, the first thread's id.
    pub pid: Pid,
    /// What it calls itself.
    pub number: u32,
    /// Parent; process 1 has none.
    pub parent: RefCell<Weak<Process>>,
    /// Its id.
    pub parent_pid: Cell<Pid>,
    /// What it calls its parent.
    pub parent_number: Cell<u32>,
    /// Children, ended ones not yet waited for included.
    pub children: RefCell<Vec<Rc<Process>>>,
    /// Process group.
    pub group: Cell<Pid>,
    /// Session.
    pub session: Cell<Pid>,
    /// Threads that have not ended.
    pub threads: RefCell<Vec<Rc<Thread>>>,
    /// Memory; vfork and `CLONE_VM` share it.
    space: RefCell<Rc<AddressSpace>>,
    /// Open files.
    pub files: RefCell<Rc<Descriptors>>,
    /// Root, working directory, umask.
    pub place: RefCell<Rc<Place>>,
    /// What signals do.
    pub actions: RefCell<Rc<Actions>>,
    /// Signals sent to the process.
    pub signals: ProcessSignals,
    /// Its user, who pays for what it makes.
    user: RefCell<Rc<User>>,
    /// What it costs itself.
    _charge: Option<Charge>,
    /// Who it is.
    pub credentials: RefCell<Credentials>,
    /// Resource limits, (soft, hard), by `RLIMIT_*`.
    pub limits: RefCell<[(u64, u64); 16]>,
    /// Wait status once it has ended.
    pub ended: Cell<Option<u32>>,
    /// Woken when a child changes state.
    pub child_changed: WaitQueue,
    /// Program, as `/proc/self/exe` names it.
    pub executable: RefCell<Vec<u8>>,
    /// Times and interval timers.
    pub times: ProcessTimes,
    /// Further state of this module.
    pub state: State,
}

/// What only this module needs of a process.
#[derive(Default)]
pub struct State {
    /// Signal that tells the parent of the end; 0 is none.
    pub exit_signal: Cell<u32>,
    /// The thread that made it.
    pub maker: Cell<Pid>,
    /// A stop that the parent has not waited for: its signal.
    pub stop_report: Cell<Option<u32>>,
    /// Continued, and the parent has not waited for it.
    pub continue_report: Cell<bool>,
    /// Has replaced its program since it was born.
    pub replaced: Cell<bool>,
    /// A parent waits for this process to end or to replace its program.
    pub vforked: Cell<bool>,
    /// That parent's queue.
    pub vfork_done: WaitQueue,
    /// Who watches for its end (pidfd).
    pub end_watched: WaitQueue,
    /// Name of the first thread when the process ended.
    pub last_name: Cell<[u8; 16]>,
    /// `PR_SET_CHILD_SUBREAPER`.
    pub reaper: Cell<bool>,
    /// `PR_SET_PDEATHSIG`.
    pub death_signal: Cell<u32>,
    /// `PR_SET_DUMPABLE` said no.
    pub not_dumpable: Cell<bool>,
    /// The namespace of users in which somebody must be privileged who looks into it nevertheless: that in which its
    /// program began, or one above in which the program's file is known, if that is not to be read.
    pub seen_from: RefCell<Users>,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privileges: Cell<bool>,
    /// How much rather than others it is killed for memory (`oom_score_adj`).
    pub out_of_memory: Cell<i32>,
    /// `PR_SET_TIMERSLACK`, ns.
    pub timer_slack: Cell<u64>,
    /// The same when it was born, to which it can be set back.
    pub first_slack: Cell<u64>,
    /// `PR_SET_THP_DISABLE`.
    pub no_huge_pages: Cell<bool>,
    /// `personality`.
    pub personality: Cell<u32>,
    /// How its first thread asked to be scheduled when the process ended.
    pub last_tuning: Cell<share::Tuning>,
    /// Has changed semaphores that its end changes back.
    pub undoes: Cell<bool>,
    /// Its own objects of IPC, if not those of most.
    pub ipc: RefCell<Option<Rc<Ipc>>>,
    /// Its namespace of process numbers, if not the first.
    pub numbers: Option<Rc<Numbers>>,
    /// That into which its children are born.
    pub numbers_of_children: RefCell<Option<Rc<Numbers>>>,
    /// Its namespace of clocks, if not the first.
    pub clocks: RefCell<Option<Rc<Clocks>>>,
    /// That in which its children are, and its next program.
    pub clocks_of_children: RefCell<Option<Rc<Clocks>>>,
    /// Has ended, which nobody is told before all of its namespace have.
    pub lingers: Cell<bool>,
    /// The system's names, as it sees them, if it sees others than process 1.
    pub names: RefCell<Option<Rc<namespace::Names>>>,
    /// Its mounts; none are those of process 1.
    pub mounts: RefCell<Option<Rc<crate::fs::MountSpace>>>,
    /// Keyrings.
    pub keys: crate::keys::Held,
    /// The threads it traces.
    pub tracees: RefCell<Vec<Rc<Tracee>>>,
    /// Priority of input and output.
    pub io_priority: Cell<u32>,
}

impl Process {
    /// Its memory.
    #[must_use]
    pub fn space(&self) -> Rc<AddressSpace> {
        self.space.borrow().clone()
    }

    /// It has another parent from now on.
    pub(crate) fn set_parent(&self, parent: &Rc<Self>) {
        *self.parent.borrow_mut() = Rc::downgrade(parent);
        self.parent_pid.set(parent.pid);
        self.parent_number.set(self.sees(parent.pid));
    }

    /// Gives it other memory (exec); the old one is returned.
    pub fn set_space(&self, space: Rc<AddressSpace>) -> Rc<AddressSpace> {
        self.space.replace(space)
    }

    /// Its (real) user.
    #[must_use]
    pub fn user(&self) -> Rc<User> {
        self.user.borrow().clone()
    }

    /// It belongs to another user from now on.
    fn set_user(&self, unix: &Unix, uid: u32) {
        if self.user.borrow().uid != uid {
            let old = self.user.replace(unix.accounts.user(uid));
            drop(old);
        }
    }

    /// A soft limit, by `RLIMIT_*`.
    #[must_use]
    pub fn limit(&self, which: u32) -> u64 {
        self.limits.borrow().get(which as usize).map_or(limits::UNLIMITED, |limit| limit.0)
    }

    /// The name that `/proc` and logs show: that of the first thread.
    #[must_use]
    pub fn name(&self) -> [u8; 16] {
        match self.threads.borrow().first() {
            Some(thread) => thread.name.get(),
            None => self.state.last_name.get(),
        }
    }

    /// The state letter of `/proc`: running, sleeping, stopped, ended.
    #[must_use]
    pub fn state_letter(&self) -> char {
        use crate::thread::Doing;
        if self.ended.get().is_some() {
            return 'Z';
        }
        if self.signals.stopped.get().is_some() {
            return 'T';
        }
        let threads = self.threads.borrow();
        if threads.iter().any(|thread| thread.doing.get() == Doing::Traced) {
            return 't';
        }
        let waits = |thread: &Rc<Thread>| {
            thread.doing.get() == Doing::Call && thread.retried.get() && !thread.queued.get()
        };
        if threads.iter().all(waits) { 'S' } else { 'R' }
    }
}
