//! What files are: stat, lstat, fstat, newfstatat, statx, statfs, fstatfs.

use linux_raw_sys::general as linux;
use zerocopy::{Immutable, IntoBytes};

use super::filesystem::{Filesystem, Kind};
use super::inode::Inode;
use super::spot::Spot;
use super::time::Time;
use super::walk;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::memory::PAGE;

/// `struct stat`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Stat {
    pub dev: u64,
    pub ino: u64,
    pub nlink: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pad: u32,
    pub rdev: u64,
    pub size: i64,
    pub blksize: i64,
    pub blocks: i64,
    pub atime: [i64; 2],
    pub mtime: [i64; 2],
    pub ctime: [i64; 2],
    unused: [i64; 3],
}

impl Stat {
    /// What `fstat` tells of an inode.
    #[must_use]
    pub fn of(cx: &Cx, inode: &Inode) -> Self {
        let time = |time: Time| [time.seconds, time.nanoseconds.into()];
        Self {
            dev: inode.fs.device,
            ino: inode.number,
            nlink: inode.links.get().into(),
            mode: inode.mode.get(),
            uid: cx.user_told(inode.uid.get()),
            gid: cx.group_told(inode.gid.get()),
            rdev: inode.device(),
            size: inode.size() as i64,
            blksize: block_size(inode),
            blocks: inode.blocks() as i64,
            atime: time(inode.accessed.get()),
            mtime: time(inode.modified.get()),
            ctime: time(inode.changed.get()),
            ..Self::default()
        }
    }
}

fn block_size(inode: &Inode) -> i64 {
    if inode.fs.kind == Kind::Proc { 1024 } else { PAGE as i64 }
}

/// `struct statx_timestamp`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct StatxTime {
    pub seconds: i64,
    pub nanoseconds: u32,
    pad: i32,
}

impl From<Time> for StatxTime {
    fn from(time: Time) -> Self {
        Self { seconds: time.seconds, nanoseconds: time.nanoseconds, pad: 0 }
    }
}

/// `struct statx`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Statx {
    pub mask: u32,
    pub blksize: u32,
    pub attributes: u64,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub mode: u16,
    pad: u16,
    pub ino: u64,
    pub size: u64,
    pub blocks: u64,
    pub attributes_mask: u64,
    pub atime: StatxTime,
    pub btime: StatxTime,
    pub ctime: StatxTime,
    pub mtime: StatxTime,
    pub rdev: [u32; 2],
    pub dev: [u32; 2],
    pub mnt_id: u64,
    unused: [u64; 13],
}

/// `STATX_ATTR_MOUNT_ROOT`.
const MOUNT_ROOT: u64 = 0x2000;

/// Major and minor part of a device number.
fn parts(device: u64) -> [u32; 2] {
    let minor = super::device::minor(device);
    [super::device::major(device) as u32, minor as u32]
}

impl Statx {
    /// What `statx` tells of an inode in a mount.
    #[must_use]
    pub fn at(cx: &Cx, spot: &Spot) -> Self {
        let attributes = if spot.is_mount_root() { MOUNT_ROOT } else { 0 };
        let mnt_id = spot.mount.id;
        Self { attributes, attributes_mask: MOUNT_ROOT, mnt_id, ..Self::of(cx, spot) }
    }

    /// What `statx` tells of an inode.
    #[must_use]
    pub fn of(cx: &Cx, inode: &Inode) -> Self {
        Self {
            mask: linux::STATX_BASIC_STATS | linux::STATX_BTIME | linux::STATX_MNT_ID,
            blksize: block_size(inode) as u32,
            nlink: inode.links.get(),
            uid: cx.user_told(inode.uid.get()),
            gid: cx.group_told(inode.gid.get()),
            mode: inode.mode.get() as u16,
            ino: inode.number,
            size: inode.size(),
            blocks: inode.blocks(),
            atime: inode.accessed.get().into(),
            btime: inode.created.get().into(),
            ctime: inode.changed.get().into(),
            mtime: inode.modified.get().into(),
            rdev: parts(inode.device()),
            dev: parts(inode.fs.device),
            ..Self::default()
        }
    }
}

/// `stat(path, to)`.
pub(super) fn stat(cx: &Cx) -> Answer {
    let inode = walk::inode(cx, cx.arg(0))?;
    cx.user().write(cx.arg(1), &Stat::of(cx, &inode))?;
    Ok(0)
}

/// `lstat(path, to)`.
pub(super) fn lstat(cx: &Cx) -> Answer {
    let inode = walk::inode_at(cx, linux::AT_FDCWD, cx.arg(0), linux::AT_SYMLINK_NOFOLLOW)?;
    cx.user().write(cx.arg(1), &Stat::of(cx, &inode))?;
    Ok(0)
}

/// `fstat(fd, to)`.
pub(super) fn fstat(cx: &Cx) -> Answer {
    let inode = cx.file_or_path(cx.uint(0))?.file.inode();
    cx.user().write(cx.arg(1), &Stat::of(cx, &inode))?;
    Ok(0)
}

/// `newfstatat(fd, path, to, flags)`.
pub(super) fn newfstatat(cx: &Cx) -> Answer {
    let flags = cx.uint(3);
    let known = linux::AT_SYMLINK_NOFOLLOW | linux::AT_NO_AUTOMOUNT | linux::AT_EMPTY_PATH;
    if flags & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = walk::inode_at(cx, cx.int(0), cx.arg(1), flags)?;
    cx.user().write(cx.arg(2), &Stat::of(cx, &inode))?;
    Ok(0)
}

/// `statx(fd, path, flags, mask, to)`.
pub(super) fn statx(cx: &Cx) -> Answer {
    let (flags, mask) = (cx.uint(2), cx.uint(3));
    let sync = linux::AT_STATX_FORCE_SYNC | linux::AT_STATX_DONT_SYNC;
    let known = linux::AT_SYMLINK_NOFOLLOW | linux::AT_NO_AUTOMOUNT | linux::AT_EMPTY_PATH | sync;
    if flags & !known != 0 || flags & sync == sync || mask & linux::STATX__RESERVED != 0 {
        return Err(Errno::EINVAL.into());
    }
    let inode = walk::inode_at(cx, cx.int(0), cx.arg(1), flags)?;
    cx.user().write(cx.arg(4), &Statx::at(cx, &inode))?;
    Ok(0)
}

/// `struct statfs`.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Statfs {
    pub fs_type: u64,
    pub bsize: u64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub fsid: u64,
    pub namelen: u64,
    pub frsize: u64,
    pub flags: u64,
    spare: [u64; 4],
}

impl Statfs {
    /// What `statfs` tells of a file system.
    #[must_use]
    pub fn of(fs: &Filesystem) -> Self {
        const VALID: u64 = 0x20;
        const RELATIME: u64 = 0x1000;
        const READ_ONLY: u64 = 1;
        let counts = matches!(fs.kind, Kind::Tmpfs | Kind::Devtmpfs);
        let [blocks, bfree, files, ffree] = if counts { fs.usage() } else { [0; 4] };
        Self {
            fs_type: fs.kind.magic(),
            bsize: PAGE as u64,
            blocks,
            bfree,
            bavail: bfree,
            files,
            ffree,
            fsid: fs.device,
            namelen: super::directory::NAME_MAX as u64,
            frsize: PAGE as u64,
            flags: VALID | RELATIME | if fs.read_only.get() { READ_ONLY } else { 0 },
            ..Self::default()
        }
    }
}

/// `statfs(path, to)`.
pub(super) fn statfs(cx: &Cx) -> Answer {
    let inode = walk::inode(cx, cx.arg(0))?;
    cx.user().write(cx.arg(1), &Statfs::of(&inode.fs))?;
    Ok(0)
}

/// `fstatfs(fd, to)`.
pub(super) fn fstatfs(cx: &Cx) -> Answer {
    let inode = cx.file_or_path(cx.uint(0))?.file.inode();
    cx.user().write(cx.arg(1), &Statfs::of(&inode.fs))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn structures_are_laid_out_as_linux_has_them() {
        assert_eq!(size_of::<Stat>(), size_of::<linux::stat>());
        assert_eq!(offset_of!(Stat, rdev), offset_of!(linux::stat, st_rdev));
        assert_eq!(offset_of!(Stat, size), offset_of!(linux::stat, st_size));
        assert_eq!(offset_of!(Stat, blocks), offset_of!(linux::stat, st_blocks));
        assert_eq!(offset_of!(Stat, ctime), offset_of!(linux::stat, st_ctime));
        assert_eq!(size_of::<Statx>(), size_of::<linux::statx>());
        assert_eq!(offset_of!(Statx, mode), offset_of!(linux::statx, stx_mode));
        assert_eq!(offset_of!(Statx, atime), offset_of!(linux::statx, stx_atime));
        assert_eq!(offset_of!(Statx, mtime), offset_of!(linux::statx, stx_mtime));
        assert_eq!(offset_of!(Statx, mnt_id), offset_of!(linux::statx, stx_mnt_id));
        assert_eq!(size_of::<Statfs>(), size_of::<linux::statfs64>());
        assert_eq!(offset_of!(Statfs, namelen), offset_of!(linux::statfs64, f_namelen));
        assert_eq!(offset_of!(Statfs, flags), offset_of!(linux::statfs64, f_flags));
    }
}
