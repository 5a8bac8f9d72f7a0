//! Seccomp: threads that may not make all calls.
//!
//! Each thread has the table by which its calls are found; one in strict mode has another, in
//! which all calls but four end it, and one with filters a third, whose one handler asks them ([`filter`]).
//! So threads without it pay nothing.
//!
//! | file | owns |
//! |---|---|
//! | `bpf` | the programs that filters are |
//! | `filter` | the filters of a thread: what they say and what that does to a call |

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace::{
    SECCOMP_GET_ACTION_AVAIL, SECCOMP_MODE_DISABLED, SECCOMP_MODE_FILTER, SECCOMP_MODE_STRICT,
    SECCOMP_SET_MODE_FILTER, SECCOMP_SET_MODE_STRICT,
};

use super::end;
use crate::call::{Answer, Cx, Entry, NUMBERS, Stop, TABLE, Table, full, partial};
use crate::errno::Errno;
use crate::thread::Thread;

pub mod bpf;
pub mod filter;

pub use filter::Filter;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[partial(
    l::__NR_seccomp,
    "seccomp",
    seccomp,
    "SECCOMP_FILTER_FLAG_NEW_LISTENER (EINVAL): nobody can be asked but a tracer",
)];

/// What a strict thread may call.
const ALLOWED: [u32; 4] = [l::__NR_read, l::__NR_write, l::__NR_exit, l::__NR_rt_sigreturn];

/// The table of a strict thread.
static STRICT: Table = {
    let mut table = [Some(full(0, "", refuse)); NUMBERS];
    let mut index = 0;
    while index < ALLOWED.len() {
        table[ALLOWED[index] as usize] = TABLE[ALLOWED[index] as usize];
        index += 1;
    }
    table
};

/// The table of a thread with filters.
static FILTERED: Table = [Some(full(0, "", filtered)); NUMBERS];

/// Ends the thread, as SIGKILL would.
fn refuse(cx: &Cx) -> Answer {
    end::end_thread(cx.unix, cx.thread, l::SIGKILL);
    Err(Stop::Done)
}

/// Asks the filters; what they let pass is carried out.
fn filtered(cx: &Cx) -> Answer {
    let number = cx.thread.number.get();
    if let Some(answer) = filter::judge(cx, number) {
        return answer;
    }
    match TABLE.get(number as usize) {
        Some(Some(entry)) => (entry.handler)(cx),
        _ => cx.unix.missing(cx, number),
    }
}

/// A thread has made a call whose number no table has: the answer, if it is not the ordinary one.
#[inline(always)]
#[must_use]
pub fn judge_unknown(cx: &Cx, number: u32) -> Option<Answer> {
    // Most have the table of all calls.
    let ordinary = core::ptr::eq(cx.thread.table.get(), &raw const TABLE);
    if ordinary { None } else { judge_unusual(cx, number) }
}

#[cold]
fn judge_unusual(cx: &Cx, number: u32) -> Option<Answer> {
    match mode(cx.thread) {
        SECCOMP_MODE_STRICT => Some(refuse(cx)),
        SECCOMP_MODE_FILTER => filter::judge(cx, number),
        _ => None,
    }
}

/// `PR_GET_SECCOMP` (of which a strict thread dies).
#[must_use]
pub fn mode(thread: &Thread) -> u32 {
    let table = thread.own_table();
    if core::ptr::eq(table, &raw const STRICT) {
        SECCOMP_MODE_STRICT
    } else if core::ptr::eq(table, &raw const FILTERED) {
        SECCOMP_MODE_FILTER
    } else {
        SECCOMP_MODE_DISABLED
    }
}

/// `PR_SET_SECCOMP`, with the address of a program.
pub(super) fn set_mode(cx: &Cx, mode: u64, program: u64) -> Answer {
    match u32::try_from(mode) {
        Ok(SECCOMP_MODE_STRICT) => set_strict(cx),
        Ok(SECCOMP_MODE_FILTER) => filter::add(cx, 0, program),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn set_strict(cx: &Cx) -> Answer {
    if mode(cx.thread) == SECCOMP_MODE_FILTER {
        return Err(Errno::EINVAL.into());
    }
    cx.thread.set_own_table(&STRICT);
    Ok(0)
}

fn seccomp(cx: &Cx) -> Answer {
    let (operation, flags, argument) = (cx.uint(0), cx.uint(1), cx.arg(2));
    match operation {
        SECCOMP_SET_MODE_STRICT if flags == 0 && argument == 0 => set_strict(cx),
        SECCOMP_SET_MODE_FILTER => filter::add(cx, flags, argument),
        SECCOMP_GET_ACTION_AVAIL if flags == 0 => filter::tell_available(cx, argument),
        _ => Err(Errno::EINVAL.into()),
    }
}
