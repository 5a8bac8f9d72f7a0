//! Many threads that are due in one tick: what the tick does, and who comes before the rest.

use std::sync::atomic::Ordering;

use crate::common::Machine;
use crate::common::tasks::{QUIET_LINE, ipc, machine, make, thread, way_out};
use abi::ThreadId;
use abi::id::USER_BASE;
use kernel::arch::{clock, cpu, entry};
use kernel::irq;
use kernel::irq::wake;
use kernel::sched;
use kernel::sched::wakeup::{GRAIN_US, NEAR_US, WakeupLists};
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::{Busy, set_busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, own, set_current};

/// Far more than a tick wakes.
const SLEEPERS: u32 = IN_A_TASK * 6;
/// As many as its quota pays for.
const IN_A_TASK: u32 = 15;
/// What the timer counts as: the kernel's own line.
const TIMER: u32 = 0;

struct Crowd {
    _machine: Machine,
    chief: SpaceRef,
    spaces: Vec<SpaceRef>,
    /// Runs until the tick.
    running: TcbRef,
    /// Of the most urgent, and the last to fall asleep.
    urgent: TcbRef,
    sleepers: Vec<TcbRef>,
    waker: TcbRef,
}

/// Lets `thread` wait for a message for a moment.
fn sleep(thread: TcbRef) {
    thread.timeouts.set(0);
    let _ = ipc(thread, ThreadId::NIL, ThreadId::ANY);
    cpu().scheduler.wakeup.insert(thread, 1);
    cpu().scheduler.ready.remove(thread);
}

fn crowd() -> Crowd {
    let (machine, spaces) = machine(3 + SLEEPERS / IN_A_TASK);
    own::make_waker();
    let running = thread(spaces[0], 0, ThreadId::NIL);
    running.resume.set(Resume::Frame);
    cpu().scheduler.ready.remove(running);
    let sleepers: Vec<_> = (0..SLEEPERS)
        .map(|index| {
            let space = spaces[2 + (index / IN_A_TASK) as usize];
            make(ThreadId::global(USER_BASE + 10 + index, 1), space, index, ThreadId::NIL)
        })
        .collect();
    let urgent = thread(spaces[1], 1, ThreadId::NIL);
    cpu().scheduler.ready.remove(urgent);
    urgent.priority.set(220);
    sleepers.iter().copied().chain([urgent]).for_each(sleep);
    sched::grant_slice(running);
    set_current(running);
    let waker = cpu().scheduler.waker.get().expect("there is one now");
    Crowd { chief: machine.spaces[0], _machine: machine, spaces, running, urgent, sleepers, waker }
}

impl Crowd {
    fn awake(&self) -> u32 {
        self.sleepers.iter().filter(|thread| thread.is_ready()).count() as u32
    }

    /// Waits for the quiet line.
    fn handler(&self, priority: u8) -> TcbRef {
        let handler = thread(self.spaces[1], 2, ThreadId::NIL);
        cpu().scheduler.ready.remove(handler);
        handler.priority.set(priority);
        own::make_interrupts();
        let line = ThreadId::irq(QUIET_LINE);
        irq::attach(self.chief, line, handler.id.get()).expect("it may");
        let _ = ipc(handler, ThreadId::NIL, line);
        cpu().scheduler.ready.remove(handler);
        handler
    }

    /// The tick in which all are due.
    fn tick(&self) -> TcbRef {
        clock::PAGE.offset_us.store(10 * GRAIN_US, Ordering::Relaxed);
        let next = irq::interrupt(self.running, TIMER);
        set_current(next);
        next
    }
}

/// `thread` has nothing more to do; who runs now.
fn blocks(thread: TcbRef) -> TcbRef {
    set_busy(thread, Busy::Waiting);
    let next = sched::blocked(thread);
    set_current(next);
    next
}

#[test]
fn a_tick_wakes_few_and_the_most_urgent_first() {
    let crowd = crowd();
    assert!(crowd.tick() == crowd.urgent, "whoever came first into the list");
    // The grains that have passed count, too.
    let few = wake::IN_A_TICK - 4..wake::IN_A_TICK;
    assert!(few.contains(&crowd.awake()), "{} are awake", crowd.awake());
    // All others are woken before one of them runs.
    assert!(blocks(crowd.urgent) == crowd.waker);
    assert!(crowd.sleepers.contains(&entry::resume(crowd.waker)));
    assert_eq!(crowd.awake(), SLEEPERS);
    assert!(!crowd.waker.is_ready());
}

/// An interrupt comes while the waker works; its handler has `priority`, the sleepers have 100, and it
/// is to be `first`.
fn handler_comes(priority: u8, first: bool) {
    let crowd = crowd();
    let handler = crowd.handler(priority);
    set_current(crowd.running);
    crowd.tick();
    assert!(blocks(crowd.urgent) == crowd.waker);
    // In one of its windows.
    cpu().interrupt.set(Some((10, QUIET_LINE)));
    let next = entry::resume(crowd.waker);
    assert!(crowd.awake() < wake::IN_A_TICK + 16, "{} are awake", crowd.awake());
    assert!(handler.is_ready());
    assert_eq!(next == handler, first, "priority {priority}");
    assert!(first || next == crowd.running, "the first of the class that is woken");
    // Whoever that is, the waker goes on before any other, and wakes all.
    assert!(blocks(next) == crowd.waker);
    let _ = entry::resume(crowd.waker);
    assert_eq!(crowd.awake(), SLEEPERS);
}

#[test]
fn what_comes_while_the_way_out_handles_a_tick_is_handled_there() {
    let crowd = crowd();
    let handler = crowd.handler(230);
    set_current(crowd.running);
    clock::PAGE.offset_us.store(10 * GRAIN_US, Ordering::Relaxed);
    cpu().pending_lines.set(1 << TIMER);
    // Behind the look at what was noted, in a window between two who are woken.
    cpu().interrupt.set(Some((1, QUIET_LINE)));
    let next = way_out(crowd.running);
    assert!(crowd.urgent.is_ready(), "the tick was handled");
    assert!(handler.is_ready() && next == handler, "and the interrupt in it");
    assert_eq!(cpu().pending_lines.get(), 0);
}

#[test]
fn a_more_urgent_handler_does_not_wait_for_all_who_are_due() {
    handler_comes(150, true);
}

#[test]
fn a_handler_of_the_same_class_does_not_wait_for_all_who_are_due() {
    handler_comes(105, true);
}

#[test]
fn a_less_urgent_handler_comes_behind_them() {
    handler_comes(90, false);
}

#[test]
fn who_is_due_and_not_woken_may_leave() {
    let crowd = crowd();
    crowd.tick();
    for thread in &crowd.sleepers {
        if !thread.is_ready() {
            sched::unlink(*thread);
        }
    }
    assert!(blocks(crowd.urgent) == crowd.waker);
    assert!(entry::resume(crowd.waker) != crowd.waker);
    assert!(crowd.awake() < wake::IN_A_TICK);
    assert!(!crowd.waker.is_ready());
}

/// Ticks have been kept away for more than a span, and all sleepers are to come nearer at once.
#[test]
fn a_tick_after_a_time_without_ticks_brings_few_nearer() {
    let crowd = crowd();
    let nobody_due = || assert_eq!(crowd.awake(), 0);
    let lists = &cpu().scheduler.wakeup;
    let distant_us = NEAR_US + NEAR_US / 4;
    crowd.sleepers.iter().for_each(|thread| lists.insert(*thread, distant_us));
    lists.remove(crowd.urgent);
    let near =
        || crowd.sleepers.iter().filter(|it| WakeupLists::is_near(it.wake_list.get())).count();
    assert_eq!(near(), 0);
    let at = |us: u64| clock::PAGE.offset_us.store(us, Ordering::Relaxed);
    at(distant_us - 50 * GRAIN_US);
    let next = irq::interrupt(crowd.running, TIMER);
    assert!(near() <= 2 * wake::IN_A_TICK as usize, "{} have come nearer", near());
    assert!(next == crowd.waker);
    nobody_due();
    // The waker does the rest, and none is woken too early or forgotten.
    set_current(next);
    assert!(entry::resume(next) == crowd.running);
    assert_eq!(near(), SLEEPERS as usize);
    nobody_due();
    at(distant_us + 2 * GRAIN_US);
    set_current(crowd.running);
    let next = irq::interrupt(crowd.running, TIMER);
    if next == crowd.waker {
        set_current(next);
        let _ = entry::resume(next);
    }
    assert!(near() == SLEEPERS as usize && crowd.awake() >= wake::IN_A_TICK - 4);
}
