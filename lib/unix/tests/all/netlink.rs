//! AF_NETLINK beyond NETLINK_ROUTE: what processes do, told to who listens, and families by name.

use std::rc::Rc;

use linux_raw_sys::general::*;
use linux_raw_sys::net::{MSG_DONTWAIT, SO_PROTOCOL, SO_TYPE, SOL_SOCKET};
use unix::errno::Errno;
use unix::thread::Thread;

use crate::common::World;

const AF_NETLINK: u64 = 16;
const CONNECTOR: u64 = 11;
const GENERIC: u64 = 16;
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;

const FORK: u32 = 1;
const USERS: u32 = 4;
const GROUPS: u32 = 0x40;
const SESSION: u32 = 0x80;
const NAME: u32 = 0x200;
const EXIT: u32 = 0x8000_0000;

fn socket(world: &World, thread: &Rc<Thread>, protocol: u64) -> u64 {
    world.ok(thread, __NR_socket, &[AF_NETLINK, 2, protocol])
}

fn bind(world: &World, thread: &Rc<Thread>, fd: u64, groups: u32) -> u64 {
    let at = world.put(thread, &[16, 0, groups].map(u32::to_le_bytes).concat());
    world.now(thread, __NR_bind, &[fd, at, 12])
}

fn send(world: &World, thread: &Rc<Thread>, fd: u64, kind: u16, flags: u16, payload: &[u8]) -> u64 {
    let len = 16 + payload.len() as u32;
    let head =
        [&len.to_le_bytes()[..], &kind.to_le_bytes(), &flags.to_le_bytes(), &[7; 8]].concat();
    let at = world.put(thread, &[&head, payload].concat());
    world.now(thread, __NR_sendto, &[fd, at, len.into(), 0, 0, 0])
}

fn receive(world: &World, thread: &Rc<Thread>, fd: u64) -> Result<Vec<u8>, u64> {
    let to = world.scratch(thread, 1024);
    let result = world.now(thread, __NR_recvfrom, &[fd, to, 1024, MSG_DONTWAIT.into(), 0, 0]);
    if result > 1024 { Err(result) } else { Ok(world.read(thread, to, result as usize)) }
}

/// Asks for events.
fn ask(world: &World, thread: &Rc<Thread>, fd: u64, wish: u32) {
    let words = [1, 1, 5, 9, 4, wish].map(u32::to_le_bytes).concat();
    assert_eq!(send(world, thread, fd, 3, 0, &words), 40);
}

/// The next event: what happened, and the words that it says.
fn event(world: &World, fd: u64) -> Option<(u32, [u32; 6])> {
    let bytes = receive(world, &world.first, fd).ok()?;
    assert_eq!(bytes.len(), 76);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(4) & 0xffff, word(16), word(20), word(32)), (76, 3, 1, 1, 40));
    Some((word(36), core::array::from_fn(|index| word(52 + 4 * index))))
}

fn listener(world: &World) -> u64 {
    let fd = socket(world, &world.first, CONNECTOR);
    assert_eq!(bind(world, &world.first, fd, 1), 0);
    ask(world, &world.first, fd, LISTEN);
    assert_eq!(event(world, fd), Some((0, [0; 6])));
    fd
}

#[test]
fn who_listens_is_told_what_processes_do() {
    let world = World::new();
    let first = &world.first;
    let before = world.fork(first);
    let fd = listener(&world);
    assert_eq!(world.call(&before, __NR_exit_group, &[3]), None);
    let old = before.process.pid.first();
    assert_eq!(event(&world, fd), Some((EXIT, [old, old, 0x300, SIGCHLD, 1, 1])));
    let child = world.fork(first);
    let pid = child.process.pid.first();
    assert_eq!(event(&world, fd), Some((FORK, [1, 1, pid, pid, 0, 0])));
    let name = world.text(&child, "spoon");
    world.ok(&child, __NR_prctl, &[15, name, 0, 0, 0]);
    let [one, two] = [*b"spoo", *b"n\0\0\0"].map(u32::from_le_bytes);
    assert_eq!(event(&world, fd), Some((NAME, [pid, pid, one, two, 0, 0])));
    world.ok(&child, __NR_setsid, &[]);
    assert_eq!(event(&world, fd), Some((SESSION, [pid, pid, 0, 0, 0, 0])));
    world.ok(&child, __NR_setresgid, &[8, 9, 10]);
    assert_eq!(event(&world, fd), Some((GROUPS, [pid, pid, 8, 9, 0, 0])));
    world.ok(&child, __NR_setresuid, &[0, 0, 0]);
    world.ok(&child, __NR_setresuid, &[5, 6, 7]);
    assert_eq!(event(&world, fd), Some((USERS, [pid, pid, 5, 6, 0, 0])));
    assert_eq!(event(&world, fd), None);
    // Until it does not want to any more.
    ask(&world, first, fd, IGNORE);
    assert_eq!(world.call(&child, __NR_exit_group, &[0]), None);
    assert_eq!(event(&world, fd), None);
    assert!(!world.unix.streams.connector.is_heard());
}

#[test]
fn events_are_not_for_everybody() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    world.ok(&child, __NR_setresuid, &[1000, 1000, 1000]);
    let theirs = socket(&world, &child, CONNECTOR);
    assert_eq!(bind(&world, &child, theirs, 1), Errno::EPERM.result());
    let one = world.words(&child, &[1]);
    world.refused(&child, __NR_setsockopt, &[theirs, 270, 1, one, 4], Errno::EPERM);
    assert_eq!(bind(&world, &child, theirs, 0), 0);
    ask(&world, &child, theirs, LISTEN);
    assert!(!world.unix.streams.connector.is_heard());
    // One that got into the group, and lost its rights: refused in so many words while others listen.
    let other = world.fork(first);
    let fd = socket(&world, &other, CONNECTOR);
    assert_eq!(bind(&world, &other, fd, 1), 0);
    let ours = listener(&world);
    world.ok(&other, __NR_setresuid, &[1000, 1000, 1000]);
    ask(&world, &other, fd, LISTEN);
    let told = receive(&world, &other, fd).unwrap();
    assert_eq!(told[52..56], u32::from(Errno::EPERM.0).to_le_bytes());
    assert!(receive(&world, &other, fd).is_err());
    // Who has closed does not listen.
    world.ok(first, __NR_close, &[ours]);
    assert_eq!(world.call(&other, __NR_exit_group, &[0]), None);
    assert!(!world.unix.streams.connector.is_heard());
    // Neither does who asks for something else, or in too few words.
    let fd = socket(&world, first, CONNECTOR);
    bind(&world, first, fd, 1);
    for (words, len) in [
        ([1, 2, 0, 0, 4, LISTEN], 24),
        ([1, 1, 0, 0, 8, LISTEN], 24),
        ([1, 1, 0, 0, 4, LISTEN], 20),
    ] {
        let bytes = words.map(u32::to_le_bytes).concat();
        send(&world, first, fd, 3, 0, &bytes[..len]);
    }
    assert!(!world.unix.streams.connector.is_heard());
}

#[test]
fn a_slow_listener_hears_that_it_lost_something() {
    let world = World::new();
    let fd = listener(&world);
    let child = world.fork(&world.first);
    let name = world.text(&child, "x");
    for _ in 0..300 {
        world.ok(&child, __NR_prctl, &[15, name, 0, 0, 0]);
    }
    assert_eq!(receive(&world, &world.first, fd), Err(Errno::ENOBUFS.result()));
    let mut heard = 0;
    while event(&world, fd).is_some() {
        heard += 1;
        world.forget_scratch(&world.first);
    }
    assert_eq!(heard, 253);
    assert_eq!(receive(&world, &world.first, fd), Err(Errno::EAGAIN.result()));
}

/// An attribute.
fn attribute(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes =
        [&(4 + data.len() as u16).to_le_bytes()[..], &kind.to_le_bytes(), data].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// What a command to a family is answered: without the header, or the error.
fn command(
    world: &World,
    fd: u64,
    family: u16,
    command: u8,
    attributes: &[u8],
) -> Result<Vec<u8>, i32> {
    let payload = [&[command, 1, 0, 0], attributes].concat();
    send(world, &world.first, fd, family, 1, &payload);
    let bytes = receive(world, &world.first, fd).unwrap();
    assert_eq!(bytes[8..12], [7; 4]);
    match bytes[4] {
        2 => Err(-i32::from_le_bytes(bytes[16..20].try_into().unwrap())),
        _ => Ok(bytes[16..].to_vec()),
    }
}

#[test]
fn families_are_found_by_name() {
    let world = World::new();
    let first = &world.first;
    let fd = world.ok(first, __NR_socket, &[AF_NETLINK, 3, GENERIC]);
    for (option, value) in [(SO_TYPE, 3), (SO_PROTOCOL, 16)] {
        let (at, len_at) = (world.words(first, &[0]), world.words(first, &[4]));
        world.ok(first, __NR_getsockopt, &[fd, SOL_SOCKET.into(), option.into(), at, len_at]);
        assert_eq!(world.read_u32(first, at), value);
    }
    let found = command(&world, fd, 16, 3, &attribute(2, b"TASKSTATS\0")).unwrap();
    assert_eq!(found[..4], [1, 2, 0, 0]);
    assert_eq!(found[4..20], attribute(2, b"TASKSTATS\0"));
    assert_eq!(found[20..28], attribute(1, &[0x13, 0]));
    let by_number = command(&world, fd, 16, 3, &attribute(1, &[0x13, 0])).unwrap();
    assert_eq!(by_number, found);
    let error = |errno: Errno| Err(i32::from(errno.0));
    assert_eq!(command(&world, fd, 16, 3, &attribute(2, b"nobody\0")), error(Errno::ENOENT));
    assert_eq!(command(&world, fd, 16, 3, &[]), error(Errno::EINVAL));
    assert_eq!(command(&world, fd, 16, 99, &[]), error(Errno::EOPNOTSUPP));
    assert_eq!(command(&world, fd, 77, 1, &[]), error(Errno::ENOENT));
    // Attributes that say they are longer, or shorter, than they can be.
    for len in [0, 3, 200] {
        assert_eq!(
            command(&world, fd, 16, 3, &[len, 0, 2, 0, b'x', 0, 0, 0]),
            error(Errno::EINVAL)
        );
    }
    // All of them.
    send(&world, first, fd, 16, 0x301, &[3, 1, 0, 0]);
    let all = receive(&world, first, fd).unwrap();
    assert_eq!(all[20..31], *b"\x0b\0\x02\0nlctrl\0");
}

#[test]
fn what_threads_have_used_is_told() {
    let world = World::new();
    let first = &world.first;
    let fd = socket(&world, first, GENERIC);
    let child = world.fork(first);
    let number = child.process.pid.first().to_le_bytes();
    world.ok(&child, __NR_setpriority, &[0, 0, 5]);
    world.ok(&child, __NR_setresuid, &[1000, 1000, 1000]);
    for kind in [1, 2] {
        let told = command(&world, fd, 0x13, 1, &attribute(kind, &number)).unwrap();
        assert_eq!(told[..4], [2, 1, 0, 0]);
        let stats = &told[20..];
        assert_eq!(told[4..8], [176, 1, kind as u8 + 3, 0]);
        assert_eq!(told[8..16], attribute(kind, &number));
        assert_eq!((told[16..20].to_vec(), stats.len()), (vec![164, 1, 3, 0], 416));
        // The version; the nice value, which is a thread's.
        assert_eq!((stats[0], stats[9]), (13, if kind == 1 { 5 } else { 0 }));
        let who = [&stats[128..132], &stats[120..124]].concat();
        let is = [number, 1000_u32.to_le_bytes()].concat();
        assert_eq!(who == is, kind == 1);
    }
    let error = |errno: Errno| Err(i32::from(errno.0));
    assert_eq!(command(&world, fd, 0x13, 1, &attribute(1, &[1, 2, 3, 4])), error(Errno::ESRCH));
    assert_eq!(command(&world, fd, 0x13, 1, &attribute(1, &[1])), error(Errno::ERANGE));
    assert_eq!(command(&world, fd, 0x13, 1, &attribute(3, b"0-1\0")), error(Errno::EINVAL));
    world.ok(first, __NR_setresuid, &[1000, 1000, 1000]);
    assert_eq!(command(&world, fd, 0x13, 1, &attribute(1, &number)), error(Errno::EPERM));
}
