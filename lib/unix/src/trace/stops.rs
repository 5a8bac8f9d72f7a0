//! Stopping a traced thread, telling its tracer, and letting it go on.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;

use super::registers::{self, TRAP_FLAG};
use super::{Mode, Phase, Tracee, Why};
use crate::machine::{Registers, Reply};
use crate::process::{Process, processors};
use crate::signal::{self, Info, OnSignal};
use crate::thread::{Doing, Thread};
use crate::unix::Unix;

/// The low byte of the wait status of a stopped process.
const STOPPED: u32 = 0x7F;

/// What programs are never shown as a call's result: the call begins again.
pub(super) const RESTART: [u64; 3] = [restart(512), restart(514), restart(516)];

const fn restart(code: u64) -> u64 {
    code.wrapping_neg()
}

/// `thread`, which waits for an answer, stops: its tracer has its turn. What it was about to do is
/// done when it is let go on.
pub fn stop(unix: &Unix, thread: &Rc<Thread>, tracee: &Rc<Tracee>, why: Why) {
    let machine = &unix.machine;
    let has_result = matches!(*thread.reply.borrow(), Some(Reply::Result(_)));
    let reply = match thread.reply.take() {
        Some(Reply::Result(value)) => {
            let registers = machine.registers(thread.machine.get());
            machine.set_registers(thread.machine.get(), &Registers { rax: value, ..registers });
            Some(Reply::Resume)
        }
        other => other,
    };
    if tracee.stepping.take() {
        set_trap_flag(unix, thread, tracee, false);
    }
    let doing = thread.doing.replace(Doing::Traced);
    let of_call = matches!(why, Why::Entry | Why::Exit | Why::Event(..));
    if doing != Doing::Call && !has_result && !of_call {
        // What its program has in RAX is its own.
        tracee.call.set(u64::MAX);
    }
    *tracee.goes_on.borrow_mut() = (doing, reply);
    if let Why::Event(_, message) = why {
        tracee.message.set(message);
    }
    tracee.renamed(thread);
    processors::waits(unix, thread);
    tell(unix, tracee, why);
}

/// The tracer hears of a stop.
pub(super) fn tell(unix: &Unix, tracee: &Tracee, why: Why) {
    let code = tracee.code(why);
    tracee.stopped.set(Some(why));
    tracee.report.set(Some(code << 8 | STOPPED));
    let Some(tracer) = tracee.tracer.upgrade() else { return };
    let action = tracer.actions.borrow().get(l::SIGCHLD);
    if !action.has(l::SA_NOCLDSTOP) {
        let trapped = if let Why::Group(_) = why { l::CLD_STOPPED } else { l::CLD_TRAPPED };
        let uid = tracee.process.upgrade().map_or(0, |process| process.credentials.borrow().uid);
        let uid = tracer.sees_user(uid);
        let info = Info::child(trapped, tracee.tid.get(), uid, code & 0x7F, (0, 0));
        signal::send(unix, &tracer, info);
    }
    tracer.child_changed.wake_all();
}

fn set_trap_flag(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee, on: bool) {
    let machine = thread.machine.get();
    let mut registers = unix.machine.registers(machine);
    let flag = if on { TRAP_FLAG } else { 0 };
    registers.rflags = registers.rflags & !TRAP_FLAG | flag;
    unix.machine.set_registers(machine, &registers);
    tracee.touched.set(true);
    tracee.stepping.set(on);
}

/// The next of the stops that are due in a row, if there is one.
pub(super) fn stop_next(unix: &Unix, thread: &Rc<Thread>, tracee: &Rc<Tracee>) -> bool {
    let next = tracee.next.borrow_mut().pop_front();
    if let Some(why) = next {
        stop(unix, thread, tracee, why);
    }
    next.is_some()
}

/// Lets a stopped thread go on in `mode`, with a signal if that is not 0.
pub(super) fn resume(unix: &Unix, tracee: &Rc<Tracee>, mode: Mode, signal: u32) {
    let Some(thread) = tracee.thread() else { return };
    let Some(why) = tracee.stopped.take() else { return };
    tracee.report.set(None);
    tracee.listens.set(false);
    tracee.mode.set(mode);
    if tracee.tells_again.take() {
        tracee.wanted.set(Some(Why::Interrupt));
    }
    if signal == 0 {
        restart_call(unix, &thread, tracee);
    }
    let (doing, reply) = tracee.goes_on.replace((Doing::Stopped, None));
    thread.doing.set(doing);
    *thread.reply.borrow_mut() = reply;
    if stop_next(unix, &thread, tracee) {
        return;
    }
    if signal != 0 {
        hand_over(unix, &thread, tracee, why, signal);
    }
    let handles = tracee.deliver.get().is_some();
    if mode == Mode::Step && !handles {
        step(unix, &thread, tracee);
    }
    signal::recalculate_thread(&thread);
    unix.run_queue.push(&thread);
}

/// The next instruction of the program is its last before the next stop.
pub(super) fn step(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee) {
    set_trap_flag(unix, thread, tracee, true);
    let mut reply = thread.reply.borrow_mut();
    if reply.is_some() {
        *reply = Some(Reply::Resume);
    }
}

/// A call that was broken off, as the registers say, begins again.
fn restart_call(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee) {
    let in_call = tracee.is_in_call();
    let call = tracee.call.get();
    if in_call || call == u64::MAX {
        return;
    }
    let machine = thread.machine.get();
    let mut registers = unix.machine.registers(machine);
    if RESTART.contains(&registers.rax) {
        registers.rip = registers.rip.wrapping_sub(2);
        registers.rax = call;
        unix.machine.set_registers(machine, &registers);
        tracee.goes_on.borrow_mut().1 = Some(Reply::Resume);
    }
}

/// The tracer lets the thread have a signal.
fn hand_over(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee, why: Why, signal: u32) {
    let own = || match tracee.tracer.upgrade() {
        Some(tracer) => {
            let pid = thread.process.sees(tracer.pid);
            let uid = thread.process.sees_user(tracer.credentials.borrow().uid);
            Info::user(signal, 0, pid, uid)
        }
        None => Info::kernel(signal),
    };
    match why {
        Why::Signal(info) => {
            let info = if info.signal == signal { info } else { own() };
            tracee.deliver.set(Some(info));
        }
        Why::Entry | Why::Exit => signal::send_thread(unix, thread, own()),
        _ => {}
    }
}

/// SIGKILL has come for a stopped thread.
pub fn killed(unix: &Unix, thread: &Rc<Thread>) {
    let Some(tracee) = thread.tracee() else { return };
    tracee.stopped.set(None);
    tracee.report.set(None);
    thread.doing.set(Doing::Stopped);
    unix.run_queue.push(thread);
}

/// A stop signal has done its work on a process of which somebody traces threads: they stop, each
/// for its tracer.
pub fn group_stop(unix: &Unix, process: &Rc<Process>, signal: u32) {
    let threads = process.threads.borrow().clone();
    for thread in &threads {
        let Some(tracee) = thread.tracee() else { continue };
        if tracee.stopped.get().is_none() {
            tracee.wanted.set(Some(Why::Group(signal)));
            signal::recalculate_thread(thread);
            signal::send::tell(unix, thread);
        }
    }
}

/// A process is continued: its threads that are seized tell of it.
pub fn continued(unix: &Unix, process: &Process) {
    let threads = process.threads.borrow().clone();
    for thread in &threads {
        let Some(tracee) = thread.tracee() else { continue };
        if let Some(Why::Group(_)) = tracee.wanted.get() {
            tracee.wanted.set(None);
        }
        if !tracee.seized {
            continue;
        }
        match tracee.stopped.get() {
            Some(_) if tracee.listens.take() => tell(unix, &tracee, Why::Interrupt),
            Some(_) => tracee.tells_again.set(true),
            None => interrupt(unix, thread, &tracee),
        }
    }
}

/// The thread stops soon, for no other reason than that its tracer is to know.
pub(super) fn interrupt(unix: &Unix, thread: &Rc<Thread>, tracee: &Tracee) {
    tracee.wanted.set(Some(Why::Interrupt));
    signal::recalculate_thread(thread);
    signal::send::tell(unix, thread);
}

impl Tracee {
    /// `thread` may have another id.
    fn renamed(&self, thread: &Thread) {
        let tracer = self.tracer.upgrade();
        self.tid.set(tracer.map_or(0, |tracer| tracer.sees(thread.tid.get())));
    }
}

/// The thread runs another program: an event, or a signal where nobody asked for events.
pub fn executed(unix: &Unix, thread: &Rc<Thread>) {
    let Some(tracee) = thread.tracee() else { return };
    let former = u64::from(tracee.tid.get());
    tracee.renamed(thread);
    tracee.stepping.set(false);
    if tracee.has(p::PTRACE_O_TRACEEXEC) {
        tracee.next.borrow_mut().push_back(Why::Event(p::PTRACE_EVENT_EXEC, former));
    } else if !tracee.seized {
        let uid = thread.process.credentials.borrow().uid;
        let uid = thread.process.sees_user(uid);
        let info = Info::user(l::SIGTRAP, 0, thread.process.number, uid);
        signal::send_thread(unix, thread, info);
    }
}

/// A signal is about to end `thread`: the stop that it makes before, if its tracer wants that.
#[must_use]
pub fn dies(thread: &Thread, signal: u32) -> Option<(Rc<Tracee>, Why)> {
    let tracee = thread.tracee().filter(|_| signal != l::SIGKILL)?;
    if !tracee.has(p::PTRACE_O_TRACEEXIT) || tracee.told_end.replace(true) {
        return None;
    }
    tracee.death.set(Some(signal));
    Some((tracee, Why::Event(p::PTRACE_EVENT_EXIT, u64::from(signal))))
}

/// `thread` is about to end itself with this wait status: whether it stops before.
pub fn ends(unix: &Unix, thread: &Rc<Thread>, status: u32) -> bool {
    let Some(tracee) = thread.tracee() else { return false };
    let stops = tracee.has(p::PTRACE_O_TRACEEXIT) && !tracee.told_end.replace(true);
    if stops {
        stop(unix, thread, &tracee, Why::Event(p::PTRACE_EVENT_EXIT, u64::from(status)));
    }
    stops
}

impl Tracee {
    /// The thread goes on to its program; who steps goes one instruction, or none if a handler was
    /// entered.
    pub fn goes_on(&self, unix: &Unix, thread: &Rc<Thread>, handles: bool) {
        if self.mode.get() != Mode::Step || self.stepping.get() || self.wanted.get().is_some() {
            return;
        }
        if handles {
            let rip = unix.machine.registers(thread.machine.get()).rip;
            self.wanted.set(Some(Why::Signal(registers::stepped(rip))));
            signal::recalculate_thread(thread);
        } else {
            step(unix, thread, self);
        }
    }

    /// A signal is due while the call of `thread` would wait: whether that is not to be seen to
    /// now, since it stops, or has stopped.
    pub fn breaks_off(self: &Rc<Self>, unix: &Unix, thread: &Rc<Thread>) -> bool {
        if thread.doing.get() == Doing::Traced {
            return true;
        }
        let breaks = self.phase.get() == Phase::Inside && self.mode.get() == Mode::Calls;
        if breaks {
            self.phase.set(Phase::Broken);
            self.show_restart(thread);
            stop(unix, thread, self, Why::Exit);
        }
        breaks
    }

    /// The thread stops in a call that waits.
    pub fn stops_in_call(self: &Rc<Self>, unix: &Unix, thread: &Rc<Thread>, why: Why) {
        self.phase.set(Phase::Again);
        self.show_restart(thread);
        stop(unix, thread, self, why);
    }

    fn show_restart(&self, thread: &Thread) {
        let code = match thread.signals.on_signal.get() {
            OnSignal::Return if thread.deadline_ns.get().is_some() => RESTART[2],
            OnSignal::Return => RESTART[1],
            _ => RESTART[0],
        };
        self.result.set(code);
    }
}
