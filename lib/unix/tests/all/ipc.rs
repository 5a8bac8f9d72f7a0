//! System V's message queues, shared memory and semaphores.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::thread::Thread;

use crate::common::World;
use crate::common::caller::Program;
use crate::common::effort::Effort;

const CREATE: u64 = 0o1000;
const EXCLUSIVE: u64 = 0o2000;
const NO_WAIT: u64 = 0o4000;
const RMID: u64 = 0;
const SET: u64 = 1;
const STAT: u64 = 2;
const KEY: u64 = 0x4242;
const PAGE: u64 = 4096;

/// Sends a message of a kind.
fn send(world: &World, who: &Rc<Thread>, queue: u64, kind: u64, text: &[u8]) {
    let message = [&kind.to_ne_bytes(), text].concat();
    let at = world.put(who, &message);
    world.ok(who, l::__NR_msgsnd, &[queue, at, text.len() as u64, NO_WAIT]);
}

/// The next message of a kind, as text.
fn receive(world: &World, queue: u64, kind: i64, flags: u64) -> Vec<u8> {
    let first = &world.first;
    let at = world.scratch(first, 64);
    let len = world.ok(first, l::__NR_msgrcv, &[queue, at, 56, kind as u64, flags | NO_WAIT]);
    world.read(first, at + 8, len as usize)
}

#[test]
fn keys_lead_to_one_object() {
    let world = World::new();
    let first = &world.first;
    for (get, control, size) in [
        (l::__NR_msgget, l::__NR_msgctl, None),
        (l::__NR_shmget, l::__NR_shmctl, Some(1)),
        (l::__NR_semget, l::__NR_semctl, Some(1)),
    ] {
        let call = |key: u64, flags: u64| match size {
            Some(size) => vec![key, size, flags],
            None => vec![key, flags],
        };
        world.refused(first, get, &call(KEY, 0), Errno::ENOENT);
        let id = world.ok(first, get, &call(KEY, CREATE | 0o600));
        assert_eq!(world.ok(first, get, &call(KEY, 0)), id);
        assert_eq!(world.ok(first, get, &call(KEY, CREATE)), id);
        world.refused(first, get, &call(KEY, CREATE | EXCLUSIVE), Errno::EEXIST);
        assert_ne!(world.ok(first, get, &call(0, 0o600)), id, "IPC_PRIVATE");
        // Another user may not; numbers that are none are refused.
        let other = world.fork(first);
        world.ok(&other, l::__NR_setuid, &[1000]);
        world.refused(&other, get, &call(KEY, 0o400), Errno::EACCES);
        let arguments = |id: u64| match get {
            l::__NR_semget => vec![id, 0, RMID],
            _ => vec![id, RMID, 0],
        };
        world.refused(&other, control, &arguments(id), Errno::EPERM);
        world.refused(first, control, &arguments(id + (1 << 15)), Errno::EINVAL);
        world.refused(first, control, &arguments(u64::MAX), Errno::EINVAL);
        world.ok(first, control, &arguments(id));
        world.refused(first, control, &arguments(id), Errno::EINVAL);
    }
}

#[test]
fn messages_are_chosen_by_kind() {
    let world = World::new();
    let queue = world.ok(&world.first, l::__NR_msgget, &[0, 0o600]);
    for (kind, text) in [(3, "c"), (1, "a"), (2, "b"), (1, "second")] {
        send(&world, &world.first, queue, kind, text.as_bytes());
    }
    assert_eq!(receive(&world, queue, 1, 0), b"a");
    assert_eq!(receive(&world, queue, -2, 0), b"second", "the least up to 2");
    assert_eq!(receive(&world, queue, 3, 0o20_000), b"b", "all but 3");
    assert_eq!(receive(&world, queue, 0, 0o40_000), b"c", "a copy");
    assert_eq!(receive(&world, queue, 0, 0), b"c");
    let at = world.scratch(&world.first, 64);
    let empty = [queue, at, 8, 0, NO_WAIT];
    world.refused(&world.first, l::__NR_msgrcv, &empty, Errno(linux_raw_sys::errno::ENOMSG as u16));
    send(&world, &world.first, queue, 1, b"too long");
    let short = |flags: u64| [queue, at, 3, 0, flags | NO_WAIT];
    world.refused(&world.first, l::__NR_msgrcv, &short(0), Errno::E2BIG);
    assert_eq!(world.ok(&world.first, l::__NR_msgrcv, &short(0o10_000)), 3);
}

#[test]
fn senders_and_receivers_wait_and_hear_of_the_end() {
    let world = World::new();
    let first = &world.first;
    let queue = world.ok(first, l::__NR_msgget, &[0, 0o600]);
    let other = world.fork(first);
    let at = world.scratch(&other, 64);
    world.waits(&other, l::__NR_msgrcv, &[queue, at, 56, 0, 0]);
    send(&world, first, queue, 7, b"wake up");
    assert_eq!(world.next_reply(&other), Some(7));
    assert_eq!(world.read(&other, at + 8, 7), b"wake up");
    // Two of 8,192 bytes fill a queue.
    let large = world.put(first, &[1; 8 + 8192]);
    world.write(first, large, &1_u64.to_ne_bytes());
    let arguments = [queue, large, 8192, 0];
    world.ok(first, l::__NR_msgsnd, &arguments);
    world.ok(first, l::__NR_msgsnd, &arguments);
    world.waits(first, l::__NR_msgsnd, &arguments);
    world.ok(&other, l::__NR_msgctl, &[queue, RMID, 0]);
    assert_eq!(world.next_reply(first), Some(Errno::EIDRM.result()));
}

#[test]
fn a_segment_is_shared_and_ends_with_its_last_user() {
    let world = World::new();
    let first = &world.first;
    let before = world.unix.memory.available();
    let segment = world.ok(first, l::__NR_shmget, &[KEY, 2 * PAGE, CREATE | 0o600]);
    let at = world.ok(first, l::__NR_shmat, &[segment, 0, 0]);
    world.write(first, at + PAGE, b"seen");
    let other = world.fork(first);
    assert_eq!(world.read(&other, at + PAGE, 4), b"seen");
    let elsewhere = world.ok(&other, l::__NR_shmat, &[segment, 0, 0o10_000]);
    assert_eq!(world.read(&other, elsewhere + PAGE, 4), b"seen");
    let record = world.scratch(first, 112);
    world.ok(first, l::__NR_shmctl, &[segment, STAT, record]);
    assert_eq!(world.read_u64(first, record + 48), 2 * PAGE);
    assert_eq!(world.read_u64(first, record + 88), 3, "attached");
    world.refused(first, l::__NR_shmat, &[segment, at, 0], Errno::EINVAL);
    world.refused(first, l::__NR_shmat, &[segment, at + 1, 0], Errno::EINVAL);
    world.refused(first, l::__NR_shmdt, &[at + PAGE], Errno::EINVAL);
    // Removed: no key leads to it, who has it keeps it.
    world.ok(first, l::__NR_shmctl, &[segment, RMID, 0]);
    world.refused(first, l::__NR_shmget, &[KEY, 0, 0], Errno::ENOENT);
    world.write(first, at, b"still");
    assert_eq!(world.read(&other, elsewhere, 5), b"still");
    world.ok(first, l::__NR_shmdt, &[at]);
    world.refused(first, l::__NR_shmdt, &[at], Errno::EINVAL);
    world.ok(first, l::__NR_shmctl, &[segment, STAT, record]);
    assert_eq!(world.read_u64(first, record + 88), 2);
    world.call(&other, l::__NR_exit_group, &[0]);
    world.refused(first, l::__NR_shmctl, &[segment, STAT, record], Errno::EINVAL);
    world.collect();
    world.forget_scratch(first);
    assert!(world.unix.memory.available() + 2 >= before, "the segment's pages are back");
}

/// Segments that no process has attached are still somebody's: nobody gets more than half.
#[test]
fn a_user_cannot_use_up_the_memory_with_segments() {
    let world = World::new();
    let other = world.fork(&world.first);
    world.ok(&other, l::__NR_setuid, &[1000]);
    let mut pages = 0;
    while let Some(id) = world.call(&other, l::__NR_shmget, &[0, 64 * PAGE, 0o600]) {
        if id as i64 == -i64::from(linux_raw_sys::errno::ENOMEM) {
            break;
        }
        pages += 64;
    }
    assert!(pages > 0 && pages <= world.unix.memory.total() / 2, "{pages}");
}

/// Operations on a set: semaphore, by, flags.
fn operations(world: &World, who: &Rc<Thread>, list: &[(u16, i16, u16)]) -> u64 {
    let bytes: Vec<u8> = list
        .iter()
        .flat_map(|(number, by, flags)| [*number, *by as u16, *flags])
        .flat_map(u16::to_ne_bytes)
        .collect();
    world.put(who, &bytes)
}

fn value(world: &World, set: u64, number: u64) -> u64 {
    world.ok(&world.first, l::__NR_semctl, &[set, number, 12])
}

#[test]
fn operations_happen_together_or_wait() {
    let world = World::new();
    let first = &world.first;
    let set = world.ok(first, l::__NR_semget, &[0, 2, 0o600]);
    world.ok(first, l::__NR_semctl, &[set, 0, 16, 1]);
    let other = world.fork(first);
    let both = operations(&world, &other, &[(0, -1, 0), (1, -1, 0)]);
    world.waits(&other, l::__NR_semop, &[set, both, 2]);
    assert_eq!(value(&world, set, 0), 1, "not the first one alone");
    assert_eq!(world.ok(first, l::__NR_semctl, &[set, 1, 14]), 1, "one waits for more");
    assert_eq!(world.ok(first, l::__NR_semctl, &[set, 0, 14]), 0);
    let up = operations(&world, first, &[(1, 1, 0)]);
    world.ok(first, l::__NR_semop, &[set, up, 1]);
    assert_eq!(world.next_reply(&other), Some(0));
    assert_eq!((value(&world, set, 0), value(&world, set, 1)), (0, 0));
    assert_eq!(world.ok(first, l::__NR_semctl, &[set, 1, 14]), 0);
    let down = operations(&world, first, &[(0, -1, NO_WAIT as u16)]);
    world.refused(first, l::__NR_semop, &[set, down, 1], Errno::EAGAIN);
    let far = operations(&world, first, &[(2, 1, 0)]);
    world.refused(first, l::__NR_semop, &[set, far, 1], Errno::EFBIG);
    world.refused(first, l::__NR_semctl, &[set, 0, 16, 32_768], Errno::ERANGE);
    world.refused(first, l::__NR_semop, &[set, up, 501], Errno::E2BIG);
    let zero = operations(&world, &other, &[(0, -1, 0)]);
    world.waits(&other, l::__NR_semop, &[set, zero, 1]);
    world.ok(first, l::__NR_semctl, &[set, 0, RMID]);
    assert_eq!(world.next_reply(&other), Some(Errno::EIDRM.result()));
}

#[test]
fn what_a_process_took_comes_back_at_its_end() {
    let world = World::new();
    let first = &world.first;
    let set = world.ok(first, l::__NR_semget, &[0, 1, 0o600]);
    world.ok(first, l::__NR_semctl, &[set, 0, 16, 3]);
    let other = world.fork(first);
    let take = operations(&world, &other, &[(0, -2, 0x1000)]);
    world.ok(&other, l::__NR_semop, &[set, take, 1]);
    assert_eq!(value(&world, set, 0), 1);
    let wait = operations(&world, first, &[(0, -3, 0)]);
    world.waits(first, l::__NR_semop, &[set, wait, 1]);
    world.call(&other, l::__NR_kill, &[other.own_tid.get().into(), l::SIGKILL.into()]);
    assert_eq!(world.next_reply(first), Some(0));
}

#[test]
fn owners_can_be_changed() {
    let world = World::new();
    let first = &world.first;
    let queue = world.ok(first, l::__NR_msgget, &[0, 0o600]);
    let record = world.scratch(first, 120);
    world.ok(first, l::__NR_msgctl, &[queue, STAT, record]);
    world.write(first, record + 4, &1000_u32.to_ne_bytes());
    world.ok(first, l::__NR_msgctl, &[queue, SET, record]);
    let other = world.fork(first);
    world.ok(&other, l::__NR_setuid, &[1000]);
    send(&world, &other, queue, 1, b"mine");
    world.write(&other, record + 88, &(1_u64 << 20).to_ne_bytes());
    world.refused(&other, l::__NR_msgctl, &[queue, SET, record], Errno::EPERM);
    world.ok(&other, l::__NR_msgctl, &[queue, RMID, 0]);
}

/// What somebody makes many of costs others nothing: neither a look-up by key nor the end of a
/// process looks at all of them.
#[test]
fn many_sets_are_made_and_removed_in_any_order() {
    const MANY: u64 = 2000;
    let world = World::new();
    let first = &world.first;
    let made: Vec<u64> = (1..=MANY)
        .map(|key| world.ok(first, l::__NR_semget, &[key, 1, CREATE | EXCLUSIVE | 0o600]))
        .collect();
    for (key, id) in (1..=MANY).zip(&made) {
        assert_eq!(world.ok(first, l::__NR_semget, &[key, 0, 0]), *id);
    }
    for id in made.iter().step_by(2) {
        world.ok(first, l::__NR_semctl, &[*id, 0, RMID]);
    }
    world.refused(first, l::__NR_semget, &[1, 0, 0], Errno::ENOENT);
    let places: Vec<u64> =
        (0..MANY / 2).map(|_| world.ok(first, l::__NR_semget, &[0, 1, 0o600]) & 0x7FFF).collect();
    assert!(places.iter().all(|place| *place < MANY), "the places of those that are gone");
    let next = &world.unix.ipc.semaphores.next;
    for (wanted, given) in [(12_345, true), (12_345, false)] {
        next.set(Some(wanted));
        let id = world.ok(first, l::__NR_semget, &[0, 1, 0o600]);
        assert_eq!(id == u64::from(wanted), given, "its place is taken the second time");
        assert_eq!(next.get(), None);
    }
    // SEM_STAT_ANY takes a number for its place.
    let record = world.scratch(first, 104);
    assert_eq!(world.ok(first, l::__NR_semctl, &[made[1], 0, 20, record]), made[1]);
}

#[test]
fn nobody_maps_more_of_what_was_removed() {
    let world = World::new();
    let first = &world.first;
    let segment = world.ok(first, l::__NR_shmget, &[0, 8192, 0o600]);
    let at = world.ok(first, l::__NR_shmat, &[segment, 0, 0]);
    world.ok(first, l::__NR_remap_file_pages, &[at, 4096, 0, 1, 0]);
    world.refused(first, l::__NR_remap_file_pages, &[at, 4096, 0, 2, 0], Errno::EINVAL);
    world.ok(first, l::__NR_shmctl, &[segment, 0, 0]);
    world.refused(first, l::__NR_remap_file_pages, &[at, 4096, 0, 0, 0], Errno::EIDRM);
}

#[test]
fn what_is_taken_back_has_a_range() {
    let world = World::new();
    let first = &world.first;
    let set = world.ok(first, l::__NR_semget, &[0, 2, 0o600]);
    let up = operations(&world, first, &[(0, 30_000, 0x1000)]);
    let down = operations(&world, first, &[(0, -30_000, 0)]);
    world.ok(first, l::__NR_semop, &[set, up, 1]);
    world.ok(first, l::__NR_semop, &[set, down, 1]);
    world.refused(first, l::__NR_semop, &[set, up, 1], Errno::ERANGE);
    assert_eq!(value(&world, set, 0), 0);
    // Within one call, too; then nothing of it has happened.
    let twice =
        operations(&world, first, &[(1, 20_000, 0x1000), (1, -20_000, 0), (1, 20_000, 0x1000)]);
    world.refused(first, l::__NR_semop, &[set, twice, 3], Errno::ERANGE);
    assert_eq!(value(&world, set, 1), 0);
    world.ok(first, l::__NR_semop, &[set, twice, 2]);
    // One more can be taken back than a semaphore can hold.
    let zero = operations(&world, first, &[(0, 2_768, 0x1000), (0, 1, 0x1000)]);
    world.refused(first, l::__NR_semop, &[set, zero, 2], Errno::ERANGE);
    world.ok(first, l::__NR_semop, &[set, zero, 1]);
}

/// Giving all semaphores their values takes back nothing, however much is noted.
#[test]
fn many_are_set_at_once() {
    const COUNT: u16 = 32_000;
    let world = World::new();
    let first = &world.first;
    let set = world.ok(first, l::__NR_semget, &[0, COUNT.into(), 0o600]);
    for _ in 0..8 {
        let other = world.fork(first);
        for start in (0..COUNT).step_by(500) {
            let list: Vec<_> = (start..start + 500).map(|number| (number, 1, 0x1000)).collect();
            let list = operations(&world, &other, &list);
            world.ok(&other, l::__NR_semop, &[set, list, 500]);
            world.forget_scratch(&other);
        }
    }
    let values = world.put(first, &[7_u16.to_ne_bytes(); COUNT as usize].concat());
    let effort = Effort::begin();
    world.ok(first, l::__NR_semctl, &[set, 0, 17, values]);
    effort.is_less_than(5);
    assert_eq!(value(&world, set, u64::from(COUNT) - 1), 7);
}

/// However many an ordinary user makes, there are some for others.
#[test]
fn a_user_leaves_objects_to_others() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let user = root.fork();
    user.lose_privileges();
    let make = |program: &Program<'_>| program.call(l::__NR_msgget, &[0, 0o600]);
    let made: Vec<i64> = std::iter::repeat_with(|| make(&user)).take_while(|id| *id >= 0).collect();
    assert_eq!((made.len(), make(&user)), (16_000, -28));
    assert!(make(&root) >= 0);
    assert_eq!(user.call(l::__NR_msgctl, &[made[5] as u64, RMID, 0]), 0);
    assert!(make(&user) >= 0);
    assert_eq!(make(&user), -28);
}
