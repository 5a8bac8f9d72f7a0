//! Where a file is reached: an inode, and the mount in which a walk came to it. One directory can be
//! reached in several mounts; what `..` is at its root, and what may be done there, is the mount's to say.

use alloc::rc::Rc;
use core::ops::Deref;

use super::inode::Inode;
use super::mounts::Mount;
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Open;

/// An inode and its mount.
#[derive(Clone)]
pub struct Spot {
    /// The mount in which it was reached.
    pub mount: Rc<Mount>,
    /// The inode.
    pub inode: Rc<Inode>,
}

impl Deref for Spot {
    type Target = Rc<Inode>;

    fn deref(&self) -> &Rc<Inode> {
        &self.inode
    }
}

impl Spot {
    /// `inode`, which only descriptors lead to.
    #[must_use]
    pub fn nowhere(cx: &Cx, inode: Rc<Inode>) -> Self {
        Self { mount: cx.unix.fs.nowhere.clone(), inode }
    }

    /// Where an open file was found.
    #[must_use]
    pub fn of(cx: &Cx, open: &Open) -> Self {
        let inode = open.file.inode();
        let mount = super::path::mount(open).unwrap_or_else(|| cx.unix.fs.nowhere.clone());
        Self { mount, inode }
    }

    /// Whether both are the same directory of the same mount.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inode, &other.inode) && Rc::ptr_eq(&self.mount, &other.mount)
    }

    /// Whether it is the root of its mount.
    #[must_use]
    pub fn is_mount_root(&self) -> bool {
        Rc::ptr_eq(&self.inode, self.mount.root())
    }

    /// Whether anything may be changed here.
    ///
    /// # Errors
    /// `EROFS` if the file system or the mount is read-only.
    pub fn check_writable(&self) -> Result<(), Errno> {
        if self.inode.fs.read_only.get() { Err(Errno::EROFS) } else { self.mount.check_writable() }
    }

    /// Out of the roots of mounts: the uppermost directory that is covered by it, up to `root`.
    #[must_use]
    pub fn uncovered(&self, root: &Self) -> Self {
        let mut at = self.clone();
        while at.is_mount_root() && !at.is(root) {
            let Some(point) = at.mount.point() else { break };
            at = point.spot;
        }
        at
    }
}
