//! `membarrier`: whoever may be running elsewhere comes back before it returns, and nobody else.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::thread::Thread;

use crate::common::World;

const GLOBAL: u64 = 1;
const GLOBAL_EXPEDITED: u64 = 2;
const REGISTER_GLOBAL: u64 = 4;
const PRIVATE: u64 = 8;
const REGISTER_PRIVATE: u64 = 16;
const SYNC_CORE: u64 = 32;
const REGISTER_SYNC_CORE: u64 = 64;

const THREAD: u32 = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD | l::CLONE_FILES | l::CLONE_FS;

fn born(world: &World, parent: &Rc<Thread>, flags: u32) -> Rc<Thread> {
    let tid = world.ok(parent, l::__NR_clone, &[flags.into(), 0, 0, 0, 0]);
    let child = world.thread(tid);
    let _ = world.next_event(&child);
    child
}

/// `thread` runs on processor `number`, and nobody has brought it back.
fn settle(world: &World, thread: &Rc<Thread>, number: u32) {
    let mask = world.words(thread, &[1 << number]);
    world.ok(thread, l::__NR_sched_setaffinity, &[0, 8, mask]);
    world.machine.with(thread.machine.get(), |thread| thread.fences = 0);
}

/// How often each was brought back since.
fn fences<const COUNT: usize>(world: &World, threads: [&Rc<Thread>; COUNT]) -> [u32; COUNT] {
    threads.map(|thread| {
        world.machine.with(thread.machine.get(), |thread| std::mem::take(&mut thread.fences))
    })
}

#[test]
fn whoever_runs_elsewhere_has_executed_a_barrier() {
    let world = World::with_processors(4);
    let first = &world.first;
    let other = born(&world, first, THREAD);
    let third = born(&world, first, THREAD);
    let here = born(&world, first, THREAD);
    let sharer = born(&world, first, l::CLONE_VM);
    let stranger = world.fork(first);
    let own = [(first, 0), (&other, 1), (&third, 3), (&here, 0), (&sharer, 2)];
    own.into_iter().chain([(&stranger, 1)]).for_each(|(thread, at)| settle(&world, thread, at));
    let seen = || fences(&world, [first, &other, &third, &here, &sharer, &stranger]);
    let barrier = |thread, command| world.ok(thread, l::__NR_membarrier, &[command, 0]);

    for (command, register) in [(PRIVATE, REGISTER_PRIVATE), (SYNC_CORE, REGISTER_SYNC_CORE)] {
        world.refused(first, l::__NR_membarrier, &[command, 0], Errno::EPERM);
        barrier(first, register);
        assert_eq!(seen(), [0; 6]);
        barrier(first, command);
        assert_eq!(
            seen(),
            [0, 1, 1, 0, 1, 0],
            "all of the memory that are elsewhere, and no others"
        );
    }
    barrier(first, GLOBAL);
    assert_eq!(seen(), [0, 1, 1, 0, 1, 1]);
    barrier(first, GLOBAL_EXPEDITED);
    assert_eq!(seen(), [0; 6], "nobody has registered");
    barrier(&stranger, REGISTER_GLOBAL);
    barrier(first, GLOBAL_EXPEDITED);
    assert_eq!(seen(), [0, 0, 0, 0, 0, 1]);

    // Who waits has passed through the kernel; so has the caller, wherever it runs.
    world.waits(&other, l::__NR_pause, &[]);
    barrier(&third, PRIVATE);
    assert_eq!(seen(), [0, 0, 0, 0, 1, 0]);
}

/// The registration is the memory's: a fork's copy has it, a new program has not.
#[test]
fn a_fork_has_the_registrations_of_its_parent() {
    let world = World::with_processors(2);
    world.ok(&world.first, l::__NR_membarrier, &[REGISTER_PRIVATE, 0]);
    let child = world.fork(&world.first);
    world.ok(&child, l::__NR_membarrier, &[PRIVATE, 0]);
    world.refused(&child, l::__NR_membarrier, &[SYNC_CORE, 0], Errno::EPERM);
}

#[test]
fn on_one_processor_nobody_is_asked() {
    let world = World::new();
    let other = born(&world, &world.first, THREAD);
    world.ok(&world.first, l::__NR_membarrier, &[GLOBAL, 0]);
    assert_eq!(fences(&world, [&world.first, &other]), [0; 2]);
}

/// With many threads, others have their turn meanwhile.
#[test]
fn many_come_back_in_turns() {
    let world = World::with_processors(2);
    let (first, asker) = (&world.first, world.fork(&world.first));
    world.ok(first, l::__NR_membarrier, &[REGISTER_PRIVATE, 0]);
    let threads: Vec<_> = (0..300).map(|_| born(&world, first, THREAD)).collect();
    threads.iter().for_each(|thread| settle(&world, thread, 1));
    assert_eq!(world.call(first, l::__NR_membarrier, &[PRIVATE, 0]), None);
    let mut turns = 0;
    let result = loop {
        if let Some(result) = world.next_reply(first) {
            break result;
        }
        world.ok(&asker, l::__NR_getpid, &[]);
        world.advance(10_000);
        turns += 1;
    };
    assert_eq!(result, 0);
    assert!(turns >= 4, "{turns} turns of others");
    assert!(threads.iter().all(|thread| fences(&world, [thread]) == [1]));
}
