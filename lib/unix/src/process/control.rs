//! Settings of a process or thread: `prctl`, `arch_prctl`, `personality`, and the like.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::prctl as p;

use super::{capability, seccomp};
use crate::call::{Answer, Cx, Entry, Stop, full, partial};
use crate::errno::Errno;
use crate::machine::Reply;
use crate::signal::set;
use crate::stream::socket::netlink::connector;
use crate::trace;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_prctl, "prctl", prctl, PRCTL_MISSING),
    partial(l::__NR_arch_prctl, "arch_prctl", arch_prctl, "FS and GS base only"),
    full(l::__NR_set_tid_address, "set_tid_address", set_tid_address),
    full(l::__NR_set_robust_list, "set_robust_list", set_robust_list),
    full(l::__NR_get_robust_list, "get_robust_list", get_robust_list),
    full(l::__NR_personality, "personality", personality),
    partial(l::__NR_rseq, "rseq", not_there, "ENOSYS"),
    full(l::__NR_restart_syscall, "restart_syscall", restart_syscall),
];

const PRCTL_MISSING: &str = "names, death signals, dumpable, capabilities, no-new-privileges, \
    seccomp, subreaper, timer slack; PR_SET_TSC with PR_TSC_ENABLE; others EINVAL";

/// Programs are told so without an entry in the log.
fn not_there(_: &Cx) -> Answer {
    Err(Errno::ENOSYS.into())
}

/// Calls go on by themselves here; programs have nothing to restart.
fn restart_syscall(_: &Cx) -> Answer {
    Err(Errno::EINTR.into())
}

fn prctl(cx: &Cx) -> Answer {
    let state = &cx.process.state;
    let (option, value) = (cx.uint(0), cx.arg(1));
    let no_more = (2..5).all(|index| cx.arg(index) == 0);
    match option {
        p::PR_SET_NAME => set_name(cx)?,
        p::PR_GET_NAME => cx.user().write(value, &cx.thread.name.get())?,
        p::PR_SET_PDEATHSIG if value <= u64::from(set::LAST) => {
            state.death_signal.set(value as u32);
        }
        p::PR_GET_PDEATHSIG => cx.user().write(value, &state.death_signal.get())?,
        p::PR_GET_DUMPABLE => return Ok(u64::from(!state.not_dumpable.get())),
        p::PR_SET_DUMPABLE if value <= 1 => state.not_dumpable.set(value == 0),
        p::PR_SET_NO_NEW_PRIVS if value == 1 && no_more => state.no_new_privileges.set(true),
        p::PR_GET_NO_NEW_PRIVS if value == 0 && no_more => {
            return Ok(u64::from(state.no_new_privileges.get()));
        }
        p::PR_SET_CHILD_SUBREAPER => state.reaper.set(value != 0),
        p::PR_GET_CHILD_SUBREAPER => cx.user().write(value, &u32::from(state.reaper.get()))?,
        p::PR_SET_TIMERSLACK => {
            let set = (value as i64 > 0).then_some(value);
            state.timer_slack.set(set.unwrap_or(state.first_slack.get()));
        }
        p::PR_GET_TIMERSLACK => return Ok(state.timer_slack.get()),
        p::PR_GET_SECCOMP => return Ok(seccomp::mode(cx.thread).into()),
        p::PR_SET_SECCOMP => return seccomp::set_mode(cx, value, cx.arg(2)),
        p::PR_SET_TSC if value == u64::from(p::PR_TSC_ENABLE) => {}
        p::PR_GET_TSC => cx.user().write(value, &p::PR_TSC_ENABLE)?,
        p::PR_SET_VMA => {}
        p::PR_SET_THP_DISABLE if no_more => state.no_huge_pages.set(value != 0),
        p::PR_GET_THP_DISABLE if value == 0 && no_more => {
            return Ok(u64::from(state.no_huge_pages.get()));
        }
        _ => return capability::prctl(cx),
    }
    Ok(0)
}

/// The first 15 bytes of the name are kept.
fn set_name(cx: &Cx) -> Result<(), Errno> {
    let mut name = [0; 16];
    for (index, byte) in name.iter_mut().take(15).enumerate() {
        *byte = cx.user().read::<u8>(cx.arg(1).wrapping_add(index as u64))?;
        if *byte == 0 {
            break;
        }
    }
    cx.thread.name.set(name);
    connector::named(cx.unix, cx.thread);
    Ok(())
}

/// `ARCH_*` of x86-64.
pub(crate) const SET_GS: u32 = 0x1001;
pub(crate) const SET_FS: u32 = 0x1002;
pub(crate) const GET_FS: u32 = 0x1003;
pub(crate) const GET_GS: u32 = 0x1004;
/// Addresses of programs are below this.
pub const END_OF_USER: u64 = 0x7FFF_FFFF_F000;

fn arch_prctl(cx: &Cx) -> Answer {
    let machine = &cx.unix.machine;
    let mut registers = machine.registers(cx.thread.machine.get());
    let address = cx.arg(1);
    let base = match cx.uint(0) {
        SET_FS => &mut registers.fs_base,
        SET_GS => &mut registers.gs_base,
        GET_FS => {
            cx.user().write(address, &registers.fs_base)?;
            return Ok(0);
        }
        GET_GS => {
            cx.user().write(address, &registers.gs_base)?;
            return Ok(0);
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if address >= END_OF_USER {
        return Err(Errno::EPERM.into());
    }
    *base = address;
    registers.rax = 0;
    machine.set_registers(cx.thread.machine.get(), &registers);
    crate::signal::go_on(cx.unix, cx.thread, Reply::Resume);
    Err(Stop::Done)
}

fn set_tid_address(cx: &Cx) -> Answer {
    cx.thread.clear_child_tid.set(cx.arg(0));
    Ok(u64::from(cx.thread.own_tid.get()))
}

/// Bytes of a `struct robust_list_head`.
const ROBUST_BYTES: u64 = 24;

fn set_robust_list(cx: &Cx) -> Answer {
    if cx.arg(1) != ROBUST_BYTES {
        return Err(Errno::EINVAL.into());
    }
    cx.thread.robust_list.set(cx.arg(0));
    Ok(0)
}

fn get_robust_list(cx: &Cx) -> Answer {
    let thread = match cx.int(0) {
        0 => cx.thread.clone(),
        tid => cx.find_thread(tid as u32).ok_or(Errno::ESRCH)?,
    };
    let itself = Rc::ptr_eq(&thread.process, cx.process);
    if !itself && !trace::attach::may_trace(cx.process, &thread.process) {
        return Err(Errno::EPERM.into());
    }
    cx.user().write(cx.arg(2), &ROBUST_BYTES)?;
    cx.user().write(cx.arg(1), &thread.robust_list.get())?;
    Ok(0)
}

fn personality(cx: &Cx) -> Answer {
    let (state, new) = (&cx.process.state, cx.uint(0));
    let old = state.personality.get();
    if new != u32::MAX {
        state.personality.set(new);
    }
    Ok(u64::from(old))
}
