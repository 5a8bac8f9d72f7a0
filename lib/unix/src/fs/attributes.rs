//! Changing what inodes say of themselves: chmod, chown, times; and access.

use linux_raw_sys::general as linux;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::inode::PERMISSIONS;
use super::permission;
use super::spot::Spot;
use super::time::Time;
use super::tree_file::without_set_id;
use super::walk::{self, Follow, Walk};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::process::Credentials;

/// `chmod(path, mode)`.
pub(super) fn chmod(cx: &Cx) -> Answer {
    change_mode(cx, &walk::inode(cx, cx.arg(0))?, cx.uint(1))
}

/// `fchmod(fd, mode)`.
pub(super) fn fchmod(cx: &Cx) -> Answer {
    let inode = Spot::of(cx, &*cx.file(cx.uint(0))?);
    change_mode(cx, &inode, cx.uint(1))
}

/// `fchmodat(fd, path, mode)`.
pub(super) fn fchmodat(cx: &Cx) -> Answer {
    change_mode(cx, &walk::inode_at(cx, cx.int(0), cx.arg(1), 0)?, cx.uint(2))
}

/// `fchmodat2(fd, path, mode, flags)`.
pub(super) fn fchmodat2(cx: &Cx) -> Answer {
    let flags = cx.uint(3);
    if flags & !(linux::AT_SYMLINK_NOFOLLOW | linux::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = walk::inode_at(cx, cx.int(0), cx.arg(1), flags)?;
    if inode.is_symlink() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    change_mode(cx, &inode, cx.uint(2))
}

fn change_mode(cx: &Cx, inode: &Spot, mode: u32) -> Answer {
    inode.check_writable()?;
    let who = cx.process.credentials.borrow();
    if !permission::owns(&who, inode) {
        return Err(Errno::EPERM.into());
    }
    let mut mode = mode & PERMISSIONS;
    if !who.may_to(inode, linux::CAP_FSETID) && !permission::in_group(&who, inode.gid.get()) {
        mode &= !linux::S_ISGID;
    }
    inode.mode.set(inode.file_type() | mode);
    inode.touch_changed(cx.unix);
    inode.happened(cx.unix, linux::IN_ATTRIB);
    Ok(0)
}

/// `chown(path, uid, gid)`.
pub(super) fn chown(cx: &Cx) -> Answer {
    change_owner(cx, &walk::inode(cx, cx.arg(0))?, cx.uint(1), cx.uint(2))
}

/// `lchown(path, uid, gid)`.
pub(super) fn lchown(cx: &Cx) -> Answer {
    let inode = walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), linux::AT_SYMLINK_NOFOLLOW)?;
    change_owner(cx, &inode, cx.uint(1), cx.uint(2))
}

/// `fchown(fd, uid, gid)`.
pub(super) fn fchown(cx: &Cx) -> Answer {
    let inode = Spot::of(cx, &*cx.file(cx.uint(0))?);
    change_owner(cx, &inode, cx.uint(1), cx.uint(2))
}

/// `fchownat(fd, path, uid, gid, flags)`.
pub(super) fn fchownat(cx: &Cx) -> Answer {
    let flags = cx.uint(4);
    if flags & !(linux::AT_SYMLINK_NOFOLLOW | linux::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = walk::inode_at(cx, cx.int(0), cx.arg(1), flags)?;
    change_owner(cx, &inode, cx.uint(2), cx.uint(3))
}

fn change_owner(cx: &Cx, inode: &Spot, uid: u32, gid: u32) -> Answer {
    let (uid, gid) = (cx.user_meant(uid)?, cx.group_meant(gid)?);
    inode.check_writable()?;
    let who = cx.process.credentials.borrow();
    let is_owner = who.fsuid == inode.uid.get();
    let may_uid = uid == u32::MAX || is_owner && uid == inode.uid.get();
    let may_gid =
        gid == u32::MAX || is_owner && (gid == inode.gid.get() || permission::in_group(&who, gid));
    if !(who.may_to(inode, linux::CAP_CHOWN) || may_uid && may_gid) {
        return Err(Errno::EPERM.into());
    }
    let mode = kept_mode(inode, &who);
    // To end set-id bits is to change the mode.
    if mode != inode.mode.get() && !is_owner && !who.may_to(inode, linux::CAP_FOWNER) {
        return Err(Errno::EPERM.into());
    }
    if uid != u32::MAX {
        inode.uid.set(uid);
    }
    if gid != u32::MAX {
        inode.gid.set(gid);
    }
    inode.mode.set(mode);
    inode.touch_changed(cx.unix);
    inode.happened(cx.unix, linux::IN_ATTRIB);
    Ok(0)
}

/// The mode that an inode has when `who` has changed its owner. Set-group-id without the right to execute for the
/// group stays if `who` might set it.
fn kept_mode(inode: &Spot, who: &Credentials) -> u32 {
    let mode = inode.mode.get();
    if inode.is_directory() {
        return mode;
    }
    let may_set =
        permission::in_group(who, inode.gid.get()) || who.may_to(inode, linux::CAP_FSETID);
    let kept = without_set_id(mode);
    if may_set { kept } else { kept & !linux::S_ISGID }
}

/// `access(path, mode)`.
pub(super) fn access(cx: &Cx) -> Answer {
    check_access(cx, linux::AT_FDCWD, cx.arg(0), cx.uint(1), 0)
}

/// `faccessat(fd, path, mode)`.
pub(super) fn faccessat(cx: &Cx) -> Answer {
    check_access(cx, cx.int(0), cx.arg(1), cx.uint(2), 0)
}

/// `faccessat2(fd, path, mode, flags)`.
pub(super) fn faccessat2(cx: &Cx) -> Answer {
    check_access(cx, cx.int(0), cx.arg(1), cx.uint(2), cx.uint(3))
}

fn check_access(cx: &Cx, fd: i32, address: u64, mode: u32, flags: u32) -> Answer {
    let known = linux::AT_EACCESS | linux::AT_SYMLINK_NOFOLLOW | linux::AT_EMPTY_PATH;
    if mode & !7 != 0 || flags & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut who = cx.process.credentials.borrow().clone();
    if flags & linux::AT_EACCESS == 0 {
        (who.fsuid, who.fsgid) = (who.uid, who.gid);
        let is_root = who.is_root(who.uid);
        who.capabilities.of_real_user(is_root);
    }
    let path = cx.user().read_path(address)?;
    let inode = if path.is_empty() && flags & linux::AT_EMPTY_PATH != 0 {
        walk::inode_at(cx, fd, address, linux::AT_EMPTY_PATH)?
    } else if path.is_empty() {
        return Err(Errno::ENOENT.into());
    } else {
        let no_follow = flags & linux::AT_SYMLINK_NOFOLLOW != 0;
        let follow = if no_follow { Follow::No } else { Follow::Yes };
        let start = walk::start(cx, fd, &path)?;
        Walk::new(cx, &who, start, 0).find(path, follow)?.existing()?
    };
    if mode != 0 {
        if mode & permission::WRITE != 0 && (inode.is_regular() || inode.is_directory()) {
            inode.mount.check_writable()?;
        }
        permission::check(&inode, &who, mode)?;
    }
    Ok(0)
}

/// A new time stamp.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Now,
    Omit,
    At(Time),
    /// Refused once the file is found.
    Invalid,
}

/// `struct timespec` or `timeval`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Pair {
    seconds: i64,
    part: i64,
}

fn from_timespec(pair: Pair) -> Result<Stamp, Errno> {
    Ok(match u32::try_from(pair.part) {
        Ok(linux::UTIME_NOW) => Stamp::Now,
        Ok(linux::UTIME_OMIT) => Stamp::Omit,
        Ok(nanoseconds @ 0..1_000_000_000) => {
            Stamp::At(Time { seconds: pair.seconds, nanoseconds })
        }
        _ => Stamp::Invalid,
    })
}

fn from_timeval(pair: Pair) -> Result<Stamp, Errno> {
    match pair.part {
        part @ 0..1_000_000 => {
            Ok(Stamp::At(Time { seconds: pair.seconds, nanoseconds: part as u32 * 1000 }))
        }
        _ => Err(Errno::EINVAL),
    }
}

/// The two stamps at a user address; both are now if it is 0.
fn stamps(
    cx: &Cx,
    address: u64,
    convert: fn(Pair) -> Result<Stamp, Errno>,
) -> Result<[Stamp; 2], Errno> {
    if address == 0 {
        return Ok([Stamp::Now; 2]);
    }
    let [accessed, modified] = cx.user().read::<[Pair; 2]>(address)?;
    Ok([convert(accessed)?, convert(modified)?])
}

/// `utimensat(fd, path, times, flags)`.
pub(super) fn utimensat(cx: &Cx) -> Answer {
    let flags = cx.uint(3);
    let stamps = stamps(cx, cx.arg(2), from_timespec)?;
    if stamps == [Stamp::Omit; 2] {
        return Ok(0);
    }
    if flags & !(linux::AT_SYMLINK_NOFOLLOW | linux::AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = if cx.arg(1) == 0 && cx.int(0) != linux::AT_FDCWD {
        if flags != 0 {
            return Err(Errno::EINVAL.into());
        }
        Spot::of(cx, &*cx.file(cx.uint(0))?)
    } else if cx.arg(1) == 0 {
        return Err(Errno::EFAULT.into());
    } else {
        walk::inode_at(cx, cx.int(0), cx.arg(1), flags)?
    };
    change_times(cx, &inode, stamps)
}

/// `futimesat(fd, path, times)`.
pub(super) fn futimesat(cx: &Cx) -> Answer {
    let stamps = stamps(cx, cx.arg(2), from_timeval)?;
    let inode = if cx.arg(1) == 0 {
        Spot::of(cx, &*cx.file(cx.uint(0))?)
    } else {
        walk::inode_at(cx, cx.int(0), cx.arg(1), 0)?
    };
    change_times(cx, &inode, stamps)
}

/// `utimes(path, times)`.
pub(super) fn utimes(cx: &Cx) -> Answer {
    let stamps = stamps(cx, cx.arg(1), from_timeval)?;
    change_times(cx, &walk::inode(cx, cx.arg(0))?, stamps)
}

/// `utime(path, times)`.
pub(super) fn utime(cx: &Cx) -> Answer {
    let stamps = match cx.arg(1) {
        0 => [Stamp::Now; 2],
        address => cx
            .user()
            .read::<[i64; 2]>(address)?
            .map(|seconds| Stamp::At(Time { seconds, nanoseconds: 0 })),
    };
    change_times(cx, &walk::inode(cx, cx.arg(0))?, stamps)
}

fn change_times(cx: &Cx, inode: &Spot, stamps: [Stamp; 2]) -> Answer {
    inode.check_writable()?;
    if stamps.contains(&Stamp::Invalid) {
        return Err(Errno::EINVAL.into());
    }
    let who = cx.process.credentials.borrow();
    if !permission::owns(&who, inode) {
        if stamps != [Stamp::Now; 2] {
            return Err(Errno::EPERM.into());
        }
        permission::check(inode, &who, permission::WRITE)?;
    }
    let now = Time::now(cx.unix);
    for (stamp, cell) in stamps.into_iter().zip([&inode.accessed, &inode.modified]) {
        match stamp {
            Stamp::Now => cell.set(now),
            Stamp::Omit | Stamp::Invalid => {}
            Stamp::At(time) => cell.set(time),
        }
    }
    inode.changed.set(now);
    inode.happened(
        cx.unix,
        match stamps {
            [Stamp::Omit, _] => linux::IN_MODIFY,
            [_, Stamp::Omit] => linux::IN_ACCESS,
            _ => linux::IN_ATTRIB,
        },
    );
    Ok(0)
}
