//! Credentials, resource limits, what processes have used.

use crate::common::World;
use linux_raw_sys::general as l;
use unix::errno::Errno;

#[test]
fn credentials_change_as_linux_lets_them() {
    let world = World::new();
    let user = world.fork(&world.first);
    let groups = world.put(&user, &[7, 0, 0, 0, 3, 0, 0, 0]);
    world.ok(&user, l::__NR_setgroups, &[2, groups]);
    world.refused(&user, l::__NR_getgroups, &[1, groups], Errno::EINVAL);
    assert_eq!(world.ok(&user, l::__NR_getgroups, &[2, groups]), 2);
    assert_eq!(world.read_u32(&user, groups), 3);
    world.ok(&user, l::__NR_setresuid, &[100, 101, 102]);
    assert_eq!(world.ok(&user, l::__NR_getuid, &[]), 100);
    assert_eq!(world.ok(&user, l::__NR_geteuid, &[]), 101);
    world.refused(&user, l::__NR_setuid, &[5], Errno::EPERM);
    world.refused(&user, l::__NR_setgroups, &[0, 0], Errno::EPERM);
    world.ok(&user, l::__NR_setuid, &[102]);
    let ids = world.put(&user, &[0; 12]);
    world.ok(&user, l::__NR_getresuid, &[ids, ids + 4, ids + 8]);
    let read = |at| world.read_u32(&user, ids + at);
    assert_eq!((read(0), read(4), read(8)), (100, 102, 102));
    world.refused(&user, l::__NR_kill, &[1, 0], Errno::EPERM);
    world.refused(&user, l::__NR_setreuid, &[101, u64::MAX], Errno::EPERM);
    world.ok(&user, l::__NR_setreuid, &[u32::MAX.into(), 100]);
    assert_eq!(world.ok(&user, l::__NR_geteuid, &[]), 100);
    let name = world.text(&user, "host");
    world.refused(&user, l::__NR_sethostname, &[name, 4], Errno::EPERM);
    world.ok(&world.first, l::__NR_kill, &[user.own_tid.get().into(), 0]);
}

#[test]
fn limits_are_kept() {
    let world = World::new();
    let first = &world.first;
    let limit = world.words(first, &[10, 20]);
    let old = world.words(first, &[0, 0]);
    let nofile = u64::from(l::RLIMIT_NOFILE);
    world.ok(first, l::__NR_prlimit64, &[0, nofile, limit, old]);
    assert_eq!(world.read_u64(first, old), 1024);
    world.ok(first, l::__NR_getrlimit, &[nofile, old]);
    assert_eq!((world.read_u64(first, old), world.read_u64(first, old + 8)), (10, 20));
    world.refused(first, l::__NR_getrlimit, &[16, old], Errno::EINVAL);
    let wrong = world.words(first, &[2, 1]);
    world.refused(first, l::__NR_setrlimit, &[nofile, wrong], Errno::EINVAL);
    let too_many = world.words(first, &[1, 1 << 40]);
    world.refused(first, l::__NR_setrlimit, &[nofile, too_many], Errno::EPERM);
    world.refused(first, l::__NR_prlimit64, &[999, nofile, 0, old], Errno::ESRCH);
    let user = world.fork(first);
    world.ok(&user, l::__NR_setuid, &[5]);
    let more = world.words(&user, &[10, 21]);
    world.refused(&user, l::__NR_setrlimit, &[nofile, more], Errno::EPERM);
}

#[test]
fn times_of_children_are_added_up() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    world.machine.with(child.machine.get(), |thread| {
        (thread.user_ns, thread.system_ns) = (2_500_000_000, 1_250_000_000);
    });
    world.call(&child, l::__NR_exit_group, &[0]);
    let usage = world.put(first, &[0; 144]);
    world.ok(first, l::__NR_wait4, &[u64::MAX, 0, 0, usage]);
    assert_eq!((world.read_u64(first, usage), world.read_u64(first, usage + 8)), (2, 500_000));
    let system = [16, 24].map(|at| world.read_u64(first, usage + at));
    assert_eq!(system, [1, 250_000]);
    world.ok(first, l::__NR_getrusage, &[l::RUSAGE_CHILDREN as u64, usage]);
    assert_eq!(world.read_u64(first, usage), 2);
    let times = world.words(first, &[0; 4]);
    assert_eq!(world.ok(first, l::__NR_times, &[times]), 100);
    assert_eq!([16, 24].map(|at| world.read_u64(first, times + at)), [250, 125]);
    world.refused(first, l::__NR_getrusage, &[5, usage], Errno::EINVAL);
}
