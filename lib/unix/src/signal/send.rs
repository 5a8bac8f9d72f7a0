//! Sending signals; what a stop or continue signal does the moment it is sent.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use super::action::{self, Action};
use super::info::Info;
use super::set::{self, bit};
use super::{DUE, recalculate};
use crate::account;
use crate::process::{self, Pid, Process};
use crate::thread::{Doing, Thread};
use crate::trace;
use crate::unix::Unix;

/// Sends a signal to a process; one of its threads will take it.
pub fn send(unix: &Unix, process: &Rc<Process>, info: impl Into<Info>) {
    queue(unix, process, None, info.into(), By::Anybody);
}

/// Who sends a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Anybody,
    /// Somebody whom the receiver's namespace of numbers does not show.
    Above,
    /// The receiver, by what it has done.
    Itself,
}

impl By {
    fn who(from: &Process, to: &Process) -> Self {
        if to.sees(from.pid) == 0 { Self::Above } else { Self::Anybody }
    }
}

/// As [`send`], from somebody above the receiver's namespace of numbers.
pub fn send_from_above(unix: &Unix, process: &Rc<Process>, info: impl Into<Info>) {
    queue(unix, process, None, info.into(), By::Above);
}

/// As [`send`], by `from`.
pub fn send_by(unix: &Unix, from: &Process, process: &Rc<Process>, info: Info) {
    queue(unix, process, None, info, By::who(from, process));
}

/// As [`send_thread`], by `from`.
pub(super) fn send_thread_by(unix: &Unix, from: &Process, thread: &Rc<Thread>, info: Info) {
    queue(unix, &thread.process, Some(thread), info, By::who(from, &thread.process));
}

/// Sends a signal to a thread.
pub fn send_thread(unix: &Unix, thread: &Rc<Thread>, info: impl Into<Info>) {
    queue(unix, &thread.process, Some(thread), info.into(), By::Anybody);
}

/// Sends a signal of the kernel's to all processes of a group; how many there are.
pub fn send_group(unix: &Unix, group: Pid, signal: u32) -> usize {
    let members = members(unix, group);
    for process in &members {
        send(unix, process, Info::kernel(signal));
    }
    members.len()
}

/// The processes of a group, ended ones included.
#[must_use]
pub fn members(unix: &Unix, group: Pid) -> Vec<Rc<Process>> {
    let processes = unix.processes.by_pid.borrow();
    processes.values().filter(|process| process.group.get() == group).cloned().collect()
}

/// A signal that `thread` has caused itself and cannot escape: if it is blocked or ignored,
/// it ends the process.
pub fn force(unix: &Unix, thread: &Rc<Thread>, info: Info) {
    let process = &thread.process;
    let actions = process.actions.borrow().clone();
    let blocked = thread.signals.blocked.get();
    let handler = actions.get(info.signal).handler;
    if blocked & bit(info.signal) != 0 || handler == action::IGNORE {
        actions.set(info.signal, Action::default());
        thread.signals.blocked.set(blocked & !bit(info.signal));
    }
    if !actions.get(info.signal).is_caught() {
        process.signals.protected.set(false);
    }
    queue(unix, process, Some(thread), info, By::Itself);
}

/// Queues a signal (with `thread`, or with the process) and tells a thread about it.
fn queue(unix: &Unix, process: &Rc<Process>, thread: Option<&Rc<Thread>>, info: Info, by: By) {
    if process.ended.get().is_some() || bit(info.signal) == 0 {
        return;
    }
    prepare(unix, process, info.signal);
    if by != By::Itself && is_ignored(process, thread, &info, by) {
        return;
    }
    let pending = thread.map_or(&process.signals.pending, |thread| &thread.signals.pending);
    let full = info.signal >= set::FIRST_REAL_TIME && account::check_signals(process).is_err();
    if !pending.add(info, &process.user(), full) {
        return;
    }
    process.signals.arrived.wake_all();
    if let Some(target) = target(process, thread, info.signal) {
        target.signals.mark(DUE, true);
        tell(unix, &target);
    }
}

/// Stop signals and continue signals cancel each other; continue and kill end a stop at once.
fn prepare(unix: &Unix, process: &Rc<Process>, signal: u32) {
    let cancelled = match signal {
        l::SIGCONT | l::SIGKILL => set::STOPPING,
        _ if bit(signal) & set::STOPPING != 0 => bit(l::SIGCONT),
        _ => return,
    };
    process.signals.pending.remove(cancelled);
    for thread in process.threads.borrow().iter() {
        thread.signals.pending.remove(cancelled);
    }
    recalculate(process);
    if cancelled == set::STOPPING {
        trace::continued(unix, process);
    }
    if cancelled == set::STOPPING && process.signals.stopped.take().is_some() {
        for thread in process.threads.borrow().iter() {
            unix.run_queue.push(thread);
        }
        if signal == l::SIGCONT {
            process::report_continued(unix, process);
        }
    }
}

/// Whether a signal would do nothing and need not be queued.
fn is_ignored(process: &Process, thread: Option<&Rc<Thread>>, info: &Info, by: By) -> bool {
    let signal = info.signal;
    let blocked = match thread {
        Some(thread) => thread.signals.blocked.get(),
        None => process.threads.borrow().first().map_or(0, |first| first.signals.blocked.get()),
    };
    if blocked & bit(signal) != 0 {
        return false;
    }
    if thread.map_or_else(|| trace::is_traced(process), |thread| thread.is_traced()) {
        // Its tracer is asked first.
        return false;
    }
    let actions = process.actions.borrow();
    // The kernel's own word, and that of who is above, an init of a namespace cannot escape.
    let above = by == By::Above || info.code == l::SI_KERNEL as i32;
    let unstoppable = bit(signal) & set::UNSTOPPABLE != 0 && process.pid != Pid::FIRST;
    let protected = process.signals.protected.get()
        && actions.get(signal).handler == action::DEFAULT
        && !(above && unstoppable);
    protected || actions.ignores(signal)
}

/// The thread that takes the signal; none if all block it.
fn target(process: &Process, thread: Option<&Rc<Thread>>, signal: u32) -> Option<Rc<Thread>> {
    let takes =
        |thread: &Rc<Thread>| bit(signal) & (!thread.signals.blocked.get() | set::UNSTOPPABLE) != 0;
    match thread {
        Some(thread) => Some(thread.clone()).filter(takes),
        None => process.threads.borrow().iter().find(|thread| takes(thread)).cloned(),
    }
}

/// Makes a thread look at its signals soon: it is stopped if it runs, and tries its call
/// again if it waits.
pub fn tell(unix: &Unix, thread: &Rc<Thread>) {
    match thread.doing.get() {
        Doing::Running if thread.reply.borrow().is_none() => {
            unix.machine.stop(thread.machine.get());
            thread.doing.set(Doing::Stopped);
            unix.run_queue.push(thread);
        }
        Doing::Call => {
            thread.wake(thread.wait_serial.get());
        }
        Doing::Stopped => unix.run_queue.push(thread),
        Doing::Traced if thread.is_killed() => trace::killed(unix, thread),
        Doing::Running | Doing::Fault | Doing::Ended | Doing::Traced => {}
    }
}

/// Stops a process: no thread of it gets an answer until it is continued.
pub fn stop(unix: &Unix, process: &Rc<Process>, signal: u32) {
    if trace::is_traced(process) {
        return trace::group_stop(unix, process, signal);
    }
    if process.signals.stopped.replace(Some(signal)).is_some() {
        return;
    }
    for thread in process.threads.borrow().iter() {
        if thread.doing.get() == Doing::Running && thread.reply.borrow().is_none() {
            unix.machine.stop(thread.machine.get());
            thread.doing.set(Doing::Stopped);
            process::processors::waits(unix, thread);
        }
    }
    process::report_stopped(unix, process, signal);
}
