//! Waiters for ids that are no longer current: found by a sweep over all threads, in
//! steps, and told that their partner does not exist (docs/decisions/0037).
//!
//! One sweep serves every id that was lost before it began. A deletion or a new version
//! only asks for one, and goes a step of the way; ticks and the idle thread go the rest. Whoever would give an id
//! again that was in use before finishes it first, so nobody in a closed wait for an id
//! meets a later thread of that id.

use crate::thread::{Kind, Sweep, TcbRef, last_version, registry};
use abi::{IpcErrorKind, Phase, ThreadId};

use super::fail_early;
use crate::arch::cpu;
use crate::arch::preemption::{let_in, must_stop};
use crate::ipc::wait;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::{sched, thread};

/// Threads looked at between two windows. Two steps follow every loss of an id: they are all of
/// a small system.
const STEP: u32 = 8;
/// Threads looked at in a tick.
const IN_A_TICK: u32 = 4;

impl Sweep {
    fn step(&self, count: u32) {
        let threads = registry().threads();
        let mut next = self.next.get();
        for _ in 0..count {
            let Some(thread) = next else { break };
            next = threads.behind(thread);
            release(thread);
        }
        if next.is_none() && self.again.replace(false) {
            next = threads.first();
        }
        self.next.set(next);
    }
}

/// An id is no longer current.
pub fn id_lost() {
    let registry = &registry();
    let sweep = &registry.sweep;
    if sweep.is_under_way() {
        sweep.again.set(sweep.next.get() != registry.threads().first());
        return steps(sweep);
    }
    sweep.next.set(registry.threads().first());
    steps(sweep);
    if sweep.is_under_way() {
        cpu().scheduler.wakeup.look_again();
        cpu().scheduler.watches.set(true);
    }
}

/// The two steps that follow a loss at once.
#[inline(always)] // in every deletion
fn steps(sweep: &Sweep) {
    sweep.step(STEP);
    if sweep.is_under_way() {
        let_in();
        sweep.step(STEP);
    }
}

/// A tick while a sweep is under way.
#[inline(never)]
pub fn tick() {
    registry().sweep.step(IN_A_TICK);
}

/// The processor idles and a sweep is under way: it goes on until an interrupt comes or somebody is
/// ready. Returns who runs next; if that is the idle thread, it comes here again.
#[must_use]
#[inline(never)]
pub fn idle() -> TcbRef {
    let (sweep, scheduler) = (&registry().sweep, &cpu().scheduler);
    while sweep.is_under_way() && scheduler.ready.count() == 0 {
        sweep.step(STEP);
        // Somebody's handler waits.
        if must_stop() {
            break;
        }
    }
    scheduler.watches.set(sweep.is_under_way());
    sched::pick()
}

/// Before `id` becomes current: afterwards nobody waits for an earlier thread of that id.
/// An id above its number's `last` version was never current. Only the privileged give
/// others; interrupts are noted on the way.
pub fn finish_before(id: ThreadId, last: u32) {
    let sweep = &registry().sweep;
    while id.version() <= last && sweep.is_under_way() {
        sweep.step(STEP);
        let_in();
    }
}

/// Fails the receive phase of `waiter` if it waits for an id that was current and is not.
#[inline(always)] // in a loop over all threads
fn release(waiter: TcbRef) {
    let from = rendezvous::awaited(waiter);
    if thread::lookup(from).is_none() && from.is_global() {
        look_closer(waiter);
    }
}

/// `waiter` names a thread that is gone, but need not wait for it. Telling one takes some 150
/// instructions, and all that a step meets may wait.
#[inline(never)]
fn look_closer(waiter: TcbRef) {
    // Whom it waits for is current, or `local::reclaim_waits_for` has found it.
    if rendezvous::is_public(waiter) {
        return;
    }
    let is_there = |from: ThreadId| !from.is_global() || thread::lookup(from).is_some();
    if rendezvous::is_armed(waiter) && rendezvous::armed_wait(waiter).is_none_or(is_there) {
        return;
    }
    // Nobody there waits for anybody who is not there, and those are current.
    if rendezvous::is_seated(waiter) {
        return;
    }
    let from = match wait::waits(waiter) {
        Waits::Closed(from) => from,
        Waits::Busy(Busy::Waiting) => waiter.partner.get(),
        _ => return,
    };
    if is_there(from) {
        return;
    }
    // A thread may be given a pager that is still to come.
    let to_come = waiter.kind.get() == Kind::Start && from.version() > last_version(from.number());
    if !to_come {
        fail_early(waiter, IpcErrorKind::NonExisting, Phase::Receive);
        sched::requeue(waiter);
        let_in();
    }
}
