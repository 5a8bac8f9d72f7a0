//! Who idles looks for a while before it waits (docs/decisions/0068-who-idles-looks-first.md): the first
//! processor whether somebody comes back, the others (`arch::x86_64::entry::visitors`) whether somebody comes.

use crate::thread::{TcbRef, registry};
use core::hint::spin_loop;

use super::comers::look;
use super::quick;
use crate::arch::{clock, cpu, preemption};
use crate::elsewhere::{Other, requeue, visits};
use crate::ipc::sweep;
use crate::sched::slice;
use crate::thread;
use crate::thread::tcb::Resume;

/// How often a processor looks, with PAUSE, before it waits. Before each look the first one lets interrupts
/// in, the others after each in vain: PAUSE may take as long as a hypervisor likes, or an emulator that counts. Who finds somebody
/// at each first look would let none in for as long as others come.
pub const LOOKS: u32 = 256;

/// The first processor's idle thread runs, and a sweep is to go on, or somebody has gone elsewhere since it
/// did last: who runs next, if somebody comes back soon, or an interrupt comes.
pub extern "C" fn watch() -> Option<TcbRef> {
    let scheduler = &cpu().scheduler;
    scheduler.watches.set(false);
    if registry().sweep.is_under_way() {
        return Some(sweep::idle());
    }
    if let Some((number, other)) = cpu().guests.only()
        && let Some(guest) = other.guest()
    {
        return watch_one(number, other, guest);
    }
    if cpu().guests.is_empty() {
        return None;
    }
    let berths = || cpu().guests.numbers().map(visits::berth);
    berths().for_each(|berth| berth.watch());
    look_until(|| berths().any(|berth| berth.has_returned()));
    // All of them: whoever comes back from now on interrupts.
    let has_come = berths().filter(|berth| berth.look_away()).count() > 0;
    if has_come { Some(interrupted(thread::current())) } else { noted() }
}

/// The same if somebody is on one processor only, `guest`.
fn watch_one(number: u32, other: &Other, guest: TcbRef) -> Option<TcbRef> {
    let berth = visits::berth(number);
    berth.watch();
    look_until(|| berth.has_returned());
    if !berth.fetch_or_look_away() {
        return noted();
    }
    let next = quick::only_one_has_come(number, other, guest);
    next.or_else(|| Some(interrupted(thread::current())))
}

/// Looks for a while, until somebody has come back or an interrupt has come.
fn look_until(has_come: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        spin_loop();
        if preemption::must_stop() || has_come() {
            return;
        }
    }
}

/// Nobody has come back; what has been noted is handled on the way out of the kernel.
fn noted() -> Option<TcbRef> {
    preemption::is_due().then(thread::current)
}

/// Another processor has interrupted `running`; returns who runs next. Who has made an entry
/// there and has something left of its slice comes before others of its priority: where there is
/// one processor nobody stands between a thread and the kernel, either.
#[must_use]
pub fn interrupted(running: TcbRef) -> TcbRef {
    requeue(running);
    look();
    let next = slice::after_interrupt(running);
    if next == running && next.is_ready() { behind_who_came(next) } else { next }
}

/// `next` would go on, and others may have come back: who runs next.
#[must_use]
pub fn behind_who_came(next: TcbRef) -> TcbRef {
    let is_before = |first: &TcbRef| {
        *first != next
            && first.resume.get() == Resume::Entered
            && first.slice_left_us.get() != 0
            && first.priority.get() == next.priority.get()
    };
    let first = cpu().scheduler.ready.highest().filter(is_before);
    first.map_or(next, |first| {
        // It comes and goes between two ticks: the time until now is not its.
        let _ = slice::charge(next, clock::now_us());
        slice::preempt(next, first)
    })
}
