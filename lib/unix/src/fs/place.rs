//! Where a process is in the tree: its root, its working directory, its umask. Threads
//! and `CLONE_FS` children share it.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use super::inode::Inode;
use crate::unix::Unix;

/// A process's root, working directory and umask.
#[derive(Clone)]
pub struct Place {
    root: RefCell<Rc<Inode>>,
    directory: RefCell<Rc<Inode>>,
    /// Permissions that new files do not get.
    pub umask: Cell<u32>,
}

impl Place {
    /// The root of everything, for process 1.
    #[must_use]
    pub fn first(unix: &Unix) -> Self {
        let root = unix.fs.root();
        Self {
            root: RefCell::new(root.clone()),
            directory: RefCell::new(root),
            umask: Cell::new(0o022),
        }
    }

    /// What `/` is.
    #[must_use]
    pub fn root(&self) -> Rc<Inode> {
        self.root.borrow().clone()
    }

    /// What relative paths begin at.
    #[must_use]
    pub fn directory(&self) -> Rc<Inode> {
        self.directory.borrow().clone()
    }

    /// `chroot`.
    pub fn set_root(&self, root: Rc<Inode>) {
        drop(self.root.replace(root));
    }

    /// `chdir`.
    pub fn set_directory(&self, directory: Rc<Inode>) {
        drop(self.directory.replace(directory));
    }
}
