//! The system as a whole: its name, its memory, random bytes, power.

use alloc::vec;
use core::cell::RefCell;

use linux_raw_sys::general as l;
use linux_raw_sys::system as s;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::namespace::names;
use super::{averages, numbers};
use crate::call::{Answer, Cx, Entry, Stop, full, partial};
use crate::errno::Errno;
use crate::memory::PAGE;
use crate::signal::OnSignal;
use crate::time::Clock;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_uname, "uname", uname),
    full(l::__NR_sethostname, "sethostname", sethostname),
    full(l::__NR_setdomainname, "setdomainname", setdomainname),
    full(l::__NR_sysinfo, "sysinfo", sysinfo),
    full(l::__NR_getrandom, "getrandom", getrandom),
    partial(l::__NR_reboot, "reboot", reboot, "power off, halt and restart all end the system"),
];

/// Kernel release that programs see.
pub const RELEASE: &str = "6.1.0-baton";
/// Kernel version that programs see.
pub const VERSION: &str = "#1 Baton";

/// Longest name of a host, without the zero byte.
const NAME_BYTES: usize = 64;

/// `struct new_utsname`: system, node, release, version, machine, domain.
type SystemName = [[u8; NAME_BYTES + 1]; 6];

fn uname(cx: &Cx) -> Answer {
    let names = names(cx.unix, cx.process);
    let (host, domain) = (names.host.borrow(), names.domain.borrow());
    let parts: [&[u8]; 6] =
        [b"Linux", &host, RELEASE.as_bytes(), VERSION.as_bytes(), b"x86_64", &domain];
    let mut name: SystemName = [[0; NAME_BYTES + 1]; 6];
    for (to, from) in name.iter_mut().zip(parts) {
        let len = from.len().min(NAME_BYTES);
        to[..len].copy_from_slice(&from[..len]);
    }
    cx.user().write_bytes(cx.arg(0), name.as_bytes())?;
    Ok(0)
}

fn set_name(cx: &Cx, to: &RefCell<vec::Vec<u8>>) -> Answer {
    let users = &names(cx.unix, cx.process).users;
    if !cx.process.credentials.borrow().may_in(users, l::CAP_SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let len = cx.int(1);
    if !(0..=NAME_BYTES as i32).contains(&len) {
        return Err(Errno::EINVAL.into());
    }
    let mut name = vec![0; len as usize];
    cx.user().read_bytes(cx.arg(0), &mut name)?;
    *to.borrow_mut() = name;
    Ok(0)
}

fn sethostname(cx: &Cx) -> Answer {
    set_name(cx, &names(cx.unix, cx.process).host)
}

fn setdomainname(cx: &Cx) -> Answer {
    set_name(cx, &names(cx.unix, cx.process).domain)
}

/// `struct sysinfo`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct SystemInfo {
    uptime_s: u64,
    loads: [u64; 3],
    total_ram: u64,
    free_ram: u64,
    shared_ram: u64,
    buffer_ram: u64,
    total_swap: u64,
    free_swap: u64,
    processes: u16,
    padding: [u16; 3],
    total_high: u64,
    free_high: u64,
    unit: u32,
    end: u32,
}

fn sysinfo(cx: &Cx) -> Answer {
    let memory = &cx.unix.memory;
    let now_ns = cx.unix.machine.now_ns();
    let loads = cx.unix.processors.averages(now_ns);
    let info = SystemInfo {
        uptime_s: Clock::Boot.told(cx, now_ns).div_ceil(1_000_000_000),
        loads: loads.map(|average| average << (s::SI_LOAD_SHIFT - averages::BITS)),
        total_ram: (memory.total() * PAGE) as u64,
        free_ram: (memory.available() * PAGE) as u64,
        processes: cx.unix.processes.by_tid.borrow().len() as u16,
        unit: 1,
        ..SystemInfo::default()
    };
    cx.user().write(cx.arg(0), &info)?;
    Ok(0)
}

/// Random bytes at a time.
const RANDOM_PIECE: usize = 256;
/// Random bytes in a row, before others have their turn.
const RANDOM_TURN: usize = 64 << 10;
/// Random bytes of a call.
const RANDOM_MAX: u64 = (32 << 20) - 1;

fn getrandom(cx: &Cx) -> Answer {
    let (address, len, flags) = (cx.arg(0), cx.arg(1), cx.uint(2));
    let both = l::GRND_RANDOM | l::GRND_INSECURE;
    if flags & !(l::GRND_NONBLOCK | both) != 0 || flags & both == both {
        return Err(Errno::EINVAL.into());
    }
    let len = len.min(RANDOM_MAX) as usize;
    let start = cx.progress() as usize;
    let mut done = start;
    let mut piece = [0; RANDOM_PIECE];
    while done < len {
        if done - start >= RANDOM_TURN {
            cx.set_progress(done as u64);
            cx.on_signal(OnSignal::Partial);
            cx.unix.run_queue.push(cx.thread);
            return Err(Stop::Block);
        }
        let size = RANDOM_PIECE.min(len - done);
        cx.unix.machine.random(&mut piece[..size]);
        match cx.user().write_bytes(address.wrapping_add(done as u64), &piece[..size]) {
            Ok(()) => done += size,
            Err(errno) if done == 0 => return Err(errno.into()),
            Err(_) => break,
        }
    }
    Ok(done as u64)
}

/// The magic numbers of `reboot`.
const MAGIC1: u32 = 0xFEE1_DEAD;
const MAGIC2: [u32; 4] = [672_274_793, 85_072_278, 369_367_448, 537_993_216];
const RESTART: u32 = 0x0123_4567;
const HALT: u32 = 0xCDEF_0123;
const POWER_OFF: u32 = 0x4321_FEDC;
const RESTART2: u32 = 0xA1B2_C3D4;
const CAD_ON: u32 = 0x89AB_CDEF;
const CAD_OFF: u32 = 0;

fn reboot(cx: &Cx) -> Answer {
    let users = numbers::owner(cx.numbers());
    if !cx.process.credentials.borrow().may_in(&users, l::CAP_SYS_BOOT) {
        return Err(Errno::EPERM.into());
    }
    if cx.uint(0) != MAGIC1 || !MAGIC2.contains(&cx.uint(1)) {
        return Err(Errno::EINVAL.into());
    }
    if let Some(space) = cx.numbers().filter(|_| cx.uint(2) != CAD_ON && cx.uint(2) != CAD_OFF) {
        let signal = match cx.uint(2) {
            RESTART | RESTART2 => l::SIGHUP,
            HALT | POWER_OFF => l::SIGINT,
            _ => return Err(Errno::EINVAL.into()),
        };
        numbers::reboot(cx, space, signal);
        super::end_process(cx.unix, cx.process, 0);
        return Err(Stop::Done);
    }
    match cx.uint(2) {
        RESTART | RESTART2 | HALT | POWER_OFF => {
            cx.unix.machine.halt(0);
            // Nobody comes back from this.
            cx.on_signal(OnSignal::Never);
            Err(Stop::Block)
        }
        CAD_ON | CAD_OFF => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_kernel_s() {
        assert_eq!(size_of::<SystemInfo>(), size_of::<s::sysinfo>());
        assert_eq!(
            core::mem::offset_of!(SystemInfo, unit),
            core::mem::offset_of!(s::sysinfo, mem_unit)
        );
        assert_eq!(size_of::<SystemName>(), size_of::<s::new_utsname>());
    }
}
