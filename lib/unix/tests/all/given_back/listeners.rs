//! Who listened to a file and does no more leaves no memory at the file, which may stay for ever and is not what was
//! paid for.

use linux_raw_sys::general as l;

use super::{LIVE, ok, two};
use crate::common::World;
use crate::common::caller::Program;

/// Files that stay.
const PIPES: usize = 10;
/// Who listens to each, and what is left of one if nothing is given back: more bytes than that.
const MANY: u64 = 600;
const EACH: isize = 16;
/// What a pipe may keep that stays, its descriptors and an epoll with it.
const PIPE: isize = 4096;

/// Bytes by which the server has grown for each pipe that stays, when `listen` was called with it (and before it once,
/// so that tables have their size).
fn left(listen: impl Fn(&Program<'_>, [u64; 2])) -> isize {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let on_another = || listen(&program, two(&program, l::__NR_pipe, &[]));
    on_another();
    let before = LIVE.get();
    (0..PIPES).for_each(|_| on_another());
    (LIVE.get() - before) / PIPES as isize
}

/// Entries of an epoll for the pipe under as many descriptors; it has something to read or not.
fn enter(program: &Program<'_>, [reader, writer]: [u64; 2], ready: bool) -> (u64, Vec<u64>) {
    if ready {
        assert_eq!(program.write(writer, b"x"), 1);
    }
    let epoll = ok(program, l::__NR_epoll_create1, &[0]);
    let at = program.buffer;
    program.world.write(&program.thread, at, &l::EPOLLIN.to_le_bytes());
    let entries: Vec<u64> = (0..MANY).map(|_| ok(program, l::__NR_dup, &[reader])).collect();
    for entry in &entries {
        ok(program, l::__NR_epoll_ctl, &[epoll, l::EPOLL_CTL_ADD.into(), *entry, at]);
    }
    (epoll, entries)
}

#[test]
fn an_epoll_that_is_closed() {
    for ready in [false, true] {
        let left = left(|program, pipe| {
            let (epoll, entries) = enter(program, pipe, ready);
            program.close(epoll);
            entries.iter().for_each(|entry| program.close(*entry));
        });
        assert!(left < PIPE + EACH * MANY as isize, "{left} bytes are left (ready: {ready})");
    }
}

#[test]
fn entries_that_are_taken_out() {
    for ready in [false, true] {
        let left = left(|program, pipe| {
            let (epoll, entries) = enter(program, pipe, ready);
            for entry in entries {
                ok(program, l::__NR_epoll_ctl, &[epoll, l::EPOLL_CTL_DEL.into(), entry, 0]);
                program.close(entry);
            }
        });
        assert!(left < PIPE + EACH * MANY as isize, "{left} bytes are left (ready: {ready})");
    }
}

/// Somebody has looked whether they are ready, so they are on the list of those no more, when they are taken out.
#[test]
fn entries_that_were_looked_at() {
    let left = left(|program, pipe| {
        let (epoll, entries) = enter(program, pipe, true);
        assert_eq!(program.read(pipe[0], 1), b"x");
        ok(program, l::__NR_epoll_wait, &[epoll, program.buffer, 1, 0]);
        for entry in entries {
            ok(program, l::__NR_epoll_ctl, &[epoll, l::EPOLL_CTL_DEL.into(), entry, 0]);
            program.close(entry);
        }
    });
    assert!(left < PIPE, "{left} bytes are left");
}

#[test]
fn asynchronous_requests() {
    let requests = 64;
    let left = left(|program, [reader, _]| {
        let (world, thread) = (program.world, &program.thread);
        let buffer = program.buffer;
        world.write(thread, buffer, &[0; 8]);
        ok(program, l::__NR_io_setup, &[requests, buffer]);
        let context = world.read_u64(thread, buffer);
        let control = buffer + 64;
        let read = [0, 0, reader << 32, buffer, 1, 0, 0, 0].map(u64::to_le_bytes).concat();
        world.write(thread, control, &read);
        world.write(thread, buffer, &control.to_le_bytes());
        for _ in 0..MANY {
            ok(program, l::__NR_io_submit, &[context, 1, buffer]);
            assert_eq!(program.call(l::__NR_io_cancel, &[context, control, 0]), -115);
            ok(program, l::__NR_io_getevents, &[context, 1, 1, buffer + 128, 0]);
        }
        ok(program, l::__NR_io_destroy, &[context]);
    });
    // The list grew to what waits, and that is one.
    assert!(left < PIPE, "{left} bytes are left");
}

/// Epolls that hold another one, which stays.
#[test]
fn epolls_around_an_epoll() {
    let left = left(|program, _| {
        let inner = ok(program, l::__NR_epoll_create1, &[0]);
        let at = program.buffer;
        program.world.write(&program.thread, at, &l::EPOLLIN.to_le_bytes());
        let holders: Vec<u64> =
            (0..MANY).map(|_| ok(program, l::__NR_epoll_create1, &[0])).collect();
        for holder in &holders {
            ok(program, l::__NR_epoll_ctl, &[*holder, l::EPOLL_CTL_ADD.into(), inner, at]);
        }
        holders.iter().for_each(|holder| program.close(*holder));
    });
    assert!(left < PIPE + EACH * MANY as isize, "{left} bytes are left");
}
