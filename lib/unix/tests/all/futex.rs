//! Futexes, between processes (threads differ only in who shares the memory).

use crate::common::World;
use linux_raw_sys::general as l;
use std::rc::Rc;
use unix::errno::Errno;
use unix::thread::Thread;

const RW: u64 = 3;
/// Where a handler's frame has RAX (`struct ucontext` begins at 8, `uc_mcontext` at 48).
const RAX_AT: u64 = 152;
const PRIVATE: u64 = (l::FUTEX_PRIVATE_FLAG) as u64;

/// Another thread of the first process, made without clone.
pub fn second(world: &World) -> Rc<Thread> {
    let process = world.first.process();
    let id = world.unix.processes.allocate_id().unwrap();
    let thread = Thread::new(id, process.clone(), world.unix.run_queue.clone());
    let machine = world.unix.machine.create_thread(process.space().machine()).unwrap();
    thread.machine.set(machine);
    world.unix.machine.bind(machine, Some(&thread));
    process.threads.borrow_mut().push(thread.clone());
    world.unix.processes.by_tid.borrow_mut().insert(id, thread.clone());
    thread
}

fn word(world: &World, value: u32) -> u64 {
    world.put(&world.first, &value.to_le_bytes())
}

#[test]
fn a_waiter_is_woken() {
    let world = World::new();
    let (first, second) = (&world.first, second(&world));
    let at = word(&world, 5);
    for flag in [0, PRIVATE] {
        world.waits(&second, l::__NR_futex, &[at, u64::from(l::FUTEX_WAIT) | flag, 5, 0]);
        let wake = u64::from(l::FUTEX_WAKE) | flag;
        assert_eq!(world.ok(first, l::__NR_futex, &[at, wake, 1]), 1);
        assert_eq!(world.next_reply(&second), Some(0));
        assert_eq!(world.ok(first, l::__NR_futex, &[at, wake, 1]), 0);
    }
}

#[test]
fn a_word_that_differs_is_not_waited_for() {
    let world = World::new();
    let at = word(&world, 5);
    let first = &world.first;
    let wait = u64::from(l::FUTEX_WAIT);
    world.refused(first, l::__NR_futex, &[at, wait, 6, 0], Errno::EAGAIN);
    world.refused(first, l::__NR_futex, &[at + 1, wait, 6, 0], Errno::EINVAL);
    world.refused(first, l::__NR_futex, &[0, wait, 6, 0], Errno::EFAULT);
    world.refused(first, l::__NR_futex, &[u64::MAX & !3, wait | PRIVATE, 6, 0], Errno::EFAULT);
    world.refused(first, l::__NR_futex, &[at, wait, 5, 8], Errno::EFAULT);
    let bad = world.words(first, &[0, 1_000_000_000]);
    world.refused(first, l::__NR_futex, &[at, wait, 5, bad], Errno::EINVAL);
    let realtime = u64::from(l::FUTEX_CLOCK_REALTIME);
    world.refused(first, l::__NR_futex, &[at, wait | realtime, 5, 0], Errno::ENOSYS);
    let moved = u64::from(l::FUTEX_WAIT_REQUEUE_PI);
    world.refused(first, l::__NR_futex, &[at, moved, 5, 0, at], Errno::EINVAL);
    world.refused(first, l::__NR_futex, &[at, moved, 6, 0, at + 4], Errno::EAGAIN);
    world.refused(
        first,
        l::__NR_futex,
        &[at, l::FUTEX_WAIT_BITSET.into(), 5, 0, 0, 0],
        Errno::EINVAL,
    );
}

#[test]
fn bits_choose_the_waiter() {
    let world = World::new();
    let (first, one, two) = (&world.first, second(&world), second(&world));
    let at = word(&world, 0);
    let (wait, wake) = (l::FUTEX_WAIT_BITSET.into(), l::FUTEX_WAKE_BITSET.into());
    world.waits(&one, l::__NR_futex, &[at, wait, 0, 0, 0, 1]);
    world.waits(&two, l::__NR_futex, &[at, wait, 0, 0, 0, 2]);
    assert_eq!(world.ok(first, l::__NR_futex, &[at, wake, 9, 0, 0, 2]), 1);
    assert_eq!(world.next_reply(&two), Some(0));
    assert_eq!(world.next_reply(&one), None);
    assert_eq!(world.ok(first, l::__NR_futex, &[at, l::FUTEX_WAKE.into(), 9]), 1);
    assert_eq!(world.next_reply(&one), Some(0));
}

#[test]
fn waiters_are_requeued() {
    let world = World::new();
    let first = &world.first;
    let waiters: Vec<_> = (0..4).map(|_| second(&world)).collect();
    let (from, to) = (word(&world, 1), word(&world, 2));
    for waiter in &waiters {
        world.waits(waiter, l::__NR_futex, &[from, l::FUTEX_WAIT.into(), 1, 0]);
    }
    let requeue =
        |expected, wakes, moves| [from, l::FUTEX_CMP_REQUEUE.into(), wakes, moves, to, expected];
    world.refused(first, l::__NR_futex, &requeue(9, 1, 2), Errno::EAGAIN);
    world.refused(first, l::__NR_futex, &requeue(1, u64::MAX, 2), Errno::EINVAL);
    assert_eq!(world.ok(first, l::__NR_futex, &requeue(1, 1, 2)), 3);
    assert_eq!(world.next_reply(&waiters[0]), Some(0));
    assert_eq!(world.ok(first, l::__NR_futex, &[to, l::FUTEX_WAKE.into(), 9]), 2);
    assert_eq!(world.next_reply(&waiters[1]), Some(0));
    assert_eq!(world.next_reply(&waiters[2]), Some(0));
    assert_eq!(world.next_reply(&waiters[3]), None);
    assert_eq!(world.ok(first, l::__NR_futex, &[from, l::FUTEX_WAKE.into(), 9]), 1);
}

#[test]
fn wake_op_changes_one_word_and_wakes_at_both() {
    let world = World::new();
    let (first, one, two) = (&world.first, second(&world), second(&world));
    let (a, b) = (word(&world, 0), word(&world, 0));
    world.waits(&one, l::__NR_futex, &[a, l::FUTEX_WAIT.into(), 0, 0]);
    world.waits(&two, l::__NR_futex, &[b, l::FUTEX_WAIT.into(), 0, 0]);
    // *b = 7; if it was 0, wake there, too.
    let operation = l::FUTEX_OP_SET << 28 | l::FUTEX_OP_CMP_EQ << 24 | 7 << 12;
    let args = [a, l::FUTEX_WAKE_OP.into(), 1, 1, b, operation.into()];
    assert_eq!(world.ok(first, l::__NR_futex, &args), 2);
    assert_eq!(world.read_u32(first, b), 7);
    assert_eq!((world.next_reply(&one), world.next_reply(&two)), (Some(0), Some(0)));
}

#[test]
fn shared_memory_is_one_futex_for_all_who_have_it() {
    let world = World::new();
    let first = &world.first;
    let shared = (l::MAP_SHARED | l::MAP_ANONYMOUS) as u64;
    let at = world.ok(first, l::__NR_mmap, &[0, 4096, RW, shared, u64::MAX, 0]);
    let may_move = u64::from(l::MREMAP_MAYMOVE);
    let twin = world.ok(first, l::__NR_mremap, &[at, 0, 4096, may_move]);
    let second = second(&world);
    world.waits(&second, l::__NR_futex, &[at, l::FUTEX_WAIT.into(), 0, 0]);
    // By its other address: the same word unless it is said to be private.
    let wake = u64::from(l::FUTEX_WAKE);
    assert_eq!(world.ok(first, l::__NR_futex, &[twin, wake | PRIVATE, 1]), 0);
    assert_eq!(world.ok(first, l::__NR_futex, &[twin, wake, 1]), 1);
    assert_eq!(world.next_reply(&second), Some(0));
}

#[test]
fn robust_futexes_are_released() {
    let world = World::new();
    let (first, owner) = (&world.first, second(&world));
    let tid = owner.own_tid.get();
    // An entry: the link, then the futex word at 8.
    let entry = world.scratch(first, 16);
    let head = world.words(first, &[entry, 8, 0]);
    world.write(first, entry, &head.to_le_bytes());
    let held = tid | l::FUTEX_WAITERS;
    world.write(first, entry + 8, &u64::from(held).to_le_bytes());
    world.waits(first, l::__NR_futex, &[entry + 8, l::FUTEX_WAIT.into(), held.into(), 0]);
    owner.robust_list.set(head);
    unix::mm::futex::release_robust(&world.unix, &owner);
    world.collect();
    assert_eq!(world.next_reply(first), Some(0));
    assert_eq!(world.read_u32(first, entry + 8), l::FUTEX_OWNER_DIED | l::FUTEX_WAITERS);
}

/// An operation of those whose word says who holds them.
fn held(world: &World, thread: &Rc<Thread>, operation: u32, at: u64) -> Option<i64> {
    world.call(thread, l::__NR_futex, &[at, operation.into(), 0, 0]).map(|value| value as i64)
}

#[test]
fn a_word_is_handed_to_who_waited_longest() {
    let world = World::new();
    let first = &world.first;
    let (one, two) = (second(&world), second(&world));
    let at = word(&world, 0);
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), Some(0));
    assert_eq!(world.read_u32(first, at), first.own_tid.get());
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), Some(-i64::from(Errno::EDEADLK.0)));
    assert_eq!(held(&world, &one, l::FUTEX_TRYLOCK_PI, at), Some(-i64::from(Errno::EAGAIN.0)));
    assert_eq!(held(&world, &one, l::FUTEX_UNLOCK_PI, at), Some(-i64::from(Errno::EPERM.0)));
    assert_eq!(held(&world, &one, l::FUTEX_LOCK_PI, at), None);
    assert_eq!(held(&world, &two, l::FUTEX_LOCK_PI2, at), None);
    assert_eq!(world.read_u32(first, at), first.own_tid.get() | l::FUTEX_WAITERS);
    assert_eq!(held(&world, first, l::FUTEX_UNLOCK_PI, at), Some(0));
    assert_eq!((world.next_reply(&one), world.next_reply(&two)), (Some(0), None));
    assert_eq!(world.read_u32(first, at), one.own_tid.get() | l::FUTEX_WAITERS);
    assert_eq!(held(&world, first, l::FUTEX_UNLOCK_PI, at), Some(-i64::from(Errno::EPERM.0)));
    assert_eq!(held(&world, &one, l::FUTEX_UNLOCK_PI, at), Some(0));
    assert_eq!(world.next_reply(&two), Some(0));
    assert_eq!(held(&world, &two, l::FUTEX_UNLOCK_PI, at), Some(0));
    assert_eq!(world.read_u32(first, at), 0);
    assert_eq!(held(&world, &one, l::FUTEX_TRYLOCK_PI, at), Some(0));
}

#[test]
fn a_word_whose_holder_ends_goes_on_with_a_mark() {
    let world = World::new();
    let (first, owner) = (&world.first, second(&world));
    let at = word(&world, 0);
    assert_eq!(held(&world, &owner, l::FUTEX_LOCK_PI, at), Some(0));
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), None);
    world.call(&owner, l::__NR_exit, &[0]);
    world.collect();
    assert_eq!(world.next_reply(first), Some(0));
    let mine = first.own_tid.get() | l::FUTEX_WAITERS | l::FUTEX_OWNER_DIED;
    assert_eq!(world.read_u32(first, at), mine);
    assert_eq!(held(&world, first, l::FUTEX_UNLOCK_PI, at), Some(0));
    // Nobody has this id any more.
    world.write(first, at, &owner.own_tid.get().to_le_bytes());
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), Some(-i64::from(Errno::ESRCH.0)));
}

#[test]
fn a_holder_may_write_its_id_away_before_it_ends() {
    let world = World::new();
    let (first, other, owner) = (&world.first, second(&world), second(&world));
    let at = word(&world, 0);
    assert_eq!(held(&world, &owner, l::FUTEX_LOCK_PI, at), Some(0));
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), None);
    assert_eq!(held(&world, &other, l::FUTEX_LOCK_PI, at), None);
    // As musl does with what a thread still holds.
    world.write(first, at, &l::FUTEX_OWNER_DIED.to_le_bytes());
    world.call(&owner, l::__NR_exit, &[0]);
    world.collect();
    assert_eq!((world.next_reply(first), world.next_reply(&other)), (Some(0), None));
    let mark = l::FUTEX_WAITERS | l::FUTEX_OWNER_DIED;
    assert_eq!(world.read_u32(first, at), first.own_tid.get() | mark);
    world.write(first, at, &l::FUTEX_OWNER_DIED.to_le_bytes());
    assert_eq!(held(&world, first, l::FUTEX_UNLOCK_PI, at), Some(-i64::from(Errno::EPERM.0)));
    unix::mm::futex_held::release_held(&world.unix, first);
    world.collect();
    assert_eq!(world.next_reply(&other), Some(0));
    assert_eq!(world.read_u32(first, at), other.own_tid.get() | mark);
}

#[test]
fn a_word_is_waited_for_until_a_time() {
    let world = World::new();
    let (first, other) = (&world.first, second(&world));
    let at = word(&world, 0);
    assert_eq!(held(&world, &other, l::FUTEX_LOCK_PI, at), Some(0));
    let soon = world.machine.now_ns.get() + 5_000;
    let time = world.words(first, &[soon / 1_000_000_000, soon % 1_000_000_000]);
    world.waits(first, l::__NR_futex, &[at, l::FUTEX_LOCK_PI2.into(), 0, time]);
    world.advance(10_000_000);
    assert_eq!(
        world.next_reply(first).map(|value| value as i64),
        Some(-i64::from(Errno::ETIMEDOUT.0))
    );
    assert_eq!(held(&world, &other, l::FUTEX_UNLOCK_PI, at), Some(0));
    assert_eq!(world.read_u32(first, at), 0);
}

#[test]
fn a_handler_does_not_end_the_wait_for_a_word_that_is_held() {
    let world = World::new();
    let (first, other) = (&world.first, second(&world));
    let at = word(&world, 0);
    let stack = world.scratch(first, 16384) + 16384;
    world.machine.with(first.machine.get(), |thread| thread.registers.rsp = stack);
    // No SA_RESTART.
    let action = world.words(first, &[0x41_0000, l::SA_RESTORER.into(), 0x42_0000, 0]);
    world.ok(first, l::__NR_rt_sigaction, &[l::SIGUSR1.into(), action, 0, 8]);
    assert_eq!(held(&world, &other, l::FUTEX_LOCK_PI, at), Some(0));
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), None);
    let (pid, tid) = (first.process().number, first.own_tid.get());
    world.ok(&other, l::__NR_tgkill, &[pid.into(), tid.into(), l::SIGUSR1.into()]);
    let registers = world.registers(first);
    assert_eq!(registers.rip, 0x41_0000);
    // It returns to the call, not to a result.
    assert_eq!(world.read_u64(first, registers.rsp + RAX_AT), u64::from(l::__NR_futex));
}

const EINVAL: i64 = -(Errno::EINVAL.0 as i64);

#[test]
fn who_is_to_hold_a_word_is_not_just_woken() {
    let world = World::new();
    let (first, one, two) = (&world.first, second(&world), second(&world));
    let at = word(&world, 0);
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, at), Some(0));
    assert_eq!(held(&world, &one, l::FUTEX_LOCK_PI, at), None);
    for operation in [l::FUTEX_WAKE, l::FUTEX_REQUEUE, l::FUTEX_WAKE_OP] {
        let args = [at, operation.into(), 1, 1, at + 4, 0];
        world.refused(first, l::__NR_futex, &args, Errno::EINVAL);
    }
    assert_eq!(world.next_reply(&one), None);
    // Nor does one wait to hold a word at which others wait for anything.
    let plain = word(&world, 7);
    world.waits(&two, l::__NR_futex, &[plain, l::FUTEX_WAIT.into(), 7, 0]);
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, plain), Some(EINVAL));
}

#[test]
fn waiters_are_moved_to_a_word_that_they_will_hold() {
    let world = World::new();
    let first = &world.first;
    let waiters: Vec<_> = (0..3).map(|_| second(&world)).collect();
    let (from, to) = (word(&world, 1), word(&world, 0));
    let wait = [from, l::FUTEX_WAIT_REQUEUE_PI.into(), 1, 0, to];
    for waiter in &waiters {
        world.waits(waiter, l::__NR_futex, &wait);
    }
    let moves = |wakes, moves, to, value| {
        let args = [from, l::FUTEX_CMP_REQUEUE_PI.into(), wakes, moves, to, value];
        world.now(first, l::__NR_futex, &args) as i64
    };
    assert_eq!(moves(2, 1, to, 1), EINVAL);
    assert_eq!(moves(1, 1, to, 9), -i64::from(Errno::EAGAIN.0));
    assert_eq!(moves(1, 1, from, 1), EINVAL);
    assert_eq!(moves(1, 1, to + 4, 1), EINVAL, "it is another word that they wait for");
    assert_eq!(world.now(first, l::__NR_futex, &[from, 1, 1]) as i64, EINVAL, "woken");
    assert_eq!(moves(1, 1, to, 1), 2);
    assert_eq!(world.next_reply(&waiters[0]), Some(0));
    assert_eq!(world.read_u32(first, to), waiters[0].own_tid.get() | l::FUTEX_WAITERS);
    assert_eq!(world.next_reply(&waiters[1]), None);
    assert_eq!(held(&world, &waiters[0], l::FUTEX_UNLOCK_PI, to), Some(0));
    assert_eq!(world.next_reply(&waiters[1]), Some(0));
    // The third is moved while somebody holds the word, who ends.
    assert_eq!(moves(1, 9, to, 1), 1);
    assert_eq!(world.next_reply(&waiters[2]), None);
    world.call(&waiters[1], l::__NR_exit, &[0]);
    world.collect();
    assert_eq!(world.next_reply(&waiters[2]), Some(0));
    let mark = l::FUTEX_WAITERS | l::FUTEX_OWNER_DIED;
    assert_eq!(world.read_u32(first, to), waiters[2].own_tid.get() | mark);
}

#[test]
fn who_was_moved_waits_until_its_time() {
    let world = World::new();
    let (first, other) = (&world.first, second(&world));
    let (from, to) = (word(&world, 1), word(&world, 0));
    assert_eq!(held(&world, first, l::FUTEX_LOCK_PI, to), Some(0));
    let soon = world.machine.now_ns.get() + 5_000;
    let time = world.words(first, &[soon / 1_000_000_000, soon % 1_000_000_000]);
    world.waits(&other, l::__NR_futex, &[from, l::FUTEX_WAIT_REQUEUE_PI.into(), 1, time, to]);
    let args = [from, l::FUTEX_CMP_REQUEUE_PI.into(), 1, 0, to, 1];
    assert_eq!(world.ok(first, l::__NR_futex, &args), 1);
    world.advance(10_000_000);
    let timed_out = -i64::from(Errno::ETIMEDOUT.0);
    assert_eq!(world.next_reply(&other).map(|value| value as i64), Some(timed_out));
    assert_eq!(held(&world, first, l::FUTEX_UNLOCK_PI, to), Some(0));
    assert_eq!(world.read_u32(first, to), 0);
}
