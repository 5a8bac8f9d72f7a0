//! mount and umount2.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::devpts::Pts;
use super::filesystem::{Filesystem, Kind as FsKind};
use super::inode::{Inode, Kind};
use super::mounts::{covered, empty_root, fill_devices, new_directory};
use super::proc::Node;
use super::time::Time;
use super::walk;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::memory::PAGE;
use crate::unix::Unix;

/// Most mounted file systems.
const MOUNTS_MAX: usize = 256;

/// The flags of `umount2`.
const UNMOUNT_FLAGS: u32 =
    linux::MNT_FORCE | linux::MNT_DETACH | linux::MNT_EXPIRE | linux::UMOUNT_NOFOLLOW;

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
    if !cx.process.credentials.borrow().may(linux::CAP_SYS_ADMIN) {
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
    if flags & !UNMOUNT_FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    let follow = if flags & linux::UMOUNT_NOFOLLOW != 0 { linux::AT_SYMLINK_NOFOLLOW } else { 0 };
    let root = walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), follow)?;
    if !cx.process.credentials.borrow().may(linux::CAP_SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    if !is_mount_root(cx.unix, &root) {
        return Err(Errno::EINVAL.into());
    }
    let in_use = is_busy(cx.unix, &root);
    if covered(&root).is_none() || in_use && flags & linux::MNT_DETACH == 0 {
        return Err(Errno::EBUSY.into());
    }
    cx.unix.fs.unmount(&root);
    if in_use {
        cx.unix.fs.detached.borrow_mut().push(root);
    } else {
        take_apart(&root);
    }
    Ok(0)
}

/// After files were closed: file systems that were unmounted while somebody used them, and
/// that nobody uses any more, are taken apart.
pub fn settle(unix: &Unix) {
    if unix.fs.detached.borrow().is_empty() {
        return;
    }
    let all = unix.fs.detached.take();
    let (busy, unused): (Vec<_>, Vec<_>) = all.into_iter().partition(|root| is_busy(unix, root));
    *unix.fs.detached.borrow_mut() = busy;
    unused.iter().for_each(take_apart);
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
