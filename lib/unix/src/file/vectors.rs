//! Reading and writing with several buffers in one call.

use alloc::vec::Vec;

use linux_raw_sys::general::{RWF_APPEND, RWF_DSYNC, RWF_HIPRI, RWF_SYNC, UIO_MAXIOV};

use super::long::{TURN, read_long, write_long};
use super::transfer::{At, MAX_TRANSFER, check_positioned, check_range, read_into, write_from};
use super::{Sink, Source, UserRanges};
use crate::call::{Answer, Cx};
use crate::errno::Errno;

/// Pieces of user memory, (address, length).
pub type Ranges = Vec<(u64, usize)>;

/// Reads an array of `count` `struct iovec`s at `address`, and checks it as Linux does.
///
/// # Errors
/// `EINVAL` for too many or a negative length, `EFAULT` for addresses that cannot be.
pub fn read_ranges(cx: &Cx, address: u64, count: u64) -> Result<Ranges, Errno> {
    if count > u64::from(UIO_MAXIOV) {
        return Err(Errno::EINVAL);
    }
    let words = cx.user().read_words(address, 2 * count as usize)?;
    let mut ranges = Vec::with_capacity(count as usize);
    let mut room = MAX_TRANSFER;
    for pair in words.chunks_exact(2) {
        let (address, len) = (pair[0], pair[1]);
        if (len as i64) < 0 {
            return Err(Errno::EINVAL);
        }
        check_range(address, len)?;
        let len = (len as usize).min(room);
        room -= len;
        ranges.push((address, len));
    }
    Ok(ranges)
}

/// Whether the ranges hold no byte.
fn are_empty(ranges: &Ranges) -> bool {
    ranges.iter().all(|(_, len)| *len == 0)
}

/// `readv(fd, iov, count)`.
pub(super) fn readv(cx: &Cx) -> Answer {
    transfer(cx, false, At::Position)
}

/// `writev(fd, iov, count)`.
pub(super) fn writev(cx: &Cx) -> Answer {
    transfer(cx, true, At::Position)
}

/// `preadv(fd, iov, count, offset, 0)`.
pub(super) fn preadv(cx: &Cx) -> Answer {
    transfer(cx, false, offset(cx.arg(3))?)
}

/// `pwritev(fd, iov, count, offset, 0)`.
pub(super) fn pwritev(cx: &Cx) -> Answer {
    transfer(cx, true, offset(cx.arg(3))?)
}

/// `preadv2(fd, iov, count, offset, 0, flags)`; an offset of -1 is the position.
pub(super) fn preadv2(cx: &Cx) -> Answer {
    let at = offset_or_position(cx.arg(3))?;
    check_flags(cx.uint(5), RWF_HIPRI)?;
    transfer(cx, false, at)
}

/// `pwritev2(fd, iov, count, offset, 0, flags)`.
pub(super) fn pwritev2(cx: &Cx) -> Answer {
    let at = offset_or_position(cx.arg(3))?;
    check_flags(cx.uint(5), RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND)?;
    if cx.uint(5) & RWF_APPEND == 0 {
        return transfer(cx, true, at);
    }
    let open = cx.file(cx.uint(0))?;
    let end = if open.file.has_position() { open.file.size() } else { 0 };
    if at == At::Position {
        open.position.set(end);
    }
    transfer(cx, true, if at == At::Position { at } else { At::Offset(end) })
}

fn offset(value: u64) -> Result<At, Errno> {
    if (value as i64) < 0 { Err(Errno::EINVAL) } else { Ok(At::Offset(value)) }
}

fn offset_or_position(value: u64) -> Result<At, Errno> {
    if value as i64 == -1 { Ok(At::Position) } else { offset(value) }
}

fn check_flags(flags: u32, known: u32) -> Result<(), Errno> {
    if flags & !known == 0 { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

/// The family's common way.
fn transfer(cx: &Cx, write: bool, at: At) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let allowed = if write { open.can_write() } else { open.can_read() };
    if at != At::Position {
        check_positioned(&open, true)?;
    }
    if !allowed {
        return Err(Errno::EBADF.into());
    }
    let ranges = read_ranges(cx, cx.arg(1), cx.arg(2))?;
    if are_empty(&ranges) {
        return Ok(0);
    }
    let len: usize = ranges.iter().map(|range| range.1).sum();
    if len > TURN && open.file.has_position() {
        return if write {
            write_long(cx, &open, &ranges, at)
        } else {
            read_long(cx, &open, &ranges, at)
        };
    }
    if write {
        let mut source = Source::User(UserRanges::new(cx.user(), &ranges, cx.progress() as usize));
        write_from(cx, &open, &mut source, at)
    } else {
        read_into(cx, &open, &mut Sink::User(UserRanges::new(cx.user(), &ranges, 0)), at)
    }
}
