//! mount and umount2: what their flags ask for.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::directory::{Directory, Name};
use super::filesystem::{Filesystem, Kind as FsKind};
use super::inode::{Inode, Kind};
use super::mount_space::{MountSpace, SETTABLE, move_mount};
use super::mounts::{Mount, Point, Seen, Tree};
use super::proc::Node;
use super::share::{graft, inherit, tell_unmounted};
use super::spot::Spot;
use super::time::Time;
use super::tree::{empty_root, fill_devices, new_directory};
use super::walk::{self, Follow};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::memory::PAGE;
use crate::process::{namespace, numbers};

/// The flags of `umount2`.
const UNMOUNT_FLAGS: u32 =
    linux::MNT_FORCE | linux::MNT_DETACH | linux::MNT_EXPIRE | linux::UMOUNT_NOFOLLOW;

/// `mount(source, target, type, flags, data)`.
pub(super) fn mount(cx: &Cx) -> Answer {
    let string = |at: usize| match cx.arg(at) {
        0 => Ok(Vec::new()),
        address => cx.user().read_string(address, PAGE, Errno::EINVAL),
    };
    let (kind, source, data) = (string(2)?, string(0)?, string(4)?);
    let point = find_point(cx, cx.arg(1))?;
    let space = namespace::check_mounts(cx)?;
    let flags = cx.uint(3);
    if flags & linux::MS_REMOUNT != 0 {
        return remount(cx, &space, &point.spot, flags);
    }
    if flags & linux::MS_BIND != 0 {
        let from = find_point(cx, cx.arg(0))?;
        return bind(cx, &space, &from, point, flags);
    }
    if flags & KINDS != 0 {
        return set_kind(cx, &space, &point.spot, flags);
    }
    if flags & linux::MS_MOVE != 0 {
        let from = walk::inode(cx, cx.arg(0))?;
        check_point(&space, &point, point.spot.is_directory())?;
        move_mount(cx, &from, point)?;
        return Ok(0);
    }
    check_point(&space, &point, true)?;
    let root = new_root(cx, &kind, &data)?;
    check_shown(cx, &space, root.fs.kind)?;
    // Terminals are one file system, whoever mounts it.
    let is_own = root.fs.kind != FsKind::Devpts;
    if is_own {
        root.fs.users.replace(space.users.clone());
        root.fs.read_only.set(flags & linux::MS_RDONLY != 0);
    }
    let source: Name = if cx.arg(0) == 0 { b"none"[..].into() } else { source.into() };
    let tree = Rc::new(Tree(root.clone()));
    let flags = if is_own { flags & !linux::MS_RDONLY } else { flags } | linux::MS_RELATIME;
    let mount = space.new_mount(Seen { tree, root, source: &source, flags, origin: None })?;
    graft(cx, &space, alloc::vec![(mount, None)], point, || {})?;
    Ok(0)
}

/// Whether a file system of this kind may be mounted. What is the same for all must be seen already, whole, by who
/// is not of the first users: else it could show what somebody has covered.
fn check_shown(cx: &Cx, space: &MountSpace, kind: FsKind) -> Result<(), Errno> {
    let who = cx.process.credentials.borrow();
    let may = match kind {
        FsKind::Proc => {
            who.may_in(&numbers::owner(cx.numbers()), linux_raw_sys::general::CAP_SYS_ADMIN)
        }
        FsKind::Devtmpfs => who.may(linux_raw_sys::general::CAP_SYS_ADMIN),
        _ => true,
    };
    let is_shared =
        matches!(kind, FsKind::Proc | FsKind::Sysfs | FsKind::Devpts) && space.users.is_some();
    if may && (!is_shared || shows_whole(space, kind)) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Whether a namespace has a mount of all of such a file system, in which nothing is covered that must stay so.
fn shows_whole(space: &MountSpace, kind: FsKind) -> bool {
    let mounts = space.mounts();
    let covered = |on: &Rc<Mount>| {
        mounts.iter().any(|mount| {
            let point = mount.point().filter(|_| mount.is_locked());
            point.is_some_and(|point| Rc::ptr_eq(&point.spot.mount, on))
        })
    };
    let whole = |mount: &Rc<Mount>| {
        mount.root().fs.kind == kind
            && Rc::ptr_eq(mount.root(), mount.tree_root())
            && !mount.has(linux::MS_RDONLY)
            && !mount.root().fs.read_only.get()
            && !covered(mount)
    };
    mounts.iter().any(whole)
}

/// Flags that say who hears of a mount.
pub(super) const KINDS: u32 =
    linux::MS_SHARED | linux::MS_PRIVATE | linux::MS_SLAVE | linux::MS_UNBINDABLE;

/// Where something is to be mounted.
fn find_point(cx: &Cx, address: u64) -> Result<Point, Errno> {
    let mut found = walk::find(cx, linux::AT_FDCWD, address, Follow::Yes)?;
    let location = found.name.take().map(|name| (found.parent.clone(), name));
    let spot = found.existing()?;
    let location = location.filter(|_| !spot.is_directory());
    Ok(Point { spot, location })
}

/// Whether a directory (or something else) can be mounted there.
fn check_point(space: &MountSpace, point: &Point, directory: bool) -> Result<(), Errno> {
    let spot = &point.spot;
    if !space.has(&spot.mount) {
        return Err(Errno::EINVAL);
    }
    if spot.is_directory() != directory {
        return Err(Errno::ENOTDIR);
    }
    if spot.links.get() == 0 || spot.directory().is_some_and(Directory::is_removed) {
        return Err(Errno::ENOENT);
    }
    // Those there come and go.
    let fleeting = match &spot.kind {
        Kind::Proc(node) => node.is_of_process(),
        _ => spot.fs.kind == FsKind::Devpts,
    };
    if fleeting && !spot.is_mount_root() { Err(Errno::EBUSY) } else { Ok(()) }
}

/// `MS_BIND`.
fn bind(cx: &Cx, space: &Rc<MountSpace>, from: &Point, point: Point, flags: u32) -> Answer {
    check_point(space, &point, from.spot.is_directory())?;
    let copies = super::bind::bound(cx, from, flags & linux::MS_REC != 0)?;
    inherit(&cx.unix.fs.table, &copies);
    let tree = copies.into_iter().map(|copy| (copy.new, copy.point)).collect();
    graft(cx, space, tree, point, || {})?;
    Ok(0)
}

/// `MS_REMOUNT`: of the mount (`MS_BIND`), or of the file system.
fn remount(cx: &Cx, space: &MountSpace, spot: &Spot, flags: u32) -> Answer {
    if !spot.is_mount_root() || !space.has(&spot.mount) {
        return Err(Errno::EINVAL.into());
    }
    let mount = &spot.mount;
    namespace::check_flags(cx, mount, flags)?;
    let kept = mount.flags.get() & !SETTABLE;
    space.change();
    if flags & linux::MS_BIND != 0 {
        mount.flags.set(kept | flags & SETTABLE);
        return Ok(0);
    }
    spot.fs.read_only.set(flags & linux::MS_RDONLY != 0);
    mount.flags.set(kept | flags & SETTABLE & !linux::MS_RDONLY);
    Ok(0)
}

/// `MS_SHARED`, `MS_PRIVATE`, `MS_SLAVE`, `MS_UNBINDABLE`.
fn set_kind(cx: &Cx, space: &MountSpace, spot: &Spot, flags: u32) -> Answer {
    let kind = flags & KINDS;
    if !kind.is_power_of_two() || flags & !(KINDS | linux::MS_REC | linux::MS_SILENT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if !spot.is_mount_root() || !space.has(&spot.mount) {
        return Err(Errno::EINVAL.into());
    }
    let all = match flags & linux::MS_REC {
        0 => alloc::vec![spot.mount.clone()],
        _ => space.below(&spot.mount),
    };
    all.iter().for_each(|mount| super::share::set_kind(&cx.unix.fs.table, mount, kind));
    Ok(0)
}

/// The root of a new file system.
fn new_root(cx: &Cx, kind: &[u8], data: &[u8]) -> Result<Rc<Inode>, Errno> {
    let all = &cx.unix.fs;
    let kind = match kind {
        b"tmpfs" | b"ramfs" => FsKind::Tmpfs,
        b"proc" => FsKind::Proc,
        b"sysfs" => FsKind::Sysfs,
        b"devtmpfs" => FsKind::Devtmpfs,
        b"devpts" => FsKind::Devpts,
        _ => return Err(Errno::ENODEV),
    };
    let device = all.next_device.replace(all.next_device.get() + 1);
    let fs = Filesystem::new(kind, device, &cx.unix.memory);
    let now = Time::now(cx.unix);
    let root = match kind {
        FsKind::Proc => new_directory(&fs, Kind::Proc(Node::root(cx.numbers().cloned())), 0o555),
        FsKind::Sysfs => new_directory(&fs, Kind::Proc(Node::devices()), 0o555),
        FsKind::Devpts => new_directory(&all.pts, Kind::Pts, 0o755),
        FsKind::Devtmpfs => {
            let root = empty_root(&fs, 0o755);
            fill_devices(&root);
            root
        }
        _ => empty_root(&fs, 0o1777),
    };
    if kind == FsKind::Tmpfs {
        let who = cx.process.credentials.borrow();
        root.uid.set(who.fsuid);
        root.gid.set(who.fsgid);
        drop(who);
        apply_options(cx, &root, data)?;
    }
    for cell in [&root.accessed, &root.modified, &root.changed, &root.created] {
        cell.set(now);
    }
    Ok(root)
}

/// Options of tmpfs: `size=`, `nr_inodes=`, `mode=`, `uid=`, `gid=`.
fn apply_options(cx: &Cx, root: &Inode, data: &[u8]) -> Result<(), Errno> {
    for option in data.split(|byte| *byte == b',').filter(|option| !option.is_empty()) {
        let text = core::str::from_utf8(option).map_err(|_| Errno::EINVAL)?;
        let (name, value) = text.split_once('=').ok_or(Errno::EINVAL)?;
        let number = |radix| u64::from_str_radix(value, radix).map_err(|_| Errno::EINVAL);
        let id = || value.parse().ok().filter(|id| *id != u32::MAX).ok_or(Errno::EINVAL);
        match name {
            "size" => root.fs.set_limits(Some(size(root, value)?), None),
            "nr_inodes" => root.fs.set_limits(None, Some(number(10)?)),
            "mode" => root.mode.set(root.file_type() | number(8)? as u32 & 0o7777),
            "uid" => root.uid.set(cx.user_meant(id()?)?),
            "gid" => root.gid.set(cx.group_meant(id()?)?),
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
    let spot = walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), follow)?;
    let space = namespace::check_mounts(cx)?;
    let Spot { mount, inode } = spot;
    if !Rc::ptr_eq(&inode, mount.root()) || !space.has(&mount) || mount.is_locked() {
        return Err(Errno::EINVAL.into());
    }
    let point = mount.point().ok_or(if flags & linux::MNT_DETACH == 0 {
        Errno::EBUSY
    } else {
        Errno::EINVAL
    })?;
    let lazily = flags & linux::MNT_DETACH != 0;
    if !lazily && is_busy(&mount, 1) {
        return Err(Errno::EBUSY.into());
    }
    tell_unmounted(&cx.unix.fs.table, &mount, &point);
    space.below(&mount).iter().rev().for_each(|one| space.remove(one));
    Ok(0)
}

/// Whether anybody is in a mount, or something is open or mounted in it; `known` references are the
/// caller's.
pub(super) fn is_busy(mount: &Rc<Mount>, known: usize) -> bool {
    // One is its namespace's, one that of the table.
    Rc::strong_count(mount) > 2 + known
}
