//! Time slices that are passed on: who goes on with what, and who comes next.

use std::sync::atomic::Ordering;

use crate::common::tasks::{QUIET_LINE, ipc, machine, thread};
use abi::{ThreadId, Time, Timeouts};
use kernel::arch::clock::{PAGE, TICK_US};
use kernel::arch::cpu;
use kernel::control::schedule;
use kernel::ipc::syscall;
use kernel::irq;
use kernel::sched;
use kernel::space::SpaceRef;
use kernel::thread::rendezvous::{Busy, set_busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, own, set_current};

/// A thread in each space, ready and not queued.
fn threads<const N: usize>(spaces: &[SpaceRef]) -> [TcbRef; N] {
    std::array::from_fn(|index| {
        let thread = thread(spaces[index], index as u32, ThreadId::NIL);
        cpu().scheduler.ready.remove(thread);
        thread.resume.set(Resume::Frame);
        thread
    })
}

/// `running` was interrupted when its slice was used up; who runs next does now.
fn slice_ends(running: TcbRef) -> TcbRef {
    cpu().scheduler.slice_left_us.set(0);
    let next = irq::interrupt(running, QUIET_LINE);
    set_current(next);
    next
}

/// Somebody more urgent is no way to a new slice: the server that is preempted on its
/// client's slice goes on with what is left of that.
#[test]
fn a_preemption_adds_nothing_to_a_slice_that_was_passed_on() {
    let (_machine, spaces) = machine(3);
    let [client, server, urgent] = threads(&spaces);
    urgent.priority.set(200);
    let _ = ipc(server, ThreadId::NIL, ThreadId::ANY);
    for (left_us, own_us, goes_on_with_us) in
        [(3_000, 10_000, 3_000), (u64::MAX, 10_000, 10_000), (3_000, 2_000, 2_000)]
    {
        client.slice_left_us.set(left_us);
        server.slice_left_us.set(0);
        server.timeslice_us.set(own_us);
        sched::grant_slice(client);
        assert!(ipc(client, server.id.get(), server.id.get()) == server);
        set_current(server);
        sched::requeue(urgent);
        assert!(sched::slice::reschedule(server) == urgent);
        set_current(urgent);
        set_busy(urgent, Busy::Waiting);
        assert!(sched::blocked(urgent) == server);
        assert_eq!(cpu().scheduler.slice_left_us.get(), goes_on_with_us);
        assert_eq!(client.slice_left_us.get(), 0, "its next turn begins with a new one");
        assert!(ipc(server, client.id.get(), ThreadId::ANY) == client);
        set_busy(urgent, Busy::Ready);
        cpu().scheduler.slice_owner.set(None);
    }
}

/// Two threads that switch to each other are not both first: who comes between them in the
/// queue runs when the slice on which they did that is over, however it ends.
#[test]
fn who_passes_its_slice_on_waits_for_its_next_turn() {
    let (_machine, spaces) = machine(3);
    let [first, other, helper] = threads(&spaces);
    let begin = || {
        [first, other, helper].iter().for_each(|thread| cpu().scheduler.ready.rotate(*thread));
        sched::grant_slice(first);
        set_current(first);
        let next = schedule::thread_switch(first, helper.id.get());
        set_current(next);
        assert!(next == helper, "it runs at once, on the same slice");
    };
    begin();
    assert!(slice_ends(helper) == other);
    begin();
    assert!(schedule::thread_switch(helper, ThreadId::NIL) == other);
    begin();
    assert!(schedule::thread_switch(helper, first.id.get()) == first);
    assert!(slice_ends(first) == other, "its own slice ends as any other");
}

/// More than one interrupt in a window is one preemption.
#[test]
fn interrupts_at_once_preempt_once() {
    let (_machine, spaces) = machine(3);
    let [running, urgent, handler] = threads(&spaces);
    urgent.priority.set(150);
    handler.priority.set(200);
    own::make_interrupts();
    spaces[0].task.privileged.set(true);
    let line = ThreadId::irq(QUIET_LINE);
    irq::attach(spaces[0], line, handler.id.get()).expect("it may");
    let _ = ipc(handler, ThreadId::NIL, line);
    cpu().scheduler.ready.remove(handler);
    sched::grant_slice(running);
    cpu().scheduler.slice_left_us.set(100);
    set_current(running);
    sched::requeue(running);
    sched::requeue(urgent);
    // The timer's line is 0; a line in front of the other had its choice made first.
    for lines in [1 << QUIET_LINE, 1 << QUIET_LINE | 1 << 4] {
        cpu().pending_lines.set(lines);
        assert!(irq::handle_pending(running) == handler);
        assert_eq!(running.slice_left_us.get(), 100, "lines {lines:#b}");
        let _ = ipc(handler, ThreadId::NIL, line);
        set_current(running);
        cpu().scheduler.ready.remove(handler);
        sched::grant_slice(running);
        cpu().scheduler.slice_left_us.set(100);
    }
}

/// A page fault is no end of a turn: who has called somebody more urgent, and is answered and
/// ready before that one waits, goes on before those that come next in the queue.
#[test]
fn who_is_answered_within_its_turn_goes_on_with_it() {
    let (_machine, spaces) = machine(3);
    let [running, other, pager] = threads(&spaces);
    pager.priority.set(200);
    let _ = ipc(pager, ThreadId::NIL, ThreadId::ANY);
    [running, other].iter().for_each(|thread| cpu().scheduler.ready.rotate(*thread));
    sched::grant_slice(running);
    set_current(running);
    // An interrupt has left somebody waiting.
    assert!(sched::slice::after_interrupt(running) == running);
    assert!(ipc(running, pager.id.get(), pager.id.get()) == pager);
    set_current(pager);
    assert!(ipc(pager, running.id.get(), ThreadId::NIL) == pager);
    assert!(ipc(pager, ThreadId::NIL, ThreadId::ANY) == running);
}

/// The kernel's own line.
const TIMER: u32 = 0;
/// When it all begins, µs: as a grain does.
const BEGIN_US: u64 = 1_024_000;
/// How long before the next tick somebody begins to sleep until then, µs.
const REST_US: u64 = 104;

/// Who is more urgent, and sleeps over each tick, is charged what it has used, and its scheduler is told; who is met by the ticks
/// is not charged for it.
#[test]
fn who_sleeps_over_each_tick_uses_up_its_quantum() {
    let (_machine, spaces) = machine(3);
    let [sleeper, victim, scheduler] = threads(&spaces);
    let set_clock = |us: u64| PAGE.offset_us.store(us, Ordering::Relaxed);
    let _ = ipc(scheduler, ThreadId::NIL, ThreadId::ANY);
    sleeper.scheduler.set(scheduler.id.get());
    sleeper.priority.set(150);
    let turn_us = TICK_US - REST_US;
    sched::slice::set_quantum(sleeper, 3 * turn_us);
    sched::slice::set_quantum(victim, 20 * TICK_US);
    cpu().scheduler.wakeup.begin(BEGIN_US);
    set_clock(BEGIN_US);
    set_current(victim);
    sched::requeue(sleeper);
    let mut next = irq::interrupt(victim, TIMER);
    let before_us = victim.used_us.get();
    let sleep = Timeouts::new(Time::NEVER, Time::micros(REST_US)).0;
    for turn in 1..=3 {
        assert!(next == sleeper && sleeper.resume.get() != Resume::Entered, "turn {turn}");
        set_current(sleeper);
        sleeper.resume.set(Resume::Ipc);
        sleeper.ip.set(0x1000 + turn);
        set_clock(BEGIN_US + turn * TICK_US - REST_US);
        assert!(syscall::ipc(sleeper, ThreadId::NIL, ThreadId::ANY, sleep) == victim);
        assert_eq!(sleeper.quantum_left_us.get(), (3 - turn) * turn_us);
        set_current(victim);
        set_clock(BEGIN_US + turn * TICK_US);
        next = irq::interrupt(victim, TIMER);
        // Timeouts end with the first tick behind them.
        if next == victim {
            set_clock(BEGIN_US + turn * TICK_US + 1);
            next = irq::interrupt(victim, TIMER);
        }
    }
    assert!(next == sleeper && sleeper.resume.get() == Resume::Entered);
    assert!(sleeper.frame().is_out_of_time(), "its scheduler is told now");
    assert_eq!(sleeper.frame().ip.get(), 0x1003, "and then it goes on where it was");
    let used_us = victim.used_us.get() - before_us;
    assert!(used_us <= 3 * (REST_US + 1), "{used_us} µs");
    set_clock(0);
}
