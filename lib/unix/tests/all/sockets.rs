//! UNIX sockets: pairs, connections, datagrams, what goes with messages.

use crate::common::World;
use linux_raw_sys::general::*;
use linux_raw_sys::net::{
    AF_UNIX, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, SO_ERROR, SO_PASSCRED, SO_PEERCRED,
    SO_TYPE, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};
use unix::errno::Errno;

const UNIX: u64 = AF_UNIX as u64;

pub fn pair(world: &World, kind: u32) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_socketpair, &[UNIX, kind.into(), 0, at]);
    let bytes = world.read(&world.first, at, 8);
    [0, 4].map(|i| u64::from(u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap())))
}

/// `struct sockaddr_un`: where it is, how long it is.
fn address(world: &World, name: &[u8]) -> (u64, u64) {
    let mut bytes = (AF_UNIX as u16).to_le_bytes().to_vec();
    bytes.extend(name);
    (world.put(&world.first, &bytes), bytes.len() as u64)
}

fn send(world: &World, fd: u64, bytes: &[u8]) {
    let from = world.put(&world.first, bytes);
    assert_eq!(
        world.ok(&world.first, __NR_write, &[fd, from, bytes.len() as u64]),
        bytes.len() as u64
    );
}

fn receive(world: &World, fd: u64, room: u64, flags: u32) -> Vec<u8> {
    let to = world.scratch(&world.first, room as usize);
    let len = world.ok(&world.first, __NR_recvfrom, &[fd, to, room, flags.into(), 0, 0]);
    world.read(&world.first, to, len.min(room) as usize)
}

#[test]
fn a_stream_has_no_ends_but_the_last() {
    let world = World::new();
    let [one, two] = pair(&world, SOCK_STREAM);
    send(&world, one, b"abc");
    send(&world, one, b"defg");
    assert_eq!(receive(&world, two, 2, MSG_PEEK), b"ab");
    assert_eq!(receive(&world, two, 5, 0), b"abcde");
    assert_eq!(receive(&world, two, 5, 0), b"fg");
    let to = world.scratch(&world.first, 8);
    world.refused(
        &world.first,
        __NR_recvfrom,
        &[two, to, 8, MSG_DONTWAIT.into(), 0, 0],
        Errno::EAGAIN,
    );
    send(&world, two, b"x");
    world.ok(&world.first, __NR_close, &[one]);
    // What was not read is lost, and the other side is told so.
    world.refused(&world.first, __NR_read, &[two, to, 8], Errno::ECONNRESET);
    assert_eq!(world.ok(&world.first, __NR_read, &[two, to, 8]), 0);
    world.refused(&world.first, __NR_write, &[two, to, 1], Errno::EPIPE);
}

#[test]
fn a_stream_s_sender_waits_for_room() {
    let world = World::new();
    let [one, two] = pair(&world, SOCK_STREAM);
    let len = 500_000;
    let data: Vec<u8> = (0..len).map(|i| (i * 13 + i / 251) as u8).collect();
    let from = world.put(&world.first, &data);
    let child = world.fork(&world.first);
    world.waits(&child, __NR_write, &[one, from, len as u64]);
    let mut got = Vec::new();
    let to = world.scratch(&world.first, 50_000);
    while got.len() < len {
        let count = world.ok(&world.first, __NR_read, &[two, to, 50_000]);
        got.extend(world.read(&world.first, to, count as usize));
    }
    assert!(got == data);
    assert_eq!(world.next_reply(&child), Some(len as u64));
    world.waits(&child, __NR_recvfrom, &[one, from, 10, MSG_WAITALL.into(), 0, 0]);
    send(&world, two, b"01234");
    assert_eq!(world.next_reply(&child), None);
    send(&world, two, b"56789");
    assert_eq!(world.next_reply(&child), Some(10));
    assert_eq!(world.read(&child, from, 10), b"0123456789");
}

#[test]
fn packets_keep_their_ends() {
    let world = World::new();
    for kind in [SOCK_SEQPACKET, SOCK_DGRAM] {
        let [one, two] = pair(&world, kind);
        send(&world, one, b"abcdef");
        send(&world, one, b"");
        send(&world, one, b"gh");
        assert_eq!(receive(&world, two, 3, 0), b"abc");
        assert_eq!(receive(&world, two, 3, 0), b"");
        let to = world.scratch(&world.first, 8);
        let all = MSG_TRUNC | MSG_PEEK;
        assert_eq!(world.ok(&world.first, __NR_recvfrom, &[two, to, 1, all.into(), 0, 0]), 2);
        assert_eq!(receive(&world, two, 8, 0), b"gh");
        world.ok(&world.first, __NR_close, &[one]);
        if kind == SOCK_SEQPACKET {
            assert_eq!(receive(&world, two, 8, 0), b"");
        } else {
            world.refused(&world.first, __NR_write, &[two, to, 1], Errno::ECONNREFUSED);
            world.refused(&world.first, __NR_write, &[two, to, 1], Errno::ENOTCONN);
        }
    }
}

#[test]
fn connections_are_made_and_accepted() {
    let world = World::new();
    let first = &world.first;
    let stream = SOCK_STREAM.into();
    let listener = world.ok(first, __NR_socket, &[UNIX, stream, 0]);
    let (name, len) = address(&world, b"\0a name");
    world.ok(first, __NR_bind, &[listener, name, len]);
    world.refused(first, __NR_bind, &[listener, name, len], Errno::EINVAL);
    // Any name will do: it has one.
    world.ok(first, __NR_bind, &[listener, name, 2]);
    let other = world.ok(first, __NR_socket, &[UNIX, stream, 0]);
    world.refused(first, __NR_bind, &[other, name, len], Errno::EADDRINUSE);
    world.refused(first, __NR_connect, &[other, name, len], Errno::ECONNREFUSED);
    world.ok(first, __NR_listen, &[listener, 0]);
    let child = world.fork(first);
    world.waits(&child, __NR_accept, &[listener, 0, 0]);
    world.ok(first, __NR_connect, &[other, name, len]);
    let server = world.next_reply(&child).expect("a connection");
    world.refused(first, __NR_connect, &[other, name, len], Errno::EISCONN);
    let text = world.put(first, b"to the server");
    world.ok(first, __NR_write, &[other, text, 13]);
    assert_eq!(world.ok(&child, __NR_read, &[server, text, 64]), 13);
    // Who is on the other side, and its address.
    let at = world.words(first, &[0, 0]);
    let size = world.words(first, &[12]);
    world.ok(first, __NR_getsockopt, &[other, SOL_SOCKET.into(), SO_PEERCRED.into(), at, size]);
    assert_eq!(world.read(first, at, 4), 1_u32.to_le_bytes());
    let place = world.scratch(first, 128);
    world.write(first, size, &128_u32.to_le_bytes());
    world.ok(first, __NR_getpeername, &[other, place, size]);
    assert_eq!(world.read(first, place, len as usize)[2..], b"\0a name"[..]);
    // One may wait to be accepted, no second one.
    let [third, fourth] = [0; 2]
        .map(|_| world.ok(first, __NR_socket, &[UNIX, u64::from(SOCK_STREAM | O_NONBLOCK), 0]));
    world.ok(first, __NR_connect, &[third, name, len]);
    world.refused(first, __NR_connect, &[fourth, name, len], Errno::EAGAIN);
    world.ok(first, __NR_close, &[listener]);
    world.ok(&child, __NR_close, &[listener]);
    // Who waited to be accepted learns that nobody will.
    world.refused(first, __NR_read, &[third, text, 1], Errno::ECONNRESET);
}

#[test]
fn files_and_credentials_travel() {
    let world = World::new();
    let first = &world.first;
    let [one, two] = pair(&world, SOCK_STREAM);
    let [left, right] = pair(&world, SOCK_STREAM);
    let on = world.words(first, &[1]);
    world.ok(first, __NR_setsockopt, &[two, SOL_SOCKET.into(), SO_PASSCRED.into(), on, 4]);
    let text = world.put(first, b"with a file");
    let ranges = world.words(first, &[text, 11]);
    let mut control = 20_u64.to_le_bytes().to_vec();
    control.extend(1_u32.to_le_bytes());
    control.extend(1_u32.to_le_bytes());
    control.extend((left as u32).to_le_bytes());
    control.extend([0; 4]);
    let control = world.put(first, &control);
    let header = world.words(first, &[0, 0, ranges, 1, control, 24, 0]);
    assert_eq!(world.ok(first, __NR_sendmsg, &[one, header, 0]), 11);
    send(&world, one, b"more");
    world.ok(first, __NR_close, &[left]);
    let room = world.scratch(first, 64);
    let into = world.words(first, &[text, 64]);
    let header = world.words(first, &[0, 0, into, 1, room, 64, 0]);
    assert_eq!(
        world.ok(first, __NR_recvmsg, &[two, header, 0]),
        11,
        "what came with files ends there"
    );
    let told = world.read(first, room, 56);
    assert_eq!(told[..16], [28, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(told[16..20], 1_u32.to_le_bytes());
    assert_eq!(told[32..40], 20_u64.to_le_bytes());
    let fd = u64::from(u32::from_le_bytes(told[48..52].try_into().unwrap()));
    send(&world, fd, b"through the new one");
    assert_eq!(receive(&world, right, 64, 0), b"through the new one");
    // No room for the file: it is closed, and the receiver is told.
    let header = world.words(first, &[0, 0, ranges, 1, control, 24, 0]);
    world.write(first, control + 16, &(fd as u32).to_le_bytes());
    world.ok(first, __NR_sendmsg, &[one, header, 0]);
    let header = world.words(first, &[0, 0, into, 1, 0, 0, 0]);
    assert_eq!(world.ok(first, __NR_recvmsg, &[two, header, 0]), 4);
    assert_eq!(world.ok(first, __NR_recvmsg, &[two, header, 0]), 11);
    assert_eq!(world.read(first, header + 48, 4), 8_u32.to_le_bytes());
    world.ok(first, __NR_close, &[fd]);
    assert_eq!(receive(&world, right, 64, 0), b"");
}

#[test]
fn datagrams_find_their_way_by_name() {
    let world = World::new();
    let first = &world.first;
    let kind = u64::from(SOCK_DGRAM | O_NONBLOCK);
    let [one, two] = [0; 2].map(|_| world.ok(first, __NR_socket, &[UNIX, kind, 0]));
    let (name, len) = address(&world, b"\0one");
    let (other, other_len) = address(&world, b"\0two");
    world.ok(first, __NR_bind, &[one, name, len]);
    world.ok(first, __NR_bind, &[two, other, other_len]);
    let text = world.put(first, b"datagram");
    world.refused(first, __NR_write, &[two, text, 8], Errno::ENOTCONN);
    world.ok(first, __NR_sendto, &[two, text, 8, 0, name, len]);
    let place = world.scratch(first, 64);
    let size = world.words(first, &[64]);
    assert_eq!(world.ok(first, __NR_recvfrom, &[one, text, 64, 0, place, size]), 8);
    assert_eq!(world.read(first, place + 2, 4), b"\0two");
    assert_eq!(world.read(first, size, 4), 6_u32.to_le_bytes());
    for _ in 0..11 {
        world.ok(first, __NR_sendto, &[two, text, 8, 0, name, len]);
    }
    world.refused(first, __NR_sendto, &[two, text, 8, 0, name, len], Errno::EAGAIN);
    world.ok(first, __NR_close, &[one]);
    world.refused(first, __NR_sendto, &[two, text, 8, 0, name, len], Errno::ECONNREFUSED);
}

#[test]
fn sockets_in_the_tree() {
    let world = World::new();
    let first = &world.first;
    let listener = world.ok(first, __NR_socket, &[UNIX, SOCK_STREAM.into(), 0]);
    let (name, len) = address(&world, b"/socket\0");
    world.ok(first, __NR_bind, &[listener, name, len]);
    world.ok(first, __NR_listen, &[listener, 5]);
    let other = world.ok(first, __NR_socket, &[UNIX, SOCK_STREAM.into(), 0]);
    world.refused(first, __NR_bind, &[other, name, len], Errno::EADDRINUSE);
    // Of two mistakes, that the name is taken is told.
    world.refused(first, __NR_bind, &[listener, name, len], Errno::EADDRINUSE);
    let (free, free_len) = address(&world, b"/another\0");
    world.refused(first, __NR_bind, &[listener, free, free_len], Errno::EINVAL);
    world.refused(first, __NR_unlink, &[free + 2], Errno::ENOENT);
    world.ok(first, __NR_connect, &[other, name, len]);
    world.ok(first, __NR_unlink, &[name + 2]);
    let third = world.ok(first, __NR_socket, &[UNIX, SOCK_STREAM.into(), 0]);
    world.refused(first, __NR_connect, &[third, name, len], Errno::ENOENT);
    world.refused(first, __NR_open, &[name + 2, 0, 0], Errno::ENOENT);
}

#[test]
fn what_is_no_socket_is_refused() {
    let world = World::new();
    let first = &world.first;
    world.refused(first, __NR_socket, &[17, SOCK_STREAM.into(), 0], Errno::EAFNOSUPPORT);
    world.refused(first, __NR_socket, &[UNIX, 4, 0], Errno::ESOCKTNOSUPPORT);
    world.refused(first, __NR_socket, &[UNIX, 15, 0], Errno::EINVAL);
    world.refused(first, __NR_socket, &[UNIX, 1, 7], Errno::EPROTONOSUPPORT);
    let event = world.ok(first, __NR_eventfd2, &[0, 0]);
    world.refused(first, __NR_listen, &[event, 1], Errno::ENOTSOCK);
    world.refused(first, __NR_accept, &[99, 0, 0], Errno::EBADF);
    let socket = world.ok(first, __NR_socket, &[UNIX, SOCK_STREAM.into(), 0]);
    world.refused(first, __NR_listen, &[socket, 1], Errno::EINVAL);
    let at = world.words(first, &[0, 4]);
    world.refused(first, __NR_read, &[socket, at, 8], Errno::EINVAL);
    world.refused(first, __NR_write, &[socket, at, 8], Errno::ENOTCONN);
    world.refused(first, __NR_shutdown, &[socket, 3], Errno::EINVAL);
    for (option, value) in [(SO_TYPE, 1_u32), (SO_ERROR, 0)] {
        world.ok(first, __NR_getsockopt, &[socket, SOL_SOCKET.into(), option.into(), at, at + 8]);
        assert_eq!(world.read(first, at, 4), value.to_le_bytes());
    }
    world.refused(
        first,
        __NR_getsockopt,
        &[socket, SOL_SOCKET.into(), 12_345, at, at + 8],
        Errno::ENOPROTOOPT,
    );
}
