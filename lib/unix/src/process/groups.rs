//! Process groups and sessions.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::Process;
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::signal::send::{members, send_group};
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    full(l::__NR_setpgid, "setpgid", setpgid),
    full(l::__NR_getpgid, "getpgid", getpgid),
    full(l::__NR_getpgrp, "getpgrp", getpgrp),
    full(l::__NR_setsid, "setsid", setsid),
    full(l::__NR_getsid, "getsid", getsid),
];

/// The process of an id, which may be a thread's; 0 is the caller.
pub fn process_or_self(cx: &Cx, id: i32) -> Result<Rc<Process>, Errno> {
    if id == 0 {
        return Ok(cx.process.clone());
    }
    let processes = &cx.unix.processes;
    let id = u32::try_from(id).map_err(|_| Errno::ESRCH)?;
    let by_thread = || processes.thread(id).map(|thread| thread.process());
    processes.process(id).or_else(by_thread).ok_or(Errno::ESRCH)
}

fn setpgid(cx: &Cx) -> Answer {
    let (pid, group) = (cx.int(0), cx.int(1));
    let pid = if pid == 0 { cx.process.pid } else { pid as u32 };
    let group = if group == 0 { pid as i32 } else { group };
    if group < 0 {
        return Err(Errno::EINVAL.into());
    }
    let group = group as u32;
    let process = cx.unix.processes.process(pid).ok_or(Errno::ESRCH)?;
    if process.parent_pid.get() == cx.process.pid {
        if process.session.get() != cx.process.session.get() {
            return Err(Errno::EPERM.into());
        }
        if process.state.replaced.get() {
            return Err(Errno::EACCES.into());
        }
    } else if process.pid != cx.process.pid {
        return Err(Errno::ESRCH.into());
    }
    if process.session.get() == process.pid {
        return Err(Errno::EPERM.into());
    }
    if group != pid {
        let session = cx.process.session.get();
        if !members(cx.unix, group).iter().any(|member| member.session.get() == session) {
            return Err(Errno::EPERM.into());
        }
    }
    process.group.set(group);
    Ok(0)
}

fn getpgid(cx: &Cx) -> Answer {
    Ok(u64::from(process_or_self(cx, cx.int(0))?.group.get()))
}

fn getpgrp(cx: &Cx) -> Answer {
    Ok(u64::from(cx.process.group.get()))
}

fn setsid(cx: &Cx) -> Answer {
    let pid = cx.process.pid;
    let taken = cx.process.session.get() == pid || !members(cx.unix, pid).is_empty();
    if taken {
        return Err(Errno::EPERM.into());
    }
    cx.process.session.set(pid);
    cx.process.group.set(pid);
    Ok(u64::from(pid))
}

fn getsid(cx: &Cx) -> Answer {
    Ok(u64::from(process_or_self(cx, cx.int(0))?.session.get()))
}

/// Whether nobody outside a group, in its session, looks after it: no member has a parent
/// there. Such a group is not stopped by terminals.
#[must_use]
pub fn is_orphaned(unix: &Unix, group: u32) -> bool {
    is_orphaned_without(unix, group, None)
}

/// As [`is_orphaned`], as if `ignored` were not there.
fn is_orphaned_without(unix: &Unix, group: u32, ignored: Option<&Rc<Process>>) -> bool {
    !members(unix, group).iter().any(|member| {
        if member.ended.get().is_some() || ignored.is_some_and(|one| Rc::ptr_eq(one, member)) {
            return false;
        }
        let parent = member.parent.borrow().upgrade();
        parent.is_some_and(|parent| {
            parent.pid != 1
                && parent.group.get() != group
                && parent.session.get() == member.session.get()
        })
    })
}

/// A group that has just lost the last process that looked after it, and has stopped
/// members, is hung up and continued. With `old_parent`, `process` has lost that one;
/// without, `process` itself has ended.
pub fn tell_orphans(unix: &Unix, process: &Rc<Process>, old_parent: Option<&Rc<Process>>) {
    let group = process.group.get();
    let (parent, ignored) = match old_parent {
        Some(parent) => (Some(parent.clone()), None),
        None => (process.parent.borrow().upgrade(), Some(process)),
    };
    let Some(parent) = parent else { return };
    if parent.group.get() == group || parent.session.get() != process.session.get() {
        return;
    }
    let stopped = |member: &Rc<Process>| member.signals.stopped.get().is_some();
    if is_orphaned_without(unix, group, ignored) && members(unix, group).iter().any(stopped) {
        send_group(unix, group, l::SIGHUP);
        send_group(unix, group, l::SIGCONT);
    }
}
