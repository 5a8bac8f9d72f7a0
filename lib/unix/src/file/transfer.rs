//! Reading, writing and seeking on any descriptor.

use linux_raw_sys::general::{O_APPEND, SEEK_CUR, SEEK_DATA, SEEK_END, SEEK_HOLE, SEEK_SET};

use super::long::{TURN, read_long, write_long};
use super::{Open, Sink, Source, UserRanges};
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

/// Reads into `sink`.
#[inline(always)]
pub(super) fn read_into(cx: &Cx, open: &Open, sink: &mut Sink, at: At) -> Answer {
    let offset = match at {
        At::Position => open.position.get(),
        At::Offset(offset) => offset,
    };
    let count = open.file.read(cx, open, sink, offset)?;
    if at == At::Position {
        open.position.set(offset.wrapping_add(count as u64));
    }
    Ok(count as u64)
}

/// Writes from `source`, which begins behind what earlier tries have written.
#[inline(always)]
pub(super) fn write_from(cx: &Cx, open: &Open, source: &mut Source, at: At) -> Answer {
    let offset = match at {
        _ if open.flags.get() & O_APPEND != 0 && open.file.has_position() => open.file.size(),
        At::Position => open.position.get(),
        At::Offset(offset) => offset,
    };
    let before = cx.progress();
    match open.file.write(cx, open, source, offset) {
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

/// The buffer of a call as an address and a length.
fn whole(cx: &Cx) -> Result<(u64, usize), Errno> {
    check_range(cx.arg(1), cx.arg(2))?;
    Ok((cx.arg(1), (cx.arg(2) as usize).min(MAX_TRANSFER)))
}

/// The buffer of a call: arguments 1 and 2.
#[inline(always)]
fn buffer<'a>(cx: &'a Cx) -> Result<UserRanges<'a>, Errno> {
    let (address, len) = (cx.arg(1), cx.arg(2));
    check_range(address, len)?;
    Ok(UserRanges::one(cx.user(), address, (len as usize).min(MAX_TRANSFER)))
}

/// The buffer of a call that writes; what earlier tries have written is left out.
#[inline(always)]
fn buffer_left<'a>(cx: &'a Cx) -> Result<UserRanges<'a>, Errno> {
    let mut buffer = buffer(cx)?;
    if cx.progress() > 0 {
        buffer.skip(cx.progress() as usize);
    }
    Ok(buffer)
}

/// `read(fd, buffer, count)`.
pub(super) fn read(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    if !open.can_read() {
        return Err(Errno::EBADF.into());
    }
    if cx.arg(2) > TURN as u64 && open.file.has_position() {
        return read_long(cx, &open, &[whole(cx)?], At::Position);
    }
    read_into(cx, &open, &mut Sink::User(buffer(cx)?), At::Position)
}

/// `write(fd, buffer, count)`.
pub(super) fn write(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    if !open.can_write() {
        return Err(Errno::EBADF.into());
    }
    if cx.arg(2) > TURN as u64 && open.file.has_position() {
        return write_long(cx, &open, &[whole(cx)?], At::Position);
    }
    write_from(cx, &open, &mut Source::User(buffer_left(cx)?), At::Position)
}

/// `pread64(fd, buffer, count, offset)`.
pub(super) fn pread(cx: &Cx) -> Answer {
    let at = offset(cx.arg(3))?;
    let open = cx.file(cx.uint(0))?;
    check_positioned(&open, open.can_read())?;
    if cx.arg(2) > TURN as u64 {
        return read_long(cx, &open, &[whole(cx)?], at);
    }
    read_into(cx, &open, &mut Sink::User(buffer(cx)?), at)
}

/// `pwrite64(fd, buffer, count, offset)`.
pub(super) fn pwrite(cx: &Cx) -> Answer {
    let at = offset(cx.arg(3))?;
    let open = cx.file(cx.uint(0))?;
    check_positioned(&open, open.can_write())?;
    if cx.arg(2) > TURN as u64 {
        return write_long(cx, &open, &[whole(cx)?], at);
    }
    write_from(cx, &open, &mut Source::User(buffer_left(cx)?), at)
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
        return Ok(open.file.seek(cx, offset, whence)?);
    }
    let position = if open.file.stays_at_start() { 0 } else { seek(&open, offset, whence)? };
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
