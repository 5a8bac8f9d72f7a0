//! What the inodes of one file system share: where frames come from, how many there may
//! be, inode numbers. And the table of everything that is mounted.

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use super::handle::Handles;
use crate::errno::Errno;
use crate::memory::{FrameId, Memory, PAGE};
use crate::process::user_space::Users;

/// What a file system is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Files in memory: the root, `/tmp`, `/dev/shm`.
    Tmpfs,
    /// `/dev`.
    Devtmpfs,
    /// `/dev/pts`.
    Devpts,
    /// `/proc`.
    Proc,
    /// `/sys`.
    Sysfs,
    /// Pipes without a name.
    Pipe,
    /// Sockets.
    Socket,
    /// Everything else without a name: epoll, eventfd, memfd.
    Anonymous,
}

impl Kind {
    /// The name that `mount` takes and `/proc/mounts` tells.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Devtmpfs => "devtmpfs",
            Self::Devpts => "devpts",
            Self::Proc => "proc",
            Self::Sysfs => "sysfs",
            Self::Pipe => "pipefs",
            Self::Socket => "sockfs",
            Self::Anonymous => "anon_inodefs",
        }
    }

    /// `f_type` of `statfs`.
    #[must_use]
    pub const fn magic(self) -> u64 {
        match self {
            Self::Tmpfs | Self::Devtmpfs => 0x0102_1994,
            Self::Devpts => 0x1cd1,
            Self::Proc => 0x9fa0,
            Self::Sysfs => 0x6265_6572,
            Self::Pipe => 0x5049_5045,
            Self::Socket => 0x534f_434b,
            Self::Anonymous => 0x0904_1934,
        }
    }
}

/// `st_dev` of the first file system.
pub(super) const FIRST_DEVICE: u64 = 2;

/// One file system.
pub struct Filesystem {
    /// What it is.
    pub kind: Kind,
    /// `st_dev`.
    pub device: u64,
    /// Mounted read-only.
    pub read_only: Cell<bool>,
    /// The namespace of users of who has made it; none is the first.
    pub users: RefCell<Users>,
    /// All frames of the server.
    pub memory: Rc<Memory>,
    /// File pages it holds.
    pages: Cell<u64>,
    /// File pages it may hold.
    pages_max: Cell<u64>,
    /// Inodes it has.
    inodes: Cell<u64>,
    /// Inodes it may have.
    inodes_max: Cell<u64>,
    next_number: Cell<u64>,
    pub(super) handles: Handles,
    /// How many mounts cover the inode with a number, where inodes are made when they are looked up.
    pub(super) covered: RefCell<BTreeMap<u64, u32>>,
    /// Watchers of its inodes.
    pub watches: super::events::Count,
}

impl Filesystem {
    /// A file system that may hold three quarters of all frames, and an inode per two frames; one
    /// in memory that is mounted beside the first one half of all frames, as on Linux.
    #[must_use]
    pub fn new(kind: Kind, device: u64, memory: &Rc<Memory>) -> Rc<Self> {
        let total = memory.total() as u64;
        Rc::new(Self {
            kind,
            device,
            read_only: Cell::new(false),
            users: RefCell::default(),
            memory: memory.clone(),
            pages: Cell::new(0),
            pages_max: Cell::new(match kind {
                Kind::Tmpfs if device != FIRST_DEVICE => total / 2,
                _ => total / 4 * 3,
            }),
            inodes: Cell::new(0),
            inodes_max: Cell::new((total / 2).max(64)),
            next_number: Cell::new(1),
            handles: Handles::default(),
            covered: RefCell::default(),
            watches: Cell::new(0),
        })
    }

    /// Sets limits (`mount -o size=,nr_inodes=`).
    pub fn set_limits(&self, pages: Option<u64>, inodes: Option<u64>) {
        self.pages_max.set(pages.unwrap_or(self.pages_max.get()));
        self.inodes_max.set(inodes.unwrap_or(self.inodes_max.get()));
    }

    /// A frame for a file's page.
    ///
    /// # Errors
    /// `ENOSPC` at the limit, `ENOMEM` without memory.
    pub fn allocate(&self, zeroed: bool) -> Result<FrameId, Errno> {
        if self.pages.get() >= self.pages_max.get() {
            return Err(Errno::ENOSPC);
        }
        let frame = if zeroed { self.memory.allocate_zeroed() } else { self.memory.allocate() };
        let frame = frame.ok_or(Errno::ENOMEM)?;
        self.pages.set(self.pages.get() + 1);
        Ok(frame)
    }

    /// Gives a file's frame back.
    pub fn release(&self, frame: FrameId) {
        self.memory.release(frame);
        self.pages.set(self.pages.get().saturating_sub(1));
    }

    /// A number for a new inode, which counts from now on.
    ///
    /// # Errors
    /// `ENOSPC` at the limit.
    pub fn new_number(&self) -> Result<u64, Errno> {
        if self.inodes.get() >= self.inodes_max.get() {
            return Err(Errno::ENOSPC);
        }
        self.inodes.set(self.inodes.get() + 1);
        self.next_number.set(self.next_number.get() + 1);
        Ok(self.next_number.get() - 1)
    }

    /// An inode is gone.
    pub fn forget_number(&self) {
        self.inodes.set(self.inodes.get().saturating_sub(1));
    }

    /// (pages it may hold, pages free, inodes it may have, inodes free), as `statfs` tells.
    #[must_use]
    pub fn usage(&self) -> [u64; 4] {
        let [pages, inodes] = [self.pages_max.get(), self.inodes_max.get()];
        let free = pages.saturating_sub(self.pages.get()).min(self.memory.available() as u64);
        [pages, free, inodes, inodes.saturating_sub(self.inodes.get())]
    }

    /// Bytes in its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pages.get() * PAGE as u64
    }
}
