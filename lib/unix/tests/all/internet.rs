//! Sockets of the Internet on the loopback: ports, connections, datagrams, errors.

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general::*;
use linux_raw_sys::net::{
    AF_INET, AF_INET6, MSG_NOSIGNAL, SHUT_WR, SO_ERROR, SO_REUSEADDR, SOCK_DGRAM, SOCK_STREAM,
    SOL_SOCKET,
};
use unix::errno::Errno;
use unix::thread::Thread;

pub const LOCAL: [u8; 4] = [127, 0, 0, 1];
const ANY: [u8; 4] = [0; 4];
const NONBLOCK: u32 = O_NONBLOCK;

/// The bytes of a `struct sockaddr_in`.
pub fn v4(ip: [u8; 4], port: u16) -> Vec<u8> {
    let family = (AF_INET as u16).to_le_bytes();
    [&family[..], &port.to_be_bytes(), &ip, &[0; 8]].concat()
}

/// The bytes of a `struct sockaddr_in6`.
pub fn v6(ip: [u8; 16], port: u16) -> Vec<u8> {
    let family = (AF_INET6 as u16).to_le_bytes();
    [&family[..], &port.to_be_bytes(), &[0; 4], &ip, &[0; 4]].concat()
}

pub fn one() -> [u8; 16] {
    let mut ip = [0; 16];
    ip[15] = 1;
    ip
}

pub fn socket(world: &World, family: u32, kind: u32) -> u64 {
    world.ok(&world.first, __NR_socket, &[family.into(), kind.into(), 0])
}

/// `call(fd, address, len)`.
fn with(world: &World, thread: &Rc<Thread>, number: u32, fd: u64, address: &[u8]) -> Option<u64> {
    let at = world.put(thread, address);
    world.call(thread, number, &[fd, at, address.len() as u64])
}

pub fn bind(world: &World, fd: u64, address: &[u8]) -> u64 {
    with(world, &world.first, __NR_bind, fd, address).expect("bind waits")
}

pub fn connect(world: &World, fd: u64, address: &[u8]) -> u64 {
    with(world, &world.first, __NR_connect, fd, address).expect("connect waits")
}

/// What `getsockname` and `getpeername` tell.
pub fn name(world: &World, number: u32, fd: u64) -> Vec<u8> {
    let (at, len_at) = (world.scratch(&world.first, 64), world.words(&world.first, &[64]));
    world.ok(&world.first, number, &[fd, at, len_at]);
    let len = world.read(&world.first, len_at, 4)[0];
    world.read(&world.first, at, len.into())
}

fn port_of(name: &[u8]) -> u16 {
    u16::from_be_bytes([name[2], name[3]])
}

pub fn listener(world: &World, family: u32, address: &[u8]) -> u64 {
    let fd = socket(world, family, SOCK_STREAM);
    assert_eq!(bind(world, fd, address), 0);
    world.ok(&world.first, __NR_listen, &[fd, 5]);
    fd
}

pub fn send(world: &World, fd: u64, bytes: &[u8]) -> u64 {
    let at = world.put(&world.first, bytes);
    let quiet = MSG_NOSIGNAL.into();
    world.now(&world.first, __NR_sendto, &[fd, at, bytes.len() as u64, quiet, 0, 0])
}

fn receive(world: &World, fd: u64) -> Vec<u8> {
    let to = world.scratch(&world.first, 64);
    let len = world.ok(&world.first, __NR_read, &[fd, to, 64]);
    world.read(&world.first, to, len as usize)
}

/// A datagram and its sender's address.
pub fn receive_from(world: &World, fd: u64) -> (Vec<u8>, Vec<u8>) {
    let (to, from) = (world.scratch(&world.first, 64), world.scratch(&world.first, 64));
    let len_at = world.words(&world.first, &[64]);
    let len = world.ok(&world.first, __NR_recvfrom, &[fd, to, 64, 0, from, len_at]);
    let from_len = world.read(&world.first, len_at, 4)[0];
    (world.read(&world.first, to, len as usize), world.read(&world.first, from, from_len.into()))
}

pub fn send_to(world: &World, fd: u64, bytes: &[u8], to: &[u8]) -> u64 {
    let (at, to_at) = (world.put(&world.first, bytes), world.put(&world.first, to));
    let (len, to_len) = (bytes.len() as u64, to.len() as u64);
    world.now(&world.first, __NR_sendto, &[fd, at, len, 0, to_at, to_len])
}

fn socket_error(world: &World, fd: u64) -> u32 {
    let (at, len_at) = (world.words(&world.first, &[0]), world.words(&world.first, &[4]));
    let level = SOL_SOCKET.into();
    world.ok(&world.first, __NR_getsockopt, &[fd, level, SO_ERROR.into(), at, len_at]);
    u32::from_le_bytes(world.read(&world.first, at, 4).try_into().unwrap())
}

pub fn set(world: &World, fd: u64, level: u32, name: u32, value: u64) -> u64 {
    let at = world.words(&world.first, &[value]);
    world.now(&world.first, __NR_setsockopt, &[fd, level.into(), name.into(), at, 4])
}

#[test]
fn a_connection_is_made_used_and_ended() {
    let world = World::new();
    let first = &world.first;
    let listening = listener(&world, AF_INET, &v4(ANY, 8080));
    let client = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), 0);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), Errno::EISCONN.result());
    let (at, len_at) = (world.scratch(first, 64), world.words(first, &[64]));
    let server = world.ok(first, __NR_accept4, &[listening, at, len_at, 0]);
    let own = name(&world, __NR_getsockname, client);
    assert_eq!(own, v4(LOCAL, port_of(&own)));
    assert!(port_of(&own) >= 32768);
    assert_eq!(world.read(first, at, 16), own);
    assert_eq!(name(&world, __NR_getpeername, server), own);
    assert_eq!(name(&world, __NR_getsockname, server), v4(LOCAL, 8080));
    assert_eq!(name(&world, __NR_getpeername, client), v4(LOCAL, 8080));
    assert_eq!(name(&world, __NR_getsockname, listening), v4(ANY, 8080));
    assert_eq!(send(&world, client, b"hello"), 5);
    assert_eq!(receive(&world, server), b"hello");
    // One direction ends, the other goes on.
    world.ok(first, __NR_shutdown, &[client, SHUT_WR.into()]);
    assert_eq!(receive(&world, server), b"");
    assert_eq!(send(&world, server, b"still"), 5);
    assert_eq!(receive(&world, client), b"still");
    assert_eq!(send(&world, client, b"x"), Errno::EPIPE.result());
    world.ok(first, __NR_close, &[client]);
    // What is sent to nobody is taken, and refused from then on.
    assert_eq!(send(&world, server, b"lost"), 4);
    assert_eq!(receive(&world, server), b"");
    assert_eq!(send(&world, server, b"more"), Errno::EPIPE.result());
}

#[test]
fn who_closes_with_unread_bytes_resets() {
    let world = World::new();
    let first = &world.first;
    let listening = listener(&world, AF_INET, &v4(LOCAL, 8080));
    let client = socket(&world, AF_INET, SOCK_STREAM);
    connect(&world, client, &v4(LOCAL, 8080));
    let server = world.ok(first, __NR_accept, &[listening, 0, 0]);
    send(&world, client, b"unread");
    world.ok(first, __NR_close, &[server]);
    let to = world.scratch(first, 8);
    world.refused(first, __NR_read, &[client, to, 8], Errno::ECONNRESET);
    assert_eq!(receive(&world, client), b"");
    assert_eq!(send(&world, client, b"x"), Errno::EPIPE.result());
    // So does a listener that ends with what nobody has accepted.
    let other = socket(&world, AF_INET, SOCK_STREAM);
    connect(&world, other, &v4(LOCAL, 8080));
    world.ok(first, __NR_close, &[listening]);
    world.refused(first, __NR_read, &[other, to, 8], Errno::ECONNRESET);
}

#[test]
fn what_is_not_there_refuses() {
    let world = World::new();
    let first = &world.first;
    let client = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(connect(&world, client, &v4(LOCAL, 9)), Errno::ECONNREFUSED.result());
    assert_eq!(connect(&world, client, &v4([10, 0, 0, 1], 9)), Errno::ENETUNREACH.result());
    assert_eq!(connect(&world, client, &v4(LOCAL, 9)[..8]), Errno::EINVAL.result());
    assert_eq!(connect(&world, client, &v6(one(), 9)), Errno::EAFNOSUPPORT.result());
    let to = world.scratch(first, 8);
    world.refused(first, __NR_read, &[client, to, 8], Errno::ENOTCONN);
    world.refused(first, __NR_getpeername, &[client, to, to], Errno::ENOTCONN);
    world.refused(first, __NR_shutdown, &[client, 2], Errno::ENOTCONN);
    assert_eq!(send(&world, client, b"x"), Errno::EPIPE.result());
    assert_eq!(bind(&world, client, &v4([10, 0, 0, 1], 9)), Errno::EADDRNOTAVAIL.result());
    let packets = [AF_INET.into(), 5, 0];
    world.refused(first, __NR_socket, &packets, Errno::ESOCKTNOSUPPORT);
    let other_protocol = [AF_INET.into(), SOCK_STREAM.into(), 17];
    world.refused(first, __NR_socket, &other_protocol, Errno::EPROTONOSUPPORT);
    let pair = [AF_INET.into(), SOCK_STREAM.into(), 0, to];
    world.refused(first, __NR_socketpair, &pair, Errno::EOPNOTSUPP);
    // Ports of the system are not for everybody.
    world.ok(first, __NR_setresuid, &[1000, 1000, 1000]);
    assert_eq!(bind(&world, client, &v4(ANY, 80)), Errno::EACCES.result());
    assert_eq!(bind(&world, client, &v4(ANY, 8080)), 0);
}

#[test]
fn who_does_not_wait_is_told_later() {
    let world = World::new();
    let first = &world.first;
    let listening = listener(&world, AF_INET, &v4(LOCAL, 8080));
    let client = socket(&world, AF_INET, SOCK_STREAM | NONBLOCK);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), Errno::EINPROGRESS.result());
    assert_eq!(socket_error(&world, client), 0);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), 0);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), Errno::EISCONN.result());
    world.ok(first, __NR_accept, &[listening, 0, 0]);
    let client = socket(&world, AF_INET, SOCK_STREAM | NONBLOCK);
    assert_eq!(connect(&world, client, &v4(LOCAL, 9)), Errno::EINPROGRESS.result());
    let fds = world.put(first, &[client as u8, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(world.ok(first, __NR_poll, &[fds, 1, 0]), 1);
    assert_eq!(world.read(first, fds + 6, 1)[0] & 0x1c, 0x1c);
    assert_eq!(socket_error(&world, client), u32::from(Errno::ECONNREFUSED.0));
    assert_eq!(socket_error(&world, client), 0);
    // It can be tried again.
    let client = socket(&world, AF_INET, SOCK_STREAM | NONBLOCK);
    connect(&world, client, &v4(LOCAL, 9));
    assert_eq!(connect(&world, client, &v4(LOCAL, 9)), Errno::ECONNREFUSED.result());
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), Errno::EINPROGRESS.result());
    assert_eq!(send(&world, client, b"x"), 1);
}

#[test]
fn ports_belong_to_those_who_have_them() {
    let world = World::new();
    let first = &world.first;
    let listening = listener(&world, AF_INET, &v4(ANY, 8080));
    let other = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(bind(&world, other, &v4(LOCAL, 8080)), Errno::EADDRINUSE.result());
    // TCP and UDP have ports of their own.
    let datagrams = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(bind(&world, datagrams, &v4(LOCAL, 8080)), 0);
    // Addresses can be shared, but not with who listens.
    assert_eq!(set(&world, other, SOL_SOCKET, SO_REUSEADDR, 1), 0);
    assert_eq!(set(&world, listening, SOL_SOCKET, SO_REUSEADDR, 1), 0);
    assert_eq!(bind(&world, other, &v4(LOCAL, 8080)), Errno::EADDRINUSE.result());
    // A connection keeps the port of its listener, which can be had again with that option.
    let client = socket(&world, AF_INET, SOCK_STREAM);
    connect(&world, client, &v4(LOCAL, 8080));
    let server = world.ok(first, __NR_accept, &[listening, 0, 0]);
    world.ok(first, __NR_close, &[listening]);
    let third = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(bind(&world, third, &v4(ANY, 8080)), Errno::EADDRINUSE.result());
    assert_eq!(bind(&world, other, &v4(ANY, 8080)), 0);
    assert_eq!(bind(&world, other, &v4(ANY, 8081)), Errno::EINVAL.result());
    for fd in [other, server] {
        world.ok(first, __NR_close, &[fd]);
    }
    assert_eq!(bind(&world, third, &v4(ANY, 8080)), 0);
}

#[test]
fn ipv6_takes_ipv4_in_unless_it_says_no() {
    let world = World::new();
    let first = &world.first;
    let listening = listener(&world, AF_INET6, &v6([0; 16], 8080));
    let taken = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(bind(&world, taken, &v4(ANY, 8080)), Errno::EADDRINUSE.result());
    let client = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), 0);
    let server = world.ok(first, __NR_accept, &[listening, 0, 0]);
    let mut mapped = [0; 16];
    mapped[10..].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1]);
    assert_eq!(name(&world, __NR_getsockname, server), v6(mapped, 8080));
    assert_eq!(name(&world, __NR_getpeername, client), v4(LOCAL, 8080));
    let client = socket(&world, AF_INET6, SOCK_STREAM);
    assert_eq!(connect(&world, client, &v6(one(), 8080)), 0);
    let server = world.ok(first, __NR_accept, &[listening, 0, 0]);
    assert_eq!(&name(&world, __NR_getpeername, server)[8..24], one());
    let only = socket(&world, AF_INET6, SOCK_STREAM);
    assert_eq!(set(&world, only, 41, 26, 1), 0);
    assert_eq!(bind(&world, only, &v6([0; 16], 8081)), 0);
    assert_eq!(set(&world, only, 41, 26, 0), Errno::EINVAL.result());
    world.ok(first, __NR_listen, &[only, 1]);
    assert_eq!(bind(&world, taken, &v4(ANY, 8081)), 0);
    let client = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8081)), Errno::ECONNREFUSED.result());
}

#[test]
fn datagrams_go_to_who_fits_best() {
    let world = World::new();
    let first = &world.first;
    let [server, client] = [0; 2].map(|_| socket(&world, AF_INET, SOCK_DGRAM));
    assert_eq!(send(&world, client, b"x"), Errno::EDESTADDRREQ.result());
    assert_eq!(bind(&world, server, &v4(ANY, 53)), 0);
    assert_eq!(send_to(&world, client, b"question", &v4(LOCAL, 53)), 8);
    let (question, from) = receive_from(&world, server);
    assert_eq!((question, &from[4..8]), (b"question".to_vec(), &LOCAL[..]));
    assert_eq!(send_to(&world, server, b"answer", &from), 6);
    assert_eq!(receive_from(&world, client), (b"answer".to_vec(), v4(LOCAL, 53)));
    // A connected one hears its peer only, and hears that nobody is there.
    let connected = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(connect(&world, connected, &v4(LOCAL, 53)), 0);
    assert_eq!(send(&world, connected, b"a"), 1);
    let (_, own) = receive_from(&world, server);
    assert_eq!(own, name(&world, __NR_getsockname, connected));
    assert_eq!(send_to(&world, client, b"stranger", &own), 8);
    assert_eq!(send_to(&world, server, b"b", &own), 1);
    assert_eq!(receive(&world, connected), b"b");
    world.ok(first, __NR_close, &[server]);
    assert_eq!(send(&world, connected, b"c"), 1);
    assert_eq!(send(&world, connected, b"d"), Errno::ECONNREFUSED.result());
    assert_eq!(send_to(&world, client, b"e", &v4(LOCAL, 53)), 1);
    assert_eq!(send_to(&world, client, b"f", &v4([8, 8, 8, 8], 53)), Errno::ENETUNREACH.result());
    let long = vec![0; 65_508];
    assert_eq!(send_to(&world, client, &long, &v4(LOCAL, 53)), Errno::EMSGSIZE.result());
}

#[test]
fn a_stream_s_options_are_remembered() {
    let world = World::new();
    let fd = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(set(&world, fd, 6, 1, 7), 0);
    let (at, len_at) = (world.words(&world.first, &[0]), world.words(&world.first, &[4]));
    world.ok(&world.first, __NR_getsockopt, &[fd, 6, 1, at, len_at]);
    assert_eq!(world.read(&world.first, at, 4), [1, 0, 0, 0]);
    assert_eq!(set(&world, fd, 6, 99, 7), Errno::ENOPROTOOPT.result());
    assert_eq!(set(&world, fd, 41, 26, 1), Errno::ENOPROTOOPT.result());
    let datagrams = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(set(&world, datagrams, 6, 1, 1), Errno::ENOPROTOOPT.result());
}

/// A request of NETLINK_ROUTE, and all that it is answered.
fn ask(world: &World, fd: u64, kind: u16, flags: u16, payload: &[u8]) -> Vec<Vec<u8>> {
    let mut request = (16 + payload.len() as u32).to_le_bytes().to_vec();
    request.extend(kind.to_le_bytes());
    request.extend(flags.to_le_bytes());
    request.extend([7, 0, 0, 0, 0, 0, 0, 0]);
    request.extend(payload);
    assert_eq!(send(world, fd, &request), request.len() as u64);
    let to = world.scratch(&world.first, 4096);
    let len = world.ok(&world.first, __NR_recvfrom, &[fd, to, 4096, 0, 0, 0]);
    let bytes = world.read(&world.first, to, len as usize);
    let mut rest = &bytes[..];
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        messages.push(rest[..len].to_vec());
        rest = &rest[len.next_multiple_of(4)..];
    }
    messages
}

#[test]
fn netlink_tells_of_the_loopback() {
    let world = World::new();
    let first = &world.first;
    let fd = world.ok(first, __NR_socket, &[16, 3, 0]);
    let address = [16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(bind(&world, fd, &address), 0);
    assert_eq!(name(&world, __NR_getsockname, fd)[4..8], 1_u32.to_le_bytes());
    let links = ask(&world, fd, 18, 0x301, &[0; 16]);
    assert_eq!(links.len(), 2);
    // NEWLINK with the request's sequence and the asker's port; the loopback, number 1.
    assert_eq!(links[0][4..16], [16, 0, 2, 0, 7, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(links[0][18..24], [4, 3, 1, 0, 0, 0]);
    assert_eq!(links[0][32..39], *b"\x07\0\x03\0lo\0");
    assert_eq!(links[1][4..6], [3, 0]);
    let kinds = |messages: &[Vec<u8>]| messages.iter().map(|one| one[4]).collect::<Vec<_>>();
    assert_eq!(kinds(&ask(&world, fd, 22, 0x301, &[0; 16])), [20, 20, 3]);
    assert_eq!(kinds(&ask(&world, fd, 22, 0x301, &[2; 16])), [20, 3]);
    assert_eq!(kinds(&ask(&world, fd, 26, 0x301, &[0; 16])), [3]);
    // Switched on it is; of another one nothing is known.
    let mut link = [0; 16];
    link[4] = 1;
    let acknowledged = ask(&world, fd, 16, 5, &link);
    assert_eq!((acknowledged[0][4], &acknowledged[0][16..20]), (2, &[0; 4][..]));
    link[4] = 2;
    let refused = ask(&world, fd, 18, 1, &link);
    assert_eq!(refused[0][16..20], (-i32::from(Errno::ENODEV.0)).to_le_bytes());
    world.ok(first, __NR_setresuid, &[1000, 1000, 1000]);
    let refused = ask(&world, fd, 16, 5, &link);
    assert_eq!(refused[0][16..20], (-i32::from(Errno::EPERM.0)).to_le_bytes());
    world.refused(first, __NR_socket, &[16, 3, 4], Errno::EPROTONOSUPPORT);
}
