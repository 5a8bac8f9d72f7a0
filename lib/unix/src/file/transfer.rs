//! Reading, writing and seeking on any descriptor.

use linux_raw_sys::general::{O_APPEND, SEEK_CUR, SEEK_DATA, SEEK_END, SEEK_HOLE, SEEK_SET};

use super::{Open, Sink, Source};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;

/// No call transfers more bytes (Linux's `MAX_RW_COUNT`); more is cut off.
pub const MAX_TRANSFER: usize = 0x7fff_f000;

/// User addresses end here (Linux's `TASK_SIZE_MAX`).
pub const USER_END: u64 = 0x7fff_ffff_f000;

/// Where a transfer takes place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// At the open file's position, which moves.
    Position,
    /// There.
    Offset(u64),
}

/// Whether a range lies among the user addresses at all.
pub(super) fn check_range(address: u64, len: u64) -> Result<(), Errno> {
    match address.checked_add(len) {
        Some(end) if end <= USER_END => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// The offset argument of `pread` and its family.
fn offset(value: u64) -> Result<At, Errno> {
    if (value as i64) < 0 { Err(Errno::EINVAL) } else { Ok(At::Offset(value)) }
}

/// Reads into `ranges`, whose bytes `total` are counted.
pub(super) fn read_into(cx: &Cx, open: &Open, ranges: &[(u64, usize)], at: At) -> Answer {
    let mut sink = Sink::User { memory: cx.user(), ranges, next: 0 };
    match at {
        At::Position => {
            let position = open.position.get();
            let count = open.file.read(cx, open, &mut sink, position)?;
            open.position.set(position.wrapping_add(count as u64));
            Ok(count as u64)
        }
        At::Offset(offset) => Ok(open.file.read(cx, open, &mut sink, offset)? as u64),
    }
}

/// Writes from `ranges`; what earlier tries have written is skipped and counted.
pub(super) fn write_from(cx: &Cx, open: &Open, ranges: &[(u64, usize)], at: At) -> Answer {
    let before = cx.progress();
    let mut source = Source::User { memory: cx.user(), ranges, next: before as usize };
    let append = open.flags.get() & O_APPEND != 0 && open.file.has_position();
    let offset = match at {
        _ if append => open.file.size(),
        At::Position => open.position.get(),
        At::Offset(offset) => offset,
    };
    match open.file.write(cx, open, &mut source, offset) {
        Ok(count) => {
            if at == At::Position && count > 0 {
                open.position.set(offset.wrapping_add(count as u64));
            }
            Ok(before + count as u64)
        }
        Err(Stop::Errno(_)) if before > 0 => Ok(before),
        Err(stop) => Err(stop),
    }
}

/// `read(fd, buffer, count)`.
pub(super) fn read(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    if !open.can_read() {
        return Err(Errno::EBADF.into());
    }
    check_range(cx.arg(1), cx.arg(2))?;
    read_into(cx, &open, &[(cx.arg(1), (cx.arg(2) as usize).min(MAX_TRANSFER))], At::Position)
}

/// `write(fd, buffer, count)`.
pub(super) fn write(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    if !open.can_write() {
        return Err(Errno::EBADF.into());
    }
    check_range(cx.arg(1), cx.arg(2))?;
    write_from(cx, &open, &[(cx.arg(1), (cx.arg(2) as usize).min(MAX_TRANSFER))], At::Position)
}

/// `pread64(fd, buffer, count, offset)`.
pub(super) fn pread(cx: &Cx) -> Answer {
    let at = offset(cx.arg(3))?;
    let open = cx.file(cx.uint(0))?;
    check_positioned(&open, open.can_read())?;
    check_range(cx.arg(1), cx.arg(2))?;
    read_into(cx, &open, &[(cx.arg(1), (cx.arg(2) as usize).min(MAX_TRANSFER))], at)
}

/// `pwrite64(fd, buffer, count, offset)`.
pub(super) fn pwrite(cx: &Cx) -> Answer {
    let at = offset(cx.arg(3))?;
    let open = cx.file(cx.uint(0))?;
    check_positioned(&open, open.can_write())?;
    check_range(cx.arg(1), cx.arg(2))?;
    write_from(cx, &open, &[(cx.arg(1), (cx.arg(2) as usize).min(MAX_TRANSFER))], at)
}

/// The checks of calls that name an offset.
pub(super) fn check_positioned(open: &Open, allowed: bool) -> Result<(), Errno> {
    if !open.file.has_position() {
        Err(Errno::ESPIPE)
    } else if !allowed {
        Err(Errno::EBADF)
    } else {
        Ok(())
    }
}

/// `lseek(fd, offset, whence)`.
pub(super) fn lseek(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let (offset, whence) = (cx.arg(1) as i64, cx.uint(2));
    if whence > SEEK_HOLE {
        return Err(Errno::EINVAL.into());
    }
    if !open.file.has_position() {
        return Err(Errno::ESPIPE.into());
    }
    let position = seek(&open, offset, whence)?;
    open.position.set(position);
    Ok(position)
}

/// Where a seek leads.
fn seek(open: &Open, offset: i64, whence: u32) -> Result<u64, Errno> {
    let base = match whence {
        SEEK_SET => 0,
        SEEK_CUR => open.position.get(),
        SEEK_END | SEEK_DATA | SEEK_HOLE if open.file.inode().is_directory() => {
            return Err(Errno::EINVAL);
        }
        SEEK_END => open.file.size(),
        SEEK_DATA | SEEK_HOLE => {
            let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
            if offset >= open.file.size() {
                return Err(Errno::ENXIO);
            }
            let found = open.file.seek_hole(offset, whence == SEEK_HOLE);
            let nothing = whence == SEEK_DATA && found >= open.file.size();
            return if nothing { Err(Errno::ENXIO) } else { Ok(found) };
        }
        _ => return Err(Errno::EINVAL),
    };
    let target = (base as i64).checked_add(offset).ok_or(Errno::EOVERFLOW)?;
    u64::try_from(target).map_err(|_| Errno::EINVAL)
}
