//! `membarrier`: what other threads have done before the call is seen by its caller behind it, and the reverse,
//! though they execute no barrier themselves.
//!
//! Whoever passes through the kernel has executed one: table roots are loaded on the way, which also serializes
//! what is fetched (SYNC_CORE). All who are on the first processor have, for the server runs there now. Of the
//! others those come back that may be running on another processor, and go on afterwards.

use linux_raw_sys::general as linux;

use super::AddressSpace;
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::process::{Pid, processors};
use crate::thread::Thread;

pub(super) const MEMBARRIER: Entry = partial(
    linux::__NR_membarrier,
    "membarrier",
    membarrier,
    "MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ",
);

/// All programs.
const GLOBAL: u32 = 1;
/// All programs that want it.
const GLOBAL_EXPEDITED: u32 = 2;
const REGISTER_GLOBAL_EXPEDITED: u32 = 4;
/// The caller's memory.
const PRIVATE_EXPEDITED: u32 = 8;
const REGISTER_PRIVATE_EXPEDITED: u32 = 16;
const PRIVATE_EXPEDITED_SYNC_CORE: u32 = 32;
const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: u32 = 64;
/// Every command there is.
const QUERY: u32 = 127;

/// What a look at a thread, and one that comes back, count for.
const LOOK: u32 = 1;
const FENCE: u32 = 64;
/// What one turn of the server may come to; others have theirs then.
const MOST: u32 = 4096;

fn membarrier(cx: &Cx) -> Answer {
    let (command, flags) = (cx.uint(0), cx.uint(1));
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let space = cx.process.space();
    let is_own =
        |thread: &Thread| core::ptr::eq(&raw const *thread.process.space(), &raw const *space);
    match command {
        0 => Ok(u64::from(QUERY)),
        REGISTER_GLOBAL_EXPEDITED
        | REGISTER_PRIVATE_EXPEDITED
        | REGISTER_PRIVATE_EXPEDITED_SYNC_CORE => {
            space.barriers.set(space.barriers.get() | command);
            Ok(0)
        }
        GLOBAL => fence(cx, |_| true),
        GLOBAL_EXPEDITED => {
            fence(cx, |thread| thread.process.space().has_registered(REGISTER_GLOBAL_EXPEDITED))
        }
        PRIVATE_EXPEDITED if space.has_registered(REGISTER_PRIVATE_EXPEDITED) => fence(cx, is_own),
        PRIVATE_EXPEDITED_SYNC_CORE
            if space.has_registered(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) =>
        {
            fence(cx, is_own)
        }
        PRIVATE_EXPEDITED | PRIVATE_EXPEDITED_SYNC_CORE => Err(Errno::EPERM.into()),
        _ => Err(Errno::EINVAL.into()),
    }
}

impl AddressSpace {
    fn has_registered(&self, command: u32) -> bool {
        self.barriers.get() & command != 0
    }
}

/// Of the threads that are meant, each that may be running on another processor comes back from it. By their
/// ids: whoever is born meanwhile, or gets another id by a new program, has passed through the kernel since.
fn fence(cx: &Cx, is_meant: impl Fn(&Thread) -> bool) -> Answer {
    if !cx.unix.processors.are_several() {
        return Ok(0);
    }
    let mut effort = 0;
    for (tid, thread) in
        cx.unix.processes.by_tid.borrow().range(Pid::from_first(cx.progress() as u32)..)
    {
        if effort >= MOST {
            return Err(cx.give_way(u64::from(tid.first())));
        }
        effort += LOOK;
        if processors::may_run_elsewhere(thread) && is_meant(thread) {
            effort += FENCE;
            cx.unix.machine.bring_back(thread.machine.get());
        }
    }
    Ok(0)
}
