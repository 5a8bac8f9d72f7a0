//! Sockets of native tasks: the other side of programs' streams.

use std::rc::Rc;

use linux_raw_sys::errno::{EAGAIN, ECONNREFUSED, ECONNRESET, ENXIO, EPIPE};
use linux_raw_sys::general::{
    __NR_accept, __NR_bind, __NR_close, __NR_connect, __NR_fcntl, __NR_getsockopt, __NR_listen,
    __NR_poll, __NR_read, __NR_socket, __NR_write, F_SETFL, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY,
};
use linux_raw_sys::net::{AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET};
use unix::errno::Errno;
use unix::stream::socket::{native, service};
use unix::thread::Thread;

use crate::common::World;
use crate::common::caller::{Program, error};
use crate::common::machine::Heard;

/// A native task, and two threads of it.
const TASK: u64 = 7;
const ONE: u64 = 71;
const TWO: u64 = 72;
const OTHER: u64 = 8;

fn world() -> World {
    let world = World::new();
    world.machine.services.borrow_mut().push(("post", 0o666));
    service::offer(&world.unix).unwrap();
    world
}

/// What a native task's thread has been told since the last time.
#[track_caller]
fn heard(world: &World, thread: u64) -> Heard {
    world.collect();
    let (asker, heard) = world.machine.told.borrow_mut().remove(0);
    assert_eq!(asker, thread);
    heard
}

fn nothing(world: &World) -> bool {
    world.collect();
    world.machine.told.borrow().is_empty()
}

fn receive(world: &World, socket: u64) -> Heard {
    native::receive(&world.unix, TASK, socket, ONE).unwrap();
    heard(world, ONE)
}

fn send(world: &World, socket: u64, bytes: &[u8]) -> Heard {
    native::send(&world.unix, TASK, socket, TWO, bytes).unwrap();
    heard(world, TWO)
}

fn address(world: &World, thread: &Rc<Thread>, path: &str) -> [u64; 2] {
    let mut bytes = (AF_UNIX as u16).to_le_bytes().to_vec();
    bytes.extend(path.as_bytes());
    [world.put(thread, &bytes), bytes.len() as u64]
}

fn stream(world: &World, thread: &Rc<Thread>) -> u64 {
    world.ok(thread, __NR_socket, &[AF_UNIX.into(), SOCK_STREAM.into(), 0])
}

/// A program's socket that listens at `path`.
fn program_listens(world: &World, path: &str) -> u64 {
    let fd = stream(world, &world.first);
    let [at, len] = address(world, &world.first, path);
    world.ok(&world.first, __NR_bind, &[fd, at, len]);
    world.ok(&world.first, __NR_listen, &[fd, 1]);
    fd
}

/// A program's stream to the service, and the native side of it.
fn connected(world: &World) -> (u64, u64) {
    let listener = native::listen(&world.unix, TASK, "post").unwrap();
    let fd = stream(world, &world.first);
    let [at, len] = address(world, &world.first, "/srv/post");
    world.ok(&world.first, __NR_connect, &[fd, at, len]);
    native::accept(&world.unix, TASK, listener, ONE).unwrap();
    let Heard::Accepted(socket, 0) = heard(world, ONE) else { panic!("not accepted") };
    (fd, socket)
}

fn poll(world: &World, fd: u64) -> u8 {
    let at = world.put(&world.first, &[&(fd as u32).to_le_bytes()[..], &[0x05, 0, 0, 0]].concat());
    world.ok(&world.first, __NR_poll, &[at, 1, 0]);
    world.read(&world.first, at + 6, 1)[0]
}

#[test]
fn bytes_go_both_ways() {
    let world = world();
    let (fd, socket) = connected(&world);
    let first = Program::new(&world, &world.first);
    assert_eq!(poll(&world, fd), 4, "writable");
    assert_eq!(first.write(fd, b"hello"), 5);
    assert_eq!(receive(&world, socket), Heard::Came(b"hello".to_vec()));
    assert_eq!(send(&world, socket, b"world"), Heard::Sent(5));
    assert_eq!(poll(&world, fd), 5, "readable, too");
    assert_eq!(first.read(fd, 100), b"world");
    // It is the system that a program talks to.
    let len = world.put(&world.first, &12u32.to_le_bytes());
    let to = world.scratch(&world.first, 12);
    let (level, option) = (SOL_SOCKET.into(), SO_PEERCRED.into());
    world.ok(&world.first, __NR_getsockopt, &[fd, level, option, to, len]);
    assert_eq!(world.read(&world.first, to, 12), [0; 12]);
    // Each side may end its own direction.
    native::shut(&world.unix, TASK, socket).unwrap();
    assert_eq!(first.read(fd, 100), b"");
    assert_eq!(first.write(fd, b"still"), 5);
    assert_eq!(receive(&world, socket), Heard::Came(b"still".to_vec()));
    first.close(fd);
    assert_eq!(receive(&world, socket), Heard::Came(Vec::new()));
    assert_eq!(send(&world, socket, b"x"), Heard::Refused(Errno::EPIPE));
}

#[test]
fn a_native_task_waits_until_a_program_acts() {
    let world = world();
    let listener = native::listen(&world.unix, TASK, "post").unwrap();
    native::accept(&world.unix, TASK, listener, ONE).unwrap();
    assert!(nothing(&world));
    let first = Program::new(&world, &world.first);
    let fd = first.opened("/srv/post", O_RDWR);
    let Heard::Accepted(socket, 0) = heard(&world, ONE) else { panic!("not accepted") };
    native::receive(&world.unix, TASK, socket, ONE).unwrap();
    assert!(nothing(&world));
    // Another thread is told that one waits already; the one that asks again is not.
    assert_eq!(native::receive(&world.unix, TASK, socket, TWO), Err(Errno::EBUSY));
    native::receive(&world.unix, TASK, socket, ONE).unwrap();
    assert_eq!(first.write(fd, b"now"), 3);
    assert_eq!(heard(&world, ONE), Heard::Came(b"now".to_vec()));
    assert!(nothing(&world), "one answer");
    // A program that waits goes on when the task acts.
    let to = world.scratch(&world.first, 8);
    world.waits(&world.first, __NR_read, &[fd, to, 8]);
    assert_eq!(send(&world, socket, b"then"), Heard::Sent(4));
    assert_eq!(world.next_reply(&world.first), Some(4));
}

#[test]
fn who_does_not_read_stops_only_who_writes_to_him() {
    let world = world();
    let (fd, socket) = connected(&world);
    let first = Program::new(&world, &world.first);
    // The program does not read: the task's thread waits, when the inbox is full.
    let chunk = [b'x'; native::CHUNK];
    let mut sent = 0;
    loop {
        native::send(&world.unix, TASK, socket, TWO, &chunk).unwrap();
        if nothing(&world) {
            break;
        }
        let Heard::Sent(count) = heard(&world, TWO) else { panic!("refused") };
        sent += count as usize;
        assert!(sent < 1 << 20, "without an end");
    }
    assert_eq!(first.write(fd, b"other way"), 9, "the program goes on");
    assert_eq!(receive(&world, socket), Heard::Came(b"other way".to_vec()));
    let mut read = 0;
    while read < sent {
        read += first.read(fd, 65_536).len();
    }
    let Heard::Sent(count) = heard(&world, TWO) else { panic!("refused") };
    assert!(count > 0);
    // The task does not read: the program waits.
    world.ok(&world.first, __NR_fcntl, &[fd, 4, O_NONBLOCK.into()]);
    assert_eq!(F_SETFL, 4);
    let mut written = 0;
    let refused = loop {
        match first.write(fd, &[b'y'; 4096]) {
            count if count > 0 => written += count,
            refused => break refused,
        }
    };
    assert_eq!(refused, error(EAGAIN));
    assert_eq!(poll(&world, fd) & 4, 0, "not writable");
    while written > 0 {
        let Heard::Came(bytes) = receive(&world, socket) else { panic!("refused") };
        written -= bytes.len() as i64;
    }
    assert_eq!(poll(&world, fd) & 4, 4);
}

#[test]
fn what_a_thread_does_not_take_is_not_lost() {
    let world = world();
    let (fd, socket) = connected(&world);
    let first = Program::new(&world, &world.first);
    native::receive(&world.unix, TASK, socket, ONE).unwrap();
    world.machine.impatient.borrow_mut().push(ONE);
    assert_eq!(first.write(fd, b"kept"), 4);
    assert!(nothing(&world));
    world.machine.impatient.borrow_mut().clear();
    assert_eq!(receive(&world, socket), Heard::Came(b"kept".to_vec()));
}

#[test]
fn who_asks_for_something_else_has_given_up_waiting() {
    let world = world();
    let (fd, socket) = connected(&world);
    let first = Program::new(&world, &world.first);
    native::receive(&world.unix, TASK, socket, ONE).unwrap();
    native::accept(&world.unix, TASK, 1, ONE).unwrap();
    assert_eq!(first.write(fd, b"later"), 5);
    assert!(nothing(&world), "it waits for a connection");
    native::receive(&world.unix, TASK, socket, TWO).unwrap();
    assert_eq!(heard(&world, TWO), Heard::Came(b"later".to_vec()));
}

#[test]
fn a_connection_that_nobody_hears_of_ends() {
    let world = world();
    let listener = native::listen(&world.unix, TASK, "post").unwrap();
    native::accept(&world.unix, TASK, listener, ONE).unwrap();
    world.machine.impatient.borrow_mut().push(ONE);
    let first = Program::new(&world, &world.first);
    let fd = first.opened("/srv/post", O_RDWR);
    assert_eq!(first.read(fd, 8), b"");
}

#[test]
fn a_service_is_opened_as_a_file() {
    let world = world();
    let first = Program::new(&world, &world.first);
    assert_eq!(first.open("/srv/post", O_RDONLY, 0), error(ENXIO));
    let listener = native::listen(&world.unix, TASK, "post").unwrap();
    let (reads, writes) =
        (first.opened("/srv/post", O_RDONLY), first.opened("/srv/post", O_WRONLY));
    let mut sockets = Vec::new();
    for _ in 0..2 {
        native::accept(&world.unix, TASK, listener, ONE).unwrap();
        let Heard::Accepted(socket, 0) = heard(&world, ONE) else { panic!("not accepted") };
        sockets.push(socket);
    }
    // Who only reads has said all it will; to who only writes nothing can be said.
    assert_eq!(receive(&world, sockets[0]), Heard::Came(Vec::new()));
    assert_eq!(send(&world, sockets[0], b"time"), Heard::Sent(4));
    assert_eq!(first.read(reads, 8), b"time");
    assert_eq!(send(&world, sockets[1], b"time"), Heard::Refused(Errno::EPIPE));
    assert_eq!(first.write(writes, b"set"), 3);
    assert_eq!(receive(&world, sockets[1]), Heard::Came(b"set".to_vec()));
    native::close(&world.unix, TASK, sockets[0]);
    assert_eq!(first.read(reads, 8), b"", "the end");
}

#[test]
fn a_native_task_finds_a_programs_socket() {
    let world = world();
    assert_eq!(native::connect(&world.unix, TASK, "/tmp/desk"), Err(Errno::ENOENT));
    let listening = program_listens(&world, "/tmp/desk");
    let first = Program::new(&world, &world.first);
    first.on_two(linux_raw_sys::general::__NR_symlink, "/tmp/desk", "/link");
    for path in ["tmp/desk", "/tmp/../tmp/desk", "/link", "", "/", "/tmp/none/"] {
        assert!(native::connect(&world.unix, TASK, path).is_err(), "{path}");
    }
    first.make("/plain", b"");
    assert_eq!(native::connect(&world.unix, TASK, "/plain"), Err(Errno::ECONNREFUSED));
    assert_eq!(native::connect(&world.unix, TASK, "/srv/post"), Err(Errno::ECONNREFUSED));
    let (socket, uid) = native::connect(&world.unix, TASK, "/tmp/desk").unwrap();
    assert_eq!(uid, 0);
    assert_eq!(send(&world, socket, b"ahead"), Heard::Sent(5), "before it is accepted");
    let fd = world.ok(&world.first, __NR_accept, &[listening, 0, 0]);
    assert_eq!(first.read(fd, 8), b"ahead");
    assert_eq!(first.write(fd, b"reply"), 5);
    assert_eq!(receive(&world, socket), Heard::Came(b"reply".to_vec()));
    // A backlog of one, and one more.
    for _ in 0..2 {
        native::connect(&world.unix, TASK, "/tmp/desk").unwrap();
    }
    assert_eq!(native::connect(&world.unix, TASK, "/tmp/desk"), Err(Errno::EAGAIN));
    // The program ends with bytes unread: said once, then it is the end.
    assert_eq!(send(&world, socket, b"lost"), Heard::Sent(4));
    world.ok(&world.first, __NR_close, &[fd]);
    assert_eq!(receive(&world, socket), Heard::Refused(Errno::ECONNRESET));
    assert_eq!(receive(&world, socket), Heard::Came(Vec::new()));
}

#[test]
fn sockets_are_their_owners_and_end_with_it() {
    let world = world();
    let (fd, socket) = connected(&world);
    let unix = &world.unix;
    assert_eq!(native::listen(unix, OTHER, "none"), Err(Errno::ENOENT));
    assert_eq!(native::listen(unix, OTHER, "post"), Err(Errno::EADDRINUSE));
    for number in 0..socket + 2 {
        assert_eq!(native::receive(unix, OTHER, number, 81), Err(Errno::EBADF));
        assert_eq!(native::send(unix, OTHER, number, 81, b"x"), Err(Errno::EBADF));
        assert_eq!(native::accept(unix, OTHER, number, 81), Err(Errno::EBADF));
        assert_eq!(native::shut(unix, OTHER, number), Err(Errno::EBADF));
        native::close(unix, OTHER, number);
    }
    // A listener carries nothing, a connection accepts nobody.
    assert_eq!(native::receive(unix, TASK, 1, ONE), Err(Errno::EBADF));
    assert_eq!(native::accept(unix, TASK, socket, ONE), Err(Errno::EBADF));
    let first = Program::new(&world, &world.first);
    let waiting = first.opened("/srv/post", O_RDWR);
    native::receive(unix, TASK, socket, ONE).unwrap();
    native::forget(unix, TASK);
    assert_eq!(heard(&world, ONE), Heard::Refused(Errno::EBADF));
    assert_eq!(first.read(fd, 8), b"");
    assert_eq!(first.write(fd, b"x"), error(EPIPE));
    let to = world.scratch(&world.first, 8);
    assert_eq!(
        world.now(&world.first, __NR_read, &[waiting, to, 8]) as i64,
        error(ECONNRESET),
        "nobody has accepted it"
    );
    let again = stream(&world, &world.first);
    let [at, len] = address(&world, &world.first, "/srv/post");
    let refused = world.now(&world.first, __NR_connect, &[again, at, len]) as i64;
    assert_eq!(refused, error(ECONNREFUSED));
    // Its next life listens anew.
    native::listen(unix, OTHER, "post").unwrap();
    world.ok(&world.first, __NR_connect, &[again, at, len]);
}

#[test]
fn there_are_so_many_each_and_who_connects_waits() {
    let world = world();
    let listener = native::listen(&world.unix, TASK, "post").unwrap();
    let first = Program::new(&world, &world.first);
    let mut opened = Vec::new();
    for _ in 1..native::EACH {
        opened.push(first.opened("/srv/post", O_RDWR));
        native::accept(&world.unix, TASK, listener, ONE).unwrap();
        let Heard::Accepted(..) = heard(&world, ONE) else { panic!("not accepted") };
    }
    let last = first.opened("/srv/post", O_RDWR);
    native::accept(&world.unix, TASK, listener, ONE).unwrap();
    assert_eq!(heard(&world, ONE), Heard::Refused(Errno::EMFILE));
    // The one that waits is accepted as soon as there is room.
    native::close(&world.unix, TASK, 2);
    native::accept(&world.unix, TASK, listener, ONE).unwrap();
    let Heard::Accepted(socket, 0) = heard(&world, ONE) else { panic!("not accepted") };
    assert_eq!(first.write(last, b"at last"), 7);
    assert_eq!(receive(&world, socket), Heard::Came(b"at last".to_vec()));
    // Sixteen wait; the next one, too, but in its call.
    let waiting: Vec<u64> = (0..16).map(|_| first.opened("/srv/post", O_RDWR)).collect();
    assert_eq!(first.open("/srv/post", O_RDWR | O_NONBLOCK, 0), error(EAGAIN));
    let path = first.path(0, b"/srv/post");
    world.waits(&world.first, linux_raw_sys::general::__NR_open, &[path, O_RDWR.into(), 0]);
    native::close(&world.unix, TASK, 3);
    native::accept(&world.unix, TASK, listener, ONE).unwrap();
    let Heard::Accepted(..) = heard(&world, ONE) else { panic!("not accepted") };
    assert!(world.next_reply(&world.first).is_some_and(|fd| fd as i64 > 0));
    assert_eq!(waiting.len(), 16);
}

#[test]
fn nothing_of_them_is_left() {
    let world = world();
    let unix = &world.unix;
    // What a process has from its first call on.
    let (fd, _) = connected(&world);
    world.ok(&world.first, __NR_close, &[fd]);
    native::forget(unix, TASK);
    let user = unix.accounts.user(0);
    let used = |what| user.used(what);
    let before = (used(unix::account::What::Heap), used(unix::account::What::Frames));
    let (fd, socket) = connected(&world);
    assert_eq!(send(&world, socket, b"x"), Heard::Sent(1));
    let from = world.put(&world.first, b"y");
    world.ok(&world.first, __NR_write, &[fd, from, 1]);
    world.ok(&world.first, __NR_close, &[fd]);
    native::forget(unix, TASK);
    let after = (used(unix::account::What::Heap), used(unix::account::What::Frames));
    assert_eq!(before, after);
    assert!(unix.run_queue.is_empty());
}
