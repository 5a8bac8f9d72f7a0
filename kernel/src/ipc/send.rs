//! The send phase: find the receiver, meet it or wait for it.

use abi::time::Deadline;
use abi::{IpcErrorKind, ThreadId, Timeouts};

use super::words::Message;
use super::{fail_at_once, propagation, queue, receive, transfer};
use crate::arch::{self, clock};
use crate::ipc::wait;
use crate::sched::early;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::{Kind, TcbRef};
use crate::{sched, thread};

/// The send phase of `sender`, the current thread, to `to`; returns who runs next.
#[must_use]
#[inline(always)]
pub fn send(sender: TcbRef, message: Message, to: ThreadId) -> TcbRef {
    let Some(receiver) = thread::lookup(to) else {
        return refused(sender, IpcErrorKind::NonExisting);
    };
    if message.tag.is_propagated() {
        propagation::prepare(sender, receiver);
    }
    if accepts(receiver, sender) {
        return transfer::start(sender, receiver, message);
    }
    later(sender, receiver)
}

#[inline(never)]
fn refused(sender: TcbRef, why: IpcErrorKind) -> TcbRef {
    fail_at_once(sender, why);
    sched::go_on(sender)
}

/// `receiver` does not wait for `sender`: it is an interrupt, or `sender` waits for it.
#[inline(never)]
fn later(sender: TcbRef, receiver: TcbRef) -> TcbRef {
    if receiver.id.get().is_irq() {
        return acknowledge(sender, receiver);
    }
    let deadline = match sender.kind.get() {
        Kind::User => Timeouts(sender.timeouts.get()).send().deadline(clock::now_us()),
        // Nobody tells himself about his own fault.
        _ if receiver == sender => return refused(sender, IpcErrorKind::NonExisting),
        _ => Deadline::Never,
    };
    match deadline {
        Deadline::Now => return refused(sender, IpcErrorKind::Timeout),
        Deadline::Never => {}
        Deadline::At(at_us) => early::wake_at(sender, at_us),
    }
    sender.partner.set(receiver.id.get());
    rendezvous::set_busy(sender, Busy::Polling);
    queue::append(receiver, sender);
    sched::blocked(sender)
}

/// `sender`, the current thread, sends to the interrupt `source`: acknowledges it and goes
/// on with its receive phase.
fn acknowledge(sender: TcbRef, source: TcbRef) -> TcbRef {
    if source.partner.get() != sender.id.get() {
        return refused(sender, IpcErrorKind::NonExisting);
    }
    arch::unmask(source.id.get().number() as u8);
    if sender.then_from.get().is_nil() {
        sender.result_from.set(ThreadId::NIL);
        return sched::go_on(sender);
    }
    receive::receive(sender)
}

/// Whether `receiver` waits in such a way that `sender` may send now.
#[must_use]
#[inline(always)]
pub fn accepts(receiver: TcbRef, sender: TcbRef) -> bool {
    // The usual waits first, as in the fast path; then that for a handler's answer.
    let waits = receiver.rendezvous.get() ^ receiver.id.get().0;
    let own = sender.id.get();
    waits == 0
        || waits == own.0
        || waits == rendezvous::code_word(Busy::Waiting) && receiver.partner.get() == own
        || accepts_unusually(receiver, sender)
}

#[inline(never)]
fn accepts_unusually(receiver: TcbRef, sender: TcbRef) -> bool {
    let named =
        |from: ThreadId| from == sender.id.get() || propagation::is_virtual(sender, receiver, from);
    match wait::waits(receiver) {
        Waits::Open => true,
        Waits::Closed(from) => named(from),
        Waits::Busy(Busy::Waiting) => match receiver.partner.get() {
            ThreadId::ANY => true,
            ThreadId::ANY_LOCAL => receiver.same_space(sender),
            from => named(from),
        },
        Waits::Busy(_) | Waits::Nonsense => false,
    }
}
