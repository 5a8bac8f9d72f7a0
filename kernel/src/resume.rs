//! What a thread does when it gets the processor and is not simply to return to
//! user mode: it goes on with an operation in which it was preempted or had to wait.

use crate::arch::preemption;
use crate::ipc::{receive, transfer};
use crate::irq::{self, wake};
use crate::sched::{self, slice, waker};
use crate::thread::TcbRef;
use crate::thread::tcb::Resume;
use crate::{call, destruction, lrpc, unmap};

/// Goes on with what `current` was doing; returns who runs next. `entered` makes the entry that it has made on
/// another processor: the way in is above this (`arch::entry`).
#[inline(always)] // a part of it
#[must_use]
pub fn resume(current: TcbRef, entered: impl Fn(TcbRef) -> TcbRef) -> TcbRef {
    let what = current.resume.get();
    use Resume::{Again, Bind, Destroy, Receive, Transfer, Unmap, Wake};
    if matches!(what, Transfer | Receive | Unmap | Destroy | Wake | Again | Bind | Resume::Entered)
    {
        // Interrupts and a switch led here, and what follows may be as long; what comes now
        // is handled after the next step. Of those who have made entries elsewhere many may come in a row.
        preemption::let_in();
    }
    match what {
        Resume::Transfer => transfer::resume(current),
        Resume::Receive => {
            current.resume.set(current.kind.get().home());
            receive::receive(current)
        }
        Resume::Unmap => unmap::resume(current),
        Resume::Destroy => destruction::resume(current),
        Resume::Wake => wake(current),
        Resume::Bind => lrpc::bind::resume(current),
        Resume::Again => call::again(current),
        Resume::Entered => entered(current),
        Resume::Anew => {
            // The look has found nothing that leads elsewhere, now: not to be asked again on the way out.
            current.resume.set(Resume::Frame);
            sched::go_on(current)
        }
        Resume::Ipc | Resume::Frame | Resume::Idle => sched::go_on(current),
    }
}

/// Interrupts were noted on the way out of the kernel, after whatever noted them before was handled;
/// `next`, queued, is about to go on. Those that come meanwhile, in windows, are handled, too: nobody behind
/// this looks for them. It ends, for a device's line is masked once it is noted, who comes back from elsewhere
/// does not go there in between, and the timer's interrupts are further apart than a round is long.
#[must_use]
pub fn interrupted(mut next: TcbRef) -> TcbRef {
    loop {
        next = handled(next);
        if !preemption::is_due() {
            return next;
        }
        sched::requeue(next);
    }
}

/// A round of that. Whoever goes first for the sake of a long operation does so here, too, or it would wait
/// for one tick more.
fn handled(next: TcbRef) -> TcbRef {
    let chosen = irq::handle_pending(next);
    if chosen != next {
        return chosen;
    }
    match next.resume.get() {
        Resume::Destroy => destruction::give_way(next),
        Resume::Again => call::give_way(next),
        Resume::Unmap => unmap::give_way(next),
        Resume::Transfer => transfer::give_way(next),
        Resume::Wake => slice::give_way(next, waker::before()),
        _ => next,
    }
}

/// The waker goes on until somebody else should run: who does.
fn wake(waker: TcbRef) -> TcbRef {
    while wake::go_on(waker) {
        if preemption::must_stop() {
            sched::requeue(waker);
            return interrupted(waker);
        }
        let next = slice::reschedule(waker);
        if next != waker {
            return next;
        }
    }
    sched::blocked(waker)
}
