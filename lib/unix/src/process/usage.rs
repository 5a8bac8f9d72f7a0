//! What processes have used: times, faults, memory.

use linux_raw_sys::general as l;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::Process;
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::time::{CpuTime, Timeval};
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_getrusage, "getrusage", getrusage, "times, ru_maxrss and ru_minflt only"),
    full(l::__NR_times, "times", times),
];

/// Clock ticks a second, as programs see them.
pub const TICKS: u64 = 100;
const TICK_NS: u64 = 1_000_000_000 / TICKS;

/// `struct rusage`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Usage {
    user: Timeval,
    system: Timeval,
    max_resident_kib: u64,
    unused: [u64; 3],
    minor_faults: u64,
    major_faults: u64,
    rest: [u64; 8],
}

/// From times and memory.
fn usage(time: CpuTime, max_resident_kib: u64, minor_faults: u64) -> Usage {
    Usage {
        user: Timeval::from_ns(time.user_ns),
        system: Timeval::from_ns(time.system_ns),
        max_resident_kib,
        minor_faults,
        ..Usage::default()
    }
}

/// What a process has used; `with_children` adds what it has waited for, as `wait4` does.
#[must_use]
pub fn of_process(unix: &Unix, process: &Process, with_children: bool) -> Usage {
    let mut time = process.times.own(unix, process);
    let (mut peak, mut faults) = process.times.memory(process);
    if with_children {
        time = time + process.times.children();
        let (child_peak, child_faults) = process.times.children_memory();
        peak = peak.max(child_peak);
        faults += child_faults;
    }
    usage(time, peak, faults)
}

/// A process's own user and system time in ticks (for SIGCHLD).
#[must_use]
pub fn ticks(unix: &Unix, process: &Process) -> (u64, u64) {
    let time = process.times.own(unix, process);
    (time.user_ns / TICK_NS, time.system_ns / TICK_NS)
}

fn getrusage(cx: &Cx) -> Answer {
    let times = &cx.process.times;
    let used = match cx.int(0) {
        0 => of_process(cx.unix, cx.process, false),
        l::RUSAGE_CHILDREN => {
            let (peak, faults) = times.children_memory();
            usage(times.children(), peak, faults)
        }
        1 => {
            let (peak, faults) = times.memory(cx.process);
            usage(crate::time::of_thread(cx.unix, cx.thread), peak, faults)
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    cx.user().write(cx.arg(1), &used)?;
    Ok(0)
}

fn times(cx: &Cx) -> Answer {
    if cx.arg(0) != 0 {
        let own = cx.process.times.own(cx.unix, cx.process);
        let children = cx.process.times.children();
        let ns = [own.user_ns, own.system_ns, children.user_ns, children.system_ns];
        cx.user().write(cx.arg(0), &ns.map(|ns| ns / TICK_NS))?;
    }
    Ok(cx.unix.machine.now_ns() / TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_the_kernel_s() {
        assert_eq!(size_of::<Usage>(), size_of::<l::rusage>());
        assert_eq!(
            core::mem::offset_of!(Usage, minor_faults),
            core::mem::offset_of!(l::rusage, ru_minflt)
        );
    }
}
