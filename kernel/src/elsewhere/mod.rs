//! Threads whose user code runs on another processor, while all that the kernel knows of them is
//! the first one's (docs/decisions/0055-user-code-runs-elsewhere.md).
//!
//! A thread whose processor is another is *away* from when it would return to user mode until its
//! next entry: its rendezvous word says so, and nobody takes it for ready. It is queued for that
//! processor here, and at most one of the queue is there, in its berth. Who wants to change a
//! thread, or the tables of its space, calls it back first ([`recall`], [`quiet`]).
//!
//! Everything here is the first processor's, with interrupts off.

mod back;
mod hidden;
mod other;
mod party;
pub mod procedure_calls;
mod queueing;
mod seat;
mod standstill;

use abi::inspect::Back;

use crate::arch::{clock, cpu};
use crate::between::berth::{Call, OtherSide};
use crate::sched::leaving::{self, Owes, look_soon, wants_to_leave};
use crate::sched::{pick, slice};
use crate::thread::tcb::Resume;
use crate::thread::{TcbRef, rendezvous};
use crate::{local, thread};

pub use crate::arch::elsewhere::visits;
pub use back::go_back;
pub use hidden::may_be_running;
pub use other::{Other, exists};
pub use queueing::{make_ready, requeue};
pub use seat::{frames_of_seats, leave_seat};
pub use standstill::{go_on, lets_all_go_on, quiet, vacate};

/// Calls `each` with the number of every other processor, and what is kept of it.
pub fn for_each(mut each: impl FnMut(u32, &'static Other)) {
    for number in visits::kept() {
        if let Some(other) = visits::other(number) {
            each(number, other);
        }
    }
}

/// Whether `thread` would go on in user mode, and elsewhere.
pub fn leaves(thread: TcbRef) -> bool {
    wants_nothing_here(thread) && may_go(thread)
}

/// Whether the processor of `thread`, whose user code runs elsewhere, takes anybody now.
fn may_go(thread: TcbRef) -> bool {
    visits::other(thread.processor.get().into()).is_some_and(|other| !other.rests())
}

/// Whether `thread`, whose user code runs elsewhere, would go on in user mode.
pub fn wants_nothing_here(thread: TcbRef) -> bool {
    thread.is_elsewhere()
        && matches!(thread.resume.get(), Resume::Ipc | Resume::Frame | Resume::Anew)
        && thread.is_ready()
}

/// `next` is about to run. If it does so elsewhere, it is queued there, and another one is
/// returned; a look at who comes (`irq::comers`) or [`left`] lets it go, which is not before the registers of whoever
/// has run until now are saved.
#[must_use]
pub fn leave(mut next: TcbRef) -> TcbRef {
    while wants_nothing_here(next) {
        let scheduler = &cpu().scheduler;
        if !may_go(next) && scheduler.leaving.keep(next.id.get()) {
            // It goes on here, where its current word would not be looked at, until a tick finds that it may leave:
            // by then it may be waiting behind somebody more urgent.
            local::disarm(next);
            scheduler.wakeup.look_again();
            break;
        }
        send(next);
        next = pick();
        // Users decide how many such threads there are.
        if leaving::something_else_is_due() {
            break;
        }
    }
    next
}

/// Somebody else runs here now, and the registers of `before` are saved: it leaves if it is ready,
/// and others that have been waiting for that.
pub fn left(before: TcbRef) {
    // If it is the current one still, something is noted that comes before.
    if before != thread::current() && leaves(before) {
        send(before);
    }
    // If a look is owed, whoever runs now goes first.
    if cpu().scheduler.owes.get() == Owes::Nothing {
        advance_all();
    }
}

/// Queues `thread`, which [`leaves`], for its processor.
#[inline(never)]
pub fn send(thread: TcbRef) {
    if let Some(other) = visits::other(thread.processor.get().into()) {
        set_out(thread);
        // Where there is one processor nobody stands between a thread and the rest of its slice, either.
        waits_first(thread.processor.get().into(), other, thread);
    }
}

/// `thread`, which [`leaves`], is away from now on. It takes what is left of its slice along: whoever runs here on it goes
/// on with the same, but it is nobody's any more, at whose end its owner would be queued anew, and here.
#[inline(never)]
fn set_out(thread: TcbRef) {
    let scheduler = &cpu().scheduler;
    thread.keep_user_state();
    if scheduler.slice_owner.get() == Some(thread) {
        // What it has done here is not whose turn comes next.
        let _ = slice::charge(thread::current(), clock::now_us());
        thread.slice_left_us.set(scheduler.slice_left_us.get());
        slice::disown(thread);
    }
    scheduler.ready.remove(thread);
    rendezvous::set_away(thread);
}

/// Lets the most urgent thread of each queue go, where there is room or somebody less urgent. If something else is
/// noted meanwhile, a look goes on.
pub fn advance_all() {
    for (number, other) in cpu().scheduler.wanted.all() {
        advance(number, other);
        if leaving::look_waits() {
            return look_soon();
        }
    }
}

/// The same for the queue of one processor.
pub fn advance(number: u32, other: &Other) {
    let current = thread::current();
    if current.is_elsewhere() && !current.is_ready() {
        // It is about to leave the processor, and may go with whomever it has called when its
        // registers are saved ([`left`]).
        return;
    }
    if other.rests() {
        // The next tick looks whether that is over.
        if let Some(first) = other.first() {
            let _ = cpu().scheduler.leaving.keep(first.id.get());
            cpu().scheduler.wakeup.look_again();
        }
        return;
    }
    while let Some(best) = other.first() {
        match other.guest.get() {
            None => {
                queueing::remove(&other.ready, best);
                enter(number, other, best);
            }
            Some(guest) if best.priority.get() > least(other, guest) => {
                let _ = call_back(number, other, Back::Urgent);
            }
            Some(_) => return,
        }
    }
    cpu().scheduler.wanted.remove(number);
}

/// The lowest priority of those who are there: one of them runs.
#[inline(never)]
pub fn least(other: &Other, guest: TcbRef) -> u8 {
    if other.party.hides() {
        return hidden::least(guest);
    }
    other.party.least().unwrap_or(guest.priority.get())
}

/// `thread`, which is away and not queued, is offered to processor `number`, where nobody is.
#[inline(always)]
fn enter(number: u32, other: &Other, thread: TcbRef) {
    let scheduler = &cpu().scheduler;
    if thread.quantum_left_us.get() == 0 {
        return out_of_time(other, thread);
    }
    if thread.slice_left_us.get() == 0 {
        thread.slice_left_us.set(thread.timeslice_us.get());
    }
    let now_us = clock::now_us();
    other.charged_us.set(now_us);
    other.guest.set(Some(thread));
    cpu().guests.add(number);
    scheduler.quiet.set(None);
    // The ticks look at it while it is there.
    scheduler.wakeup.look_again();
    let _ = party::invite(number, other, thread);
    if visits::berth(number).offer(thread.visitor.get()) == OtherSide::IsAway {
        visits::interrupt(number);
    }
    scheduler.watches.set(true);
}

/// Whoever is in the berth comes back, now, and everybody who is there with it: either it is
/// away and the first of the queue, or it has made an entry and is ready. Returns who that is.
pub fn call_back(number: u32, other: &Other, why: Back) -> Option<TcbRef> {
    let (guest, berth) = (other.guest.get()?, visits::berth(number));
    cpu().scheduler.stopped.remove(number);
    let was_there = match berth.call_back() {
        Call::NotCome => false,
        Call::Here => {
            visits::interrupt(number);
            true
        }
        Call::Returned => true,
        Call::Empty => unreachable!("the berth of a guest is empty"),
    };
    if was_there {
        other.note_back(why);
        // It answers an interrupt within its own longest stretch, and never waits for this one.
        visits::wait(number, &|| berth.fetch());
    }
    let thread = has_left(number, other, guest);
    if was_there {
        queue(number, other, thread);
    } else {
        waits_first(number, other, thread);
    }
    Some(thread)
}

/// Charges `thread`, which is in the berth, its time; whether its quantum is used up.
#[inline(always)]
pub fn charge(other: &Other, thread: TcbRef, now_us: u64) -> bool {
    let used_us = now_us.saturating_sub(other.charged_us.replace(now_us));
    thread.used_us.set(thread.used_us.get().wrapping_add(used_us));
    for left in [&thread.slice_left_us, &thread.quantum_left_us] {
        if left.get() != u64::MAX {
            left.set(left.get().saturating_sub(used_us));
        }
    }
    thread.quantum_left_us.get() == 0
}

/// The quantum of `thread`, which is not there any more, is used up: its scheduler is told when it runs here.
#[cold]
#[inline(never)]
pub fn out_of_time(other: &Other, thread: TcbRef) {
    if thread.is_away() {
        let _ = thread.is_told_of_its_time();
        other.gives_up(thread);
    }
}

/// `guest` is not in the berth any more; returns who has run there on its slice.
#[inline(always)]
pub fn has_left(number: u32, other: &Other, guest: TcbRef) -> TcbRef {
    let _ = charge(other, guest, clock::now_us());
    cpu().guests.remove(number);
    let runner = party::home(number, other).unwrap_or(guest);
    other.guest.set(None);
    if runner != guest {
        // It may have left the slice of its own to somebody here, when it began to wait: as in [`set_out`].
        slice::disown(runner);
        // It goes on with the slice on which it has run, as far as that is one of its own.
        let left_us = guest.slice_left_us.replace(0);
        runner.slice_left_us.set(left_us.min(runner.timeslice_us.get()));
    }
    runner
}

/// `thread`, which was there, is ready to make its entry, or waits to go there again.
pub fn queue(number: u32, other: &Other, thread: TcbRef) {
    if thread.frame().is_of_an_entry() {
        thread.resume.set(Resume::Entered);
        make_ready(thread);
        if thread.slice_left_us.get() != 0 {
            cpu().scheduler.ready.insert_first(thread);
        }
    } else {
        waits_first(number, other, thread);
    }
}

/// `thread`, which is away, is the first of its priority to go to processor `number`, or the last if its slice is over.
fn waits_first(number: u32, other: &Other, thread: TcbRef) {
    if thread.slice_left_us.get() == 0 {
        other.ready.insert(thread);
    } else {
        other.ready.insert_first(thread);
    }
    cpu().scheduler.wanted.add(number);
}

/// Somebody is about to read or change `thread`: afterwards it is here, and an entry that it has
/// made elsewhere has not been made yet.
pub fn recall(thread: TcbRef) {
    if thread.is_elsewhere() {
        fetch(thread);
    }
}

#[cold]
fn fetch(thread: TcbRef) {
    let number = u32::from(thread.processor.get());
    let Some(other) = visits::other(number) else { return };
    let is_there = other.guest.get() == Some(thread) || rendezvous::is_seated(thread);
    if is_there || may_be_running(thread) {
        let _ = call_back(number, other, Back::Control);
    }
    if thread.is_away() {
        other.gives_up(thread);
    } else if thread.resume.get() == Resume::Entered && thread.frame().make_again() {
        thread.resume.set(Resume::Frame);
        wants_to_leave(thread);
    }
    look_soon();
}

/// Somebody asks for `thread`, which is there with others, by a message or for its state: they
/// all come back, and its state is in its tcb.
pub fn bring_back(thread: TcbRef) {
    let number = u32::from(thread.processor.get());
    let Some(other) = visits::other(number) else { return };
    other.note_question();
    if call_back(number, other, Back::Asked).is_none() {
        unreachable!("nobody is there with {thread:?}");
    }
    look_soon();
}

/// `thread`, whose user code runs elsewhere, has begun to wait and leaves the processor.
pub fn begins_to_wait(thread: TcbRef) {
    party::remember(thread);
}

/// Whether `thread` is where it is said to be; for the checker.
#[must_use]
pub fn is_sound(thread: TcbRef) -> bool {
    let other = visits::other(thread.processor.get().into());
    let is_linked = thread.ready.are_linked();
    let is_there = other.is_some_and(|other| other.guest.get() == Some(thread));
    let is_with = other.is_some_and(|other| {
        other.party.has(thread) || other.party.hides() && other.guest.get() == Some(thread)
    });
    if rendezvous::is_seated(thread) {
        let somebody = other.is_some_and(|other| other.guest.get().is_some());
        return thread.is_elsewhere() && is_with && somebody && !is_linked;
    }
    match rendezvous::is_away(thread) {
        true => thread.is_elsewhere() && other.is_some() && is_there != is_linked && !is_with,
        false => !is_there && !is_with,
    }
}
