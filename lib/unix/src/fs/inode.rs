//! Inodes: what a file is, apart from its names.
//!
//! Everything with a descriptor has one. Those of the tree belong to a directory, those
//! of pipes, sockets and the like to nothing but their descriptors.

use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use core::any::Any;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as linux;

use super::directory::{Directory, Name};
use super::events::Watches;
use super::filesystem::Filesystem;
use super::locks::Locks;
use super::proc::Node;
use super::regular::Regular;
use super::time::Time;
use super::xattr::Attributes;
use crate::account::Charge;
use crate::errno::Errno;
use crate::memory::FrameId;
use crate::process::namespace::Namespace;
use crate::unix::Unix;

/// The permission bits of a mode, set-id and sticky bits included.
pub const PERMISSIONS: u32 = 0o7777;

/// What an inode is.
pub enum Kind {
    /// Bytes.
    Regular(Regular),
    /// Names.
    Directory(Directory),
    /// Another path.
    Symlink(Box<[u8]>),
    /// A character device (`makedev` number).
    Character(u64),
    /// A block device; there are none, only their inodes.
    Block(u64),
    /// A pipe, with a name or without.
    Fifo,
    /// A socket, with a name or without.
    Socket,
    /// Something that has only descriptors, and what `/proc/self/fd` calls it.
    Anonymous(&'static str),
    /// A namespace.
    Namespace(Namespace),
    /// Something of `/proc`.
    Proc(Node),
    /// `/dev/pts`.
    Pts,
}

/// A file.
pub struct Inode {
    /// The file system it belongs to.
    pub fs: Rc<Filesystem>,
    /// `st_ino`.
    pub number: u64,
    /// Type and permissions (`st_mode`).
    pub mode: Cell<u32>,
    /// Owner.
    pub uid: Cell<u32>,
    /// Group.
    pub gid: Cell<u32>,
    /// Names.
    pub links: Cell<u32>,
    /// Last read.
    pub accessed: Cell<Time>,
    /// Last written.
    pub modified: Cell<Time>,
    /// Last changed in any way.
    pub changed: Cell<Time>,
    /// Made.
    pub created: Cell<Time>,
    /// What it is.
    pub kind: Kind,
    /// Locks on it.
    pub locks: Locks,
    /// Descriptions open for writing (positive) or programs running from it (negative).
    writers: Cell<i32>,
    /// Without a name, it may get one (`O_TMPFILE`).
    pub linkable: Cell<bool>,
    /// Where the last rename put it.
    moved: RefCell<Option<(Weak<Inode>, Name)>>,
    /// What a fifo's or a bound socket's inode leads to.
    pub bound: RefCell<Option<Weak<dyn Any>>>,
    /// How many mounts cover it.
    pub covered: Cell<u32>,
    /// Who watches it.
    pub watches: Watches,
    /// Extended attributes.
    pub attributes: Attributes,
    /// What it costs.
    charge: RefCell<Option<Charge>>,
}

/// What an inode costs its user, with a name.
pub const INODE_BYTES: usize = 896;
/// What another name costs.
pub const NAME_BYTES: usize = 384;

impl Inode {
    /// An inode of `fs` without names that belongs to (`uid`, `gid`).
    ///
    /// # Errors
    /// `ENOSPC` if the file system has no more.
    pub fn new(
        fs: &Rc<Filesystem>,
        kind: Kind,
        mode: u32,
        owner: (u32, u32),
        now: Time,
    ) -> Result<Rc<Self>, Errno> {
        Ok(Self::with_number(fs, fs.new_number()?, kind, mode, owner, now))
    }

    /// An inode with a number that [`Filesystem::new_number`] gave.
    pub(super) fn with_number(
        fs: &Rc<Filesystem>,
        number: u64,
        kind: Kind,
        mode: u32,
        owner: (u32, u32),
        now: Time,
    ) -> Rc<Self> {
        let mode = kind.file_type() | (mode & PERMISSIONS);
        Rc::new(Self {
            fs: fs.clone(),
            number,
            mode: Cell::new(mode),
            uid: Cell::new(owner.0),
            gid: Cell::new(owner.1),
            links: Cell::new(1),
            accessed: Cell::new(now),
            modified: Cell::new(now),
            changed: Cell::new(now),
            created: Cell::new(now),
            kind,
            locks: Locks::default(),
            writers: Cell::new(0),
            linkable: Cell::new(false),
            moved: RefCell::new(None),
            bound: RefCell::new(None),
            covered: Cell::new(0),
            watches: Watches::default(),
            attributes: Attributes::default(),
            charge: RefCell::new(None),
        })
    }

    /// `charge` pays for it, and for its contents if it has any.
    pub fn set_payer(&self, charge: Charge) {
        if let Some(regular) = self.regular() {
            regular.set_payer(charge.user());
        }
        self.charge.replace(Some(charge));
    }

    /// Another name for it.
    ///
    /// # Errors
    /// `ENOMEM` if its user cannot pay for that.
    pub fn pay_name(&self) -> Result<(), Errno> {
        match self.charge.borrow().as_ref() {
            Some(charge) => charge.grow(NAME_BYTES as u64),
            None => Ok(()),
        }
    }

    /// `S_IFMT` part of the mode.
    #[must_use]
    pub fn file_type(&self) -> u32 {
        self.mode.get() & linux::S_IFMT
    }

    /// Whether it is a directory (of any file system).
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.file_type() == linux::S_IFDIR
    }

    /// Whether it is a regular file of a file system in memory.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        matches!(self.kind, Kind::Regular(_))
    }

    /// Whether it is a symbolic link (of any file system).
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.file_type() == linux::S_IFLNK
    }

    /// The regular file it is.
    #[must_use]
    pub fn regular(&self) -> Option<&Regular> {
        match &self.kind {
            Kind::Regular(regular) => Some(regular),
            _ => None,
        }
    }

    /// The directory in memory it is.
    #[must_use]
    pub fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// `st_size`.
    #[must_use]
    pub fn size(&self) -> u64 {
        match &self.kind {
            Kind::Regular(regular) => regular.size(),
            Kind::Directory(directory) => directory.size(),
            Kind::Symlink(text) => text.len() as u64,
            _ => 0,
        }
    }

    /// `st_blocks`: 512-byte pieces in memory.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.regular().map_or(0, |regular| regular.pages() * 8)
    }

    /// `st_rdev`.
    #[must_use]
    pub fn device(&self) -> u64 {
        match self.kind {
            Kind::Character(device) | Kind::Block(device) => device,
            _ => 0,
        }
    }

    /// The frame of page `index` of a regular file, for mapping: holes are filled. The frame
    /// stays the file's; who keeps it shares it (`Memory::share`) or keeps the inode and
    /// registers with [`Regular::mapped`].
    ///
    /// # Errors
    /// `EFAULT` behind the end (`SIGBUS`), `ENOSPC` or `ENOMEM` without memory, `EINVAL` for
    /// what is not a regular file, `EPERM` for `write` to a file sealed against it.
    pub fn page(&self, unix: &Unix, index: u64, write: bool) -> Result<FrameId, Errno> {
        let _ = unix;
        self.regular().ok_or(Errno::EINVAL)?.page(&self.fs, index, write)
    }

    /// Somebody opens it for writing; ends with [`Self::end_write`].
    ///
    /// # Errors
    /// `ETXTBSY` while a program runs from it.
    pub fn begin_write(&self) -> Result<(), Errno> {
        if self.writers.get() < 0 {
            return Err(Errno::ETXTBSY);
        }
        self.writers.set(self.writers.get() + 1);
        Ok(())
    }

    /// Whether somebody has it open for writing.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.writers.get() > 0
    }

    /// One who writes less.
    pub fn end_write(&self) {
        self.writers.set(self.writers.get() - 1);
    }

    /// A program runs from it from now on, until [`Self::end_execution`].
    ///
    /// # Errors
    /// `ETXTBSY` while somebody has it open for writing.
    pub fn begin_execution(&self) -> Result<(), Errno> {
        if self.writers.get() > 0 {
            return Err(Errno::ETXTBSY);
        }
        self.writers.set(self.writers.get() - 1);
        Ok(())
    }

    /// A program that ran from it does so no more.
    pub fn end_execution(&self) {
        self.writers.set(self.writers.get() + 1);
    }

    /// It was read just now (kept as `relatime` does: only if it was changed since).
    #[inline]
    pub fn touch_accessed(&self, unix: &Unix) {
        let accessed = self.accessed.get();
        if accessed <= self.modified.get() || accessed <= self.changed.get() {
            self.set_accessed(unix);
        }
    }

    #[inline(never)]
    fn set_accessed(&self, unix: &Unix) {
        if !self.fs.read_only.get() {
            self.accessed.set(Time::now(unix));
        }
    }

    /// Its contents changed just now.
    pub fn touch_modified(&self, unix: &Unix) {
        let now = Time::now(unix);
        self.modified.set(now);
        self.changed.set(now);
    }

    /// Something else about it changed just now.
    pub fn touch_changed(&self, unix: &Unix) {
        self.changed.set(Time::now(unix));
    }

    /// One name less.
    pub fn drop_link(&self, unix: &Unix) {
        self.links.set(self.links.get().saturating_sub(1));
        if let Some(charge) = self.charge.borrow().as_ref()
            && self.links.get() > 0
        {
            charge.shrink(NAME_BYTES as u64);
        }
        if self.moved().is_none() {
            let old = self.moved.take();
            drop(old);
        }
        self.touch_changed(unix);
    }

    /// A rename has put it there.
    pub fn set_moved(&self, parent: &Rc<Inode>, name: &Name) {
        let old = self.moved.replace(Some((Rc::downgrade(parent), name.clone())));
        drop(old);
    }

    /// Where the last rename has put it, if it is still there.
    #[must_use]
    pub fn moved(&self) -> Option<(Rc<Inode>, Name)> {
        let (parent, name) = self.moved.borrow().clone()?;
        let parent = parent.upgrade()?;
        let there = parent.directory()?.find(&name)?;
        core::ptr::eq(&raw const *there, self).then_some((parent, name))
    }

    /// The directory that holds it in its file system, if it is a directory.
    #[must_use]
    pub fn parent(&self) -> Option<Rc<Inode>> {
        match &self.kind {
            Kind::Directory(directory) => directory.parent(),
            Kind::Proc(node) => node.parent(),
            _ => None,
        }
    }
}

impl Kind {
    /// The `S_IFMT` part of the mode.
    #[must_use]
    pub fn file_type(&self) -> u32 {
        match self {
            Self::Regular(_) | Self::Namespace(_) => linux::S_IFREG,
            Self::Directory(_) | Self::Pts => linux::S_IFDIR,
            Self::Symlink(_) => linux::S_IFLNK,
            Self::Character(_) => linux::S_IFCHR,
            Self::Block(_) => linux::S_IFBLK,
            Self::Fifo => linux::S_IFIFO,
            Self::Socket => linux::S_IFSOCK,
            Self::Anonymous(_) => 0,
            Self::Proc(node) => node.file_type(),
        }
    }
}

impl Drop for Inode {
    /// Gives the frames back. A chain of removed directories, each kept by the one below,
    /// is taken apart in a loop: recursion would need stack for each.
    fn drop(&mut self) {
        self.fs.forget_number();
        self.fs.handles.forget(self);
        if self.fs.watches.get() != 0 {
            self.watches.end(self.links.get() == 0);
            self.fs.watches.set(self.fs.watches.get().saturating_sub(self.watches.len()));
        }
        if let Kind::Regular(regular) = &self.kind {
            regular.release_all(&self.fs);
        }
        let mut above = self.directory().and_then(Directory::take_parent);
        while let Some(inode) = above {
            above = Rc::into_inner(inode)
                .and_then(|inode| inode.directory().and_then(Directory::take_parent));
        }
    }
}
