//! Ending an IPC from outside: ExchangeRegisters (X.2 4.12), deletion, transfer timeout.

use abi::lrpc::Status;
use abi::{IpcErrorKind, Phase};

use super::{fail_early, finish, queue, timeout};
use crate::arch::preemption::Stint;
use crate::ipc::wait;
use crate::local;
use crate::lrpc;
use crate::mem::Step;
use crate::sched;
use crate::space::SpaceRef;
use crate::thread;
use crate::thread::part::Part;
use crate::thread::state::State;
use crate::thread::tcb::Resume;
use crate::thread::{Kind, TcbRef};

/// What it takes to tell one sender that nobody is there, in instructions, roughly.
const TELLING: u32 = 175;

/// The phase of an IPC that `thread` is in, as ExchangeRegisters reports it.
#[must_use]
pub fn phase(thread: TcbRef) -> Option<Phase> {
    match wait::state(thread) {
        State::Transfers(Part::SendsTo(_)) | State::Polls(_) => Some(Phase::Send),
        State::Transfers(Part::ReceivesFrom(_)) | State::Waits(_) => Some(Phase::Receive),
        // It has a sender queued and takes that when it runs.
        State::BetweenPhases => Some(Phase::Receive),
        State::Calls | State::Lent => Some(Phase::Receive),
        State::Inactive | State::Halted | State::Ready => None,
    }
}

/// Cancels the IPC that `thread` is in, if it is in any. Afterwards the thread is ready, with error 3
/// or 7 where it was its own IPC; a kernel-made message is dropped and the interrupted
/// user code goes on.
pub fn cancel(thread: TcbRef) {
    let Some(phase) = phase(thread) else { return };
    if lrpc::take_out(thread, Status::Aborted) {
        return;
    }
    if thread.transfer.part.get().is_some() {
        abort_transfer(thread, IpcErrorKind::Aborted);
        return;
    }
    leave_queue(thread);
    if thread.is_between_phases() {
        thread.resume.set(thread.kind.get().home());
    }
    fail_early(thread, IpcErrorKind::Cancelled, phase);
    sched::requeue(thread);
}

/// Takes a polling thread out of its receiver's queue.
pub fn leave_queue(thread: TcbRef) {
    if thread.sending.are_linked()
        && let Some(receiver) = thread::lookup(thread.partner.get())
    {
        queue::remove(receiver, thread);
    }
}

/// If a pager is answering `thread`'s page fault with a transfer, ends that one:
/// `thread` goes on with the transfer that met the fault.
fn abort_answer(thread: TcbRef) {
    let answer = thread.transfer.part.get().filter(|_| thread.transfer.outer.get().is_some());
    if let Some(pager) = answer.map(Part::peer) {
        let _ = finish::settle(pager, thread, Err(IpcErrorKind::Aborted));
        pager.resume.set(Resume::Ipc);
        sched::requeue(pager);
        sched::requeue(thread);
    }
}

/// Ends the transfer that `thread` takes part in, with `kind` (the sender's view)
/// for both partners, wherever each of them is.
pub fn abort_transfer(thread: TcbRef, kind: IpcErrorKind) {
    abort_answer(thread);
    if let Some(part) = thread.transfer.part.get() {
        abort_answer(part.peer());
    }
    // That answer may have been this transfer.
    let Some(part) = thread.transfer.part.get() else { return };
    let (sender, receiver) = part.pair(thread);
    for partner in [sender, receiver] {
        partner.resume.set(partner.kind.get().home());
        // One of them may be asking its pager for a page.
        if partner.kind.get() == Kind::TransferFault {
            leave_queue(partner);
            partner.kind.set(Kind::User);
        }
        partner.wake_at_us.set(0);
    }
    let _ = finish::settle(sender, receiver, Err(kind));
    sched::requeue(sender);
    sched::requeue(receiver);
}

/// The transfer timeout of the transfer that `faulter` takes part in has expired.
pub fn time_out_transfer(faulter: TcbRef) {
    if let Some(part) = faulter.transfer.part.get() {
        abort_transfer(faulter, timeout::expired_kind(part.pair(faulter).0));
    }
}

/// Ends every IPC with `thread`, which is about to lose its id: its own, and those of the
/// threads that wait to send to it. Those that wait for a message from it learn of it from
/// the `sweep` that follows.
pub fn disconnect(thread: TcbRef) {
    if thread.transfer.part.get().is_some() {
        abort_transfer(thread, IpcErrorKind::Aborted);
    }
    leave_queue(thread);
    if let Some(space) = thread.space().filter(|space| space.task.entangled.get() != 0) {
        untangle(thread, space);
    }
    // Who is in ThreadControl's hands has turned them away already.
    while turn_away(thread) == Step::More {}
}

/// The same for what `thread` has to do with procedure calls and local IPC, as threads of `space` may.
#[cold]
#[inline(never)]
fn untangle(thread: TcbRef, space: SpaceRef) {
    lrpc::disconnect(thread);
    local::reclaim_waits_for(thread, space);
}

/// `thread` is about to lose its id: whoever waits to send to it is told that nobody is there. They may be as many
/// as there are threads, so this stops behind each step if an interrupt has come.
#[inline(always)]
pub fn turn_away(thread: TcbRef) -> Step {
    if thread.senders.is_empty() { Step::Done } else { turn_senders_away(thread) }
}

#[cold]
#[inline(never)]
fn turn_senders_away(thread: TcbRef) -> Step {
    let mut stint = Stint::default();
    while let Some(sender) = thread.senders.first() {
        queue::remove(thread, sender);
        // Who waits to send to itself is there, and what it was at ends.
        let why =
            if sender == thread { IpcErrorKind::Cancelled } else { IpcErrorKind::NonExisting };
        fail_early(sender, why, Phase::Send);
        sched::requeue(sender);
        if stint.must_stop_after(TELLING) {
            return Step::More;
        }
    }
    Step::Done
}
