//! The send phase: find the receiver, meet it or wait for it.

use abi::time::Deadline;
use abi::{IpcErrorKind, ThreadId, Timeouts};

use super::rendezvous::{self, Busy, Waits};
use super::{Kind, fail_at_once, go_on, propagation, queue, transfer};
use crate::arch::{TcbRef, cpu};
use crate::{clock, irq, sched, thread};

/// The send phase of `sender`, the current thread, to `to`; returns who runs next.
#[must_use]
pub fn send(sender: TcbRef, to: ThreadId) -> TcbRef {
    if to.is_irq() {
        return irq::acknowledge(sender, to);
    }
    let Some(receiver) = thread::lookup(to) else {
        fail_at_once(sender, IpcErrorKind::NonExisting);
        return go_on(sender);
    };
    if sender.kind.get() == Kind::User {
        propagation::prepare(sender, receiver);
    }
    if accepts(receiver, sender) {
        return transfer::start(sender, receiver);
    }
    let deadline = match sender.kind.get() {
        Kind::User => Timeouts(sender.timeouts.get()).send().deadline(clock::now_us()),
        _ => Deadline::Never,
    };
    match deadline {
        Deadline::Now => {
            fail_at_once(sender, IpcErrorKind::Timeout);
            go_on(sender)
        }
        Deadline::Never => poll(sender, receiver),
        Deadline::At(at_us) => {
            cpu().scheduler.wakeup.insert(sender, at_us);
            poll(sender, receiver)
        }
    }
}

/// Queues `sender` at `receiver`.
fn poll(sender: TcbRef, receiver: TcbRef) -> TcbRef {
    sender.partner.set(receiver.id.get());
    rendezvous::set_busy(sender, Busy::Polling);
    queue::append(receiver, sender);
    sched::blocked(sender)
}

/// Whether `receiver` waits in such a way that `sender` may send now.
#[must_use]
pub fn accepts(receiver: TcbRef, sender: TcbRef) -> bool {
    let named =
        |from: ThreadId| from == sender.id.get() || propagation::is_virtual(sender, receiver, from);
    match rendezvous::waits(receiver) {
        Waits::Open => true,
        Waits::Closed(from) => named(from),
        Waits::Busy(Busy::Waiting) => match receiver.partner.get() {
            ThreadId::ANY => true,
            ThreadId::ANY_LOCAL => receiver.same_space(sender),
            from => named(from),
        },
        Waits::Busy(_) => false,
    }
}
