//! The way of a traced thread's calls: its table has one handler, which stops before and after a
//! call as the tracer wants, and carries it out in between.

use alloc::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;

use super::stops::{self, stop, stop_next};
use super::{Mode, Phase, Tracee, Why, registers};
use crate::call::{Answer, Cx, NUMBERS, Stop, Table, full};
use crate::errno::Errno;
use crate::machine::{Registers, Reply};
use crate::thread::Doing;

/// The table of a traced thread.
pub static TRACED: Table = [Some(full(0, "", call)); NUMBERS];

fn call(cx: &Cx) -> Answer {
    let Some(tracee) = cx.thread.tracee() else { return Err(Errno::ENOSYS.into()) };
    if !cx.is_retry() {
        tracee.phase.set(Phase::None);
        tracee.call.set(u64::from(cx.thread.number.get()));
        tracee.touched.set(false);
        tracee.asked.set(false);
    }
    let stops = tracee.mode.get() == Mode::Calls;
    match tracee.phase.get() {
        Phase::None if stops => return Err(before(cx, &tracee, Phase::Entry)),
        Phase::Again if stops => return Err(before(cx, &tracee, Phase::EntryAgain)),
        Phase::Broken if cx.thread.signals.interrupts() => return Err(Stop::Block),
        Phase::Broken if stops => return Err(before(cx, &tracee, Phase::EntryAgain)),
        Phase::Entry => {
            // From here on it is the call's first try.
            cx.thread.retried.set(false);
            cx.thread.progress.set(0);
        }
        _ => {}
    }
    tracee.phase.set(Phase::Inside);
    carry_out(cx, &tracee)
}

/// A filter of the thread has its tracer asked about the call: its answer, unless it is to be carried
/// out. The tracer is asked once; the filters then look at what it has made of the call.
pub fn asked_for(cx: &Cx, value: u32) -> Option<Answer> {
    let tracee = cx.thread.tracee().filter(|tracee| tracee.has(p::PTRACE_O_TRACESECCOMP));
    let Some(tracee) = tracee else { return Some(Err(Errno::ENOSYS.into())) };
    if tracee.asked.replace(true) {
        return None;
    }
    tracee.phase.set(Phase::Entry);
    tracee.result.set(Errno::ENOSYS.result());
    stop(cx.unix, cx.thread, &tracee, Why::Event(p::PTRACE_EVENT_SECCOMP, value.into()));
    Some(Err(Stop::Block))
}

/// Stops before the call.
fn before(cx: &Cx, tracee: &Rc<Tracee>, phase: Phase) -> Stop {
    tracee.phase.set(phase);
    tracee.result.set(Errno::ENOSYS.result());
    stop(cx.unix, cx.thread, tracee, Why::Entry);
    Stop::Block
}

fn carry_out(cx: &Cx, tracee: &Rc<Tracee>) -> Answer {
    let number = tracee.call.get();
    if ends_first(cx, number) {
        return Err(Stop::Block);
    }
    let entry = usize::try_from(number).ok().and_then(|number| tracee.inner.get().get(number));
    let answer = match entry {
        Some(Some(entry)) => {
            cx.thread.number.set(number as u32);
            (entry.handler)(cx)
        }
        _ if (number as i64) < 0 => Ok(tracee.result.get()),
        _ => cx.unix.not_there(cx, number as u32),
    };
    if cx.thread.doing.get() == Doing::Ended {
        return answer;
    }
    let value = match answer {
        Err(Stop::Block) => {
            // An event on the way (vfork's) comes before the wait.
            stop_next(cx.unix, cx.thread, tracee);
            return answer;
        }
        Err(Stop::Done) => None,
        Err(Stop::Errno(errno)) => Some(errno.result()),
        Ok(value) => Some(value),
    };
    after(cx, tracee, value).map_or(answer, Err)
}

/// The call is over, with its value unless all registers were set: stops that are due. `None`:
/// there are none.
fn after(cx: &Cx, tracee: &Rc<Tracee>, value: Option<u64>) -> Option<Stop> {
    tracee.phase.set(Phase::None);
    let child = tracee.vforked.take();
    let mut next = tracee.next.borrow_mut();
    if child != 0 && tracee.has(p::PTRACE_O_TRACEVFORKDONE) {
        next.push_back(Why::Event(p::PTRACE_EVENT_VFORK_DONE, child));
    }
    let machine = cx.thread.machine.get();
    match tracee.mode.get() {
        Mode::Calls => next.push_back(Why::Exit),
        Mode::Step => {
            let rip = cx.unix.machine.registers(machine).rip;
            next.push_back(Why::Signal(registers::stepped(rip)));
        }
        Mode::Continue => {}
    }
    let none = next.is_empty();
    drop(next);
    if none && !tracee.touched.get() {
        return None;
    }
    if let Some(value) = value {
        let registers = Registers { rax: value, ..cx.unix.machine.registers(machine) };
        cx.unix.machine.set_registers(machine, &registers);
        cx.unix.end_wait(cx.thread);
        cx.unix.reply(cx.thread, Reply::Resume);
    }
    stop_next(cx.unix, cx.thread, tracee);
    Some(Stop::Done)
}

/// A thread that ends itself stops before, if its tracer wants that.
fn ends_first(cx: &Cx, number: u64) -> bool {
    let ends = number == u64::from(l::__NR_exit) || number == u64::from(l::__NR_exit_group);
    ends && stops::ends(cx.unix, cx.thread, (cx.int(0) as u32 & 0xFF) << 8)
}
