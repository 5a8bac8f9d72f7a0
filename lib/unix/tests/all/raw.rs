//! Raw sockets: who gets which packets, what headers say, what is answered, and what must not get through.

use linux_raw_sys::general::*;
use linux_raw_sys::net::{
    AF_INET, AF_INET6, MSG_DONTWAIT, MSG_TRUNC, SO_RCVBUF, SO_TYPE, SOCK_DGRAM, SOL_SOCKET,
};
use unix::errno::Errno;

use crate::common::World;
use crate::internet::{
    LOCAL, bind, connect, name, one, receive_from, send, send_to, set, socket, v4, v6,
};

const RAW: u64 = 3;
const ICMP: u64 = 1;
const UDP: u64 = 17;
const ICMP_V6: u64 = 58;
/// A protocol that nobody knows.
const OTHER: u64 = 200;
const IPPROTO_RAW: u64 = 255;
const HDRINCL: u32 = 3;

fn raw(world: &World, family: u32, protocol: u64) -> u64 {
    world.ok(&world.first, __NR_socket, &[family.into(), RAW, protocol])
}

/// The next packet, if there is one.
fn next(world: &World, fd: u64) -> Option<Vec<u8>> {
    let (first, room) = (&world.first, 2048);
    let to = world.scratch(first, room);
    let flags = MSG_DONTWAIT.into();
    let len = world.now(first, __NR_recvfrom, &[fd, to, room as u64, flags, 0, 0]);
    (len != Errno::EAGAIN.result()).then(|| world.read(first, to, len as usize))
}

/// A sum of 16-bit words: all ones, if there is a right checksum among them.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0)));
    let sum: u32 = words.sum();
    (sum & 0xffff) + (sum >> 16)
}

/// A packet of IPv4 whose lengths and checksum the system fills in.
fn packet(protocol: u64, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let head = [0x45, 0, 0, 0, 0, 7, 0, 0, 9, protocol as u8, 0, 0];
    [&head[..], &from, &to, payload].concat()
}

const ECHO: [u8; 10] = [8, 0, 0x8f, 0x93, 0, 1, 0, 2, b'h', b'i'];

#[test]
fn ping_is_answered() {
    let world = World::new();
    let fd = raw(&world, AF_INET, ICMP);
    assert_eq!(send_to(&world, fd, &ECHO, &v4(LOCAL, 0)), 10);
    // It sees what it asks, and the answer.
    assert_eq!(next(&world, fd).unwrap()[20..], ECHO);
    let (reply, from) = receive_from(&world, fd);
    assert_eq!(from, v4(LOCAL, 0));
    assert_eq!(reply[..2], [0x45, 0]);
    assert_eq!((reply[9], &reply[12..16], reply[20]), (1, &LOCAL[..], 0));
    assert_eq!(reply[24..], ECHO[4..]);
    assert_eq!((sum(&reply[..20]), sum(&reply[20..])), (0xffff, 0xffff));
    let mut wrong = ECHO;
    wrong[9] = b'o';
    send_to(&world, fd, &wrong, &v4(LOCAL, 0));
    assert_eq!(next(&world, fd).unwrap()[20..], wrong);
    assert_eq!(next(&world, fd), None, "who would answer that is not right");
    // IPv6 fills the checksum in, and looks at it.
    let six = raw(&world, AF_INET6, ICMP_V6);
    assert_eq!(send_to(&world, six, &[128, 0, 0, 0, 0, 1, 0, 2], &v6(one(), 0)), 8);
    assert_eq!(next(&world, six).unwrap()[0], 128);
    let (reply, from) = receive_from(&world, six);
    assert_eq!((reply[0], from), (129, v6(one(), 0)));
    assert_eq!(next(&world, fd), None);
}

#[test]
fn they_are_not_for_everybody() {
    let world = World::new();
    let first = &world.first;
    world.refused(first, __NR_socket, &[AF_INET.into(), RAW, 0], Errno::EPROTONOSUPPORT);
    world.refused(first, __NR_socket, &[AF_INET.into(), RAW, 300], Errno::EINVAL);
    world.ok(first, __NR_setresuid, &[1000, 1000, 1000]);
    for (family, protocol) in [(AF_INET, ICMP), (AF_INET, UDP), (AF_INET, 255), (AF_INET6, 58)] {
        world.refused(first, __NR_socket, &[family.into(), RAW, protocol], Errno::EPERM);
    }
    world.refused(first, __NR_socket, &[AF_INET.into(), 2, 1], Errno::EACCES);
    // One that is root among its own is nobody here.
    world.ok(first, __NR_unshare, &[CLONE_NEWUSER.into()]);
    world.refused(first, __NR_socket, &[AF_INET.into(), RAW, UDP], Errno::EPERM);
}

#[test]
fn all_of_a_protocol_get_copies() {
    let world = World::new();
    let first = &world.first;
    let [one_of, other] = [OTHER; 2].map(|protocol| raw(&world, AF_INET, protocol));
    let [elsewhere, six] = [raw(&world, AF_INET, OTHER + 1), raw(&world, AF_INET6, OTHER)];
    assert_eq!(name(&world, __NR_getsockname, one_of), v4([0; 4], 200));
    assert_eq!(send_to(&world, one_of, b"hello", &v4(LOCAL, 99)), 5);
    for fd in [one_of, other] {
        let seen = next(&world, fd).unwrap();
        assert_eq!(seen[..4], [0x45, 0, 0, 25]);
        assert_eq!((seen[8], seen[9], &seen[20..]), (64, 200, &b"hello"[..]));
        assert_eq!(sum(&seen[..20]), 0xffff);
    }
    assert_eq!((next(&world, elsewhere), next(&world, six)), (None, None));
    assert_eq!(send_to(&world, six, b"six", &v6(one(), 0)), 3);
    assert_eq!(next(&world, six).unwrap(), b"six");
    assert_eq!(next(&world, one_of), None);
    let (at, len_at) = (world.words(first, &[0]), world.words(first, &[4]));
    let kind = [one_of, SOL_SOCKET.into(), SO_TYPE.into(), at, len_at];
    world.ok(first, __NR_getsockopt, &kind);
    assert_eq!(world.read_u32(first, at), 3);
    // Cut off, and how long it was.
    send_to(&world, one_of, b"hello", &v4(LOCAL, 0));
    let flags = (MSG_DONTWAIT | MSG_TRUNC).into();
    assert_eq!(world.ok(first, __NR_recvfrom, &[other, at, 4, flags, 0, 0]), 25);
}

#[test]
fn addresses_say_what_is_for_whom() {
    let world = World::new();
    let here = [127, 0, 0, 9];
    let [bound, all, peer] = [OTHER; 3].map(|protocol| raw(&world, AF_INET, protocol));
    assert_eq!(bind(&world, bound, &v4([10, 0, 0, 1], 0)), Errno::EADDRNOTAVAIL.result());
    assert_eq!(bind(&world, bound, &v4(LOCAL, 0)), 0);
    // Another one later.
    assert_eq!(bind(&world, bound, &v4(here, 0)), 0);
    assert_eq!(name(&world, __NR_getsockname, bound), v4(here, 200));
    assert_eq!(send(&world, all, b"x"), Errno::EDESTADDRREQ.result());
    send_to(&world, all, b"a", &v4(LOCAL, 0));
    assert_eq!(next(&world, bound), None);
    assert_eq!(next(&world, peer).unwrap()[12..20], [LOCAL, LOCAL].concat());
    send_to(&world, all, b"b", &v4(here, 0));
    assert_eq!(next(&world, bound).unwrap()[12..20], [LOCAL, here].concat());
    // A connected one hears its peer only, at the address from which it reaches it.
    next(&world, peer);
    assert_eq!(connect(&world, peer, &v4(here, 0)), 0);
    assert_eq!(bind(&world, peer, &v4(LOCAL, 0)), Errno::EINVAL.result());
    send_to(&world, all, b"c", &v4(LOCAL, 0));
    assert_eq!(next(&world, peer), None);
    send_to(&world, bound, b"d", &v4(LOCAL, 0));
    assert_eq!(next(&world, peer).unwrap()[20..], *b"d");
    assert_eq!(send(&world, peer, b"e"), 1);
    assert_eq!(next(&world, bound).unwrap()[20..], *b"e");
    // And everybody again.
    assert_eq!(connect(&world, peer, &[0; 16]), 0);
    assert_eq!(name(&world, __NR_getsockname, peer), v4([0; 4], 200));
    send_to(&world, all, b"f", &v4(here, 0));
    assert_eq!(next(&world, peer).unwrap()[20..], *b"f");
    assert_eq!(send_to(&world, all, b"x", &v4([8, 8, 8, 8], 0)), Errno::ENETUNREACH.result());
}

#[test]
fn programs_make_headers_themselves() {
    let world = World::new();
    let first = &world.first;
    let [maker, taker] = [IPPROTO_RAW, OTHER].map(|protocol| raw(&world, AF_INET, protocol));
    let far = [10, 1, 2, 3];
    // Where it goes the address of the call says; length, checksum and an address of 0 are filled in.
    let made = packet(OTHER, [0; 4], far, b"hello");
    assert_eq!(send_to(&world, maker, &made, &v4(LOCAL, 0)), 25);
    let seen = next(&world, taker).unwrap();
    assert_eq!((&seen[2..6], &seen[12..20]), (&[0, 25, 0, 7][..], &[LOCAL, far].concat()[..]));
    assert_eq!((seen[8], sum(&seen[..20])), (9, 0xffff));
    assert_eq!(next(&world, maker), None, "not of its protocol");
    send_to(&world, maker, &packet(IPPROTO_RAW, far, LOCAL, b""), &v4(LOCAL, 0));
    assert_eq!(next(&world, maker).unwrap()[12..16], far);
    // What is too short, or says it is longer, is refused; other nonsense gets nowhere.
    assert_eq!(send_to(&world, maker, &made[..19], &v4(LOCAL, 0)), Errno::EINVAL.result());
    let with = |at: usize, value: u8| {
        let mut bytes = made.clone();
        bytes[at] = value;
        send_to(&world, maker, &bytes, &v4(LOCAL, 0))
    };
    for wrong in [0x4f, 0x44, 0x40] {
        assert_eq!(with(0, wrong), Errno::EINVAL.result());
    }
    for (at, value) in [(0, 0x46), (0, 0x65), (6, 0x20), (7, 1)] {
        assert_eq!(with(at, value), 25);
    }
    assert_eq!(next(&world, taker), None);
    // Any raw socket can.
    assert_eq!(set(&world, taker, 0, HDRINCL, 1), 0);
    assert_eq!(send_to(&world, taker, b"short", &v4(LOCAL, 0)), Errno::EINVAL.result());
    send_to(&world, taker, &made, &v4(LOCAL, 0));
    assert!(next(&world, taker).is_some());
    let plain = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(set(&world, plain, 0, HDRINCL, 1), Errno::ENOPROTOOPT.result());
    world.refused(first, __NR_sendto, &[maker, 0, 70_000, 0, 0, 0], Errno::EMSGSIZE);
}

/// A datagram of UDP, without a checksum.
fn datagram(from: u16, to: u16, len: u16, content: &[u8]) -> Vec<u8> {
    [&[from, to, len, 0].map(u16::to_be_bytes).concat()[..], content].concat()
}

#[test]
fn datagrams_are_seen_and_made() {
    let world = World::new();
    let fd = raw(&world, AF_INET, UDP);
    let [server, client] = [0; 2].map(|_| socket(&world, AF_INET, SOCK_DGRAM));
    assert_eq!(bind(&world, server, &v4(LOCAL, 53)), 0);
    assert_eq!(send_to(&world, client, b"question", &v4(LOCAL, 53)), 8);
    let (content, from) = receive_from(&world, server);
    assert_eq!(content, b"question");
    let seen = next(&world, fd).unwrap();
    assert_eq!((seen[9], &seen[22..26], &seen[28..]), (17, &[0, 53, 0, 16][..], &b"question"[..]));
    assert_eq!(seen[20..22], from[2..4]);
    // The checksum covers addresses, protocol and length, too.
    let pseudo = [&seen[12..20], &[0, 17, 0, 16]].concat();
    assert_eq!(sum(&[&pseudo[..], &seen[20..]].concat()), 0xffff);
    // What it sends itself gets to sockets, if it is right.
    for (bytes, gets) in [
        (datagram(99, 53, 10, b"hi"), true),
        (datagram(99, 53, 9, b"hi"), true),
        (datagram(99, 53, 11, b"hi"), false),
        (datagram(99, 53, 7, b"hi"), false),
        (datagram(99, 53, 10, b"hi")[..7].to_vec(), false),
    ] {
        send_to(&world, fd, &bytes, &v4(LOCAL, 0));
        assert_eq!(next(&world, fd).unwrap()[20..], bytes);
        let got = next(&world, server);
        assert_eq!(got.is_some(), gets, "{bytes:?}");
    }
    let mut wrong = datagram(99, 53, 10, b"hi");
    wrong[6] = 1;
    send_to(&world, fd, &wrong, &v4(LOCAL, 0));
    assert_eq!(next(&world, server), None);
    send_to(&world, fd, &datagram(99, 53, 10, b"hi"), &v4(LOCAL, 0));
    assert_eq!(receive_from(&world, server), (b"hi".to_vec(), v4(LOCAL, 99)));
}

#[test]
fn who_sends_to_nobody_is_told() {
    let world = World::new();
    let [icmp, fd] = [ICMP, OTHER].map(|protocol| raw(&world, AF_INET, protocol));
    let client = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(connect(&world, client, &v4(LOCAL, 9)), 0);
    assert_eq!(send(&world, client, b"x"), 1);
    let told = next(&world, icmp).unwrap();
    assert_eq!((told[1], &told[20..22], told.len()), (0xc0, &[3, 3][..], 20 + 8 + 20 + 8 + 1));
    assert_eq!((told[28 + 9], sum(&told[20..])), (17, 0xffff));
    assert_eq!(send(&world, client, b"x"), Errno::ECONNREFUSED.result());
    // Of a protocol that nobody knows, but not if a raw socket does.
    send_to(&world, fd, b"known", &v4(LOCAL, 0));
    assert_eq!(next(&world, icmp), None);
    set(&world, fd, 0, HDRINCL, 1);
    send_to(&world, fd, &packet(OTHER + 1, LOCAL, LOCAL, b"?"), &v4(LOCAL, 0));
    assert_eq!(next(&world, icmp).unwrap()[20..22], [3, 2]);
    // Who is not here is not told.
    send_to(&world, fd, &packet(OTHER + 1, [10, 0, 0, 1], LOCAL, b"?"), &v4(LOCAL, 0));
    send_to(&world, fd, &packet(ICMP, [10, 0, 0, 1], LOCAL, &ECHO), &v4(LOCAL, 0));
    assert_eq!(next(&world, icmp).unwrap()[20], 8);
    assert_eq!(next(&world, icmp), None);
}

#[test]
fn kinds_of_icmp_are_refused() {
    let world = World::new();
    let first = &world.first;
    let [icmp, other] = [ICMP, UDP].map(|protocol| raw(&world, AF_INET, protocol));
    assert_eq!(set(&world, icmp, 255, 1, 1 << 8), 0);
    assert_eq!(set(&world, other, 255, 1, 1 << 8), Errno::EOPNOTSUPP.result());
    assert_eq!(set(&world, icmp, 255, 2, 0), Errno::ENOPROTOOPT.result());
    let (at, len_at) = (world.words(first, &[0]), world.words(first, &[8]));
    world.ok(first, __NR_getsockopt, &[icmp, 255, 1, at, len_at]);
    assert_eq!((world.read_u64(first, at), world.read_u32(first, len_at)), (1 << 8, 4));
    send_to(&world, icmp, &ECHO, &v4(LOCAL, 0));
    assert_eq!(next(&world, icmp).unwrap()[20], 0);
    assert_eq!(next(&world, icmp), None);
    let six = raw(&world, AF_INET6, ICMP_V6);
    let mut filter = [0; 32];
    filter[16] = 2;
    let at = world.put(first, &filter);
    world.ok(first, __NR_setsockopt, &[six, 58, 1, at, 32]);
    send_to(&world, six, &[128, 0, 0, 0, 0, 1, 0, 2], &v6(one(), 0));
    assert_eq!(next(&world, six).unwrap()[0], 128);
    assert_eq!(next(&world, six), None);
}

#[test]
fn ipv6_fills_in_checksums() {
    let world = World::new();
    let [fd, icmp] = [OTHER, ICMP_V6].map(|protocol| raw(&world, AF_INET6, protocol));
    assert_eq!(set(&world, icmp, 41, 7, 4), Errno::EINVAL.result());
    assert_eq!(set(&world, fd, 41, 7, 3), Errno::EINVAL.result());
    assert_eq!(set(&world, fd, 41, 7, 4), 0);
    let home = v6(one(), 0);
    assert_eq!(send_to(&world, fd, b"abcd", &home), Errno::EINVAL.result());
    assert_eq!(send_to(&world, fd, b"abcdefgh", &home), 8);
    let seen = next(&world, fd).unwrap();
    let pseudo = [&one()[..], &one(), &[0, 8, 0, 200]].concat();
    assert_eq!(sum(&[&pseudo[..], &seen].concat()), 0xffff);
    assert_eq!((&seen[..4], &seen[6..]), (&b"abcd"[..], &b"gh"[..]));
    // Others are wrong, and lost.
    let plain = raw(&world, AF_INET6, OTHER);
    send_to(&world, plain, b"abcdefgh", &home);
    assert_eq!((next(&world, fd), next(&world, plain).is_some()), (None, true));
    assert_eq!(set(&world, fd, 41, 7, u64::MAX), 0);
    send_to(&world, plain, b"abcdefgh", &home);
    assert!(next(&world, fd).is_some());
    // The port says the protocol, if anything.
    assert_eq!(send_to(&world, plain, b"x", &v6(one(), 200)), 1);
    assert_eq!(send_to(&world, plain, b"x", &v6(one(), 201)), Errno::EINVAL.result());
    let mut mapped = [0; 16];
    mapped[10..].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1]);
    assert_eq!(send_to(&world, plain, b"x", &v6(mapped, 0)), Errno::ENETUNREACH.result());
}

#[test]
fn an_inbox_is_as_large_as_its_owner_says() {
    let world = World::new();
    let [small, large] = [OTHER; 2].map(|protocol| raw(&world, AF_INET, protocol));
    assert_eq!(set(&world, small, SOL_SOCKET, SO_RCVBUF, 1152), 0);
    let count = |fd| core::iter::from_fn(|| next(&world, fd)).count();
    let long = vec![7; 1000];
    for _ in 0..500 {
        assert_eq!(send_to(&world, large, &long, &v4(LOCAL, 0)), 1000);
        world.forget_scratch(&world.first);
    }
    assert_eq!(count(small), 2);
    assert_eq!(count(large), 120);
}

#[test]
fn proc_lists_them_by_themselves() {
    let world = World::new();
    let first = &world.first;
    let text = |path: &str| {
        let fd = world.ok(first, __NR_open, &[world.text(first, path), 0, 0]);
        let at = world.scratch(first, 4096);
        let len = world.ok(first, __NR_read, &[fd, at, 4096]);
        String::from_utf8(world.read(first, at, len as usize)).unwrap()
    };
    let fd = raw(&world, AF_INET, UDP);
    bind(&world, fd, &v4(LOCAL, 0));
    assert_eq!(text("/proc/net/udp").lines().count(), 1);
    let list = text("/proc/net/raw");
    assert!(list.lines().nth(1).unwrap().starts_with("   0: 0100007F:0011 00000000:0000 07 "));
    assert_eq!(text("/proc/net/raw6").lines().count(), 1);
    // Ports of UDP are not theirs.
    let plain = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(bind(&world, plain, &v4([0; 4], 17)), 0);
}
