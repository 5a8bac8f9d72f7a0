//! What goes with datagrams of the Internet: what their headers say, and UDP-Lite.

use linux_raw_sys::general::*;
use linux_raw_sys::net::{AF_INET, AF_INET6, SOCK_DGRAM};
use unix::errno::Errno;

use crate::common::World;
use crate::internet::{LOCAL, bind, one, receive_from, send_to, socket, v4, v6};

/// A datagram to `to` whose control message says `kind` of `level`; whether it was sent.
fn send_with(world: &World, fd: u64, to: &[u8], (level, kind): (u32, u32), value: i32) -> i64 {
    let first = &world.first;
    let name = world.put(first, to);
    let ranges = world.words(first, &[world.put(first, b"x"), 1]);
    let control =
        world.words(first, &[20, u64::from(kind) << 32 | u64::from(level), value as u32 as u64]);
    let header = world.words(first, &[name, to.len() as u64, ranges, 1, control, 24, 0]);
    world.now(first, __NR_sendmsg, &[fd, header, 0]) as i64
}

/// The control messages of the next datagram: level, kind, value.
fn told(world: &World, fd: u64) -> Vec<(u32, u32, u8)> {
    let first = &world.first;
    let into = world.words(first, &[world.scratch(first, 8), 8]);
    let room = world.scratch(first, 64);
    let header = world.words(first, &[0, 0, into, 1, room, 64, 0]);
    assert_eq!(world.ok(first, __NR_recvmsg, &[fd, header, 0]), 1);
    let len = world.read_u64(first, header + 40) as usize;
    let bytes = world.read(first, room, len);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    (0..len).step_by(24).map(|at| (word(at + 8), word(at + 12), bytes[at + 16])).collect()
}

#[test]
fn datagrams_tell_their_hops_and_class_to_who_asks() {
    let world = World::new();
    let first = &world.first;
    let on = world.words(first, &[1]);
    for (family, own, level, [hops, class, wants_hops, wants_class]) in [
        (AF_INET, v4(LOCAL, 700), 0, [2, 1, 12, 13]),
        (AF_INET6, v6(one(), 700), 41, [52, 67, 51, 66]),
    ] {
        let [there, here] = [SOCK_DGRAM; 2].map(|kind| socket(&world, family, kind));
        assert_eq!(bind(&world, there, &own), 0);
        send_to(&world, here, b"x", &own);
        assert_eq!(told(&world, there), []);
        for name in [wants_hops, wants_class] {
            world.ok(first, __NR_setsockopt, &[there, level.into(), name, on, 4]);
        }
        let (hops, class) = (hops as u32, class as u32);
        send_to(&world, here, b"x", &own);
        assert_eq!(told(&world, there), [(level, hops, 64), (level, class, 0)]);
        assert_eq!(send_with(&world, here, &own, (level, hops), 29), 1);
        assert_eq!(told(&world, there), [(level, hops, 29), (level, class, 0)]);
        assert_eq!(send_with(&world, here, &own, (level, class), 8), 1);
        assert_eq!(told(&world, there), [(level, hops, 64), (level, class, 8)]);
        assert_eq!(send_with(&world, here, &own, (level, hops), 256), -i64::from(Errno::EINVAL.0));
        world.ok(first, __NR_close, &[there]);
    }
}

#[test]
fn udp_lite_has_ports_of_its_own() {
    let world = World::new();
    let first = &world.first;
    let lite = |_| world.ok(first, __NR_socket, &[AF_INET.into(), SOCK_DGRAM.into(), 136]);
    let [there, here] = [0; 2].map(lite);
    let udp = socket(&world, AF_INET, SOCK_DGRAM);
    assert_eq!(bind(&world, there, &v4(LOCAL, 700)), 0);
    assert_eq!(bind(&world, udp, &v4(LOCAL, 700)), 0);
    send_to(&world, here, b"x", &v4(LOCAL, 700));
    assert_eq!(receive_from(&world, there).0, b"x");
    let covered = world.words(first, &[20]);
    world.ok(first, __NR_setsockopt, &[here, 136, 10, covered, 4]);
    world.refused(first, __NR_setsockopt, &[udp, 136, 10, covered, 4], Errno::ENOPROTOOPT);
    let wait = u64::from(linux_raw_sys::net::MSG_DONTWAIT);
    world.refused(first, __NR_recvfrom, &[udp, covered, 4, wait, 0, 0], Errno::EAGAIN);
}
