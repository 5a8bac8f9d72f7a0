//! The scheduler: 256 priorities, round robin inside one, time slices that travel
//! with calls, and wakeup lists. One `Scheduler` per processor, touched only by it.
//!
//! Invariants of lazy scheduling (Liedtke 1993, 5.3.4): the ready queue contains at
//! least all ready threads, except possibly the current one; each wakeup list
//! contains at least all threads that wait for a time in it. Whether a thread
//! belongs in a queue follows from its tcb.

pub mod delay;
pub mod early;
pub mod leaving;
pub mod ready;
pub mod slice;
pub mod waker;
pub mod wakeup;

use core::cell::Cell;
use core::mem::offset_of;

use abi::ThreadId;

use crate::arch::line::Line;
use crate::arch::{Cpu, cpu};
use crate::between::set::Processors;
use crate::space::SpaceRef;
use crate::techniques;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::Resume;
use crate::thread::{TcbRef, close_fast_path, current};
use leaving::{Leaving, Owes};
use ready::ReadyQueue;
use wakeup::WakeupLists;

/// A processor's scheduling state. What only the first processor uses stands last: others have no pages for it
/// (`arch::x86_64::elsewhere::replica`).
#[repr(C)]
pub struct Scheduler {
    /// Ready threads by priority.
    pub ready: ReadyQueue,
    /// The thread that runs when no other is ready.
    pub idle: Cell<Option<TcbRef>>,
    /// The thread that wakes up others ([`waker`]), if there are too many for a tick.
    pub waker: Cell<Option<TcbRef>>,
    /// Whoever is above this priority may come before it now and then.
    pub waker_before: Cell<u8>,
    /// Whose time slice is being used: the thread last picked, whoever runs now
    /// on the slice it passed on.
    pub slice_owner: Cell<Option<TcbRef>>,
    /// What is left of that slice, µs.
    pub slice_left_us: Cell<u64>,
    /// Somebody's total quantum has been limited, at any time.
    pub has_limits: Cell<bool>,
    /// The thread whose turn was over while somebody more urgent ran on its slice, who went on.
    pub ended: Cell<ThreadId>,
    /// Clock value up to which slices have been charged, µs.
    pub charged_us: Cell<u64>,
    /// The timer's interrupts since boot.
    pub ticks: Cell<u64>,
    /// When the last one was handled, µs.
    pub ticked_us: Cell<u64>,
    /// When the next one comes, if that is before the next tick ([`early`]), µs; else 0.
    pub early_us: Cell<u64>,
    /// Since when somebody more urgent has been kept waiting (`delay`), µs; 0: nobody is.
    pub delayed_since_us: Cell<u64>,
    /// When somebody last gave way for a turn ([`slice::give_way`]), µs.
    pub gave_way_us: Cell<u64>,
    /// Those of the processors with guests where whoever is there stands still until this one leaves the kernel.
    pub stopped: Processors,
    /// The space of which nobody runs elsewhere, as was found last, until somebody goes there again.
    pub quiet: Cell<Option<SpaceRef>>,
    /// The processors for which somebody waits.
    pub wanted: Processors,
    /// Threads that have become ready and may go on elsewhere.
    pub leaving: Leaving,
    /// What is done for other processors when somebody has run who goes first.
    pub owes: Cell<Owes>,
    /// Somebody has gone elsewhere, for whom who idles looks for a while; or a sweep is under way.
    pub watches: Cell<bool>,
    /// Threads that wait for a time.
    pub wakeup: WakeupLists,
}

impl Scheduler {
    /// An empty scheduler.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ready: ReadyQueue::new(),
            wakeup: WakeupLists::new(),
            idle: Cell::new(None),
            waker: Cell::new(None),
            waker_before: Cell::new(0),
            slice_owner: Cell::new(None),
            slice_left_us: Cell::new(0),
            has_limits: Cell::new(false),
            ended: Cell::new(ThreadId::NIL),
            charged_us: Cell::new(0),
            ticks: Cell::new(0),
            ticked_us: Cell::new(0),
            early_us: Cell::new(0),
            gave_way_us: Cell::new(0),
            delayed_since_us: Cell::new(0),
            stopped: Processors::new(),
            quiet: Cell::new(None),
            wanted: Processors::new(),
            leaving: Leaving::new(),
            owes: Cell::new(Owes::Nothing),
            watches: Cell::new(false),
        }
    }
}

impl Line for Cpu {
    type Scheduler = Scheduler;
    const NOBODY: Scheduler = Scheduler::new();
    const OWN: usize = offset_of!(Scheduler, wakeup);
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes `thread` ready and sees to it that it is in the ready queue.
/// A thread with a pending halt stops instead.
pub fn make_ready(thread: TcbRef) {
    set_runnable(thread);
    if thread.is_ready() {
        cpu().scheduler.ready.insert(thread);
    }
}

/// Makes `thread` ready without queueing it: the caller runs it next or queues it.
pub fn set_runnable(thread: TcbRef) {
    if becomes_runnable(thread) == Runnable::Unusually {
        look_twice(thread);
    }
}

/// How a thread is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Runnable {
    /// It runs next, or is queued.
    Usually,
    /// [`look_twice`] says whether it is.
    Unusually,
}

/// As [`set_runnable`], and the second look is the caller's.
#[inline(always)]
pub fn becomes_runnable(thread: TcbRef) -> Runnable {
    thread.wake_at_us.set(0);
    rendezvous::set_busy(thread, Busy::Ready);
    if thread.unusual.get() { Runnable::Unusually } else { Runnable::Usually }
}

/// `thread` would be ready: it may have to stop, or go on elsewhere, which is noted.
#[cold]
#[inline(never)]
pub fn look_twice(thread: TcbRef) {
    // In an IPC only when that is over: the partner must not have to wait.
    if thread.halted.get() && !thread.is_in_ipc() {
        rendezvous::set_busy(thread, Busy::Halted);
    } else if thread.is_elsewhere() && thread.resume.get() != Resume::Entered {
        leaving::wants_to_leave(thread);
    }
}

/// Puts the current thread back into the ready queue if it is still ready: it is
/// about to lose the processor without blocking.
pub fn requeue(thread: TcbRef) {
    if thread.is_ready() && Some(thread) != cpu().scheduler.idle.get() {
        cpu().scheduler.ready.insert(thread);
    }
}

/// The thread with the highest priority, with a fresh slice; idle if none is ready.
#[must_use]
pub fn pick() -> TcbRef {
    let scheduler = &cpu().scheduler;
    let Some(next) = scheduler.ready.highest().or(scheduler.idle.get()) else {
        return current();
    };
    grant_slice(next);
    scheduler.delayed_since_us.set(0);
    next
}

/// Lets `thread` run on a slice of its own.
pub fn grant_slice(thread: TcbRef) {
    let scheduler = &cpu().scheduler;
    if scheduler.slice_owner.get() == Some(thread) && scheduler.slice_left_us.get() > 0 {
        return;
    }
    if scheduler.has_limits.get() { grant_limited(thread) } else { grant(thread) }
}

#[cold]
#[inline(never)]
fn grant_limited(thread: TcbRef) {
    slice::hand_on(thread);
    grant(thread);
}

#[inline(always)]
fn grant(thread: TcbRef) {
    let scheduler = &cpu().scheduler;
    if let Some(owner) = scheduler.slice_owner.get() {
        owner.slice_left_us.set(scheduler.slice_left_us.get());
    }
    begin_slice(thread);
}

/// Lets `thread` run on what it has left of its slice, or a new one. What is left of the
/// running one has been kept.
fn begin_slice(thread: TcbRef) {
    let scheduler = &cpu().scheduler;
    if thread.slice_left_us.get() == 0 {
        thread.slice_left_us.set(thread.timeslice_us.get());
    }
    scheduler.slice_owner.set(Some(thread));
    scheduler.slice_left_us.set(thread.slice_left_us.get());
}

/// The current thread has blocked: who runs next if it hands over to nobody.
#[must_use]
pub fn blocked(thread: TcbRef) -> TcbRef {
    if !techniques::LAZY_SCHEDULING {
        cpu().scheduler.ready.remove(thread);
    }
    pick()
}

/// The thread that runs after `thread`, the current one, is done with what it wanted of the kernel.
#[must_use]
pub fn go_on(thread: TcbRef) -> TcbRef {
    if thread.is_ready() { thread } else { blocked(thread) }
}

/// The current thread has blocked and hands the processor to `partner`, which is
/// ready, on the running slice (5.3.5).
#[must_use]
pub fn hand_over(thread: TcbRef, partner: TcbRef) -> TcbRef {
    if !techniques::LAZY_SCHEDULING {
        cpu().scheduler.ready.remove(thread);
    }
    let passes = cpu().look_first.get() && outranked(partner);
    if techniques::DIRECT_SWITCH && partner.is_ready() && !passes {
        return partner;
    }
    requeue(partner);
    pick()
}

/// `running` keeps the processor after an interrupt. Whoever waits behind it must not be
/// passed over by the direct switches that follow, to partners of lower priority, until
/// an interrupt happens to come at the right time. The fast path does not look at the
/// ready queue; it stays closed until the complete path has looked.
#[inline]
fn keep_watch(running: TcbRef) {
    let scheduler = &cpu().scheduler;
    if scheduler.ready.holds_others(running) {
        cpu().look_first.set(true);
        close_fast_path();
    }
}

/// Whether somebody waits who is more urgent than `partner`. If not, the switches that
/// follow have to look, too, if somebody is more urgent than the thread on whose slice
/// all this runs: in the end it comes back to that one.
#[inline(never)]
fn outranked(partner: TcbRef) -> bool {
    let scheduler = &cpu().scheduler;
    let owner = scheduler.slice_owner.get();
    let place = owner.filter(|owner| scheduler.ready.contains(*owner));
    let best = scheduler.ready.highest().map_or(0, |best| best.priority.get());
    // It may only be waiting for its pager: its turn is not over.
    if let Some(owner) = place.filter(|owner| !scheduler.ready.contains(*owner)) {
        scheduler.ready.insert_first(owner);
    }
    let priority = partner.priority.get();
    // Its turn is over, if it is so: others of its priority come first.
    let outranked = best > priority || best == priority && has_ended(partner);
    let owner = owner.map_or(u8::MAX, |owner| owner.priority.get());
    cpu().look_first.set(!outranked && best > owner);
    outranked
}

/// Whether the turn of `partner` was over while somebody ran on its slice; said once.
fn has_ended(partner: TcbRef) -> bool {
    let ended = &cpu().scheduler.ended;
    ended.get() == partner.id.get() && !ended.replace(ThreadId::NIL).is_nil()
}

/// `hand_over` to a partner that was just made ready and cannot be halted.
#[inline(always)]
#[must_use]
pub fn hand_over_at_once(thread: TcbRef, partner: TcbRef) -> TcbRef {
    let at_once = techniques::LAZY_SCHEDULING && techniques::DIRECT_SWITCH;
    if at_once && !cpu().look_first.get() { partner } else { hand_over(thread, partner) }
}

/// Both threads are ready and `runner` has the processor: the one with the higher
/// priority goes on (ties: `runner`), the other is queued.
#[must_use]
pub fn higher_of(runner: TcbRef, other: TcbRef) -> TcbRef {
    if !other.is_ready() {
        return if runner.is_ready() { runner } else { blocked(runner) };
    }
    if !runner.is_ready() {
        return hand_over(runner, other);
    }
    let (first, second) = if other.priority.get() > runner.priority.get() {
        (other, runner)
    } else {
        (runner, other)
    };
    requeue(second);
    if first == other {
        grant_slice(first);
    }
    first
}

/// Removes `thread` from every queue of the scheduler (5.3.2: before its tcb goes).
pub fn unlink(thread: TcbRef) {
    let scheduler = &cpu().scheduler;
    scheduler.ready.remove(thread);
    scheduler.wakeup.remove(thread);
    if scheduler.slice_owner.get() == Some(thread) {
        scheduler.slice_owner.set(None);
        scheduler.slice_left_us.set(0);
    }
}

/// The priority of `thread`, or what a host has of its own.
#[must_use]
pub fn own_priority(thread: TcbRef) -> u8 {
    let is_host = !thread.clerk.get().is_nil();
    if is_host { thread.own_priority.get() } else { thread.priority.get() }
}

/// Sets the priority of `thread`, queued or not, whoever it works for.
pub fn change_priority(thread: TcbRef, priority: u8) {
    let queue = &cpu().scheduler.ready;
    let queued = queue.contains(thread);
    queue.remove(thread);
    thread.priority.set(priority);
    if queued {
        queue.insert(thread);
    }
}
