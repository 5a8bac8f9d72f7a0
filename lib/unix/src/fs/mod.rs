//! File systems: the tree in memory, paths, permissions, `/proc`, `/dev`.
//!
//! | module | owns |
//! |---|---|
//! | `inode`, `regular`, `directory` | files, apart from how they are reached |
//! | `filesystem`, `mounts` | what inodes of one file system share; where it is mounted |
//! | `place`, `walk`, `permission` | where a process is, how a path leads to an inode, who may |

use alloc::rc::Rc;
use alloc::vec::Vec;

use crate::call::{Answer, Cx, Entry};
use crate::errno::Errno;
use crate::file::Open;
use crate::memory::Memory;
use crate::unix::Unix;

pub mod directory;
pub mod filesystem;
pub mod inode;
pub mod locks;
mod place;
pub mod proc;
pub mod regular;
pub mod time;

use filesystem::Filesystem;
use inode::{Inode, Kind};
pub use place::Place;
use time::Time;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// All mounted file systems.
pub struct Filesystems {
    root: Rc<Inode>,
    pipes: Rc<Filesystem>,
    sockets: Rc<Filesystem>,
    anonymous: Rc<Filesystem>,
}

impl Filesystems {
    /// An empty tree.
    #[must_use]
    pub fn new(memory: &Rc<Memory>) -> Self {
        let new = |kind, device| Filesystem::new(kind, device, memory);
        let fs = new(filesystem::Kind::Tmpfs, 2);
        let root = Inode::with_number(
            &fs,
            fs.new_number().unwrap_or(1),
            Kind::Directory(directory::Directory::default()),
            0o755,
            (0, 0),
            Time::default(),
        );
        root.links.set(2);
        Self {
            root,
            pipes: new(filesystem::Kind::Pipe, 14),
            sockets: new(filesystem::Kind::Socket, 8),
            anonymous: new(filesystem::Kind::Anonymous, 15),
        }
    }

    /// The root of everything.
    #[must_use]
    pub fn root(&self) -> Rc<Inode> {
        self.root.clone()
    }

    /// A new inode for a pipe without a name.
    ///
    /// # Errors
    /// `ENFILE` if there are too many.
    pub fn pipe(&self, cx: &Cx) -> Result<Rc<Inode>, Errno> {
        nameless(cx, &self.pipes, Kind::Fifo, 0o600)
    }

    /// A new inode for a socket.
    ///
    /// # Errors
    /// `ENFILE` if there are too many.
    pub fn socket(&self, cx: &Cx) -> Result<Rc<Inode>, Errno> {
        nameless(cx, &self.sockets, Kind::Socket, 0o777)
    }

    /// A new inode for something that has only descriptors; `name` is what
    /// `/proc/self/fd` shows, as in `[eventpoll]`.
    ///
    /// # Errors
    /// `ENFILE` if there are too many.
    pub fn anonymous(&self, cx: &Cx, name: &'static str) -> Result<Rc<Inode>, Errno> {
        nameless(cx, &self.anonymous, Kind::Anonymous(name), 0o600)
    }
}

fn nameless(cx: &Cx, fs: &Rc<Filesystem>, kind: Kind, mode: u32) -> Result<Rc<Inode>, Errno> {
    let owner = {
        let credentials = cx.process.credentials.borrow();
        (credentials.fsuid, credentials.fsgid)
    };
    let now = Time::now(cx.unix);
    Inode::new(fs, kind, mode, owner, now).map_err(|_| Errno::ENFILE)
}

/// A descriptor of a file with a position was closed: its process's POSIX locks on the file end.
pub fn descriptor_closed(cx: &Cx, open: &Open) {
    let _ = (cx, open);
}

/// `fcntl`'s commands on locks; `argument` is the address of a `struct flock`.
///
/// # Errors
/// As `fcntl(2)`.
pub fn fcntl_lock(cx: &Cx, open: &Open, command: u32, argument: u64) -> Answer {
    let _ = (cx, open, command, argument);
    Err(Errno::EINVAL.into())
}

/// `fcntl`'s commands that only file systems know (seals, leases).
///
/// # Errors
/// `EINVAL` for all others.
pub fn fcntl(cx: &Cx, open: &Open, command: u32, argument: u64) -> Answer {
    let _ = (cx, open, command, argument);
    Err(Errno::EINVAL.into())
}

/// The path of an open file, for `/proc`.
#[must_use]
pub fn path_of(unix: &Unix, open: &Open) -> Vec<u8> {
    let _ = unix;
    open.path.clone()
}

/// A new inode for the slave of a pseudo-terminal, to be shown in `/dev/pts`.
///
/// # Errors
/// `ENFILE` if there are too many.
pub fn new_pty_inode(cx: &Cx, device: u64, owner: (u32, u32)) -> Result<Rc<Inode>, Errno> {
    let now = Time::now(cx.unix);
    let kind = Kind::Character(device);
    Inode::new(&cx.unix.fs.anonymous, kind, 0o620, owner, now).map_err(|_| Errno::ENFILE)
}
