//! Who traces whom: how it begins, what births and ends mean for it.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;

use super::system_calls::TRACED;
use super::{Phase, Tracee, Why};
use crate::account::{Charge, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::{LookingBy, Process};
use crate::signal::{self, Info};
use crate::thread::{Doing, Thread};
use crate::unix::Unix;

/// Whether `tracer` may look into `process`.
#[must_use]
pub fn may_trace(tracer: &Process, process: &Process) -> bool {
    let (who, whose) = (tracer.credentials.borrow(), process.credentials.borrow());
    who.may_look_into(&whose, LookingBy::Real) && process.shows_memory(&who)
}

/// Whether `tracer`, who traces `process`, may see its memory: it may run a program now that is nobody's
/// to see.
#[must_use]
pub(super) fn may_see_memory(tracer: &Process, process: &Process) -> bool {
    !process.state.not_dumpable.get() || is_privileged(tracer)
}

/// Whether a new program of the process must not get rights from its file: somebody who had less when that
/// began traces it.
#[must_use]
pub fn keeps_rights_away(process: &Process) -> bool {
    let threads = process.threads.borrow();
    let mut tracees = threads.iter().filter_map(|thread| thread.tracee());
    tracees.any(|tracee| !tracee.privileged.get())
}

/// Whether `who`, with the rights of now, might trace anybody.
pub(super) fn is_privileged(who: &Process) -> bool {
    who.credentials.borrow().may(l::CAP_SYS_PTRACE)
}

/// `thread` is traced by `tracer` from now on.
///
/// # Errors
/// `EPERM` if somebody traces it, `ENOMEM`.
pub(super) fn attach(
    tracer: &Rc<Process>,
    thread: &Rc<Thread>,
    seized: bool,
    options: u32,
) -> Result<Rc<Tracee>, Errno> {
    if thread.is_traced() {
        return Err(Errno::EPERM);
    }
    let charge = Charge::new(&tracer.user(), What::Heap, size_of::<Tracee>() as u64)?;
    let in_call = thread.doing.get() == Doing::Call;
    let call = if in_call { u64::from(thread.number.get()) } else { u64::MAX };
    let tracee = Rc::new(Tracee {
        tid: Cell::new(tracer.sees(thread.tid.get())),
        thread: Rc::downgrade(thread),
        process: Rc::downgrade(&thread.process),
        tracer: Rc::downgrade(tracer),
        privileged: Cell::default(),
        seized,
        options: Cell::new(options),
        mode: Cell::default(),
        phase: Cell::new(if in_call { Phase::Inside } else { Phase::None }),
        stopped: Cell::default(),
        report: Cell::default(),
        ended: Cell::default(),
        goes_on: RefCell::new((Doing::Stopped, None)),
        next: RefCell::default(),
        deliver: Cell::default(),
        wanted: Cell::default(),
        message: Cell::default(),
        call: Cell::new(call),
        result: Cell::default(),
        vforked: Cell::default(),
        death: Cell::default(),
        told_end: Cell::default(),
        asked: Cell::default(),
        touched: Cell::default(),
        stepping: Cell::default(),
        listens: Cell::default(),
        tells_again: Cell::default(),
        inner: Cell::new(thread.table.replace(&TRACED)),
        debug: Cell::default(),
        _charge: charge,
    });
    thread.trace.replace(Some(tracee.clone()));
    tracer.state.tracees.borrow_mut().push(tracee.clone());
    Ok(tracee)
}

/// A process whose threads were stopped by a signal is traced: from now on it is its tracer who
/// keeps them.
pub(super) fn take_over_stop(unix: &Unix, thread: &Rc<Thread>, tracee: &Rc<Tracee>) {
    let process = &thread.process;
    if let Some(signal) = process.signals.stopped.take() {
        process.state.stop_report.set(None);
        for other in process.threads.borrow().iter().filter(|other| !other.is_traced()) {
            unix.run_queue.push(other);
        }
        if thread.doing.get() != Doing::Traced {
            super::stop(unix, thread, tracee, Why::Group(signal));
        }
    }
}

/// Nobody traces the thread any more: it goes on, with a signal if that is not 0.
pub(super) fn detach(unix: &Unix, tracee: &Rc<Tracee>, signal: u32) {
    forget(tracee);
    let Some(thread) = tracee.thread() else { return };
    if tracee.stepping.get() {
        let machine = thread.machine.get();
        if thread.doing.get() == Doing::Running && thread.reply.borrow().is_none() {
            unix.machine.stop(machine);
            thread.doing.set(Doing::Stopped);
            unix.run_queue.push(&thread);
        }
        let mut registers = unix.machine.registers(machine);
        registers.rflags &= !super::registers::TRAP_FLAG;
        unix.machine.set_registers(machine, &registers);
    }
    let Some(why) = tracee.stopped.take() else {
        signal::recalculate_thread(&thread);
        return;
    };
    let (doing, reply) = tracee.goes_on.replace((Doing::Stopped, None));
    thread.doing.set(doing);
    *thread.reply.borrow_mut() = reply;
    if doing == Doing::Call && tracee.phase.get() == Phase::Entry {
        thread.retried.set(false);
        thread.progress.set(0);
        // Its filters see what has become of it.
        thread.asked.set(matches!(why, Why::Event(p::PTRACE_EVENT_SECCOMP, _)));
        thread.number.set(tracee.call.get() as u32);
    }
    match why {
        Why::Signal(info) if info.signal == signal => signal::send_thread(unix, &thread, info),
        _ if signal != 0 => signal::send_thread(unix, &thread, Info::kernel(signal)),
        Why::Group(signal) => signal::send::stop(unix, &thread.process, signal),
        _ => {}
    }
    signal::recalculate_thread(&thread);
    unix.run_queue.push(&thread);
}

/// Takes a tracee off its tracer's list, and its thread's calls go their own way.
fn forget(tracee: &Rc<Tracee>) {
    if let Some(tracer) = tracee.tracer.upgrade() {
        tracer.state.tracees.borrow_mut().retain(|other| !Rc::ptr_eq(other, tracee));
    }
    if let Some(thread) = tracee.thread() {
        thread.trace.take();
        thread.table.set(tracee.inner.get());
    }
}

/// The tracer has been told of a stop, or of the end.
pub fn told(tracee: &Rc<Tracee>) {
    tracee.report.set(None);
    if tracee.ended.get() {
        forget(tracee);
    }
}

/// A traced thread has made another one, by a call with these flags: it is traced too if its
/// tracer wants that, and the event is told.
pub fn born(cx: &Cx, flags: u64, exit_signal: u32, child: &Rc<Thread>) {
    let Some(tracee) = cx.thread.tracee() else { return };
    let Some(tracer) = tracee.tracer.upgrade() else { return };
    let has = |flag: u32| flags & u64::from(flag) != 0;
    let (option, event) = if has(l::CLONE_VFORK) {
        (p::PTRACE_O_TRACEVFORK, p::PTRACE_EVENT_VFORK)
    } else if exit_signal == l::SIGCHLD {
        (p::PTRACE_O_TRACEFORK, p::PTRACE_EVENT_FORK)
    } else {
        (p::PTRACE_O_TRACECLONE, p::PTRACE_EVENT_CLONE)
    };
    let id = u64::from(tracer.sees(child.tid.get()));
    if has(l::CLONE_VFORK) {
        tracee.vforked.set(id);
    }
    let told = tracee.has(option) && !has(l::CLONE_UNTRACED);
    if told {
        tracee.next.borrow_mut().push_back(Why::Event(event, id));
    }
    if !told && !has(l::CLONE_PTRACE) {
        return;
    }
    let Ok(new) = attach(&tracer, child, tracee.seized, tracee.options.get()) else { return };
    new.privileged.set(tracee.privileged.get());
    if tracee.seized {
        new.wanted.set(Some(Why::Interrupt));
        signal::recalculate_thread(child);
    } else {
        signal::send_thread(cx.unix, child, Info::user(l::SIGSTOP, 0, 0, 0));
    }
}

/// A thread ends with this wait status: its tracer is told, unless it hears of it as the parent
/// of its process.
pub fn thread_ended(thread: &Rc<Thread>, status: u32) {
    let Some(tracee) = thread.trace.take() else { return };
    tracee.ended.set(true);
    tracee.stopped.set(None);
    tracee.report.set(None);
    let Some(tracer) = tracee.tracer.upgrade() else { return };
    tracee.tid.set(tracer.sees(thread.tid.get()));
    let first = thread.tid.get() == thread.process.pid;
    let parent = thread.process.parent.borrow().upgrade();
    if first && parent.is_some_and(|parent| Rc::ptr_eq(&parent, &tracer)) {
        forget(&tracee);
    } else {
        tracee.report.set(Some(status));
        tracer.child_changed.wake_all();
    }
}

/// A process ends: whom it traced goes on, or ends, too.
pub fn tracer_ended(unix: &Unix, process: &Rc<Process>) {
    let tracees = process.state.tracees.take();
    for tracee in tracees {
        detach(unix, &tracee, 0);
        if let (Some(thread), true) = (tracee.thread(), tracee.has(p::PTRACE_O_EXITKILL)) {
            signal::send(unix, &thread.process, l::SIGKILL);
        }
    }
}
