//! What goes with datagrams of the Internet: what their headers say, and UDP-Lite; several messages at once.

use linux_raw_sys::general::*;
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_UNIX, SOCK_DGRAM, SOCK_STREAM};
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

/// Headers of so many messages, each with a buffer of a byte; where they are, and the buffers.
fn headers(world: &World, count: usize) -> (u64, Vec<u64>) {
    let first = &world.first;
    let buffers: Vec<u64> = (0..count).map(|_| world.put(first, b"x")).collect();
    let all = buffers.iter().flat_map(|buffer| {
        let range = world.words(first, &[*buffer, 1]);
        [0, 0, range, 1, 0, 0, 0, 77]
    });
    (world.words(first, &all.collect::<Vec<u64>>()), buffers)
}

fn pair(world: &World, kind: u32) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_socketpair, &[AF_UNIX.into(), kind.into(), 0, at]);
    [0, 4].map(|offset| world.read_u32(&world.first, at + offset).into())
}

#[test]
fn several_messages_are_waited_for() {
    let world = World::new();
    let first = &world.first;
    let [here, there] = pair(&world, SOCK_DGRAM);
    let (at, buffers) = headers(&world, 3);
    let sender = world.fork(first);
    let say = |text: &[u8]| {
        let text = world.put(&sender, text);
        world.ok(&sender, __NR_write, &[there, text, 1]);
        world.collect();
    };
    say(b"a");
    world.waits(first, __NR_recvmmsg, &[here, at, 3, 0, 0]);
    say(b"b");
    assert_eq!(world.next_reply(first), None);
    say(b"c");
    assert_eq!(world.next_reply(first), Some(3));
    let texts: Vec<u8> = buffers.iter().map(|buffer| world.read(first, *buffer, 1)[0]).collect();
    assert_eq!(texts, *b"abc");
    assert_eq!([0, 64, 128].map(|header| world.read_u32(first, at + header + 56)), [1; 3]);
    // No more than there are, if that is asked for; and until a time, which is looked at behind a message.
    say(b"d");
    assert_eq!(world.ok(first, __NR_recvmmsg, &[here, at, 3, 0x10000, 0]), 1);
    let time = world.words(first, &[0, 5_000]);
    world.waits(first, __NR_recvmmsg, &[here, at, 3, 0, time]);
    world.advance(10_000);
    assert_eq!(world.next_reply(first), None);
    say(b"e");
    assert_eq!(world.next_reply(first), Some(1));
    assert_eq!([world.read_u64(first, time), world.read_u64(first, time + 8)], [0, 0]);
    let wrong = world.words(first, &[0, 1_000_000_000]);
    world.refused(first, __NR_recvmmsg, &[99, at, 1, 0, wrong], Errno::EINVAL);
    world.refused(first, __NR_recvmmsg, &[here, at, 1, 0, 8], Errno::EFAULT);
}

#[test]
fn a_signal_ends_a_call_with_the_messages_that_have_come() {
    let world = World::new();
    let first = &world.first;
    let [here, there] = pair(&world, SOCK_STREAM);
    let stack = world.scratch(first, 16384) + 16384;
    world.machine.with(first.machine.get(), |thread| thread.registers.rsp = stack);
    let action = world.words(first, &[0x41_0000, SA_RESTORER.into(), 0x42_0000, 0]);
    world.ok(first, __NR_rt_sigaction, &[SIGUSR1.into(), action, 0, 8]);
    let sender = world.fork(first);
    let text = world.put(&sender, b"ab");
    let (at, _) = headers(&world, 3);
    world.waits(first, __NR_recvmmsg, &[here, at, 3, 0, 0]);
    world.ok(&sender, __NR_write, &[there, text, 2]);
    world.collect();
    assert_eq!(world.next_reply(first), None);
    world.ok(&sender, __NR_kill, &[1, SIGUSR1.into()]);
    let registers = world.registers(first);
    assert_eq!(registers.rip, 0x41_0000);
    // Where a handler's frame has RAX.
    assert_eq!(world.read_u64(first, registers.rsp + 152), 2);
}

#[test]
fn several_messages_are_sent_as_there_is_room() {
    let world = World::new();
    let first = &world.first;
    let [here, there] = pair(&world, SOCK_DGRAM);
    let reader = world.fork(first);
    let (at, _) = headers(&world, 2);
    // Room is made for one, then for the other.
    let sent = loop {
        match world.call(first, __NR_sendmmsg, &[here, at, 2, 0]) {
            Some(2) => {}
            sent => break sent,
        }
    };
    assert_eq!(sent, None, "it waits");
    let into = world.scratch(&reader, 8);
    let mut answer = None;
    for _ in 0..1000 {
        world.ok(&reader, __NR_read, &[there, into, 8]);
        world.collect();
        answer = world.next_reply(first);
        if answer.is_some() {
            break;
        }
    }
    assert_eq!(answer, Some(2));
}
