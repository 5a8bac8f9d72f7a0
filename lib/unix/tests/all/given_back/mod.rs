//! What programs make and leave behind costs the server nothing afterwards, neither
//! memory of its own nor frames: a round of calls can be made for ever.

mod alarms;
mod emptied;
mod ends;
mod kept;
mod listeners;
mod paid;
mod random;
mod sockets;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::account::What;
use unix::machine::Reply;
use unix::thread::Thread;

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDONLY, RDWR};

/// Counts the bytes that each thread of the tests has allocated and not freed.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// Bytes that it may have: total, and at which value of [`LIVE`] they are used up.
    static LIMIT: Cell<(isize, isize)> = const { Cell::new((isize::MAX, isize::MAX)) };
}

/// From now on this thread can allocate so many bytes more, and no byte beyond them.
pub fn limit(bytes: isize) {
    LIMIT.set((bytes, LIVE.get() + bytes));
}

/// The limit ends.
pub fn no_limit() {
    LIMIT.set((isize::MAX, isize::MAX));
}

/// What a server on this thread is told about its memory.
pub fn heap() -> (u64, u64) {
    let (total, end) = LIMIT.get();
    (total as u64, end.saturating_sub(LIVE.get()).max(0) as u64)
}

/// Whether so many bytes more can be had.
fn fits(bytes: usize) -> bool {
    LIVE.get().saturating_add(bytes as isize) <= LIMIT.get().1
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
}

// SAFETY: all is left to the system's allocator; the counter needs neither memory nor a
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !fits(layout.size()) {
            return std::ptr::null_mut();
        }
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
        // For a moment there are both.
        if !fits(size) {
            return std::ptr::null_mut();
        }
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

/// What users pay for.
const KINDS: [What; 10] = [
    What::Heap,
    What::Frames,
    What::PipePages,
    What::Signals,
    What::Flights,
    What::Kernel,
    What::Ports,
    What::Inotifies,
    What::Terminals,
    What::Events,
];

/// Plays `round` often; nothing may be left of it.
#[track_caller]
fn leaves_nothing(round: impl Fn(&Program<'_>)) {
    leaves_nothing_of((FIRST, ROUNDS), round);
}

/// Plays `round` so often, and then so often again.
#[track_caller]
fn leaves_nothing_of((first, rounds): (usize, usize), round: impl Fn(&Program<'_>)) {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    (0..first).for_each(|_| round(&program));
    let (live, frames) = (LIVE.get(), world.unix.memory.available());
    let account = world.unix.accounts.user(0);
    let paid = KINDS.map(|what| account.used(what));
    (0..rounds).for_each(|_| round(&program));
    let (grown, lost) =
        (LIVE.get() - live, frames as isize - world.unix.memory.available() as isize);
    assert!(grown < SLACK, "{} bytes a round are not given back", grown / rounds as isize);
    assert!(lost <= 0, "{lost} frames are not given back in {rounds} rounds");
    for (what, before) in KINDS.into_iter().zip(paid) {
        assert_eq!(account.used(what), before, "{what:?} is still paid for after {rounds} rounds");
    }
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
    let pid = u64::from(child.process().number);
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

/// Record locks go with the file, whatever it is and whoever closes it.
#[test]
fn locks_on_what_is_gone() {
    leaves_nothing(|program| {
        let world = program.world;
        // struct flock: F_RDLCK, all of it.
        world.write(&program.thread, program.buffer, &[0; 32]);
        let [reader, writer] = two(program, l::__NR_pipe, &[]);
        world.write(&program.thread, program.buffer, &[0; 32]);
        ok(program, l::__NR_fcntl, &[reader, l::F_SETLK.into(), program.buffer]);
        program.close(reader);
        program.close(writer);
        // Another process with the same descriptors closes it.
        let fd = program.opened("/tmp/l", RDWR | CREAT);
        ok(program, l::__NR_fcntl, &[fd, l::F_SETLK.into(), program.buffer]);
        assert_eq!(program.on(l::__NR_unlink, "/tmp/l", &[]), 0);
        let id = ok(program, l::__NR_clone, &[(l::CLONE_FILES | l::SIGCHLD).into(), 0]);
        let child = world.thread_of(&program.thread, id);
        world.next_event(&child);
        assert_eq!(world.now(&child, l::__NR_close, &[fd]), 0);
        ends(program, &child);
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
        ok(program, l::__NR_kill, &[child.process().number.into(), l::SIGTSTP.into()]);
        ok(program, l::__NR_kill, &[child.process().number.into(), l::SIGCONT.into()]);
        assert_eq!(world.next_event(&child), Some(Reply::Resume));
        // The orphan goes to process 1.
        let pid = u64::from(child.process().number);
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
            ok(program, l::__NR_kill, &[child.process().number.into(), signal.into()]);
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

/// Of a mount that some who hear of it have no room for.
#[test]
fn mounts_that_peers_have_no_room_for() {
    let ready = Cell::new(false);
    let mount = |program: &Program<'_>, at: &str, kind: &str, flags: u32| {
        let kind = program.path(1, kind.as_bytes());
        let at = program.path(0, at.as_bytes());
        program.call(l::__NR_mount, &[at, at, kind, flags.into(), 0])
    };
    leaves_nothing(|program| {
        if !ready.replace(true) {
            ["/tmp/full", "/tmp/m"].into_iter().for_each(|at| program.mkdir(at));
            assert_eq!(mount(program, "/tmp/full", "", l::MS_BIND), 0);
            assert_eq!(mount(program, "/tmp", "", l::MS_SHARED), 0);
            let peer = program.fork();
            ok(&peer, l::__NR_unshare, &[l::CLONE_NEWNS.into()]);
            while mount(&peer, "/tmp/full", "tmpfs", 0) == 0 {}
        }
        assert_eq!(mount(program, "/tmp/m", "tmpfs", 0), -28);
    });
}
