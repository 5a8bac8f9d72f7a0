//! Where a process is in the tree: its root, its working directory, its umask. Threads
//! and `CLONE_FS` children share it.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use super::directory::Directory;
use super::inode::Inode;
use super::spot::Spot;
use super::{path, permission, walk};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::unix::Unix;

/// A process's root, working directory and umask.
#[derive(Clone)]
pub struct Place {
    root: RefCell<Spot>,
    directory: RefCell<Spot>,
    /// Permissions that new files do not get.
    pub umask: Cell<u32>,
}

impl Place {
    /// The root of everything, for process 1.
    #[must_use]
    pub fn first(unix: &Unix) -> Self {
        let root = unix.fs.first_spot();
        Self {
            root: RefCell::new(root.clone()),
            directory: RefCell::new(root),
            umask: Cell::new(0o022),
        }
    }

    /// What `/` is.
    #[must_use]
    pub fn root(&self) -> Spot {
        self.root.borrow().clone()
    }

    /// What relative paths begin at.
    #[must_use]
    pub fn directory(&self) -> Spot {
        self.directory.borrow().clone()
    }

    /// `chroot`.
    pub fn set_root(&self, root: Spot) {
        drop(self.root.replace(root));
    }

    /// `chdir`.
    pub fn set_directory(&self, directory: Spot) {
        drop(self.directory.replace(directory));
    }
}

/// Whether the caller may make `inode` a directory it is in.
fn check_enter(cx: &Cx, inode: &Rc<Inode>) -> Result<(), Errno> {
    if !inode.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    permission::check(inode, &cx.process.credentials.borrow(), permission::EXECUTE)
}

/// `chdir(path)`.
pub(super) fn chdir(cx: &Cx) -> Answer {
    let inode = walk::inode(cx, cx.arg(0))?;
    check_enter(cx, &inode)?;
    cx.process.place.borrow().set_directory(inode);
    Ok(0)
}

/// `fchdir(fd)`.
pub(super) fn fchdir(cx: &Cx) -> Answer {
    let inode = Spot::of(cx, &*cx.file_or_path(cx.uint(0))?);
    check_enter(cx, &inode)?;
    cx.process.place.borrow().set_directory(inode);
    Ok(0)
}

/// `chroot(path)`.
pub(super) fn chroot(cx: &Cx) -> Answer {
    let inode = walk::inode(cx, cx.arg(0))?;
    check_enter(cx, &inode)?;
    if !cx.process.credentials.borrow().may_here(linux_raw_sys::general::CAP_SYS_CHROOT) {
        return Err(Errno::EPERM.into());
    }
    cx.process.place.borrow().set_root(inode);
    Ok(0)
}

/// `umask(mask)`.
pub(super) fn umask(cx: &Cx) -> Answer {
    Ok(cx.process.place.borrow().umask.replace(cx.uint(0) & 0o777).into())
}

/// `getcwd(buffer, size)`.
pub(super) fn getcwd(cx: &Cx) -> Answer {
    let (directory, root) = {
        let place = cx.process.place.borrow();
        (place.directory(), place.root())
    };
    if directory.directory().is_some_and(Directory::is_removed) {
        return Err(Errno::ENOENT.into());
    }
    let mut path = path::below_root(&directory, &root)?;
    path.push(0);
    if path.len() as u64 > cx.arg(1) {
        return Err(Errno::ERANGE.into());
    }
    cx.user().write_bytes(cx.arg(0), &path)?;
    Ok(path.len() as u64)
}
