//! The receive phase: take the first fitting sender, or wait.

use abi::time::Deadline;
use abi::{IpcErrorKind, Phase, ThreadId, Time, Timeouts};

use super::rendezvous::{self, Busy, Waits};
use super::{Kind, fail_early, go_on, propagation, queue, timeout, transfer};
use crate::arch::{TcbRef, cpu};
use crate::thread::tcb::Resume;
use crate::{clock, sched, thread};

/// The receive phase of the current thread; returns who runs next.
#[must_use]
pub fn receive(current: TcbRef) -> TcbRef {
    match begin(current) {
        Some(sender) => {
            queue::remove(current, sender);
            transfer::start(sender, current)
        }
        None => go_on(current),
    }
}

/// Starts the receive phase of a thread that is not current, whose send phase
/// somebody else has completed. If a sender is already queued for it, the thread
/// takes it when it runs.
pub fn receive_elsewhere(thread: TcbRef) {
    if begin(thread).is_some() {
        thread.resume.set(Resume::Receive);
        sched::make_ready(thread);
    } else if thread.is_ready() {
        sched::requeue(thread);
    } else {
        rendezvous::seal(thread);
    }
}

/// A fitting queued sender (still queued), or `None` after `thread` waits or has failed.
#[must_use]
pub fn begin(thread: TcbRef) -> Option<TcbRef> {
    let from = thread.then_from.get();
    if thread.senders.get().is_none() && waits_plainly(thread, from) {
        return None;
    }
    if from.is_global() && thread::lookup(from).is_none() {
        fail_early(thread, IpcErrorKind::NonExisting, Phase::Receive);
        return None;
    }
    let queued = match from {
        ThreadId::ANY => thread.senders.get(),
        ThreadId::ANY_LOCAL => queue::find(thread, |sender| sender.same_space(thread)),
        from => named_sender(thread, from),
    };
    if queued.is_some() {
        return queued;
    }
    let deadline = match thread.kind.get() {
        Kind::User => Timeouts(thread.timeouts.get()).receive().deadline(clock::now_us()),
        _ => Deadline::Never,
    };
    wait(thread, from, deadline);
    None
}

/// The usual wait, for ever, with nobody queued: for anybody, or for one who exists.
/// `false`, and nothing has changed, if it is anything else.
fn waits_plainly(thread: TcbRef, from: ThreadId) -> bool {
    let never =
        Timeouts(thread.timeouts.get()).receive() == Time::NEVER && thread.kind.get() == Kind::User;
    if !never || thread.halted.get() {
        return false;
    }
    if from == ThreadId::ANY {
        rendezvous::set_open(thread);
        return true;
    }
    let other = thread::lookup(from).is_some_and(|other| other != thread && !from.is_irq());
    if other {
        rendezvous::set_closed(thread, from);
    }
    other
}

/// Whether the one thread that `thread` is to receive from is queued for it.
#[must_use]
pub fn has_sender(thread: TcbRef) -> bool {
    named_sender(thread, thread.then_from.get()).is_some()
}

fn named_sender(thread: TcbRef, from: ThreadId) -> Option<TcbRef> {
    thread.senders.get()?;
    let direct = thread::lookup(from).filter(|sender| {
        rendezvous::waits(*sender) == Waits::Busy(Busy::Polling)
            && sender.partner.get() == thread.id.get()
            && sender.sending.next.get().is_some()
    });
    direct.or_else(|| queue::find(thread, |sender| propagation::is_virtual(sender, thread, from)))
}

fn wait(thread: TcbRef, from: ThreadId, deadline: Deadline) {
    thread.partner.set(from);
    match deadline {
        Deadline::Now => return fail_early(thread, IpcErrorKind::Timeout, Phase::Receive),
        Deadline::At(at_us) => {
            cpu().scheduler.wakeup.insert(thread, at_us);
            rendezvous::set_busy(thread, Busy::Waiting);
            return;
        }
        // The message to the pager has disarmed it.
        Deadline::Never if thread.kind.get() == Kind::TransferFault => {
            timeout::rearm_transfer_timeout(thread)
        }
        Deadline::Never => {}
    }
    // What the fast path may serve is told apart here, once, instead of there.
    let plain = thread.kind.get() == Kind::User && !thread.halted.get();
    if plain && from == ThreadId::ANY {
        rendezvous::set_open(thread);
    } else if plain && from.is_global() && !from.is_irq() && from != thread.id.get() {
        rendezvous::set_closed(thread, from);
    } else {
        rendezvous::set_busy(thread, Busy::Waiting);
    }
}
