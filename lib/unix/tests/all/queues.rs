//! POSIX message queues.

use linux_raw_sys::{errno, general as l};

use crate::common::World;
use crate::common::caller::{Program, error};

fn open(program: &Program<'_>, name: &str, flags: u32, attributes: u64) -> i64 {
    program.on(l::__NR_mq_open, name, &[flags.into(), 0o600, attributes])
}

fn send(program: &Program<'_>, queue: u64, text: &[u8], priority: u64) -> i64 {
    let at = program.world.put(&program.thread, text);
    program.call(l::__NR_mq_timedsend, &[queue, at, text.len() as u64, priority, 0])
}

fn receive(program: &Program<'_>, queue: u64) -> (Vec<u8>, u32) {
    let priority = program.world.scratch(&program.thread, 4);
    let arguments = [queue, program.buffer, 8192, priority, 0];
    let len = program.call(l::__NR_mq_timedreceive, &arguments);
    let bytes = program.world.read(&program.thread, program.buffer, len as usize);
    (bytes, program.world.read_u32(&program.thread, priority))
}

const NEW: u32 = l::O_CREAT | l::O_EXCL | l::O_RDWR;

#[test]
fn the_most_urgent_message_comes_first() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let attributes = world.words(&root.thread, &[0, 3, 64, 0, 0, 0, 0, 0]);
    let queue = open(&root, "q", NEW | l::O_NONBLOCK, attributes) as u64;
    assert_eq!(open(&root, "q", NEW, 0), error(errno::EEXIST));
    assert_eq!(open(&root, "r", 0, 0), error(errno::ENOENT));
    assert_eq!(open(&root, "a/b", NEW, 0), error(errno::EACCES));
    assert_eq!(open(&root, &"n".repeat(256), NEW, 0), error(errno::ENAMETOOLONG));
    for (text, priority) in [(b"low", 1), (b"top", 9), (b"mid", 5)] {
        assert_eq!(send(&root, queue, text, priority), 0);
    }
    assert_eq!(send(&root, queue, b"more", 0), error(errno::EAGAIN));
    assert_eq!(send(&root, queue, &[0; 65], 0), error(errno::EMSGSIZE));
    assert_eq!(send(&root, queue, b"x", 32_768), error(errno::EINVAL));
    assert_eq!(root.call(l::__NR_mq_getsetattr, &[queue, 0, root.buffer]), 0);
    assert_eq!(world.read_u64(&root.thread, root.buffer + 24), 3, "messages");
    for (text, priority) in [("top", 9), ("mid", 5), ("low", 1)] {
        assert_eq!(receive(&root, queue), (text.as_bytes().to_vec(), priority));
    }
    let other = root.fork();
    other.lose_privileges();
    assert_eq!(open(&other, "q", l::O_RDWR, 0), error(errno::EACCES));
    assert_eq!(other.on(l::__NR_mq_unlink, "q", &[]), error(errno::EACCES));
    let large = world.words(&root.thread, &[0, 11, 64, 0, 0, 0, 0, 0]);
    assert_eq!(open(&other, "s", NEW, large), error(errno::EINVAL));
    assert_eq!(root.on(l::__NR_mq_unlink, "q", &[]), 0);
    assert_eq!(root.on(l::__NR_mq_unlink, "q", &[]), error(errno::ENOENT));
    assert_eq!(send(&root, queue, b"still there", 0), 0);
}

#[test]
fn waiting_and_being_told() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let queue = open(&root, "q", NEW, 0) as u64;
    let child = root.fork();
    let soon = world.words(&root.thread, &[1, 0]);
    let arguments = [queue, child.buffer, 8192, 0, 0];
    world.waits(&child.thread, l::__NR_mq_timedreceive, &arguments);
    assert_eq!(send(&root, queue, b"hello", 0), 0);
    assert_eq!(world.next_reply(&child.thread), Some(5));
    let late = [queue, root.buffer, 8192, 0, soon];
    assert_eq!(root.call(l::__NR_mq_timedreceive, &late), error(errno::ETIMEDOUT));
    // A signal, once, if nobody waits.
    let mask = world.words(&root.thread, &[u64::MAX]);
    assert_eq!(root.call(l::__NR_rt_sigprocmask, &[0, mask, 0, 8]), 0);
    let event = world.words(&root.thread, &[77, 10]);
    assert_eq!(root.call(l::__NR_mq_notify, &[queue, event]), 0);
    assert_eq!(root.call(l::__NR_mq_notify, &[queue, event]), error(errno::EBUSY));
    assert_eq!(send(&root, queue, b"hello", 0), 0);
    let info = root.buffer;
    assert_eq!(root.call(l::__NR_rt_sigtimedwait, &[mask, info, 0, 8]), 10);
    assert_eq!(world.read_u64(&root.thread, info + 24), 77);
    // A socket, as the library does it for a thread.
    receive(&root, queue);
    let socket = root.call(l::__NR_socket, &[16, 3, 0]) as u64;
    let cookie = world.put(&root.thread, &[7; 32]);
    let event = world.words(&root.thread, &[cookie, 2 << 32 | socket]);
    for (sends, why) in [(true, 1), (false, 2)] {
        assert_eq!(root.call(l::__NR_mq_notify, &[queue, event]), 0);
        match sends {
            true => assert_eq!(send(&root, queue, b"hello", 0), 0),
            false => assert_eq!(root.call(l::__NR_mq_notify, &[queue, 0]), 0),
        }
        let told = root.read(socket, 64);
        assert_eq!(told, [&[7; 31][..], &[why]].concat());
    }
    let wrong = world.words(&root.thread, &[0, 9 << 32]);
    assert_eq!(root.call(l::__NR_mq_notify, &[queue, wrong]), error(errno::EINVAL));
}

#[test]
fn a_queue_that_nobody_gets_is_not_there() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    let limits = world.words(&world.first, &[0, 4096]);
    let set = |limits| world.ok(&world.first, l::__NR_prlimit64, &[0, 7, limits, 0]);
    set(limits);
    assert_eq!(open(&root, "q", l::O_CREAT | l::O_RDWR, 0), -24);
    set(world.words(&world.first, &[1024, 4096]));
    assert_eq!(open(&root, "q", l::O_RDWR, 0), -2);
}
