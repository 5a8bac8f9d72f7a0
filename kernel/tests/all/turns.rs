//! Whose turn it is, and who is charged for it, where threads go to other processors and back, or are charged by ticks.

use crate::common::clan::{World, asks, rank};
use crate::common::exit::later;
use crate::common::tasks;
use crate::parties::{begin, talk};
use abi::{ThreadId, Time, Timeouts};
use kernel::arch::cpu;
use kernel::check;
use kernel::control::schedule;
use kernel::elsewhere::Other;
use kernel::elsewhere::visits::{self, accept, set_processors};
use kernel::ipc::wait;
use kernel::irq::{comers, tick};
use kernel::sched::{self, make_ready, slice};
use kernel::thread::rendezvous::{Busy, set_busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{Kind, TcbRef, set_current};

/// A slice of somebody's, µs.
const SLICE_US: u64 = 10_000;

fn sound() {
    assert_eq!(check::violations(), 0);
}

fn place(world: &World, thread: TcbRef) {
    let change = schedule::Change { processor: 1, ..asks(thread) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
}

/// One more thread, whose scheduler is the root task, in the space of `world.one`.
fn third(world: &World, number: u32) -> TcbRef {
    let id = ThreadId::global(number, 1);
    let thread = tasks::make(id, world.spaces[0], number - 1000, ThreadId::NIL);
    thread.scheduler.set(world.root.id.get());
    thread
}

/// Somebody has begun to wait while its slice ran here, gone along with others, and comes back as the one that runs:
/// its slice here is nobody's, and whoever runs here on it moves it nowhere.
#[test]
fn who_runs_there_owns_no_slice_here() {
    let world = begin(World::new());
    cpu().scheduler.slice_owner.set(Some(world.two));
    let rival = third(&world, 1018);
    make_ready(rival);
    place(&world, rival);
    assert!(accept(1).is_some());
    assert!(talk(world.two.id.get(), world.two.id.get()));
    world.one.slice_left_us.set(0);
    comers::tick(world.root);
    assert!(world.two.is_away() && world.two.ready.are_linked(), "it waits for its turn there");
    sound();
    cpu().scheduler.slice_left_us.set(0);
    let _ = slice::reschedule(world.root);
    assert!(world.two.ready.are_linked());
    sound();
    let next = accept(1).expect("whose turn it is");
    assert_eq!(next.id.get(), rival.id.get());
}

/// Whose owner has gone elsewhere, a slice is charged to whoever runs on it.
#[test]
fn a_slice_that_is_nobody_s_is_charged_to_who_runs() {
    let world = World::new();
    set_current(world.root);
    slice::set_quantum(world.root, 5_000);
    cpu().scheduler.slice_owner.set(None);
    let now_us = cpu().scheduler.charged_us.get();
    assert!(slice::charge(world.root, now_us + 2_000).is_none());
    assert_eq!(world.root.quantum_left_us.get(), 3_000);
    assert_eq!(slice::charge(world.root, now_us + 6_000), Some(world.root));
}

/// Called back when its slice is over, a thread comes behind its equals; no tick need have seen that.
#[test]
fn who_is_called_back_without_a_slice_comes_last() {
    let world = begin(World::new());
    let rival = third(&world, 1018);
    make_ready(rival);
    place(&world, rival);
    comers::look();
    assert!(accept(1).is_some());
    world.one.slice_left_us.set(2_000);
    later(3_000);
    let _ = wait::waits(world.two);
    comers::look();
    let next = accept(1).expect("whose turn it is");
    assert_eq!(next.id.get(), rival.id.get());
    sound();
}

/// However many become ready for another processor at once, all of them go there, whoever runs here.
#[test]
fn however_many_become_ready_all_leave() {
    let world = World::new();
    set_processors(2);
    rank(world.root, 250);
    set_current(world.root);
    let _ = accept(1);
    let mut threads = vec![];
    for number in 0..20 {
        let space = world.spaces[(number % 2) as usize];
        let id = ThreadId::global(1000 + number, 1);
        let thread = tasks::make(id, space, 3 + number / 2, ThreadId::NIL);
        thread.scheduler.set(world.root.id.get());
        thread.resume.set(Resume::Frame);
        set_busy(thread, Busy::Waiting);
        place(&world, thread);
        threads.push(thread);
    }
    threads.iter().for_each(|thread| make_ready(*thread));
    comers::look();
    assert!(!cpu().scheduler.leaving.is_empty(), "the next tick goes on");
    comers::look();
    let here = threads.iter().filter(|thread| !thread.is_away()).count();
    assert_eq!(here, 0, "of {} threads", threads.len());
    sound();
}

/// A time control that comes again and again is no endless slice.
#[test]
fn a_new_length_makes_no_slice_longer() {
    let world = World::new();
    set_current(world.two);
    sched::grant_slice(world.two);
    cpu().scheduler.slice_left_us.set(1);
    let time = u64::from(Time::micros(SLICE_US).0) << 16 | u64::from(Time::NEVER.0);
    let change = schedule::Change { time, ..asks(world.two) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    assert_eq!(cpu().scheduler.slice_left_us.get(), 1);
    assert_eq!(world.two.timeslice_us.get(), SLICE_US, "its next turn is as long");
    world.one.slice_left_us.set(3);
    let change = schedule::Change { time, ..asks(world.one) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    assert_eq!(world.one.slice_left_us.get(), 3);
    // Who waits comes behind its equals, and has a whole one then.
    set_busy(world.one, Busy::Waiting);
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    assert_eq!(world.one.slice_left_us.get(), 0);
    set_busy(world.one, Busy::Ready);
    // So it is if somebody runs on what it has left.
    set_busy(world.two, Busy::Waiting);
    let change = schedule::Change { time, ..asks(world.two) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    assert!(cpu().scheduler.slice_owner.get().is_none());
    assert_eq!(cpu().scheduler.slice_left_us.get(), 1, "no more than that");
    set_busy(world.two, Busy::Ready);
}

fn others_come_last(world: &World) {
    [world.root, world.one, world.two].into_iter().for_each(|it| rank(it, 10));
}

/// A thread in the space `index`, ready and not queued.
fn player(world: &World, index: usize, number: u32, priority: u8) -> TcbRef {
    let thread =
        tasks::make(ThreadId::global(number, 1), world.spaces[index], number - 1000, ThreadId::NIL);
    cpu().scheduler.ready.remove(thread);
    thread.priority.set(priority);
    thread.resume.set(Resume::Frame);
    thread.scheduler.set(world.root.id.get());
    thread
}

fn calls(thread: TcbRef, to: TcbRef) -> TcbRef {
    thread.resume.set(Resume::Ipc);
    let next = tasks::ipc(thread, to.id.get(), to.id.get());
    set_current(next);
    next
}

fn waits_for_anybody(thread: TcbRef) {
    let _ = kernel::ipc::syscall::ipc(thread, ThreadId::NIL, ThreadId::ANY, Timeouts::NEVER.0);
}

/// The end of a turn that a more urgent server meets is one, too: its client is not the next of its priority.
#[test]
fn whose_turn_ends_in_a_server_comes_behind_its_equals() {
    let world = World::new();
    others_come_last(&world);
    let (client, peer, server) =
        (player(&world, 0, 1003, 100), player(&world, 1, 1004, 100), player(&world, 1, 1005, 200));
    waits_for_anybody(server);
    sched::requeue(client);
    sched::requeue(peer);
    sched::grant_slice(client);
    set_current(client);
    assert!(calls(client, server) == server);
    cpu().scheduler.slice_left_us.set(0);
    assert!(slice::after_interrupt(server) == server, "it is more urgent");
    server.resume.set(Resume::Ipc);
    let next = tasks::ipc(server, client.id.get(), ThreadId::ANY);
    assert!(next == peer, "{next:?}");
    assert!(client.is_ready() && client.ready.are_linked());
}

/// A limited quantum ends whoever stands in the queue at each tick, and on whose slice ever its thread runs.
#[test]
fn who_is_out_of_time_is_told_wherever_a_tick_meets_it() {
    let world = World::new();
    others_come_last(&world);
    let (thread, urgent) = (player(&world, 0, 1003, 100), player(&world, 0, 1004, 101));
    slice::set_quantum(thread, 0);
    sched::requeue(urgent);
    sched::grant_slice(thread);
    set_current(thread);
    // Somebody more urgent comes first, and then the message.
    assert!(tick::tick(thread) == urgent);
    set_current(urgent);
    set_busy(urgent, Busy::Waiting);
    assert!(sched::blocked(urgent) == thread);
    assert!(thread.resume.get() == Resume::Entered && thread.frame().is_out_of_time());
    // On somebody else's slice.
    thread.resume.set(Resume::Frame);
    cpu().scheduler.slice_owner.set(Some(urgent));
    cpu().scheduler.slice_left_us.set(SLICE_US);
    set_current(thread);
    let _ = tick::tick(thread);
    assert_eq!(thread.kind.get(), Kind::Preemption);
}

/// Who has less than a tick left has the timer interrupt then.
#[test]
fn a_short_quantum_ends_before_the_next_tick() {
    let world = World::new();
    others_come_last(&world);
    let thread = player(&world, 0, 1003, 100);
    later(5_000);
    set_current(world.root);
    let _ = tick::tick(world.root);
    let now_us = cpu().scheduler.ticked_us.get();
    slice::set_quantum(thread, 300);
    sched::requeue(thread);
    sched::grant_slice(thread);
    assert_eq!(cpu().scheduler.early_us.get(), now_us + 300);
}

/// Who has asked the kernel something and has its answer goes on with the rest of its slice, before its equals.
#[test]
fn who_goes_back_within_its_slice_goes_first() {
    let world = World::new();
    set_processors(2);
    make_ready(world.root);
    set_current(world.root);
    let guest = third(&world, 1018);
    for thread in [guest, world.two, world.one] {
        thread.slice_left_us.set(2_000);
        make_ready(thread);
        place(&world, thread);
        comers::look();
    }
    let first = || visits::other(1).and_then(Other::first);
    assert_eq!(first(), Some(world.one), "behind nobody but who is there");
    let spent = third(&world, 1019);
    make_ready(spent);
    place(&world, spent);
    comers::look();
    assert_eq!(first(), Some(world.one), "it comes last");
    sound();
}

/// Whose slice's rest is charged when somebody else comes has had its turn.
#[test]
fn a_slice_that_ends_at_a_preemption_is_over() {
    let world = World::new();
    others_come_last(&world);
    let (running, equal, urgent) =
        (player(&world, 0, 1003, 100), player(&world, 1, 1004, 100), player(&world, 1, 1005, 200));
    sched::requeue(equal);
    sched::requeue(urgent);
    sched::grant_slice(running);
    set_current(running);
    cpu().scheduler.slice_left_us.set(0);
    assert!(slice::preempt(running, urgent) == urgent);
    set_current(urgent);
    set_busy(urgent, Busy::Waiting);
    assert!(sched::blocked(urgent) == equal, "it comes behind its equals");
    assert!(running.ready.are_linked());
}

/// An endless slice is not another's when its owner has gone elsewhere, or gets another length.
#[test]
fn an_endless_slice_is_not_left_to_others() {
    let world = World::new();
    others_come_last(&world);
    let (owner, running, urgent) =
        (player(&world, 0, 1003, 100), player(&world, 1, 1004, 100), player(&world, 1, 1005, 200));
    sched::requeue(urgent);
    sched::grant_slice(owner);
    cpu().scheduler.slice_left_us.set(u64::MAX);
    set_busy(owner, Busy::Waiting);
    set_current(running);
    slice::disown(owner);
    assert_eq!(cpu().scheduler.slice_left_us.get(), SLICE_US);
    cpu().scheduler.slice_left_us.set(u64::MAX);
    assert!(slice::preempt(running, urgent) == urgent);
    assert_eq!(running.slice_left_us.get(), SLICE_US);
    sched::requeue(owner);
    set_busy(owner, Busy::Ready);
    cpu().scheduler.ready.insert(owner);
}

/// Who runs on a slice that is nobody's pays when it hands on.
#[test]
fn a_slice_that_is_nobody_s_is_charged_where_it_ends() {
    let world = World::new();
    others_come_last(&world);
    let (running, next) = (player(&world, 0, 1003, 100), player(&world, 1, 1004, 100));
    slice::set_quantum(running, 5_000);
    sched::requeue(running);
    sched::requeue(next);
    later(10_000);
    let _ = slice::charge(world.root, kernel::arch::clock::now_us());
    cpu().scheduler.slice_owner.set(None);
    set_current(running);
    later(2_000);
    sched::grant_slice(next);
    assert_eq!(running.quantum_left_us.get(), 3_000);
}
