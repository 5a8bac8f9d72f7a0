//! Changing sizes: truncate, ftruncate, fallocate.

use linux_raw_sys::general as linux;

use super::inode::{Inode, Kind};
use super::permission;
use super::regular::{Regular, SIZE_MAX};
use super::tree_file::{TreeFile, drop_set_id, size_limit};
use super::walk;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::Open;

const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
/// Modes that some file system of Linux has (tmpfs has only the two above).
const KNOWN: u32 = 0x7b;

/// Sets the size of a regular file.
pub(super) fn set(cx: &Cx, inode: &Inode, size: u64) -> Result<(), Errno> {
    let regular = inode.regular().ok_or(Errno::EINVAL)?;
    let (old, seals) = (regular.size(), regular.seals.get());
    if size > old && seals & linux::F_SEAL_GROW != 0
        || size < old && seals & linux::F_SEAL_SHRINK != 0
    {
        return Err(Errno::EPERM);
    }
    if size > old {
        size_limit(cx, size - 1)?;
    }
    drop_set_id(cx, inode);
    regular.truncate(cx.unix, &inode.fs, size);
    inode.touch_modified(cx.unix);
    Ok(())
}

/// The same for who has not opened it for writing.
///
/// # Errors
/// `ETXTBSY` while a program runs from it.
pub(super) fn set_as_writer(cx: &Cx, inode: &Inode, size: u64) -> Result<(), Errno> {
    inode.begin_write()?;
    let done = set(cx, inode, size);
    inode.end_write();
    done
}

fn size(value: u64) -> Result<u64, Errno> {
    if value > SIZE_MAX { Err(Errno::EINVAL) } else { Ok(value) }
}

/// `truncate(path, size)`.
pub(super) fn truncate(cx: &Cx) -> Answer {
    let size = size(cx.arg(1))?;
    let inode = walk::inode(cx, cx.arg(0))?;
    if inode.is_directory() {
        return Err(Errno::EISDIR.into());
    }
    if !inode.is_regular() {
        return Err(Errno::EINVAL.into());
    }
    inode.mount.check_writable()?;
    permission::check(&inode, &cx.process.credentials.borrow(), permission::WRITE)?;
    inode.locks.leases.break_for(cx, true, true)?;
    set_as_writer(cx, &inode, size)?;
    inode.happened(cx.unix, linux::IN_MODIFY);
    Ok(0)
}

/// `ftruncate(fd, size)`.
pub(super) fn ftruncate(cx: &Cx) -> Answer {
    let size = size(cx.arg(1))?;
    let open = cx.file(cx.uint(0))?;
    let inode = open.file.inode();
    if !inode.is_regular() || !open.can_write() {
        return Err(Errno::EINVAL.into());
    }
    set(cx, &inode, size)?;
    happened(cx, &open);
    Ok(0)
}

/// `fallocate(fd, mode, offset, len)`.
pub(super) fn fallocate(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let (mode, offset, len) = (cx.uint(1), cx.arg(2), cx.arg(3));
    if offset > SIZE_MAX || len > SIZE_MAX || len == 0 {
        return Err(Errno::EINVAL.into());
    }
    if mode & !KNOWN != 0 || mode & (PUNCH_HOLE | KEEP_SIZE) == PUNCH_HOLE {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !open.can_write() {
        return Err(Errno::EBADF.into());
    }
    let inode = open.file.inode();
    let regular = match &inode.kind {
        Kind::Regular(regular) => regular,
        Kind::Fifo => return Err(Errno::ESPIPE.into()),
        Kind::Directory(_) => return Err(Errno::EISDIR.into()),
        _ => return Err(Errno::ENODEV.into()),
    };
    let end = offset.checked_add(len).filter(|end| *end <= SIZE_MAX).ok_or(Errno::EFBIG)?;
    if mode & !(KEEP_SIZE | PUNCH_HOLE) != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if mode & PUNCH_HOLE != 0 {
        if regular.seals.get() & (linux::F_SEAL_WRITE | linux::F_SEAL_FUTURE_WRITE) != 0 {
            return Err(Errno::EPERM.into());
        }
        regular.clear(cx.unix, &inode.fs, offset, len);
    } else {
        reserve(cx, &inode, regular, (offset, len, end), mode)?;
    }
    drop_set_id(cx, &inode);
    inode.touch_modified(cx.unix);
    happened(cx, &open);
    Ok(0)
}

/// Those who watch the file hear that it changed.
fn happened(cx: &Cx, open: &Open) {
    if let Some(file) = open.file.as_any().downcast_ref::<TreeFile>() {
        file.happened(Some(cx.unix), linux::IN_MODIFY);
    }
}

fn reserve(
    cx: &Cx,
    inode: &Inode,
    regular: &Regular,
    (offset, len, end): (u64, u64, u64),
    mode: u32,
) -> Result<(), Stop> {
    let grows = mode & KEEP_SIZE == 0 && end > regular.size();
    if grows && regular.seals.get() & linux::F_SEAL_GROW != 0 {
        return Err(Errno::EPERM.into());
    }
    if grows {
        size_limit(cx, end - 1)?;
    }
    if let Some(done) = regular.fill(&inode.fs, (offset, len), cx.progress())? {
        return Err(cx.give_way(done));
    }
    if grows {
        regular.extend(&inode.fs, end);
    }
    Ok(())
}
