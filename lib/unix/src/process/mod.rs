//! Processes: the table of ids, families, groups, sessions, credentials, limits; their
//! birth (clone, fork, vfork), end and burial (wait).

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::call::Entry;
use crate::file::Descriptors;
use crate::fs::Place;
use crate::mm::AddressSpace;
use crate::signal::{Actions, ProcessSignals};
use crate::thread::Thread;
use crate::time::ProcessTimes;
use crate::wait::WaitQueue;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// User and group identities.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Credentials {
    pub uid: u32,
    pub euid: u32,
    pub suid: u32,
    pub fsuid: u32,
    pub gid: u32,
    pub egid: u32,
    pub sgid: u32,
    pub fsgid: u32,
    pub groups: Rc<Vec<u32>>,
}

/// A process: what its threads share.
pub struct Process {
    /// Process id, the first thread's id.
    pub pid: u32,
    /// Parent; process 1 has none.
    pub parent: RefCell<Weak<Process>>,
    /// Children, ended ones not yet waited for included.
    pub children: RefCell<Vec<Rc<Process>>>,
    /// Process group.
    pub group: Cell<u32>,
    /// Session.
    pub session: Cell<u32>,
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
    pub state: life::State,
}

impl Process {
    /// Its memory.
    #[must_use]
    pub fn space(&self) -> Rc<AddressSpace> {
        self.space.borrow().clone()
    }

    /// Gives it other memory (exec); the old one is returned.
    pub fn set_space(&self, space: Rc<AddressSpace>) -> Rc<AddressSpace> {
        self.space.replace(space)
    }
}

pub mod life {
    //! What only the life of processes needs.

    /// Further state of a process.
    #[derive(Default)]
    pub struct State {}
}

/// All processes and threads.
#[derive(Default)]
pub struct Processes {
    /// Processes by id, ended ones not yet waited for included.
    pub by_pid: RefCell<BTreeMap<u32, Rc<Process>>>,
    /// Threads by id.
    pub by_tid: RefCell<BTreeMap<u32, Rc<Thread>>>,
}
