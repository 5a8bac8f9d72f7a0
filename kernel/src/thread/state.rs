//! What a thread is doing: one value, which every question about it is asked of.
//!
//! It stands in three fields, so that the fast path has to look at one of them only: the rendezvous
//! word says that the thread waits, or why it can't be met; `transfer.part`, that it takes part
//! in a transfer, whatever else it does for that (it may ask its pager for a page, or be
//! preempted); `resume`, that it is between the phases of its IPC. [`State`] is what they
//! come to, [`broken`] what they must not say together (decision 0047).
//!
//! | from | to | by |
//! |---|---|---|
//! | `Inactive` | `Waits` | `lifecycle::activate` |
//! | `Ready` | `Polls` | `send::later`, `irq::deliver` |
//! | `Ready`, `BetweenPhases` | `Waits` | `receive::begin`; the fast path |
//! | `Ready`, `Waits`, `Polls` | `Transfers` | `transfer::begin`, both partners at once |
//! | `Waits`, `Polls` | `Ready`, `Halted` | `finish` (delivered), `fail` (ended); the fast path |
//! | `Waits`, `Polls`, `Transfers` | `BetweenPhases` | `receive::receive_elsewhere` |
//! | `Transfers` | `Ready`, `Halted`, `Waits` | `finish::settle`, both partners at once |
//! | `Ready` | `Calls`, `Lent` | `lrpc`; its fast path |
//! | `Calls`, `Lent` | `Ready`, `Halted` | `lrpc`; its fast path |
//! | `Ready`, `Halted` | `Halted`, `Ready` | ExchangeRegisters, `kernel_message::failed` |

use abi::ThreadId;

use crate::thread;
use crate::thread::part::Part;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::tcb::{Job, Resume};
use crate::thread::{Kind, TcbRef};

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Created and not yet activated: it has no UTCB.
    Inactive,
    /// Stopped until somebody resumes it.
    Halted,
    /// Runs, or could.
    Ready,
    /// Its send phase is over; its receive phase begins when it runs.
    BetweenPhases,
    /// Waits to send to this thread.
    Polls(ThreadId),
    /// Waits for a message of this thread, or of any.
    Waits(ThreadId),
    /// Takes part in a transfer.
    Transfers(Part),
    /// Waits for a procedure that it has called to return ([`crate::lrpc`]).
    Calls,
    /// Waits, as a host, for a call.
    Lent,
}

impl State {
    /// What `thread` is doing, for those who only look (`ipc::wait::state` also brings waits back).
    #[must_use]
    pub fn seen(thread: TcbRef) -> Self {
        Self::from(thread, rendezvous::peek(thread))
    }

    /// The same of a thread that waits so.
    #[must_use]
    pub fn from(thread: TcbRef, waits: Waits) -> Self {
        if let Some(part) = thread.transfer.part.get() {
            return Self::Transfers(part);
        }
        if thread.is_between_phases() {
            return Self::BetweenPhases;
        }
        match waits {
            Waits::Open => Self::Waits(ThreadId::ANY),
            Waits::Closed(from) => Self::Waits(from),
            Waits::Busy(Busy::Waiting) => Self::Waits(thread.partner.get()),
            Waits::Busy(Busy::Polling) => Self::Polls(thread.partner.get()),
            Waits::Busy(Busy::Inactive) => Self::Inactive,
            Waits::Busy(Busy::Halted) => Self::Halted,
            Waits::Busy(Busy::Calls) => Self::Calls,
            Waits::Busy(Busy::Lent) => Self::Lent,
            // In a transfer with nobody: `broken` says so.
            Waits::Busy(Busy::Ready | Busy::Transfer) => Self::Ready,
            // Likewise.
            Waits::Nonsense => Self::Halted,
        }
    }
}

/// Says to `fault` what of `thread` can't be true together.
pub fn broken(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let state = State::seen(thread);
    fault(
        (state == State::Inactive) != (thread.utcb_k.get() == 0),
        "has a UTCB and is inactive, or is active without one",
    );
    let is_current = crate::thread::current() == thread;
    fault(
        state == State::Ready && thread.halted.get() && !is_current,
        "is halted and ready at the same time",
    );
    fault(
        state == State::Ready && thread.kind.get() != Kind::User,
        "runs while the kernel exchanges a message for it",
    );
    fault(
        rendezvous::peek(thread) == Waits::Nonsense,
        "has a rendezvous word that stands for no state",
    );
    fault(
        thread.is_foreign() && thread.is_armed(),
        "is foreign, and takes part in messages without the kernel",
    );
    let is_public_there = rendezvous::is_public(thread) && thread.is_elsewhere();
    fault(
        rendezvous::is_published_there(thread) != is_public_there,
        "waits for messages from user mode of another processor than its own",
    );
    waiting(thread, fault);
    transfer(thread, fault);
    going_on(thread, fault);
}

/// What may be said of a thread that the fast path, or user mode, may wake.
fn waiting(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let plain = matches!(rendezvous::peek(thread), Waits::Open | Waits::Closed(_));
    fault(
        plain && thread.halted.get(),
        "is halted and waits in a way that lets the fast path wake it",
    );
    fault(
        plain && thread.kind.get() != Kind::User,
        "waits for the reply to a kernel-made message as if it were its own",
    );
    fault(
        crate::thread::current() != thread && rendezvous::is_unsealed(thread),
        "uses vector registers and waits as if it did not",
    );
    let is_public = rendezvous::is_public(thread);
    fault(
        is_public && !thread.is_armed(),
        "waits for messages from user mode, which it gets none of",
    );
    let timed_or_wanted = thread.wake_at_us.get() != 0 || !thread.senders.is_empty();
    fault(
        is_public && (thread.kind.get() != Kind::User || thread.halted.get() || timed_or_wanted),
        "may be woken from user mode, but waits for something else",
    );
    // A thread that has never been armed has a zero there.
    let has_been = thread.armed_rendezvous.get() != 0;
    let found = has_been && rendezvous::armed_wait(thread).is_some();
    fault(
        found != rendezvous::is_armed(thread),
        "armed threads find it waiting, and it does not, or the other way round",
    );
    fault(
        has_been && rendezvous::armed_wait_of_others(thread).is_some(),
        "armed threads that differ from it in using vector registers find it waiting",
    );
    fault(
        rendezvous::is_armed(thread) && !thread.is_armed(),
        "waits for messages of armed threads, which it gets none of",
    );
    fault(
        rendezvous::is_armed(thread) && thread.partner.get() != rendezvous::NOBODY,
        "has a partner in sight that it does not wait for, so that nobody looks whom it waits for",
    );
    fault(
        (plain || is_public) && thread.resume.get() != Resume::Ipc,
        "waits in a way that the fast path may end, but will not return from an IPC",
    );
}

fn transfer(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let state = &thread.transfer;
    let part = state.part.get();
    fault(
        part.is_some_and(|part| !is_answered(thread, part)),
        "its transfer partner does not know of the transfer",
    );
    if let Some(outer) = state.outer.get() {
        fault(!matches!(part, Some(Part::ReceivesFrom(_))), "is answered without being answered");
        fault(
            !is_answered(thread, outer),
            "the partner of the transfer that met its fault does not know of it",
        );
    }
    fault(
        part.is_none() && rendezvous::peek(thread) == Waits::Busy(Busy::Transfer),
        "is in a transfer with nobody",
    );
    fault(
        part.is_none() && thread.kind.get() == Kind::TransferFault,
        "asks its pager for a page of a transfer that is over",
    );
}

/// Whether the partner plays the other part in the transfer in which `thread` plays `part`.
fn is_answered(thread: TcbRef, part: Part) -> bool {
    let peer = part.peer();
    let other = match part {
        Part::SendsTo(_) => Part::ReceivesFrom(thread),
        Part::ReceivesFrom(_) => Part::SendsTo(thread),
    };
    let lives = thread::lookup_number(peer.id.get().number()) == Some(peer);
    lives && [peer.transfer.part.get(), peer.transfer.outer.get()].contains(&Some(other))
}

/// Whether a memory operation under way is that with which the thread goes on.
fn going_on(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let job = thread.job.take();
    let resume = thread.resume.get();
    let fits = match &job {
        None => true,
        Some(Job::Map(_)) => matches!(thread.transfer.part.get(), Some(Part::SendsTo(_))),
        Some(Job::Unmap(_)) => resume == Resume::Unmap,
        Some(Job::Destroy(_)) => resume == Resume::Destroy,
    };
    thread.job.set(job);
    fault(!fits, "has a memory operation under way with which it does not go on");
    fault(matches!(resume, Resume::Idle | Resume::Wake), "goes on as a thread of the kernel's own");
}
