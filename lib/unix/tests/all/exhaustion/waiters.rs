//! Threads that wait for many files at once.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::account::What;
use unix::thread::Thread;

use super::{USER, raise_limits};
use crate::common::World;
use crate::common::caller::Program;
use crate::given_back;

const FILES: u64 = 500;
const THREADS: u64 = 150;
/// What a waiter takes of each file's queue.
const ENTRY: u64 = 16;

/// A process of the user with descriptors 3 to 3 + [`FILES`].
fn user<'a>(world: &'a World, make: impl Fn(&Program<'a>) -> i64) -> Program<'a> {
    let root = Program::new(world, &world.first);
    raise_limits(&root);
    let user = root.fork();
    user.lose_privileges();
    let first = make(&user);
    assert!(first >= 0);
    while make(&user) < FILES as i64 + 2 {}
    user
}

fn thread(user: &Program<'_>) -> Rc<Thread> {
    let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD | l::CLONE_FILES | l::CLONE_FS;
    let tid = user.call(l::__NR_clone, &[flags.into()]);
    assert!(tid > 0, "clone: {tid}");
    let thread = user.world.thread_of(&user.thread, tid as u64);
    user.world.next_event(&thread);
    thread
}

/// The arguments of `select` or `poll` for all files.
fn arguments(user: &Program<'_>, call: u32) -> Vec<u64> {
    let (world, thread) = (user.world, &user.thread);
    if call == l::__NR_select {
        let mut words = vec![u64::MAX; FILES as usize / 64 + 1];
        words[0] = !7;
        *words.last_mut().unwrap() = (1 << (FILES % 64)) - 1;
        return vec![FILES, world.words(thread, &words), 0, 0, 0];
    }
    let entries: Vec<u64> = (3..FILES).map(|fd| fd | 1 << 32).collect();
    vec![world.words(thread, &entries), FILES - 3, u64::MAX]
}

/// All wait for all files: what the server keeps for that is paid for, as long as it keeps it.
#[test]
fn who_waits_for_many_files_pays_for_it() {
    for call in [l::__NR_select, l::__NR_poll] {
        let world = World::new();
        let user = user(&world, |user| user.call(l::__NR_eventfd2, &[0, 0]));
        let threads: Vec<_> = (0..THREADS).map(|_| thread(&user)).collect();
        let arguments = arguments(&user, call);
        let account = world.unix.accounts.user(USER);
        let before = account.used(What::Heap);
        for thread in &threads {
            world.waits(thread, call, &arguments);
        }
        let paid = account.used(What::Heap) - before;
        assert!(paid > THREADS * (FILES - 8) * ENTRY, "{paid} bytes for {THREADS} threads");
        // When all are woken nothing is left of it.
        for fd in 3..FILES {
            assert_eq!(user.write(fd, &1_u64.to_le_bytes()), 8);
        }
        world.collect();
        for thread in &threads {
            assert!(world.next_reply(thread).is_some());
        }
        assert_eq!(account.used(What::Heap), before);
    }
}

/// The same with less memory than that takes: whoever finds none is told.
#[test]
fn who_cannot_pay_for_waiting_is_told() {
    let world = World::new();
    let user = user(&world, |user| user.call(l::__NR_eventfd2, &[0, 0]));
    let threads: Vec<_> = (0..THREADS).map(|_| thread(&user)).collect();
    let arguments = arguments(&user, l::__NR_select);
    // The user may have half of it.
    let used = world.unix.accounts.user(USER).used(What::Heap);
    given_back::limit(2 * used as isize + (128 << 10));
    let answers: Vec<_> =
        threads.iter().map(|thread| world.call(thread, l::__NR_select, &arguments)).collect();
    given_back::no_limit();
    assert_eq!(answers[0], None);
    let told = answers.iter().flatten().collect::<Vec<_>>();
    assert!(!told.is_empty() && told.iter().all(|answer| **answer as i64 == -12), "{told:?}");
}

/// One file under many numbers has each thread once.
#[test]
fn a_thread_waits_once_for_a_file_with_many_numbers() {
    let world = World::new();
    let event = std::cell::Cell::new(0);
    let user = user(&world, |user| match event.get() {
        0 => {
            event.set(user.call(l::__NR_eventfd2, &[0, 0]) as u64);
            event.get() as i64
        }
        event => user.call(l::__NR_dup, &[event]),
    });
    let threads: Vec<_> = (0..THREADS).map(|_| thread(&user)).collect();
    let arguments = arguments(&user, l::__NR_select);
    given_back::limit(4 << 20);
    let before = given_back::heap().1;
    for thread in &threads {
        world.waits(thread, l::__NR_select, &arguments);
    }
    let taken = before - given_back::heap().1;
    given_back::no_limit();
    assert!(taken < THREADS * FILES * ENTRY / 4, "{taken} bytes");
}

/// What is left of the dead in queues where nobody is woken is small: a queue has room for some that nobody pays
/// for.
#[test]
fn threads_that_have_waited_leave_little() {
    let world = World::new();
    let user = user(&world, |user| user.call(l::__NR_eventfd2, &[0, 0]));
    let entries: Vec<u64> = (0..FILES).map(|fd| fd | 1 << 32).collect();
    let entries = world.words(&user.thread, &entries);
    let wait = |fd: u64| {
        let thread = thread(&user);
        world.waits(&thread, l::__NR_poll, &[entries + 8 * fd, 1, 1]);
        world.advance(1_000_000);
        assert_eq!(world.next_reply(&thread), Some(0));
        assert_eq!(world.call(&thread, l::__NR_exit, &[0]), None);
    };
    (0..FILES).for_each(|_| wait(3));
    given_back::limit(64 << 20);
    let before = given_back::heap().1;
    for fd in 4..FILES {
        wait(fd);
        wait(fd);
    }
    let taken = before.saturating_sub(given_back::heap().1);
    given_back::no_limit();
    assert!(taken < 2 * FILES * 200, "{taken} bytes for {} threads", 2 * FILES);
}
