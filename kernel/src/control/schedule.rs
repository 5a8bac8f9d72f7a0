//! Schedule and ThreadSwitch (X.2 5.6, 5.7).

use abi::inspect::state;
use abi::utcb::PREEMPT_PENDING;
use abi::{CallError, ThreadId, Time};

use super::ceiling;
use super::processor;
use crate::arch::{clock, cpu};
use crate::elsewhere;
use crate::ipc::wait;
use crate::lrpc;
use crate::sched::slice::{self, end_turn};
use crate::sched::{change_priority, delay, grant_slice, own_priority, pick, requeue};
use crate::space::SpaceRef;
use crate::thread;
use crate::thread::TcbRef;
use crate::thread::part::Part;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::state::State;
use crate::usermem::Utcb;

/// A word that changes nothing.
pub(super) const UNCHANGED: u64 = !0;
/// Preemption-control bit of calls meant for hierarchical scheduling (X.2 7.3, trap 1).
const HIERARCHICAL: u64 = 1 << 25;

/// The arguments of Schedule.
pub struct Change {
    /// Thread to schedule.
    pub dest: ThreadId,
    /// Priority, bits 7..0.
    pub priority: u64,
    /// `31..16` slice length, `15..0` total quantum (periods).
    pub time: u64,
    /// Processor number.
    pub processor: u64,
    /// `15..0` maximal delay in µs, `23..16` sensitive priority.
    pub preemption: u64,
}

/// Changes the scheduling parameters of a thread; returns its state before the call
/// and what was left of slice and quantum.
pub fn schedule(caller: TcbRef, request: &Change) -> Result<(u64, u64), CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let missing = own.refusal_about(request.dest, CallError::InvalidThread);
    let thread = thread::resolve(caller, request.dest).ok_or(missing)?;
    // Nobody schedules the kernel's own threads, but lines that have a handler.
    let is_line = request.dest.is_irq() && !thread.partner.get().is_nil();
    if thread.space().is_none() && !is_line {
        return Err(missing);
    }
    permit(caller, own, thread)?;
    elsewhere::recall(thread);
    let result = (state_of(thread), time_left(thread));
    if request.preemption != UNCHANGED && request.preemption & HIERARCHICAL != 0 {
        return Ok(result);
    }
    check(request)?;
    ceiling::check(caller, thread, request)?;
    apply(thread, request);
    Ok(result)
}

/// The thread's scheduler's space may, and the chiefs above the thread; not the
/// thread's own space: it could take an endless slice for itself (X.2 5.7).
fn permit(caller: TcbRef, own: SpaceRef, thread: TcbRef) -> Result<(), CallError> {
    let by_scheduler = thread::lookup(thread.scheduler.get())
        .is_some_and(|scheduler| scheduler.same_space(caller));
    match by_scheduler || own.is_privileged() {
        true => Ok(()),
        false if thread.space() == Some(own) => Err(CallError::NoPrivilege),
        false => own.may_control(thread.space()),
    }
}

fn check(request: &Change) -> Result<(), CallError> {
    let (slice, quantum) = times(request.time);
    if request.time != UNCHANGED && (slice.is_point() || quantum.is_point()) {
        return Err(CallError::InvalidParameter);
    }
    if request.processor != UNCHANGED && !elsewhere::exists(request.processor & 0xFFFF) {
        return Err(CallError::InvalidParameter);
    }
    Ok(())
}

/// Slice length and total quantum of a time control.
pub(super) fn times(word: u64) -> (Time, Time) {
    (Time((word >> 16) as u16), Time(word as u16))
}

fn apply(thread: TcbRef, request: &Change) {
    if request.time != UNCHANGED {
        let (slice, quantum) = times(request.time);
        let timeslice_us = slice.period_us().unwrap_or(u64::MAX).max(1);
        thread.timeslice_us.set(timeslice_us);
        slice::set_quantum(thread, quantum.period_us().unwrap_or(u64::MAX));
        shorten_slice(thread, timeslice_us);
    }
    if request.priority != UNCHANGED {
        set_priority(thread, request.priority as u8);
    }
    if request.processor != UNCHANGED && thread.space().is_some() {
        processor::set_processor(thread, request.processor as u32 & 0xFFFF);
    }
    if request.preemption != UNCHANGED {
        thread.max_delay_us.set(request.preemption & 0xFFFF);
        let sensitive = (request.preemption >> 16) as u8;
        // A caller's priority is a host's for a visit only.
        thread.sensitive_priority.set(sensitive.max(own_priority(thread)));
    }
}

/// In the turn that `thread` has, or is ready for, its slice ends no later than one of `timeslice_us`: a whole one now would
/// be as good as an endless one for whoever asks for it again and again. Who waits begins its next turn with one; what it
/// has left to a partner is the partner's.
pub(super) fn shorten_slice(thread: TcbRef, timeslice_us: u64) {
    let scheduler = &cpu().scheduler;
    if !thread.is_ready() {
        slice::disown(thread);
        return thread.slice_left_us.set(0);
    }
    let is_running = scheduler.slice_owner.get() == Some(thread);
    let left = if is_running { &scheduler.slice_left_us } else { &thread.slice_left_us };
    left.set(left.get().min(timeslice_us));
}

/// Sets the priority of `thread`, queued or not.
pub(super) fn set_priority(thread: TcbRef, priority: u8) {
    // A host's is its caller's until it returns.
    if !thread.clerk.get().is_nil() {
        return thread.own_priority.set(priority);
    }
    // What it has called runs on as it does; the return looks whether others are more urgent now.
    lrpc::calls_no_more_plainly(thread);
    change_priority(thread, priority);
}

/// The state word of X.2 5.7.
#[must_use]
pub fn state_of(thread: TcbRef) -> u64 {
    match wait::state(thread) {
        State::Inactive | State::Halted => 2,
        State::Ready | State::BetweenPhases => 3,
        State::Polls(_) => 4,
        State::Transfers(Part::SendsTo(_)) => 5,
        State::Waits(_) | State::Calls | State::Lent => 6,
        State::Transfers(Part::ReceivesFrom(_)) => 7,
    }
}

/// The state of a thread record of Inspect.
#[must_use]
pub fn inspect_state(thread: TcbRef) -> u64 {
    match rendezvous::peek(thread) {
        Waits::Busy(Busy::Ready) => state::READY,
        Waits::Busy(Busy::Polling) => state::POLLING,
        Waits::Busy(Busy::Transfer) => state::TRANSFER,
        Waits::Busy(Busy::Inactive) => state::INACTIVE,
        Waits::Busy(Busy::Halted) => state::HALTED,
        _ => state::WAITING,
    }
}

fn time_left(thread: TcbRef) -> u64 {
    let scheduler = &cpu().scheduler;
    let slice = if scheduler.slice_owner.get() == Some(thread) {
        &scheduler.slice_left_us
    } else {
        &thread.slice_left_us
    };
    u64::from(period(slice.get()).0) << 16 | u64::from(period(thread.quantum_left_us.get()).0)
}

fn period(us: u64) -> Time {
    if us == u64::MAX { Time::NEVER } else { Time::micros(us) }
}

/// ThreadSwitch: gives the processor to `dest` on the running slice, or gives up the slice.
#[must_use]
pub fn thread_switch(caller: TcbRef, dest: ThreadId) -> TcbRef {
    if dest == caller.id.get() { caller } else { switch_from(caller, dest) }
}

#[inline(never)]
fn switch_from(caller: TcbRef, dest: ThreadId) -> TcbRef {
    let to = thread::resolve(caller, dest);
    if to == Some(caller) {
        return caller;
    }
    let _ = slice::charge(caller, clock::now_us());
    if let Some(thread) = to.filter(|thread| thread.is_ready() && thread.space().is_some()) {
        requeue(caller);
        // Somebody more urgent has been kept waiting: a delay is not passed on.
        return if delay::is_under_way() { pick() } else { thread };
    }
    if let Some(utcb) = Utcb::of(caller) {
        utcb.set_flags(utcb.flags() & !PREEMPT_PENDING);
    }
    caller.delay_used.set(false);
    yield_slice(caller)
}

fn yield_slice(caller: TcbRef) -> TcbRef {
    let scheduler = &cpu().scheduler;
    if let Some(owner) = scheduler.slice_owner.take() {
        end_turn(owner);
    }
    requeue(caller);
    scheduler.ready.rotate(caller);
    scheduler.slice_left_us.set(0);
    let next = pick();
    grant_slice(next);
    next
}
