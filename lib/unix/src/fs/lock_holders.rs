//! Which processes have record locks, and on which files: for the end of a process.

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use core::cell::RefCell;

use super::inode::Inode;
use crate::process::Pid;

/// A process and the address of an inode.
type Key = (Pid, usize);

/// Processes and the files on which they have locked something.
#[derive(Default)]
pub struct Holders(RefCell<BTreeMap<Key, Weak<Inode>>>);

impl Holders {
    /// `pid` has locked something of `inode`, which keeps what is returned until it has nothing locked any more.
    pub(super) fn add(self: &Rc<Self>, pid: Pid, inode: &Rc<Inode>) -> Held {
        let key = (pid, Rc::as_ptr(inode).addr());
        self.0.borrow_mut().insert(key, Rc::downgrade(inode));
        Held { key, all: self.clone() }
    }

    /// One of the files on which `pid` has locked something; it is not there any more.
    pub(super) fn take(&self, pid: Pid) -> Option<Rc<Inode>> {
        loop {
            let mut all = self.0.borrow_mut();
            let key = all.range((pid, 0)..=(pid, usize::MAX)).next().map(|(key, _)| *key)?;
            if let Some(inode) = all.remove(&key).and_then(|inode| inode.upgrade()) {
                return Some(inode);
            }
        }
    }
}

/// A process has locked something of the file that keeps this.
pub(super) struct Held {
    key: Key,
    all: Rc<Holders>,
}

impl Held {
    /// Which process.
    pub(super) fn pid(&self) -> Pid {
        self.key.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.0.borrow_mut().remove(&self.key);
    }
}
