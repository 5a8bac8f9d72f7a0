//! Memory of another process: process_vm_readv, process_vm_writev.

use alloc::vec;
use alloc::vec::Vec;

use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::file::{Sink, Source, UserRanges, read_ranges};
use crate::user::UserMemory;

/// Bytes held in the server at a time.
const PIECE: usize = 64 * 1024;
/// No call moves more, for all others wait meanwhile: it is partial, as it may be.
const MOST: usize = 16 << 20;

/// `process_vm_readv(pid, local, count, remote, count, 0)`.
pub(super) fn process_vm_readv(cx: &Cx) -> Answer {
    transfer(cx, false)
}

/// `process_vm_writev(pid, local, count, remote, count, 0)`.
pub(super) fn process_vm_writev(cx: &Cx) -> Answer {
    transfer(cx, true)
}

fn transfer(cx: &Cx, write: bool) -> Answer {
    if cx.arg(5) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let own = read_ranges(cx, cx.arg(1), cx.arg(2))?;
    let other = read_ranges(cx, cx.arg(3), cx.arg(4))?;
    let len = |ranges: &[(u64, usize)]| ranges.iter().map(|range| range.1).sum::<usize>();
    let mut left = len(&own).min(len(&other)).min(MOST);
    if left == 0 {
        return Ok(0);
    }
    // Any thread of it names it.
    let thread = cx.find_thread(cx.uint(0));
    let process = thread.map(|thread| thread.process.clone());
    let process = process.or_else(|| cx.find_process(cx.uint(0))).ok_or(Errno::ESRCH)?;
    crate::fs::check_close_look(cx, &process).map_err(|_| Errno::EPERM)?;
    if process.ended.get().is_some() {
        return Err(Errno::ESRCH.into());
    }
    let own = UserRanges::new(cx.user(), &own, 0);
    let other = UserRanges::new(UserMemory::new(cx.unix, process.space()), &other, 0);
    let (from, to) = if write { (own, other) } else { (other, own) };
    let (mut source, mut sink) = (Source::User(from), Sink::User(to));
    cx.check_heap(PIECE)?;
    let mut buffer: Vec<u8> = vec![0; left.min(PIECE)];
    let mut done = 0;
    while left > 0 {
        let want = left.min(buffer.len());
        let piece = buffer.get_mut(..want).unwrap_or_default();
        let moved = source.take(piece).and_then(|taken| {
            let put = sink.put(piece.get(..taken).unwrap_or_default())?;
            Ok((taken, put))
        });
        let put = match moved {
            Ok((_, put)) => put,
            Err(errno) if done == 0 => return Err(errno.into()),
            Err(_) => break,
        };
        done += put;
        left -= put;
        if put < want {
            break;
        }
    }
    Ok(done as u64)
}
