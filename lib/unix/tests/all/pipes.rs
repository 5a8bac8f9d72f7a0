//! Pipes: order, atomicity, ends, waiting; descriptors on the way.

use crate::common::World;
use linux_raw_sys::general::*;
use unix::errno::Errno;

/// A pipe: the reading and the writing descriptor.
fn pipe(world: &World, flags: u32) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_pipe2, &[at, flags.into()]);
    let bytes = world.read(&world.first, at, 8);
    [0, 4].map(|i| u64::from(u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap())))
}

#[test]
fn bytes_come_out_in_order() {
    let world = World::new();
    let [reader, writer] = pipe(&world, 0);
    let text = world.put(&world.first, b"hello, pipe");
    let to = world.scratch(&world.first, 64);
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, text, 5]), 5);
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, text + 5, 6]), 6);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, to, 4]), 4);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, to + 4, 64]), 7);
    assert_eq!(world.read(&world.first, to, 11), b"hello, pipe");
    world.ok(&world.first, __NR_close, &[writer]);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, to, 4]), 0);
    world.refused(&world.first, __NR_write, &[reader, text, 1], Errno::EBADF);
    world.refused(&world.first, __NR_write, &[writer, text, 1], Errno::EBADF);
    world.refused(&world.first, __NR_read, &[reader, u64::MAX, 8], Errno::EFAULT);
}

#[test]
fn a_reader_waits_for_the_writer() {
    let world = World::new();
    let [reader, writer] = pipe(&world, 0);
    let text = world.put(&world.first, b"x");
    let child = world.fork(&world.first);
    world.waits(&child, __NR_read, &[reader, text, 1]);
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, text, 1]), 1);
    assert_eq!(world.next_reply(&child), Some(1));
    // All writers gone: the end. The child's own writing end counts.
    world.ok(&child, __NR_close, &[writer]);
    world.waits(&child, __NR_read, &[reader, text, 1]);
    world.ok(&world.first, __NR_close, &[writer]);
    assert_eq!(world.next_reply(&child), Some(0));
}

#[test]
fn a_large_write_goes_on_as_room_is_made() {
    let world = World::new();
    let [reader, writer] = pipe(&world, 0);
    let len = 200_000;
    let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
    let from = world.put(&world.first, &data);
    let to = world.scratch(&world.first, len);
    let child = world.fork(&world.first);
    world.waits(&child, __NR_write, &[writer, from, len as u64]);
    let mut done = 0;
    while done < len {
        let count = world.ok(&world.first, __NR_read, &[reader, to + done as u64, 30_001]);
        assert!(count > 0);
        done += count as usize;
    }
    assert_eq!(world.next_reply(&child), Some(len as u64));
    assert!(world.read(&world.first, to, len) == data);
}

#[test]
fn small_writes_are_whole_or_wait() {
    let world = World::new();
    let [reader, writer] = pipe(&world, O_NONBLOCK);
    let from = world.scratch(&world.first, 70_000);
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, from, 70_000]), 65_536);
    world.refused(&world.first, __NR_write, &[writer, from, 1], Errno::EAGAIN);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, from, 100]), 100);
    world.refused(&world.first, __NR_write, &[writer, from, 101], Errno::EAGAIN);
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, from, 100]), 100);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, from, 10]), 10);
    // More than PIPE_BUF need not be whole.
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, from, 5000]), 10);
    assert_eq!(world.ok(&world.first, __NR_fcntl, &[reader, F_GETPIPE_SZ.into(), 0]), 65_536);
    world.refused(&world.first, __NR_fcntl, &[reader, F_SETPIPE_SZ.into(), 4096], Errno::EBUSY);
    assert_eq!(world.ok(&world.first, __NR_fcntl, &[writer, F_SETPIPE_SZ.into(), 70_000]), 131_072);
    assert_eq!(world.ok(&world.first, __NR_write, &[writer, from, 5000]), 5000);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, from, 70_000]), 70_000);
    assert_eq!(world.ok(&world.first, __NR_read, &[reader, from, 70_000]), 536);
    world.refused(&world.first, __NR_read, &[reader, from, 1], Errno::EAGAIN);
}

#[test]
fn writing_without_readers_signals() {
    let world = World::new();
    let [reader, writer] = pipe(&world, 0);
    let from = world.scratch(&world.first, 16);
    // Process 1 has no handler: the signal does not reach it, the error does.
    world.ok(&world.first, __NR_close, &[reader]);
    assert_eq!(
        world.call(&world.first, __NR_write, &[writer, from, 1]),
        Some(Errno::EPIPE.result())
    );
    let child = world.fork(&world.first);
    assert_eq!(world.call(&child, __NR_write, &[writer, from, 1]), None);
    assert_eq!(child.process().ended.get(), Some(SIGPIPE));
}

#[test]
fn descriptors_are_the_lowest_free() {
    let world = World::new();
    let pairs: Vec<_> = (0..4).map(|_| pipe(&world, 0)).collect();
    let first = pairs[0][0];
    assert_eq!(pairs.concat(), (first..first + 8).collect::<Vec<_>>());
    world.ok(&world.first, __NR_close, &[first + 5]);
    world.ok(&world.first, __NR_close, &[first + 2]);
    assert_eq!(world.ok(&world.first, __NR_dup, &[first]), first + 2);
    assert_eq!(world.ok(&world.first, __NR_fcntl, &[first, F_DUPFD.into(), 40]), 40);
    assert_eq!(world.ok(&world.first, __NR_dup, &[first]), first + 5);
    assert_eq!(world.ok(&world.first, __NR_dup2, &[first, 100]), 100);
    assert_eq!(world.ok(&world.first, __NR_dup2, &[100, 100]), 100);
    world.refused(&world.first, __NR_dup3, &[100, 100, 0], Errno::EINVAL);
    world.refused(&world.first, __NR_dup2, &[77, 100], Errno::EBADF);
    world.refused(&world.first, __NR_dup2, &[77, 77], Errno::EBADF);
    world.refused(&world.first, __NR_dup2, &[first, u64::from(u32::MAX)], Errno::EBADF);
    world.ok(&world.first, __NR_dup3, &[first, 101, O_CLOEXEC.into()]);
    assert_eq!(world.ok(&world.first, __NR_fcntl, &[101, F_GETFD.into(), 0]), 1);
    assert_eq!(world.ok(&world.first, __NR_fcntl, &[100, F_GETFD.into(), 0]), 0);
    world.ok(&world.first, __NR_close_range, &[40, 200, 0]);
    for fd in [40, 100, 101] {
        world.refused(&world.first, __NR_close, &[fd], Errno::EBADF);
    }
    world.refused(&world.first, __NR_close_range, &[9, 8, 0], Errno::EINVAL);
    world.refused(&world.first, __NR_lseek, &[first, 0, 0], Errno::ESPIPE);
    world.refused(&world.first, __NR_pread64, &[first, 0, 0, 0], Errno::ESPIPE);
    world.refused(&world.first, __NR_pread64, &[first, 0, 0, u64::MAX], Errno::EINVAL);
}

#[test]
fn vectors_gather_and_scatter() {
    let world = World::new();
    let [reader, writer] = pipe(&world, 0);
    let text = world.put(&world.first, b"abcdefgh");
    let to = world.scratch(&world.first, 16);
    let out = world.words(&world.first, &[text, 3, 0, 0, text + 3, 5]);
    assert_eq!(world.ok(&world.first, __NR_writev, &[writer, out, 3]), 8);
    let into = world.words(&world.first, &[to + 4, 4, to, 4]);
    assert_eq!(world.ok(&world.first, __NR_readv, &[reader, into, 2]), 8);
    assert_eq!(world.read(&world.first, to, 8), b"efghabcd");
    world.refused(&world.first, __NR_readv, &[reader, into, 1025], Errno::EINVAL);
    world.refused(&world.first, __NR_readv, &[reader, 0, 1], Errno::EFAULT);
    let bad = world.words(&world.first, &[to, u64::MAX]);
    world.refused(&world.first, __NR_readv, &[reader, bad, 1], Errno::EINVAL);
    assert_eq!(world.ok(&world.first, __NR_readv, &[reader, bad, 0]), 0);
}

#[test]
fn whom_a_fifo_waits_for_may_be_gone_before_its_turn() {
    let world = World::new();
    let reader = world.first.clone();
    let name = world.text(&reader, "/tmp/fifo");
    world.ok(&reader, __NR_mknod, &[name, 0o010_600, 0]);
    let writer = world.fork(&reader);
    world.waits(&reader, __NR_open, &[name, O_RDONLY.into(), 0]);
    // The reader's turn comes late: the writer does all it wants before.
    let at_once = |number: u32, arguments: [u64; 3]| {
        let [one, two, three] = arguments;
        world.unix.system_call(&writer, number, [one, two, three, 0, 0, 0]).expect("an answer")
    };
    let its_name = world.text(&writer, "/tmp/fifo");
    let text = world.put(&writer, b"left behind");
    let fd = at_once(__NR_open, [its_name, O_WRONLY.into(), 0]);
    assert_eq!(at_once(__NR_write, [fd, text, 11]), 11);
    assert_eq!(at_once(__NR_close, [fd, 0, 0]), 0);
    world.collect();
    let fd = world.next_reply(&reader).expect("the reader goes on");
    let to = world.scratch(&reader, 64);
    assert_eq!(world.ok(&reader, __NR_read, &[fd, to, 64]), 11);
    assert_eq!(world.read(&reader, to, 11), b"left behind");
    assert_eq!(world.ok(&reader, __NR_read, &[fd, to, 64]), 0);
    world.ok(&reader, __NR_close, &[fd]);
    // One that gave up waiting counts no more.
    let blocked = u64::from(O_WRONLY | O_NONBLOCK);
    world.refused(&writer, __NR_open, &[its_name, blocked, 0], Errno::ENXIO);
    world.waits(&reader, __NR_open, &[name, O_RDONLY.into(), 0]);
    let fd = world.ok(&writer, __NR_open, &[its_name, blocked, 0]);
    assert!(world.next_reply(&reader).is_some());
    world.ok(&writer, __NR_close, &[fd]);
}

#[test]
fn the_highest_capacity_is_a_setting() {
    let world = World::new();
    let first = &world.first;
    let path = world.text(first, "/proc/sys/fs/pipe-max-size");
    let setting = world.ok(first, __NR_open, &[path, 2]);
    let ends = world.scratch(first, 8);
    let capacity = |thread: &std::rc::Rc<unix::thread::Thread>| {
        world.ok(thread, __NR_pipe2, &[ends, 0]);
        let end = u64::from(world.read_u32(thread, ends));
        (end, world.ok(thread, __NR_fcntl, &[end, F_GETPIPE_SZ.into(), 0]))
    };
    let text = world.text(first, "5000");
    world.ok(first, __NR_write, &[setting, text, 4]);
    assert_eq!(capacity(first).1, 65_536);
    let user = world.fork(first);
    world.ok(&user, __NR_setuid, &[1000]);
    let (end, size) = capacity(&user);
    assert_eq!(size, 8192);
    let set = [end, F_SETPIPE_SZ.into(), 16_384];
    world.refused(&user, __NR_fcntl, &set, Errno::EPERM);
    let text = world.text(first, "2000000");
    world.refused(first, __NR_pwrite64, &[setting, text, 7, 0], Errno::EINVAL);
}
