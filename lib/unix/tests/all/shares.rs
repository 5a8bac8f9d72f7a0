//! What nice values and policies do to who runs (`docs/decisions/0127`).

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::{Share, Urgency};
use unix::thread::Thread;

use crate::common::World;

const LOOK_NS: u64 = 50_000_000;
const THREAD: u64 = (l::CLONE_VM
    | l::CLONE_FS
    | l::CLONE_FILES
    | l::CLONE_SIGHAND
    | l::CLONE_THREAD
    | l::CLONE_SYSVSEM) as u64;

fn share(world: &World, thread: &Rc<Thread>) -> Option<(Urgency, u32)> {
    let share = world.machine.with(thread.machine.get(), |thread| thread.share);
    share.map(|Share { urgency, ticks }| (urgency, ticks))
}

fn set_nice(world: &World, thread: &Rc<Thread>, nice: i64) {
    world.ok(thread, l::__NR_setpriority, &[0, 0, nice as u64]);
}

fn new_thread(world: &World, thread: &Rc<Thread>) -> Rc<Thread> {
    let stack = world.scratch(thread, 4096) + 4096;
    let tid = world.ok(thread, l::__NR_clone, &[THREAD, stack, 0, 0, 0]);
    let new = world.thread(tid);
    world.next_event(&new);
    new
}

const BACKGROUND: Option<(Urgency, u32)> = Some((Urgency::Background, 1));
const LENT: Option<(Urgency, u32)> = Some((Urgency::Ordinary, 1));

#[test]
fn the_machine_is_told_and_children_begin_so() {
    let world = World::new();
    let first = &world.first;
    assert_eq!(share(&world, first), None);
    assert_eq!(share(&world, &world.fork(first)), None, "who is as most are costs no more");
    set_nice(&world, first, 5);
    assert_eq!(share(&world, first), Some((Urgency::Ordinary, 3)));
    assert_eq!(share(&world, &world.fork(first)), Some((Urgency::Ordinary, 3)));
    set_nice(&world, first, -20);
    assert_eq!(share(&world, first), Some((Urgency::Ordinary, 93)));
    set_nice(&world, first, 19);
    assert_eq!(share(&world, first), BACKGROUND);
    let priority = world.words(first, &[7]);
    world.ok(first, l::__NR_sched_setscheduler, &[0, l::SCHED_FIFO.into(), priority]);
    assert_eq!(share(&world, first), Some((Urgency::Ordinary, 93)));
    let child = world.fork(first);
    world.ok(first, l::__NR_setpriority, &[0, child.own_tid.get().into(), 3]);
    let none = world.words(first, &[0]);
    world.ok(&child, l::__NR_sched_setscheduler, &[0, l::SCHED_BATCH.into(), none]);
    assert_eq!(share(&world, &child), Some((Urgency::Ordinary, 5)));
}

/// A nice value is a thread's own; that of a process is its first thread's.
#[test]
fn a_thread_is_nice_alone() {
    let world = World::new();
    let first = &world.first;
    let thread = new_thread(&world, first);
    set_nice(&world, &thread, 10);
    assert_eq!((share(&world, first), first.process.tuning().nice), (None, 0));
    assert_eq!(world.ok(first, l::__NR_getpriority, &[0, thread.own_tid.get().into()]), 10);
    assert_eq!(world.ok(first, l::__NR_getpriority, &[0, 0]), 20);
    // All threads of a group.
    world.ok(first, l::__NR_setpriority, &[1, 0, 12]);
    assert_eq!([first.tuning.get().nice, thread.tuning.get().nice], [12, 12]);
    // And who has ended has what it had.
    let child = world.fork(first);
    let number = u64::from(child.own_tid.get());
    world.call(&child, l::__NR_exit_group, &[0]);
    assert_eq!(world.ok(first, l::__NR_getpriority, &[0, number]), 8);
}

#[test]
fn limits_say_who_may_be_less_nice() {
    let world = World::new();
    let child = world.fork(&world.first);
    for (which, most) in [(l::RLIMIT_NICE, 18), (l::RLIMIT_RTPRIO, 4)] {
        let limit = world.words(&child, &[most, most]);
        world.ok(&child, l::__NR_setrlimit, &[which.into(), limit]);
    }
    world.ok(&child, l::__NR_setuid, &[1000]);
    set_nice(&world, &child, 15);
    set_nice(&world, &child, 2);
    world.refused(&child, l::__NR_setpriority, &[0, 0, 1], Errno::EACCES);
    let set = |policy: u32, priority| {
        let priority = world.words(&child, &[priority]);
        world.call(&child, l::__NR_sched_setscheduler, &[0, policy.into(), priority])
    };
    assert_eq!(set(l::SCHED_FIFO, 5), Some(Errno::EPERM.result()));
    assert_eq!(set(l::SCHED_FIFO, 4), Some(0));
    assert_eq!(set(l::SCHED_IDLE, 0), Some(0));
    assert_eq!(set(l::SCHED_NORMAL, 0), Some(0));
    set_nice(&world, &child, 5);
    let limit = world.words(&child, &[0, 0]);
    world.ok(&child, l::__NR_setrlimit, &[l::RLIMIT_NICE.into(), limit]);
    assert_eq!(set(l::SCHED_IDLE, 0), Some(0));
    assert_eq!(set(l::SCHED_NORMAL, 0), Some(Errno::EPERM.result()));
}

/// One in the background at a time is among the others until it has run; then there is a pause.
#[test]
fn those_in_the_background_are_lent_a_place() {
    let world = World::new();
    let first = &world.first;
    let [one, other] = [world.fork(first), world.fork(first)];
    set_nice(&world, &one, 19);
    set_nice(&world, &other, 19);
    let shares = || [share(&world, &one), share(&world, &other)];
    assert_eq!(shares(), [BACKGROUND; 2]);
    world.advance(LOOK_NS);
    assert_eq!(shares(), [LENT, BACKGROUND]);
    world.advance(100 * LOOK_NS);
    assert_eq!(shares(), [LENT, BACKGROUND], "it has not run");
    world.machine.with(one.machine.get(), |thread| thread.user_ns += 1_000_000);
    world.advance(LOOK_NS);
    assert_eq!(shares(), [BACKGROUND; 2]);
    world.advance(6 * LOOK_NS);
    assert_eq!(shares(), [BACKGROUND; 2]);
    world.advance(LOOK_NS);
    assert_eq!(shares(), [BACKGROUND, LENT]);
    // Who waits needs no place; who can run gets it.
    let ends = world.scratch(&other, 8);
    world.ok(&other, l::__NR_pipe2, &[ends, 0]);
    world.waits(&other, l::__NR_read, &[world.read_u32(&other, ends).into(), ends, 1]);
    world.advance(9 * LOOK_NS);
    assert_eq!(shares(), [LENT, BACKGROUND]);
}

/// Whoever changes its nice value while it has the place, and never runs, keeps it from nobody.
#[test]
fn who_is_tuned_while_it_has_the_place_gives_it_back() {
    let world = World::new();
    let first = &world.first;
    let [one, other] = [world.fork(first), world.fork(first)];
    set_nice(&world, &one, 19);
    set_nice(&world, &other, 19);
    world.advance(LOOK_NS);
    assert_eq!(share(&world, &one), LENT);
    world.ok(first, l::__NR_setpriority, &[0, one.own_tid.get().into(), 12]);
    assert_eq!(share(&world, &one), Some((Urgency::Background, 5)));
    world.advance(10 * LOOK_NS);
    assert_eq!(share(&world, &other), LENT);
}

#[test]
fn who_leaves_the_background_or_ends_is_forgotten() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    set_nice(&world, &child, 19);
    world.advance(LOOK_NS);
    world.ok(first, l::__NR_setpriority, &[0, child.own_tid.get().into(), 1]);
    assert_eq!(share(&world, &child), Some((Urgency::Ordinary, 8)));
    world.advance(4 * LOOK_NS);
    let alarms = world.machine.alarms.get();
    world.advance(1000 * LOOK_NS);
    assert_eq!(share(&world, &child), Some((Urgency::Ordinary, 8)));
    assert_eq!(world.machine.alarms.get(), alarms, "nobody is looked for any more");
    set_nice(&world, &child, 19);
    world.advance(LOOK_NS);
    assert_eq!(share(&world, &child), LENT);
    world.call(&child, l::__NR_exit_group, &[0]);
    world.advance(20 * LOOK_NS);
    let alarms = world.machine.alarms.get();
    world.advance(1000 * LOOK_NS);
    assert_eq!(world.machine.alarms.get(), alarms);
}

/// The turns of others in the background may never come: who gave its own away goes on with the next look.
#[test]
fn a_turn_given_away_in_the_background_comes_back() {
    let world = World::new();
    let child = world.fork(&world.first);
    set_nice(&world, &child, 19);
    world.waits(&child, l::__NR_sched_yield, &[]);
    world.advance(LOOK_NS);
    assert_eq!(world.next_reply(&child), Some(0));
}
