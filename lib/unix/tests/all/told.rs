//! Signals about files: `O_ASYNC`, `F_NOTIFY`, and who is told; packets in pipes.

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR};
use linux_raw_sys::general as l;
use std::rc::Rc;
use unix::errno::Errno;
use unix::thread::Thread;

/// A real-time signal.
const SIGNAL: u32 = 40;

/// From now on `thread` is not interrupted by signals about files.
fn block(world: &World, thread: &Rc<Thread>) {
    let mask = world.words(thread, &[1 << (SIGNAL - 1) | 1 << (l::SIGIO - 1)]);
    world.ok(thread, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
}

/// The signals about files that have come: number, code, band, descriptor.
fn told(world: &World, thread: &Rc<Thread>) -> Vec<(u64, u32, u64, u32)> {
    world.collect();
    let mask = world.words(thread, &[1 << (SIGNAL - 1) | 1 << (l::SIGIO - 1)]);
    let (info, zero) = (world.scratch(thread, 128), world.words(thread, &[0, 0]));
    let mut all = Vec::new();
    while let Some(signal) = world.call(thread, l::__NR_rt_sigtimedwait, &[mask, info, zero, 8]) {
        if signal as i64 == -11 {
            break;
        }
        let word = |at| world.read_u32(thread, info + at);
        all.push((signal, word(8), world.read_u64(thread, info + 16), word(24)));
    }
    all
}

fn pipe(world: &World, flags: u32) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, l::__NR_pipe2, &[at, flags.into()]);
    [0, 4].map(|i| world.read_u32(&world.first, at + i).into())
}

fn control(world: &World, fd: u64, command: u32, argument: u64) -> u64 {
    world.ok(&world.first, l::__NR_fcntl, &[fd, command.into(), argument])
}

#[test]
fn who_wants_it_is_told_of_bytes() {
    let world = World::new();
    let first = &world.first;
    block(&world, first);
    let [reader, writer] = pipe(&world, 0);
    let byte = world.put(first, b"x");
    control(&world, reader, l::F_SETFL, l::FASYNC.into());
    // Nobody is told as long as nobody is named.
    world.ok(first, l::__NR_write, &[writer, byte, 1]);
    assert_eq!(told(&world, first), []);
    let own = u64::from(first.process.number);
    control(&world, reader, l::F_SETOWN, own);
    assert_eq!(control(&world, reader, l::F_GETOWN, 0), own);
    world.ok(first, l::__NR_write, &[writer, byte, 1]);
    assert_eq!(told(&world, first), [(l::SIGIO.into(), 0x80, 0, 0)]);
    control(&world, reader, l::F_SETSIG, SIGNAL.into());
    world.ok(first, l::__NR_write, &[writer, byte, 1]);
    let bytes = (u64::from(SIGNAL), 1, 0x41, reader as u32);
    assert_eq!(told(&world, first), [bytes]);
    // A group, a thread, nobody, and the end.
    let group = u64::from(first.process.group.get().first());
    control(&world, reader, l::F_SETOWN, group.wrapping_neg());
    let told_of = world.now(first, l::__NR_fcntl, &[reader, l::F_GETOWN.into(), 0]);
    assert_eq!(told_of, group.wrapping_neg());
    world.ok(first, l::__NR_write, &[writer, byte, 1]);
    assert_eq!(told(&world, first), [bytes]);
    let record = world.words(first, &[u64::from(l::F_OWNER_TID) | own << 32]);
    control(&world, reader, l::F_SETOWN_EX, record);
    control(&world, reader, l::F_GETOWN_EX, record);
    assert_eq!(world.read_u64(first, record), u64::from(l::F_OWNER_TID) | own << 32);
    world.ok(first, l::__NR_write, &[writer, byte, 1]);
    assert_eq!(told(&world, first), [bytes]);
    world.ok(first, l::__NR_close, &[writer]);
    assert_eq!(told(&world, first), [(SIGNAL.into(), 6, 0x18, reader as u32)]);
    for (command, argument, errno) in [
        (l::F_SETOWN, 999, Errno::ESRCH),
        (l::F_SETOWN, 999_u64.wrapping_neg(), Errno::ESRCH),
        (l::F_SETOWN, 1 << 31, Errno::EINVAL),
        (l::F_SETOWN_EX, world.words(first, &[7]), Errno::EINVAL),
        (l::F_SETOWN_EX, 3, Errno::EFAULT),
        (l::F_SETSIG, 65, Errno::EINVAL),
    ] {
        world.refused(first, l::__NR_fcntl, &[reader, command.into(), argument], errno);
    }
}

#[test]
fn nobody_is_told_who_could_not_be_signalled() {
    let world = World::new();
    let first = &world.first;
    block(&world, first);
    let user = world.fork(first);
    world.ok(&user, l::__NR_setresgid, &[1000, 1000, 1000]);
    world.ok(&user, l::__NR_setresuid, &[1000, 1000, 1000]);
    let at = world.scratch(&user, 8);
    world.ok(&user, l::__NR_pipe2, &[at, 0]);
    let [reader, writer] = [0, 4].map(|i| u64::from(world.read_u32(&user, at + i)));
    let target = u64::from(first.process.number);
    world.ok(&user, l::__NR_fcntl, &[reader, l::F_SETOWN.into(), target]);
    world.ok(&user, l::__NR_fcntl, &[reader, l::F_SETFL.into(), l::FASYNC.into()]);
    let byte = world.put(&user, b"x");
    world.ok(&user, l::__NR_write, &[writer, byte, 1]);
    assert_eq!(told(&world, first), []);
    // Itself it may tell, and who is gone is nobody.
    let own = u64::from(user.process.number);
    world.ok(&user, l::__NR_fcntl, &[reader, l::F_SETOWN.into(), own]);
    world.ok(&user, l::__NR_write, &[writer, byte, 1]);
    assert_eq!(told(&world, &user).len(), 1);
}

#[test]
fn who_wants_it_is_told_of_a_directory() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let first = &world.first;
    block(&world, first);
    root.mkdir("/tmp/d");
    root.mkdir("/tmp/d/inner");
    let fd = root.opened("/tmp/d", 0);
    control(&world, fd, l::F_SETSIG, SIGNAL.into());
    let happens = (u64::from(SIGNAL), 3, 0x441, fd as u32);
    // Once.
    control(&world, fd, l::F_NOTIFY, l::DN_CREATE.into());
    root.close(root.opened("/tmp/d/f", RDWR | CREAT));
    root.close(root.opened("/tmp/d/g", RDWR | CREAT));
    assert_eq!(told(&world, first), [happens]);
    root.close(root.opened("/tmp/d/h", RDWR | CREAT));
    assert_eq!(told(&world, first), []);
    // Each time: its own attributes, and those of what is in it.
    control(&world, fd, l::F_NOTIFY, (l::DN_ATTRIB | l::DN_MULTISHOT).into());
    for path in ["/tmp/d", "/tmp/d/f", "/tmp/d/inner"] {
        assert_eq!(root.on(l::__NR_chmod, path, &[0o700]), 0);
        assert_eq!(told(&world, first), [happens], "{path}");
    }
    // Only what stays in it is renamed.
    control(&world, fd, l::F_NOTIFY, 0);
    control(&world, fd, l::F_NOTIFY, (l::DN_RENAME | l::DN_MULTISHOT).into());
    assert_eq!(root.on(l::__NR_chmod, "/tmp/d", &[0o700]), 0);
    assert_eq!(root.on_two(l::__NR_rename, "/tmp/d/f", "/tmp/d/inner/f"), 0);
    assert_eq!(root.on_two(l::__NR_rename, "/tmp/d/inner/f", "/tmp/d/k"), 0);
    assert_eq!(told(&world, first), []);
    assert_eq!(root.on_two(l::__NR_rename, "/tmp/d/k", "/tmp/d/f"), 0);
    assert_eq!(told(&world, first), [happens]);
    // A copy of the descriptor that is closed ends it, as on Linux.
    let other = world.ok(first, l::__NR_dup, &[fd]);
    root.close(other);
    assert_eq!(root.on_two(l::__NR_rename, "/tmp/d/f", "/tmp/d/k"), 0);
    assert_eq!(told(&world, first), []);
    let file = root.opened("/tmp/d/k", RDWR);
    let refused = [file, l::F_NOTIFY.into(), l::DN_CREATE.into()];
    world.refused(first, l::__NR_fcntl, &refused, Errno::ENOTDIR);
    // It ends with its directory, too.
    control(&world, fd, l::F_NOTIFY, (l::DN_CREATE | l::DN_MULTISHOT).into());
    root.close(fd);
    root.close(root.opened("/tmp/d/f", RDWR | CREAT));
    assert_eq!(told(&world, first), []);
}

#[test]
fn packets_come_out_as_they_went_in() {
    let world = World::new();
    let first = &world.first;
    let [reader, writer] = pipe(&world, l::O_DIRECT | l::O_NONBLOCK);
    let text = world.put(first, &[b'a'; 9000]);
    let to = world.scratch(first, 9000);
    for len in [3, 1, 5000] {
        assert_eq!(world.ok(first, l::__NR_write, &[writer, text, len]), len);
    }
    // One at a time; what does not fit is lost, what is larger than a page has become two.
    for (want, got) in [(100, 3), (0, 0), (9000, 1), (10, 10), (9000, 904)] {
        assert_eq!(world.ok(first, l::__NR_read, &[reader, to, want]), got, "{want}");
    }
    world.refused(first, l::__NR_read, &[reader, to, 1], Errno::EAGAIN);
    // As many packets as pages.
    let packets = std::iter::repeat_with(|| world.now(first, l::__NR_write, &[writer, text, 1]));
    assert_eq!(packets.take_while(|done| *done == 1).count(), 16);
    assert_eq!(world.ok(first, l::__NR_read, &[reader, to, 100]), 1);
    // Bytes behind packets are bytes.
    control(&world, writer, l::F_SETFL, l::O_NONBLOCK.into());
    for _ in 0..2 {
        assert_eq!(world.ok(first, l::__NR_write, &[writer, text, 4]), 4);
    }
    for _ in 0..15 {
        assert_eq!(world.ok(first, l::__NR_read, &[reader, to, 100]), 1);
    }
    assert_eq!(world.ok(first, l::__NR_read, &[reader, to, 3]), 3);
    assert_eq!(world.ok(first, l::__NR_read, &[reader, to, 100]), 5);
    // Moved elsewhere, they leave no border behind.
    control(&world, writer, l::F_SETFL, (l::O_NONBLOCK | l::O_DIRECT).into());
    assert_eq!(world.ok(first, l::__NR_write, &[writer, text, 10]), 10);
    let [there, here] = pipe(&world, l::O_NONBLOCK);
    assert_eq!(world.ok(first, l::__NR_splice, &[reader, 0, here, 0, 4, 0]), 4);
    assert_eq!(world.ok(first, l::__NR_read, &[there, to, 100]), 4);
    assert_eq!(world.ok(first, l::__NR_read, &[reader, to, 100]), 6);
}

#[test]
fn who_causes_it_is_told_before_its_call_returns() {
    let world = World::new();
    let first = &world.first;
    let root = Program::new(&world, first);
    root.mkdir("/tmp/d");
    let fd = root.opened("/tmp/d", 0);
    control(&world, fd, l::F_SETSIG, SIGNAL.into());
    control(&world, fd, l::F_NOTIFY, (l::DN_ATTRIB | l::DN_MULTISHOT).into());
    let stack = world.scratch(first, 16384) + 16384;
    world.machine.with(first.machine.get(), |thread| thread.registers.rsp = stack);
    let action = world.words(first, &[0x41_0000, l::SA_RESTORER.into(), 0x42_0000, 0]);
    world.ok(first, l::__NR_rt_sigaction, &[SIGNAL.into(), action, 0, 8]);
    let path = world.text(first, "/tmp/d");
    assert_eq!(world.call(first, l::__NR_chmod, &[path, 0o700]), None);
    assert_eq!(world.registers(first).rip, 0x41_0000);
}
