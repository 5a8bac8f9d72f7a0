//! The end of a transfer: both partners learn the result, the sender enters its
//! receive phase, and somebody runs next.

use abi::{IpcError, IpcErrorKind, MsgTag, Phase, utcb};

use super::rendezvous::{self, Busy};
use super::transfer::{self, Role};
use super::{Kind, fail, propagation, queue, receive, words};
use crate::arch::{TcbRef, current};
use crate::sched;
use crate::thread::tcb::Resume;
use crate::usermem::Utcb;

/// Ends the transfer between `sender` and `receiver`; returns who runs next. One of
/// them is the current thread, or neither: if that one's string met a missing page
/// of its partner, which now tells its pager.
#[must_use]
pub fn finish(sender: TcbRef, receiver: TcbRef, result: Result<(), IpcErrorKind>) -> TcbRef {
    let receives = settle(sender, receiver, result);
    next_phase(sender, receiver, receives)
}

/// Ends an answer to a page fault that needed no transfer state: as `finish` with success.
#[must_use]
pub fn answered(sender: TcbRef, receiver: TcbRef) -> TcbRef {
    done(receiver);
    let receives = !sender.then_from.get().is_nil();
    if !receives {
        done(sender);
    }
    next_phase(sender, receiver, receives)
}

/// The sender's receive phase if it has one; returns who runs next.
fn next_phase(sender: TcbRef, receiver: TcbRef, receives: bool) -> TcbRef {
    let runner = current();
    if runner != sender {
        if receives {
            receive::receive_elsewhere(sender);
        }
        if runner != receiver {
            sched::requeue(sender);
            return sched::higher_of(runner, receiver);
        }
        return sched::higher_of(runner, sender);
    }
    if !receives {
        return sched::higher_of(sender, receiver);
    }
    let Some(queued) = receive::begin(sender) else {
        // Waiting now (or failed): the direct switch (1993, 5.3.5).
        return if sender.is_ready() {
            sched::higher_of(sender, receiver)
        } else {
            sched::hand_over(sender, receiver)
        };
    };
    // A server takes the next waiting client before the last one goes on (5.3.5).
    queue::remove(sender, queued);
    sched::requeue(receiver);
    let next = transfer::start(queued, sender);
    sched::higher_of(next, receiver)
}

/// Gives both partners their results: afterwards the receiver is ready, and so is
/// the sender unless it still has its receive phase to do (then `true`).
#[must_use]
pub fn settle(sender: TcbRef, receiver: TcbRef, result: Result<(), IpcErrorKind>) -> bool {
    let offset = leave_transfer(sender, receiver);
    settle_receiver(sender, receiver, result.map_err(partner_view), offset);
    match result {
        Err(kind) => {
            fail(sender, IpcError { kind, phase: Phase::Send, offset });
            false
        }
        Ok(()) if sender.then_from.get().is_nil() => {
            done(sender);
            false
        }
        Ok(()) => true,
    }
}

/// How the partner sees an error: own transfer timeout here is the partner's there.
fn partner_view(kind: IpcErrorKind) -> IpcErrorKind {
    match kind {
        IpcErrorKind::XferTimeoutOwn => IpcErrorKind::XferTimeoutPartner,
        IpcErrorKind::XferTimeoutPartner => IpcErrorKind::XferTimeoutOwn,
        other => other,
    }
}

/// Dissolves the pair and returns the number of string bytes transferred.
fn leave_transfer(sender: TcbRef, receiver: TcbRef) -> u64 {
    if sender.transfer.role.get() != Role::Sender || sender.transfer.peer.get() != Some(receiver) {
        return 0;
    }
    if let Some((role, peer)) = receiver.transfer.outer.take() {
        // A pager's answer: the receiver is back in the transfer that met the fault.
        receiver.transfer.role.set(role);
        receiver.transfer.peer.set(Some(peer));
        sender.transfer.role.set(Role::None);
        sender.transfer.peer.set(None);
        sender.abandon_job();
        return sender.transfer.bytes.get();
    }
    for thread in [sender, receiver] {
        thread.abandon_job();
        thread.transfer.role.set(Role::None);
        thread.transfer.peer.set(None);
        if thread.resume.get() == Resume::Transfer {
            thread.resume.set(thread.kind.get().home());
        }
        if thread.kind.get() == Kind::TransferFault {
            thread.kind.set(Kind::User);
        }
    }
    sender.then_from.set(sender.transfer.then_from.get());
    sender.timeouts.set(sender.transfer.timeouts.get());
    sender.transfer.bytes.get()
}

fn settle_receiver(
    sender: TcbRef,
    receiver: TcbRef,
    result: Result<(), IpcErrorKind>,
    offset: u64,
) {
    match (receiver.kind.get(), result) {
        (Kind::User, _) => user_result(sender, receiver, result, offset),
        (Kind::Start, Err(_)) => rendezvous::set_busy(receiver, Busy::Waiting),
        _ => done(receiver),
    }
}

fn user_result(sender: TcbRef, receiver: TcbRef, result: Result<(), IpcErrorKind>, offset: u64) {
    let virtual_sender = propagation::apply(sender, receiver);
    let name = virtual_sender.unwrap_or(sender).name_for(receiver);
    receiver.result_from.set(name);
    if let Some(utcb) = Utcb::of(receiver) {
        let mut flags = if virtual_sender.is_some() { MsgTag::PROPAGATED } else { 0 };
        if let Err(kind) = result {
            flags |= MsgTag::ERROR;
            utcb.set_word(
                utcb::ERROR_CODE,
                IpcError { kind, phase: Phase::Receive, offset }.word(),
            );
        }
        // Not read again: another thread of the sender's may have changed it.
        let tag = if sender.kind.get() == Kind::User {
            sender.transfer.tag.get()
        } else {
            words::tag(sender)
        };
        utcb.set_mr(0, tag.with(flags).0);
    }
    sched::set_runnable(receiver);
}

/// The operation of `thread` is complete. A fault in a transfer goes back to the
/// transfer; any other kernel-made message back to the interrupted user code.
fn done(thread: TcbRef) {
    match thread.kind.replace(Kind::User) {
        // An interrupt has no code of its own: it rests until the next one.
        Kind::Interrupt => {
            thread.kind.set(Kind::Interrupt);
            rendezvous::set_busy(thread, Busy::Halted);
            return;
        }
        Kind::TransferFault => thread.resume.set(Resume::Transfer),
        _ => {}
    }
    sched::set_runnable(thread);
}
