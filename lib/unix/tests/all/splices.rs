//! splice, tee, vmsplice: from pipe to file and back without the program's memory.

use crate::common::World;
use linux_raw_sys::general::*;
use unix::errno::Errno;

const NONBLOCK: u64 = 2;

fn pipe(world: &World) -> [u64; 2] {
    let at = world.scratch(&world.first, 8);
    world.ok(&world.first, __NR_pipe2, &[at, 0]);
    let bytes = world.read(&world.first, at, 8);
    [0, 4].map(|i| u64::from(u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap())))
}

fn file(world: &World, name: &[u8], content: &[u8]) -> u64 {
    let path = world.put(&world.first, &[name, b"\0"].concat());
    let flags = u64::from(O_RDWR | O_CREAT);
    let fd = world.ok(&world.first, __NR_open, &[path, flags, 0o600]);
    let from = world.put(&world.first, content);
    world.ok(&world.first, __NR_pwrite64, &[fd, from, content.len() as u64, 0]);
    fd
}

fn content(world: &World, fd: u64) -> Vec<u8> {
    let to = world.scratch(&world.first, 100_000);
    let len = world.ok(&world.first, __NR_pread64, &[fd, to, 100_000, 0]);
    world.read(&world.first, to, len as usize)
}

#[test]
fn a_file_goes_through_a_pipe_into_another() {
    let world = World::new();
    let first = &world.first;
    let data: Vec<u8> = (0..90_000_u32).map(|i| (i * 7 + i / 256) as u8).collect();
    let (one, two) = (file(&world, b"/one", &data), file(&world, b"/two", b""));
    let [reader, writer] = pipe(&world);
    let offset = world.words(first, &[0]);
    // A pipe holds 64 KiB: the rest waits for room.
    let all = data.len() as u64;
    assert_eq!(world.ok(first, __NR_splice, &[one, offset, writer, 0, all, 0]), 65_536);
    assert_eq!(world.read(first, offset, 8), 65_536_u64.to_le_bytes());
    let child = world.fork(first);
    world.waits(&child, __NR_splice, &[one, offset, writer, 0, all, 0]);
    world.refused(first, __NR_splice, &[one, offset, writer, 0, all, NONBLOCK], Errno::EAGAIN);
    assert_eq!(world.ok(first, __NR_splice, &[reader, 0, two, 0, all, 0]), 65_536);
    assert_eq!(world.next_reply(&child), Some(all - 65_536));
    assert_eq!(world.ok(first, __NR_splice, &[reader, 0, two, 0, all, 0]), all - 65_536);
    assert!(content(&world, two) == data);
    world.refused(first, __NR_splice, &[reader, 0, two, 0, 1, NONBLOCK], Errno::EAGAIN);
    world.waits(&child, __NR_splice, &[reader, 0, two, 0, 9, 0]);
    world.ok(first, __NR_splice, &[one, 0, writer, 0, 3, 0]);
    assert_eq!(world.next_reply(&child), Some(3));
}

#[test]
fn what_cannot_be_spliced_is_refused() {
    let world = World::new();
    let first = &world.first;
    let (one, two) = (file(&world, b"/one", b"abc"), file(&world, b"/two", b""));
    let [reader, writer] = pipe(&world);
    let offset = world.words(first, &[0]);
    let eventfd = world.ok(first, __NR_eventfd2, &[3, 0]);
    assert_eq!(world.ok(first, __NR_splice, &[99, 0, 99, 0, 0, 0]), 0);
    for (arguments, errno) in [
        ([one, 0, two, 0, 1, 0], Errno::EINVAL),
        ([one, 0, writer, 0, 1, 16], Errno::EINVAL),
        ([one, 0, 99, 0, 1, 0], Errno::EBADF),
        ([one, 0, reader, 0, 1, 0], Errno::EBADF),
        ([writer, 0, two, 0, 1, 0], Errno::EBADF),
        ([one, 0, writer, offset, 1, 0], Errno::ESPIPE),
        ([reader, offset, two, 0, 1, 0], Errno::ESPIPE),
        ([one, 8, writer, 0, 1, 0], Errno::EFAULT),
        ([reader, 0, writer, 0, 1, 0], Errno::EINVAL),
        ([eventfd, 0, writer, 0, 1, 0], Errno::EINVAL),
    ] {
        world.refused(first, __NR_splice, &arguments, errno);
    }
    world.refused(first, __NR_tee, &[one, writer, 1, 0], Errno::EINVAL);
    world.refused(first, __NR_tee, &[reader, writer, 1, 0], Errno::EINVAL);
    world.refused(first, __NR_tee, &[reader, reader, 1, 0], Errno::EBADF);
    let text = world.put(first, b"abc");
    let iov = world.words(first, &[text, 3]);
    world.refused(first, __NR_vmsplice, &[one, iov, 1, 0], Errno::EBADF);
    world.refused(first, __NR_vmsplice, &[writer, iov, 1, 16], Errno::EINVAL);
    world.refused(first, __NR_vmsplice, &[writer, iov, 1025, 0], Errno::EINVAL);
    // Append mode is not for splice.
    world.ok(first, __NR_fcntl, &[two, F_SETFL.into(), O_APPEND.into()]);
    world.ok(first, __NR_write, &[writer, text, 3]);
    world.refused(first, __NR_splice, &[reader, 0, two, 0, 3, 0], Errno::EINVAL);
    // Nothing was lost.
    let to = world.scratch(first, 8);
    assert_eq!(world.ok(first, __NR_read, &[reader, to, 8]), 3);
}

#[test]
fn tee_leaves_what_it_copies() {
    let world = World::new();
    let first = &world.first;
    let ([from, to_from], [to, to_to]) = (pipe(&world), pipe(&world));
    let text = world.put(first, b"hello");
    let iov = world.words(first, &[text, 2, text + 2, 3]);
    assert_eq!(world.ok(first, __NR_vmsplice, &[to_from, iov, 2, 0]), 5);
    assert_eq!(world.ok(first, __NR_tee, &[from, to_to, 100, 0]), 5);
    assert_eq!(world.ok(first, __NR_splice, &[from, 0, to_to, 0, 2, 0]), 2);
    let at = world.scratch(first, 16);
    let into = world.words(first, &[at, 16]);
    assert_eq!(world.ok(first, __NR_vmsplice, &[to, into, 1, 0]), 7);
    assert_eq!(world.read(first, at, 7), b"hellohe");
    assert_eq!(world.ok(first, __NR_read, &[from, at, 16]), 3);
    world.refused(first, __NR_tee, &[from, to_to, 1, NONBLOCK], Errno::EAGAIN);
    world.ok(first, __NR_close, &[to_from]);
    assert_eq!(world.ok(first, __NR_tee, &[from, to_to, 1, 0]), 0);
    // Nobody reads: the pipe is broken.
    world.ok(first, __NR_close, &[to]);
    world.ok(first, __NR_rt_sigaction, &[SIGPIPE.into(), world.words(first, &[1, 0, 0, 0]), 0, 8]);
    world.refused(first, __NR_vmsplice, &[to_to, iov, 2, 0], Errno::EPIPE);
}

#[test]
fn vmsplice_waits_for_room_and_not_for_more() {
    let world = World::new();
    let first = &world.first;
    let [reader, writer] = pipe(&world);
    let long = world.ok(first, __NR_mmap, &[0, 200_000, 3, 0x22, u64::MAX, 0]);
    let iov = world.words(first, &[long, 200_000]);
    assert_eq!(world.ok(first, __NR_vmsplice, &[writer, iov, 1, 0]), 65_536);
    let child = world.fork(first);
    world.waits(&child, __NR_vmsplice, &[writer, iov, 1, 0]);
    assert_eq!(world.ok(first, __NR_read, &[reader, long, 8192]), 8192);
    assert_eq!(world.next_reply(&child), Some(8192));
    // A setting is read and written by way of a pipe.
    assert_eq!(world.ok(first, __NR_read, &[reader, long, 200_000]), 65_536);
    let path = world.text(first, "/proc/sys/kernel/domainname");
    let file = world.ok(first, __NR_open, &[path, O_RDWR.into()]);
    let name = world.put(first, b"where.it.is");
    world.ok(first, __NR_write, &[writer, name, 11]);
    assert_eq!(world.ok(first, __NR_splice, &[reader, 0, file, 0, 11, 0]), 11);
    let again = world.ok(first, __NR_open, &[path, 0]);
    assert_eq!(world.ok(first, __NR_splice, &[again, 0, writer, 0, 100, 0]), 12);
    assert_eq!(world.ok(first, __NR_read, &[reader, long, 100]), 12);
    assert_eq!(world.read(first, long, 12), b"where.it.is\n");
}
