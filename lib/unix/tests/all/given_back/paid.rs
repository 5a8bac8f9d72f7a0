//! What is there is paid for: its user has at least as many bytes in its account as the server has taken for it.

use linux_raw_sys::general as l;
use linux_raw_sys::net as n;
use unix::account::What;

use super::{LIVE, ends, ok, two};
use crate::common::World;
use crate::common::caller::{CREAT, Program, RDONLY, RDWR};

/// Things of each kind, and as many before them, so that tables have their size.
const MANY: usize = 200;
const BEFORE: usize = 10;
/// Bytes that may be missing for each, where tables grow.
const SLACK: isize = 16;

/// Makes one thing more, with a number that is new each time.
pub(super) type Make = fn(&Program<'_>, usize);

/// Bytes that nobody pays for of each of `many` things.
pub(super) fn unpaid(many: usize, make: Make) -> isize {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let limit = world.words(&program.thread, &[16_384, 16_384]);
    ok(&program, l::__NR_setrlimit, &[l::RLIMIT_NOFILE.into(), limit]);
    let account = world.unix.accounts.user(0);
    let unpaid = || LIVE.get() - account.used(What::Heap) as isize;
    (0..BEFORE).for_each(|number| make(&program, number));
    let before = unpaid();
    (BEFORE..BEFORE + many).for_each(|number| make(&program, number));
    (unpaid() - before) / many as isize
}

/// All of these are paid for.
#[track_caller]
fn are_paid(kinds: &[(&str, Make)]) {
    for (kind, make) in kinds {
        let unpaid = unpaid(MANY, *make);
        assert!(unpaid <= SLACK, "{unpaid} bytes of each are not paid for: {kind}");
    }
}

/// Puts words where calls find them.
pub(super) fn words(program: &Program<'_>, words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    program.world.write(&program.thread, program.buffer, &bytes);
    program.buffer
}

pub(super) fn file(program: &Program<'_>, number: usize) -> u64 {
    program.opened(&format!("/tmp/{number}"), RDWR | CREAT)
}

/// The longest name that differs by a number.
fn long(number: usize) -> String {
    format!("/tmp/{number:0255}")
}

#[test]
fn files_and_names() {
    are_paid(&[
        ("files", |program, number| program.close(file(program, number))),
        ("open files", |program, number| {
            file(program, number);
        }),
        ("long names", |program, number| program.make(&long(number), b"")),
        ("directories", |program, number| program.mkdir(&long(number))),
        ("links", |program, number| {
            assert_eq!(program.on_two(l::__NR_symlink, &"x".repeat(4000), &long(number)), 0);
        }),
        ("names of one file", |program, number| {
            program.close(file(program, 0));
            assert_eq!(program.on_two(l::__NR_link, "/tmp/0", &long(number + 1)), 0);
        }),
        ("files that were moved", |program, number| {
            program.make("/tmp/one", b"");
            assert_eq!(program.on_two(l::__NR_rename, "/tmp/one", &long(number)), 0);
        }),
        ("fifos that nobody has open", |program, number| {
            let mode = u64::from(l::S_IFIFO) | 0o644;
            assert_eq!(program.on(l::__NR_mknod, &long(number), &[mode, 0]), 0);
            program.close(program.opened(&long(number), RDWR));
        }),
        ("files that were locked", |program, number| {
            let file = file(program, number);
            ok(program, l::__NR_flock, &[file, 2]);
            program.close(file);
        }),
    ]);
}

/// A file that remembers where it was has nothing of the directory that it was in.
#[test]
fn files_that_were_in_directories_that_are_gone() {
    are_paid(&[("files", |program, number| {
        let directory = format!("/tmp/d{number:0200}");
        program.mkdir(&directory);
        program.close(file(program, number));
        assert_eq!(program.on_two(l::__NR_link, &format!("/tmp/{number}"), "/tmp/moves"), 0);
        let inside = format!("{directory}/{number:0250}");
        assert_eq!(program.on_two(l::__NR_rename, "/tmp/moves", &inside), 0);
        assert_eq!(program.on(l::__NR_unlink, &inside, &[]), 0);
        assert_eq!(program.on(l::__NR_rmdir, &directory, &[]), 0);
    })]);
}

/// A name of a file is opened, whose process ends meanwhile.
fn of_one_that_ends(program: &Program<'_>, name: &str) {
    let child = program.world.fork(&program.thread);
    program.opened(&format!("/proc/{}/{name}", child.process.number), RDONLY);
    ends(program, &child);
}

#[test]
fn files_of_proc() {
    are_paid(&[
        ("directories", |program, _| {
            program.opened("/proc/self/fd", RDONLY);
        }),
        ("names", |program, _| {
            program.opened("/proc/self/task/1/fdinfo", l::O_PATH);
        }),
        ("of the dead", |program, _| of_one_that_ends(program, "status")),
        ("directories of the dead", |program, _| of_one_that_ends(program, "task")),
        ("watched", |program, _| {
            let pid = program.world.fork(&program.thread).process.number;
            let inotify = 0;
            program.call(l::__NR_inotify_init, &[]);
            let path = program.path(0, format!("/proc/{pid}/fd").as_bytes());
            ok(program, l::__NR_inotify_add_watch, &[inotify, path, l::IN_OPEN.into()]);
        }),
    ]);
}

fn socket(program: &Program<'_>, family: u32, kind: u32) -> u64 {
    ok(program, l::__NR_socket, &[family.into(), (kind | l::O_NONBLOCK).into(), 0])
}

/// `call(fd, address, len)` with the bytes of an address.
fn with(program: &Program<'_>, number: u32, fd: u64, address: &[u8]) {
    program.world.write(&program.thread, program.buffer + 512, address);
    ok(program, number, &[fd, program.buffer + 512, address.len() as u64]);
}

fn local(start: &[u8], number: usize) -> Vec<u8> {
    [&[n::AF_UNIX as u8, 0], start, format!("{number:0100}").as_bytes()].concat()
}

/// `struct sockaddr_in` on the loopback.
fn internet(number: usize) -> Vec<u8> {
    let port = 2000 + number as u16;
    [&[n::AF_INET as u8, 0][..], &port.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat()
}

#[test]
fn sockets() {
    are_paid(&[
        ("of their own", |program, _| {
            socket(program, n::AF_UNIX, n::SOCK_DGRAM);
        }),
        ("of the Internet", |program, _| {
            socket(program, n::AF_INET6, n::SOCK_STREAM);
        }),
        ("with abstract names", |program, number| {
            let socket = socket(program, n::AF_UNIX, n::SOCK_DGRAM);
            with(program, l::__NR_bind, socket, &local(b"\0", number));
        }),
        ("whose names are left", |program, number| {
            let socket = socket(program, n::AF_UNIX, n::SOCK_DGRAM);
            with(program, l::__NR_bind, socket, &local(b"/tmp/", number));
            program.close(socket);
        }),
        ("that wait to be accepted, whose peers are gone", |program, number| {
            if number == 0 {
                let listener = socket(program, n::AF_UNIX, n::SOCK_STREAM);
                with(program, l::__NR_bind, listener, &local(b"\0", 0));
                ok(program, l::__NR_listen, &[listener, 4096]);
            }
            let client = socket(program, n::AF_UNIX, n::SOCK_STREAM);
            with(program, l::__NR_connect, client, &local(b"\0", 0));
            program.close(client);
        }),
    ]);
}

#[test]
fn messages_and_where_they_came_from() {
    are_paid(&[
        ("on the Internet", |program, number| {
            let to = socket(program, n::AF_INET, n::SOCK_DGRAM);
            with(program, l::__NR_bind, to, &internet(number));
            let from = socket(program, n::AF_INET, n::SOCK_DGRAM);
            with(program, l::__NR_connect, from, &internet(number));
            // What finds no room is lost.
            (0..400).for_each(|_| assert_eq!(program.write(from, b"x"), 1));
            program.close(from);
        }),
        ("of the kernel", |program, _| {
            let kind = u64::from(n::SOCK_RAW | l::O_NONBLOCK);
            let socket = ok(program, l::__NR_socket, &[n::AF_NETLINK.into(), kind, 0]);
            // A dump of all interfaces.
            let request = words(program, &[32 | 18 << 32 | 0x301 << 48, 0, 0, 0]);
            while program.call(l::__NR_sendto, &[socket, request, 32, 0, 0, 0]) == 32 {}
        }),
        ("in sequence", |program, _| {
            let kind = u64::from(n::SOCK_SEQPACKET | l::O_NONBLOCK);
            let [from, _] = two(program, l::__NR_socketpair, &[n::AF_UNIX.into(), kind, 0]);
            while program.call(l::__NR_write, &[from, program.buffer, 1]) == 1 {}
        }),
    ]);
}

#[test]
fn memory_in_common() {
    are_paid(&[
        ("of a family", |program, _| {
            let at = ok(program, l::__NR_mmap, &[0, 0x1000, 3, 0x21, u64::MAX, 0]);
            program.world.write(&program.thread, at, b"touched");
        }),
        ("of System V, removed and attached", |program, _| {
            let id = ok(program, l::__NR_shmget, &[0, 0x1000, 0o600]);
            let at = ok(program, l::__NR_shmat, &[id, 0, 0]);
            program.world.write(&program.thread, at, b"touched");
            ok(program, l::__NR_shmctl, &[id, 0, 0]);
        }),
    ]);
}

/// Each process has a table of its own, which one high number makes long.
#[test]
fn tables_of_descriptors() {
    are_paid(&[
        ("with a high number", |program, number| {
            if number == 0 {
                assert_eq!(two(program, l::__NR_pipe, &[]), [0, 1]);
            }
            let child = program.fork();
            ok(&child, l::__NR_dup2, &[0, 16_000]);
        }),
        ("after that", |program, number| {
            if number == 0 {
                assert_eq!(two(program, l::__NR_pipe, &[]), [0, 1]);
            }
            let child = program.fork();
            ok(&child, l::__NR_dup2, &[0, 16_000]);
            child.close(16_000);
        }),
    ]);
}

/// Threads that wait, each at a word of its own, and some that have.
#[test]
fn futexes() {
    are_paid(&[("with waiters", |program, number| {
        let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD;
        let tid = ok(program, l::__NR_clone, &[flags.into()]);
        let thread = program.world.thread(tid);
        program.world.next_event(&thread);
        let word = program.buffer + 4 * number as u64;
        let wait = u64::from(l::FUTEX_WAIT | l::FUTEX_PRIVATE_FLAG);
        assert_eq!(program.world.call(&thread, l::__NR_futex, &[word, wait, 0, 0]), None);
    })]);
}
