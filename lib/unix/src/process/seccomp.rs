//! Seccomp's strict mode: a thread that may only read, write, return from signals and end.
//!
//! Each thread has the table by which its calls are found; a strict one has another, in
//! which all other calls end it. So threads without it pay nothing.

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace::{SECCOMP_MODE_DISABLED, SECCOMP_MODE_STRICT, SECCOMP_SET_MODE_STRICT};

use super::end;
use crate::call::{Answer, Cx, Entry, NUMBERS, Stop, TABLE, Table, full, partial};
use crate::errno::Errno;
use crate::thread::Thread;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[partial(l::__NR_seccomp, "seccomp", seccomp, "filters (EINVAL)")];

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

/// Ends the thread, as SIGKILL would.
fn refuse(cx: &Cx) -> Answer {
    end::end_thread(cx.unix, cx.thread, l::SIGKILL);
    Err(Stop::Done)
}

/// Whether the thread is strict.
#[must_use]
pub fn is_strict(thread: &Thread) -> bool {
    core::ptr::eq(thread.own_table(), &raw const STRICT)
}

/// A strict thread has made a call whose number no table has.
///
/// # Errors
/// `Done` for a strict thread, which has ended.
pub fn check_unknown(cx: &Cx) -> Result<(), Stop> {
    // Most have the table of all calls.
    let ordinary = core::ptr::eq(cx.thread.table.get(), &raw const TABLE);
    if !ordinary && is_strict(cx.thread) { refuse(cx).map(drop) } else { Ok(()) }
}

/// `PR_GET_SECCOMP` (of which a strict thread dies).
#[must_use]
pub fn mode(thread: &Thread) -> u32 {
    if is_strict(thread) { SECCOMP_MODE_STRICT } else { SECCOMP_MODE_DISABLED }
}

/// `PR_SET_SECCOMP`.
pub(super) fn set_mode(cx: &Cx, mode: u64) -> Answer {
    if mode != u64::from(SECCOMP_MODE_STRICT) {
        return Err(Errno::EINVAL.into());
    }
    cx.thread.set_own_table(&STRICT);
    Ok(0)
}

fn seccomp(cx: &Cx) -> Answer {
    let (operation, flags, argument) = (cx.uint(0), cx.uint(1), cx.arg(2));
    if operation != SECCOMP_SET_MODE_STRICT || flags != 0 || argument != 0 {
        return Err(Errno::EINVAL.into());
    }
    set_mode(cx, SECCOMP_MODE_STRICT.into())
}
