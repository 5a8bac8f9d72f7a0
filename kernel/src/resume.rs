//! What a thread does when it gets the processor and is not simply to return to
//! user mode: it goes on with an operation in which it was preempted or had to wait.

use crate::arch::{cpu, preemption};
use crate::ipc::{receive, transfer};
use crate::irq::{self, ahead, wake};
use crate::sched::leaving::Owes;
use crate::sched::{self, slice, waker};
use crate::thread::TcbRef;
use crate::thread::tcb::Resume;
use crate::{call, destruction, elsewhere, lrpc, unmap};

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

/// How often in a row it is looked who has come back from other processors before somebody runs.
const ROUNDS: u32 = 4;

/// Something is noted or owed, maybe, and `next` is about to leave the kernel: who does, once that has been handled.
#[inline(always)] // a part of it
#[must_use]
pub fn way_out(mut next: TcbRef) -> TcbRef {
    if cpu().scheduler.owes.get() != Owes::Nothing {
        // The short way back would pass over it.
        ahead::look_before(next);
    } else if preemption::is_due() {
        next = elsewhere::go_back(next).unwrap_or(next);
    }
    if preemption::is_due() {
        sched::requeue(next);
        return interrupted(next);
    }
    next
}

/// Interrupts were noted on the way out of the kernel, after whatever noted them before was handled;
/// `next`, queued, is about to go on. Those that come meanwhile, in windows, are handled, too: nobody behind
/// this looks for them. It ends, for a device's line is masked once it is noted, the timer's interrupts are further
/// apart than a round is long, and of those who come back from elsewhere, one after the other, as many as users
/// like, the rest is looked at when somebody has run, for a moment at most.
#[must_use]
pub fn interrupted(mut next: TcbRef) -> TcbRef {
    let mut rounds = 0;
    loop {
        next = handled(next);
        rounds += 1;
        if !preemption::is_due() || rounds >= ROUNDS && ahead::has_turn(next) {
            return next;
        }
        sched::requeue(next);
    }
}

/// `next` has been entered, behind `turns` others who were in this one exit of the kernel: whether it leaves it. If not,
/// something has been noted meanwhile, in what is done for other processors behind a switch.
#[must_use]
pub fn leaves(next: TcbRef, turns: &mut u32) -> bool {
    *turns += 1;
    !preemption::is_due() || *turns >= ROUNDS && ahead::has_turn(next)
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
