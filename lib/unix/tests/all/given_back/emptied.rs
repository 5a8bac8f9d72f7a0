//! What stays has no room left for the many that were once in it, of whom nobody pays any more.

use linux_raw_sys::general as l;
use linux_raw_sys::net as n;

use super::paid::{Make, file, unpaid, words};
use super::{ends, ok, two};
use crate::common::caller::{CREAT, Program, RDONLY, RDWR};

/// What stays of each kind, how many were in it, and what may be left of each of those in bytes: half of a small seat.
const OBJECTS: usize = 10;
const MANY: u64 = 600;
const EACH: isize = 1;

/// Of none of these much is left.
#[track_caller]
fn keep_little(kinds: &[(&str, Make)]) {
    for (kind, make) in kinds {
        let unpaid = unpaid(OBJECTS, *make);
        assert!(unpaid < EACH * MANY as isize, "{unpaid} bytes of each are not paid for: {kind}");
    }
}

/// Opens a file [`MANY`] times, does something with each, and closes all, or all but one.
fn many(program: &Program<'_>, path: &str, call: u32, arguments: &[u64], left: usize) {
    let opened: Vec<u64> = (0..MANY).map(|_| program.opened(path, RDONLY)).collect();
    for fd in &opened {
        ok(program, call, &[&[*fd], arguments].concat());
    }
    opened[left..].iter().for_each(|fd| program.close(*fd));
}

#[test]
fn files() {
    keep_little(&[
        ("directories with names", |program, number| {
            let directory = format!("/tmp/{number}");
            program.mkdir(&directory);
            let names = || (0..MANY).map(|index| format!("{directory}/{index}"));
            names().for_each(|name| program.make(&name, b""));
            names().for_each(|name| assert_eq!(program.on(l::__NR_unlink, &name, &[]), 0));
        }),
        ("directories of which many were told", |program, number| {
            let directory = format!("/tmp/{number}");
            program.mkdir(&directory);
            let arguments = [l::F_NOTIFY.into(), l::DN_CREATE.into()];
            many(program, &directory, l::__NR_fcntl, &arguments, 0);
        }),
        ("files that many had locked", |program, number| {
            program.close(file(program, number));
            many(program, &format!("/tmp/{number}"), l::__NR_flock, &[1], 0);
        }),
        ("files that many had locked, and one has", |program, number| {
            program.close(file(program, number));
            many(program, &format!("/tmp/{number}"), l::__NR_flock, &[1], 1);
        }),
        ("files on which many had leases, and one has", |program, number| {
            program.close(file(program, number));
            let arguments = [l::F_SETLEASE.into(), l::F_RDLCK.into()];
            many(program, &format!("/tmp/{number}"), l::__NR_fcntl, &arguments, 1);
        }),
        ("files of which many parts were locked, and one is", |program, number| {
            let file = file(program, number);
            let lock = |kind: u32, start, len| {
                let flock = words(program, &[kind.into(), start, len, 0]);
                ok(program, l::__NR_fcntl, &[file, l::F_OFD_SETLK.into(), flock]);
            };
            (0..MANY).for_each(|part| lock(l::F_WRLCK, 2 * part, 1));
            lock(l::F_UNLCK, 1, 0);
        }),
    ]);
}

#[test]
fn queues() {
    keep_little(&[
        ("of events", |program, _| {
            let inotify = ok(program, l::__NR_inotify_init1, &[l::O_NONBLOCK.into()]);
            let path = program.path(0, b"/tmp");
            ok(program, l::__NR_inotify_add_watch, &[inotify, path, l::IN_CREATE.into()]);
            for number in 0..MANY as usize {
                program.close(file(program, number));
                assert_eq!(program.on(l::__NR_unlink, &format!("/tmp/{number}"), &[]), 0);
            }
            while program.call(l::__NR_read, &[inotify, program.buffer, 4096]) > 0 {}
        }),
        ("of connections", |program, number| {
            let kind = u64::from(n::SOCK_STREAM);
            let stream = || ok(program, l::__NR_socket, &[n::AF_UNIX.into(), kind, 0]);
            let listener = stream();
            let address = program.path(0, format!("\x01\0\0{number:04}").as_bytes());
            ok(program, l::__NR_bind, &[listener, address, 7]);
            ok(program, l::__NR_listen, &[listener, 4096]);
            for _ in 0..MANY {
                let client = stream();
                ok(program, l::__NR_connect, &[client, address, 7]);
                program.close(client);
            }
            (0..MANY).for_each(|_| program.close(ok(program, l::__NR_accept, &[listener, 0, 0])));
        }),
        ("of messages", |program, _| {
            let queue = ok(program, l::__NR_msgget, &[0, 0o600]);
            let message = words(program, &[1]);
            (0..MANY).for_each(|_| {
                ok(program, l::__NR_msgsnd, &[queue, message, 0, 0]);
            });
            (0..MANY).for_each(|_| {
                ok(program, l::__NR_msgrcv, &[queue, message, 0, 0, 0]);
            });
        }),
        ("of packets", |program, _| {
            let [reader, writer] = two(program, l::__NR_pipe2, &[]);
            ok(program, l::__NR_fcntl, &[writer, l::F_SETPIPE_SZ.into(), 1 << 20]);
            ok(program, l::__NR_fcntl, &[writer, l::F_SETFL.into(), l::O_DIRECT.into()]);
            (0..200).for_each(|_| assert_eq!(program.write(writer, b"x"), 1));
            (0..200).for_each(|_| assert_eq!(program.read(reader, 1), b"x"));
            ok(program, l::__NR_fcntl, &[writer, l::F_SETPIPE_SZ.into(), 4096]);
        }),
    ]);
}

/// The signals of a child that has blocked them, and takes them all.
#[test]
fn signals() {
    keep_little(&[("processes", |program, _| {
        let child = program.fork();
        let (mask, zero) = (words(&child, &[u64::MAX, 0, 0]), child.buffer + 8);
        ok(&child, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
        let pid = u64::from(child.thread.process.number);
        (0..MANY).for_each(|_| {
            ok(program, l::__NR_kill, &[pid, 40]);
        });
        while child.call(l::__NR_rt_sigtimedwait, &[mask, 0, zero, 8]) == 40 {}
    })]);
}

/// What is linked in a keyring and taken out again.
#[test]
fn keyrings() {
    keep_little(&[("keyrings", |program, number| {
        const SESSION: u64 = -3_i64 as u64;
        const UNLINK: u64 = 9;
        let add = |kind: &[u8], name: String, len: u64, ring: u64| {
            let (kind, name) = (program.path(0, kind), program.path(1, name.as_bytes()));
            ok(program, l::__NR_add_key, &[kind, name, program.buffer, len, ring])
        };
        let ring = add(b"keyring", format!("ring {number}"), 0, SESSION);
        let keys: Vec<u64> = (0..MANY).map(|key| add(b"user", format!("{key}"), 8, ring)).collect();
        for key in keys {
            ok(program, l::__NR_keyctl, &[UNLINK, key, ring]);
        }
    })]);
}

/// Locks are forgotten with the file, whoever closes it and whatever it is.
#[test]
fn locks() {
    keep_little(&[
        ("of one who has the same descriptors", |program, number| {
            let flags = u64::from(l::CLONE_FILES | l::SIGCHLD);
            let child = program.world.thread(ok(program, l::__NR_clone, &[flags]));
            program.world.next_event(&child);
            let child = program.with(&child);
            for _ in 0..MANY / 10 {
                let file = file(program, number);
                let flock = words(&child, &[l::F_WRLCK.into(), 0, 0, 0]);
                ok(&child, l::__NR_fcntl, &[file, l::F_SETLK.into(), flock]);
                program.close(file);
                assert_eq!(program.on(l::__NR_unlink, &format!("/tmp/{number}"), &[]), 0);
            }
        }),
        ("of pipes", |program, _| {
            for _ in 0..MANY / 10 {
                let pipe = two(program, l::__NR_pipe, &[]);
                let flock = words(program, &[l::F_WRLCK.into(), 0, 0, 0]);
                ok(program, l::__NR_fcntl, &[pipe[1], l::F_SETLK.into(), flock]);
                pipe.into_iter().for_each(|fd| program.close(fd));
            }
        }),
    ]);
}

/// Threads that wait together for a semaphore, or at a word of memory, and end.
#[test]
fn crowds() {
    fn crowd(program: &Program<'_>, call: u32, arguments: &[u64]) {
        let leader = program.world.fork(&program.thread);
        let flags = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
        for _ in 0..MANY / 6 {
            let thread = program.world.thread(program.world.ok(&leader, l::__NR_clone, &[flags]));
            program.world.next_event(&thread);
            assert_eq!(program.world.call(&thread, call, arguments), None);
        }
        ends(program, &leader);
    }
    keep_little(&[("semaphores", |program, _| {
        let id = ok(program, l::__NR_semget, &[0, 1, 0o600]);
        let operation = words(program, &[0xFFFF_0000]);
        crowd(program, l::__NR_semop, &[id, operation, 1]);
    })]);
    // Of those the last ones stay in the queues, wherever that is.
    let unpaid = unpaid(4 * OBJECTS, |program, number| {
        let at = program.buffer + 64 + 4 * number as u64;
        program.world.write(&program.thread, at, &[0; 4]);
        crowd(program, l::__NR_futex, &[at, l::FUTEX_WAIT.into(), 0, 0]);
    });
    assert!(unpaid < EACH * MANY as isize, "{unpaid} bytes of each are not paid for: words");
}

/// The other way round: nobody goes on paying for what is not there any more.
#[test]
fn nobody_pays_for_what_is_gone() {
    let kinds: [(&str, Make); 2] = [
        ("pages that were cut off", |program, number| {
            let file = program.opened(&format!("/tmp/{number}"), RDWR | CREAT);
            for _ in 0..50 {
                ok(program, l::__NR_pwrite64, &[file, program.buffer, 1, 500 << 12]);
                ok(program, l::__NR_pwrite64, &[file, program.buffer, 1, 5000 << 12]);
                ok(program, l::__NR_ftruncate, &[file, 0]);
            }
            program.close(file);
        }),
        ("semaphores whose users have ended", |program, _| {
            let id = ok(program, l::__NR_semget, &[0, 100, 0o600]);
            let child = program.fork();
            for number in 0..100 {
                // SEM_UNDO.
                let operation = words(&child, &[number | 1 << 16 | 0x1000 << 32]);
                ok(&child, l::__NR_semop, &[id, operation, 1]);
            }
            ends(program, &child.thread);
        }),
    ];
    for (kind, make) in kinds {
        let unpaid = unpaid(OBJECTS, make);
        assert!(unpaid > -1024, "{} bytes too many are paid for each: {kind}", -unpaid);
    }
}
