//! File systems and their trees: those at the start, what is in them, and how they come apart.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as linux;

use super::device::DEVICES;
use super::directory::{Directory, Name};
use super::filesystem::{FIRST_DEVICE, Filesystem, Kind as FsKind};
use super::inode::{Inode, Kind};
use super::lock_holders::Holders;
use super::locks::Waiting;
use super::mount_space::MountSpace;
use super::mounts::{Mount, Point, Seen, Table, Tree};
use super::proc::Node;
use super::spot::Spot;
use super::time::Time;
use crate::errno::Errno;
use crate::memory::Memory;
use crate::process::Pid;
use crate::unix::Unix;

/// All file systems.
pub struct Filesystems {
    root: Rc<Inode>,
    /// What covers what.
    pub table: Rc<Table>,
    /// The namespace of process 1.
    pub first: Rc<MountSpace>,
    /// Where files are that only descriptors lead to.
    pub nowhere: Rc<Mount>,
    pub(super) pipes: Rc<Filesystem>,
    pub(super) sockets: Rc<Filesystem>,
    pub(super) anonymous: Rc<Filesystem>,
    pub(super) namespaces: Rc<Filesystem>,
    pub(super) pts: Rc<Filesystem>,
    pub(super) next_device: Cell<u64>,
    waiting: RefCell<Waiting>,
    /// The latest rename that somebody watched.
    pub(super) cookie: Cell<u32>,
    /// How long the holder of a lease may take to give it up (`lease-break-time`), in seconds.
    pub(super) lease_seconds: Cell<u64>,
    /// Who has locked something, and where.
    pub(super) holders: Rc<Holders>,
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
    let mut at = unix.fs.first.root()?.root_spot();
    for name in path.strip_prefix('/')?.split('/') {
        at.inode = at.directory()?.find(name.as_bytes())?;
        if let Some(mount) = unix.fs.table.over(&at) {
            at = mount.root_spot();
        }
    }
    Some(at.inode)
}

impl Filesystems {
    /// The tree at the start: empty but for `/dev`, `/proc`, `/sys` and `/tmp`,
    /// which are file systems of their own.
    #[must_use]
    pub fn new(memory: &Rc<Memory>) -> Self {
        let new = |kind, device| Filesystem::new(kind, device, memory);
        let table = Rc::new(Table::default());
        let root = empty_root(&new(FsKind::Tmpfs, FIRST_DEVICE), 0o755);
        let anonymous = new(FsKind::Anonymous, 15);
        let hidden = new_directory(&anonymous, Kind::Anonymous("nowhere"), 0);
        let this = Self {
            first: Rc::new(MountSpace::first(&table)),
            nowhere: table.mount(seen(hidden, &"none".into_name()), None),
            root: root.clone(),
            pipes: new(FsKind::Pipe, 14),
            sockets: new(FsKind::Socket, 8),
            anonymous,
            namespaces: new(FsKind::Anonymous, 4),
            pts: new(FsKind::Devpts, 20),
            table,
            next_device: Cell::new(40),
            waiting: RefCell::default(),
            cookie: Cell::new(0),
            lease_seconds: Cell::new(super::lease::BREAK_SECONDS),
            holders: Rc::default(),
        };
        let first = this.table.mount(seen(root, &"rootfs".into_name()), None);
        this.first.add(&first, None);
        let tmp = enter_directory(&this.root, "tmp", 0o1777);
        this.attach(&first, tmp, empty_root(&new(FsKind::Tmpfs, 23), 0o1777), "tmpfs");
        let proc = enter_directory(&this.root, "proc", 0o555);
        let node = Kind::Proc(Node::root(None));
        this.attach(&first, proc, new_directory(&new(FsKind::Proc, 21), node, 0o555), "proc");
        let sys = enter_directory(&this.root, "sys", 0o555);
        let node = Kind::Proc(Node::devices());
        this.attach(&first, sys, new_directory(&new(FsKind::Sysfs, 24), node, 0o555), "sysfs");
        let dev = enter_directory(&this.root, "dev", 0o755);
        let devices = empty_root(&new(FsKind::Devtmpfs, 6), 0o755);
        let dev = this.attach(&first, dev, devices.clone(), "devtmpfs");
        fill_devices(&devices);
        let pts = enter_directory(&devices, "pts", 0o755);
        this.attach(&dev, pts, new_directory(&this.pts, Kind::Pts, 0o755), "devpts");
        let shm = enter_directory(&devices, "shm", 0o1777);
        this.attach(&dev, shm, empty_root(&new(FsKind::Tmpfs, 22), 0o1777), "tmpfs");
        this
    }

    fn attach(&self, on: &Rc<Mount>, covered: Rc<Inode>, root: Rc<Inode>, name: &str) -> Rc<Mount> {
        let mount = self.table.mount(seen(root, &name.into_name()), None);
        let spot = Spot { mount: on.clone(), inode: covered };
        self.first.add(&mount, Some(Point { spot, location: None }));
        mount
    }

    /// What has been there since before there was a clock was made now.
    pub(super) fn set_times(&self, now: Time) {
        let mut left: Vec<_> =
            self.first.mounts().into_iter().map(|mount| mount.root().clone()).collect();
        while let Some(inode) = left.pop() {
            if inode.created.get() == Time::default() {
                for cell in [&inode.accessed, &inode.modified, &inode.changed, &inode.created] {
                    cell.set(now);
                }
                left.extend(inode.directory().into_iter().flat_map(Directory::inodes));
            }
        }
    }

    /// The root of everything, as process 1 reaches it.
    #[must_use]
    pub fn first_spot(&self) -> Spot {
        let mount = self.first.root().unwrap_or_else(|| self.nowhere.clone());
        mount.root_spot()
    }

    /// The root of everything.
    #[must_use]
    pub fn root(&self) -> Rc<Inode> {
        self.root.clone()
    }

    /// Thread `tid` of process `pid` waits for a lock of process `holder`.
    pub(super) fn starts_waiting(&self, tid: Pid, pid: Pid, holder: Pid) {
        self.waiting.borrow_mut().add(tid, pid, holder);
    }

    /// Thread `tid` does not wait for a lock.
    pub(super) fn stops_waiting(&self, tid: Pid) {
        self.waiting.borrow_mut().remove(tid);
    }

    /// Whether `holder` waits, over any number of others, for `pid`.
    pub(super) fn would_deadlock(&self, unix: &Unix, pid: Pid, holder: Pid) -> bool {
        self.waiting.borrow_mut().leads_to(unix, pid, holder)
    }

    /// Process `pid` has ended: its POSIX locks end.
    pub fn process_ended(&self, pid: Pid) {
        while let Some(inode) = self.holders.take(pid) {
            inode.locks.process_closed(pid);
        }
    }
}

/// All of a new file system, to be mounted as `name`.
fn seen(root: Rc<Inode>, name: &Name) -> Seen<'_> {
    let tree = Rc::new(Tree(root.clone()));
    Seen { tree, root, source: name, flags: linux::MS_RELATIME, origin: None }
}

/// Takes a tree apart that nobody can reach any more; in a loop, for it may be deep.
pub(super) fn take_apart(root: &Rc<Inode>) {
    let mut left = alloc::vec![root.clone()];
    while let Some(inode) = left.pop() {
        if let Some(directory) = inode.directory() {
            left.extend(directory.clear());
            drop(directory.take_parent());
            directory.set_removed();
        }
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
