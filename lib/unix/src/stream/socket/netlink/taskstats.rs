//! TASKSTATS: what a thread or a process has used, for `iotop` and its like (`struct taskstats`, version 13). What the
//! server does not count is 0: delays, switches, bytes read and written.

use alloc::rc::Rc;
use alloc::vec::Vec;

use zerocopy::{Immutable, IntoBytes};

use super::{attribute, attributes, nested};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::{Process, accounting};
use crate::thread::Thread;
use crate::time::types::SECOND_NS;
use crate::time::{self, CpuTime, real_time_ns};

/// The commands, about threads and processes and about control groups, and that of the answer.
pub(super) const GET: u8 = 1;
pub(super) const OF_GROUP: u8 = 4;
const NEW: u8 = 2;
/// `TASKSTATS_CMD_ATTR_PID` and `_TGID`, which are also `TASKSTATS_TYPE_PID` and `_TGID`.
const PID: u16 = 1;
const TGID: u16 = 2;
/// `TASKSTATS_TYPE_STATS`, `_AGGR_PID`, `_AGGR_TGID`.
const STATS: u16 = 3;
const OF_PID: u16 = 4;
const OF_TGID: u16 = 5;

const VERSION: u16 = 13;
const US: u64 = 1000;

/// `struct taskstats`.
#[derive(IntoBytes, Immutable, Default)]
#[repr(C)]
struct Stats {
    version: u16,
    _pad: u16,
    exit_code: u32,
    flag: u8,
    nice: u8,
    _pad2: [u8; 6],
    delays: [u64; 6],
    run_real_ns: u64,
    run_virtual_ns: u64,
    name: [u8; 32],
    scheduling: u8,
    _pad3: [u8; 7],
    user: u32,
    group: u32,
    pid: u32,
    parent: u32,
    begun: u32,
    _pad4: u32,
    elapsed_us: u64,
    user_us: u64,
    system_us: u64,
    minor_faults: u64,
    major_faults: u64,
    averages: [u64; 2],
    most_resident_kib: u64,
    most_virtual_kib: u64,
    moved: [u64; 7],
    switches: [u64; 2],
    user_scaled_us: u64,
    system_scaled_us: u64,
    run_scaled_ns: u64,
    more_delays: [u64; 4],
    begun_s: u64,
    compact: [u64; 2],
    process: u32,
    _pad5: u32,
    process_elapsed_us: u64,
    executable: [u64; 2],
    copies: [u64; 2],
}

/// The answer to a request.
pub(super) fn answer(cx: &Cx, request: &[u8]) -> Result<Vec<u8>, Errno> {
    let wish = attributes(request).find(|(kind, _)| [PID, TGID].contains(kind));
    let (kind, data) = wish.ok_or(Errno::EINVAL)?;
    let number =
        data.first_chunk().map(|number| u32::from_ne_bytes(*number)).ok_or(Errno::ERANGE)?;
    let pid = cx.pid(number).ok_or(Errno::ESRCH)?;
    let (outer, stats) = if kind == PID {
        let thread = cx.unix.processes.by_tid.borrow().get(&pid).cloned();
        (OF_PID, of_thread(cx, &thread.ok_or(Errno::ESRCH)?))
    } else {
        let process = cx.unix.processes.by_pid.borrow().get(&pid).cloned();
        (OF_TGID, of_process(cx, &process.ok_or(Errno::ESRCH)?))
    };
    let mut content = Vec::from([NEW, 1, 0, 0]);
    nested(&mut content, outer, |content| {
        attribute(content, kind, &number.to_ne_bytes());
        attribute(content, STATS, stats.as_bytes());
    });
    Ok(content)
}

/// What both have: times.
fn times(time: CpuTime) -> Stats {
    let (user, system) = (time.user_ns, time.system_ns);
    Stats {
        version: VERSION,
        run_real_ns: user + system,
        run_virtual_ns: user + system,
        user_us: user / US,
        system_us: system / US,
        user_scaled_us: user / US,
        system_scaled_us: system / US,
        run_scaled_ns: user + system,
        ..Stats::default()
    }
}

/// What a process has used; who it is Linux does not tell here.
fn of_process(cx: &Cx, process: &Rc<Process>) -> Stats {
    times(process.times.own(cx.unix, process))
}

/// What a thread has used, and who it is. Memory is that of its process.
fn of_thread(cx: &Cx, thread: &Rc<Thread>) -> Stats {
    let process = &thread.process;
    let (most_resident_kib, minor_faults) = process.times.memory(process);
    let elapsed_ns = cx.unix.machine.now_ns().saturating_sub(process.times.start_ns);
    let begun_s = real_time_ns(cx.unix).saturating_sub(elapsed_ns) / SECOND_NS;
    let (credentials, tuning) = (process.credentials.borrow(), thread.tuning.get());
    let mut name = [0; 32];
    name[..16].copy_from_slice(&thread.name.get());
    Stats {
        flag: accounting::flags(process, 0),
        nice: tuning.nice as u8,
        name,
        scheduling: tuning.plain_policy() as u8,
        user: cx.user_told(credentials.uid),
        group: cx.group_told(credentials.gid),
        pid: cx.shown(thread.tid.get()),
        parent: cx.shown(process.parent_pid.get()),
        begun: begun_s as u32,
        begun_s,
        elapsed_us: elapsed_ns / US,
        process_elapsed_us: elapsed_ns / US,
        minor_faults,
        most_resident_kib,
        process: cx.shown(process.pid),
        ..times(time::of_thread(cx.unix, thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_as_linux_lays_them_out() {
        use core::mem::offset_of;
        assert_eq!(size_of::<Stats>(), 416);
        let places = [
            (offset_of!(Stats, name), 80),
            (offset_of!(Stats, user), 120),
            (offset_of!(Stats, elapsed_us), 144),
            (offset_of!(Stats, most_resident_kib), 200),
            (offset_of!(Stats, switches), 272),
            (offset_of!(Stats, begun_s), 344),
            (offset_of!(Stats, process), 368),
            (offset_of!(Stats, copies), 400),
        ];
        assert!(places.into_iter().all(|(is, should)| is == should), "{places:?}");
    }
}
