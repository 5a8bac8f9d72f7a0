//! Bytes between a pipe and another file without the program's memory: splice, tee,
//! vmsplice. They are copied, which no program can tell from moved pages.
//!
//! What a pipe holds is looked at first and taken out when the other side has it, and a
//! pipe's room is there before a stream is read: nothing is lost when a call fails half way.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general::{O_APPEND, SIGPIPE};

use super::pipe::End;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{MAX_TRANSFER, Open, Sink, Source, UserRanges, read_ranges};
use crate::fs::inode::Kind;
use crate::memory::PAGE;
use crate::signal::{self, Info};

/// Waits for no pipe.
const SPLICE_F_NONBLOCK: u32 = 2;
/// All flags there are.
const SPLICE_F_ALL: u32 = 0xf;
/// Bytes held in the server at a time.
const PIECE: usize = 16 * PAGE;

/// The end of a pipe that an open file is.
fn end(open: &Open) -> Option<&End> {
    open.file.as_any().downcast_ref::<End>()
}

/// Whether bytes can go between a file of this kind and a pipe.
fn can_splice(open: &Open) -> bool {
    let inode = open.file.inode();
    let streams = matches!(inode.kind, Kind::Fifo | Kind::Socket | Kind::Character(_));
    streams || matches!(inode.kind, Kind::Regular(_) | Kind::Proc(_))
}

/// Whether it is `/dev/null`, `/dev/zero` or the like, from which Linux reads nothing into
/// pipes; of the memory's devices only `random` and `urandom` can do that.
fn is_memory(open: &Open) -> bool {
    match open.file.inode().kind {
        Kind::Character(device) => device >> 8 == 1 && !matches!(device & 0xff, 8 | 9),
        _ => false,
    }
}

/// A place in a file that a program names, which no pipe has.
fn named_offset(cx: &Cx, open: &Open, address: u64) -> Result<Option<u64>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    if end(open).is_some() {
        return Err(Errno::ESPIPE);
    }
    Ok(Some(cx.user().read(address)?))
}

/// `splice(from, from_offset, to, to_offset, len, flags)`.
pub(super) fn splice(cx: &Cx) -> Answer {
    let (len, flags) = ((cx.arg(4) as usize).min(MAX_TRANSFER), cx.uint(5));
    if len == 0 {
        return Ok(0);
    }
    if flags & !SPLICE_F_ALL != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (from, to) = (cx.file(cx.uint(0))?, cx.file(cx.uint(2))?);
    let offsets = (named_offset(cx, &from, cx.arg(1))?, named_offset(cx, &to, cx.arg(3))?);
    if !from.can_read() || !to.can_write() {
        return Err(Errno::EBADF.into());
    }
    let wait = flags & SPLICE_F_NONBLOCK == 0;
    match (end(&from), end(&to)) {
        (Some(one), Some(other)) => {
            let wait = wait && !from.is_nonblocking() && !to.is_nonblocking();
            between(cx, one, other, len, wait, true)
        }
        (Some(pipe), None) => {
            let at = place(&to, offsets.1)?;
            if to.flags.get() & O_APPEND != 0 {
                return Err(Errno::EINVAL.into());
            }
            let done = from_pipe(cx, pipe, &to, at, len, wait && !from.is_nonblocking())?;
            moved(cx, &to, (cx.arg(3), at), done)
        }
        (None, Some(_)) if is_memory(&from) => Err(Errno::EINVAL.into()),
        (None, Some(pipe)) => {
            let at = place(&from, offsets.0)?;
            let done = to_pipe(cx, &from, at, pipe, len, wait && !to.is_nonblocking())?;
            moved(cx, &from, (cx.arg(1), at), done)
        }
        (None, None) => Err(Errno::EINVAL.into()),
    }
}

/// Where in the file that is no pipe it begins.
fn place(open: &Open, named: Option<u64>) -> Result<u64, Errno> {
    match named {
        _ if !can_splice(open) => Err(Errno::EINVAL),
        Some(_) if !open.file.has_position() => Err(Errno::EINVAL),
        Some(offset) if offset > i64::MAX as u64 => Err(Errno::EINVAL),
        Some(offset) => Ok(offset),
        None => Ok(open.position.get()),
    }
}

/// The file has gone on by `done` bytes from `at`: in the program's offset or its own.
fn moved(cx: &Cx, open: &Open, (address, at): (u64, u64), done: usize) -> Answer {
    let end = at.wrapping_add(done as u64);
    match address {
        0 if open.file.has_position() => open.position.set(end),
        0 => {}
        address => cx.user().write(address, &end)?,
    }
    Ok(done as u64)
}

/// What a pipe holds goes to a file, until it is empty.
fn from_pipe(
    cx: &Cx,
    pipe: &End,
    to: &Open,
    at: u64,
    len: usize,
    wait: bool,
) -> Result<usize, Stop> {
    let mut done = 0;
    while done < len {
        let ready = if done > 0 { pipe.holds() } else { pipe.wait_for_bytes(cx, wait)? };
        if ready == 0 {
            break;
        }
        let bytes = pipe.look(ready.min(len - done).min(PIECE))?;
        match to.file.write(cx, to, &mut Source::Server(&bytes), at + done as u64) {
            Ok(0) => break,
            Ok(wrote) => {
                pipe.take_out(wrote);
                done += wrote;
            }
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        }
    }
    Ok(done)
}

/// What a file has goes to a pipe, until that is full.
fn to_pipe(
    cx: &Cx,
    from: &Open,
    at: u64,
    pipe: &End,
    len: usize,
    wait: bool,
) -> Result<usize, Stop> {
    let mut done = 0;
    while done < len {
        let room = if done > 0 { pipe.room() } else { pipe.wait_for_room(cx, wait)? };
        let max = room.min(len - done).min(PIECE);
        if max == 0 {
            break;
        }
        let mut bytes = Vec::new();
        bytes.try_reserve(max).map_err(|_| Errno::ENOMEM)?;
        pipe.reserve(max)?;
        let at = at + done as u64;
        match from.file.read(cx, from, &mut Sink::Server { to: &mut bytes, max }, at) {
            Ok(0) => break,
            Ok(_) => done += pipe.put(&bytes)?,
            Err(_) if done > 0 => break,
            Err(stop) => return Err(stop),
        }
        if !from.file.has_position() {
            break;
        }
    }
    Ok(done)
}

/// From pipe to pipe; what was passed on leaves the first one, or (`tee`) not.
fn between(cx: &Cx, from: &End, to: &End, len: usize, wait: bool, takes: bool) -> Answer {
    if from.is_same_pipe(to) {
        return Err(Errno::EINVAL.into());
    }
    if from.wait_for_bytes(cx, wait)? == 0 {
        return Ok(0);
    }
    let mut done = 0;
    while done < len {
        let room = if done > 0 { to.room() } else { to.wait_for_room(cx, wait)? };
        let skipped = if takes { 0 } else { done };
        let max = room.min(len - done).min(from.holds() - skipped).min(PIECE);
        if max == 0 {
            break;
        }
        let bytes = from.look(skipped + max)?;
        let put = to.put(bytes.get(skipped..).unwrap_or_default())?;
        if takes {
            from.take_out(put);
        }
        done += put;
    }
    Ok(done as u64)
}

/// `tee(from, to, len, flags)`.
pub(super) fn tee(cx: &Cx) -> Answer {
    let (len, flags) = ((cx.arg(2) as usize).min(MAX_TRANSFER), cx.uint(3));
    if flags & !SPLICE_F_ALL != 0 {
        return Err(Errno::EINVAL.into());
    }
    if len == 0 {
        return Ok(0);
    }
    let (from, to) = (cx.file(cx.uint(0))?, cx.file(cx.uint(1))?);
    if !from.can_read() || !to.can_write() {
        return Err(Errno::EBADF.into());
    }
    let (Some(one), Some(other)) = (end(&from), end(&to)) else {
        return Err(Errno::EINVAL.into());
    };
    let wait = flags & SPLICE_F_NONBLOCK == 0 && !from.is_nonblocking() && !to.is_nonblocking();
    between(cx, one, other, len, wait, false)
}

/// `vmsplice(pipe, iov, count, flags)`.
pub(super) fn vmsplice(cx: &Cx) -> Answer {
    let flags = cx.uint(3);
    if flags & !SPLICE_F_ALL != 0 {
        return Err(Errno::EINVAL.into());
    }
    let open = cx.file(cx.uint(0))?;
    if !open.can_read() && !open.can_write() {
        return Err(Errno::EBADF.into());
    }
    let ranges = read_ranges(cx, cx.arg(1), cx.arg(2))?;
    if ranges.iter().all(|(_, len)| *len == 0) {
        return Ok(0);
    }
    let pipe = end(&open).ok_or(Errno::EBADF)?;
    let wait = flags & SPLICE_F_NONBLOCK == 0;
    let all = UserRanges::new(cx.user(), &ranges, 0);
    if open.can_write() {
        pipe.put_user(cx, all, wait)
    } else {
        pipe.wait_for_bytes(cx, wait)?;
        Ok(pipe.give_user(all)? as u64)
    }
}

/// What is done to the pipe.
impl End {
    fn is_same_pipe(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.pipe, &other.pipe)
    }

    /// Bytes in the pipe.
    fn holds(&self) -> usize {
        self.pipe.ring.len()
    }

    /// Bytes it takes now.
    fn room(&self) -> usize {
        self.pipe.ring.room()
    }

    /// How many bytes there are to be read; 0 is the end.
    fn wait_for_bytes(&self, cx: &Cx, wait: bool) -> Result<usize, Stop> {
        let pipe = &*self.pipe;
        match self.holds() {
            0 if pipe.writers.get() == 0 => Ok(0),
            0 if !wait => Err(Errno::EAGAIN.into()),
            0 => Err(cx.block_on(&pipe.can_read)),
            len => Ok(len),
        }
    }

    /// How many bytes can be written now.
    fn wait_for_room(&self, cx: &Cx, wait: bool) -> Result<usize, Stop> {
        let pipe = &*self.pipe;
        if pipe.readers.get() == 0 {
            signal::send_thread(cx.unix, cx.thread, Info::kernel(SIGPIPE));
            return Err(Errno::EPIPE.into());
        }
        match self.room() {
            0 if !wait => Err(Errno::EAGAIN.into()),
            0 => Err(cx.block_on(&pipe.can_write)),
            room => Ok(room),
        }
    }

    /// The first `len` bytes, which stay.
    fn look(&self, len: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = Vec::new();
        bytes.try_reserve(len).map_err(|_| Errno::ENOMEM)?;
        self.pipe.ring.peek(&mut Sink::Server { to: &mut bytes, max: len }, 0, len)?;
        Ok(bytes)
    }

    /// The first `len` bytes go.
    fn take_out(&self, len: usize) {
        self.pipe.skip(len);
        self.pipe.can_write.wake_all();
    }

    /// `len` more bytes will find frames.
    fn reserve(&self, len: usize) -> Result<(), Errno> {
        self.pipe.ring.reserve(len)
    }

    /// Adds as many bytes as there is room for; how many.
    fn put(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let done = self.pipe.fill(&mut Source::Server(bytes), bytes.len())?;
        self.pipe.can_read.wake_all();
        Ok(done)
    }

    /// Adds as much of what is at `ranges` as there is room for.
    fn put_user(&self, cx: &Cx, ranges: UserRanges, wait: bool) -> Answer {
        let mut source = Source::User(ranges);
        let want = source.left();
        self.wait_for_room(cx, wait)?;
        let done = self.pipe.fill(&mut source, want)?;
        self.pipe.can_read.wake_all();
        Ok(done as u64)
    }

    /// Puts what there is to `ranges`; how many bytes.
    fn give_user(&self, ranges: UserRanges) -> Result<usize, Errno> {
        let count = self.pipe.drain(&mut Sink::User(ranges))?;
        self.pipe.can_write.wake_all();
        Ok(count)
    }
}
