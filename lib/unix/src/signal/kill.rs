//! Calls that send signals.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::info::Info;
use super::send::{members, send_by, send_thread_by};
use super::set;
use crate::account;
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::process::{Pid, Process, descriptor};
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
fn check(cx: &Cx, process: &Rc<Process>, signal: u32) -> Result<(), Errno> {
    if signal > set::LAST {
        return Err(Errno::EINVAL);
    }
    let own = cx.process.credentials.borrow();
    let other = process.credentials.borrow();
    let same = [own.euid, own.uid].iter().any(|id| *id == other.suid || *id == other.uid);
    let session = signal == l::SIGCONT && process.session.get() == cx.process.session.get();
    let allowed =
        same || session || own.may_in(&other.users, l::CAP_KILL) || Rc::ptr_eq(process, cx.process);
    if allowed { Ok(()) } else { Err(Errno::EPERM) }
}

/// What `process` is told about a signal that the caller sends.
fn from_caller(cx: &Cx, process: &Process, signal: u32, code: i32) -> Info {
    let pid = process.sees(cx.process.pid);
    Info::user(signal, code, pid, process.sees_user(cx.process.credentials.borrow().uid))
}

fn send_checked(cx: &Cx, process: &Rc<Process>, signal: u32) -> Result<(), Errno> {
    check(cx, process, signal)?;
    if signal != 0 {
        let info = from_caller(cx, process, signal, l::SI_USER as i32);
        send_by(cx.unix, cx.process, process, info);
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
        _ => {
            let group = cx.pid(pid.unsigned_abs()).ok_or(Errno::ESRCH)?;
            kill_group(cx, group, signal)?;
        }
    }
    Ok(0)
}

/// The process of this id, or that has a thread of this id.
fn process_of(cx: &Cx, number: u32) -> Result<Rc<Process>, Errno> {
    let processes = &cx.unix.processes;
    let id = cx.pid(number).ok_or(Errno::ESRCH)?;
    let by_thread = || processes.thread(id).map(|thread| thread.process());
    processes.process(id).or_else(by_thread).ok_or(Errno::ESRCH)
}

fn kill_group(cx: &Cx, group: Pid, signal: u32) -> Result<(), Errno> {
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

/// Everybody whom the caller sees but process 1 and itself; refused only if there is nobody.
fn kill_all(cx: &Cx, signal: u32) -> Result<(), Errno> {
    let all: alloc::vec::Vec<_> = cx.unix.processes.by_pid.borrow().values().cloned().collect();
    let mut result = Err(Errno::ESRCH);
    for process in all.iter().filter(|one| cx.shown(one.pid) > 1 && !Rc::ptr_eq(one, cx.process)) {
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
    let process = cx.find_process(tid as u32);
    let wrong = |pid: Pid| group.is_some_and(|group| group as u32 != cx.shown(pid));
    match (cx.find_thread(tid as u32), process) {
        (Some(thread), _) if !wrong(thread.process.pid) => Ok(Some(thread)),
        // An ended process still has its id; signals to it vanish.
        (None, Some(process)) if !wrong(process.pid) => Ok(None),
        _ => Err(Errno::ESRCH),
    }
}

/// Sends `said`, or (a signal) what `tkill` says, to a thread.
fn send_to_thread(cx: &Cx, group: Option<i32>, tid: i32, said: Result<Info, u32>) -> Answer {
    let Some(thread) = thread_of(cx, group, tid)? else {
        return Ok(0);
    };
    let info = match said {
        Ok(info) => as_seen(cx, &thread.process, info),
        Err(signal) => from_caller(cx, &thread.process, signal, l::SI_TKILL),
    };
    check(cx, &thread.process, info.signal)?;
    if info.signal != 0 {
        check_queue(&thread.process, &info)?;
        send_thread_by(cx.unix, cx.process, &thread, info);
    }
    Ok(0)
}

fn tkill(cx: &Cx) -> Answer {
    send_to_thread(cx, None, cx.int(0), Err(cx.uint(1)))
}

fn tgkill(cx: &Cx) -> Answer {
    send_to_thread(cx, Some(cx.int(0)), cx.int(1), Err(cx.uint(2)))
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

/// What the caller says, as it is told to who does not see the caller.
fn as_seen(cx: &Cx, process: &Process, mut info: Info) -> Info {
    if process.sees(cx.process.pid) == 0 && info.code != l::SI_TIMER {
        info.data[0] &= !u64::from(u32::MAX);
    }
    info
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
    let own = pid >= 0 && pid as u32 == cx.process.number;
    let info = read_info(cx, cx.arg(2), signal, own)?;
    if pid <= 0 {
        return Err(Errno::ESRCH.into());
    }
    let process = process_of(cx, pid as u32)?;
    check(cx, &process, signal)?;
    if signal != 0 {
        check_queue(&process, &info)?;
        send_by(cx.unix, cx.process, &process, as_seen(cx, &process, info));
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
        send_by(cx.unix, cx.process, &process, as_seen(cx, &process, info));
    }
    Ok(0)
}

fn rt_tgsigqueueinfo(cx: &Cx) -> Answer {
    let (group, tid, signal) = (cx.int(0), cx.int(1), cx.uint(2));
    if group <= 0 || tid <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let own = group as u32 == cx.process.number;
    let info = read_info(cx, cx.arg(3), signal, own)?;
    send_to_thread(cx, Some(group), tid, Ok(info))
}
