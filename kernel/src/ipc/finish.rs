//! The end of a transfer: both partners learn the result, the sender enters its
//! receive phase, and somebody runs next.

use abi::{IpcError, IpcErrorKind, MsgTag, Phase, StringItem, ThreadId, utcb};

use super::receive::{self, Begun};
use super::words::{self, Message, Source};
use super::{fail, propagation};
use crate::arch::preemption;
use crate::sched::{self, Runnable};
use crate::thread::part::Part;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::Resume;
use crate::thread::{Kind, TcbRef, current};
use crate::usermem::Utcb;

/// Ends the transfer between `sender` and `receiver`; returns who runs next. One of
/// them is the current thread, or neither: if that one's string met a missing page
/// of its partner, which now tells its pager.
#[must_use]
#[inline(never)]
pub fn finish(sender: TcbRef, receiver: TcbRef, result: Result<(), IpcErrorKind>) -> TcbRef {
    let receives = settle(sender, receiver, result);
    if current() != sender {
        return next_phase_elsewhere(sender, receiver, receives);
    }
    next_phase(sender, sender.kind.get(), receiver, receives)
}

/// Where the words of a message to `receiver` go, if it is one of its own.
#[inline(always)]
#[must_use]
pub fn registers_of(receiver: TcbRef) -> Option<Utcb> {
    Utcb::of(receiver).filter(|_| receiver.kind.get() == Kind::User)
}

/// A message that needs no transfer state, or no more, goes to the receiver, whose
/// [`registers_of`] `target` are; returns who runs next. One of the two is the current thread.
#[must_use]
#[inline(always)]
pub fn delivered(
    sender: TcbRef,
    receiver: TcbRef,
    target: Option<Utcb>,
    message: Message,
) -> TcbRef {
    match target {
        Some(target) => told(sender, receiver, target, message),
        None => not_told(receiver, message),
    }
    after(sender, receiver, message.source)
}

/// The same for a message whose string, `string`, has arrived: to copy it and to begin to receive would be too
/// long for a stretch.
#[must_use]
#[inline(never)]
pub fn string_delivered(
    sender: TcbRef,
    receiver: TcbRef,
    (target, string): (Utcb, StringItem),
    message: Message,
) -> TcbRef {
    let tag = message.tag;
    message.copy(target, tag.untyped() + tag.typed());
    // Not read again: what the receiver is told is what has been copied.
    target.set_mr(tag.untyped() + 1, string.0);
    informed(sender, receiver, target, tag);
    preemption::let_in();
    after(sender, receiver, message.source)
}

/// `receiver` has its message: what follows for the sender.
#[inline(always)]
fn after(sender: TcbRef, receiver: TcbRef, source: Source) -> TcbRef {
    let receives = !sender.then_from.get().is_nil();
    if !receives {
        done(sender);
    }
    if current() != sender {
        return next_phase_elsewhere(sender, receiver, receives);
    }
    let kind = match source {
        Source::Registers(_) => Kind::User,
        Source::Made(kind, _) => kind,
    };
    next_phase(sender, kind, receiver, receives)
}

/// The same for the receiver alone, which is ready then.
#[inline(always)]
pub fn arrived(sender: TcbRef, receiver: TcbRef, message: Message) {
    match registers_of(receiver) {
        Some(target) => told(sender, receiver, target, message),
        None => not_told_rarely(receiver, message),
    }
}

/// [`not_told`] apart from what is usual.
#[cold]
#[inline(never)]
fn not_told_rarely(receiver: TcbRef, message: Message) {
    not_told(receiver, message);
}

/// The message does not go to registers of the receiver's.
#[inline(always)]
fn not_told(receiver: TcbRef, message: Message) {
    match message.source {
        Source::Registers(source) => answered(source, receiver, message.tag.untyped()),
        // One message of the kernel's answers another: it says nothing.
        Source::Made(..) => done(receiver),
    }
}

/// The words of the message, which has no items, go to `target`.
#[inline(always)]
fn told(sender: TcbRef, receiver: TcbRef, target: Utcb, message: Message) {
    message.copy(target, message.tag.untyped());
    informed(sender, receiver, target, message.tag);
}

/// `target` holds the words of the message of `tag`.
#[inline(always)]
fn informed(sender: TcbRef, receiver: TcbRef, target: Utcb, tag: MsgTag) {
    if !sender.transfer.is_usual() {
        return user_result(sender, receiver, tag, Ok(()), 0);
    }
    receiver.result_from.set(sender.name_for(receiver));
    target.set_mr(0, tag.0);
    if sched::becomes_runnable(receiver) == Runnable::Unusually {
        told_unusually(sender, receiver, target, tag);
    }
}

/// `receiver`, which has its message, is halted, or its user code runs on another processor.
#[cold]
#[inline(never)]
fn told_unusually(sender: TcbRef, receiver: TcbRef, target: Utcb, tag: MsgTag) {
    target.set_mr(0, tag.with(crossing(sender, receiver)).0);
    sched::look_twice(receiver);
}

/// The flag of a message between threads of two processors (X.2 4.11). The kernel's own messages are the
/// protocols' of X.2 6, whose tags have no flags.
fn crossing(sender: TcbRef, receiver: TcbRef) -> u64 {
    let crosses = sender.processor.get() != receiver.processor.get();
    if crosses && sender.kind.get() == Kind::User { MsgTag::XCPU } else { 0 }
}

/// `count` words of `source` answer what the kernel made for `thread`.
#[inline(never)]
fn answered(source: Utcb, thread: TcbRef, count: usize) {
    words::take(source, thread, count);
    done(thread);
}

/// The receive phase of the sender, which is the current thread, if it has one; returns who
/// runs next.
#[inline(always)]
fn next_phase(sender: TcbRef, kind: Kind, receiver: TcbRef, receives: bool) -> TcbRef {
    if !receives {
        return sched::higher_of(sender, receiver);
    }
    match receive::begin(sender, kind, receiver.id.get()) {
        // The direct switch (1993, 5.3.5).
        Begun::Waits if !receiver.halted.get() => sched::hand_over_at_once(sender, receiver),
        Begun::Waits => sched::hand_over(sender, receiver),
        Begun::Failed => sched::higher_of(sender, receiver),
        // A server takes the next waiting client before the last one goes on (5.3.5).
        Begun::Meets(queued) => take_next(sender, queued, receiver),
    }
}

/// `sender`, whose send phase to `receiver` is over, takes the message of `queued`.
#[inline(never)]
fn take_next(sender: TcbRef, queued: TcbRef, receiver: TcbRef) -> TcbRef {
    sched::requeue(receiver);
    // A string, and another message behind it, would be too long for a stretch.
    let is_long = |thread| Message::of(thread).tag.typed() != 0;
    if (is_long(queued) || is_long(sender)) && preemption::must_stop() {
        return receive::later(sender);
    }
    sched::higher_of(receive::take(sender, queued), receiver)
}

/// The same if the sender is not the current thread.
#[inline(never)]
fn next_phase_elsewhere(sender: TcbRef, receiver: TcbRef, receives: bool) -> TcbRef {
    if receives {
        receive::receive_elsewhere(sender);
    }
    let runner = current();
    if runner == receiver {
        return sched::higher_of(runner, sender);
    }
    sched::requeue(sender);
    sched::higher_of(runner, receiver)
}

/// Gives both partners their results: afterwards the receiver is ready, and so is
/// the sender unless it still has its receive phase to do (then `true`).
#[must_use]
pub fn settle(sender: TcbRef, receiver: TcbRef, result: Result<(), IpcErrorKind>) -> bool {
    let offset = leave_transfer(sender, receiver);
    let theirs = result.map_err(partner_view);
    match receiver.kind.get() {
        // Not read again: another thread of the sender's may have changed it.
        Kind::User => user_result(sender, receiver, sender.transfer.tag.get(), theirs, offset),
        Kind::Start if theirs.is_err() => rendezvous::set_busy(receiver, Busy::Waiting),
        _ => done(receiver),
    }
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
    if sender.transfer.part.get() != Some(Part::SendsTo(receiver)) {
        return 0;
    }
    if let Some(outer) = receiver.transfer.outer.take() {
        // A pager's answer: the receiver is back in the transfer that met the fault.
        receiver.transfer.part.set(Some(outer));
        sender.transfer.part.set(None);
        sender.abandon_job();
        return sender.transfer.bytes.get();
    }
    for thread in [sender, receiver] {
        thread.abandon_job();
        thread.transfer.part.set(None);
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

#[inline(never)]
fn user_result(
    sender: TcbRef,
    receiver: TcbRef,
    tag: MsgTag,
    result: Result<(), IpcErrorKind>,
    offset: u64,
) {
    let virtual_sender = propagation::apply(sender, receiver);
    let name = virtual_sender.unwrap_or(sender).name_for(receiver);
    receiver.result_from.set(name);
    if let Some(utcb) = Utcb::of(receiver) {
        let mut flags = crossing(sender, receiver);
        if virtual_sender.is_some() {
            flags |= MsgTag::PROPAGATED;
        }
        if let Err(kind) = result {
            flags |= MsgTag::ERROR;
            let error = IpcError { kind, phase: Phase::Receive, offset };
            utcb.set_word(utcb::ERROR_CODE, error.word());
        }
        utcb.set_mr(0, tag.with(flags).0);
    }
    sched::set_runnable(receiver);
}

/// The operation of `thread` is complete. A fault in a transfer goes back to the
/// transfer; any other kernel-made message back to the interrupted user code.
fn done(thread: TcbRef) {
    match thread.kind.get() {
        // An interrupt has no code of its own: it rests until the next one.
        Kind::Interrupt => return rendezvous::set_busy(thread, Busy::Halted),
        Kind::User => thread.result_from.set(ThreadId::NIL),
        Kind::TransferFault => thread.resume.set(Resume::Transfer),
        Kind::Bind => thread.resume.set(Resume::Bind),
        _ => {}
    }
    thread.kind.set(Kind::User);
    sched::set_runnable(thread);
}
