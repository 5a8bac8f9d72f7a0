//! Sockets, and files under way in their messages.

use linux_raw_sys::general as l;
use linux_raw_sys::net::{AF_UNIX, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};

use super::{leaves_nothing, leaves_nothing_of, ok, two};
use crate::common::caller::{CREAT, Program, RDWR};

fn stream(program: &Program<'_>) -> u64 {
    ok(program, l::__NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0])
}

fn pair(program: &Program<'_>) -> [u64; 2] {
    two(program, l::__NR_socketpair, &[AF_UNIX.into(), SOCK_STREAM.into(), 0])
}

fn listening(program: &Program<'_>, address: u64) -> u64 {
    let listener = stream(program);
    ok(program, l::__NR_bind, &[listener, address, 8]);
    ok(program, l::__NR_listen, &[listener, 4]);
    listener
}

#[test]
fn sockets() {
    leaves_nothing(|program| {
        let address = program.path(0, b"\x01\x00/tmp/s");
        let listener = listening(program, address);
        let connect = || {
            let client = stream(program);
            ok(program, l::__NR_connect, &[client, address, 8]);
            client
        };
        let (taken, left) = (connect(), connect());
        let server = ok(program, l::__NR_accept, &[listener, 0, 0]);
        assert_eq!(program.write(server, &[1; 3000]), 3000);
        for fd in [listener, taken, server, left] {
            program.close(fd);
        }
        assert_eq!(program.on(l::__NR_unlink, "/tmp/s", &[]), 0);
        for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] {
            let [one, other] = two(program, l::__NR_socketpair, &[AF_UNIX.into(), kind.into(), 0]);
            assert_eq!(program.write(one, b"unread"), 6);
            program.close(one);
            program.close(other);
        }
    });
}

/// Sends `passed` with a byte over `socket`.
fn pass(program: &Program<'_>, socket: u64, passed: u64) {
    let (world, thread, at) = (program.world, &program.thread, program.buffer);
    // The byte's vector at 64, the control message at 96: its length 20, SOL_SOCKET, SCM_RIGHTS.
    let words = [0, 0, at + 64, 1, at + 96, 24, 0, 0, at + 128, 1, 0, 0, 20, 1 | 1 << 32, passed];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    world.write(thread, at, &bytes);
    assert_eq!(ok(program, l::__NR_sendmsg, &[socket, at, 0]), 1);
}

/// Receives a byte with a descriptor.
fn take(program: &Program<'_>, socket: u64) -> u64 {
    let (world, thread, at) = (program.world, &program.thread, program.buffer);
    let words = [0, 0, at + 64, 1, at + 96, 24, 0, 0, at + 128, 1, 0, 0, 0, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    world.write(thread, at, &bytes);
    assert_eq!(ok(program, l::__NR_recvmsg, &[socket, at, 0]), 1);
    assert_eq!(world.read_u64(thread, at + 96), 20, "length of the control message");
    world.read_u32(thread, at + 112).into()
}

#[test]
fn descriptors_on_their_way() {
    leaves_nothing(|program| {
        let [one, other] = pair(program);
        let file = program.opened("/tmp/f", RDWR | CREAT);
        pass(program, one, file);
        for fd in [file, one, other] {
            program.close(fd);
        }
    });
}

/// Each in the other's queue: nobody can ever receive them again.
#[test]
fn descriptors_that_only_hold_each_other() {
    leaves_nothing(|program| {
        let [one, other] = pair(program);
        pass(program, one, other);
        pass(program, other, one);
        program.close(one);
        program.close(other);
    });
}

/// A listener in the queue of a connection that waits for it to accept.
#[test]
fn a_listener_that_only_its_own_connection_holds() {
    leaves_nothing(|program| {
        let address = program.path(0, b"\x01\x00/tmp/s");
        let listener = listening(program, address);
        let client = stream(program);
        ok(program, l::__NR_connect, &[client, address, 8]);
        pass(program, client, listener);
        assert_eq!(program.on(l::__NR_unlink, "/tmp/s", &[]), 0);
        program.close(listener);
        // The connection has gone with its listener, and the client is told.
        assert_eq!(program.call(l::__NR_read, &[client, program.buffer, 1]), -104);
        program.close(client);
    });
}

/// What can be received stays, however long the way to it is.
#[test]
fn descriptors_that_somebody_can_receive() {
    leaves_nothing(|program| {
        let [near, far] = pair(program);
        let [inner, outer] = pair(program);
        let file = program.opened("/tmp/f", RDWR | CREAT);
        assert_eq!(program.write(file, b"here"), 4);
        pass(program, inner, file);
        pass(program, inner, inner);
        pass(program, near, outer);
        for fd in [file, inner, outer, near] {
            program.close(fd);
        }
        let outer = take(program, far);
        let file = take(program, outer);
        ok(program, l::__NR_lseek, &[file, 0, 0]);
        assert_eq!(program.read(file, 8), b"here");
        for fd in [far, outer, file] {
            program.close(fd);
        }
    });
}

/// Who waits at the other end of a pipe is told when its last writer is lost.
#[test]
fn the_end_of_what_is_lost_is_seen() {
    leaves_nothing(|program| {
        let [one, other] = pair(program);
        let [reader, writer] = two(program, l::__NR_pipe, &[]);
        pass(program, one, writer);
        pass(program, one, one);
        pass(program, one, other);
        for fd in [writer, one, other] {
            program.close(fd);
        }
        assert_eq!(program.read(reader, 1), b"");
        program.close(reader);
    });
}

/// Each socket lies in a message that only the next one holds. The server's stack has an end: the last
/// close ends them all, one after the other.
#[test]
fn a_long_chain_of_sockets_in_sockets_ends_in_a_loop() {
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let test = small.spawn(|| {
        leaves_nothing_of((1, 1), |program| {
            let limit = program.world.words(&program.thread, &[8192, 8192]);
            ok(program, l::__NR_setrlimit, &[l::RLIMIT_NOFILE.into(), limit]);
            let [mut inner, end] = pair(program);
            program.close(end);
            for _ in 0..4000 {
                let [near, far] = pair(program);
                pass(program, near, inner);
                program.close(inner);
                program.close(near);
                inner = far;
            }
            assert_eq!(program.world.unix.streams.flights.count.get(), 4000);
            program.close(inner);
            assert_eq!(program.world.unix.streams.flights.count.get(), 0);
        });
    });
    test.unwrap().join().unwrap();
}

/// The sockets are remembered as those to which files were sent, and there is none under way when they go.
#[test]
fn descriptors_that_were_received() {
    leaves_nothing(|program| {
        let [one, other] = pair(program);
        let file = program.opened("/tmp/f", RDWR | CREAT);
        pass(program, one, file);
        let received = take(program, other);
        for fd in [file, received, one, other] {
            program.close(fd);
        }
    });
}
