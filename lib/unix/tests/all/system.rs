//! The system's name and memory, settings of processes and threads, scheduling.

use crate::common::World;
use linux_raw_sys::general as l;
use linux_raw_sys::prctl as p;
use unix::errno::Errno;
use unix::machine::Reply;

#[test]
fn the_system_has_names() {
    let world = World::new();
    let first = &world.first;
    let name = world.text(first, "elsewhere");
    world.ok(first, l::__NR_sethostname, &[name, 9]);
    let to = world.put(first, &[0xEE; 390]);
    world.ok(first, l::__NR_uname, &[to]);
    let part = |index: u64| {
        let bytes = world.read(first, to + 65 * index, 65);
        String::from_utf8(bytes).unwrap().trim_end_matches('\0').to_string()
    };
    assert_eq!(
        (part(0).as_str(), part(1).as_str(), part(4).as_str()),
        ("Linux", "elsewhere", "x86_64")
    );
    world.refused(first, l::__NR_sethostname, &[name, 65], Errno::EINVAL);
    world.refused(first, l::__NR_sethostname, &[name, u64::MAX], Errno::EINVAL);
    world.refused(first, l::__NR_uname, &[8], Errno::EFAULT);
    let info = world.put(first, &[0; 112]);
    world.ok(first, l::__NR_sysinfo, &[info]);
    assert_eq!(world.read_u64(first, info), 1);
    assert_eq!(world.read_u64(first, info + 32), 64 << 20);
}

#[test]
fn random_bytes_come_in_turns() {
    let world = World::new();
    let first = &world.first;
    let to = world.scratch(first, 200_000);
    assert_eq!(world.ok(first, l::__NR_getrandom, &[to, 200_000, 0]), 200_000);
    assert_ne!(world.read(first, to + 199_000, 1000), [0; 1000]);
    assert_eq!(world.ok(first, l::__NR_getrandom, &[8, 0, 0]), 0);
    world.refused(first, l::__NR_getrandom, &[8, 1, 0], Errno::EFAULT);
    world.refused(first, l::__NR_getrandom, &[to, 1, 6], Errno::EINVAL);
    world.refused(first, l::__NR_getrandom, &[to, 1, 8], Errno::EINVAL);
}

#[test]
fn threads_have_names_and_bases() {
    let world = World::new();
    let first = &world.first;
    let name = world.text(first, "a name that is too long");
    world.ok(first, l::__NR_prctl, &[p::PR_SET_NAME.into(), name]);
    let to = world.put(first, &[0xEE; 16]);
    world.ok(first, l::__NR_prctl, &[p::PR_GET_NAME.into(), to]);
    assert_eq!(world.read(first, to, 16), b"a name that is \0");
    assert_eq!(first.process().name(), *b"a name that is \0");
    assert_eq!(world.call(first, l::__NR_arch_prctl, &[0x1002, 0x7000_1234]), None);
    assert_eq!(world.next_event(first), Some(Reply::Resume));
    let registers = world.registers(first);
    assert_eq!((registers.fs_base, registers.rax), (0x7000_1234, 0));
    world.ok(first, l::__NR_arch_prctl, &[0x1003, to]);
    assert_eq!(world.read_u64(first, to), 0x7000_1234);
    world.refused(first, l::__NR_arch_prctl, &[0x1002, 1 << 63], Errno::EPERM);
    world.refused(first, l::__NR_arch_prctl, &[0x1003, 8], Errno::EFAULT);
    world.refused(first, l::__NR_arch_prctl, &[7, 0], Errno::EINVAL);
    world.refused(first, l::__NR_prctl, &[12345, 0], Errno::EINVAL);
    world.refused(first, l::__NR_prctl, &[p::PR_SET_PDEATHSIG.into(), 65], Errno::EINVAL);
    world.refused(first, l::__NR_prctl, &[p::PR_SET_NO_NEW_PRIVS.into(), 2], Errno::EINVAL);
    world.ok(first, l::__NR_prctl, &[p::PR_SET_NO_NEW_PRIVS.into(), 1]);
    let child = world.fork(first);
    assert_eq!(world.ok(&child, l::__NR_prctl, &[p::PR_GET_NO_NEW_PRIVS.into()]), 1);
    world.refused(first, l::__NR_set_robust_list, &[to, 8], Errno::EINVAL);
    world.ok(first, l::__NR_set_robust_list, &[to, 24]);
    assert_eq!(world.ok(first, l::__NR_set_tid_address, &[to]), 1);
    assert_eq!(world.ok(first, l::__NR_personality, &[u32::MAX.into()]), 0);
}

#[test]
fn scheduling_is_kept_and_told() {
    let world = World::new();
    let first = &world.first;
    let to = world.put(first, &[0xEE; 64]);
    assert_eq!(world.ok(first, l::__NR_sched_getaffinity, &[0, 64, to]), 8);
    assert_eq!(world.read_u64(first, to), 1);
    world.refused(first, l::__NR_sched_getaffinity, &[0, 4, to], Errno::EINVAL);
    world.ok(first, l::__NR_sched_setaffinity, &[0, 8, to]);
    let none = world.words(first, &[2]);
    world.refused(first, l::__NR_sched_setaffinity, &[0, 8, none], Errno::EINVAL);
    assert_eq!(world.ok(first, l::__NR_sched_get_priority_max, &[1]), 99);
    world.refused(first, l::__NR_sched_get_priority_min, &[77], Errno::EINVAL);
    let priority = world.words(first, &[5]);
    world.ok(first, l::__NR_sched_setscheduler, &[0, 2, priority]);
    assert_eq!(world.ok(first, l::__NR_sched_getscheduler, &[0]), 2);
    world.refused(first, l::__NR_sched_setscheduler, &[0, 0, priority], Errno::EINVAL);
    // Found by stress-ng: what it was told then (no deadline) could not be set.
    let none = world.put(first, &[0; 4]);
    let deadline = u64::from(l::SCHED_DEADLINE);
    world.refused(first, l::__NR_sched_setscheduler, &[0, deadline, none], Errno::EINVAL);
    world.refused(first, l::__NR_sched_getscheduler, &[99], Errno::ESRCH);
    world.refused(first, l::__NR_sched_getscheduler, &[u64::MAX], Errno::EINVAL);
    assert_eq!(world.ok(first, l::__NR_getpriority, &[0, 0]), 20);
    world.ok(first, l::__NR_setpriority, &[0, 0, 5]);
    assert_eq!(world.ok(first, l::__NR_getpriority, &[0, 0]), 15);
    world.refused(first, l::__NR_getpriority, &[3, 0], Errno::EINVAL);
    world.refused(first, l::__NR_getpriority, &[0, 99], Errno::ESRCH);
    world.ok(first, l::__NR_getcpu, &[to, to + 4, 0]);
    assert_eq!(world.read_u64(first, to), 0);
}

#[test]
fn who_gives_its_turn_away_goes_on_when_others_have_had_theirs() {
    let world = World::new();
    let first = &world.first;
    let other = world.fork(first);
    world.waits(first, l::__NR_sched_yield, &[]);
    // Others are served meanwhile.
    world.ok(&other, l::__NR_getppid, &[]);
    assert_eq!(world.next_reply(first), None);
    world.turn();
    assert_eq!(world.next_reply(first), Some(0));
    world.ok(first, l::__NR_getpid, &[]);
}

#[test]
fn whoever_has_cost_a_slice_gets_its_answer_when_others_have_had_their_turn() {
    let world = World::new();
    let first = &world.first;
    world.unix.give_turn_next(first);
    world.waits(first, l::__NR_getppid, &[]);
    world.turn();
    assert_eq!(world.next_reply(first), Some(0));
    // A call that waits has no turn to give.
    let ends = world.scratch(first, 8);
    world.ok(first, l::__NR_pipe2, &[ends, 0]);
    world.unix.give_turn_next(first);
    world.waits(first, l::__NR_read, &[world.read_u64(first, ends) & 0xFFFF_FFFF, ends, 1]);
    assert!(!world.machine.turn.get());
}

#[test]
fn who_yields_on_another_processor_does_not_wait_for_those_of_the_first() {
    let world = World::with_processors(2);
    let first = &world.first;
    let mask = world.words(first, &[2]);
    world.ok(first, l::__NR_sched_setaffinity, &[0, 8, mask]);
    world.ok(first, l::__NR_sched_yield, &[]);
    assert!(!world.machine.turn.get());
}

#[test]
fn who_is_held_back_can_be_killed() {
    let world = World::new();
    let first = &world.first;
    let other = world.fork(first);
    world.waits(&other, l::__NR_sched_yield, &[]);
    world.ok(first, l::__NR_kill, &[other.own_tid.get().into(), 9]);
    world.turn();
    let to = world.scratch(first, 8);
    let ended = world.ok(first, l::__NR_wait4, &[u64::from(other.own_tid.get()), to, 0, 0]);
    assert_eq!(ended, u64::from(other.own_tid.get()));
    assert_eq!(world.read_u64(first, to) & 0x7F, 9);
}

#[test]
fn a_signal_meets_who_is_held_back_when_it_goes_on() {
    let world = World::new();
    let first = &world.first;
    let other = world.fork(first);
    world.waits(&other, l::__NR_sched_yield, &[]);
    world.ok(first, l::__NR_kill, &[other.own_tid.get().into(), l::SIGSTOP.into()]);
    world.ok(first, l::__NR_kill, &[other.own_tid.get().into(), l::SIGCONT.into()]);
    world.turn();
    assert_eq!(world.next_reply(&other), Some(0));
}

#[test]
fn root_can_end_the_system() {
    let world = World::new();
    let first = &world.first;
    world.refused(first, l::__NR_reboot, &[1, 2, 3], Errno::EINVAL);
    let user = world.fork(first);
    world.ok(&user, l::__NR_setuid, &[1]);
    let off = [0xFEE1_DEAD, 672_274_793, 0x4321_FEDC];
    world.refused(&user, l::__NR_reboot, &off, Errno::EPERM);
    world.waits(first, l::__NR_reboot, &off);
    assert_eq!(world.machine.halted.get(), Some(0));
}

/// Who asks about a child may come when it has ended, but not before it was waited for.
#[test]
fn the_dead_have_a_policy_until_they_are_buried() {
    let world = World::new();
    let root = &world.first;
    let child = world.fork(root);
    let pid = u64::from(child.own_tid.get());
    world.call(&child, l::__NR_exit_group, &[0]);
    let at = world.words(root, &[7]);
    assert_eq!(world.ok(root, l::__NR_sched_getscheduler, &[pid]), 0);
    assert_eq!(world.ok(root, l::__NR_sched_getparam, &[pid, at]), 0);
    assert_eq!(world.ok(root, l::__NR_getpriority, &[0, pid]), 20);
    assert_eq!(world.ok(root, l::__NR_wait4, &[pid, 0, 0, 0]), pid);
    world.refused(root, l::__NR_sched_getscheduler, &[pid], Errno::ESRCH);
}
