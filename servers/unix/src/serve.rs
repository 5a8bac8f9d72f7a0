//! The server's loop: an event, the library's work, answers; the last answer and the
//! wait for the next event are one IPC.

use alloc::rc::Rc;

use abi::{IpcError, IpcErrorKind, MsgTag, ThreadId, Time, protocol};
use runtime::{Msg, clock, ipc, utcb};
use unix::Unix;
use unix::machine::{Access, MachineThread, Reply};
use unix::thread::Thread;

use crate::machine::Baton;
use crate::{alarm, console};

/// The server and what it runs on.
pub struct System {
    pub unix: Unix,
    pub machine: Rc<Baton>,
}

const CALL: MsgTag = MsgTag::protocol(protocol::SYSTEM_CALL, 0, 7, 0);
/// The page-fault error code's and the exception's vectors (Intel SDM 3A, 6.15).
const GENERAL_PROTECTION: u8 = 13;
const BREAKPOINT: u8 = 3;
/// Error code of `int3` through a gate that is closed to users: vector 3 of the table.
/// QEMU's emulation counts in 16-byte entries.
const BREAKPOINT_GATE: [u64; 2] = [3 << 3 | 2, 3 << 4 | 2];

/// Serves for ever. The usual turn, a call that can be answered at once while nobody
/// else is due, is the few lines before the `continue`.
pub fn serve(system: &System) {
    let (tasks, pages, unix) = (&system.machine.tasks, &system.machine.pages, &system.unix);
    let mut waits_from = clock::ticks();
    // Process 1 waits for its first answer.
    let mut next = last_answer(system, answers(system, None));
    loop {
        let event = next.map_or_else(|_| wait(&mut waits_from), |event| event);
        let (from, msg) = &event;
        let spent = clock::ticks().wrapping_sub(waits_from);
        let value = match tasks.event_of(*from, spent) {
            Some(thread) => event_of_program(unix, &thread, msg),
            None => {
                tasks.charge_latest(spent);
                helper(system, *from, msg);
                None
            }
        };
        if let Some(value) = value.filter(|_| unix.run_queue.is_empty() && pages.none_wait()) {
            waits_from = clock::ticks();
            next = ipc::answer_and_wait(*from, value);
            continue;
        }
        let due = answers(system, value.map(|value| (*from, value)));
        waits_from = clock::ticks();
        next = last_answer(system, due);
    }
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
    if let Some(value) = plain(system, &reply) {
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
    if error.is_some_and(|error| error.kind == IpcErrorKind::Overflow)
        && !system.machine.tasks.feed(to)
    {
        system.machine.out_of_memory(to);
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
        system.machine.alarm.called(|| system.unix.alarm());
    } else if system.machine.console.is(from) && msg.label() == console::LABEL {
        let mut text = [0; proto::console::WORD_BYTES];
        let len = runtime::root::message_text(msg, &mut text);
        system.unix.console_input(&text[..len]);
    } else if msg.label() == proto::unix::STATISTICS {
        let events = system.machine.tasks.events();
        let _ = ipc::reply(from, &Msg::new(proto::OK).word(events));
    }
}

/// Gives all answers that are due but the last, which goes with the next wait. `direct`
/// is one already known; it is that last one.
fn answers(system: &System, direct: Option<(ThreadId, u64)>) -> Option<(MachineThread, Reply)> {
    let direct = direct.map(|(to, value)| (MachineThread(to.0), Reply::Result(value)));
    let others = queued_answers(system, direct.is_some());
    direct.or(others)
}

/// Gives the answers that others have become due; the last of them is returned unless
/// `all` of them are to be given.
fn queued_answers(system: &System, all: bool) -> Option<(MachineThread, Reply)> {
    while let Some(due) = system.unix.next_reply() {
        // To ask for the next one may signal or stop the thread of this one: give it before.
        if !all && system.unix.run_queue.is_empty() {
            return Some(due);
        }
        give(system, due);
    }
    None
}

/// Gives an answer without waiting for anything.
fn give(system: &System, (thread, reply): (MachineThread, Reply)) {
    let to = ThreadId(thread.0);
    if let Some(value) = plain(system, &reply) {
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
fn plain(system: &System, reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Result(value) if system.machine.pages.none_wait() => Some(*value),
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
        Some(items) => items.iter().fold(msg, |msg, item| msg.map(*item)),
    }
}
