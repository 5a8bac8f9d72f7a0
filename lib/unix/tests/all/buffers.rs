//! Buffers whose size programs set (`SO_SNDBUF`, `SO_RCVBUF`): how much a stream holds, and who is woken.

use linux_raw_sys::general::*;
use linux_raw_sys::net::{
    AF_INET, MSG_DONTWAIT, SO_RCVBUF, SO_SNDBUF, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};
use unix::errno::Errno;

use crate::common::World;
use crate::internet::{LOCAL, connect, listener, set, socket, v4};
use crate::sockets::pair;

/// What a stream holds if nobody has set anything.
const DEFAULT: usize = 212_992;

fn set_size(world: &World, fd: u64, name: u32, size: u64) {
    assert_eq!(set(world, fd, SOL_SOCKET, name, size), 0);
}

/// Sends as much as `fd` takes without waiting; how many bytes.
fn fill(world: &World, fd: u64) -> usize {
    let from = world.scratch(&world.first, 100_000);
    let mut all = 0;
    loop {
        let arguments = [fd, from, 100_000, MSG_DONTWAIT.into(), 0, 0];
        match world.now(&world.first, __NR_sendto, &arguments) {
            full if full == Errno::EAGAIN.result() => return all,
            sent => all += usize::try_from(sent).unwrap(),
        }
        assert!(all <= DEFAULT, "{all} bytes and more");
    }
}

#[test]
fn a_stream_holds_what_its_sender_s_buffer_does() {
    // As Linux 6.1: what is set is doubled, and there is a least.
    let least_of_none = u64::from(u32::MAX);
    for (size, bytes) in
        [(1, 4608), (4096, 8192), (65_536, 131_072), (1 << 20, DEFAULT), (least_of_none, DEFAULT)]
    {
        let world = World::new();
        let [one, two] = pair(&world, SOCK_STREAM);
        set_size(&world, one, SO_SNDBUF, size);
        set_size(&world, two, SO_RCVBUF, 1);
        assert_eq!(fill(&world, one), bytes, "{size}");
        assert_eq!(fill(&world, two), DEFAULT, "{size}, the other way");
    }
}

#[test]
fn a_connection_holds_what_both_buffers_do() {
    for (sent, received, bytes) in
        [(4096, 4096, 12_288), (4096, 0, 139_264), (0, 4096, DEFAULT), (16_384, 16_384, 49_152)]
    {
        let world = World::new();
        let listening = listener(&world, AF_INET, &v4(LOCAL, 8080));
        if received > 0 {
            set_size(&world, listening, SO_RCVBUF, received);
        }
        let client = socket(&world, AF_INET, SOCK_STREAM);
        assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), 0);
        let server = world.ok(&world.first, __NR_accept, &[listening, 0, 0]);
        // What the listener has holds for whom it accepts, and it does not matter that the connection is there.
        if sent > 0 {
            set_size(&world, client, SO_SNDBUF, sent);
        }
        assert_eq!(fill(&world, client), bytes, "{sent} {received}");
        assert_eq!(fill(&world, server), DEFAULT, "{sent} {received}, the other way");
    }
}

#[test]
fn who_waits_at_a_small_buffer_is_woken_however_little_is_read() {
    for (size, read) in [(1, 1), (1, 700), (2304, 1), (2304, 3000), (4096, 5), (40_000, 4096)] {
        let world = World::new();
        let [one, two] = pair(&world, SOCK_STREAM);
        set_size(&world, one, SO_SNDBUF, size);
        fill(&world, one);
        let child = world.fork(&world.first);
        let from = world.scratch(&child, 10_000);
        world.waits(&child, __NR_write, &[one, from, 10_000]);
        let to = world.scratch(&world.first, 5000);
        let mut reply = None;
        let all = 2 * DEFAULT;
        let mut got = 0;
        while reply.is_none() && got < all {
            got += world.ok(&world.first, __NR_read, &[two, to, read]) as usize;
            reply = world.next_reply(&child);
        }
        assert_eq!(reply, Some(10_000), "{size} {read}");
    }
}

#[test]
fn who_waits_goes_on_when_its_buffer_grows() {
    let world = World::new();
    let [one, _two] = pair(&world, SOCK_STREAM);
    set_size(&world, one, SO_SNDBUF, 1);
    fill(&world, one);
    let child = world.fork(&world.first);
    let from = world.scratch(&child, 10_000);
    world.waits(&child, __NR_write, &[one, from, 10_000]);
    set_size(&world, one, SO_SNDBUF, 65_536);
    assert_eq!(world.next_reply(&child), Some(10_000));
}

#[test]
fn who_waits_because_of_too_many_messages_is_woken() {
    let world = World::new();
    let [one, two] = pair(&world, SOCK_SEQPACKET);
    let at = world.scratch(&world.first, 8);
    let mut sent = 0;
    while world.now(&world.first, __NR_sendto, &[one, at, 1, MSG_DONTWAIT.into(), 0, 0]) == 1 {
        sent += 1;
    }
    assert_eq!(sent, 278, "as on Linux 6.1");
    let child = world.fork(&world.first);
    world.waits(&child, __NR_write, &[one, at, 1]);
    world.ok(&world.first, __NR_read, &[two, at, 1]);
    assert_eq!(world.next_reply(&child), Some(1));
}

#[test]
fn an_earlier_connection_is_nothing_to_a_later_one() {
    let world = World::new();
    let first = &world.first;
    let listening = listener(&world, AF_INET, &v4(LOCAL, 8080));
    let client = socket(&world, AF_INET, SOCK_STREAM);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), 0);
    let earlier = world.ok(first, __NR_accept, &[listening, 0, 0]);
    let nobody = [0_u8; 16];
    assert_eq!(connect(&world, client, &nobody), 0);
    assert_eq!(connect(&world, client, &v4(LOCAL, 8080)), 0);
    let later = world.ok(first, __NR_accept, &[listening, 0, 0]);
    set_size(&world, client, SO_RCVBUF, 1);
    set_size(&world, earlier, SO_SNDBUF, 1);
    world.ok(first, __NR_close, &[earlier]);
    assert_eq!(fill(&world, later), DEFAULT);
    let to = world.scratch(first, 8);
    assert_eq!(world.ok(first, __NR_read, &[client, to, 8]), 8);
    assert_eq!(fill(&world, client), DEFAULT);
}
