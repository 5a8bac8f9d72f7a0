//! An ordinary user takes all it can get of each thing in turn. The server's memory has an
//! end here: whoever asks for more without looking ends the test. When the user gets no
//! more, user 0 does all it could do before; when the user's processes have ended, nothing
//! is left of what they had.

mod epolls;
mod keys;
mod net;
mod renames;
mod tables;
mod waiters;
mod watches;
mod work;

use std::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::net as n;
use unix::account::What;
use unix::machine::Access;
use unix::stream::socket::inet::ANY_PORTS;
use unix::thread::{Doing, Thread};

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR};
use crate::given_back;

/// Frames, and bytes of the server's memory.
const FRAMES: usize = 8192;
const HEAP: isize = 12 << 20;
/// The user.
const USER: u32 = 1000;
/// Most rounds of a process, and refusals after which it gives up.
const ROUNDS: u64 = 70_000;
const REFUSALS: u32 = 3;
const PAGE: u64 = 4096;

fn raise_limits(program: &Program<'_>) {
    let limit = program.world.words(&program.thread, &[65_536, 65_536]);
    assert_eq!(program.call(l::__NR_setrlimit, &[l::RLIMIT_NOFILE.into(), limit]), 0);
}

/// What user 0 wants to be able to do.
fn serves_root(world: &World, root: &Program<'_>) {
    let child = root.fork();
    let fd = child.opened("/tmp/root", RDWR | CREAT);
    assert_eq!(child.write(fd, &[7; 40_000]), 40_000);
    child.mkdir("/tmp/directory");
    let ends = world.words(&child.thread, &[0]);
    assert_eq!(child.call(l::__NR_pipe, &[ends]), 0);
    let to = world.read_u64(&child.thread, ends) >> 32;
    assert_eq!(child.write(to, &[1; 5000]), 5000);
    let at = child.call(l::__NR_mmap, &[0, 16 * PAGE, 3, 0x22, u64::MAX, 0]) as u64;
    world.write(&child.thread, at, &[1; 16 * PAGE as usize]);
    assert_eq!(child.on(l::__NR_unlink, "/tmp/root", &[]), 0);
    assert_eq!(child.on(l::__NR_rmdir, "/tmp/directory", &[]), 0);
    world.call(&child.thread, l::__NR_exit_group, &[0]);
    world.next_event(&child.thread);
}

/// The processes that have ended are buried.
fn bury(world: &World) {
    let (any, options) = (u64::MAX, u64::from(l::WNOHANG | l::__WALL));
    while world.now(&world.first, l::__NR_wait4, &[any, 0, options, 0]) as i64 > 0 {}
}

/// A family of processes of the user plays `round`, with a number that is new each time,
/// until nobody gets any more.
fn exhausts(round: impl Fn(&Program<'_>, u64) -> i64) {
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    assert_eq!(root.on(l::__NR_chmod, "/tmp", &[0o777]), 0);
    raise_limits(&root);
    serves_root(&world, &root);
    bury(&world);
    given_back::limit(HEAP);
    let head = root.fork();
    head.lose_privileges();
    let mut family = vec![head];
    let mut number = 0;
    let mut refused = 0;
    while let Some(member) = family.last() {
        let mut refusals = 0;
        for _ in 0..ROUNDS {
            number += 1;
            if member.thread.doing.get() == Doing::Ended {
                break;
            }
            refusals += u32::from(round(member, number) < 0);
            if refusals > REFUSALS {
                break;
            }
        }
        refused += refusals;
        if family[0].thread.doing.get() == Doing::Ended {
            break;
        }
        let child = family[0].call(l::__NR_fork, &[]);
        if child < 0 || family.len() > 40 {
            break;
        }
        let thread = world.thread(child as u64);
        world.next_event(&thread);
        let [first] = [&family[0]];
        family.push(first.with(&thread));
    }
    assert!(refused > 0, "nothing was refused in {number} rounds");
    serves_root(&world, &root);
    // User 0 ends what the user has.
    given_back::no_limit();
    let all: Vec<Rc<Thread>> = world.unix.processes.by_tid.borrow().values().cloned().collect();
    for thread in all.iter().filter(|thread| thread.process.user().uid == USER) {
        world.call(&world.first, l::__NR_kill, &[thread.process.number.into(), 9]);
    }
    drop((family, all));
    bury(&world);
    root.call(l::__NR_rename, &[root.path(0, b"/tmp"), root.path(1, b"/old")]);
    let user = world.unix.accounts.user(USER);
    for what in [What::PipePages, What::Signals, What::Flights, What::Ports] {
        assert_eq!(user.used(what), 0, "{what:?} of the user is left");
    }
}

fn two(program: &Program<'_>, number: u32, arguments: &[u64]) -> Result<(u64, u64), i64> {
    let at = program.buffer;
    let mut all = arguments.to_vec();
    all.push(at);
    match program.call(number, &all) {
        0 => {
            let both = program.world.read_u64(&program.thread, at);
            Ok((both & 0xffff_ffff, both >> 32))
        }
        error => Err(error),
    }
}

#[test]
fn open_files() {
    exhausts(|program, _| program.open("/tmp", l::O_RDONLY, 0));
}

#[test]
fn files_and_directories() {
    exhausts(|program, number| match number % 3 {
        0 => program.on(l::__NR_mkdir, &format!("/tmp/{number}"), &[0o755]),
        1 => program.on(l::__NR_mknod, &format!("/tmp/{number}"), &[0o100_644, 0]),
        _ => program.on_two(l::__NR_symlink, &"x".repeat(4000), &format!("/tmp/{number}")),
    });
}

#[test]
fn hard_links() {
    exhausts(|program, number| {
        if number == 1 {
            program.make("/tmp/one", b"");
        }
        program.on_two(l::__NR_link, "/tmp/one", &format!("/tmp/{}-{number}", "n".repeat(200)))
    });
}

#[test]
fn pages_of_files() {
    exhausts(|program, number| {
        let fd = program.open(&format!("/{}", number / 64), RDWR | CREAT, 0o644);
        if fd < 0 {
            return fd;
        }
        // Far from each other: the last page of the list, pages of chunks of their own.
        let page = if number % 2 == 0 { 1023 } else { 1024 + number * 64 };
        let arguments = [fd as u64, program.buffer, 100, page * PAGE];
        let result = program.call(l::__NR_pwrite64, &arguments);
        program.close(fd as u64);
        result
    });
}

#[test]
fn questions_to_the_kernel_and_processes_by_descriptor() {
    exhausts(|program, number| {
        if number.is_multiple_of(2) {
            let pid = u64::from(program.thread.process.number);
            return program.call(l::__NR_pidfd_open, &[pid, 0]);
        }
        let fd = program.call(l::__NR_socket, &[16, u64::from(n::SOCK_RAW | l::O_NONBLOCK), 0]);
        if fd < 0 {
            return fd;
        }
        // A dump of all interfaces, whose answer nobody reads.
        let mut request = [0; 32];
        request[..4].copy_from_slice(&32_u32.to_le_bytes());
        request[4..8].copy_from_slice(&[18, 0, 1, 3]);
        program.world.write(&program.thread, program.buffer, &request);
        for _ in 0..200 {
            if program.call(l::__NR_sendto, &[fd as u64, program.buffer, 32, 0, 0, 0]) < 0 {
                break;
            }
        }
        0
    });
}

#[test]
fn things_with_descriptors() {
    exhausts(|program, number| match number % 5 {
        0 => program.call(l::__NR_eventfd2, &[0, 0]),
        1 => program.call(l::__NR_timerfd_create, &[1, 0]),
        2 => program.on(l::__NR_memfd_create, "name", &[0]),
        3 => program.call(l::__NR_epoll_create1, &[0]),
        _ => program.call(l::__NR_signalfd4, &[u64::MAX, program.buffer, 8, 0]),
    });
}

#[test]
fn areas() {
    exhausts(|program, number| {
        let prot = [1, 3][number as usize % 2];
        program.call(l::__NR_mmap, &[0, PAGE, prot, 0x22, u64::MAX, 0])
    });
}

/// Touches pages far from each other.
fn touches(flags: u64) {
    let noreserve = u64::from(l::MAP_NORESERVE);
    exhausts(|program, _| {
        let arguments = [0, 1 << 30, 3, flags | noreserve, u64::MAX, 0];
        let at = program.call(l::__NR_mmap, &arguments);
        if at < 0 {
            return at;
        }
        let world = program.world;
        for index in 0..(1 << 30) / (64 * PAGE) {
            let address = at as u64 + index * 64 * PAGE;
            world.unix.page_fault(&program.thread, address, Access::WRITE);
            world.collect();
            while world.next_event(&program.thread).is_some() {}
            if program.thread.doing.get() == Doing::Ended {
                return -1;
            }
        }
        0
    });
}

#[test]
fn private_memory() {
    touches(0x22);
}

#[test]
fn shared_memory() {
    touches(0x21);
}

/// Programs use memory up by touching it, which no account refuses, until the greediest is
/// killed. Until then user 0 is served, too: with the last frames gone, a write to a pipe failed.
#[test]
fn shared_memory_while_it_is_used_up() {
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    let user = root.fork();
    user.lose_privileges();
    let arguments = [0, 1 << 30, 3, 0x21 | u64::from(l::MAP_NORESERVE), u64::MAX, 0];
    let at = user.call(l::__NR_mmap, &arguments) as u64;
    for page in 0..FRAMES as u64 {
        world.unix.page_fault(&user.thread, at + page * PAGE, Access::WRITE);
        world.collect();
        while world.next_event(&user.thread).is_some() {}
        if user.thread.doing.get() == Doing::Ended {
            return;
        }
        if page % 16 == 0 {
            let ends = world.words(&root.thread, &[0]);
            assert_eq!(root.call(l::__NR_pipe, &[ends]), 0, "with {page} pages");
            let both = world.read_u64(&root.thread, ends);
            assert_eq!(root.write(both >> 32, &[1; 5000]), 5000, "with {page} pages");
            for end in [both & 0xFFFF_FFFF, both >> 32] {
                root.call(l::__NR_close, &[end]);
            }
        }
    }
    panic!("nobody was killed");
}

#[test]
fn timers() {
    exhausts(|program, _| program.call(l::__NR_timer_create, &[1, 0, program.buffer]));
}

#[test]
fn queued_signals() {
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    let mask = world.words(&root.thread, &[u64::MAX]);
    assert_eq!(root.call(l::__NR_rt_sigprocmask, &[0, mask, 0, 8]), 0);
    let user = root.fork();
    user.lose_privileges();
    for number in 0..100_000_u64 {
        let pid = user.thread.process.number.into();
        assert_eq!(user.call(l::__NR_kill, &[pid, 34 + number % 30]), 0);
    }
    let limit = user.thread.process.limit(l::RLIMIT_SIGPENDING);
    let account = world.unix.accounts.user(USER);
    assert!(account.used(What::Signals) <= limit + 31);
    world.call(&world.first, l::__NR_kill, &[user.thread.process.number.into(), 9]);
    bury(&world);
    drop(user);
    assert_eq!(account.used(What::Signals), 0);
}

#[test]
fn record_locks() {
    exhausts(|program, number| {
        let fd = program.open(&format!("/tmp/{}", number / 4000), RDWR | CREAT, 0o644);
        if fd < 0 {
            return fd;
        }
        let mut result = 0;
        for index in 0..1000 {
            let start = (number * 1000 + index) * 2;
            let flock = [l::F_WRLCK.into(), start, 1, 0];
            let bytes: Vec<u8> = flock.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
            program.world.write(&program.thread, program.buffer, &bytes);
            let arguments = [fd as u64, l::F_OFD_SETLK.into(), program.buffer];
            result = program.call(l::__NR_fcntl, &arguments);
            if result < 0 {
                break;
            }
        }
        result
    });
}

#[test]
fn processes_and_threads() {
    exhausts(|program, number| {
        let flags = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
        let result = match number % 2 {
            0 => program.call(l::__NR_clone, &[flags, program.buffer, 0, 0, 0]),
            _ => program.call(l::__NR_fork, &[]),
        };
        if result > 0 {
            program.world.next_event(&program.world.thread(result as u64));
        }
        result
    });
}

#[test]
fn ended_processes_that_nobody_waits_for() {
    exhausts(|program, _| {
        let result = program.call(l::__NR_fork, &[]);
        if result > 0 {
            let child = program.world.thread(result as u64);
            program.world.next_event(&child);
            program.world.call(&child, l::__NR_exit_group, &[0]);
        }
        result
    });
}

#[test]
fn texts_of_proc() {
    exhausts(|program, number| {
        if number % 64 == 1 {
            program.call(l::__NR_mmap, &[0, PAGE, 1, 0x22, u64::MAX, 0]);
        }
        let fd = program.open("/proc/self/maps", l::O_RDONLY, 0);
        if fd < 0 {
            return fd;
        }
        program.call(l::__NR_read, &[fd as u64, program.buffer, 10])
    });
}
