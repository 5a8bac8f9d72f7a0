//! Process groups and sessions.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::{Pid, Process, numbers};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::signal::send::{members, send_group};
use crate::stream::socket::netlink::connector;
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
    let id = cx.pid_of(id)?;
    let by_thread = || processes.thread(id).map(|thread| thread.process());
    processes.process(id).or_else(by_thread).ok_or(Errno::ESRCH)
}

fn setpgid(cx: &Cx) -> Answer {
    let (pid, group) = (cx.int(0), cx.int(1));
    if group < 0 {
        return Err(Errno::EINVAL.into());
    }
    let pid = if pid == 0 { cx.process.pid } else { cx.pid_of(pid)? };
    let group = if group == 0 { pid } else { cx.pid(group as u32).unwrap_or_default() };
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
    let old = process.group.replace(group);
    cx.unix.processes.moved(old, group);
    numbers::release(cx.unix, old);
    Ok(0)
}

fn getpgid(cx: &Cx) -> Answer {
    Ok(cx.shown(process_or_self(cx, cx.int(0))?.group.get()).into())
}

fn getpgrp(cx: &Cx) -> Answer {
    Ok(cx.shown(cx.process.group.get()).into())
}

fn setsid(cx: &Cx) -> Answer {
    let pid = cx.process.pid;
    let taken = cx.process.session.get() == pid || !members(cx.unix, pid).is_empty();
    if taken {
        return Err(Errno::EPERM.into());
    }
    connector::began_session(cx);
    let old = [cx.process.session.replace(pid), cx.process.group.replace(pid)];
    for old in old {
        cx.unix.processes.moved(old, pid);
        numbers::release(cx.unix, old);
    }
    Ok(cx.process.number.into())
}

fn getsid(cx: &Cx) -> Answer {
    Ok(cx.shown(process_or_self(cx, cx.int(0))?.session.get()).into())
}

/// Whether nobody outside a group, in its session, looks after it: no member has a parent
/// there. Such a group is not stopped by terminals.
#[must_use]
pub fn is_orphaned(unix: &Unix, group: Pid) -> bool {
    is_orphaned_without(unix, group, None)
}

/// As [`is_orphaned`], as if `ignored` were not there.
fn is_orphaned_without(unix: &Unix, group: Pid, ignored: Option<&Rc<Process>>) -> bool {
    !members(unix, group).iter().any(|member| {
        if member.ended.get().is_some() || ignored.is_some_and(|one| Rc::ptr_eq(one, member)) {
            return false;
        }
        let parent = member.parent.borrow().upgrade();
        parent.is_some_and(|parent| {
            parent.pid != Pid::FIRST
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
