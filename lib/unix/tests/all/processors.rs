//! Several processors: who goes where, and what is told about it.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::thread::Thread;

use crate::common::World;
use crate::common::caller::Program;

/// Where the machine runs the thread.
fn place(world: &World, thread: &Rc<Thread>) -> u32 {
    let machine = world.machine.with(thread.machine.get(), |thread| thread.processor);
    assert_eq!(machine, thread.whereabouts.processor.get(), "the machine knows otherwise");
    machine
}

fn loads(world: &World) -> Vec<u32> {
    (0..world.unix.processors.count()).map(|number| world.unix.processors.load(number)).collect()
}

/// Where a thread may run is kept, inherited and told; where it runs follows.
#[test]
fn programs_choose_among_the_processors() {
    let world = World::with_processors(4);
    let first = &world.first;
    let to = world.put(first, &[0xEE; 64]);
    let mask = |bits: u64| world.words(first, &[bits]);
    world.ok(first, l::__NR_sched_getaffinity, &[0, 64, to]);
    assert_eq!(world.read_u64(first, to), 0b1111);
    for (asked, kept, runs) in [(0b0110, 0b0110, 1), (0b1_0001, 0b0001, 0), (u64::MAX, 0b1111, 0)] {
        world.ok(first, l::__NR_sched_setaffinity, &[0, 8, mask(asked)]);
        world.ok(first, l::__NR_sched_getaffinity, &[0, 64, to]);
        assert_eq!(world.read_u64(first, to), kept);
        world.ok(first, l::__NR_getcpu, &[to, 0, 0]);
        assert_eq!(world.read_u64(first, to) as u32, runs, "it moves only if it must");
        assert_eq!(place(&world, first), runs);
    }
    for none in [0, 1 << 4, 1 << 63] {
        world.refused(first, l::__NR_sched_setaffinity, &[0, 8, mask(none)], Errno::EINVAL);
    }
    world.ok(first, l::__NR_sched_setaffinity, &[0, 8, mask(0b0100)]);
    let child = world.fork(first);
    assert_eq!(place(&world, &child), 2, "its parent has left it no choice");
    world.ok(&child, l::__NR_sched_getaffinity, &[0, 64, to]);
    assert_eq!(world.read_u64(&child, to), 0b0100);
}

/// Everybody who computes has a processor of its own as long as there is one.
#[test]
fn the_newborn_go_to_the_least_loaded() {
    let world = World::with_processors(4);
    let children: Vec<_> = (0..7).map(|_| world.fork(&world.first)).collect();
    assert_eq!(loads(&world), [2; 4]);
    let places: Vec<_> = children.iter().map(|child| place(&world, child)).collect();
    assert_eq!(places, [1, 2, 3, 0, 1, 2, 3]);
    for child in &children {
        world.call(child, l::__NR_exit_group, &[0]);
    }
    assert_eq!(loads(&world), [1, 0, 0, 0]);
}

/// Two that wake each other in turns, the one going on when the other waits, stay together.
#[test]
fn those_who_wait_for_each_other_stay_together() {
    let world = World::with_processors(2);
    let first = &world.first;
    let child = world.fork(first);
    let status = world.put(first, &[0; 4]);
    world.waits(first, l::__NR_wait4, &[u64::MAX, status, 0, 0]);
    assert_eq!(loads(&world), [0, 1], "who waits does not count");
    let grandchild = world.fork(&child);
    assert_eq!((place(&world, &child), place(&world, &grandchild)), (1, 0));
    world.call(&child, l::__NR_exit_group, &[0]);
    assert_eq!(world.next_reply(first), Some(u64::from(child.own_tid.get())));
    assert_eq!(place(&world, first), 1, "it is free where its child was");
    assert_eq!(loads(&world), [1, 1]);
}

/// A processor that has nobody left gets one of those that share another one, but those only
/// that may go there.
#[test]
fn an_empty_processor_gets_somebody() {
    let world = World::with_processors(2);
    let first = &world.first;
    let second = world.words(first, &[0b10]);
    let children: Vec<_> = (0..4).map(|_| world.fork(first)).collect();
    let places = || children.iter().map(|child| place(&world, child)).collect::<Vec<_>>();
    assert_eq!(places(), [1, 0, 1, 0]);
    world.ok(&children[0], l::__NR_sched_setaffinity, &[0, 8, second]);
    world.call(&children[1], l::__NR_exit_group, &[0]);
    world.call(&children[3], l::__NR_exit_group, &[0]);
    assert_eq!(loads(&world), [1, 2]);
    let status = world.put(first, &[0; 4]);
    world.ok(first, l::__NR_wait4, &[u64::MAX, status, 0, 0]);
    world.ok(first, l::__NR_wait4, &[u64::MAX, status, 0, 0]);
    world.waits(first, l::__NR_wait4, &[u64::MAX, status, 0, 0]);
    assert_eq!(place(&world, &children[0]), 1, "it may be there only");
    assert_eq!(place(&world, &children[2]), 0);
    assert_eq!(loads(&world), [1, 1]);
}

/// `/proc` tells how many there are and who has run where, those that have ended included.
#[test]
fn proc_tells_of_all() {
    let world = World::with_processors(3);
    let child = world.fork(&world.first);
    world.machine.with(child.machine.get(), |thread| thread.user_ns = 50_000_000);
    world.machine.with(child.machine.get(), |thread| thread.system_ns = 20_000_000);
    world.advance(200_000_000);
    let program = Program::new(&world, &world.first);
    let file = |path: &str| String::from_utf8(program.contents(path)).unwrap();
    let stat = || file("/proc/stat");
    assert!(stat().starts_with("cpu  5 0 2 353 0"), "{}", stat());
    assert!(stat().contains("\ncpu0 0 0 2 118 0"), "{}", stat());
    assert!(stat().contains("\ncpu1 5 0 0 115 0"), "{}", stat());
    assert_eq!(file("/proc/uptime"), "1.20 3.53\n", "since the start, and idle on all");
    let to = world.words(&child, &[0b100]);
    world.ok(&child, l::__NR_sched_setaffinity, &[0, 8, to]);
    world.machine.with(child.machine.get(), |thread| thread.user_ns = 80_000_000);
    world.machine.with(child.machine.get(), |thread| thread.system_ns = 50_000_000);
    assert!(stat().contains("\ncpu0 0 0 5 115 0"), "the server runs there: {}", stat());
    assert!(stat().contains("\ncpu1 5 0 0 115 0"), "{}", stat());
    assert!(stat().contains("\ncpu2 3 0 0 117 0"), "{}", stat());
    let of_child = file(&format!("/proc/{}/stat", child.own_tid.get()));
    assert_eq!(of_child.split(' ').nth(38), Some("2"), "{of_child}");
    world.call(&child, l::__NR_exit_group, &[0]);
    assert!(stat().contains("\ncpu2 3 0 0 117 0"), "those who have ended count: {}", stat());
    assert!(stat().starts_with("cpu  8 0 5 347 0 0 0 0 0 0\ncpu0 0 0 5 115 0"), "{}", stat());
    assert_eq!(file("/proc/cpuinfo").matches("processor\t: ").count(), 3);
    let status = file("/proc/1/status");
    assert!(status.contains("Cpus_allowed:\t7\nCpus_allowed_list:\t0-2\n"), "{status}");
}

#[test]
fn programs_ask_where_they_run_where_there_is_a_choice() {
    let at = unix::exec::vdso::PROCESSORS;
    for count in [1, 2] {
        let world = World::with_processors(count);
        let word = world.unix.mm.vdso.word(&world.unix, at);
        assert_eq!(word, Some(count.into()));
    }
}

/// Words of `/proc/loadavg`.
fn load_averages(program: &Program<'_>) -> Vec<String> {
    let text = String::from_utf8(program.contents("/proc/loadavg")).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

/// One that computes for a minute, and then sleeps for five.
#[test]
fn load_averages_come_and_go() {
    const SECOND: u64 = 1_000_000_000;
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let child = root.fork();
    let time = world.words(&child.thread, &[300, 0]);
    world.waits(&root.thread, l::__NR_pause, &[]);
    assert_eq!(load_averages(&child), ["0.00", "0.00", "0.00", "1/2", "2"]);
    world.advance(60 * SECOND);
    assert_eq!(load_averages(&child), ["0.63", "0.18", "0.06", "1/2", "2"]);
    world.waits(&child.thread, l::__NR_nanosleep, &[time, 0]);
    // The server looks before it works on an event.
    world.machine.now_ns.set(world.machine.now_ns.get() + 300 * SECOND);
    world.unix.processors.look(world.machine.now_ns.get());
    world.advance(0);
    assert_eq!(world.next_reply(&child.thread), Some(0));
    let after = load_averages(&child);
    assert_eq!(after, ["0.00", "0.07", "0.05", "1/2", "2"]);
    let info = world.scratch(&child.thread, 112);
    world.ok(&child.thread, l::__NR_sysinfo, &[info]);
    for (at, told) in (0..3).zip(after) {
        let average = world.read_u64(&child.thread, info + 8 + 8 * at) as f64 / 65536.0;
        assert_eq!(format!("{average:.2}"), told);
    }
}
