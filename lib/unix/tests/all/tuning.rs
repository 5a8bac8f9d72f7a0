//! Scheduling attributes, priorities of input and output, what processes have in common.

use linux_raw_sys::general as l;
use unix::errno::Errno;

use crate::common::World;

/// What is asked for is told again, and inherited, though it has no effect.
#[test]
fn scheduling_attributes_and_io_priorities_are_kept() {
    let world = World::new();
    let first = &world.first;
    let attributes = |policy: u64, rest: [u64; 5]| {
        let mut words = vec![policy << 32 | 48];
        words.extend(rest);
        world.words(first, &words)
    };
    let to = world.scratch(first, 56);
    let deadline = attributes(6, [0, 0, 10_000_000, 20_000_000, 30_000_000]);
    world.ok(first, l::__NR_sched_setattr, &[0, deadline, 0]);
    world.ok(first, l::__NR_sched_getattr, &[0, to, 56, 0]);
    assert_eq!(world.read_u64(first, to), 6 << 32 | 56);
    assert_eq!(world.read_u64(first, to + 24), 10_000_000);
    let bad = attributes(6, [0, 0, 30, 20, 10]);
    world.refused(first, l::__NR_sched_setattr, &[0, bad, 0], Errno::EINVAL);
    world.refused(first, l::__NR_sched_setattr, &[0, deadline, 1], Errno::EINVAL);
    world.refused(first, l::__NR_sched_setattr, &[0, 0, 0], Errno::EINVAL);
    world.refused(first, l::__NR_sched_getattr, &[0, to, 47, 0], Errno::EINVAL);
    world.refused(first, l::__NR_sched_getattr, &[9999, to, 56, 0], Errno::ESRCH);
    let short = world.words(first, &[47, 0, 0, 0, 0, 0, 0]);
    world.refused(first, l::__NR_sched_setattr, &[0, short, 0], Errno::E2BIG);
    assert_eq!(world.read_u32(first, short), 56);
    // Best effort, 5; user 1000 may not have real time.
    world.ok(first, l::__NR_ioprio_set, &[1, 0, 2 << 13 | 5]);
    let child = world.fork(first);
    assert_eq!(world.ok(&child, l::__NR_ioprio_get, &[1, 0]), 2 << 13 | 5);
    world.ok(&child, l::__NR_setuid, &[1000]);
    world.refused(&child, l::__NR_ioprio_set, &[1, 0, 1 << 13], Errno::EPERM);
    world.refused(&child, l::__NR_ioprio_set, &[1, 0, 4 << 13], Errno::EINVAL);
    world.refused(&child, l::__NR_ioprio_set, &[4, 0, 2 << 13], Errno::EINVAL);
}

#[test]
fn kcmp_tells_what_two_processes_share() {
    let world = World::new();
    let first = &world.first;
    let pipe = world.scratch(first, 8);
    world.ok(first, l::__NR_pipe, &[pipe]);
    let (read, write) =
        (world.read_u32(first, pipe).into(), world.read_u32(first, pipe + 4).into());
    let child = world.fork(first);
    let pids = [first.own_tid.get().into(), child.own_tid.get().into()];
    let compare = |kind: u64, one: u64, other: u64| {
        world.ok(first, l::__NR_kcmp, &[pids[0], pids[1], kind, one, other])
    };
    assert_eq!(compare(0, read, read), 0);
    assert_eq!(compare(0, read, write) + compare(0, write, read), 3, "an order");
    assert!((1..=4).all(|kind| compare(kind, 0, 0) != 0), "a fork shares none of these");
    world.refused(first, l::__NR_kcmp, &[pids[0], 9999, 1, 0, 0], Errno::ESRCH);
    world.refused(first, l::__NR_kcmp, &[pids[0], pids[1], 0, 77, 0], Errno::EBADF);
    world.refused(first, l::__NR_kcmp, &[pids[0], pids[1], 9, 0, 0], Errno::EINVAL);
    world.ok(&child, l::__NR_setuid, &[1000]);
    world.refused(&child, l::__NR_kcmp, &[pids[0], pids[1], 1, 0, 0], Errno::EPERM);
}
