//! The server's loop: an event, the library's work, answers; the last answer and the
//! wait for the next event are one IPC.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use abi::{IpcError, IpcErrorKind, MsgTag, ThreadId, Time, protocol};
use interfaces::sockets;
use interfaces::unix::{Serve, Server};
use runtime::service::{Caller, Dispatch as _};
use runtime::{Msg, clock, ipc, utcb};
use unix::Unix;
use unix::machine::{Access, MachineThread, Reply, Urgency};
use unix::process::Pid;
use unix::stream::socket::native;
use unix::thread::{Doing, Thread};

use crate::machine::Baton;
use crate::{alarm, console, turns};

/// The server and what it runs on.
pub struct System {
    pub unix: Unix,
    pub machine: Rc<Baton>,
    /// The alarm is set because somebody's turn has come.
    pub later: Cell<bool>,
    /// Where those begin who are asked next how long they have run.
    pub asked: Cell<Pid>,
}

const CALL: MsgTag = MsgTag::protocol(protocol::SYSTEM_CALL, 0, 7, 0);
/// The page-fault error code's and the exception's vectors (Intel SDM 3A, 6.15).
const GENERAL_PROTECTION: u8 = 13;
const BREAKPOINT: u8 = 3;
/// Error code of `int3` through a gate that is closed to users: vector 3 of the table.
/// QEMU's emulation counts in 16-byte entries.
const BREAKPOINT_GATE: [u64; 2] = [3 << 3 | 2, 3 << 4 | 2];

/// A time without events that may have been used by several programs: a tick of the kernel.
const LONG_NS: u64 = 1_000_000;

/// How many threads the kernel is asked about at once.
const MOST_ASKED: usize = 64;

/// How long a thread whose turn has come may wait for the one that runs to wait, µs.
const LATER_US: u64 = 1000;

/// Serves for ever. The usual turn, a call that can be answered at once, is the few lines
/// before the `continue`.
///
/// *Later answers* (`docs/decisions/0015-later-answers.md`): whom a call has woken has
/// its turn when the caller waits, or after [`LATER_US`]: then every answer is a reply &
/// wait, which switches directly, and no thread is made ready only to be waited for.
pub fn serve(system: &System) {
    let (tasks, pages, unix) = (&system.machine.tasks, &system.machine.pages, &system.unix);
    let mut look = clock::ticks();
    let mut waits_from = clock::ticks();
    // Process 1 waits for its first answer.
    let mut next = last_answer(system, unix.next_reply());
    loop {
        let event = next.unwrap_or_else(|_| wait(&mut waits_from));
        let (from, msg) = &event;
        let now = clock::ticks();
        let spent = if now < look {
            now.wrapping_sub(waits_from)
        } else {
            // No long time without events ends before that.
            let (spent, next) = look_back(system, *from, look, now, waits_from);
            look = next;
            spent
        };
        let value = match tasks.event_of(*from, spent) {
            Some(thread) => event_of_program(unix, &thread, msg),
            None => {
                tasks.charge_latest(spent);
                helper(system, *from, msg);
                None
            }
        };
        let due = match value {
            Some(value) if pages.none_wait_for(*from) => {
                later(system);
                waits_from = clock::ticks();
                next = ipc::answer_and_wait(*from, value);
                continue;
            }
            Some(value) => Some((MachineThread(from.0), Reply::Result(value))),
            None => unix.next_reply(),
        };
        later(system);
        waits_from = clock::ticks();
        next = last_answer(system, due);
    }
}

/// A moment has come and gone (`look`), as one does every [`LONG_NS`]. If the server was at work in it,
/// that counts as system time of whoever it worked for, for so long. What is left to be charged for the
/// time without events, and the next moment.
///
/// If `from`, whose event has ended that time, has had a turn of the server's time, its answer is held back
/// until others have had their turn (`docs/decisions/0104`).
#[cold]
#[inline(never)]
fn look_back(system: &System, from: ThreadId, look: u64, now: u64, waits_from: u64) -> (u64, u64) {
    let tasks = &system.machine.tasks;
    system.unix.processors.look(system.machine.clock.now_ns());
    let spent = now.wrapping_sub(waits_from);
    let long = system.machine.clock.ticks_in(LONG_NS);
    let late = now.saturating_sub(look);
    if late > spent {
        // So many moments were before the last answer.
        tasks.charge_system((late - spent).div_ceil(long) * long);
    }
    if tasks.owes_a_turn(from, system.machine.clock.ticks_in(LONG_NS))
        && let Some(thread) = tasks.thread(from)
    {
        system.unix.give_turn_next(&thread);
    }
    let next = look + (late / long + 1) * long;
    if spent < long {
        return (spent, next);
    }
    share(system, spent);
    (0, next)
}

/// Charges a long time without events to those who could use it. The kernel is asked about each: if they are very
/// many, about some of them, who stand for all.
#[cold]
fn share(system: &System, ticks: u64) {
    let threads = system.unix.processes.by_tid.borrow();
    let from = system.asked.get();
    let some: Vec<_> = threads
        .range(from..)
        .chain(threads.range(..from))
        // Those in the queue wait for their answer.
        .filter(|(_, thread)| thread.doing.get() == Doing::Running && !thread.queued.get())
        .filter(|(_, thread)| thread.process.signals.stopped.get().is_none())
        .take(MOST_ASKED)
        .collect();
    if let Some((last, _)) = some.last().filter(|_| some.len() == MOST_ASKED) {
        system.asked.set(**last);
    }
    let running: Vec<MachineThread> =
        some.into_iter().map(|(_, thread)| thread.machine.get()).collect();
    system.machine.tasks.share(&running, ticks, system.machine.clock.ns(ticks) / 1000);
}

/// Somebody's turn has come while another one is about to run: the alarm ends that.
#[inline(always)]
fn later(system: &System) {
    if !system.unix.run_queue.is_empty() && !system.later.get() {
        remind(system);
    }
}

#[cold]
fn remind(system: &System) {
    system.later.set(true);
    let now_us = system.machine.clock.now_ns() / 1000;
    system.machine.alarm.set(Some(now_us + LATER_US));
}

#[cold]
fn wait(since: &mut u64) -> (ThreadId, Msg) {
    loop {
        *since = clock::ticks();
        if let Ok(event) = ipc::wait(Time::NEVER) {
            return event;
        }
    }
}

/// Gives the last answer, if there is one, and waits for the next event.
fn last_answer(
    system: &System,
    due: Option<(MachineThread, Reply)>,
) -> ipc::Result<(ThreadId, Msg)> {
    let Some((thread, reply)) = due else { return ipc::wait(Time::NEVER) };
    let to = ThreadId(thread.0);
    system.machine.tasks.runs_next(to);
    if let Some(value) = plain(system, to, &reply) {
        return ipc::answer_and_wait(to, value);
    }
    let result = ipc::reply_wait(to, &message(system, to, &reply));
    if let Err(error) = result {
        not_taken(system, to, Some(error));
    }
    result
}

/// An answer did not arrive whole: if it was for want of kernel memory in the program's
/// space, that gets more. The program goes on anyway: what is not mapped faults again.
#[cold]
fn not_taken(system: &System, to: ThreadId, error: Option<IpcError>) {
    let (tasks, unix) = (&system.machine.tasks, &system.unix);
    if !error.is_some_and(|error| error.kind == IpcErrorKind::Overflow) {
        return;
    }
    let Some(thread) = tasks.thread(to) else { return };
    if unix.more_kernel_memory(&thread).is_none_or(|pages| !tasks.feed(to, pages)) {
        unix.end_for_kernel_memory(&thread);
        later(system);
    }
}

/// Handles an event of a program; `Some`: the result of its system call.
#[inline(always)]
fn event_of_program(unix: &Unix, thread: &Rc<Thread>, msg: &Msg) -> Option<u64> {
    if msg.tag == CALL {
        let [number, rdi, r10, rsi, rdx, r8, r9] = msg.mr;
        // Linux looks at EAX only.
        return unix.system_call(thread, number as u32, [rdi, rsi, rdx, r10, r8, r9]);
    }
    fault(unix, thread, msg);
    None
}

#[inline(never)]
fn fault(unix: &Unix, thread: &Rc<Thread>, msg: &Msg) {
    match msg.tag.protocol_label() {
        protocol::PAGE_FAULT => {
            let access = Access::from_bits_truncate((msg.tag.label() & 7) as u8);
            unix.page_fault(thread, msg.mr[0], access);
        }
        protocol::EXCEPTION => exception(unix, thread),
        // No ports for programs: as on Linux without ioperm.
        protocol::IO_FAULT => unix.exception(thread, GENERAL_PROTECTION, 0),
        _ => {}
    }
}

fn exception(unix: &Unix, thread: &Rc<Thread>) {
    // All words above MR7 are in the UTCB.
    let word = |index: usize| utcb::mr(index + 1);
    let (vector, error) =
        (word(protocol::exception::VECTOR) as u8, word(protocol::exception::ERROR));
    if vector == GENERAL_PROTECTION && BREAKPOINT_GATE.contains(&(error & !5)) {
        // A trap, for programs: they find themselves behind the instruction.
        let machine = thread.machine.get();
        let mut registers = unix.machine.registers(machine);
        registers.rip += 1;
        unix.machine.set_registers(machine, &registers);
        unix.exception(thread, BREAKPOINT, 0);
    } else {
        unix.exception(thread, vector, error);
    }
}

#[inline(never)]
fn helper(system: &System, from: ThreadId, msg: &Msg) {
    if system.machine.alarm.is(from) && msg.label() == alarm::LABEL {
        system.later.set(false);
        system.machine.alarm.called(|| system.unix.alarm());
        give_all(system);
    } else if let Some(urgency) = turn_of(system, from).filter(|_| msg.label() == turns::LABEL) {
        if system.machine.turns[urgency as usize].called() {
            system.unix.turn(urgency);
        }
    } else if system.machine.console.is(from) && msg.label() == console::LABEL {
        let mut text = [0; proto::console::WORD_BYTES];
        let len = runtime::root::message_text(msg, &mut text);
        system.unix.console_input(&text[..len]);
    } else if services_answer(system, from, msg) {
        // Those who waited for it have their turn.
    } else if let Some(task) = system.machine.natives.ended(from, msg) {
        native::forget(&system.unix, task);
    } else {
        let both = (Serve(system), sockets::Serve(system));
        let answer = both.dispatch(from, msg, &[], &mut [], &mut []);
        runtime::service::answer((from, answer), &[]);
    }
}

/// Whose turn is over, if `from` is a helper that says so.
fn turn_of(system: &System, from: ThreadId) -> Option<Urgency> {
    let all = [Urgency::Ordinary, Urgency::Background];
    all.into_iter().find(|urgency| system.machine.turns[*urgency as usize].is(from))
}

/// Whether it is the end of a call that a program has made.
fn services_answer(system: &System, from: ThreadId, msg: &Msg) -> bool {
    let unix = &system.unix;
    system.machine.services.ended(from, msg, |call, answer| unix.service_answered(call, answer))
}

impl Server for System {
    fn statistics(&self, _: Caller) -> u64 {
        self.unix.calls.get()
    }
}

/// Everybody whose turn has come goes on, beside each other.
fn give_all(system: &System) {
    // To ask for the next one may signal or stop the thread of this one: give it before.
    while let Some(due) = system.unix.next_reply() {
        give(system, due);
    }
}

/// Gives an answer without waiting for anything.
fn give(system: &System, (thread, reply): (MachineThread, Reply)) {
    let to = ThreadId(thread.0);
    if let Some(value) = plain(system, to, &reply) {
        // A program that does not wait for it has been killed.
        let _ = ipc::answer(to, value);
        return;
    }
    if let Err(error) = ipc::send_within(to, &message(system, to, &reply), Time::ZERO) {
        not_taken(system, to, Some(error));
    }
}

/// The result that is all of an answer.
#[inline(always)]
fn plain(system: &System, to: ThreadId, reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Result(value) if system.machine.pages.none_wait_for(to) => Some(*value),
        _ => None,
    }
}

/// The message of an answer, with the mappings that wait for it. It must be sent before
/// any other: words beyond MR7 lie in the UTCB.
#[inline(always)]
fn message(system: &System, to: ThreadId, reply: &Reply) -> Msg {
    let msg = match reply {
        Reply::Result(value) => Msg::new(0).word(*value),
        Reply::Mapped | Reply::Resume => Msg::new(0),
    };
    match system.machine.pages.take(to) {
        None => msg,
        Some(items) => {
            let msg = items.iter().fold(msg, |msg, item| msg.map(*item));
            system.machine.pages.give_back(items);
            msg
        }
    }
}
