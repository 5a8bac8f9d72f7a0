//! Namespaces of process numbers: who is called what, and by whom.

mod init;
mod told;

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

const EPERM: i64 = -1;
const ENOENT: i64 = -2;
const ESRCH: i64 = -3;
const ECHILD: i64 = -10;
const ENOMEM: i64 = -12;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;
const ENOSPC: i64 = -28;
const NEW: u64 = l::CLONE_NEWPID as u64;
const CHILD: u64 = l::SIGCHLD as u64;

/// A child that is made with these flags; the number that its parent is told.
#[track_caller]
fn born<'a>(parent: &Program<'a>, flags: u64) -> (u64, Program<'a>) {
    let number = parent.call(l::__NR_clone, &[flags | CHILD]);
    assert!(number > 0, "clone: {number}");
    let child = parent.with(&parent.world.thread_of(&parent.thread, number as u64));
    assert!(parent.world.next_event(&child.thread).is_some());
    (number as u64, child)
}

/// What a process calls itself, its thread, its parent, its group, its session.
fn calls_itself(program: &Program<'_>) -> [i64; 5] {
    [l::__NR_getpid, l::__NR_gettid, l::__NR_getppid, l::__NR_getpgrp, l::__NR_getsid]
        .map(|call| program.call(call, &[0]))
}

fn kill(program: &Program<'_>, number: u64, signal: u32) -> i64 {
    program.call(l::__NR_kill, &[number, signal.into()])
}

/// Waits for any child: its number and status; or why not. 0 is nobody yet.
fn wait(program: &Program<'_>, which: u64) -> (i64, u32) {
    let options = l::WNOHANG | l::__WALL;
    let found = program.call(l::__NR_wait4, &[which, program.buffer, options.into(), 0]);
    (found, if found > 0 { program.world.read_u32(&program.thread, program.buffer) } else { 0 })
}

const ANY: u64 = u64::MAX;

#[test]
fn a_process_has_a_number_in_each_namespace_above() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW);
    assert_eq!(outer, 2);
    assert_eq!(calls_itself(&init), [1, 1, 0, 0, 0]);
    let (inner, child) = born(&init, 0);
    assert_eq!((inner, calls_itself(&child)), (2, [2, 2, 1, 0, 0]));
    // It is number 3 to who is above, and nobody there is known to it.
    assert_eq!([kill(&first, 3, 0), kill(&child, 3, 0), kill(&init, 2, 0)], [0, ESRCH, 0]);
    assert_eq!(child.call(l::__NR_setsid, &[]), 2);
    assert_eq!([&init, &first].map(|one| one.call(l::__NR_getsid, &[2])), [2, 1]);
    assert_eq!([&init, &first].map(|one| one.call(l::__NR_getpgid, &[3])), [ESRCH, 3]);
    // A namespace in it.
    let (number, third) = born(&child, NEW);
    assert_eq!((number, calls_itself(&third)), (3, [1, 1, 0, 0, 0]));
    assert_eq!([kill(&first, 4, 0), kill(&init, 3, 0), kill(&third, 2, 0)], [0, 0, ESRCH]);
    let (thread, _) = born(&third, (l::CLONE_THREAD | l::CLONE_SIGHAND | l::CLONE_VM).into());
    assert_eq!(thread, 2);
    assert_eq!(third.call(l::__NR_tgkill, &[1, 2, 0]), 0);
    // They end, and their numbers with them.
    assert_eq!(kill(&first, 4, l::SIGKILL), 0);
    assert_eq!(wait(&child, ANY), (3, l::SIGKILL));
    assert_eq!([kill(&first, 4, 0), kill(&init, 3, 0)], [ESRCH; 2]);
    assert_eq!(wait(&child, ANY), (ECHILD, 0));
    assert_eq!([wait(&init, 2), wait(&init, 3)], [(0, 0), (ECHILD, 0)]);
}

#[test]
fn a_group_keeps_its_number_as_long_as_it_is_there() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (_, init) = born(&first, NEW);
    let (_, leader) = born(&init, 0);
    assert_eq!(leader.call(l::__NR_setpgid, &[0, 0]), 0);
    let (_, member) = born(&leader, 0);
    assert_eq!(kill(&init, 2, l::SIGKILL), 0);
    assert_eq!(wait(&init, ANY), (2, l::SIGKILL));
    assert_eq!(calls_itself(&member), [3, 3, 1, 2, 0]);
    // 2 is the group's, so it is nobody's who is born.
    let last = "/proc/sys/kernel/ns_last_pid";
    init.make(last, b"1");
    assert_eq!(born(&init, 0).0, 4);
    assert_eq!(init.contents(last), b"4\n");
    assert_eq!(init.call(l::__NR_kill, &[2_u64.wrapping_neg(), 0]), 0);
    assert_eq!(member.call(l::__NR_setpgid, &[0, 0]), 0);
    assert_eq!(init.call(l::__NR_kill, &[2_u64.wrapping_neg(), 0]), ESRCH);
    init.make(last, b"1");
    assert_eq!(born(&init, 0).0, 2);
}

#[test]
fn a_namespace_is_for_children_and_entered_downwards_only() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (number, maker) = born(&first, 0);
    let of = |program: &Program<'_>, what: &str| program.readlink(&format!("/proc/{what}"));
    assert_eq!(of(&first, "self/ns/pid"), "pid:[4026531836]");
    assert_eq!(maker.call(l::__NR_unshare, &[NEW]), 0);
    // The maker stays where it is, and cannot make another one.
    assert_eq!(maker.call(l::__NR_unshare, &[NEW]), EINVAL);
    assert_eq!(calls_itself(&maker)[0], number as i64);
    assert_eq!(of(&maker, "self/ns/pid"), "pid:[4026531836]");
    let path = maker.path(0, b"/proc/self/ns/pid_for_children");
    assert_eq!(maker.call(l::__NR_readlink, &[path, maker.buffer, 64]), ENOENT);
    let thread = u64::from(l::CLONE_THREAD | l::CLONE_SIGHAND | l::CLONE_VM);
    assert_eq!(maker.call(l::__NR_clone, &[thread | CHILD, 0x5000]), EINVAL);
    let (seen, init) = born(&maker, 0);
    assert_eq!(calls_itself(&init)[..3], [1, 1, 0]);
    let here = of(&maker, "self/ns/pid_for_children");
    assert_eq!(of(&first, &format!("{seen}/ns/pid")), here);
    // Whoever may enters it; nobody leaves it.
    let (_, guest) = born(&first, 0);
    let fd = guest.opened(&format!("/proc/{seen}/ns/pid"), 0);
    let outside = init.opened("/proc/1/ns/pid", 0);
    assert_eq!(guest.call(l::__NR_setns, &[fd, NEW]), 0);
    let (_, child) = born(&guest, 0);
    assert_eq!(calls_itself(&child)[..3], [2, 2, 0]);
    assert_eq!(init.call(l::__NR_setns, &[outside, 0]), EINVAL);
    let pidfd = first.call(l::__NR_pidfd_open, &[seen, 0]) as u64;
    let (_, other) = born(&first, 0);
    assert_eq!(other.call(l::__NR_setns, &[pidfd, NEW]), 0);
    assert_eq!(calls_itself(&born(&other, 0).1)[..3], [3, 3, 0]);
    // A guest gives it up again.
    assert_eq!(guest.call(l::__NR_setns, &[guest.opened("/proc/1/ns/pid", 0), 0]), 0);
    assert_eq!(calls_itself(&born(&guest, 0).1)[0], 8);
    // What is above and below.
    let ioctl = |program: &Program<'_>, fd, request| program.call(l::__NR_ioctl, &[fd, request, 0]);
    let above = ioctl(&guest, fd, 0xB702) as u64;
    assert_eq!(guest.readlink(&format!("/proc/self/fd/{above}")), "pid:[4026531836]");
    assert_eq!(ioctl(&guest, fd, 0xB703), NEW as i64);
    assert_eq!([ioctl(&guest, above, 0xB702), ioctl(&init, outside, 0xB702)], [EPERM; 2]);
    guest.lose_privileges();
    assert_eq!(guest.call(l::__NR_setns, &[fd, 0]), EPERM);
    assert_eq!(guest.call(l::__NR_unshare, &[NEW]), EPERM);
    assert_eq!(guest.call(l::__NR_clone, &[NEW | CHILD]), EPERM);
}

/// `clone3` with these numbers.
fn with_numbers(program: &Program<'_>, flags: u64, numbers: &[u32]) -> i64 {
    let at = program.buffer + 4096;
    for (index, number) in numbers.iter().enumerate() {
        let to = at + 4 * index as u64;
        program.world.write(&program.thread, to, &number.to_le_bytes());
    }
    let set = if numbers.is_empty() { 0 } else { at };
    let words = [flags, 0, 0, 0, CHILD, 0, 0, 0, set, numbers.len() as u64, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    program.world.write(&program.thread, program.buffer, &bytes);
    program.call(l::__NR_clone3, &[program.buffer, 88])
}

#[test]
fn numbers_can_be_chosen() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    assert_eq!(with_numbers(&first, 0, &[1]), EEXIST);
    for wrong in [[0, 1], [40_000, 1]] {
        assert_eq!(with_numbers(&first, 0, &wrong[..1]), EINVAL);
        assert_eq!(with_numbers(&first, 0, &wrong), EINVAL);
    }
    assert_eq!(with_numbers(&first, 0, &[100]), 100);
    // The first of a namespace is 1.
    assert_eq!(with_numbers(&first, NEW, &[2]), EINVAL);
    assert_eq!(with_numbers(&first, NEW, &[1, 100]), EEXIST);
    assert_eq!(with_numbers(&first, NEW, &[1, 77]), 77);
    let init = first.with(&world.thread(77));
    world.next_event(&init.thread);
    assert_eq!(with_numbers(&init, 0, &[50, 60]), 50);
    let chosen = init.with(&world.thread(60));
    world.next_event(&chosen.thread);
    assert_eq!(calls_itself(&chosen)[..3], [50, 50, 1]);
    assert_eq!(with_numbers(&init, 0, &[51, 60]), EEXIST);
    assert_eq!(with_numbers(&init, 0, &[51, 61, 1]), EINVAL);
    assert_eq!(with_numbers(&init, 0, &[1; 33]), EINVAL);
    // What was refused took no number, and those in between are given to others.
    assert_eq!(with_numbers(&init, 0, &[51]), 51);
    assert_eq!(born(&init, 0).0, 2);
    let other = first.fork();
    other.lose_privileges();
    assert_eq!(with_numbers(&other, 0, &[90]), EPERM);
}

#[test]
fn namespaces_are_nested_so_deep_and_paid_for() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let mut at = first.fork();
    for level in 1..=32 {
        let (_, next) = born(&at, NEW);
        assert_eq!(calls_itself(&next)[0], 1, "{level}");
        at = next;
    }
    assert_eq!(at.call(l::__NR_clone, &[NEW | CHILD]), ENOSPC);
    assert_eq!(at.call(l::__NR_unshare, &[NEW]), ENOSPC);
    assert_eq!(born(&at, 0).0, 2);
    // A killed one ends all below it, and nothing is left.
    let before = world.unix.accounts.user(0).used(unix::account::What::Heap);
    assert_eq!(kill(&first, 3, l::SIGKILL), 0);
    assert_eq!(wait(&first, ANY).0, 0);
    assert_eq!(world.unix.processes.by_pid.borrow().len(), 3);
    assert!(world.unix.accounts.user(0).used(unix::account::What::Heap) < before - 32 * 4096);
}

/// Its number there would have meant whoever got the id next.
#[test]
fn a_group_that_only_others_are_left_in_loses_its_number_with_the_last_of_them() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (_, init) = born(&first, NEW);
    let outside = first.fork();
    let (number, child) = born(&init, 0);
    let id = child.thread.tid.get().first();
    assert_eq!(child.call(l::__NR_setpgid, &[0, 0]), 0);
    assert_eq!(outside.call(l::__NR_setpgid, &[0, id.into()]), 0);
    assert_eq!(kill(&first, id.into(), l::SIGKILL), 0);
    assert_eq!(wait(&init, ANY).0, number as i64);
    let group = (number as i64).wrapping_neg() as u64;
    assert_eq!(kill(&init, group, 0), 0);
    assert_eq!(outside.call(l::__NR_setpgid, &[0, 0]), 0);
    assert_eq!(kill(&init, group, 0), ESRCH);
    // Whoever has the id now is not of the namespace.
    world.unix.processes.set_last_id(u64::from(id) - 1).unwrap();
    let other = first.fork();
    assert_eq!(other.thread.tid.get().first(), id);
    assert_eq!(kill(&init, number, 0), ESRCH);
}
