//! What programs make and leave behind costs the server nothing afterwards, neither
//! memory of its own nor frames: a round of calls can be made for ever.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use linux_raw_sys::general as l;
use linux_raw_sys::net::{AF_UNIX, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
use unix::call::{Entry, TABLE};
use unix::machine::Reply;
use unix::thread::Thread;

use crate::any_calls::{Random, drain, turn};
use crate::common::World;
use crate::common::caller::{CREAT, Program, RDONLY, RDWR};

/// Counts the bytes that each thread of the tests has allocated and not freed.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
}

// SAFETY: all is left to the system's allocator; the counter needs neither memory nor a
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) };
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rounds until every table has its size.
const FIRST: usize = 300;
/// Rounds that are counted.
const ROUNDS: usize = 300;
/// Bytes by which tables may still grow meanwhile: less than 16 a round.
const SLACK: isize = 16 * ROUNDS as isize;

/// Plays `round` often; nothing may be left of it.
#[track_caller]
fn leaves_nothing(round: impl Fn(&Program<'_>)) {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    (0..FIRST).for_each(|_| round(&program));
    let (live, frames) = (LIVE.get(), world.unix.memory.available());
    (0..ROUNDS).for_each(|_| round(&program));
    let (grown, lost) =
        (LIVE.get() - live, frames as isize - world.unix.memory.available() as isize);
    assert!(grown < SLACK, "{} bytes a round are not given back", grown / ROUNDS as isize);
    assert!(lost <= 0, "{lost} frames are not given back in {ROUNDS} rounds");
}

/// A call that must succeed at once.
#[track_caller]
fn ok(program: &Program<'_>, number: u32, arguments: &[u64]) -> u64 {
    let result = program.call(number, arguments);
    assert!(result >= 0, "call {number} {arguments:x?}: {result}");
    result as u64
}

/// Two descriptors that the kernel writes to the buffer.
fn two(program: &Program<'_>, number: u32, arguments: &[u64]) -> [u64; 2] {
    let at = program.buffer;
    let arguments: Vec<u64> = arguments.iter().copied().chain([at]).collect();
    ok(program, number, if number == l::__NR_pipe { &arguments[..1] } else { &arguments });
    [at, at + 4].map(|at| u64::from(program.world.read_u32(&program.thread, at)))
}

/// The thread's process ends; its parent takes the status.
fn ends(program: &Program<'_>, child: &Rc<Thread>) {
    let world = program.world;
    let pid = u64::from(child.process().pid);
    world.forget_scratch(child);
    assert_eq!(world.call(child, l::__NR_exit_group, &[0]), None);
    assert_eq!(ok(program, l::__NR_wait4, &[pid, 0, 0, 0]), pid);
}

#[test]
fn files_and_directories() {
    leaves_nothing(|program| {
        program.mkdir("/tmp/d");
        program.mkdir("/tmp/d/e");
        program.make("/tmp/d/e/f", &[7; 9000]);
        assert_eq!(program.on_two(l::__NR_link, "/tmp/d/e/f", "/tmp/d/g"), 0);
        assert_eq!(program.on_two(l::__NR_symlink, "/tmp/d/g", "/tmp/d/h"), 0);
        assert_eq!(program.on_two(l::__NR_rename, "/tmp/d/g", "/tmp/d/e/f2"), 0);
        assert_eq!(program.names("/tmp/d/e").len(), 2);
        for name in ["/tmp/d/e/f", "/tmp/d/e/f2", "/tmp/d/h"] {
            assert_eq!(program.on(l::__NR_unlink, name, &[]), 0);
        }
        assert_eq!(program.on(l::__NR_rmdir, "/tmp/d/e", &[]), 0);
        assert_eq!(program.on(l::__NR_rmdir, "/tmp/d", &[]), 0);
    });
}

#[test]
fn what_is_gone_but_still_open() {
    leaves_nothing(|program| {
        let fd = program.opened("/tmp/f", RDWR | CREAT);
        assert_eq!(program.on(l::__NR_unlink, "/tmp/f", &[]), 0);
        assert_eq!(program.write(fd, &[1; 5000]), 5000);
        program.close(fd);
        program.mkdir("/tmp/d");
        let here = program.opened(".", RDONLY);
        assert_eq!(program.on(l::__NR_chdir, "/tmp/d", &[]), 0);
        assert_eq!(program.on(l::__NR_rmdir, "/tmp/d", &[]), 0);
        ok(program, l::__NR_fchdir, &[here]);
        program.close(here);
    });
}

#[test]
fn file_systems() {
    leaves_nothing(|program| {
        for flags in [0, l::MNT_DETACH] {
            program.mkdir("/tmp/m");
            let kind = program.path(1, b"tmpfs");
            let at = program.path(0, b"/tmp/m");
            assert_eq!(program.call(l::__NR_mount, &[kind, at, kind, 0, 0]), 0);
            program.mkdir("/tmp/m/d");
            program.mkdir("/tmp/m/d/e");
            program.make("/tmp/m/d/e/f", &[5; 9000]);
            let inside = program.opened("/tmp/m/d/e/f", RDONLY);
            let busy = if flags == 0 { -16 } else { 0 };
            assert_eq!(program.on(l::__NR_umount2, "/tmp/m", &[flags.into()]), busy);
            assert_eq!(program.read(inside, 4), [5; 4]);
            program.close(inside);
            if flags == 0 {
                assert_eq!(program.on(l::__NR_umount2, "/tmp/m", &[0]), 0);
            }
            assert_eq!(program.on(l::__NR_rmdir, "/tmp/m", &[]), 0);
        }
    });
}

/// What a whole server had is gone with it (for the tests and fuzzers, which make many).
#[test]
fn worlds() {
    let before = LIVE.get();
    for _ in 0..20 {
        let world = World::with_frames(256);
        let program = Program::new(&world, &world.first);
        program.mkdir("/tmp/d");
        program.make("/tmp/d/f", b"something");
    }
    assert!(LIVE.get() - before < 1024, "{} bytes are left", LIVE.get() - before);
}

#[test]
fn fifos_pipes_and_locks() {
    leaves_nothing(|program| {
        assert_eq!(program.on(l::__NR_mknod, "/tmp/p", &[u64::from(l::S_IFIFO) | 0o644, 0]), 0);
        let both = program.opened("/tmp/p", RDWR);
        assert_eq!(program.write(both, b"left in it"), 10);
        assert_eq!(program.on(l::__NR_unlink, "/tmp/p", &[]), 0);
        program.close(both);
        let [reader, writer] = two(program, l::__NR_pipe, &[]);
        assert_eq!(program.write(writer, &[3; 6000]), 6000);
        program.close(reader);
        program.close(writer);
        let fd = program.opened("/tmp/l", RDWR | CREAT);
        ok(program, l::__NR_flock, &[fd, 2]);
        // struct flock: F_WRLCK from the start to the end.
        program.world.write(&program.thread, program.buffer, &[1, 0]);
        program.world.write(&program.thread, program.buffer + 2, &[0; 30]);
        ok(program, l::__NR_fcntl, &[fd, l::F_SETLK.into(), program.buffer]);
        program.close(fd);
    });
}

#[test]
fn sockets() {
    leaves_nothing(|program| {
        let address = program.path(0, b"\x01\x00/tmp/s");
        let listener = ok(program, l::__NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]);
        ok(program, l::__NR_bind, &[listener, address, 8]);
        ok(program, l::__NR_listen, &[listener, 4]);
        let connect = || {
            let client = ok(program, l::__NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0]);
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
        let kind = [AF_UNIX.into(), SOCK_STREAM.into(), 0];
        let [one, other] = two(program, l::__NR_socketpair, &kind);
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
        let kind = [AF_UNIX.into(), SOCK_STREAM.into(), 0];
        let [one, other] = two(program, l::__NR_socketpair, &kind);
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
        let socket = [AF_UNIX.into(), SOCK_STREAM.into(), 0];
        let address = program.path(0, b"\x01\x00/tmp/s");
        let listener = ok(program, l::__NR_socket, &socket);
        ok(program, l::__NR_bind, &[listener, address, 8]);
        ok(program, l::__NR_listen, &[listener, 4]);
        let client = ok(program, l::__NR_socket, &socket);
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
        let kind = [AF_UNIX.into(), SOCK_STREAM.into(), 0];
        let [near, far] = two(program, l::__NR_socketpair, &kind);
        let [inner, outer] = two(program, l::__NR_socketpair, &kind);
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
        let kind = [AF_UNIX.into(), SOCK_STREAM.into(), 0];
        let [one, other] = two(program, l::__NR_socketpair, &kind);
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

#[test]
fn what_is_waited_for() {
    leaves_nothing(|program| {
        let epoll = ok(program, l::__NR_epoll_create1, &[0]);
        let event = ok(program, l::__NR_eventfd2, &[0, 0]);
        let timer = ok(program, l::__NR_timerfd_create, &[1, 0]);
        program.world.write(&program.thread, program.buffer, &[0xFF; 8]);
        let signal = ok(program, l::__NR_signalfd4, &[u64::MAX, program.buffer, 8, 0]);
        let [reader, writer] = two(program, l::__NR_pipe, &[]);
        for fd in [event, timer, signal, reader, writer] {
            program.world.write(
                &program.thread,
                program.buffer,
                &[5, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
            );
            ok(program, l::__NR_epoll_ctl, &[epoll, 1, fd, program.buffer]);
        }
        let inner = ok(program, l::__NR_epoll_create1, &[0]);
        ok(program, l::__NR_epoll_ctl, &[epoll, 1, inner, program.buffer]);
        // Some before the epoll instance, some after it.
        for fd in [event, reader, inner, epoll, timer, signal, writer] {
            program.close(fd);
        }
    });
}

#[test]
fn processes_and_threads() {
    leaves_nothing(|program| {
        let world = program.world;
        let child = world.fork(&program.thread);
        let grandchild = world.fork(&child);
        world.write(&child, program.buffer, b"a page of its own");
        ok(program, l::__NR_kill, &[child.process().pid.into(), l::SIGTSTP.into()]);
        ok(program, l::__NR_kill, &[child.process().pid.into(), l::SIGCONT.into()]);
        assert_eq!(world.next_event(&child), Some(Reply::Resume));
        // The orphan goes to process 1.
        let pid = u64::from(child.process().pid);
        world.forget_scratch(&child);
        assert_eq!(world.call(&child, l::__NR_exit_group, &[3]), None);
        assert_eq!(ok(program, l::__NR_wait4, &[pid, 0, 0, 0]), pid);
        ends(program, &grandchild);
    });
}

#[test]
fn sessions_groups_and_pending_signals() {
    leaves_nothing(|program| {
        let world = program.world;
        let child = world.fork(&program.thread);
        assert!(world.now(&child, l::__NR_setsid, &[]) > 0);
        let all = [0xFF; 8];
        world.write(&child, program.buffer, &all);
        assert_eq!(world.now(&child, l::__NR_rt_sigprocmask, &[0, program.buffer, 0, 8]), 0);
        for signal in [l::SIGTERM, 40, 40, 41] {
            ok(program, l::__NR_kill, &[child.process().pid.into(), signal.into()]);
        }
        // struct itimerval: an hour.
        world.write(&child, program.buffer, &3600_u64.to_le_bytes().repeat(4));
        assert_eq!(world.now(&child, l::__NR_setitimer, &[0, program.buffer, 0]), 0);
        ends(program, &child);
    });
}

#[test]
fn memory_of_programs() {
    leaves_nothing(|program| {
        let file = program.opened("/tmp/m", RDWR | CREAT);
        ok(program, l::__NR_ftruncate, &[file, 0x8000]);
        for (flags, fd) in [(0x22, u64::MAX), (0x21, u64::MAX), (0x01, file), (0x02, file)] {
            let at = ok(program, l::__NR_mmap, &[0, 0x8000, 3, flags, fd, 0]);
            program.world.write(&program.thread, at + 0x1000, b"touched");
            ok(program, l::__NR_mprotect, &[at + 0x2000, 0x1000, 1]);
            ok(program, l::__NR_munmap, &[at, 0x4000]);
            ok(program, l::__NR_munmap, &[at + 0x4000, 0x4000]);
        }
        program.close(file);
        assert_eq!(program.on(l::__NR_unlink, "/tmp/m", &[]), 0);
        let end = ok(program, l::__NR_brk, &[0]);
        ok(program, l::__NR_brk, &[end + 0x10000]);
        program.world.write(&program.thread, end + 0x9000, b"touched");
        ok(program, l::__NR_brk, &[end]);
    });
}

#[test]
fn views_of_proc_and_terminals() {
    leaves_nothing(|program| {
        for path in ["/proc/self/maps", "/proc/self/status", "/proc/meminfo", "/proc/mounts"] {
            assert!(!program.contents(path).is_empty(), "{path}");
        }
        let _ = program.names("/proc");
        let _ = program.names("/proc/self/fd");
        let master = program.opened("/dev/ptmx", RDWR);
        assert_eq!(program.write(master, b"unread\n"), 7);
        program.close(master);
    });
}

/// Calls of one round of random ones.
const RANDOM_CALLS: u64 = 20_000;
/// Rounds of them, the first half of which may grow tables.
const RANDOM_ROUNDS: usize = 24;
/// Bytes by which tables may still grow in the second half.
const RANDOM_SLACK: isize = 16 * 1024;

/// Kills and buries everybody but process 1, and removes all files that programs made.
fn clean(program: &Program<'_>) {
    let world = program.world;
    while world.unix.processes.by_pid.borrow().len() > 1 {
        let all: Vec<u32> = world.unix.processes.by_pid.borrow().keys().copied().collect();
        for pid in all.iter().filter(|pid| **pid != 1) {
            program.call(l::__NR_kill, &[u64::from(*pid), l::SIGKILL.into()]);
        }
        drain(world);
        let options = u64::from(l::WNOHANG | l::__WALL);
        while program.call(l::__NR_wait4, &[u64::MAX, 0, options, 0]) > 0 {}
    }
    let _ = world.console();
    for path in [&b"/dev/"[..], b"/tmp/", b"/"] {
        remove_all(program, path);
    }
}

/// Removes what is in a directory; what cannot be removed stays.
fn remove_all(program: &Program<'_>, path: &[u8]) {
    let flags = u64::from(l::O_RDONLY | l::O_DIRECTORY | l::O_NOFOLLOW);
    let fd = program.call(l::__NR_open, &[program.path(0, path), flags, 0]);
    let Ok(fd) = u64::try_from(fd) else { return };
    let mut names = Vec::new();
    loop {
        let len = program.call(l::__NR_getdents64, &[fd, program.buffer, 4096]);
        if len <= 0 {
            break;
        }
        let bytes = program.world.read(&program.thread, program.buffer, len as usize);
        names.extend(raw_entries(&bytes));
    }
    program.close(fd);
    for (name, is_directory) in names {
        let kept: [&[u8]; 5] = [b".", b"..", b"dev", b"proc", b"tmp"];
        if kept.contains(&name.as_slice()) {
            continue;
        }
        let mut path = [path, &name].concat();
        if is_directory {
            path.push(b'/');
            remove_all(program, &path);
        }
        let number = if is_directory { l::__NR_rmdir } else { l::__NR_unlink };
        program.call(number, &[program.path(0, &path)]);
    }
}

/// Names in `getdents64`'s records, whatever bytes they have, and whether they are directories'.
fn raw_entries(mut bytes: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let mut names = Vec::new();
    while bytes.len() >= 19 {
        let len = usize::from(u16::from_le_bytes([bytes[16], bytes[17]]));
        let name = bytes[19..len].iter().copied().take_while(|byte| *byte != 0).collect();
        names.push((name, bytes[18] == 4));
        bytes = &bytes[len..];
    }
    names
}

#[test]
fn random_calls() {
    let entries: Vec<Entry> = TABLE.iter().flatten().copied().collect();
    let seed = std::env::var("UNIX_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x1234_5678_9ABC_DEF1);
    println!("UNIX_SEED={seed}");
    let mut random = Random(seed);
    let world = World::with_frames(4096);
    let program = Program::new(&world, &world.first);
    let area = world.scratch(&world.first, 0x8_0000);
    let mut seen: BTreeMap<*const Thread, Weak<Thread>> = BTreeMap::new();
    let mut live = 0;
    for round in 0..RANDOM_ROUNDS {
        let mut calls = 0;
        while calls < RANDOM_CALLS {
            calls += u64::from(turn(&world, area, &entries, &mut random));
            world.machine.halted.take();
            if calls % 8 == 0 {
                let threads = world.unix.processes.by_tid.borrow();
                seen.extend(threads.values().map(|it| (Rc::as_ptr(it), Rc::downgrade(it))));
            }
        }
        clean(&program);
        seen.retain(|_, thread| thread.strong_count() > 0);
        if let Some(thread) = seen.values().filter_map(Weak::upgrade).find(|it| it.tid.get() != 1) {
            let (tid, call) = (thread.tid.get(), thread.number.get());
            panic!("round {round}: thread {tid}, which has ended in call {call}, is kept");
        }
        if round + 1 == RANDOM_ROUNDS / 2 {
            live = LIVE.get();
        }
    }
    let grown = LIVE.get() - live;
    assert!(grown < RANDOM_SLACK, "{grown} bytes are not given back");
    // A page of scratch memory or two may be touched for the first time.
    assert!(world.unix.memory.available() > 4096 - 64, "frames are not given back");
}
