//! Processes that are killed while they wait, or end with something half done.

use linux_raw_sys::general as l;
use linux_raw_sys::net as n;

use super::paid::{file, words};
use super::{leaves_nothing_of, ok, two};
use crate::common::caller::{CREAT, Program, RDWR};

/// Rounds: there are many kinds.
const ROUNDS: (usize, usize) = (60, 120);

type Round = fn(&Program<'_>);

fn leave_nothing(rounds: &[Round]) {
    rounds.iter().for_each(|round| leaves_nothing_of(ROUNDS, round));
}

/// Kills a process, whatever it does, and buries it.
fn kill(program: &Program<'_>, child: &Program<'_>) {
    let settle = || {
        program.world.collect();
        while program.world.next_event(&child.thread).is_some() {}
    };
    let pid = u64::from(child.thread.process.number);
    settle();
    program.world.forget_scratch(&child.thread);
    ok(program, l::__NR_kill, &[pid, l::SIGKILL.into()]);
    settle();
    assert_eq!(ok(program, l::__NR_wait4, &[pid, 0, 0, 0]), pid);
}

/// A child makes a call that waits, and is killed.
fn killed(program: &Program<'_>, call: u32, arguments: impl Fn(&Program<'_>) -> Vec<u64>) {
    let child = program.fork();
    waits(&child, call, &arguments(&child));
    kill(program, &child);
}

fn waits(child: &Program<'_>, call: u32, arguments: &[u64]) {
    assert_eq!(child.world.call(&child.thread, call, arguments), None, "call {call}");
}

fn close(program: &Program<'_>, files: &[u64]) {
    files.iter().for_each(|fd| program.close(*fd));
}

/// Another thread of a process.
fn thread<'a>(program: &Program<'a>) -> Program<'a> {
    let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD | l::CLONE_FILES | l::CLONE_FS;
    let tid = ok(program, l::__NR_clone, &[flags.into()]);
    let thread = program.world.thread_of(&program.thread, tid);
    program.world.next_event(&thread);
    program.with(&thread)
}

/// A file of `/tmp` is gone.
fn unlink(program: &Program<'_>, name: &str) {
    assert_eq!(program.on(l::__NR_unlink, name, &[]), 0);
}

#[test]
fn while_they_wait_for_files() {
    leave_nothing(&[
        |program| {
            let [reader, writer] = two(program, l::__NR_pipe, &[]);
            let epoll = ok(program, l::__NR_epoll_create1, &[0]);
            ok(program, l::__NR_epoll_ctl, &[epoll, 1, reader, words(program, &[1, 0])]);
            killed(program, l::__NR_read, |child| vec![reader, child.buffer, 1]);
            let entry = reader | 1 << 32;
            killed(program, l::__NR_poll, |child| vec![words(child, &[entry; 3]), 3, u64::MAX]);
            killed(program, l::__NR_epoll_wait, |child| vec![epoll, child.buffer, 1, u64::MAX]);
            killed(program, l::__NR_write, |child| vec![writer, child.buffer, 100_000]);
            close(program, &[reader, epoll, writer]);
        },
        |program| {
            let mode = u64::from(l::S_IFIFO) | 0o644;
            assert_eq!(program.on(l::__NR_mknod, "/tmp/p", &[mode, 0]), 0);
            killed(program, l::__NR_open, |child| vec![child.path(0, b"/tmp/p"), 0, 0]);
            unlink(program, "/tmp/p");
        },
        |program| {
            let files = [0; 2].map(|number| file(program, number));
            ok(program, l::__NR_flock, &[files[0], 2]);
            killed(program, l::__NR_flock, |_| vec![files[1], 2]);
            let flock = |child: &Program<'_>| words(child, &[l::F_WRLCK.into(), 0, 0, 0]);
            ok(program, l::__NR_fcntl, &[files[0], l::F_SETLK.into(), flock(program)]);
            killed(program, l::__NR_fcntl, |child| {
                vec![files[0], l::F_SETLKW.into(), flock(child)]
            });
            close(program, &files);
            unlink(program, "/tmp/0");
        },
    ]);
}

#[test]
fn while_they_wait_for_each_other() {
    leave_nothing(&[
        |program| {
            let id = ok(program, l::__NR_semget, &[0, 1, 0o600]);
            killed(program, l::__NR_semop, |child| vec![id, words(child, &[0xFFFF_0000]), 1]);
            let child = program.fork();
            // With SEM_UNDO.
            ok(&child, l::__NR_semop, &[id, words(&child, &[0x1000_0001_0000]), 1]);
            ok(program, l::__NR_semctl, &[id, 0, 0]);
            kill(program, &child);
        },
        |program| {
            let id = ok(program, l::__NR_msgget, &[0, 0o600]);
            killed(program, l::__NR_msgrcv, |child| vec![id, child.buffer, 10, 0, 0]);
            ok(program, l::__NR_msgctl, &[id, 0, 0]);
        },
        |program| {
            let flags = u64::from(CREAT | RDWR);
            let queue = program.on(l::__NR_mq_open, "q", &[flags, 0o600, 0]) as u64;
            let receive = l::__NR_mq_timedreceive;
            killed(program, receive, |child| vec![queue, child.buffer, 8192, 0, 0]);
            let child = program.fork();
            ok(&child, l::__NR_mq_notify, &[queue, words(&child, &[0, 10])]);
            kill(program, &child);
            assert_eq!(program.on(l::__NR_mq_unlink, "q", &[]), 0);
            program.close(queue);
        },
        |program| {
            let stream = || {
                let kind = n::SOCK_STREAM.into();
                ok(program, l::__NR_socket, &[n::AF_UNIX.into(), kind, 0])
            };
            let sockets @ [listener, first, second] = [stream(), stream(), stream()];
            let address = program.path(0, b"\x01\0\0name");
            ok(program, l::__NR_bind, &[listener, address, 7]);
            ok(program, l::__NR_listen, &[listener, 0]);
            killed(program, l::__NR_accept, |_| vec![listener, 0, 0]);
            ok(program, l::__NR_connect, &[first, address, 7]);
            killed(program, l::__NR_connect, |_| vec![second, address, 7]);
            close(program, &sockets);
        },
        |program| {
            let child = program.fork();
            let other = child.fork();
            waits(&child, l::__NR_wait4, &[u64::MAX, 0, 0, 0]);
            kill(program, &child);
            kill(program, &other);
        },
    ]);
}

/// Words of memory that processes have in common, one of which may say who holds it.
#[test]
fn while_they_wait_for_words() {
    leave_nothing(&[|program| {
        let at = ok(program, l::__NR_mmap, &[0, 0x1000, 3, 0x21, u64::MAX, 0]);
        let [wait, lock] = [l::FUTEX_WAIT, l::FUTEX_LOCK_PI].map(u64::from);
        program.world.write(&program.thread, at, &[0; 8]);
        killed(program, l::__NR_futex, |_| vec![at, wait, 0, 0]);
        let [holder, next, moved] = [(); 3].map(|()| program.fork());
        ok(&holder, l::__NR_futex, &[at + 4, lock, 0, 0]);
        killed(program, l::__NR_futex, |_| vec![at + 4, lock, 0, 0]);
        waits(&next, l::__NR_futex, &[at + 4, lock, 0, 0]);
        let [waits_for, moves] = [l::FUTEX_WAIT_REQUEUE_PI, l::FUTEX_CMP_REQUEUE_PI].map(u64::from);
        waits(&moved, l::__NR_futex, &[at, waits_for, 0, 0, at + 4]);
        ok(&holder, l::__NR_futex, &[at, moves, 1, 5, at + 4, 0]);
        [&holder, &moved, &next].into_iter().for_each(|child| kill(program, child));
        ok(program, l::__NR_munmap, &[at, 0x1000]);
    }]);
}

#[test]
fn with_others_who_trace_them() {
    const ATTACH: u64 = 16;
    const SEIZE: u64 = 0x4206;
    leave_nothing(&[
        |program| {
            let [tracer, tracee] = [(); 2].map(|()| program.fork());
            let pid = u64::from(tracee.thread.process.number);
            ok(&tracer, l::__NR_ptrace, &[ATTACH, pid, 0, 0]);
            kill(program, &tracer);
            kill(program, &tracee);
        },
        // Its end is never told.
        |program| {
            let [tracer, tracee] = [(); 2].map(|()| program.fork());
            let thread = thread(&tracee);
            let tid = u64::from(thread.thread.own_tid.get());
            ok(&tracer, l::__NR_ptrace, &[SEIZE, tid, 0, 0]);
            waits(&thread, l::__NR_exit, &[0]);
            kill(program, &tracee);
            kill(program, &tracer);
        },
    ]);
}

#[test]
fn with_things_of_their_own() {
    leave_nothing(&[
        // Objects in a namespace of their own.
        |program| {
            let child = program.fork();
            ok(&child, l::__NR_unshare, &[l::CLONE_NEWIPC.into()]);
            let queue = ok(&child, l::__NR_msgget, &[0, 0o600]);
            ok(&child, l::__NR_msgsnd, &[queue, words(&child, &[1]), 100, 0]);
            let semaphores = ok(&child, l::__NR_semget, &[0, 5, 0o600]);
            ok(&child, l::__NR_semop, &[semaphores, words(&child, &[0x1000_0001_0000]), 1]);
            let segment = ok(&child, l::__NR_shmget, &[5, 0x2000, 0o1600]);
            let at = ok(&child, l::__NR_shmat, &[segment, 0, 0]);
            program.world.write(&child.thread, at, b"touched");
            kill(program, &child);
        },
        // Requests that nobody has answered.
        |program| {
            let pipe @ [reader, _] = two(program, l::__NR_pipe, &[]);
            let child = program.fork();
            ok(&child, l::__NR_io_setup, &[10, words(&child, &[0])]);
            let context = child.world.read_u64(&child.thread, child.buffer);
            let control = child.buffer + 64;
            let read = [control, 0, 0, 0, 0, 0, 0, 0, 0, 0, reader << 32, control, 1, 0, 0, 0];
            ok(&child, l::__NR_io_submit, &[context, 1, words(&child, &read)]);
            waits(&child, l::__NR_io_getevents, &[context, 1, 1, child.buffer + 256, 0]);
            kill(program, &child);
            close(program, &pipe);
        },
    ]);
}

#[test]
fn in_sessions_and_mounts_of_their_own() {
    const UNLOCK_TERMINAL: u64 = 0x4004_5431;
    const NUMBER: u64 = 0x8004_5430;
    leave_nothing(&[
        // A session whose terminal goes.
        |program| {
            let master = program.opened("/dev/ptmx", RDWR);
            ok(program, l::__NR_ioctl, &[master, UNLOCK_TERMINAL, words(program, &[0])]);
            ok(program, l::__NR_ioctl, &[master, NUMBER, program.buffer]);
            let number = program.world.read_u32(&program.thread, program.buffer);
            let leader = program.fork();
            ok(&leader, l::__NR_setsid, &[]);
            let terminal = leader.opened(&format!("/dev/pts/{number}"), RDWR);
            let background = leader.fork();
            ok(&background, l::__NR_setpgid, &[0, 0]);
            waits(&leader, l::__NR_read, &[terminal, leader.buffer, 1]);
            assert_eq!(program.write(master, b"typed"), 5);
            program.close(master);
            kill(program, &leader);
            kill(program, &background);
        },
        // Keyrings in keyrings.
        |program| {
            const THREAD: u64 = -1_i64 as u64;
            const PROCESS: u64 = -2_i64 as u64;
            const LINK: u64 = 8;
            let child = program.fork();
            let (kind, name) = (child.path(0, b"keyring"), child.path(1, b"name"));
            let add = |ring| ok(&child, l::__NR_add_key, &[kind, name, 0, 0, ring]);
            let [own, all] = [add(THREAD), add(PROCESS)];
            ok(&child, l::__NR_keyctl, &[LINK, own, all]);
            kill(program, &child);
        },
        // Mounts, and a process in them.
        |program| {
            program.mkdir("/tmp/m");
            let child = program.fork();
            ok(&child, l::__NR_unshare, &[u64::from(l::CLONE_NEWNS | l::CLONE_NEWPID)]);
            let (at, kind) = (child.path(0, b"/tmp/m"), child.path(1, b"tmpfs"));
            ok(&child, l::__NR_mount, &[kind, at, kind, 0, 0]);
            ok(&child, l::__NR_mount, &[at, at, 0, l::MS_BIND.into(), 0]);
            assert_eq!(child.on(l::__NR_chdir, "/tmp/m", &[]), 0);
            child.make("here", b"something");
            kill(program, &child);
            assert_eq!(program.on(l::__NR_rmdir, "/tmp/m", &[]), 0);
        },
    ]);
}
