//! Who comes back from other processors, and who leaves: looked at on the way out of the kernel, and in a tick, which
//! charges whoever is there, on whose slice its party runs, too, and ends slices and quanta.

use abi::inspect::Back;

use super::quick;
use crate::arch::cpu;
use crate::arch::preemption::{self, Pace};
use crate::elsewhere::{
    Other, advance, advance_all, call_back, charge, go_on, least, leaves, out_of_time, requeue,
    send, visits, wants_nothing_here,
};
use crate::ipc::wait;
use crate::thread;
use crate::thread::TcbRef;
use crate::thread::tcb::Resume;

/// Looks who has come back, and lets others go.
pub fn look() {
    let scheduler = &cpu().scheduler;
    let leaving = &scheduler.leaving;
    for id in leaving.take_all() {
        if let Some(thread) = thread::lookup(id) {
            look_at(thread);
            preemption::let_in();
        }
    }
    if leaving.has_missed() {
        search();
    }
    if !leaving.is_empty() {
        scheduler.wakeup.look_again();
    }
    if !scheduler.stopped.is_empty() {
        let _ = go_on();
    }
    for (number, other) in cpu().guests.all() {
        if let Some(thread) = other.guest()
            && visits::berth(number).fetch()
            && let Some(handler) = quick::has_come(number, other, thread)
        {
            requeue(handler);
        }
        preemption::let_in();
    }
    advance_all();
}

/// More have become ready than could be remembered: as many of them as can be now are, for the next tick. They are
/// queued here.
#[cold]
#[inline(never)]
fn search() {
    let scheduler = &cpu().scheduler;
    scheduler.leaving.begin_search();
    let mut pace = Pace::default();
    for thread in scheduler.ready.all() {
        // Of rings with few members none lets interrupts in by itself.
        pace.round();
        if wants_nothing_here(thread) && !scheduler.leaving.has_room_for(thread.id.get()) {
            return;
        }
    }
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

/// The first processor's tick, while anybody is elsewhere.
#[inline(never)]
pub fn tick(now_us: u64) {
    look();
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
    if !cpu().guests.is_empty() {
        cpu().scheduler.wakeup.look_again();
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
