//! Descriptors themselves: closing, duplicating, `fcntl`, the `ioctl`s common to all files.

use alloc::rc::Rc;

use linux_raw_sys::general::{
    F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_GETLEASE, F_GETLK, F_GETOWN, F_GETOWN_EX,
    F_GETPIPE_SZ, F_GETSIG, F_NOTIFY, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_OWNER_PGRP,
    F_OWNER_PID, F_SETFD, F_SETFL, F_SETLEASE, F_SETLK, F_SETLKW, F_SETOWN, F_SETOWN_EX,
    F_SETPIPE_SZ, F_SETSIG, FASYNC, FD_CLOEXEC, O_APPEND, O_CLOEXEC, O_DIRECT, O_NOATIME,
    O_NONBLOCK,
};
use linux_raw_sys::ioctl::{
    FIOASYNC, FIOCLEX, FIOGETOWN, FIONBIO, FIONCLEX, FIOSETOWN, SIOCGPGRP, SIOCSPGRP,
};

use super::{MAX_DESCRIPTORS, Open, asynchronous, directory_notice, settle};
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::stream::{pipe, socket};

/// `close_range`: leave other tables that share this one as they are.
const CLOSE_RANGE_UNSHARE: u32 = 2;
/// `close_range`: do not close, but set close-on-exec.
const CLOSE_RANGE_CLOEXEC: u32 = 4;

/// The status flags that `F_SETFL` changes; it ignores the others.
const SETTABLE: u32 = O_APPEND | O_NONBLOCK | FASYNC | O_DIRECT | O_NOATIME;

/// `close(fd)`.
pub(super) fn close(cx: &Cx) -> Answer {
    let open = cx.process.files.borrow().remove(cx.uint(0)).ok_or(Errno::EBADF)?;
    closed(cx, open);
    Ok(0)
}

/// A descriptor of `open` was taken out of the process's table.
fn closed(cx: &Cx, open: Rc<Open>) {
    crate::fs::descriptor_closed(cx, &open);
    drop(open);
    settle(cx.unix);
}

/// `close_range(first, last, flags)`.
pub(super) fn close_range(cx: &Cx) -> Answer {
    let (first, last, flags) = (cx.uint(0), cx.uint(1), cx.uint(2));
    if flags & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0 || first > last {
        return Err(Errno::EINVAL.into());
    }
    if flags & CLOSE_RANGE_UNSHARE != 0 {
        let own = cx.process.files.borrow().copy(&cx.process.user(), MAX_DESCRIPTORS)?;
        let shared = cx.process.files.replace(own);
        drop(shared);
    }
    let end = cx.process.files.borrow().end();
    for fd in first..end.min(last.saturating_add(1)) {
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            cx.process.files.borrow().set_close_on_exec(fd, true);
            continue;
        }
        let open = cx.process.files.borrow().remove(fd);
        if let Some(open) = open {
            closed(cx, open);
        }
    }
    Ok(0)
}

/// `dup(fd)`.
pub(super) fn dup(cx: &Cx) -> Answer {
    let open = cx.file_or_path(cx.uint(0))?;
    Ok(cx.add_file(open, false)?.into())
}

/// `dup2(old, new)`.
pub(super) fn dup2(cx: &Cx) -> Answer {
    let (old, new) = (cx.uint(0), cx.uint(1));
    if old == new {
        cx.file_or_path(old)?;
        return Ok(new.into());
    }
    duplicate(cx, old, new, false)
}

/// `dup3(old, new, flags)`.
pub(super) fn dup3(cx: &Cx) -> Answer {
    let (old, new, flags) = (cx.uint(0), cx.uint(1), cx.uint(2));
    if flags & !O_CLOEXEC != 0 || old == new {
        return Err(Errno::EINVAL.into());
    }
    duplicate(cx, old, new, flags & O_CLOEXEC != 0)
}

fn duplicate(cx: &Cx, old: u32, new: u32, close_on_exec: bool) -> Answer {
    let limit = cx.descriptor_limit();
    if u64::from(new) >= limit {
        return Err(Errno::EBADF.into());
    }
    let open = cx.file_or_path(old)?;
    let before = cx.process.files.borrow().put(cx, new, (open, close_on_exec), limit)?;
    if let Some(before) = before {
        closed(cx, before);
    }
    Ok(new.into())
}

/// `fcntl(fd, command, argument)`.
pub(super) fn fcntl(cx: &Cx) -> Answer {
    let (fd, command, argument) = (cx.uint(0), cx.uint(1), cx.arg(2));
    let open = cx.file_or_path(fd)?;
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => {
            let limit = cx.descriptor_limit();
            if u64::from(argument as u32) >= limit {
                return Err(Errno::EINVAL.into());
            }
            let files = cx.process.files.borrow();
            let from = u64::from(argument as u32);
            Ok(files.add(cx, (open, command == F_DUPFD_CLOEXEC), from, limit)?.into())
        }
        F_GETFD => {
            let close = cx.process.files.borrow().close_on_exec(fd).unwrap_or(false);
            Ok(if close { u64::from(FD_CLOEXEC) } else { 0 })
        }
        F_SETFD => {
            let close = argument & u64::from(FD_CLOEXEC) != 0;
            cx.process.files.borrow().set_close_on_exec(fd, close);
            Ok(0)
        }
        F_GETFL => Ok(open.flags.get().into()),
        _ if open.is_path() => Err(Errno::EBADF.into()),
        F_SETFL => set_flags(cx, &open, argument as u32),
        F_GETOWN | F_SETOWN | F_GETOWN_EX | F_SETOWN_EX => owner(cx, &open, command, argument),
        F_GETSIG => Ok(open.told().signal.get().into()),
        F_SETSIG if argument > 64 => Err(Errno::EINVAL.into()),
        F_SETSIG => {
            open.told().signal.set(argument as u32);
            Ok(0)
        }
        F_NOTIFY => directory_notice::set(cx, &open, fd, argument as u32),
        F_GETPIPE_SZ | F_SETPIPE_SZ => {
            let pipe = pipe::of(&open).ok_or(Errno::EBADF)?;
            if command == F_SETPIPE_SZ {
                pipe.set_capacity(argument as u32 as usize, pipe::most(cx))?;
            }
            Ok(pipe.capacity() as u64)
        }
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            crate::fs::fcntl_lock(cx, &open, command, argument)
        }
        F_SETLEASE | F_GETLEASE => crate::fs::fcntl_lease(cx, &open, command, argument),
        _ => crate::fs::fcntl(cx, &open, command, argument),
    }
}

/// Asks or says who is told of what happens to the file.
fn owner(cx: &Cx, open: &Rc<Open>, command: u32, argument: u64) -> Answer {
    match command {
        F_GETOWN => {
            let (kind, id) = open.owner(cx);
            let id = i64::from(id);
            return Ok(if kind == F_OWNER_PGRP { -id } else { id } as u64);
        }
        F_SETOWN => {
            let id = argument as i32;
            if id == i32::MIN {
                return Err(Errno::EINVAL.into());
            }
            let kind = if id < 0 { F_OWNER_PGRP } else { F_OWNER_PID };
            set_owner(cx, open, kind, id.unsigned_abs())?;
        }
        F_GETOWN_EX => {
            let (kind, id) = open.owner(cx);
            cx.user().write(argument, &[kind, id])?;
        }
        _ => {
            let [kind, id] = cx.user().read::<[u32; 2]>(argument)?;
            set_owner(cx, open, kind, id)?;
        }
    }
    Ok(0)
}

fn set_owner(cx: &Cx, open: &Rc<Open>, kind: u32, id: u32) -> Result<(), Errno> {
    open.set_owner(cx, kind, id)?;
    // Urgent data is told by who receives it, which is not asked before.
    if let Ok(socket) = socket::of(open) {
        socket.urgent.tell_owner_of(open);
    }
    Ok(())
}

/// `F_SETFL`: the access mode stays.
fn set_flags(cx: &Cx, open: &Rc<Open>, flags: u32) -> Answer {
    asynchronous::set(cx, open, cx.uint(0), flags & FASYNC != 0)?;
    open.flags.set(open.flags.get() & !SETTABLE | flags & SETTABLE);
    Ok(0)
}

/// `ioctl(fd, request, argument)`.
pub(super) fn ioctl(cx: &Cx) -> Answer {
    let (fd, request, argument) = (cx.uint(0), cx.uint(1), cx.arg(2));
    let open = cx.file(fd)?;
    match request {
        FIOCLEX | FIONCLEX => {
            cx.process.files.borrow().set_close_on_exec(fd, request == FIOCLEX);
            Ok(0)
        }
        FIONBIO => {
            let on = cx.user().read::<i32>(argument)? != 0;
            let flags = open.flags.get();
            open.flags.set(if on { flags | O_NONBLOCK } else { flags & !O_NONBLOCK });
            Ok(0)
        }
        FIOSETOWN | SIOCSPGRP if socket::of(&open).is_ok() => {
            let id = cx.user().read::<i32>(argument)?;
            owner(cx, &open, F_SETOWN, id as u64)
        }
        FIOGETOWN | SIOCGPGRP if socket::of(&open).is_ok() => {
            let id = owner(cx, &open, F_GETOWN, 0)?;
            cx.user().write(argument, &(id as i32))?;
            Ok(0)
        }
        FIOASYNC => {
            let on = cx.user().read::<i32>(argument)? != 0;
            asynchronous::set(cx, &open, fd, on)?;
            Ok(0)
        }
        _ => open.file.ioctl(cx, &open, request, argument),
    }
}
