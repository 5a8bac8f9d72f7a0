//! Processes: the table of ids, families, groups, sessions, credentials, limits; their
//! birth (clone, fork, vfork), end and burial (wait).

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::call::Entry;
use crate::errno::Errno;
use crate::file::Descriptors;
use crate::fs::Place;
use crate::mm::AddressSpace;
use crate::signal::{Actions, ProcessSignals};
use crate::thread::Thread;
use crate::time::ProcessTimes;
use crate::unix::Unix;
use crate::wait::WaitQueue;

mod identity;
pub mod program;
mod table;

pub use identity::Credentials;
pub use table::Processes;

/// The calls this module carries out.
pub const CALLS: &[Entry] = identity::CALLS;

/// A process: what its threads share.
pub struct Process {
    /// Process id, the first thread's id.
    pub pid: u32,
    /// Parent; process 1 has none.
    pub parent: RefCell<Weak<Process>>,
    /// Its id; 0 is none.
    pub parent_pid: Cell<u32>,
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
    pub state: State,
}

/// What only the life of processes needs.
#[derive(Default)]
pub struct State {}

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

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// Limits of process 1, (soft, hard), by `RLIMIT_*`.
fn first_limits(unix: &Unix) -> [(u64, u64); 16] {
    use linux_raw_sys::general as l;
    let mut limits = [(UNLIMITED, UNLIMITED); 16];
    let processes = (unix.memory.total() as u64 / 64).clamp(64, 4096);
    limits[l::RLIMIT_STACK as usize].0 = 8 << 20;
    limits[l::RLIMIT_CORE as usize].0 = 0;
    limits[l::RLIMIT_NPROC as usize] = (processes, processes);
    limits[l::RLIMIT_NOFILE as usize] = (1024, 4096);
    limits[l::RLIMIT_MEMLOCK as usize] = (8 << 20, 8 << 20);
    limits[l::RLIMIT_SIGPENDING as usize] = (processes, processes);
    limits[l::RLIMIT_MSGQUEUE as usize] = (819_200, 819_200);
    limits[l::RLIMIT_NICE as usize] = (0, 0);
    limits[l::RLIMIT_RTPRIO as usize] = (0, 0);
    limits
}

/// Makes process 1, with an empty address space. It does not run before something (exec)
/// gives it registers and an answer.
///
/// # Errors
/// When the machine has no space or thread for it.
pub fn first(unix: &Unix) -> Result<Rc<Thread>, Errno> {
    let pid = unix.processes.allocate_id()?;
    let process = Rc::new(Process {
        pid,
        parent: RefCell::default(),
        parent_pid: Cell::new(0),
        children: RefCell::default(),
        group: Cell::new(pid),
        session: Cell::new(pid),
        threads: RefCell::default(),
        space: RefCell::new(AddressSpace::new(unix)?),
        files: RefCell::default(),
        place: RefCell::new(Rc::new(Place::first(unix))),
        actions: RefCell::default(),
        signals: ProcessSignals::default(),
        credentials: RefCell::default(),
        limits: RefCell::new(first_limits(unix)),
        ended: Cell::new(None),
        child_changed: WaitQueue::default(),
        executable: RefCell::default(),
        times: ProcessTimes::default(),
        state: State::default(),
    });
    let thread = Thread::new(pid, process.clone(), unix.run_queue.clone());
    thread.machine.set(unix.machine.create_thread(process.space().machine())?);
    unix.machine.bind(thread.machine.get(), Some(&thread));
    process.threads.borrow_mut().push(thread.clone());
    unix.processes.by_pid.borrow_mut().insert(pid, process);
    unix.processes.by_tid.borrow_mut().insert(pid, thread.clone());
    Ok(thread)
}
