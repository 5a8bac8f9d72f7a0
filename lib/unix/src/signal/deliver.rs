//! Delivering signals to a thread on its way back to its program: handlers' frames, the
//! process's end or stop, and the fate of a call that was interrupted.

use alloc::rc::Rc;

use linux_raw_sys::general as l;

use super::action::{Action, DEFAULT, IGNORE};
use super::info::Info;
use super::set::{self, bit};
use super::{OnSignal, RESTORE, frame, recalculate_thread, send};
use crate::dump;
use crate::errno::Errno;
use crate::machine::{Registers, Reply};
use crate::process::{self, Process};
use crate::thread::Thread;
use crate::trace::{self, Granted, Tracee, Why};
use crate::unix::Unix;

/// What is to be done next for a thread.
enum Next {
    /// Nothing is due.
    Nothing,
    /// The program handles a signal.
    Handle(Info, Action),
    /// The thread stops for its tracer.
    Trace(Rc<Tracee>, Why),
    /// The process stops.
    Stop(u32),
    /// The process ends.
    End(u32),
}

/// Takes the signals of `thread` up to the first that does something.
fn next(unix: &Unix, thread: &Rc<Thread>) -> Next {
    let process = &thread.process;
    let own = &thread.signals.pending;
    let shared = &process.signals.pending;
    if (own.set() | shared.set()) & bit(l::SIGKILL) != 0 {
        return Next::End(l::SIGKILL);
    }
    let tracee = thread.tracee();
    let mut granted = None;
    if let Some(tracee) = &tracee {
        match tracee.granted() {
            Granted::Death(signal) => return Next::End(signal),
            Granted::Stop(why) => return Next::Trace(tracee.clone(), why),
            Granted::Signal(info) => granted = info,
        }
    }
    loop {
        let wanted = !thread.signals.blocked.get() | set::UNSTOPPABLE;
        let queued = || own.take(wanted).or_else(|| shared.take(wanted));
        let was_granted = granted.is_some();
        let Some(mut info) = granted.take().or_else(queued) else { return Next::Nothing };
        if !was_granted {
            crate::time::signal_taken(unix, process, &mut info);
            if let Some(tracee) = tracee {
                return Next::Trace(tracee, Why::Signal(info));
            }
        }
        if let Some(next) = effect(unix, process, info) {
            return next;
        }
    }
}

/// What a signal does; nothing, perhaps.
fn effect(unix: &Unix, process: &Process, info: Info) -> Option<Next> {
    let actions = process.actions.borrow().clone();
    let action = actions.get(info.signal);
    if action.is_caught() {
        if action.has(l::SA_RESETHAND) {
            actions.set(info.signal, Action { handler: DEFAULT, ..action });
        }
        return Some(Next::Handle(info, action));
    }
    let protected = process.signals.protected.get() && bit(info.signal) & set::UNSTOPPABLE == 0;
    if action.handler == IGNORE || bit(info.signal) & set::HARMLESS != 0 || protected {
        return None;
    }
    if bit(info.signal) & set::STOPPING == 0 {
        return Some(Next::End(info.signal));
    }
    let stops = info.signal == l::SIGSTOP || !process::is_orphaned(unix, process.group.get());
    stops.then_some(Next::Stop(info.signal))
}

/// The call of `thread` has ended with `value`, and a signal is due or a mask to be put back.
pub fn leave_call(unix: &Unix, thread: &Rc<Thread>, value: u64) {
    go_on(unix, thread, Reply::Result(value));
}

/// The thread goes on with `reply` unless a signal wants otherwise.
pub fn go_on(unix: &Unix, thread: &Rc<Thread>, reply: Reply) {
    super::mask::restore(thread);
    let mut registers = None;
    loop {
        match next(unix, thread) {
            Next::Nothing => break,
            Next::Handle(info, action) => {
                let registers = registers.get_or_insert_with(|| {
                    let mut registers = unix.machine.registers(thread.machine.get());
                    if let Reply::Result(value) = reply {
                        registers.rax = value;
                    }
                    registers
                });
                if frame::enter(unix, thread, registers, &info, &action).is_err() {
                    frame::failed(unix, thread, info.signal);
                }
            }
            Next::Stop(signal) => {
                send::stop(unix, &thread.process, signal);
                break;
            }
            Next::End(signal) => {
                if let Some((tracee, why)) = trace::dies(thread, signal) {
                    give(unix, thread, reply, registers);
                    return trace::stop(unix, thread, &tracee, why);
                }
                return end(unix, thread, signal);
            }
            Next::Trace(tracee, why) => {
                give(unix, thread, reply, registers);
                trace::stop(unix, thread, &tracee, why);
                return recalculate_thread(thread);
            }
        }
    }
    recalculate_thread(thread);
    let handles = registers.is_some();
    give(unix, thread, reply, registers);
    if let Some(tracee) = thread.tracee() {
        tracee.goes_on(unix, thread, handles);
    }
}

/// The answer is due: these registers if there are any, `reply` else.
fn give(unix: &Unix, thread: &Rc<Thread>, reply: Reply, registers: Option<Registers>) {
    match registers {
        None => unix.reply(thread, reply),
        Some(registers) => {
            unix.machine.set_registers(thread.machine.get(), &registers);
            unix.reply(thread, Reply::Resume);
        }
    }
}

/// A signal is due while the call of `thread` would wait: EINTR, or the call starts again
/// after the handler; without a handler it waits on.
pub fn interrupt_call(unix: &Unix, thread: &Rc<Thread>) {
    let fatal = thread.signals.pending.set() | thread.process.signals.pending.set();
    if thread.signals.on_signal.get() == OnSignal::Never && fatal & bit(l::SIGKILL) == 0 {
        return;
    }
    if thread.tracee().is_some_and(|tracee| tracee.breaks_off(unix, thread)) {
        return;
    }
    match next(unix, thread) {
        Next::Nothing => recalculate_thread(thread),
        Next::Trace(tracee, why) => {
            tracee.stops_in_call(unix, thread, why);
            recalculate_thread(thread);
        }
        Next::Stop(signal) => {
            send::stop(unix, &thread.process, signal);
            recalculate_thread(thread);
        }
        Next::End(signal) => end(unix, thread, signal),
        Next::Handle(info, action) => handle_in_call(unix, thread, &info, &action),
    }
}

/// A signal ends the process.
pub(crate) fn end(unix: &Unix, thread: &Rc<Thread>, signal: u32) {
    let status = dump::status(unix, thread, signal);
    process::end_process(unix, &thread.process, status);
}

/// A handler runs in the middle of a call.
fn handle_in_call(unix: &Unix, thread: &Rc<Thread>, info: &Info, action: &Action) {
    let mut registers = unix.machine.registers(thread.machine.get());
    let progress = thread.progress.get();
    let on_signal = thread.signals.on_signal.get();
    match on_signal {
        OnSignal::Partial if progress != 0 => registers.rax = progress,
        OnSignal::Restart | OnSignal::Partial | OnSignal::Again
            if action.has(l::SA_RESTART) || on_signal == OnSignal::Again =>
        {
            registers.rip = registers.rip.wrapping_sub(SYSCALL_BYTES);
            registers.rax = u64::from(thread.number.get());
        }
        _ => registers.rax = Errno::EINTR.result(),
    }
    unix.end_wait(thread);
    if frame::enter(unix, thread, &mut registers, info, action).is_err() {
        frame::failed(unix, thread, info.signal);
    }
    unix.machine.set_registers(thread.machine.get(), &registers);
    go_on(unix, thread, Reply::Resume);
}

/// Length of the `syscall` instruction.
const SYSCALL_BYTES: u64 = 2;

/// Whether a mask is to be put back at the end of the call.
pub(super) fn has_saved_mask(thread: &Thread) -> bool {
    thread.signals.due.get() & RESTORE != 0
}
