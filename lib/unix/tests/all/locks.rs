//! Record locks and `flock`.

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::errno;
use linux_raw_sys::general as linux;
use unix::account::What;

const READ: u32 = linux::F_RDLCK;
const WRITE: u32 = linux::F_WRLCK;
const UNLOCK: u32 = linux::F_UNLCK;

/// The arguments of a lock call on bytes `start` to `start + len`.
fn arguments(program: &Program, fd: u64, command: u32, kind: u32, range: (i64, i64)) -> [u64; 3] {
    let words = [u64::from(kind), range.0 as u64, range.1 as u64, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    program.world.write(&program.thread, program.buffer, &bytes);
    [fd, command.into(), program.buffer]
}

fn lock(program: &Program, fd: u64, command: u32, kind: u32, range: (i64, i64)) -> i64 {
    program.call(linux::__NR_fcntl, &arguments(program, fd, command, kind, range))
}

/// Kind, start, length and process of the lock in the way.
fn holder(program: &Program, fd: u64, kind: u32, range: (i64, i64)) -> (u32, i64, i64, i32) {
    assert_eq!(lock(program, fd, linux::F_GETLK, kind, range), 0);
    let word = |at| program.world.read_u64(&program.thread, program.buffer + at);
    (word(0) as u16 as u32, word(8) as i64, word(16) as i64, word(24) as i32)
}

/// Two processes with the same file open.
fn two(world: &World) -> (Program<'_>, Program<'_>, u64, u64) {
    let first = Program::new(world, &world.first);
    first.make("/tmp/file", b"0123456789");
    let second = first.fork();
    let fd = first.opened("/tmp/file", linux::O_RDWR);
    let other = second.opened("/tmp/file", linux::O_RDWR);
    (first, second, fd, other)
}

const AGAIN: i64 = -(errno::EAGAIN as i64);
const NOLCK: i64 = -(errno::ENOLCK as i64);

#[test]
fn records_exclude_other_processes_only() {
    let world = World::new();
    let (first, second, fd, other) = two(&world);
    assert_eq!(lock(&first, fd, linux::F_SETLK, WRITE, (0, 10)), 0);
    assert_eq!(lock(&first, fd, linux::F_SETLK, READ, (2, 3)), 0);
    assert_eq!(lock(&second, other, linux::F_SETLK, READ, (0, 1)), AGAIN);
    assert_eq!(lock(&second, other, linux::F_SETLK, READ, (2, 3)), 0);
    assert_eq!(lock(&second, other, linux::F_SETLK, WRITE, (2, 1)), AGAIN);
    assert_eq!(lock(&second, other, linux::F_SETLK, WRITE, (10, 0)), 0);
    assert_eq!(holder(&second, other, WRITE, (4, 100)), (READ, 2, 3, 1));
    assert_eq!(holder(&second, other, READ, (5, 1)), (WRITE, 5, 5, 1));
    let pid = second.thread.own_tid.get() as i32;
    assert_eq!(holder(&first, fd, READ, (0, 0)), (WRITE, 10, 0, pid));
    assert_eq!(holder(&first, fd, READ, (0, 5)).0, UNLOCK);
    for (kind, range, expected) in [
        (7, (0, 1), errno::EINVAL),
        (READ, (-1, 1), errno::EINVAL),
        (READ, (5, -6), errno::EINVAL),
        (READ, (i64::MAX, 2), errno::EOVERFLOW),
    ] {
        let result = lock(&first, fd, linux::F_SETLK, kind, range);
        assert_eq!(result, -i64::from(expected), "{kind} {range:?}");
    }
    let reader = first.opened("/tmp/file", linux::O_RDONLY);
    let refused = lock(&first, reader, linux::F_SETLK, WRITE, (0, 1));
    assert_eq!(refused, -i64::from(errno::EBADF));
}

#[test]
fn closing_any_descriptor_ends_all_locks_of_the_process() {
    let world = World::new();
    let (first, second, fd, other) = two(&world);
    assert_eq!(lock(&first, fd, linux::F_SETLK, WRITE, (0, 0)), 0);
    let arguments = arguments(&second, other, linux::F_SETLKW, WRITE, (3, 1));
    world.waits(&second.thread, linux::__NR_fcntl, &arguments);
    first.close(first.opened("/tmp/file", linux::O_RDONLY));
    world.collect();
    assert_eq!(world.next_reply(&second.thread), Some(0));
    assert_eq!(lock(&first, fd, linux::F_SETLK, WRITE, (3, 1)), AGAIN);
    // The end of the process does, too.
    world.call(&second.thread, linux::__NR_exit_group, &[0]);
    assert_eq!(lock(&first, fd, linux::F_SETLK, WRITE, (3, 1)), 0);
}

#[test]
fn waiting_in_a_circle_is_refused() {
    let world = World::new();
    let (first, second, fd, other) = two(&world);
    let third = first.fork();
    let last = third.opened("/tmp/file", linux::O_RDWR);
    for (program, fd, at) in [(&first, fd, 0), (&second, other, 1), (&third, last, 2)] {
        assert_eq!(lock(program, fd, linux::F_SETLK, WRITE, (at, 1)), 0);
    }
    let wants = arguments(&first, fd, linux::F_SETLKW, WRITE, (1, 1));
    world.waits(&first.thread, linux::__NR_fcntl, &wants);
    let wants = arguments(&second, other, linux::F_SETLKW, WRITE, (2, 1));
    world.waits(&second.thread, linux::__NR_fcntl, &wants);
    let circle = lock(&third, last, linux::F_SETLKW, WRITE, (0, 1));
    assert_eq!(circle, -i64::from(errno::EDEADLK));
    assert_eq!(lock(&third, last, linux::F_SETLK, UNLOCK, (2, 1)), 0);
    world.collect();
    assert_eq!(world.next_reply(&second.thread), Some(0));
    assert_eq!(lock(&second, other, linux::F_SETLK, UNLOCK, (0, 0)), 0);
    world.collect();
    assert_eq!(world.next_reply(&first.thread), Some(0));
}

#[test]
fn locks_of_descriptions_exclude_within_a_process() {
    let world = World::new();
    let (first, _second, fd, _) = two(&world);
    let again = first.opened("/tmp/file", linux::O_RDWR);
    assert_eq!(lock(&first, fd, linux::F_OFD_SETLK, WRITE, (0, 4)), 0);
    assert_eq!(lock(&first, again, linux::F_OFD_SETLK, WRITE, (3, 4)), AGAIN);
    assert_eq!(holder(&first, again, WRITE, (0, 1)), (WRITE, 0, 4, -1));
    let copy = first.call(linux::__NR_dup, &[fd]) as u64;
    first.close(fd);
    assert_eq!(lock(&first, again, linux::F_OFD_SETLK, WRITE, (3, 4)), AGAIN);
    first.close(copy);
    assert_eq!(lock(&first, again, linux::F_OFD_SETLK, WRITE, (3, 4)), 0);
}

#[test]
fn flock_waits_for_other_descriptions() {
    let world = World::new();
    let (first, second, fd, other) = two(&world);
    let flock = |program: &Program, fd, operation: u32| {
        program.call(linux::__NR_flock, &[fd, operation.into()])
    };
    assert_eq!(flock(&first, fd, linux::LOCK_SH), 0);
    assert_eq!(flock(&second, other, linux::LOCK_SH | linux::LOCK_NB), 0);
    assert_eq!(flock(&second, other, linux::LOCK_EX | linux::LOCK_NB), AGAIN);
    assert_eq!(flock(&first, fd, 77), -i64::from(errno::EINVAL));
    world.waits(&second.thread, linux::__NR_flock, &[other, linux::LOCK_EX.into()]);
    first.close(fd);
    world.collect();
    assert_eq!(world.next_reply(&second.thread), Some(0));
    let again = first.opened("/tmp/file", linux::O_RDONLY);
    assert_eq!(flock(&first, again, linux::LOCK_SH | linux::LOCK_NB), AGAIN);
    assert_eq!(flock(&second, other, linux::LOCK_UN), 0);
    assert_eq!(flock(&first, again, linux::LOCK_EX | linux::LOCK_NB), 0);
}

#[test]
fn who_splits_a_lock_pays_for_its_parts() {
    let world = World::new();
    let (first, _, _, _) = two(&world);
    assert_eq!(first.on(linux::__NR_chmod, "/tmp/file", &[0o666]), 0);
    let user = first.fork();
    user.lose_privileges();
    let fd = user.opened("/tmp/file", linux::O_RDWR);
    assert_eq!(lock(&user, fd, linux::F_SETLK, WRITE, (0, 0)), 0);
    let account = world.unix.accounts.user(1000);
    let before = account.used(What::Heap);
    let all = (0..100_000).find(|at| lock(&user, fd, linux::F_SETLK, UNLOCK, (2 * at, 1)) != 0);
    let parts = all.expect("a lock of 100,000 parts is refused") as u64;
    assert_eq!(lock(&user, fd, linux::F_SETLK, UNLOCK, (2 * parts as i64, 1)), NOLCK);
    assert!(account.used(What::Heap) - before > 40 * parts, "{parts} parts cost too little");
    // What makes no part more is possible, and what is gone costs nothing.
    assert_eq!(lock(&user, fd, linux::F_SETLK, UNLOCK, (0, 1000)), 0);
    assert_eq!(lock(&user, fd, linux::F_SETLK, UNLOCK, (2 * parts as i64, 1)), 0);
    assert_eq!(lock(&user, fd, linux::F_SETLK, UNLOCK, (0, 0)), 0);
    assert!(account.used(What::Heap) <= before);
}

#[test]
fn nobody_takes_the_locks_of_a_file_from_others() {
    let world = World::new();
    let (first, second, fd, _) = two(&world);
    assert_eq!(first.on(linux::__NR_chmod, "/tmp/file", &[0o644]), 0);
    second.lose_privileges();
    let other = second.opened("/tmp/file", linux::O_RDONLY);
    let taken = |at: &i64| lock(&second, other, linux::F_SETLK, READ, (2 * at, 1));
    let end = (0..100_000).find(|at| taken(at) != 0).expect("some lock is refused");
    assert_eq!(taken(&end), NOLCK);
    assert_eq!(lock(&first, fd, linux::F_SETLK, READ, (0, 0)), 0);
    assert_eq!(lock(&first, fd, linux::F_SETLK, WRITE, (1, 1)), 0);
    assert_eq!(lock(&first, fd, linux::F_SETLK, WRITE, (2, 1)), AGAIN);
}
