//! File systems: the tree in memory, paths, permissions, `/proc`, `/dev`.
//!
//! | module | owns |
//! |---|---|
//! | `inode`, `regular`, `holes`, `directory` | files, apart from how they are reached |
//! | `filesystem`, `tree` | what inodes of one file system share; the trees at the start |
//! | `mounts`, `spot`, `mount`, `bind`, `share`, `mount_space` | what is seen where, and the calls that change that |
//! | `place`, `lookup`, `walk`, `found`, `path`, `permission` | where a process is, how a path leads to an inode and back, who may |
//! | `open`, `tree_file`, `listing`, `transfer` | opening, reading and writing what has a path |
//! | `names`, `rename`, `stat`, `ustat`, `attributes`, `size`, `xattr` | the other calls on files |
//! | `events` | who watches what happens to files |
//! | `locks`, `memory_file` | record locks, `flock`; memfd_create, seals |
//! | `device`, `devpts`, `proc` | `/dev`, `/dev/pts`, `/proc` |
//! | `cpio` | the archive that the root begins with |

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use crate::account::{Charge, User, What};
use crate::call::{Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::file::Open;
use crate::process::namespace::Namespace;
use crate::unix::Unix;

mod attributes;
mod bind;
mod bound;
mod cpio;
pub mod device;
mod devpts;
pub mod directory;
pub mod events;
pub mod filesystem;
mod found;
mod handle;
mod holes;
pub mod inode;
mod lease;
mod listing;
mod lock_holders;
mod lock_records;
pub mod locks;
mod lookup;
pub mod mappers;
mod memory_file;
mod mount;
mod mount_attributes;
mod mount_space;
pub mod mounts;
mod names;
pub mod open;
pub mod path;
pub mod permission;
mod place;
pub mod proc;
pub mod regular;
mod rename;
mod share;
mod size;
pub mod spot;
mod stat;
pub mod time;
mod transfer;
mod tree;
pub mod tree_file;
pub mod ustat;
pub mod walk;
mod xattr;

pub use cpio::unpack;
pub use devpts::new_pty_inode;
use filesystem::Filesystem;
use inode::{Inode, Kind};
pub use lease::fcntl_lease;
pub use locks::fcntl_lock;
pub use memory_file::fcntl;
pub use mount_space::{MountSpace, copy_space, enter_space, is_elsewhere};
pub use mounts::Mount;
pub use names::{check_new_socket, find_socket, make_socket};
pub use place::Place;
pub use proc::check_close_look;
pub use spot::Spot;
use time::Time;
pub use tree::{Filesystems, enter_socket, plain};

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[
    full(linux::__NR_open, "open", open::open),
    full(linux::__NR_openat, "openat", open::openat),
    full(linux::__NR_openat2, "openat2", open::openat2),
    full(linux::__NR_creat, "creat", open::creat),
    full(linux::__NR_stat, "stat", stat::stat),
    full(linux::__NR_lstat, "lstat", stat::lstat),
    full(linux::__NR_fstat, "fstat", stat::fstat),
    full(linux::__NR_newfstatat, "newfstatat", stat::newfstatat),
    full(linux::__NR_statx, "statx", stat::statx),
    full(linux::__NR_statfs, "statfs", stat::statfs),
    full(linux::__NR_fstatfs, "fstatfs", stat::fstatfs),
    full(linux::__NR_access, "access", attributes::access),
    full(linux::__NR_faccessat, "faccessat", attributes::faccessat),
    full(linux::__NR_faccessat2, "faccessat2", attributes::faccessat2),
    full(linux::__NR_chmod, "chmod", attributes::chmod),
    full(linux::__NR_fchmod, "fchmod", attributes::fchmod),
    full(linux::__NR_fchmodat, "fchmodat", attributes::fchmodat),
    full(linux::__NR_fchmodat2, "fchmodat2", attributes::fchmodat2),
    full(linux::__NR_chown, "chown", attributes::chown),
    full(linux::__NR_lchown, "lchown", attributes::lchown),
    full(linux::__NR_fchown, "fchown", attributes::fchown),
    full(linux::__NR_fchownat, "fchownat", attributes::fchownat),
    full(linux::__NR_utime, "utime", attributes::utime),
    full(linux::__NR_utimes, "utimes", attributes::utimes),
    full(linux::__NR_futimesat, "futimesat", attributes::futimesat),
    full(linux::__NR_utimensat, "utimensat", attributes::utimensat),
    full(linux::__NR_mkdir, "mkdir", names::mkdir),
    full(linux::__NR_mkdirat, "mkdirat", names::mkdirat),
    full(linux::__NR_mknod, "mknod", names::mknod),
    full(linux::__NR_name_to_handle_at, "name_to_handle_at", handle::name_to_handle_at),
    full(linux::__NR_open_by_handle_at, "open_by_handle_at", handle::open_by_handle_at),
    full(linux::__NR_mknodat, "mknodat", names::mknodat),
    full(linux::__NR_symlink, "symlink", names::symlink),
    full(linux::__NR_symlinkat, "symlinkat", names::symlinkat),
    full(linux::__NR_link, "link", names::link),
    full(linux::__NR_linkat, "linkat", names::linkat),
    full(linux::__NR_unlink, "unlink", names::unlink),
    full(linux::__NR_unlinkat, "unlinkat", names::unlinkat),
    full(linux::__NR_rmdir, "rmdir", names::rmdir),
    full(linux::__NR_readlink, "readlink", names::readlink),
    full(linux::__NR_readlinkat, "readlinkat", names::readlinkat),
    full(linux::__NR_rename, "rename", rename::rename),
    full(linux::__NR_renameat, "renameat", rename::renameat),
    partial(linux::__NR_renameat2, "renameat2", rename::renameat2, "RENAME_WHITEOUT"),
    full(linux::__NR_truncate, "truncate", size::truncate),
    full(linux::__NR_ftruncate, "ftruncate", size::ftruncate),
    full(linux::__NR_fallocate, "fallocate", size::fallocate),
    full(linux::__NR_getdents, "getdents", listing::getdents),
    full(linux::__NR_getdents64, "getdents64", listing::getdents64),
    full(linux::__NR_chdir, "chdir", place::chdir),
    full(linux::__NR_fchdir, "fchdir", place::fchdir),
    full(linux::__NR_chroot, "chroot", place::chroot),
    full(linux::__NR_umask, "umask", place::umask),
    full(linux::__NR_getcwd, "getcwd", place::getcwd),
    full(linux::__NR_flock, "flock", locks::flock),
    full(linux::__NR_sendfile, "sendfile", transfer::sendfile),
    full(linux::__NR_copy_file_range, "copy_file_range", transfer::copy_file_range),
    full(linux::__NR_sync, "sync", transfer::sync),
    full(linux::__NR_syncfs, "syncfs", transfer::syncfs),
    full(linux::__NR_fsync, "fsync", transfer::fsync),
    full(linux::__NR_fdatasync, "fdatasync", transfer::fsync),
    full(linux::__NR_sync_file_range, "sync_file_range", transfer::sync_file_range),
    full(linux::__NR_fadvise64, "fadvise64", transfer::fadvise64),
    full(linux::__NR_readahead, "readahead", transfer::readahead),
    partial(
        linux::__NR_mount,
        "mount",
        mount::mount,
        "file systems but tmpfs, proc, devtmpfs, devpts; mounting on files of those two",
    ),
    partial(linux::__NR_memfd_create, "memfd_create", memory_file::memfd_create, "huge pages"),
    full(linux::__NR_pivot_root, "pivot_root", mount_space::pivot_root),
    full(linux::__NR_umount2, "umount2", mount::umount2),
    partial(
        linux::__NR_mount_setattr,
        "mount_setattr",
        mount_attributes::mount_setattr,
        "MOUNT_ATTR_IDMAP, MOUNT_ATTR_NOSYMFOLLOW (EINVAL)",
    ),
    full(linux::__NR_getxattr, "getxattr", xattr::getxattr),
    full(linux::__NR_lgetxattr, "lgetxattr", xattr::lgetxattr),
    full(linux::__NR_fgetxattr, "fgetxattr", xattr::fgetxattr),
    partial(
        linux::__NR_setxattr,
        "setxattr",
        xattr::setxattr,
        "names but in `security.` and `trusted.`; file capabilities",
    ),
    partial(
        linux::__NR_lsetxattr,
        "lsetxattr",
        xattr::lsetxattr,
        "names but in `security.` and `trusted.`; file capabilities",
    ),
    partial(
        linux::__NR_fsetxattr,
        "fsetxattr",
        xattr::fsetxattr,
        "names but in `security.` and `trusted.`; file capabilities",
    ),
    full(linux::__NR_listxattr, "listxattr", xattr::listxattr),
    full(linux::__NR_llistxattr, "llistxattr", xattr::llistxattr),
    full(linux::__NR_flistxattr, "flistxattr", xattr::flistxattr),
    full(linux::__NR_removexattr, "removexattr", xattr::removexattr),
    full(linux::__NR_lremovexattr, "lremovexattr", xattr::lremovexattr),
    full(linux::__NR_fremovexattr, "fremovexattr", xattr::fremovexattr),
];

impl Filesystems {
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

    /// The same for a socket that no program has made; `payer` pays.
    ///
    /// # Errors
    /// `ENFILE`, `ENOMEM`.
    pub fn socket_for(&self, unix: &Unix, payer: &Rc<User>) -> Result<Rc<Inode>, Errno> {
        let charge = Charge::new(payer, What::Heap, NAMELESS_BYTES as u64)?;
        nameless_of(unix, &self.sockets, (Kind::Socket, 0o777), (0, 0), charge)
    }

    /// A new inode for a POSIX message queue.
    ///
    /// # Errors
    /// `ENFILE` if there are too many.
    pub fn queue(&self, cx: &Cx) -> Result<Rc<Inode>, Errno> {
        nameless(cx, &self.anonymous, Kind::Regular(regular::Regular::default()), 0o600)
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

/// The file that a namespace is.
pub(crate) fn namespace_spot(cx: &Cx, namespace: Namespace) -> Spot {
    let (number, now) = (namespace.number(), Time::now(cx.unix));
    let kind = Kind::Namespace(namespace);
    let inode = Inode::with_number(&cx.unix.fs.namespaces, number, kind, 0o444, (0, 0), now);
    Spot::nowhere(cx, inode)
}

/// A descriptor of a namespace.
///
/// # Errors
/// `EMFILE`, `ENOMEM`.
pub(crate) fn open_namespace(cx: &Cx, namespace: Namespace) -> Result<u32, Errno> {
    let file = tree_file::TreeFile::new(namespace_spot(cx, namespace), None, false)?;
    cx.add_file(Open::new(cx, file, linux::O_RDONLY, Vec::new())?, true)
}

/// What a pipe, a socket or the like costs, with its inode.
const NAMELESS_BYTES: usize = 2048;

fn nameless(cx: &Cx, fs: &Rc<Filesystem>, kind: Kind, mode: u32) -> Result<Rc<Inode>, Errno> {
    let owner = {
        let credentials = cx.process.credentials.borrow();
        (credentials.fsuid, credentials.fsgid)
    };
    nameless_of(cx.unix, fs, (kind, mode), owner, cx.pay(NAMELESS_BYTES)?)
}

fn nameless_of(
    unix: &Unix,
    fs: &Rc<Filesystem>,
    (kind, mode): (Kind, u32),
    owner: (u32, u32),
    charge: Charge,
) -> Result<Rc<Inode>, Errno> {
    let inode = Inode::new(fs, kind, mode, owner, Time::now(unix)).map_err(|_| Errno::ENFILE)?;
    inode.set_payer(charge);
    Ok(inode)
}

/// A descriptor of a file was closed: its process's POSIX locks on the file end.
pub fn descriptor_closed(cx: &Cx, open: &Open) {
    let (inode, pid) = (open.file.inode(), cx.process.pid);
    inode.locks.process_closed(pid);
    crate::file::notices_end(open, cx.process.pid);
}

/// A write would make a file larger than `RLIMIT_FSIZE`.
fn size_exceeded(cx: &Cx) {
    crate::signal::send_thread(cx.unix, cx.thread, linux::SIGXFSZ);
}

/// The path of an open file, for `/proc`.
#[must_use]
pub fn path_of(unix: &Unix, open: &Open) -> Vec<u8> {
    path::of_open(open, &unix.fs.first_spot())
}
