//! From file to file without the program's memory: sendfile, copy_file_range. And the
//! calls that write back, of which there is nothing to do for files in memory.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::inode::Kind;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Open, Sink, Source};

/// Bytes held in the server at a time.
const PIECE: usize = 64 * 1024;
/// No call transfers more, for all others wait meanwhile. (Linux's `MAX_RW_COUNT` is 2 GiB; who calls has to call
/// again for the rest there, too.)
const TRANSFER_MAX: u64 = 16 << 20;

/// The offset at a user address.
fn offset(cx: &Cx, address: u64) -> Result<u64, Errno> {
    let offset: u64 = cx.user().read(address)?;
    if offset > super::regular::SIZE_MAX { Err(Errno::EINVAL) } else { Ok(offset) }
}

/// Copies one piece; how many bytes were read, and how many of them written.
fn copy_piece(
    cx: &Cx,
    (from, at): (&Open, u64),
    (to, to_at): (&Open, u64),
    len: usize,
) -> Result<(usize, usize), Stop> {
    let mut bytes = Vec::new();
    let read = from.file.read(cx, from, &mut Sink::Server { to: &mut bytes, max: len }, at)?;
    if read == 0 {
        return Ok((0, 0));
    }
    let wrote = to.file.write(cx, to, &mut Source::Server(&bytes), to_at)?;
    Ok((read, wrote))
}

/// `sendfile(to, from, offset, count)`.
pub(super) fn sendfile(cx: &Cx) -> Answer {
    let from = cx.file(cx.uint(1))?;
    if !from.can_read() {
        return Err(Errno::EBADF.into());
    }
    let to = cx.file(cx.uint(0))?;
    if !to.can_write() {
        return Err(Errno::EBADF.into());
    }
    let start = match cx.arg(2) {
        0 => from.position.get(),
        _ if !from.file.has_position() => return Err(Errno::ESPIPE.into()),
        address => offset(cx, address)?,
    };
    let count = cx.arg(3).min(TRANSFER_MAX);
    if to.flags.get() & linux::O_APPEND != 0
        || !from.file.has_position()
        || count > 0 && !from.file.inode().is_regular()
    {
        return Err(Errno::EINVAL.into());
    }
    let to_start = to.position.get();
    let mut done = cx.progress();
    while done < count {
        let len = PIECE.min((count - done) as usize);
        match copy_piece(cx, (&from, start + done), (&to, to_start + done), len) {
            Ok((0, _)) => break,
            Ok((_, 0)) => break,
            Ok((_, wrote)) => done += wrote as u64,
            Err(Stop::Errno(_)) if done > 0 => break,
            Err(Stop::Block) => {
                cx.set_progress(done);
                return Err(Stop::Block);
            }
            Err(stop) => return Err(stop),
        }
    }
    if to.file.has_position() {
        to.position.set(to_start + done);
    }
    match cx.arg(2) {
        0 => from.position.set(start + done),
        address => cx.user().write(address, &(start + done))?,
    }
    Ok(done)
}

/// `copy_file_range(from, from_offset, to, to_offset, len, flags)`.
pub(super) fn copy_file_range(cx: &Cx) -> Answer {
    let (from, to) = (cx.file(cx.uint(0))?, cx.file(cx.uint(2))?);
    let position = |open: &Open, address| match address {
        0 => Ok(open.position.get()),
        address => offset(cx, address),
    };
    let start = position(&from, cx.arg(1))?;
    let to_start = position(&to, cx.arg(3))?;
    if cx.arg(5) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (inode, to_inode) = (from.file.inode(), to.file.inode());
    if inode.is_directory() || to_inode.is_directory() {
        return Err(Errno::EISDIR.into());
    }
    if !inode.is_regular() || !to_inode.is_regular() {
        return Err(Errno::EINVAL.into());
    }
    if !from.can_read() || !to.can_write() || to.flags.get() & linux::O_APPEND != 0 {
        return Err(Errno::EBADF.into());
    }
    let len = cx.arg(4).min(TRANSFER_MAX).min(inode.size().saturating_sub(start));
    let overlap = start < to_start.saturating_add(len) && to_start < start.saturating_add(len);
    if Rc::ptr_eq(&inode, &to_inode) && overlap {
        return Err(Errno::EINVAL.into());
    }
    let mut done = 0;
    while done < len {
        let piece = PIECE.min((len - done) as usize);
        match copy_piece(cx, (&from, start + done), (&to, to_start + done), piece) {
            Ok((_, 0)) => break,
            Ok((_, wrote)) => done += wrote as u64,
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        }
    }
    for (open, address, end) in
        [(&from, cx.arg(1), start + done), (&to, cx.arg(3), to_start + done)]
    {
        match address {
            0 => open.position.set(end),
            address => cx.user().write(address, &end)?,
        }
    }
    Ok(done)
}

/// `sync()`.
pub(super) fn sync(_: &Cx) -> Answer {
    Ok(0)
}

/// `syncfs(fd)`.
pub(super) fn syncfs(cx: &Cx) -> Answer {
    cx.file(cx.uint(0))?;
    Ok(0)
}

/// `fsync(fd)` and `fdatasync(fd)`.
pub(super) fn fsync(cx: &Cx) -> Answer {
    let inode = cx.file(cx.uint(0))?.file.inode();
    match inode.kind {
        Kind::Regular(_) | Kind::Directory(_) => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// `sync_file_range(fd, offset, len, flags)`.
pub(super) fn sync_file_range(cx: &Cx) -> Answer {
    let inode = cx.file(cx.uint(0))?.file.inode();
    let (offset, len) = (cx.arg(1) as i64, cx.arg(2) as i64);
    if cx.uint(3) & !7 != 0 || offset < 0 || len < 0 || offset.checked_add(len).is_none() {
        return Err(Errno::EINVAL.into());
    }
    match inode.kind {
        Kind::Regular(_) | Kind::Directory(_) | Kind::Block(_) | Kind::Symlink(_) => Ok(0),
        _ => Err(Errno::ESPIPE.into()),
    }
}

/// `fadvise64(fd, offset, len, advice)`.
pub(super) fn fadvise64(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    if matches!(open.file.inode().kind, Kind::Fifo) {
        return Err(Errno::ESPIPE.into());
    }
    if cx.uint(3) > 5 || (cx.arg(2) as i64) < 0 {
        return Err(Errno::EINVAL.into());
    }
    Ok(0)
}

/// `readahead(fd, offset, count)`.
pub(super) fn readahead(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    if !open.can_read() {
        return Err(Errno::EBADF.into());
    }
    if open.file.inode().is_regular() { Ok(0) } else { Err(Errno::EINVAL.into()) }
}
