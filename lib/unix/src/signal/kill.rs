//! Calls that send signals.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::info::Info;
use super::send::{members, send, send_thread};
use super::set;
use crate::account;
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::process::{Process, descriptor};
use crate::thread::Thread;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_kill, "kill", kill),
    full(l::__NR_tkill, "tkill", tkill),
    full(l::__NR_tgkill, "tgkill", tgkill),
    full(l::__NR_rt_sigqueueinfo, "rt_sigqueueinfo", rt_sigqueueinfo),
    full(l::__NR_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", rt_tgsigqueueinfo),
    full(l::__NR_pidfd_send_signal, "pidfd_send_signal", pidfd_send_signal),
];

/// Whether the caller may send `signal` to `process`.
fn check(cx: &Cx, process: &Process, signal: u32) -> Result<(), Errno> {
    if signal > set::LAST {
        return Err(Errno::EINVAL);
    }
    let own = cx.process.credentials.borrow();
    let other = process.credentials.borrow();
    let same = [own.euid, own.uid].iter().any(|id| *id == other.suid || *id == other.uid);
    let session = signal == l::SIGCONT && process.session.get() == cx.process.session.get();
    let allowed = same || session || own.may(l::CAP_KILL) || process.pid == cx.process.pid;
    if allowed { Ok(()) } else { Err(Errno::EPERM) }
}

/// What is told about a signal that the caller sends.
fn from_caller(cx: &Cx, signal: u32, code: i32) -> Info {
    Info::user(signal, code, cx.process.pid, cx.process.credentials.borrow().uid)
}

fn send_checked(cx: &Cx, process: &Rc<Process>, signal: u32) -> Result<(), Errno> {
    check(cx, process, signal)?;
    if signal != 0 {
        send(cx.unix, process, from_caller(cx, signal, l::SI_USER as i32));
    }
    Ok(())
}

fn kill(cx: &Cx) -> Answer {
    let (pid, signal) = (cx.int(0), cx.uint(1));
    match pid {
        1.. => {
            let process = process_of(cx, pid as u32)?;
            send_checked(cx, &process, signal)?;
        }
        -1 => kill_all(cx, signal)?,
        i32::MIN => return Err(Errno::ESRCH.into()),
        0 => kill_group(cx, cx.process.group.get(), signal)?,
        _ => kill_group(cx, pid.unsigned_abs(), signal)?,
    }
    Ok(0)
}

/// The process of this id, or that has a thread of this id.
fn process_of(cx: &Cx, id: u32) -> Result<Rc<Process>, Errno> {
    let processes = &cx.unix.processes;
    let by_thread = || processes.thread(id).map(|thread| thread.process());
    processes.process(id).or_else(by_thread).ok_or(Errno::ESRCH)
}

fn kill_group(cx: &Cx, group: u32, signal: u32) -> Result<(), Errno> {
    let mut result = Err(Errno::ESRCH);
    for process in members(cx.unix, group) {
        match (send_checked(cx, &process, signal), result) {
            (Ok(()), _) => result = Ok(()),
            (Err(errno), Err(_)) => result = Err(errno),
            (Err(_), Ok(())) => {}
        }
    }
    result
}

/// Everybody but process 1 and the caller; refused only if there is nobody.
fn kill_all(cx: &Cx, signal: u32) -> Result<(), Errno> {
    let all: alloc::vec::Vec<_> = cx.unix.processes.by_pid.borrow().values().cloned().collect();
    let mut result = Err(Errno::ESRCH);
    for process in all.iter().filter(|one| one.pid != 1 && one.pid != cx.process.pid) {
        match send_checked(cx, process, signal) {
            Err(Errno::EPERM) if result.is_err() => result = Ok(()),
            Err(Errno::EPERM) => {}
            other => result = other,
        }
    }
    result
}

/// A thread by id, of process `group` if that is given; none of it may be 0 or negative.
fn thread_of(cx: &Cx, group: Option<i32>, tid: i32) -> Result<Option<Rc<Thread>>, Errno> {
    if tid <= 0 || group.is_some_and(|group| group <= 0) {
        return Err(Errno::EINVAL);
    }
    let process = cx.unix.processes.process(tid as u32);
    let wrong = |pid: u32| group.is_some_and(|group| group as u32 != pid);
    match (cx.unix.processes.thread(tid as u32), process) {
        (Some(thread), _) if !wrong(thread.process.pid) => Ok(Some(thread)),
        // An ended process still has its id; signals to it vanish.
        (None, Some(process)) if !wrong(process.pid) => Ok(None),
        _ => Err(Errno::ESRCH),
    }
}

fn send_to_thread(cx: &Cx, group: Option<i32>, tid: i32, info: Info) -> Answer {
    let Some(thread) = thread_of(cx, group, tid)? else {
        return Ok(0);
    };
    check(cx, &thread.process, info.signal)?;
    if info.signal != 0 {
        check_queue(&thread.process, &info)?;
        send_thread(cx.unix, &thread, info);
    }
    Ok(0)
}

fn tkill(cx: &Cx) -> Answer {
    send_to_thread(cx, None, cx.int(0), from_caller(cx, cx.uint(1), l::SI_TKILL))
}

fn tgkill(cx: &Cx) -> Answer {
    let info = from_caller(cx, cx.uint(2), l::SI_TKILL);
    send_to_thread(cx, Some(cx.int(0)), cx.int(1), info)
}

/// Reads the `siginfo_t` that a program wants to send. To others it may not claim to be from
/// the kernel, `kill` or `tgkill`.
fn read_info(cx: &Cx, address: u64, signal: u32, to_self: bool) -> Result<Info, Errno> {
    let info: Info = cx.user().read(address)?;
    if (info.code >= 0 || info.code == l::SI_TKILL) && !to_self {
        return Err(Errno::EPERM);
    }
    Ok(Info { signal, timer: 0, ..info })
}

/// Refuses a real-time signal when too many are queued.
fn check_queue(process: &Process, info: &Info) -> Result<(), Errno> {
    if info.signal < set::FIRST_REAL_TIME {
        return Ok(());
    }
    account::check_signals(process)
}

fn rt_sigqueueinfo(cx: &Cx) -> Answer {
    let (pid, signal) = (cx.int(0), cx.uint(1));
    let own = pid >= 0 && pid as u32 == cx.process.pid;
    let info = read_info(cx, cx.arg(2), signal, own)?;
    if pid <= 0 {
        return Err(Errno::ESRCH.into());
    }
    let process = process_of(cx, pid as u32)?;
    check(cx, &process, signal)?;
    if signal != 0 {
        check_queue(&process, &info)?;
        send(cx.unix, &process, info);
    }
    Ok(0)
}

/// `pidfd_send_signal(pidfd, signal, info, 0)`.
fn pidfd_send_signal(cx: &Cx) -> Answer {
    let signal = cx.uint(1);
    if cx.uint(3) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let process = descriptor::of_any(cx, &*cx.file(cx.uint(0))?)?;
    if cx.arg(2) == 0 {
        send_checked(cx, &process, signal)?;
        return Ok(0);
    }
    let own = Rc::ptr_eq(&process, cx.process);
    let claimed: Info = cx.user().read(cx.arg(2))?;
    if claimed.signal != signal {
        return Err(Errno::EINVAL.into());
    }
    let info = read_info(cx, cx.arg(2), signal, own)?;
    check(cx, &process, signal)?;
    if signal != 0 {
        check_queue(&process, &info)?;
        send(cx.unix, &process, info);
    }
    Ok(0)
}

fn rt_tgsigqueueinfo(cx: &Cx) -> Answer {
    let (group, tid, signal) = (cx.int(0), cx.int(1), cx.uint(2));
    if group <= 0 || tid <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let own = group as u32 == cx.process.pid;
    let info = read_info(cx, cx.arg(3), signal, own)?;
    send_to_thread(cx, Some(group), tid, info)
}
