//! Process accounting: a record of each process that ends, at the end of a file (`acct(2)`, and
//! `acct(5)`, version 3, as Debian's kernel has it). And the call on kernel modules, of which there
//! are none.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use zerocopy::{Immutable, IntoBytes};

use super::Process;
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::file::{Open, Source};
use crate::fs::inode::Kind;
use crate::fs::open::{How, open_path};
use crate::thread::Thread;
use crate::time::real_time_ns;
use crate::time::types::SECOND_NS;
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(
        l::__NR_acct,
        "acct",
        acct,
        "its file keeps its file system busy; no pauses when it is full",
    ),
    full(l::__NR_delete_module, "delete_module", delete_module),
];

/// Ticks of times in records, in a second.
const HZ: u64 = 100;
const TICK_NS: u64 = SECOND_NS / HZ;
/// Version of a record.
const VERSION: u8 = 3;
/// `ac_flag`: forked and never replaced its program; had all rights; dumped core; ended by a signal.
const FORKED: u8 = 0x01;
const SUPERUSER: u8 = 0x02;
const DUMPED: u8 = 0x08;
const KILLED: u8 = 0x10;

/// `struct acct_v3`.
#[derive(IntoBytes, Immutable, Default)]
#[repr(C)]
struct Record {
    flag: u8,
    version: u8,
    tty: u16,
    exit_code: u32,
    user: u32,
    group: u32,
    pid: u32,
    parent: u32,
    /// Seconds since 1970.
    begun: u32,
    /// Ticks, a `float`.
    elapsed: [u8; 4],
    user_time: u16,
    system_time: u16,
    /// Memory, KiB: the most there was, where Linux tells an average.
    memory: u16,
    characters: u16,
    blocks: u16,
    minor_faults: u16,
    major_faults: u16,
    swaps: u16,
    name: [u8; 16],
}

/// `comp_t`: 13 bits times a power of 8, which the three bits above say; rounded.
const fn compressed(value: u64) -> u16 {
    let (mut value, mut exponent, mut round) = (value, 0, 0);
    while value >= 1 << 13 {
        round = value & 4;
        value >>= 3;
        exponent += 1;
    }
    if round != 0 {
        value += 1;
        if value >= 1 << 13 {
            value >>= 3;
            exponent += 1;
        }
    }
    if exponent > 7 { u16::MAX } else { (exponent << 13 | value) as u16 }
}

/// `acct(name)`: records go to that file from now on, nowhere if it is null.
fn acct(cx: &Cx) -> Answer {
    if !cx.process.credentials.borrow().may(l::CAP_SYS_PACCT) {
        return Err(Errno::EPERM.into());
    }
    let accounting = &cx.unix.processes.accounting;
    if cx.arg(0) == 0 {
        drop(accounting.take());
        return Ok(0);
    }
    let path = cx.user().read_path(cx.arg(0))?;
    let flags = l::O_WRONLY | l::O_APPEND | l::O_LARGEFILE;
    let how = How { flags: flags.into(), mode: 0, resolve: 0 };
    let open = open_path(cx, l::AT_FDCWD, path, how)?;
    if !matches!(open.file.inode().kind, Kind::Regular(_)) {
        return Err(Errno::EACCES.into());
    }
    drop(accounting.replace(Some(open)));
    Ok(0)
}

/// A process has ended, whose first thread was `thread`: it is recorded, if that is wanted and
/// there is room.
pub(super) fn record(unix: &Unix, thread: &Rc<Thread>, status: u32) {
    let Some(open) = unix.processes.accounting.borrow().clone() else { return };
    let process = &thread.process;
    let cx = Cx { unix, thread, process };
    // It has ended, and its own limit of file sizes is none of the accounts'.
    process.limits.borrow_mut()[l::RLIMIT_FSIZE as usize].0 = u64::MAX;
    let record = of(unix, process, status);
    append(&cx, &open, record.as_bytes());
}

fn of(unix: &Unix, process: &Process, status: u32) -> Record {
    let (time, (memory, faults)) =
        (process.times.own(unix, process), process.times.memory(process));
    let elapsed_ns = unix.machine.now_ns().saturating_sub(process.times.start_ns);
    let credentials = process.credentials.borrow();
    let tty = unix.terminals.of_session(process.session.get()).map_or(0, |tty| tty.device);
    Record {
        flag: flags(process, status),
        version: VERSION,
        tty: tty as u16,
        exit_code: status,
        user: credentials.uid,
        group: credentials.gid,
        pid: process.pid.first(),
        parent: process.parent_pid.get().first(),
        begun: (real_time_ns(unix).saturating_sub(elapsed_ns) / SECOND_NS) as u32,
        elapsed: ((elapsed_ns / TICK_NS) as f32).to_le_bytes(),
        user_time: compressed(time.user_ns / TICK_NS),
        system_time: compressed(time.system_ns / TICK_NS),
        memory: compressed(memory),
        minor_faults: compressed(faults),
        name: process.state.last_name.get(),
        ..Record::default()
    }
}

/// `ac_flag` of a process that ends with a status, or (0) goes on.
pub(crate) fn flags(process: &Process, status: u32) -> u8 {
    let flags = [
        (FORKED, !process.state.replaced.get()),
        (SUPERUSER, process.credentials.borrow().euid == 0),
        (DUMPED, status & 0x80 != 0),
        (KILLED, status & 0x7F != 0),
    ];
    flags.iter().filter(|flag| flag.1).fold(0, |sum, flag| sum | flag.0)
}

fn append(cx: &Cx, open: &Open, bytes: &[u8]) {
    let mut source = Source::Server(bytes);
    let mut at = open.file.size();
    while source.left() > 0 {
        match open.file.write(cx, open, &mut source, at) {
            Ok(wrote) if wrote > 0 => at += wrote as u64,
            // Who ends is not to hear of it.
            _ => return,
        }
    }
}

/// `delete_module(name, flags)`: there is none of that name.
fn delete_module(cx: &Cx) -> Answer {
    if !cx.process.credentials.borrow().may(l::CAP_SYS_MODULE) {
        return Err(Errno::EPERM.into());
    }
    let _ = cx.user().read_string(cx.arg(0), NAME_BYTES, Errno::ENOENT)?;
    Err(Errno::ENOENT.into())
}

/// Bytes of a module's name, its zero byte included.
const NAME_BYTES: usize = 56;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_linux_says() {
        assert_eq!(size_of::<Record>(), 64);
        assert_eq!(core::mem::offset_of!(Record, name), 48);
    }

    #[test]
    fn large_numbers_are_compressed_and_rounded() {
        assert_eq!([0, 8191].map(compressed), [0, 8191]);
        assert_eq!(compressed(8192), 1 << 13 | 1024);
        assert_eq!(compressed(8196), 1 << 13 | 1025);
        assert_eq!(compressed(u64::MAX), u16::MAX);
    }
}
