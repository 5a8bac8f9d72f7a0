//! Changes of state of a process, and parents that wait for them.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use zerocopy::IntoBytes;

use super::usage::{self, Usage};
use super::{Pid, Process, descriptor, numbers};
use crate::call::{Answer, Cx, Entry, partial};
use crate::errno::Errno;
use crate::signal::info::SIGINFO_BYTES;
use crate::signal::{self, Info};
use crate::trace::{self, Tracee};
use crate::unix::Unix;

/// The calls this file carries out.
pub const CALLS: &[Entry] = &[
    partial(l::__NR_wait4, "wait4", wait4, "__WNOTHREAD has no effect"),
    partial(l::__NR_waitid, "waitid", waitid, "__WNOTHREAD has no effect"),
];

/// The wait status of a process that runs again.
const CONTINUED: u32 = 0xFFFF;

/// A change of state that a parent can wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Ended(u32),
    Stopped(u32),
    Continued,
    /// A thread that one traces has stopped, or ended: the wait status.
    Traced(u32),
}

impl Change {
    /// As `wait4` tells it.
    fn status(self) -> u32 {
        match self {
            Self::Ended(status) => status,
            Self::Stopped(signal) => signal << 8 | 0x7F,
            Self::Continued => CONTINUED,
            Self::Traced(status) => status,
        }
    }

    /// As `siginfo_t` tells it: code and status.
    fn code(self) -> (u32, u32) {
        match self {
            Self::Ended(status) if status & 0x7F == 0 => (l::CLD_EXITED, status >> 8 & 0xFF),
            Self::Ended(status) if status & 0x80 != 0 => (l::CLD_DUMPED, status & 0x7F),
            Self::Ended(status) => (l::CLD_KILLED, status & 0x7F),
            Self::Stopped(signal) => (l::CLD_STOPPED, signal),
            Self::Continued => (l::CLD_CONTINUED, l::SIGCONT),
            Self::Traced(status) if status & 0xFF == 0x7F => (l::CLD_TRAPPED, status >> 8),
            Self::Traced(status) => Self::Ended(status).code(),
        }
    }

    /// What is told about it.
    fn info(self, unix: &Unix, parent: &Process, process: &Process) -> Info {
        let (code, status) = self.code();
        let uid = process.credentials.borrow().uid;
        let uid = parent.sees_user(uid);
        Info::child(code, parent.sees(process.pid), uid, status, usage::ticks(unix, process))
    }
}

/// Tells the parent that `process` has ended; nobody who does not want to know keeps it.
pub fn report_end(unix: &Unix, process: &Rc<Process>) {
    let parent = process.parent.borrow().upgrade();
    let Some(parent) = parent else { return };
    let status = process.ended.get().unwrap_or(0);
    let exit_signal = process.state.exit_signal.get();
    let action = parent.actions.borrow().get(l::SIGCHLD);
    let ignores = exit_signal == l::SIGCHLD && action.handler == signal::action::IGNORE;
    let unwanted = ignores || (exit_signal == l::SIGCHLD && action.has(l::SA_NOCLDWAIT));
    if exit_signal != 0 && !ignores {
        let info = Change::Ended(status).info(unix, &parent, process);
        signal::send(unix, &parent, Info { signal: exit_signal, ..info });
    }
    if unwanted {
        bury(unix, &parent, process);
    }
    parent.child_changed.wake_all();
}

/// Tells the parent that `process` has stopped.
pub fn report_stopped(unix: &Unix, process: &Rc<Process>, signal: u32) {
    process.state.stop_report.set(Some(signal));
    process.state.continue_report.set(false);
    report(unix, process, Change::Stopped(signal));
}

/// Tells the parent that `process` runs again.
pub fn report_continued(unix: &Unix, process: &Rc<Process>) {
    process.state.stop_report.set(None);
    process.state.continue_report.set(true);
    report(unix, process, Change::Continued);
}

fn report(unix: &Unix, process: &Rc<Process>, change: Change) {
    let parent = process.parent.borrow().upgrade();
    let Some(parent) = parent else { return };
    let action = parent.actions.borrow().get(l::SIGCHLD);
    if !action.has(l::SA_NOCLDSTOP) {
        signal::send(unix, &parent, change.info(unix, &parent, process));
    }
    parent.child_changed.wake_all();
}

/// An ended child is waited for: its times go to the parent, its id is free.
fn bury(unix: &Unix, parent: &Rc<Process>, child: &Rc<Process>) {
    parent.times.add_child(&child.times);
    parent.children.borrow_mut().retain(|other| !Rc::ptr_eq(other, child));
    unix.processes.bury(child);
    numbers::release_process(unix, child);
}

/// An init that has ended lets those go that it has outlived.
pub(super) fn bury_children(unix: &Unix, init: &Rc<Process>) {
    let children = init.children.borrow().clone();
    for child in children.iter().filter(|child| child.ended.get().is_some()) {
        bury(unix, init, child);
    }
}

/// Which children are waited for.
enum Which {
    Any,
    /// Its id, and what the caller calls it.
    Process(Pid, u32),
    Group(Pid),
}

impl Which {
    fn process(cx: &Cx, number: u32) -> Self {
        Self::Process(cx.pid(number).unwrap_or_default(), number)
    }

    fn group(cx: &Cx, number: u32) -> Self {
        Self::Group(cx.pid(number).unwrap_or_default())
    }

    fn includes(&self, child: &Process) -> bool {
        match self {
            Self::Any => true,
            Self::Process(pid, _) => child.pid == *pid,
            Self::Group(group) => child.group.get() == *group,
        }
    }
}

/// The change of a child that `options` ask for.
fn change_of(child: &Process, options: u32) -> Option<Change> {
    if let Some(status) = child.ended.get() {
        let options = if child.state.lingers.get() { 0 } else { options };
        return (options & l::WEXITED != 0).then_some(Change::Ended(status));
    }
    let stop = child.state.stop_report.get().filter(|_| options & l::WSTOPPED != 0);
    let continued = child.state.continue_report.get() && options & l::WCONTINUED != 0;
    stop.map(Change::Stopped).or(continued.then_some(Change::Continued))
}

/// Who has changed, and how.
struct Found {
    /// Its id.
    id: u32,
    change: Change,
    /// It, or the process it is a thread of, if that is still there.
    process: Option<Rc<Process>>,
    /// It, if the caller traces it.
    tracee: Option<Rc<Tracee>>,
}

impl Found {
    /// What has been used so far.
    fn used(&self, cx: &Cx) -> Usage {
        let used = self.process.as_ref().map(|process| usage::of_process(cx.unix, process, true));
        used.unwrap_or_default()
    }

    /// What is told about it, without the times.
    fn info(&self, cx: &Cx) -> Info {
        let (code, status) = self.change.code();
        let uid = self.process.as_ref().map_or(0, |process| process.credentials.borrow().uid);
        Info::child(code, self.id, cx.user_told(uid), status, (0, 0))
    }

    /// The change has been told: it will not be told again.
    fn consume(&self, cx: &Cx) {
        match (&self.tracee, &self.process, self.change) {
            (Some(tracee), ..) => trace::attach::told(tracee),
            (_, Some(child), Change::Ended(_)) => bury(cx.unix, cx.process, child),
            (_, Some(child), Change::Stopped(_)) => child.state.stop_report.set(None),
            (_, Some(child), _) => child.state.continue_report.set(false),
            _ => {}
        }
    }
}

/// A change of a thread that the caller traces; whether it traces any that are meant.
fn change_of_tracee(cx: &Cx, which: &Which, options: u32) -> (Option<Found>, bool) {
    let mut some = false;
    for tracee in cx.process.state.tracees.borrow().iter() {
        let process = tracee.process.upgrade();
        let meant = match which {
            Which::Any => true,
            Which::Process(_, number) => tracee.tid.get() == *number,
            Which::Group(group) => process.as_ref().is_some_and(|one| one.group.get() == *group),
        };
        let wanted = if tracee.has_ended() { l::WEXITED } else { l::WSTOPPED | TRACED };
        some |= meant;
        let report = tracee.report().filter(|_| meant && options & wanted != 0);
        if let Some(status) = report {
            let (id, change) = (tracee.tid.get(), Change::Traced(status));
            return (Some(Found { id, change, process, tracee: Some(tracee.clone()) }), true);
        }
    }
    (None, some)
}

/// Among the options: stops of traced threads count whether or not stops do.
const TRACED: u32 = 1 << 16;

/// Waits for a change of a child; `None` if there is none and `WNOHANG` is set.
fn wait(cx: &Cx, which: &Which, options: u32) -> Result<Option<Found>, crate::Stop> {
    let mut some = false;
    if !cx.process.state.tracees.borrow().is_empty() {
        let (found, any) = change_of_tracee(cx, which, options);
        if found.is_some() {
            return Ok(found);
        }
        some = any;
    }
    for child in cx.process.children.borrow().iter() {
        let is_clone = child.state.exit_signal.get() != l::SIGCHLD;
        let kind = options & l::__WALL != 0 || is_clone == (options & l::__WCLONE != 0);
        if !which.includes(child) || !kind {
            continue;
        }
        some = true;
        if let Some(change) = change_of(child, options) {
            let (id, process) = (cx.shown(child.pid), Some(child.clone()));
            return Ok(Some(Found { id, change, process, tracee: None }));
        }
    }
    if !some {
        return Err(Errno::ECHILD.into());
    }
    if options & l::WNOHANG != 0 {
        return Ok(None);
    }
    Err(cx.block_on(&cx.process.child_changed))
}

fn wait4(cx: &Cx) -> Answer {
    let (pid, options) = (cx.int(0), cx.uint(2));
    let known =
        l::WNOHANG | l::WUNTRACED | l::WCONTINUED | l::__WNOTHREAD | l::__WCLONE | l::__WALL;
    if options & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let which = match pid {
        i32::MIN => return Err(Errno::ESRCH.into()),
        -0x7fff_ffff..-1 => Which::group(cx, pid.unsigned_abs()),
        -1 => Which::Any,
        0 => Which::Group(cx.process.group.get()),
        _ => Which::process(cx, pid as u32),
    };
    let Some(found) = wait(cx, &which, options | l::WEXITED | TRACED)? else {
        return Ok(0);
    };
    let used = (cx.arg(3) != 0).then(|| found.used(cx));
    found.consume(cx);
    if cx.arg(1) != 0 {
        cx.user().write(cx.arg(1), &found.change.status())?;
    }
    if let Some(used) = used {
        cx.user().write::<Usage>(cx.arg(3), &used)?;
    }
    Ok(u64::from(found.id))
}

fn waitid(cx: &Cx) -> Answer {
    let (kind, id, options) = (cx.uint(0), cx.int(1), cx.uint(3));
    let states = l::WEXITED | l::WSTOPPED | l::WCONTINUED;
    let known = states | l::WNOHANG | l::WNOWAIT | l::__WNOTHREAD | l::__WCLONE | l::__WALL;
    if options & !known != 0 || options & states == 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut polls = false;
    let which = match kind {
        l::P_PIDFD if id >= 0 => {
            let open = cx.file(id as u32)?;
            polls = open.is_nonblocking();
            match descriptor::of(cx, &open) {
                Ok(process) => Which::Process(process.pid, cx.shown(process.pid)),
                Err(Errno::ESRCH) => return Err(Errno::ECHILD.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
        l::P_ALL => Which::Any,
        l::P_PID if id > 0 => Which::process(cx, id as u32),
        l::P_PGID if id == 0 => Which::Group(cx.process.group.get()),
        l::P_PGID if id > 0 => Which::group(cx, id as u32),
        _ => return Err(Errno::EINVAL.into()),
    };
    let found = match wait(cx, &which, options | if polls { l::WNOHANG } else { 0 })? {
        None if polls && options & l::WNOHANG == 0 => return Err(Errno::EAGAIN.into()),
        found => found,
    };
    let mut bytes = [0; SIGINFO_BYTES];
    if let Some(found) = &found {
        // The times are not told here.
        bytes = found.info(cx).bytes();
        let used = found.used(cx);
        if options & l::WNOWAIT == 0 {
            found.consume(cx);
        }
        if cx.arg(4) != 0 {
            cx.user().write_bytes(cx.arg(4), used.as_bytes())?;
        }
    }
    if cx.arg(2) != 0 {
        // Only the fields of a child's signal are written: as far as the status.
        cx.user().write_bytes(cx.arg(2), &bytes[..12])?;
        cx.user().write_bytes(cx.arg(2).wrapping_add(16), &bytes[16..28])?;
    }
    Ok(0)
}
