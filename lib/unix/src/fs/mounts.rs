//! Where file systems are mounted: the tree at the start, mount, umount, and the table
//! that `/proc/mounts` shows.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as linux;

use super::device::DEVICES;
use super::devpts::Pts;
use super::directory::{Directory, Name};
use super::filesystem::{Filesystem, Kind as FsKind};
use super::inode::{Inode, Kind};
use super::locks::Waiting;
use super::permission;
use super::proc::Node;
use super::time::Time;
use super::walk;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::memory::{Memory, PAGE};
use crate::unix::Unix;

/// Most mounted file systems.
const MOUNTS_MAX: usize = 256;

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
    pub(super) pts: Rc<Filesystem>,
    mounts: RefCell<Vec<Mount>>,
    next_device: Cell<u64>,
    waiting: RefCell<Waiting>,
    /// Processes and the files on which they have locked something.
    holders: RefCell<Vec<(u32, alloc::rc::Weak<Inode>)>>,
}

/// The root of a new file system, or a directory of one.
fn new_directory(fs: &Rc<Filesystem>, kind: Kind, mode: u32) -> Rc<Inode> {
    let number = fs.new_number().unwrap_or(1);
    let inode = Inode::with_number(fs, number, kind, mode, (0, 0), Time::default());
    inode.links.set(2);
    inode
}

fn empty_root(fs: &Rc<Filesystem>, mode: u32) -> Rc<Inode> {
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

impl Filesystems {
    /// The tree at the start: empty but for `/dev`, `/proc` and `/tmp`.
    #[must_use]
    pub fn new(memory: &Rc<Memory>) -> Self {
        let new = |kind, device| Filesystem::new(kind, device, memory);
        let this = Self {
            root: empty_root(&new(FsKind::Tmpfs, 2), 0o755),
            pipes: new(FsKind::Pipe, 14),
            sockets: new(FsKind::Socket, 8),
            anonymous: new(FsKind::Anonymous, 15),
            pts: new(FsKind::Devpts, 20),
            mounts: RefCell::new(Vec::new()),
            next_device: Cell::new(40),
            waiting: RefCell::default(),
            holders: RefCell::default(),
        };
        this.mounts
            .borrow_mut()
            .push(Mount { root: this.root.clone(), source: "rootfs".into_name() });
        enter_directory(&this.root, "tmp", 0o1777);
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

    fn mount_on(&self, covered: &Rc<Inode>, root: Rc<Inode>, source: Name) {
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
    fn unmount(&self, root: &Rc<Inode>) {
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
fn fill_devices(dev: &Rc<Inode>) {
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

/// `mount(source, target, type, flags, data)`.
pub(super) fn mount(cx: &Cx) -> Answer {
    let user = cx.user();
    let kind = match cx.arg(2) {
        0 => Vec::new(),
        address => user.read_string(address, PAGE, Errno::EINVAL)?,
    };
    let source = match cx.arg(0) {
        0 => b"none".to_vec(),
        address => user.read_string(address, PAGE, Errno::EINVAL)?,
    };
    let data = match cx.arg(4) {
        0 => Vec::new(),
        address => user.read_string(address, PAGE, Errno::EINVAL)?,
    };
    let target = walk::inode(cx, cx.arg(1))?;
    if !permission::is_privileged(&cx.process.credentials.borrow()) {
        return Err(Errno::EPERM.into());
    }
    let flags = cx.uint(3);
    let read_only = flags & linux::MS_RDONLY != 0;
    if flags & linux::MS_REMOUNT != 0 {
        if !is_mount_root(cx.unix, &target) {
            return Err(Errno::EINVAL.into());
        }
        target.fs.read_only.set(read_only);
        return Ok(0);
    }
    if flags & (linux::MS_BIND | linux::MS_MOVE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if flags & (linux::MS_SHARED | linux::MS_PRIVATE | linux::MS_SLAVE | linux::MS_UNBINDABLE) != 0
    {
        return Ok(0);
    }
    let Some(directory) = target.directory() else {
        return Err(if target.is_directory() { Errno::EBUSY } else { Errno::ENOTDIR }.into());
    };
    if directory.mounted().is_some() || Rc::ptr_eq(&target, &cx.unix.fs.root()) {
        return Err(Errno::EBUSY.into());
    }
    let root = new_root(cx, &kind, &data)?;
    root.fs.read_only.set(read_only);
    cx.unix.fs.mount_on(&target, root, source.into());
    Ok(0)
}

fn is_mount_root(unix: &Unix, inode: &Rc<Inode>) -> bool {
    unix.fs.mounts.borrow().iter().any(|mount| Rc::ptr_eq(&mount.root, inode))
}

/// The root of a new file system.
fn new_root(cx: &Cx, kind: &[u8], data: &[u8]) -> Result<Rc<Inode>, Errno> {
    let all = &cx.unix.fs;
    if all.mounts.borrow().len() >= MOUNTS_MAX {
        return Err(Errno::ENOSPC);
    }
    let kind = match kind {
        b"tmpfs" | b"ramfs" => FsKind::Tmpfs,
        b"proc" => FsKind::Proc,
        b"devtmpfs" => FsKind::Devtmpfs,
        b"devpts" => FsKind::Devpts,
        _ => return Err(Errno::ENODEV),
    };
    let device = all.next_device.replace(all.next_device.get() + 1);
    let fs = Filesystem::new(kind, device, &cx.unix.memory);
    let now = Time::now(cx.unix);
    let root = match kind {
        FsKind::Proc => new_directory(&fs, Kind::Proc(Node::root()), 0o555),
        FsKind::Devpts => new_directory(&all.pts, Kind::Pts(Pts::default()), 0o755),
        FsKind::Devtmpfs => {
            let root = empty_root(&fs, 0o755);
            fill_devices(&root);
            root
        }
        _ => empty_root(&fs, 0o1777),
    };
    if kind == FsKind::Tmpfs {
        apply_options(&root, data)?;
    }
    for cell in [&root.accessed, &root.modified, &root.changed, &root.created] {
        cell.set(now);
    }
    Ok(root)
}

/// Options of tmpfs: `size=`, `nr_inodes=`, `mode=`, `uid=`, `gid=`.
fn apply_options(root: &Inode, data: &[u8]) -> Result<(), Errno> {
    for option in data.split(|byte| *byte == b',').filter(|option| !option.is_empty()) {
        let text = core::str::from_utf8(option).map_err(|_| Errno::EINVAL)?;
        let (name, value) = text.split_once('=').ok_or(Errno::EINVAL)?;
        let number = |radix| u64::from_str_radix(value, radix).map_err(|_| Errno::EINVAL);
        match name {
            "size" => root.fs.set_limits(Some(size(root, value)?), None),
            "nr_inodes" => root.fs.set_limits(None, Some(number(10)?)),
            "mode" => root.mode.set(root.file_type() | number(8)? as u32 & 0o7777),
            "uid" => root.uid.set(number(10)? as u32),
            "gid" => root.gid.set(number(10)? as u32),
            _ => return Err(Errno::EINVAL),
        }
    }
    Ok(())
}

/// `size=` with `k`, `m`, `g` or `%`, in pages.
fn size(root: &Inode, text: &str) -> Result<u64, Errno> {
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G', '%']);
    let number: u64 = digits.parse().map_err(|_| Errno::EINVAL)?;
    let scale = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "%" => return Ok((root.fs.memory.total() as u64).saturating_mul(number) / 100),
        _ => return Err(Errno::EINVAL),
    };
    Ok(number.saturating_mul(scale).div_ceil(PAGE as u64))
}

/// `umount2(target, flags)`.
pub(super) fn umount2(cx: &Cx) -> Answer {
    let flags = cx.uint(1);
    if flags & !0xf != 0 {
        return Err(Errno::EINVAL.into());
    }
    let follow = if flags & 8 != 0 { linux::AT_SYMLINK_NOFOLLOW } else { 0 };
    let root = walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), follow)?;
    if !permission::is_privileged(&cx.process.credentials.borrow()) {
        return Err(Errno::EPERM.into());
    }
    if !is_mount_root(cx.unix, &root) {
        return Err(Errno::EINVAL.into());
    }
    let is_lazy = flags & 2 != 0;
    if covered(&root).is_none() || !is_lazy && is_busy(cx.unix, &root) {
        return Err(Errno::EBUSY.into());
    }
    cx.unix.fs.unmount(&root);
    if !is_lazy {
        take_apart(&root);
    }
    Ok(0)
}

/// Whether a process is in a file system, or something is mounted or open in it.
fn is_busy(unix: &Unix, root: &Rc<Inode>) -> bool {
    let inside = |inode: &Rc<Inode>| Rc::ptr_eq(&inode.fs, &root.fs);
    let mounted = unix.fs.mounts.borrow().iter().any(|mount| {
        !Rc::ptr_eq(&mount.root, root) && covered(&mount.root).is_some_and(|inode| inside(&inode))
    });
    let processes: Vec<_> = unix.processes.by_pid.borrow().values().cloned().collect();
    mounted
        || processes.iter().any(|process| {
            let place = process.place.borrow();
            let files = process.files.borrow();
            inside(&place.root())
                || inside(&place.directory())
                || files
                    .numbers()
                    .into_iter()
                    .filter_map(|fd| files.get(fd))
                    .any(|open| inside(&open.file.inode()))
        })
}

/// Takes a tree apart that nobody can reach any more; in a loop, for it may be deep.
fn take_apart(root: &Rc<Inode>) {
    let mut left = alloc::vec![root.clone()];
    while let Some(inode) = left.pop() {
        if let Some(directory) = inode.directory() {
            left.extend(directory.clear());
            drop(directory.take_parent());
            directory.set_removed();
        }
    }
}
