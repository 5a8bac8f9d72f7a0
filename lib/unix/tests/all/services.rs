//! Sockets of services: what programs ask tasks of the system below.

use std::rc::Rc;

use crate::common::World;
use crate::common::caller::{Program, error};
use linux_raw_sys::errno::{
    EACCES, EAGAIN, ECONNREFUSED, EINVAL, EISCONN, EMSGSIZE, ENXIO, EPROTOTYPE,
};
use linux_raw_sys::general::{
    __NR_close, __NR_connect, __NR_poll, __NR_read, __NR_sendto, __NR_setresuid, __NR_socket,
    __NR_write, O_RDWR,
};
use linux_raw_sys::net::{AF_UNIX, MSG_DONTWAIT, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
use unix::errno::Errno;
use unix::machine::Packet;
use unix::stream::socket::service;
use unix::thread::Thread;

const MODE: u64 = 0o777;

/// A world with the service `post` for all, and `tasks` for user 0.
fn world(carriers: usize) -> World {
    let world = World::new();
    world.machine.services.borrow_mut().extend([("post", 0o666), ("tasks", 0o600)]);
    world.machine.carriers.set(carriers);
    service::offer(&world.unix).unwrap();
    world
}

/// A socket, and what connecting it to `path` comes to.
fn connect(world: &World, thread: &Rc<Thread>, kind: u32, path: &str) -> (u64, i64) {
    let fd = world.ok(thread, __NR_socket, &[AF_UNIX.into(), kind.into(), 0]);
    let mut bytes = (AF_UNIX as u16).to_le_bytes().to_vec();
    bytes.extend(path.as_bytes());
    let at = world.put(thread, &bytes);
    (fd, world.now(thread, __NR_connect, &[fd, at, bytes.len() as u64]) as i64)
}

fn connected(world: &World, path: &str) -> u64 {
    let (fd, result) = connect(world, &world.first, SOCK_SEQPACKET, path);
    assert_eq!(result, 0, "connect to {path}");
    fd
}

/// A packet: label, words, string.
fn packet(label: u64, words: &[u64], string: Option<&[u8]>) -> Vec<u8> {
    let typed = if string.is_some() { 2 << 6 } else { 0 };
    let mut bytes = (label << 16 | typed | words.len() as u64).to_le_bytes().to_vec();
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(string.unwrap_or_default());
    bytes
}

fn send(world: &World, fd: u64, bytes: &[u8], flags: u32) -> i64 {
    let from = world.put(&world.first, bytes);
    let len = bytes.len() as u64;
    world.now(&world.first, __NR_sendto, &[fd, from, len, flags.into(), 0, 0]) as i64
}

/// The answer of the first call that the machine carries.
fn answer(world: &World, answer: Result<Packet, Errno>) {
    let asked = world.machine.asked.borrow_mut().remove(0);
    world.unix.service_answered(asked.call, answer);
    world.collect();
}

#[test]
fn a_packet_is_a_message_there_and_one_back() {
    let world = world(1);
    let fd = connected(&world, "/srv/post");
    let request = packet(0x4000_0007, &[1, 2], Some(b"text"));
    assert_eq!(send(&world, fd, &request, 0), request.len() as i64);
    {
        let asked = world.machine.asked.borrow();
        assert_eq!((asked[0].service, asked[0].label), (0, 0x4000_0007));
        assert_eq!(asked[0].words, [1u64.to_le_bytes(), 2u64.to_le_bytes()].concat());
        assert_eq!(asked[0].string.as_deref(), Some(&b"text"[..]));
    }
    // One call at a time; whoever reads waits for the answer.
    assert_eq!(send(&world, fd, &request, MSG_DONTWAIT), error(EAGAIN));
    let to = world.scratch(&world.first, 64);
    world.waits(&world.first, __NR_read, &[fd, to, 64]);
    let words = 9u64.to_le_bytes();
    answer(&world, Ok(Packet { label: 0, words: &words, string: None }));
    assert_eq!(world.next_reply(&world.first), Some(16));
    assert_eq!(world.read(&world.first, to, 16), packet(0, &[9], None));
    // An empty string is one.
    let request = packet(1, &[], Some(b""));
    assert_eq!(send(&world, fd, &request, MSG_DONTWAIT), 8);
    assert_eq!(world.machine.asked.borrow()[0].string.as_deref(), Some(&b""[..]));
}

#[test]
fn what_is_no_message_is_refused_and_sent_to_nobody() {
    let world = world(1);
    let fd = connected(&world, "/srv/post");
    let whole = packet(1, &[1, 2, 3], None);
    let behind = [&whole[..], b"x"].concat();
    for bad in [&[][..], &whole[..7], &whole[..31], &behind] {
        assert_eq!(send(&world, fd, bad, 0), error(EINVAL), "{bad:x?}");
    }
    for tag in [1 << 6, 2 << 6 | 62, 4 << 6, 1 << 12, 1 << 15] {
        let mut bytes = packet(1, &[0; 63], None);
        bytes[..8].copy_from_slice(&u64::to_le_bytes(1 << 16 | tag));
        assert_eq!(send(&world, fd, &bytes, 0), error(EINVAL), "{tag:#x}");
    }
    let long = vec![0; service::STRING_MAX + 1];
    assert_eq!(send(&world, fd, &packet(1, &[], Some(&long)), 0), error(EINVAL));
    assert_eq!(send(&world, fd, &packet(1, &[0; 61], Some(&vec![0; 20_000])), 0), error(EMSGSIZE));
    assert!(world.machine.asked.borrow().is_empty());
    let longest = packet(1, &[5; 61], Some(&long[1..]));
    assert_eq!(send(&world, fd, &longest, 0), longest.len() as i64);
}

#[test]
fn only_packets_are_carried_and_only_for_those_who_may() {
    let world = world(1);
    let datagrams = connect(&world, &world.first, SOCK_DGRAM, "/srv/post").1;
    assert_eq!(datagrams, error(EPROTOTYPE));
    // Its task takes no streams.
    let stream = connect(&world, &world.first, SOCK_STREAM, "/srv/post").1;
    assert_eq!(stream, error(ECONNREFUSED));
    let first = Program::new(&world, &world.first);
    assert_eq!(first.stat("/srv/tasks").unwrap().mode() & MODE as u32, 0o600);
    assert_eq!(first.open("/srv/post", O_RDWR, 0), error(ENXIO));
    let fd = connected(&world, "/srv/tasks");
    let at = world.put(&world.first, b"\x01\0/srv/post");
    assert_eq!(
        world.now(&world.first, __NR_connect, &[fd, at, 11]) as i64,
        error(EISCONN),
        "it is connected already"
    );
    let other = first.fork();
    other.lose_privileges();
    let thread = other.thread.clone();
    assert_eq!(connect(&world, &thread, SOCK_SEQPACKET, "/srv/tasks").1, error(EACCES));
    assert_eq!(connect(&world, &thread, SOCK_SEQPACKET, "/srv/post").1, 0);
}

#[test]
fn a_service_that_is_gone_is_an_error_once() {
    let world = world(1);
    let fd = connected(&world, "/srv/post");
    let request = packet(1, &[], None);
    assert_eq!(send(&world, fd, &request, 0), 8);
    answer(&world, Err(Errno::ECONNRESET));
    let to = world.scratch(&world.first, 64);
    world.refused(&world.first, __NR_read, &[fd, to, 64], Errno::ECONNRESET);
    // The next call may find it started again.
    assert_eq!(send(&world, fd, &request, 0), 8);
    answer(&world, Ok(Packet { label: 0, words: &[], string: Some(b"here") }));
    assert_eq!(world.ok(&world.first, __NR_read, &[fd, to, 64]), 12);
}

#[test]
fn who_closes_gives_its_call_up_and_whoever_waits_goes_on() {
    let world = world(1);
    let (one, two) = (connected(&world, "/srv/post"), connected(&world, "/srv/post"));
    let request = packet(1, &[], None);
    assert_eq!(send(&world, one, &request, 0), 8);
    let child = world.fork(&world.first);
    world.ok(&child, __NR_close, &[one]);
    let from = world.put(&child, &request);
    world.waits(&child, __NR_write, &[two, from, 8]);
    world.ok(&world.first, __NR_close, &[one]);
    assert_eq!(*world.machine.given_up.borrow(), [1]);
    answer(&world, Err(Errno::EINTR));
    assert_eq!(world.next_reply(&child), Some(8));
    assert_eq!(world.machine.asked.borrow()[0].call, 2);
}

#[test]
fn users_keep_some_carriers_from_nobody() {
    let world = world(8);
    let first = Program::new(&world, &world.first);
    // One user has three of them, two have four.
    for (uid, calls) in [(1000, 3), (1001, 1)] {
        let thread = first.fork().thread;
        world.ok(&thread, __NR_setresuid, &[uid; 3]);
        let from = world.put(&thread, &packet(1, &[], None));
        for round in 0..5 {
            let (fd, result) = connect(&world, &thread, SOCK_SEQPACKET, "/srv/post");
            assert_eq!(result, 0);
            let flags = MSG_DONTWAIT.into();
            let sent = world.now(&thread, __NR_sendto, &[fd, from, 8, flags, 0, 0]) as i64;
            assert_eq!(sent, if round < calls { 8 } else { error(EAGAIN) }, "{uid}, call {round}");
        }
    }
    let fd = connected(&world, "/srv/post");
    assert_eq!(send(&world, fd, &packet(1, &[], None), MSG_DONTWAIT), 8);
}

#[test]
fn poll_tells_when_a_service_takes_and_has_answered() {
    let world = world(1);
    let fd = connected(&world, "/srv/post");
    let poll = || {
        let at =
            world.put(&world.first, &[&(fd as u32).to_le_bytes()[..], &[0x05, 0, 0, 0]].concat());
        world.ok(&world.first, __NR_poll, &[at, 1, 0]);
        world.read(&world.first, at + 6, 1)[0]
    };
    assert_eq!(poll(), 4, "writable");
    assert_eq!(send(&world, fd, &packet(1, &[], None), 0), 8);
    assert_eq!(poll(), 0);
    answer(&world, Ok(Packet { label: 0, words: &[], string: None }));
    assert_eq!(poll(), 5, "readable, too");
}
