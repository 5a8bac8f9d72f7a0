//! Who is more urgent than all for whom other processors want something of this one: such a thread, when an interrupt
//! makes it ready, runs first, and they are looked at when it has run. Without that a handler waits for the look,
//! which is the longer the more threads run elsewhere, however little they are allowed.
//!
//! A look is owed for no longer than until the second tick: the first may put it off, the next one does it to its end.

use crate::arch::cpu;
use crate::elsewhere::{Other, go_on, wants_nothing_here};
use crate::sched::leaving::{LINE, Owes, look_soon};
use crate::thread::{TcbRef, close_fast_path, current};

/// `running` may go on, others are to be looked at, and interrupts have been delivered: whether somebody who is ready
/// now goes first.
#[must_use]
pub(super) fn goes_first(running: TcbRef) -> bool {
    let is_above = |best: &TcbRef| best.priority.get() > running.priority.get();
    let best = cpu().scheduler.ready.highest().filter(is_above);
    // Who would leave does so by the look.
    let best = best.filter(|best| !wants_nothing_here(*best));
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

/// A look is owed, and `next` is about to run: if it is another thread than until now, the look comes before it, unless it
/// is above all, too.
pub fn look_before(next: TcbRef) {
    if next == current() {
        return;
    }
    if is_above_all(next) {
        see_who_is_next();
    } else {
        look_soon();
    }
}

/// Whether `thread`, before whom nobody who is ready comes, is more urgent than all who are elsewhere or wait for that.
fn is_above_all(thread: TcbRef) -> bool {
    let priority = thread.priority.get();
    let first = |other: &Other| other.first().map_or(0, |first| first.priority.get());
    cpu().guests.all().all(|(_, other)| other.most() < priority)
        && cpu().scheduler.wanted.all().all(|(_, other)| first(other) < priority)
}
