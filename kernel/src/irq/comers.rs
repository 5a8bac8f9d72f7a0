//! Who comes back from other processors, and who leaves: looked at on the way out of the kernel, and in a tick, which
//! charges whoever is there, on whose slice its party runs, too, and ends slices and quanta.

use abi::inspect::Back;

use super::{ahead, quick};
use crate::arch::preemption::{self, Pace};
use crate::arch::{clock, cpu};
use crate::elsewhere::{
    Other, advance, advance_all, call_back, charge, go_on, least, leaves, out_of_time, requeue,
    send, visits, wants_nothing_here,
};
use crate::ipc::wait;
use crate::sched::leaving::{LINE, Owes, look_soon, look_waits};
use crate::thread;
use crate::thread::TcbRef;
use crate::thread::tcb::Resume;

/// Looks who has come back, and lets others go. Whatever else is noted meanwhile is handled first, behind one of them at
/// least; the rest stays noted then.
pub fn look() {
    let (scheduler, noted) = (&cpu().scheduler, &cpu().pending_lines);
    noted.set(noted.get() & !(1 << LINE));
    if !scheduler.stopped.is_empty() {
        let _ = go_on();
    }
    if !all_leave() || !all_come() {
        return look_soon();
    }
    if scheduler.owes.get() != Owes::Nothing {
        charge_all();
    }
    advance_all();
    scheduler.owes.set(Owes::Nothing);
}

/// Those who have become ready leave; whether all of them have been looked at.
fn all_leave() -> bool {
    let leaving = &cpu().scheduler.leaving;
    let mut ids = leaving.take_all();
    while let Some(id) = ids.next() {
        if let Some(thread) = thread::lookup(id) {
            look_at(thread);
            if look_waits() {
                ids.for_each(|id| leaving.add(id));
                return false;
            }
        }
    }
    let has_searched = !leaving.has_missed() || search();
    if !leaving.is_empty() {
        cpu().scheduler.wakeup.look_again();
    }
    has_searched
}

/// Those who have come back are here; whether all of them are.
fn all_come() -> bool {
    for (number, other) in cpu().guests.all() {
        if let Some(thread) = other.guest()
            && visits::berth(number).fetch()
        {
            if let Some(handler) = quick::has_come(number, other, thread) {
                requeue(handler);
            }
            if look_waits() {
                return false;
            }
        }
    }
    true
}

/// More have become ready than could be remembered: as many of them as can be now are, for the next tick. They are
/// queued here. Whether all could be looked at.
#[cold]
#[inline(never)]
fn search() -> bool {
    let scheduler = &cpu().scheduler;
    scheduler.leaving.begin_search();
    let mut pace = Pace::default();
    for thread in scheduler.ready.all() {
        // Of rings with few members none lets interrupts in by itself.
        pace.round();
        if wants_nothing_here(thread) && !scheduler.leaving.has_room_for(thread.id.get()) {
            return true;
        }
        if preemption::is_due() && look_waits() {
            scheduler.leaving.miss();
            return false;
        }
    }
    true
}

/// `thread` leaves, or is looked at again later. If that cannot be remembered it waits for its processor.
fn look_at(thread: TcbRef) {
    if !wants_nothing_here(thread) {
        if thread.is_elsewhere() && thread.is_foreign() {
            // It may have gone on here, and waits now: by a way that notes when it is ready again.
            wait::wait_for_the_complete_path(thread);
        }
        return;
    }
    let is_current = thread == thread::current();
    if !leaves(thread) && (cpu().scheduler.leaving.keep(thread.id.get()) || is_current) {
        return;
    }
    if !is_current {
        send(thread);
    } else if thread.resume.get() == Resume::Frame {
        // Its registers may not be saved yet: it leaves by the switch.
        thread.resume.set(Resume::Anew);
    }
}

/// Whether a tick looks at other processors.
#[inline(always)] // a part of it
pub fn has_work() -> bool {
    let scheduler = &cpu().scheduler;
    let is_noted = cpu().pending_lines.get() & 1 << LINE != 0;
    !cpu().guests.is_empty()
        || !scheduler.wanted.is_empty()
        || !scheduler.leaving.is_empty()
        || scheduler.owes.get() != Owes::Nothing
        || is_noted
}

/// The first processor's tick while `running` has it, if anybody is elsewhere or would go there. It may be owed until the next
/// one, which does it, whoever would go first.
#[inline(never)]
pub fn tick(running: TcbRef) {
    let scheduler = &cpu().scheduler;
    let is_late = scheduler.owes.get() != Owes::Nothing;
    if !is_late && ahead::goes_first(running) {
        return;
    }
    scheduler.owes.set(if is_late { Owes::WholeLook } else { Owes::Look });
    look();
    if !cpu().guests.is_empty() || !scheduler.wanted.is_empty() {
        scheduler.wakeup.look_again();
    }
}

/// Those who are elsewhere are charged for their time, which may end their slices.
fn charge_all() {
    let now_us = clock::now_us();
    for (number, other) in cpu().guests.all() {
        let Some(thread) = other.guest() else { continue };
        if charge(other, thread, now_us) {
            let _ = call_back(number, other, Back::Slice);
            out_of_time(other, thread);
        } else if thread.slice_left_us.get() == 0 {
            end_of_slice(number, other, thread);
        }
        advance(number, other);
        preemption::let_in();
    }
}

/// The slice of `thread` is used up: another one of its priority comes next.
fn end_of_slice(number: u32, other: &Other, thread: TcbRef) {
    let rivals = other.first();
    if rivals.is_some_and(|best| best.priority.get() >= least(other, thread)) {
        let ran = call_back(number, other, Back::Slice);
        if let Some(thread) = ran.filter(|ran| ran.is_away()) {
            other.queue().rotate(thread);
        }
    }
    thread.slice_left_us.set(thread.timeslice_us.get());
}
