//! The receive phase: take the first fitting sender, or wait.

use abi::id::SYSTEM_BASE;
use abi::time::Deadline;
use abi::{IpcErrorKind, Phase, ThreadId, Time, Timeouts};

use super::words::Message;
use super::{fail_early, propagation, queue, timeout, transfer};
use crate::arch::clock;
use crate::ipc::wait;
use crate::sched::early;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::tcb::Resume;
use crate::thread::{Kind, TcbRef};
use crate::{sched, thread};

/// What a receive phase began with.
#[must_use]
pub enum Begun {
    /// The thread waits.
    Waits,
    /// The phase is over already, with an error.
    Failed,
    /// A fitting sender is queued (and still is).
    Meets(TcbRef),
}

/// The receive phase of the current thread; returns who runs next.
#[must_use]
pub fn receive(current: TcbRef) -> TcbRef {
    match begin(current, current.kind.get(), ThreadId::NIL) {
        Begun::Meets(sender) => take(current, sender),
        Begun::Waits => sched::blocked(current),
        Begun::Failed => sched::go_on(current),
    }
}

/// `receiver` takes the message of `sender`, which is queued for it.
#[must_use]
#[inline(never)]
pub fn take(receiver: TcbRef, sender: TcbRef) -> TcbRef {
    queue::remove(receiver, sender);
    sender.wake_at_us.set(0);
    transfer::start(sender, receiver, Message::of(sender))
}

/// Starts the receive phase of a thread that is not current, whose send phase
/// somebody else has completed. If a sender is already queued for it, the thread
/// takes it when it runs.
pub fn receive_elsewhere(thread: TcbRef) {
    match begin(thread, thread.kind.get(), ThreadId::NIL) {
        Begun::Meets(_) => rest_between_phases(thread),
        Begun::Waits => wait::seal(thread),
        Begun::Failed => sched::requeue(thread),
    }
}

/// The current thread, whose send phase is over, begins its receive phase when it runs again: an
/// interrupt has come, and is handled on the way out of the kernel. Returns who runs next if that leads to nobody
/// else.
#[cold]
pub fn later(current: TcbRef) -> TcbRef {
    rest_between_phases(current);
    sched::go_on(current)
}

fn rest_between_phases(thread: TcbRef) {
    thread.resume.set(Resume::Receive);
    sched::make_ready(thread);
}

/// Begins the receive phase of `thread`, which exchanges a message of `kind` and has just sent
/// one to `met`, if to anybody.
#[inline(always)]
pub fn begin(thread: TcbRef, kind: Kind, met: ThreadId) -> Begun {
    let from = thread.then_from.get();
    let waits = thread.senders.is_empty()
        && match kind {
            Kind::User => {
                let receive = Timeouts(thread.timeouts.get()).receive();
                receive == Time::NEVER && waits_plainly(thread, from, met)
            }
            // Its transfer has a limit of time.
            Kind::TransferFault => false,
            _ => (from == met || thread::lookup(from).is_some()) && waits_specially(thread, from),
        };
    if waits { Begun::Waits } else { begin_unusually(thread, from) }
}

#[inline(never)]
fn begin_unusually(thread: TcbRef, from: ThreadId) -> Begun {
    if from.is_global() && thread::lookup(from).is_none() {
        fail_early(thread, IpcErrorKind::NonExisting, Phase::Receive);
        return Begun::Failed;
    }
    let queued = match from {
        ThreadId::ANY => thread.senders.first(),
        ThreadId::ANY_LOCAL => thread.senders.iter().find(|sender| sender.same_space(thread)),
        from => named_sender(thread, from),
    };
    if let Some(sender) = queued {
        return Begun::Meets(sender);
    }
    let deadline = match thread.kind.get() {
        Kind::User => Timeouts(thread.timeouts.get()).receive().deadline(clock::now_us()),
        _ => Deadline::Never,
    };
    match deadline {
        Deadline::Now => {
            fail_early(thread, IpcErrorKind::Timeout, Phase::Receive);
            return Begun::Failed;
        }
        Deadline::At(at_us) => {
            early::wake_at(thread, at_us);
            waits_specially(thread, from);
        }
        Deadline::Never if thread.kind.get() == Kind::User => {
            let _ = waits_plainly(thread, from, ThreadId::NIL) || waits_specially(thread, from);
        }
        Deadline::Never => {
            // The message to the pager has disarmed it.
            if thread.kind.get() == Kind::TransferFault {
                timeout::rearm_transfer_timeout(thread);
            }
            waits_specially(thread, from);
        }
    }
    Begun::Waits
}

/// Waits in a way that the fast path may serve: for ever, for anybody or for one other who
/// exists. This is told apart here, once, instead of there. `false`, and nothing has changed,
/// if it is anything else.
#[inline(always)]
fn waits_plainly(thread: TcbRef, from: ThreadId, met: ThreadId) -> bool {
    if thread.halted.get() {
        return false;
    }
    if from == ThreadId::ANY {
        rendezvous::set_open(thread);
        return true;
    }
    let plain = from == met || is_other_thread(thread, from);
    if plain {
        rendezvous::set_closed(thread, from);
    }
    plain
}

#[inline(never)]
fn is_other_thread(thread: TcbRef, id: ThreadId) -> bool {
    let found = thread::lookup(id);
    found.is_some_and(|other| other != thread && id.number() >= SYSTEM_BASE)
}

/// Waits in a way that only the complete path knows; always `true`.
fn waits_specially(thread: TcbRef, from: ThreadId) -> bool {
    thread.partner.set(from);
    rendezvous::set_busy(thread, Busy::Waiting);
    true
}

/// Whether the one thread that `thread` is to receive from is queued for it.
#[must_use]
pub fn has_sender(thread: TcbRef) -> bool {
    named_sender(thread, thread.then_from.get()).is_some()
}

fn named_sender(thread: TcbRef, from: ThreadId) -> Option<TcbRef> {
    thread.senders.first()?;
    let direct = thread::lookup(from).filter(|sender| {
        wait::waits(*sender) == Waits::Busy(Busy::Polling)
            && sender.partner.get() == thread.id.get()
            && sender.sending.are_linked()
    });
    direct.or_else(|| {
        thread.senders.iter().find(|sender| propagation::is_virtual(*sender, thread, from))
    })
}
