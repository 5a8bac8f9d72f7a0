//! Where file systems are mounted: the tree at the start, and the table that
//! `/proc/mounts` shows.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::device::DEVICES;
use super::devpts::Pts;
use super::directory::{Directory, Name};
use super::filesystem::{Filesystem, Kind as FsKind};
use super::inode::{Inode, Kind};
use super::locks::Waiting;
use super::mount::take_apart;
use super::proc::Node;
use super::time::Time;
use crate::errno::Errno;
use crate::memory::Memory;
use crate::unix::Unix;

/// A mounted file system.
#[derive(Clone)]
pub struct Mount {
    /// Its root directory.
    pub root: Rc<Inode>,
    /// What was mounted, as the caller named it.
    pub source: Name,
}

/// All mounted file systems.
pub struct Filesystems {
    root: Rc<Inode>,
    pub(super) pipes: Rc<Filesystem>,
    pub(super) sockets: Rc<Filesystem>,
    pub(super) anonymous: Rc<Filesystem>,
    pub(super) namespaces: Rc<Filesystem>,
    pub(super) pts: Rc<Filesystem>,
    pub(super) mounts: RefCell<Vec<Mount>>,
    /// Roots of file systems that were unmounted while somebody used them.
    pub(super) detached: RefCell<Vec<Rc<Inode>>>,
    pub(super) next_device: Cell<u64>,
    waiting: RefCell<Waiting>,
    /// The latest rename that somebody watched.
    pub(super) cookie: Cell<u32>,
    /// How long the holder of a lease may take to give it up (`lease-break-time`), in seconds.
    pub(super) lease_seconds: Cell<u64>,
    /// Processes and the files on which they have locked something.
    holders: RefCell<Vec<(u32, alloc::rc::Weak<Inode>)>>,
}

/// The root of a new file system, or a directory of one.
pub(super) fn new_directory(fs: &Rc<Filesystem>, kind: Kind, mode: u32) -> Rc<Inode> {
    let number = fs.new_number().unwrap_or(1);
    let inode = Inode::with_number(fs, number, kind, mode, (0, 0), Time::default());
    inode.links.set(2);
    inode
}

/// The root of a new file system without files.
pub(super) fn empty_root(fs: &Rc<Filesystem>, mode: u32) -> Rc<Inode> {
    new_directory(fs, Kind::Directory(Directory::default()), mode)
}

/// Enters a new inode as `name`, without asking anybody; what is there already stays.
pub(super) fn enter(parent: &Rc<Inode>, name: &str, kind: Kind, mode: u32) -> Rc<Inode> {
    let name: Name = name.as_bytes().into();
    let Some(entries) = parent.directory() else { return parent.clone() };
    if let Some(inode) = entries.find(&name) {
        return inode;
    }
    let number = parent.fs.new_number().unwrap_or(1);
    let inode = Inode::with_number(&parent.fs, number, kind, mode, (0, 0), Time::default());
    if inode.is_directory() {
        inode.links.set(2);
        parent.links.set(parent.links.get() + 1);
    }
    // The name is not there, and nobody has removed the directory.
    let _ = entries.insert(&name, &inode);
    inode
}

/// Enters a new directory.
pub(super) fn enter_directory(parent: &Rc<Inode>, name: &str, mode: u32) -> Rc<Inode> {
    let kind = Kind::Directory(Directory::below(parent, &name.as_bytes().into()));
    enter(parent, name, kind, mode)
}

/// Enters a new socket into a directory of the root, which is made if it is not there.
///
/// # Errors
/// `EEXIST` if the name is there, `ENOTDIR`, `ENOSPC`.
pub fn enter_socket(unix: &Unix, folder: &str, name: &str, mode: u32) -> Result<Rc<Inode>, Errno> {
    let root = unix.fs.root();
    let there = root.directory().and_then(|entries| entries.find(folder.as_bytes()));
    let parent = there.unwrap_or_else(|| enter_directory(&root, folder, 0o755));
    let entries = parent.directory().ok_or(Errno::ENOTDIR)?;
    let inode = Inode::new(&parent.fs, Kind::Socket, mode, (0, 0), Time::now(unix))?;
    entries.insert(&name.as_bytes().into(), &inode)?;
    Ok(inode)
}

/// The inode at an absolute path, on which no symbolic link is followed, as the system itself
/// sees it; `None` if there is none.
#[must_use]
pub fn plain(unix: &Unix, path: &str) -> Option<Rc<Inode>> {
    let mut at = unix.fs.root();
    for name in path.strip_prefix('/')?.split('/') {
        let next = at.directory()?.find(name.as_bytes())?;
        at = next.directory().and_then(Directory::mounted).unwrap_or(next);
    }
    Some(at)
}

impl Filesystems {
    /// The tree at the start: empty but for `/dev`, `/proc` and `/tmp`,
    /// which are file systems of their own.
    #[must_use]
    pub fn new(memory: &Rc<Memory>) -> Self {
        let new = |kind, device| Filesystem::new(kind, device, memory);
        let this = Self {
            root: empty_root(&new(FsKind::Tmpfs, 2), 0o755),
            pipes: new(FsKind::Pipe, 14),
            sockets: new(FsKind::Socket, 8),
            anonymous: new(FsKind::Anonymous, 15),
            namespaces: new(FsKind::Anonymous, 4),
            pts: new(FsKind::Devpts, 20),
            mounts: RefCell::default(),
            detached: RefCell::default(),
            next_device: Cell::new(40),
            waiting: RefCell::default(),
            cookie: Cell::new(0),
            lease_seconds: Cell::new(super::lease::BREAK_SECONDS),
            holders: RefCell::default(),
        };
        this.mounts
            .borrow_mut()
            .push(Mount { root: this.root.clone(), source: "rootfs".into_name() });
        let tmp = enter_directory(&this.root, "tmp", 0o1777);
        this.attach(&tmp, empty_root(&new(FsKind::Tmpfs, 23), 0o1777), "tmpfs");
        let proc = enter_directory(&this.root, "proc", 0o555);
        this.attach(
            &proc,
            new_directory(&new(FsKind::Proc, 21), Kind::Proc(Node::root()), 0o555),
            "proc",
        );
        let dev = enter_directory(&this.root, "dev", 0o755);
        let devices = empty_root(&new(FsKind::Devtmpfs, 6), 0o755);
        this.attach(&dev, devices.clone(), "devtmpfs");
        fill_devices(&devices);
        let pts = enter_directory(&devices, "pts", 0o755);
        this.attach(&pts, new_directory(&this.pts, Kind::Pts(Pts::default()), 0o755), "devpts");
        let shm = enter_directory(&devices, "shm", 0o1777);
        this.attach(&shm, empty_root(&new(FsKind::Tmpfs, 22), 0o1777), "tmpfs");
        this
    }

    /// What has been there since before there was a clock was made now.
    pub(super) fn set_times(&self, now: Time) {
        let mut left: Vec<_> = self.mounts().into_iter().map(|mount| mount.root).collect();
        while let Some(inode) = left.pop() {
            if inode.created.get() == Time::default() {
                for cell in [&inode.accessed, &inode.modified, &inode.changed, &inode.created] {
                    cell.set(now);
                }
                left.extend(inode.directory().into_iter().flat_map(Directory::inodes));
            }
        }
    }

    /// The root of everything.
    #[must_use]
    pub fn root(&self) -> Rc<Inode> {
        self.root.clone()
    }

    /// Everything that is mounted, in order.
    #[must_use]
    pub fn mounts(&self) -> Vec<Mount> {
        self.mounts.borrow().clone()
    }

    fn attach(&self, covered: &Rc<Inode>, root: Rc<Inode>, source: &str) {
        self.mount_on(covered, root, source.into_name());
    }

    /// Mounts a file system.
    pub(super) fn mount_on(&self, covered: &Rc<Inode>, root: Rc<Inode>, source: Name) {
        match &root.kind {
            Kind::Directory(directory) => directory.set_covered(Some(covered.clone())),
            Kind::Proc(node) => node.set_covered(covered),
            Kind::Pts(pts) => pts.set_covered(covered),
            _ => return,
        }
        if let Some(directory) = covered.directory() {
            directory.set_mounted(Some(root.clone()));
        }
        self.mounts.borrow_mut().push(Mount { root, source });
    }

    /// Takes a mounted file system away; its root is returned.
    pub(super) fn unmount(&self, root: &Rc<Inode>) {
        self.mounts.borrow_mut().retain(|mount| !Rc::ptr_eq(&mount.root, root));
        if let Some(directory) = covered(root) {
            let mounted = directory.directory().and_then(|one| one.set_mounted(None));
            drop(mounted);
        }
    }

    /// Thread `tid` of process `pid` waits for a lock of process `holder`.
    pub(super) fn starts_waiting(&self, tid: u32, pid: u32, holder: u32) {
        self.waiting.borrow_mut().add(tid, pid, holder);
    }

    /// Thread `tid` does not wait for a lock.
    pub(super) fn stops_waiting(&self, tid: u32) {
        self.waiting.borrow_mut().remove(tid);
    }

    /// Whether `holder` waits, over any number of others, for `pid`.
    pub(super) fn would_deadlock(&self, unix: &Unix, pid: u32, holder: u32) -> bool {
        self.waiting.borrow_mut().leads_to(unix, pid, holder)
    }

    /// Process `pid` has locked something of `inode`.
    pub(super) fn holds_locks(&self, pid: u32, inode: &Rc<Inode>) {
        let inode = Rc::downgrade(inode);
        let mut holders = self.holders.borrow_mut();
        if !holders.iter().any(|holder| holder.0 == pid && holder.1.ptr_eq(&inode)) {
            holders.retain(|holder| holder.1.strong_count() > 0);
            holders.push((pid, inode));
        }
    }

    /// Process `pid` has ended: its POSIX locks end.
    pub fn process_ended(&self, pid: u32) {
        let mut files = Vec::new();
        self.holders.borrow_mut().retain(|holder| {
            if holder.0 == pid {
                files.extend(holder.1.upgrade());
            }
            holder.0 != pid
        });
        for inode in files {
            inode.locks.process_closed(pid);
        }
    }
}

impl Drop for Filesystems {
    /// Directories and what is in them hold each other.
    fn drop(&mut self) {
        let mounts = self.mounts.take().into_iter().map(|mount| mount.root);
        for root in mounts.chain(self.detached.take()) {
            self.unmount(&root);
            take_apart(&root);
        }
    }
}

/// The directory that a root is mounted on.
pub(super) fn covered(root: &Inode) -> Option<Rc<Inode>> {
    match &root.kind {
        Kind::Directory(directory) => directory.covered(),
        Kind::Proc(node) => node.covered(),
        Kind::Pts(pts) => pts.covered(),
        _ => None,
    }
}

trait IntoName {
    fn into_name(self) -> Name;
}

impl IntoName for &str {
    fn into_name(self) -> Name {
        self.as_bytes().into()
    }
}

/// What `/dev` begins with.
pub(super) fn fill_devices(dev: &Rc<Inode>) {
    for (name, number, mode) in DEVICES {
        let inode = enter(dev, name, Kind::Character(number), mode);
        if mode & 0o060 == 0o060 && mode & 6 == 0 {
            inode.gid.set(5);
        }
    }
    for (name, text) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        enter(dev, name, Kind::Symlink(text.as_bytes().into()), 0o777);
    }
}
