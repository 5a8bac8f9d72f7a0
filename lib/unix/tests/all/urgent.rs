//! Urgent data of streams, and their abrupt ends.

use crate::common::World;
use linux_raw_sys::general::*;
use linux_raw_sys::ioctl::{FIONREAD, SIOCATMARK};
use linux_raw_sys::net::{
    AF_INET, AF_UNIX, MSG_DONTWAIT, MSG_OOB, MSG_PEEK, SO_LINGER, SO_OOBINLINE, SOCK_DGRAM,
    SOCK_STREAM, SOL_SOCKET,
};
use unix::errno::Errno;

/// Two ends of a stream.
fn pair(world: &World, family: u32) -> [u64; 2] {
    let first = &world.first;
    if family == AF_UNIX {
        let at = world.scratch(first, 8);
        world.ok(first, __NR_socketpair, &[family.into(), SOCK_STREAM.into(), 0, at]);
        let bytes = world.read(first, at, 8);
        return [0, 4].map(|i| u64::from(bytes[i]));
    }
    let socket = || world.ok(first, __NR_socket, &[family.into(), SOCK_STREAM.into(), 0]);
    let (listener, one) = (socket(), socket());
    let at = world.put(first, &[2, 0, 0x20, 1, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    world.ok(first, __NR_bind, &[listener, at, 16]);
    world.ok(first, __NR_listen, &[listener, 1]);
    world.ok(first, __NR_connect, &[one, at, 16]);
    let two = world.ok(first, __NR_accept, &[listener, 0, 0]);
    [one, two]
}

fn send(world: &World, fd: u64, bytes: &[u8], flags: u32) {
    let from = world.put(&world.first, bytes);
    let len = bytes.len() as u64;
    assert_eq!(world.ok(&world.first, __NR_sendto, &[fd, from, len, flags.into(), 0, 0]), len);
}

fn receive(world: &World, fd: u64, flags: u32) -> Vec<u8> {
    let to = world.scratch(&world.first, 16);
    let flags = u64::from(flags | MSG_DONTWAIT);
    let len = world.ok(&world.first, __NR_recvfrom, &[fd, to, 16, flags, 0, 0]);
    world.read(&world.first, to, len as usize)
}

fn receives_nothing(world: &World, fd: u64, flags: u32, errno: Errno) {
    let to = world.scratch(&world.first, 16);
    let flags = u64::from(flags | MSG_DONTWAIT);
    world.refused(&world.first, __NR_recvfrom, &[fd, to, 16, flags, 0, 0], errno);
}

fn asked(world: &World, fd: u64, request: u32) -> u8 {
    let at = world.scratch(&world.first, 4);
    world.ok(&world.first, __NR_ioctl, &[fd, request.into(), at]);
    world.read(&world.first, at, 4)[0]
}

/// What `poll` finds of `POLLIN` and `POLLPRI`.
fn ready(world: &World, fd: u64) -> u8 {
    let mut entry = (fd as u32).to_le_bytes().to_vec();
    entry.extend([3, 0, 0, 0]);
    let at = world.put(&world.first, &entry);
    world.ok(&world.first, __NR_poll, &[at, 1, 0]);
    world.read(&world.first, at, 8)[6]
}

#[test]
fn a_reader_stops_in_front_of_it_and_goes_over_it() {
    for family in [AF_INET, AF_UNIX] {
        let world = World::new();
        let [one, two] = pair(&world, family);
        send(&world, one, b"ab!", MSG_OOB);
        send(&world, one, b"cd", 0);
        assert_eq!((ready(&world, two), asked(&world, two, SIOCATMARK)), (3, 0));
        assert_eq!(receive(&world, two, MSG_PEEK), b"ab");
        assert_eq!(receive(&world, two, 0), b"ab");
        assert_eq!(asked(&world, two, SIOCATMARK), 1);
        assert_eq!(receive(&world, two, MSG_OOB | MSG_PEEK), b"!");
        assert_eq!(receive(&world, two, MSG_OOB), b"!");
        receives_nothing(&world, two, MSG_OOB, Errno::EINVAL);
        assert_eq!(ready(&world, two), 1);
        assert_eq!(receive(&world, two, MSG_PEEK), b"cd");
        assert_eq!(receive(&world, two, 0), b"cd");
        receives_nothing(&world, two, 0, Errno::EAGAIN);
        // Nobody has read it by itself: it is gone with the bytes behind it.
        send(&world, one, b"?", MSG_OOB);
        send(&world, one, b"e", 0);
        assert_eq!(receive(&world, two, 0), b"e");
        receives_nothing(&world, two, MSG_OOB, Errno::EINVAL);
        assert_eq!(ready(&world, two), 0);
    }
}

#[test]
fn it_stays_in_line_if_that_is_asked_for() {
    let world = World::new();
    let [one, two] = pair(&world, AF_INET);
    let on = world.put(&world.first, &[1, 0, 0, 0]);
    let option = [two, SOL_SOCKET.into(), SO_OOBINLINE.into(), on, 4];
    world.ok(&world.first, __NR_setsockopt, &option);
    send(&world, one, b"ab!", MSG_OOB);
    send(&world, one, b"cd", 0);
    receives_nothing(&world, two, MSG_OOB, Errno::EINVAL);
    assert_eq!(asked(&world, two, FIONREAD), 5);
    assert_eq!(receive(&world, two, 0), b"ab");
    assert_eq!(receive(&world, two, 0), b"!cd");
    assert_eq!((ready(&world, two), asked(&world, two, SIOCATMARK)), (0, 0));
}

#[test]
fn a_second_one_takes_the_place_of_the_first() {
    let world = World::new();
    let [one, two] = pair(&world, AF_INET);
    send(&world, one, b"a1", MSG_OOB);
    send(&world, one, b"b2", MSG_OOB);
    assert_eq!(asked(&world, two, FIONREAD), 3);
    assert_eq!(receive(&world, two, MSG_OOB), b"2");
    assert_eq!(receive(&world, two, 0), b"a1b");
    // Only the urgent byte is left, of which a reader has nothing.
    assert_eq!((ready(&world, two), asked(&world, two, FIONREAD)), (0, 0));
    receives_nothing(&world, two, 0, Errno::EAGAIN);
    // At the mark, the first of two is left out.
    send(&world, one, b"3", MSG_OOB);
    send(&world, one, b"c4", MSG_OOB);
    assert_eq!(receive(&world, two, 0), b"c");
    assert_eq!(receive(&world, two, MSG_OOB), b"4");
}

#[test]
fn the_owner_is_told() {
    let world = World::new();
    let [one, two] = pair(&world, AF_INET);
    let pid = world.ok(&world.first, __NR_getpid, &[]);
    world.ok(&world.first, __NR_fcntl, &[two, F_SETOWN.into(), pid]);
    let set = world.put(&world.first, &(1_u64 << (SIGURG - 1)).to_le_bytes());
    world.ok(&world.first, __NR_rt_sigprocmask, &[SIG_BLOCK.into(), set, 0, 8]);
    let pending = || {
        let at = world.scratch(&world.first, 8);
        world.ok(&world.first, __NR_rt_sigpending, &[at, 8]);
        world.read(&world.first, at, 8) == (1_u64 << (SIGURG - 1)).to_le_bytes()
    };
    send(&world, one, b"a", 0);
    assert!(!pending());
    send(&world, one, b"!", MSG_OOB);
    assert!(pending());
}

#[test]
fn who_has_no_such_thing_says_so() {
    let world = World::new();
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_socketpair, &[AF_UNIX.into(), SOCK_DGRAM.into(), 0, at]);
    let fd = u64::from(world.read(&world.first, at, 4)[0]);
    receives_nothing(&world, fd, MSG_OOB, Errno::EOPNOTSUPP);
    let call = [fd, at, 1, MSG_OOB.into(), 0, 0];
    world.refused(&world.first, __NR_sendto, &call, Errno::EOPNOTSUPP);
    let [one, _] = pair(&world, AF_UNIX);
    let call = [one, at, 0, MSG_OOB.into(), 0, 0];
    world.refused(&world.first, __NR_sendto, &call, Errno::EOPNOTSUPP);
}

#[test]
fn who_lingers_for_no_time_resets() {
    let world = World::new();
    let [one, two] = pair(&world, AF_INET);
    let linger = world.put(&world.first, &[1, 0, 0, 0, 0, 0, 0, 0]);
    let option = [one, SOL_SOCKET.into(), SO_LINGER.into(), linger, 8];
    world.ok(&world.first, __NR_setsockopt, &option);
    send(&world, one, b"ab", 0);
    let (name, len) = (world.scratch(&world.first, 16), world.put(&world.first, &[16, 0, 0, 0]));
    world.ok(&world.first, __NR_getpeername, &[two, name, len]);
    world.ok(&world.first, __NR_close, &[one]);
    world.refused(&world.first, __NR_getpeername, &[two, name, len], Errno::ENOTCONN);
    assert_eq!(receive(&world, two, 0), b"ab");
    receives_nothing(&world, two, 0, Errno::ECONNRESET);
}
