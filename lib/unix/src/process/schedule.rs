//! Scheduling: what programs ask for is kept and told; the processor is one, and the
//! system below divides it.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use super::{Process, processors};
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::thread::Thread;
use crate::time::Timespec;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_sched_yield, "sched_yield", sched_yield),
    partial(l::__NR_sched_setscheduler, "sched_setscheduler", sched_setscheduler, KEPT),
    full(l::__NR_sched_getscheduler, "sched_getscheduler", sched_getscheduler),
    partial(l::__NR_sched_setparam, "sched_setparam", sched_setparam, KEPT),
    full(l::__NR_sched_getparam, "sched_getparam", sched_getparam),
    full(l::__NR_sched_get_priority_max, "sched_get_priority_max", priority_max),
    full(l::__NR_sched_get_priority_min, "sched_get_priority_min", priority_min),
    full(l::__NR_sched_rr_get_interval, "sched_rr_get_interval", rr_get_interval),
    full(l::__NR_sched_setaffinity, "sched_setaffinity", sched_setaffinity),
    full(l::__NR_sched_getaffinity, "sched_getaffinity", sched_getaffinity),
    full(l::__NR_getcpu, "getcpu", getcpu),
    partial(l::__NR_getpriority, "getpriority", getpriority, KEPT),
    partial(l::__NR_setpriority, "setpriority", setpriority, KEPT),
];

pub(super) const KEPT: &str = "kept and told, without effect";

/// Everybody else has a turn first.
fn sched_yield(cx: &Cx) -> Answer {
    cx.unix.reply(cx.thread, crate::machine::Reply::Result(0));
    // Turns are those of the first processor: who is elsewhere must not wait for the programs there.
    if cx.thread.whereabouts.processor.get() == 0 {
        cx.unix.give_turn(cx.thread);
    }
    Err(crate::Stop::Done)
}

/// The thread of an id; 0 is the caller.
fn thread_of(cx: &Cx, tid: i32) -> Result<Rc<Thread>, Errno> {
    match tid {
        0 => Ok(cx.thread.clone()),
        _ => cx.find_thread(tid as u32).ok_or(Errno::ESRCH),
    }
}

/// The process of a thread's id, or one that has ended and was not waited for; 0 is the caller,
/// and negative ids are refused with `EINVAL`.
pub(super) fn process_of(cx: &Cx, tid: i32) -> Result<Rc<Process>, Errno> {
    match tid {
        0 => Ok(cx.process.clone()),
        _ if tid < 0 => Err(Errno::EINVAL),
        _ => find(cx, tid as u32).ok_or(Errno::ESRCH),
    }
}

fn find(cx: &Cx, number: u32) -> Option<Rc<Process>> {
    let thread = cx.find_thread(number).map(|thread| thread.process.clone());
    thread.or_else(|| cx.unix.processes.process(cx.pid(number)?))
}

/// Whether the caller may change another process's scheduling.
fn check(cx: &Cx, process: &Process) -> Result<(), Errno> {
    let own = cx.process.credentials.borrow();
    let other = process.credentials.borrow();
    let same = own.euid == other.uid || own.euid == other.euid;
    if same || own.may_in(&other.users, l::CAP_SYS_NICE) { Ok(()) } else { Err(Errno::EPERM) }
}

/// The range of priorities of a policy.
fn range(policy: u32) -> Result<(u32, u32), Errno> {
    match policy {
        l::SCHED_FIFO | l::SCHED_RR => Ok((1, 99)),
        l::SCHED_NORMAL | l::SCHED_BATCH | l::SCHED_IDLE | l::SCHED_DEADLINE => Ok((0, 0)),
        _ => Err(Errno::EINVAL),
    }
}

/// Sets policy and priority.
pub(super) fn set(cx: &Cx, process: &Process, policy: u32, priority: u32) -> Answer {
    let (low, high) = range(policy & !l::SCHED_RESET_ON_FORK)?;
    if !(low..=high).contains(&priority) {
        return Err(Errno::EINVAL.into());
    }
    check(cx, process)?;
    if high > 0 && !cx.process.credentials.borrow().may(l::CAP_SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    process.state.policy.set((policy, priority));
    Ok(0)
}

fn sched_setscheduler(cx: &Cx) -> Answer {
    if cx.arg(2) == 0 || cx.int(1) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let priority: u32 = cx.user().read(cx.arg(2))?;
    let process = process_of(cx, cx.int(0))?;
    set_plain(cx, &process, cx.uint(1), priority)
}

/// [`set`] by calls that know of no deadline, without which there is no `SCHED_DEADLINE`.
fn set_plain(cx: &Cx, process: &Process, policy: u32, priority: u32) -> Answer {
    if policy & !l::SCHED_RESET_ON_FORK == l::SCHED_DEADLINE {
        return Err(Errno::EINVAL.into());
    }
    set(cx, process, policy, priority)
}

fn sched_setparam(cx: &Cx) -> Answer {
    if cx.arg(1) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let priority: u32 = cx.user().read(cx.arg(1))?;
    let process = process_of(cx, cx.int(0))?;
    set_plain(cx, &process, process.state.policy.get().0, priority)
}

fn sched_getscheduler(cx: &Cx) -> Answer {
    Ok(u64::from(process_of(cx, cx.int(0))?.state.policy.get().0))
}

fn sched_getparam(cx: &Cx) -> Answer {
    if cx.arg(1) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let process = process_of(cx, cx.int(0))?;
    cx.user().write(cx.arg(1), &process.state.policy.get().1)?;
    Ok(0)
}

fn priority_max(cx: &Cx) -> Answer {
    Ok(u64::from(range(cx.uint(0))?.1))
}

fn priority_min(cx: &Cx) -> Answer {
    Ok(u64::from(range(cx.uint(0))?.0))
}

/// The timeslice that is told: Linux's default.
const SLICE_NS: u64 = 100_000_000;

fn rr_get_interval(cx: &Cx) -> Answer {
    let process = process_of(cx, cx.int(0))?;
    let slice = if process.state.policy.get().0 == l::SCHED_FIFO { 0 } else { SLICE_NS };
    cx.user().write(cx.arg(1), &Timespec::from_ns(slice))?;
    Ok(0)
}

fn sched_setaffinity(cx: &Cx) -> Answer {
    let mut bytes = [0_u8; 8];
    let len = (cx.uint(1) as usize).min(bytes.len());
    cx.user().read_bytes(cx.arg(2), &mut bytes[..len])?;
    let thread = thread_of(cx, cx.int(0))?;
    check(cx, &thread.process)?;
    // One of the processors named must be there.
    let allowed = u64::from_le_bytes(bytes) & cx.unix.processors.mask();
    if allowed == 0 {
        return Err(Errno::EINVAL.into());
    }
    processors::restrict(cx.unix, &thread, allowed);
    Ok(0)
}

fn sched_getaffinity(cx: &Cx) -> Answer {
    let len = cx.uint(1) as usize;
    if len < 8 || !len.is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    let thread = thread_of(cx, cx.int(0))?;
    cx.user().write(cx.arg(2), &(thread.affinity.get() & cx.unix.processors.mask()))?;
    Ok(8)
}

fn getcpu(cx: &Cx) -> Answer {
    let processor = cx.thread.whereabouts.processor.get();
    for (index, value) in [(0, processor), (1, 0)] {
        if cx.arg(index) != 0 {
            cx.user().write(cx.arg(index), &value)?;
        }
    }
    Ok(0)
}

/// The processes that (which, who) of `getpriority` means.
fn meant(cx: &Cx) -> Result<Vec<Rc<Process>>, Errno> {
    meant_by(cx, cx.uint(0), cx.uint(1))
}

/// As [`meant`], of what is said otherwise.
pub(super) fn meant_by(cx: &Cx, which: u32, who: u32) -> Result<Vec<Rc<Process>>, Errno> {
    let found = match which {
        l::PRIO_PROCESS if who == 0 => vec![cx.process.clone()],
        l::PRIO_PROCESS => find(cx, who).into_iter().collect(),
        l::PRIO_PGRP => {
            let group = if who == 0 { Some(cx.process.group.get()) } else { cx.pid(who) };
            group.map_or_else(Vec::new, |group| crate::signal::send::members(cx.unix, group))
        }
        l::PRIO_USER => {
            let own = cx.process.credentials.borrow().uid;
            let uid = if who == 0 { own } else { cx.user_meant(who).map_err(|_| Errno::ESRCH)? };
            let all = cx.unix.processes.by_pid.borrow();
            all.values().filter(|one| one.credentials.borrow().uid == uid).cloned().collect()
        }
        _ => return Err(Errno::EINVAL),
    };
    if found.is_empty() { Err(Errno::ESRCH) } else { Ok(found) }
}

fn getpriority(cx: &Cx) -> Answer {
    let lowest = meant(cx)?.iter().map(|process| process.state.nice.get()).min().unwrap_or(0);
    // As 1 to 40, so that no result looks like an error.
    Ok((20 - lowest) as u64)
}

fn setpriority(cx: &Cx) -> Answer {
    let nice = cx.int(2).clamp(-20, 19);
    let root = cx.process.credentials.borrow().may(l::CAP_SYS_NICE);
    for process in meant(cx)? {
        check(cx, &process)?;
        if nice < process.state.nice.get() && !root {
            return Err(Errno::EACCES.into());
        }
        process.state.nice.set(nice);
    }
    Ok(0)
}
