//! Guests that may hand over to others of their space in user mode (`local::there`): which of them runs is
//! known when they are back.
//!
//! Such a guest is alone for its processor, and here as if it were seated: whoever wants to know more of it, or of
//! somebody to whom it could hand over, calls it back first.

use super::{Other, queueing, visits};
use crate::arch::{cpu, preemption};
use crate::local::there;
use crate::thread::tcb::Resume;
use crate::thread::{TcbRef, rendezvous};

/// `guest`, which is armed, is about to go to the processor of which `other` is kept. Whether it may hand over
/// there: not if that could pass over somebody who is queued or waits to send, nor if somebody here asks for one
/// of them all the time.
pub(super) fn goes(other: &Other, guest: TcbRef) -> bool {
    let passes_over = |first: TcbRef| first.priority.get() > least(guest);
    let is_closed = !guest.senders.is_empty()
        || other.keeps_to_itself()
        || other.first().is_some_and(passes_over);
    if is_closed {
        there::closes(guest);
    } else {
        there::opens(guest);
        rendezvous::set_seated(guest);
    }
    !is_closed
}

/// Whether somebody is elsewhere who may have handed over to `thread`, or be about to.
#[must_use]
pub fn may_be_running(thread: TcbRef) -> bool {
    let may_hand_over = |other: &Other| {
        let is_near = |guest: TcbRef| guest.same_space(thread);
        other.party.hides() && other.guest.get().is_some_and(is_near)
    };
    visits::other(thread.processor.get().into()).is_some_and(may_hand_over)
}

/// The lowest priority of those who may run in place of `guest`, and of itself.
#[inline(never)]
pub(super) fn least(guest: TcbRef) -> u8 {
    let mut least = guest.priority.get();
    if let Some(space) = guest.space() {
        space.task.armed.each(|armed| {
            if armed.processor.get() == guest.processor.get() {
                least = least.min(armed.priority.get());
            }
        });
    }
    least
}

/// `guest` is back, with the registers of whoever has run in its place; returns who that is, which is away.
#[inline(never)]
pub(super) fn come_home(guest: TcbRef) -> TcbRef {
    // It has been waited for, and those who are meant now are as many as its task has armed.
    preemption::let_in();
    let runner = there::claimed(guest).unwrap_or(guest);
    if runner != guest {
        // Who waits may still be queued here (1993, 5.3.4).
        queueing::remove(&cpu().scheduler.ready, runner);
        visits::copy_frame(guest, runner);
        runner.fault_address.set(guest.fault_address.get());
    }
    visits::mend(runner);
    runner.resume.set(Resume::Frame);
    rendezvous::set_away(runner);
    preemption::let_in();
    if runner != guest {
        there::handed_over(guest, runner, visits::completion_point());
    }
    there::came_home(guest, runner);
    runner
}
