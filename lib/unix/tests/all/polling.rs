//! poll, select, epoll, and the files made to be waited for: eventfd, timerfd, signalfd.

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general::*;
use unix::errno::Errno;
use unix::thread::Thread;

const IN: u16 = 1;
const OUT: u16 = 4;
const ERR: u16 = 8;
const HUP: u16 = 16;
const NVAL: u16 = 32;
const ET: u32 = 1 << 31;
const ONESHOT: u32 = 1 << 30;
const MS: u64 = 1_000_000;

fn pipe(world: &World) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_pipe2, &[at, O_NONBLOCK.into()]);
    let bytes = world.read(&world.first, at, 8);
    [0, 4].map(|i| u64::from(u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap())))
}

/// An array of `struct pollfd`.
fn entries(world: &World, fds: &[(u64, u16)]) -> u64 {
    let mut bytes = Vec::new();
    for (fd, events) in fds {
        bytes.extend((*fd as u32).to_le_bytes());
        bytes.extend(events.to_le_bytes());
        bytes.extend([0xee, 0xee]);
    }
    world.put(&world.first, &bytes)
}

fn found(world: &World, at: u64, index: u64) -> u16 {
    u16::from_le_bytes(world.read(&world.first, at + 8 * index + 6, 2).try_into().unwrap())
}

fn write_some(world: &World, fd: u64, len: u64) {
    let from = world.scratch(&world.first, len as usize);
    assert_eq!(world.ok(&world.first, __NR_write, &[fd, from, len]), len);
}

#[test]
fn poll_tells_what_is_ready() {
    let world = World::new();
    let [reader, writer] = pipe(&world);
    let at = entries(&world, &[(reader, IN), (writer, OUT), (77, IN), (u64::MAX, IN)]);
    assert_eq!(world.ok(&world.first, __NR_poll, &[at, 4, 0]), 2);
    let all = [0, 1, 2, 3].map(|index| found(&world, at, index));
    assert_eq!(all, [0, OUT, NVAL, 0]);
    write_some(&world, writer, 65_536);
    assert_eq!(world.ok(&world.first, __NR_poll, &[at, 2, 1000]), 1);
    assert_eq!([found(&world, at, 0), found(&world, at, 1)], [IN, 0]);
    world.ok(&world.first, __NR_close, &[reader]);
    assert_eq!(world.ok(&world.first, __NR_poll, &[at, 2, u64::MAX]), 2);
    assert_eq!([found(&world, at, 0), found(&world, at, 1)], [NVAL, ERR]);
    world.refused(&world.first, __NR_poll, &[at, 1 << 30, 0], Errno::EINVAL);
    world.refused(&world.first, __NR_poll, &[0, 1, 0], Errno::EFAULT);
}

#[test]
fn poll_waits_for_bytes_hangups_and_time() {
    let world = World::new();
    let [reader, writer] = pipe(&world);
    let at = entries(&world, &[(reader, IN)]);
    let child = world.fork(&world.first);
    world.ok(&child, __NR_close, &[writer]);
    world.waits(&child, __NR_poll, &[at, 1, u64::MAX]);
    write_some(&world, writer, 1);
    assert_eq!(world.next_reply(&child), Some(1));
    world.ok(&child, __NR_read, &[reader, at + 64, 8]);
    world.waits(&child, __NR_poll, &[at, 1, 250]);
    world.advance(249 * MS);
    assert_eq!(world.next_reply(&child), None);
    world.advance(MS);
    assert_eq!(world.next_reply(&child), Some(0));
    world.waits(&child, __NR_poll, &[at, 1, u64::MAX]);
    world.ok(&world.first, __NR_close, &[writer]);
    assert_eq!(world.next_reply(&child), Some(1));
    assert_eq!(world.read(&child, at + 6, 2), HUP.to_le_bytes());
}

#[test]
fn select_counts_bits_and_writes_back_the_time() {
    let world = World::new();
    let [reader, writer] = pipe(&world);
    let sets = world.words(&world.first, &[1 << reader | 1 << writer, 1 << reader | 1 << writer]);
    let time = world.words(&world.first, &[2, 0]);
    let args = [writer + 1, sets, sets + 8, 0, time];
    assert_eq!(world.ok(&world.first, __NR_select, &args), 1);
    let words = world.read(&world.first, sets, 16);
    assert_eq!(words[..8], [0; 8]);
    assert_eq!(words[8..], (1_u64 << writer).to_le_bytes());
    // Nothing wanted: a sleep.
    world.waits(&world.first, __NR_select, &[0, 0, 0, 0, time]);
    world.advance(2000 * MS);
    assert_eq!(world.next_reply(&world.first), Some(0));
    assert_eq!(world.read(&world.first, time, 16), [0; 16]);
    let bad = world.words(&world.first, &[1 << 60]);
    world.refused(&world.first, __NR_select, &[61, bad, 0, 0, 0], Errno::EBADF);
    world.refused(&world.first, __NR_select, &[u64::MAX, 0, 0, 0, 0], Errno::EINVAL);
}

/// `struct epoll_event`.
fn event(world: &World, events: u32, data: u64) -> u64 {
    let mut bytes = events.to_le_bytes().to_vec();
    bytes.extend(data.to_le_bytes());
    world.put(&world.first, &bytes)
}

/// What `epoll_wait` finds at once.
fn ready(world: &World, thread: &Rc<Thread>, epoll: u64) -> Vec<(u32, u64)> {
    let at = world.scratch(&world.first, 120);
    let count = world.ok(thread, __NR_epoll_wait, &[epoll, at, 10, 0]);
    let bytes = world.read(thread, at, 12 * count as usize);
    let pick = |event: &[u8]| {
        (
            u32::from_le_bytes(event[..4].try_into().unwrap()),
            u64::from_le_bytes(event[4..].try_into().unwrap()),
        )
    };
    bytes.chunks(12).map(pick).collect()
}

#[test]
fn epoll_knows_levels_edges_and_single_shots() {
    let world = World::new();
    let first = &world.first;
    let [reader, writer] = pipe(&world);
    let epoll = world.ok(first, __NR_epoll_create1, &[0]);
    let add = |events, data| event(&world, events, data);
    world.ok(first, __NR_epoll_ctl, &[epoll, 1, reader, add(1, 5)]);
    world.refused(first, __NR_epoll_ctl, &[epoll, 1, reader, add(1, 5)], Errno::EEXIST);
    world.refused(first, __NR_epoll_ctl, &[epoll, 1, epoll, add(1, 5)], Errno::EINVAL);
    world.refused(first, __NR_epoll_ctl, &[epoll, 3, writer, add(1, 5)], Errno::ENOENT);
    world.refused(first, __NR_epoll_ctl, &[reader, 1, writer, add(1, 5)], Errno::EINVAL);
    assert_eq!(ready(&world, first, epoll), []);
    write_some(&world, writer, 3);
    for _ in 0..2 {
        assert_eq!(ready(&world, first, epoll), [(1, 5)]);
    }
    // Edges: once for what is there, then once for every write.
    world.ok(first, __NR_epoll_ctl, &[epoll, 3, reader, add(1 | ET, 6)]);
    assert_eq!(ready(&world, first, epoll), [(1, 6)]);
    assert_eq!(ready(&world, first, epoll), []);
    write_some(&world, writer, 1);
    assert_eq!(ready(&world, first, epoll), [(1, 6)]);
    assert_eq!(ready(&world, first, epoll), []);
    world.ok(first, __NR_epoll_ctl, &[epoll, 3, reader, add(1 | ONESHOT, 7)]);
    assert_eq!(ready(&world, first, epoll), [(1, 7)]);
    write_some(&world, writer, 1);
    assert_eq!(ready(&world, first, epoll), []);
    world.ok(first, __NR_epoll_ctl, &[epoll, 3, reader, add(1, 8)]);
    assert_eq!(ready(&world, first, epoll), [(1, 8)]);
    world.ok(first, __NR_epoll_ctl, &[epoll, 2, reader, 0]);
    assert_eq!(ready(&world, first, epoll), []);
    // What is closed is forgotten.
    world.ok(first, __NR_epoll_ctl, &[epoll, 1, reader, add(1, 9)]);
    world.ok(first, __NR_close, &[reader]);
    assert_eq!(ready(&world, first, epoll), []);
}

#[test]
fn epolls_can_be_waited_for_but_not_in_circles() {
    let world = World::new();
    let first = &world.first;
    let [reader, writer] = pipe(&world);
    let [inner, outer] = [0; 2].map(|_| world.ok(first, __NR_epoll_create1, &[0]));
    world.ok(first, __NR_epoll_ctl, &[inner, 1, reader, event(&world, 1, 1)]);
    world.ok(first, __NR_epoll_ctl, &[outer, 1, inner, event(&world, 1, 2)]);
    let back = event(&world, 1, 3);
    world.refused(first, __NR_epoll_ctl, &[inner, 1, outer, back], Errno::ELOOP);
    let child = world.fork(first);
    let at = world.scratch(first, 24);
    world.waits(&child, __NR_epoll_wait, &[outer, at, 2, u64::MAX]);
    write_some(&world, writer, 1);
    assert_eq!(world.next_reply(&child), Some(1));
    assert_eq!(ready(&world, first, outer), [(1, 2)]);
    // A chain is bounded, whichever end it grows at.
    let mut top = outer;
    let refused = (0..10).find(|_| {
        let next = world.ok(first, __NR_epoll_create1, &[0]);
        let answer = world.now(first, __NR_epoll_ctl, &[next, 1, top, event(&world, 1, 4)]);
        top = next;
        answer == Errno::ELOOP.result()
    });
    assert!(refused.is_some());
    let mut bottom = world.ok(first, __NR_epoll_create1, &[0]);
    let refused = (0..10).find(|_| {
        let next = world.ok(first, __NR_epoll_create1, &[0]);
        let answer = world.now(first, __NR_epoll_ctl, &[bottom, 1, next, event(&world, 1, 4)]);
        bottom = next;
        answer == Errno::ELOOP.result()
    });
    assert!(refused.is_some());
}

#[test]
fn a_file_lies_in_five_epolls_at_most() {
    let world = World::new();
    let first = &world.first;
    let [reader, _writer] = pipe(&world);
    let mut top = reader;
    let mut epolls = Vec::new();
    let refused = (0..10).find(|_| {
        let next = world.ok(first, __NR_epoll_create1, &[0]);
        let answer = world.now(first, __NR_epoll_ctl, &[next, 1, top, event(&world, 1, 4)]);
        (epolls, top) = ([epolls.clone(), vec![next]].concat(), next);
        answer == Errno::ELOOP.result()
    });
    assert_eq!(refused, Some(5));
    // Nor from below.
    let bottom = world.ok(first, __NR_epoll_create1, &[0]);
    let add = [epolls[0], 1, bottom, event(&world, 1, 4)];
    world.refused(first, __NR_epoll_ctl, &add, Errno::ELOOP);
}

#[test]
fn epolls_that_hold_each_other_no_more_can_be_turned_around() {
    let world = World::new();
    let first = &world.first;
    let epolls = [0; 5].map(|_| world.ok(first, __NR_epoll_create1, &[0]));
    let at = event(&world, 1, 0);
    let link = |what: u32, chain: &[u64]| {
        let pairs = chain.windows(2);
        let one =
            |pair: &[u64]| world.now(first, __NR_epoll_ctl, &[pair[0], what.into(), pair[1], at]);
        pairs.map(one).find(|answer| *answer != 0).unwrap_or(0)
    };
    let turned: Vec<u64> = epolls.iter().rev().copied().collect();
    assert_eq!(link(EPOLL_CTL_ADD, &epolls), 0);
    assert_eq!(link(EPOLL_CTL_ADD, &[epolls[4], epolls[0]]), Errno::ELOOP.result());
    assert_eq!(link(EPOLL_CTL_DEL, &epolls), 0);
    assert_eq!(link(EPOLL_CTL_ADD, &turned), 0);
    let more = world.ok(first, __NR_epoll_create1, &[0]);
    assert_eq!(link(EPOLL_CTL_ADD, &[epolls[0], more]), Errno::ELOOP.result());
    assert_eq!(link(EPOLL_CTL_ADD, &[more, epolls[4]]), Errno::ELOOP.result());
    // Whoever held some of them is closed: there is room again.
    world.ok(first, __NR_close, &[epolls[4]]);
    assert_eq!(link(EPOLL_CTL_ADD, &[more, epolls[3]]), 0);
    assert_eq!(link(EPOLL_CTL_ADD, &[epolls[0], epolls[3]]), Errno::ELOOP.result());
}

#[test]
fn one_of_the_exclusive_is_woken() {
    let world = World::new();
    let first = &world.first;
    let [reader, writer] = pipe(&world);
    let (exclusive, at) = (1 << 28, world.scratch(first, 24));
    let epolls = [0; 3].map(|_| world.ok(first, __NR_epoll_create1, &[0]));
    for (epoll, options) in epolls.into_iter().zip([exclusive, exclusive, 0]) {
        let entry = event(&world, 1 | options, 5);
        world.ok(first, __NR_epoll_ctl, &[epoll, 1, reader, entry]);
    }
    let children = epolls.map(|epoll| {
        let child = world.fork(first);
        world.waits(&child, __NR_epoll_wait, &[epoll, at, 2, u64::MAX]);
        child
    });
    write_some(&world, writer, 1);
    let woken = children.each_ref().map(|child| world.next_reply(child));
    assert_eq!(woken, [Some(1), None, Some(1)]);
    // Who is woken next is one that waits.
    write_some(&world, writer, 1);
    assert_eq!(world.next_reply(&children[1]), Some(1));
    // All of them see what is there.
    assert_eq!(epolls.map(|epoll| ready(&world, first, epoll).len()), [1; 3]);
}

#[test]
fn eventfd_counts() {
    let world = World::new();
    let first = &world.first;
    let fd = world.ok(first, __NR_eventfd2, &[3, O_NONBLOCK.into()]);
    let at = world.words(first, &[4]);
    world.ok(first, __NR_write, &[fd, at, 8]);
    assert_eq!(world.ok(first, __NR_read, &[fd, at, 8]), 8);
    assert_eq!(world.read(first, at, 8), 7_u64.to_le_bytes());
    world.refused(first, __NR_read, &[fd, at, 8], Errno::EAGAIN);
    world.refused(first, __NR_read, &[fd, at, 7], Errno::EINVAL);
    let most = world.words(first, &[u64::MAX - 1]);
    world.ok(first, __NR_write, &[fd, most, 8]);
    world.refused(first, __NR_write, &[fd, at, 8], Errno::EAGAIN);
    let all = world.words(first, &[u64::MAX]);
    world.refused(first, __NR_write, &[fd, all, 8], Errno::EINVAL);
    let two = world.ok(first, __NR_eventfd2, &[2, EFD_SEMAPHORE.into()]);
    for _ in 0..2 {
        world.ok(first, __NR_read, &[two, at, 8]);
        assert_eq!(world.read(first, at, 8), 1_u64.to_le_bytes());
    }
    let child = world.fork(first);
    world.waits(&child, __NR_read, &[two, at, 8]);
    world.write(first, at, &1_u64.to_le_bytes());
    world.ok(first, __NR_write, &[two, at, 8]);
    assert_eq!(world.next_reply(&child), Some(8));
}

#[test]
fn timerfd_expires() {
    let world = World::new();
    let first = &world.first;
    let fd = world.ok(first, __NR_timerfd_create, &[CLOCK_MONOTONIC.into(), 0]);
    let at = world.scratch(first, 32);
    // Every 10 ms, first in 25.
    let new = world.words(first, &[0, 10 * MS, 0, 25 * MS]);
    world.ok(first, __NR_timerfd_settime, &[fd, 0, new, 0]);
    world.waits(first, __NR_read, &[fd, at, 8]);
    world.advance(25 * MS);
    assert_eq!(world.next_reply(first), Some(8));
    world.advance(31 * MS);
    assert_eq!(world.ok(first, __NR_read, &[fd, at, 8]), 8);
    assert_eq!(world.read(first, at, 8), 3_u64.to_le_bytes());
    world.ok(first, __NR_timerfd_gettime, &[fd, at]);
    assert_eq!(world.read(first, at + 24, 8), (9 * MS).to_le_bytes());
    let polled = entries(&world, &[(fd, IN)]);
    world.waits(first, __NR_poll, &[polled, 1, u64::MAX]);
    world.advance(9 * MS);
    assert_eq!(world.next_reply(first), Some(1));
    let off = world.words(first, &[0, 0, 0, 0]);
    world.ok(first, __NR_timerfd_settime, &[fd, 0, off, 0]);
    assert_eq!(world.ok(first, __NR_poll, &[polled, 1, 0]), 0);
    world.refused(first, __NR_timerfd_create, &[99, 0], Errno::EINVAL);
}

#[test]
fn signalfd_reads_signals() {
    let world = World::new();
    let first = &world.first;
    let mask = world.words(first, &[1 << (SIGUSR1 - 1)]);
    world.ok(first, __NR_rt_sigprocmask, &[SIG_BLOCK.into(), mask, 0, 8]);
    let fd = world.ok(first, __NR_signalfd4, &[u64::MAX, mask, 8, 0]);
    let at = world.scratch(first, 256);
    let polled = entries(&world, &[(fd, IN)]);
    let child = world.fork(first);
    world.waits(first, __NR_poll, &[polled, 1, u64::MAX]);
    world.ok(&child, __NR_kill, &[1, SIGUSR1.into()]);
    assert_eq!(world.next_reply(first), Some(1));
    assert_eq!(world.ok(first, __NR_read, &[fd, at, 256]), 128);
    let record = world.read(first, at, 128);
    assert_eq!(record[..4], SIGUSR1.to_le_bytes());
    assert_eq!(record[12..16], child.process().number.to_le_bytes());
    world.refused(first, __NR_read, &[fd, at, 127], Errno::EINVAL);
}
