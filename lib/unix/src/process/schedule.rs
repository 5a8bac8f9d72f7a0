//! Scheduling: what programs ask for; what comes of that is [`super::share`]'s business.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use super::share::{self, Tuning};
use super::{Process, processors};
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::thread::Thread;
use crate::time::Timespec;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_sched_yield, "sched_yield", sched_yield),
    partial(l::__NR_sched_setscheduler, "sched_setscheduler", sched_setscheduler, REAL_TIME),
    full(l::__NR_sched_getscheduler, "sched_getscheduler", sched_getscheduler),
    partial(l::__NR_sched_setparam, "sched_setparam", sched_setparam, REAL_TIME),
    full(l::__NR_sched_getparam, "sched_getparam", sched_getparam),
    full(l::__NR_sched_get_priority_max, "sched_get_priority_max", priority_max),
    full(l::__NR_sched_get_priority_min, "sched_get_priority_min", priority_min),
    full(l::__NR_sched_rr_get_interval, "sched_rr_get_interval", rr_get_interval),
    full(l::__NR_sched_setaffinity, "sched_setaffinity", sched_setaffinity),
    full(l::__NR_sched_getaffinity, "sched_getaffinity", sched_getaffinity),
    full(l::__NR_getcpu, "getcpu", getcpu),
    full(l::__NR_getpriority, "getpriority", getpriority),
    partial(
        l::__NR_setpriority,
        "setpriority",
        setpriority,
        "less than -10 is told, and counts as -10",
    ),
];

pub(super) const REAL_TIME: &str =
    "SCHED_FIFO, SCHED_RR and SCHED_DEADLINE count as nice -10, whatever their priority";

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

/// Who is scheduled: a thread, or a process that has ended and was not waited for.
pub(super) struct Scheduled {
    process: Rc<Process>,
    thread: Option<Rc<Thread>>,
}

impl Scheduled {
    fn of(thread: &Rc<Thread>) -> Self {
        Self { process: thread.process.clone(), thread: Some(thread.clone()) }
    }

    fn first_of(process: Rc<Process>) -> Self {
        let thread = process.threads.borrow().first().cloned();
        Self { process, thread }
    }

    /// How it asks to be scheduled.
    pub fn tuning(&self) -> Tuning {
        self.thread.as_ref().map_or_else(|| self.process.tuning(), |thread| thread.tuning.get())
    }

    fn tune(&self, unix: &Unix, tuning: Tuning) {
        match &self.thread {
            Some(thread) => share::tune(unix, thread, tuning),
            None => self.process.state.last_tuning.set(tuning),
        }
    }

    /// Whether it may have this nice value by its limit, or the caller's privilege.
    fn may_be_as_nice(&self, cx: &Cx, nice: i32) -> bool {
        let least = 20 - i64::try_from(self.process.limit(l::RLIMIT_NICE)).unwrap_or(40);
        i64::from(nice) >= least || cx.process.credentials.borrow().may(l::CAP_SYS_NICE)
    }
}

/// Whom a thread's id means, also one that has ended and was not waited for; 0 is the caller,
/// and negative ids are refused with `EINVAL`.
pub(super) fn scheduled(cx: &Cx, tid: i32) -> Result<Scheduled, Errno> {
    match tid {
        0 => Ok(Scheduled::of(cx.thread)),
        _ if tid < 0 => Err(Errno::EINVAL),
        _ => find(cx, tid as u32).ok_or(Errno::ESRCH),
    }
}

fn find(cx: &Cx, number: u32) -> Option<Scheduled> {
    let thread = cx.find_thread(number).map(|thread| Scheduled::of(&thread));
    thread.or_else(|| cx.unix.processes.process(cx.pid(number)?).map(Scheduled::first_of))
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

/// Has `who` scheduled as asked for.
pub(super) fn set(cx: &Cx, who: &Scheduled, asked: Tuning) -> Answer {
    let policy = asked.plain_policy();
    let (low, high) = range(policy)?;
    if !(low..=high).contains(&asked.priority) {
        return Err(Errno::EINVAL.into());
    }
    check(cx, &who.process)?;
    let now = who.tuning();
    // To be idle by policy is nicer than all nice values.
    let was_idle = now.plain_policy() == l::SCHED_IDLE && policy != l::SCHED_IDLE;
    let asks_more = asked.nice < now.nice || was_idle;
    let most = who.process.limit(l::RLIMIT_RTPRIO);
    let is_refused = match policy {
        l::SCHED_DEADLINE => true,
        l::SCHED_FIFO | l::SCHED_RR => u64::from(asked.priority) > most,
        _ => asks_more && !who.may_be_as_nice(cx, asked.nice),
    };
    if is_refused && !cx.process.credentials.borrow().may(l::CAP_SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    who.tune(cx.unix, asked);
    Ok(0)
}

fn sched_setscheduler(cx: &Cx) -> Answer {
    if cx.arg(2) == 0 || cx.int(1) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let priority: u32 = cx.user().read(cx.arg(2))?;
    set_plain(cx, &scheduled(cx, cx.int(0))?, cx.uint(1), priority)
}

/// [`set`] by calls that know of no deadline, without which there is no `SCHED_DEADLINE`.
fn set_plain(cx: &Cx, who: &Scheduled, policy: u32, priority: u32) -> Answer {
    if policy & !l::SCHED_RESET_ON_FORK == l::SCHED_DEADLINE {
        return Err(Errno::EINVAL.into());
    }
    set(cx, who, Tuning { policy, priority, ..who.tuning() })
}

fn sched_setparam(cx: &Cx) -> Answer {
    if cx.arg(1) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let priority: u32 = cx.user().read(cx.arg(1))?;
    let who = scheduled(cx, cx.int(0))?;
    set_plain(cx, &who, who.tuning().policy, priority)
}

fn sched_getscheduler(cx: &Cx) -> Answer {
    Ok(u64::from(scheduled(cx, cx.int(0))?.tuning().policy))
}

fn sched_getparam(cx: &Cx) -> Answer {
    if cx.arg(1) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let priority = scheduled(cx, cx.int(0))?.tuning().priority;
    cx.user().write(cx.arg(1), &priority)?;
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
    let policy = scheduled(cx, cx.int(0))?.tuning().policy;
    let slice = if policy == l::SCHED_FIFO { 0 } else { SLICE_NS };
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

/// Whom (which, who) of `getpriority` means: one thread, or all of several processes.
fn meant(cx: &Cx) -> Result<Vec<Scheduled>, Errno> {
    let (which, who) = (cx.uint(0), cx.uint(1));
    if which == l::PRIO_PROCESS {
        let one = if who == 0 { Some(Scheduled::of(cx.thread)) } else { find(cx, who) };
        return Ok(vec![one.ok_or(Errno::ESRCH)?]);
    }
    let mut all = Vec::new();
    for process in meant_by(cx, which, who)? {
        let threads = process.threads.borrow();
        all.extend(threads.iter().map(Scheduled::of));
        if threads.is_empty() {
            all.push(Scheduled { process: process.clone(), thread: None });
        }
    }
    Ok(all)
}

/// The processes that are meant so.
pub(super) fn meant_by(cx: &Cx, which: u32, who: u32) -> Result<Vec<Rc<Process>>, Errno> {
    let found = match which {
        l::PRIO_PROCESS if who == 0 => vec![cx.process.clone()],
        l::PRIO_PROCESS => find(cx, who).into_iter().map(|found| found.process).collect(),
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
    let lowest = meant(cx)?.iter().map(|who| who.tuning().nice).min().unwrap_or(0);
    // As 1 to 40, so that no result looks like an error.
    Ok((20 - lowest) as u64)
}

fn setpriority(cx: &Cx) -> Answer {
    let nice = cx.int(2).clamp(-20, 19);
    for who in meant(cx)? {
        check(cx, &who.process)?;
        let tuning = who.tuning();
        if nice < tuning.nice && !who.may_be_as_nice(cx, nice) {
            return Err(Errno::EACCES.into());
        }
        who.tune(cx.unix, Tuning { nice, ..tuning });
    }
    Ok(0)
}
