//! Scheduling by attributes (`sched_setattr`), and the priority of input and output: that is kept, told
//! and inherited, without effect.

use linux_raw_sys::general as l;
use zerocopy::IntoBytes;

use super::schedule::{REAL_TIME, meant_by, scheduled, set};
use super::share::Tuning;
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_sched_setattr, "sched_setattr", sched_setattr, REAL_TIME),
    full(l::__NR_sched_getattr, "sched_getattr", sched_getattr),
    partial(l::__NR_ioprio_get, "ioprio_get", ioprio_get, KEPT),
    partial(l::__NR_ioprio_set, "ioprio_set", ioprio_set, KEPT),
];

const KEPT: &str = "kept and told, without effect";

/// Words of `struct sched_attr` in its first and in its present form.
const FIRST_BYTES: u64 = 48;
const WORDS: usize = 7;
const BYTES: u64 = WORDS as u64 * 8;
/// Most bytes that a program can say it has.
const BYTES_MAX: u64 = 4096;
/// `SCHED_FLAG_RESET_ON_FORK`.
const RESET: u64 = 1;

/// The words of the attributes at `from`, the size included.
fn attributes(cx: &Cx, from: u64) -> Result<[u64; WORDS], Errno> {
    let size = match u64::from(cx.user().read::<u32>(from)?) {
        0 => FIRST_BYTES,
        size => size,
    };
    let mut bytes = alloc::vec![0_u8; size.clamp(BYTES, BYTES_MAX) as usize];
    let known = size.min(BYTES_MAX) as usize;
    cx.user().read_bytes(from, &mut bytes[..known])?;
    let unknown = bytes[BYTES as usize..].iter().any(|byte| *byte != 0);
    if !(FIRST_BYTES..=BYTES_MAX).contains(&size) || unknown {
        cx.user().write(from, &(BYTES as u32))?;
        return Err(Errno::E2BIG);
    }
    let mut words = [0; WORDS];
    words.as_mut_bytes().copy_from_slice(&bytes[..BYTES as usize]);
    Ok(words)
}

/// `sched_setattr(pid, attributes, flags)`.
fn sched_setattr(cx: &Cx) -> Answer {
    let from = cx.arg(1);
    if from == 0 || cx.int(0) < 0 || cx.uint(2) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let [head, flags, nice_and_priority, run, deadline, period, _] = attributes(cx, from)?;
    let (policy, times) = (head >> 32, [run, deadline, period]);
    let who = scheduled(cx, cx.int(0))?;
    if flags & !RESET != 0 || policy >= u64::from(l::SCHED_RESET_ON_FORK) {
        return Err(Errno::EINVAL.into());
    }
    let policy = policy as u32;
    if policy == l::SCHED_DEADLINE {
        let period = if period == 0 { deadline } else { period };
        if run == 0 || run > deadline || deadline > period || period >> 63 != 0 {
            return Err(Errno::EINVAL.into());
        }
    }
    let kept = if flags & RESET != 0 { policy | l::SCHED_RESET_ON_FORK } else { policy };
    let has_nice = matches!(policy, l::SCHED_NORMAL | l::SCHED_BATCH);
    let nice = (nice_and_priority as u32 as i32).clamp(-20, 19);
    let nice = if has_nice { nice } else { who.tuning().nice };
    let priority = (nice_and_priority >> 32) as u32;
    set(cx, &who, Tuning { nice, policy: kept, priority, deadline: times })
}

/// `sched_getattr(pid, attributes, size, flags)`.
fn sched_getattr(cx: &Cx) -> Answer {
    let (to, size) = (cx.arg(1), u64::from(cx.uint(2)));
    let fits = (FIRST_BYTES..=BYTES_MAX).contains(&size);
    if to == 0 || cx.int(0) < 0 || cx.uint(3) != 0 || !fits {
        return Err(Errno::EINVAL.into());
    }
    let tuning = scheduled(cx, cx.int(0))?.tuning();
    let Tuning { policy, priority, .. } = tuning;
    let told = size.min(BYTES);
    let flags = if policy & l::SCHED_RESET_ON_FORK != 0 { RESET } else { 0 };
    let policy = policy & !l::SCHED_RESET_ON_FORK;
    let nice = match policy {
        l::SCHED_NORMAL | l::SCHED_BATCH => tuning.nice as u32,
        _ => 0,
    };
    let [run, deadline, period] = match policy {
        l::SCHED_DEADLINE => tuning.deadline,
        _ => [0; 3],
    };
    let words = [
        u64::from(policy) << 32 | told,
        flags,
        u64::from(priority) << 32 | u64::from(nice),
        run,
        deadline,
        period,
        1024 << 32,
    ];
    for (at, word) in words.iter().enumerate().take(told as usize / 8) {
        cx.user().write(to.wrapping_add(8 * at as u64), word)?;
    }
    Ok(0)
}

/// A priority of input and output: its class, and where in it.
const CLASS_SHIFT: u32 = 13;
const CLASS_NONE: u32 = 0;
const CLASS_REAL_TIME: u32 = 1;
const CLASS_IDLE: u32 = 3;
const LEVELS: u32 = 8;

/// Whom `which` of both calls means, as `getpriority` counts.
fn meant(cx: &Cx) -> Result<alloc::vec::Vec<alloc::rc::Rc<super::Process>>, Errno> {
    match cx.uint(0) {
        which @ 1..=3 => meant_by(cx, which - 1, cx.uint(1)),
        _ => Err(Errno::EINVAL),
    }
}

fn ioprio_get(cx: &Cx) -> Answer {
    // The most urgent: the lowest number, of those that have one.
    let all = meant(cx)?;
    let all = all.iter().map(|process| process.state.io_priority.get());
    Ok(all.min_by_key(|one| if *one == 0 { u32::MAX } else { *one }).unwrap_or(0).into())
}

fn ioprio_set(cx: &Cx) -> Answer {
    let priority = cx.uint(2);
    let (class, level) = (priority >> CLASS_SHIFT, priority & ((1 << CLASS_SHIFT) - 1));
    let may = cx.process.credentials.borrow().may(l::CAP_SYS_NICE);
    match class {
        CLASS_NONE if level != 0 => return Err(Errno::EINVAL.into()),
        CLASS_REAL_TIME if !may => return Err(Errno::EPERM.into()),
        CLASS_NONE..=CLASS_IDLE if level < LEVELS => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    for process in meant(cx)? {
        let (who, uid) = (cx.process.credentials.borrow(), process.credentials.borrow().uid);
        if uid != who.euid && uid != who.uid && !who.may(l::CAP_SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
        process.state.io_priority.set(priority);
    }
    Ok(0)
}
