//! Who is more urgent than all for whom other processors want something of this one: such a thread, when an interrupt
//! makes it ready, runs first, and they are looked at when it has run. Without that a handler waits for the look,
//! which is the longer the more threads run elsewhere, however little they are allowed.
//!
//! A look is owed for no longer than until the second tick: the first may put it off, the next one does it to its end.

use crate::arch::cpu;
use crate::elsewhere::{Other, go_on, wants_nothing_here};
use crate::sched::early;
use crate::sched::leaving::{self, LINE, Owes, look_soon};
use crate::thread;
use crate::thread::{TcbRef, close_fast_path, current};

/// `running` may go on, others are to be looked at, and interrupts have been delivered: whether somebody who is ready
/// now goes first. If not, a look comes now.
#[must_use]
pub(super) fn goes_first(running: TcbRef) -> bool {
    let (scheduler, noted) = (&cpu().scheduler, &cpu().pending_lines);
    // Whoever is met on the way to the first who is ready may be many: what is looked for stops for what is noted.
    noted.set(noted.get() & !(1 << LINE));
    let is_above = |best: &TcbRef| best.priority.get() > running.priority.get();
    let best = scheduler.ready.highest().filter(is_above);
    // Who would leave does so by the look. And whoever may delay its preemption may run on.
    let best = best.filter(|best| !wants_nothing_here(*best) && running.max_delay_us.get() == 0);
    let goes = running.is_ready() && best.is_some_and(is_above_all);
    if goes {
        put_off();
    }
    goes
}

/// Nothing but a look is noted: it is owed from now on, and nothing is noted. Whoever stands still goes on.
pub fn put_off() {
    let (scheduler, noted) = (&cpu().scheduler, &cpu().pending_lines);
    noted.set(noted.get() & !(1 << LINE));
    let _ = go_on();
    scheduler.owes.set(Owes::Look);
    scheduler.wakeup.look_again();
    see_who_is_next();
}

/// The switch to another thread passes through `entry::switch`, and so by [`look_before`].
fn see_who_is_next() {
    cpu().look_first.set(true);
    close_fast_path();
}

/// Nothing but a look is noted, again and again, and `next` is about to run: it has its turn, for a moment, unless it is the
/// idle thread, would leave, or somebody more urgent waits for the look. Whether it is so.
#[must_use]
pub fn has_turn(next: TcbRef) -> bool {
    let is_idle = cpu().scheduler.idle.get() == Some(next);
    let has = leaving::is_all()
        && !is_idle
        && !wants_nothing_here(next)
        && most_urgent() <= next.priority.get();
    if has {
        put_off();
        early::interrupt_in(early::GAP_US);
    }
    has
}

/// A look is owed, and `next` is about to run: if it is another thread than until now, the look comes before it, unless it
/// is above all, too.
pub fn look_before(next: TcbRef) {
    if next == current() {
        return;
    }
    if is_above_all(next) && !wants_nothing_here(next) {
        see_who_is_next();
    } else {
        look_soon();
    }
}

/// Whether `thread`, before whom nobody who is ready comes, is more urgent than all who are elsewhere or wait for that.
fn is_above_all(thread: TcbRef) -> bool {
    most_urgent() < thread.priority.get()
}

/// The highest priority of those who are elsewhere, or wait to go there and are known to.
fn most_urgent() -> u8 {
    let scheduler = &cpu().scheduler;
    let first = |other: &Other| other.first().map_or(0, |first| first.priority.get());
    let there = cpu().guests.all().map(|(_, other)| other.most());
    let wait = scheduler.wanted.all().map(|(_, other)| first(other));
    let leave = scheduler.leaving.all().filter_map(thread::lookup).map(|it| it.priority.get());
    there.chain(wait).chain(leave).max().unwrap_or(0)
}
