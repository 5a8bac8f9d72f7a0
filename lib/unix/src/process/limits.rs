//! Resource limits.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Process, groups};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_getrlimit, "getrlimit", getrlimit, UNENFORCED),
    partial(l::__NR_setrlimit, "setrlimit", setrlimit, UNENFORCED),
    partial(l::__NR_prlimit64, "prlimit64", prlimit64, UNENFORCED),
];

const UNENFORCED: &str = "RLIMIT_RSS, RLIMIT_LOCKS, RLIMIT_MSGQUEUE and \
    RLIMIT_RTTIME are kept but limit nothing";

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// Memory that there must be in all for each possible thread.
const BYTES_PER_THREAD: u64 = 128 << 10;

/// The last of so many parts of all threads is for processes, and user 0's.
const RESERVED: u64 = 16;

/// How many threads there can be at once.
#[must_use]
pub fn max_threads(unix: &Unix) -> u64 {
    let bytes = unix.memory.total() as u64 * crate::memory::PAGE as u64;
    (bytes / BYTES_PER_THREAD).clamp(64, 16384)
}

/// Limits of process 1, (soft, hard), by `RLIMIT_*`.
#[must_use]
pub fn first(unix: &Unix) -> [(u64, u64); 16] {
    let half = max_threads(unix) / 2;
    let mut limits = [(UNLIMITED, UNLIMITED); 16];
    let some = [
        (l::RLIMIT_STACK, (8 << 20, UNLIMITED)),
        (l::RLIMIT_CORE, (0, UNLIMITED)),
        (l::RLIMIT_NPROC, (half, half)),
        (l::RLIMIT_NOFILE, (1024, 4096)),
        (l::RLIMIT_MEMLOCK, (8 << 20, 8 << 20)),
        (l::RLIMIT_SIGPENDING, (half, half)),
        (l::RLIMIT_MSGQUEUE, (819_200, 819_200)),
        (l::RLIMIT_NICE, (0, 0)),
        (l::RLIMIT_RTPRIO, (0, 0)),
    ];
    for (which, limit) in some {
        limits[which as usize] = limit;
    }
    limits
}

/// Refuses a new thread or process where there is no room for it.
///
/// # Errors
/// `EAGAIN`.
pub fn check_room(cx: &Cx, thread: bool) -> Result<(), Errno> {
    let threads = cx.unix.processes.by_tid.borrow().len() as u64;
    // Ended ones not yet waited for included.
    let processes = cx.unix.processes.by_pid.borrow().len() as u64;
    let max = max_threads(cx.unix);
    // The last of them are for processes: who has thousands of threads leaves room for a shell.
    let most = if thread { max - max / RESERVED } else { max };
    if threads >= most || (processes >= max && !thread) {
        return Err(Errno::EAGAIN);
    }
    let uid = cx.process.credentials.borrow().uid;
    let limit = cx.process.limit(l::RLIMIT_NPROC);
    let who = cx.process.credentials.borrow();
    if uid == 0 || who.may(l::CAP_SYS_RESOURCE) || who.may(l::CAP_SYS_ADMIN) {
        return Ok(());
    }
    // The last of them are for user 0.
    let full = threads.max(processes) >= max - max / RESERVED;
    let threads = cx.unix.processes.by_tid.borrow();
    let processes = cx.unix.processes.by_pid.borrow();
    let running = threads.values().filter(|one| one.process.user().uid == uid).count();
    let ended = |one: &&Rc<Process>| one.ended.get().is_some() && one.user().uid == uid;
    let count = (running + processes.values().filter(ended).count()) as u64;
    if count < limit && !full { Ok(()) } else { Err(Errno::EAGAIN) }
}

/// `struct rlimit64`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

fn get(process: &Process, which: u32) -> Result<Limit, Errno> {
    let limits = process.limits.borrow();
    let (soft, hard) = *limits.get(which as usize).ok_or(Errno::EINVAL)?;
    Ok(Limit { soft, hard })
}

fn set(cx: &Cx, process: &Rc<Process>, which: u32, new: Limit) -> Result<(), Errno> {
    let old = get(process, which)?;
    if new.soft > new.hard {
        return Err(Errno::EINVAL);
    }
    if which == l::RLIMIT_NOFILE && new.hard > cx.unix.streams.most_descriptors.get() {
        return Err(Errno::EPERM);
    }
    if new.hard > old.hard && !cx.process.credentials.borrow().may(l::CAP_SYS_RESOURCE) {
        return Err(Errno::EPERM);
    }
    process.limits.borrow_mut()[which as usize] = (new.soft, new.hard);
    if which == l::RLIMIT_STACK {
        process.space().stack_limit.set(new.soft);
    }
    if which == l::RLIMIT_CPU {
        process.times.watch_limit(cx.unix, process);
    }
    Ok(())
}

fn getrlimit(cx: &Cx) -> Answer {
    let limit = get(cx.process, cx.uint(0))?;
    cx.user().write(cx.arg(1), &limit)?;
    Ok(0)
}

fn setrlimit(cx: &Cx) -> Answer {
    let new: Limit = cx.user().read(cx.arg(1))?;
    set(cx, cx.process, cx.uint(0), new)?;
    Ok(0)
}

/// Whether the caller may see and change the limits of another process.
fn check(cx: &Cx, process: &Rc<Process>) -> Result<(), Errno> {
    let own = cx.process.credentials.borrow();
    let other = process.credentials.borrow();
    let users = [other.uid, other.euid, other.suid].iter().all(|id| *id == own.uid);
    let groups = [other.gid, other.egid, other.sgid].iter().all(|id| *id == own.gid);
    let allowed = Rc::ptr_eq(process, cx.process)
        || (users && groups)
        || own.may_in(&other.users, l::CAP_SYS_RESOURCE);
    if allowed { Ok(()) } else { Err(Errno::EPERM) }
}

fn prlimit64(cx: &Cx) -> Answer {
    let new = match cx.arg(2) {
        0 => None,
        address => Some(cx.user().read::<Limit>(address)?),
    };
    let process = groups::process_or_self(cx, cx.int(0))?;
    check(cx, &process)?;
    let old = get(&process, cx.uint(1))?;
    if let Some(new) = new {
        set(cx, &process, cx.uint(1), new)?;
    }
    if cx.arg(3) != 0 {
        cx.user().write(cx.arg(3), &old)?;
    }
    Ok(0)
}
