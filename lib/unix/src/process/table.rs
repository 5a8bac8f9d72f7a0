//! The table of processes and threads, and their ids.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use super::namespace::Names;
use super::{Numbers, Pid, Process};
use crate::errno::Errno;
use crate::file::Open;
use crate::mm::AddressSpace;
use crate::thread::Thread;
use crate::unix::Unix;

/// Ids are below this.
pub const PID_MAX: u32 = 32768;
/// Ids that come around again start here, as on Linux.
pub(super) const RESERVED: u32 = 300;

/// All processes and threads.
#[derive(Default)]
pub struct Processes {
    /// Processes by id, ended ones not yet waited for included.
    pub by_pid: RefCell<BTreeMap<Pid, Rc<Process>>>,
    /// Threads by id.
    pub by_tid: RefCell<BTreeMap<Pid, Rc<Thread>>>,
    /// How many processes have an id as their group's, and how many as their session's, together.
    memberships: RefCell<BTreeMap<Pid, u32>>,
    /// The namespaces in which ids are known that are known in others than the first: each one's lowest.
    pub(super) homes: RefCell<BTreeMap<Pid, Rc<Numbers>>>,
    last: Cell<u32>,
    /// All ids have been given once.
    again: Cell<bool>,
    /// Processes and threads born so far (`/proc/stat`).
    pub births: Cell<u64>,
    /// The system's names, as process 1 and most others see them.
    pub names: Rc<Names>,
    /// Namespaces made so far.
    pub namespaces: Cell<u64>,
    /// Where each process is recorded when it ends.
    pub(super) accounting: RefCell<Option<Rc<Open>>>,
    /// The memory of ended processes: none.
    nowhere: RefCell<Option<Rc<AddressSpace>>>,
}

impl Drop for Processes {
    /// Processes and their threads hold each other.
    fn drop(&mut self) {
        for process in self.by_pid.take().into_values() {
            drop(process.threads.take());
        }
    }
}

impl Processes {
    /// The process with this id, ended ones not yet waited for included.
    #[must_use]
    pub fn process(&self, pid: Pid) -> Option<Rc<Process>> {
        self.by_pid.borrow().get(&pid).cloned()
    }

    /// The thread with this id.
    #[must_use]
    pub fn thread(&self, tid: Pid) -> Option<Rc<Thread>> {
        self.by_tid.borrow().get(&tid).cloned()
    }

    /// An id that no process, thread, group or session has.
    ///
    /// # Errors
    /// `EAGAIN` if all are in use.
    pub fn allocate_id(&self) -> Result<Pid, Errno> {
        let mut id = self.last.get();
        for _ in 0..PID_MAX {
            if id + 1 < PID_MAX {
                id += 1;
            } else {
                id = RESERVED;
                self.again.set(true);
            }
            // Ids given for the first time are free.
            let pid = Pid::from_first(id);
            if !self.again.get() || !self.in_use(pid) {
                self.last.set(id);
                return Ok(pid);
            }
        }
        Err(Errno::EAGAIN)
    }

    /// The id that has this number in the first namespace, if it is free.
    ///
    /// # Errors
    /// `EEXIST`, `EINVAL`.
    pub(super) fn take_id(&self, number: u32) -> Result<Pid, Errno> {
        let pid = Pid::from_first(number);
        if number == 0 || number >= PID_MAX {
            return Err(Errno::EINVAL);
        }
        // It may be met again by who counts up.
        self.again.set(true);
        if self.in_use(pid) { Err(Errno::EEXIST) } else { Ok(pid) }
    }

    /// Whether a process, thread, group or session has it.
    #[must_use]
    pub fn in_use(&self, id: Pid) -> bool {
        self.by_pid.borrow().contains_key(&id)
            || self.by_tid.borrow().contains_key(&id)
            || self.memberships.borrow().contains_key(&id)
    }

    /// `process` exists from now on, in its group and session.
    pub(super) fn enter(&self, process: &Rc<Process>) {
        self.by_pid.borrow_mut().insert(process.pid, process.clone());
        self.join(process.group.get());
        self.join(process.session.get());
    }

    /// It does not any more.
    pub(super) fn bury(&self, process: &Process) {
        let gone = self.by_pid.borrow_mut().remove(&process.pid);
        self.leave(process.group.get());
        self.leave(process.session.get());
        drop(gone);
    }

    /// A process has got `new` in the place of `old`, as its group or session.
    pub(super) fn moved(&self, old: Pid, new: Pid) {
        self.join(new);
        self.leave(old);
    }

    fn join(&self, id: Pid) {
        *self.memberships.borrow_mut().entry(id).or_default() += 1;
    }

    fn leave(&self, id: Pid) {
        if let Entry::Occupied(mut count) = self.memberships.borrow_mut().entry(id) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// The empty memory that ended processes have. (Without any more spaces, `process` keeps
    /// its own, empty.)
    #[must_use]
    pub fn nowhere(&self, unix: &Unix, process: &Process) -> Rc<AddressSpace> {
        if let Some(space) = self.nowhere.borrow().as_ref() {
            return space.clone();
        }
        let Ok(space) = AddressSpace::new(unix, &unix.accounts.user(0)) else {
            process.space().retire(unix);
            return process.space();
        };
        space.retire(unix);
        self.nowhere.replace(Some(space.clone()));
        space
    }

    /// The next id is the one behind `id`, if it is free.
    ///
    /// # Errors
    /// `EINVAL` for what is no id.
    pub fn set_last_id(&self, id: u64) -> Result<(), Errno> {
        let id = u32::try_from(id).ok().filter(|id| *id < PID_MAX).ok_or(Errno::EINVAL)?;
        // Ids may be given a second time from here on.
        self.again.set(true);
        self.last.set(id);
        Ok(())
    }

    /// The id given last (`/proc/loadavg`).
    #[must_use]
    pub fn last_id(&self) -> u32 {
        self.last.get()
    }
}
