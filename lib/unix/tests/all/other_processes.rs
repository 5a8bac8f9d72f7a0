//! What one process does to another: pidfd, process_vm_readv and writev.

use crate::common::World;
use linux_raw_sys::general::*;
use unix::errno::Errno;

fn poll(world: &World, fd: u64) -> u64 {
    let fds = world.put(&world.first, &[fd as u8, 0, 0, 0, 1, 0, 0, 0]);
    world.ok(&world.first, __NR_poll, &[fds, 1, 0])
}

#[test]
fn a_pidfd_tells_of_the_end() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    let pid = u64::from(child.process.number);
    let fd = world.ok(first, __NR_pidfd_open, &[pid, 0]);
    assert_eq!(poll(&world, fd), 0);
    let watcher = world.fork(first);
    let fds = world.put(&watcher, &[fd as u8, 0, 0, 0, 1, 0, 0, 0]);
    world.waits(&watcher, __NR_poll, &[fds, 1, u64::MAX]);
    world.ok(first, __NR_pidfd_send_signal, &[fd, 0, 0, 0]);
    world.ok(first, __NR_pidfd_send_signal, &[fd, SIGKILL.into(), 0, 0]);
    assert_eq!(world.next_reply(&watcher), Some(1));
    assert_eq!(poll(&world, fd), 1);
    let info = world.scratch(first, 128);
    world.ok(first, __NR_waitid, &[P_PIDFD.into(), fd, info, WEXITED.into(), 0]);
    assert_eq!(world.read(first, info + 12 + 4, 4)[..2], pid.to_le_bytes()[..2]);
    // It is gone, and nobody else is mistaken for it.
    world.refused(
        first,
        __NR_waitid,
        &[P_PIDFD.into(), fd, info, WEXITED.into(), 0],
        Errno::ECHILD,
    );
    world.refused(first, __NR_pidfd_send_signal, &[fd, 0, 0, 0], Errno::ESRCH);
    assert_eq!(poll(&world, fd), 1);
}

#[test]
fn a_pidfd_is_of_a_process() {
    let world = World::new();
    let first = &world.first;
    let own = u64::from(first.process.number);
    world.refused(first, __NR_pidfd_open, &[0, 0], Errno::EINVAL);
    world.refused(first, __NR_pidfd_open, &[999, 0], Errno::ESRCH);
    world.refused(first, __NR_pidfd_open, &[own, 1], Errno::EINVAL);
    let fd = world.ok(first, __NR_pidfd_open, &[own, O_NONBLOCK.into()]);
    let other = world.ok(first, __NR_eventfd2, &[0, 0]);
    world.refused(first, __NR_pidfd_send_signal, &[other, 0, 0, 0], Errno::EBADF);
    world.refused(first, __NR_pidfd_send_signal, &[77, 0, 0, 0], Errno::EBADF);
    world.refused(first, __NR_pidfd_send_signal, &[fd, 0, 0, 1], Errno::EINVAL);
    let at = world.scratch(first, 16);
    world.refused(first, __NR_read, &[fd, at, 16], Errno::EINVAL);
    // Who does not wait does not wait for a child either.
    let child = world.fork(first);
    let pid = u64::from(child.process.number);
    let fd = world.ok(first, __NR_pidfd_open, &[pid, O_NONBLOCK.into()]);
    let info = world.scratch(first, 128);
    world.refused(
        first,
        __NR_waitid,
        &[P_PIDFD.into(), fd, info, WEXITED.into(), 0],
        Errno::EAGAIN,
    );
    world.refused(first, __NR_waitid, &[P_PIDFD.into(), 77, info, WEXITED.into(), 0], Errno::EBADF);
    // Others may not signal it.
    world.ok(first, __NR_setresuid, &[1000, 1000, 1000]);
    world.refused(first, __NR_pidfd_send_signal, &[fd, SIGKILL.into(), 0, 0], Errno::EPERM);
}

#[test]
fn memory_of_others_is_read_and_written() {
    let world = World::new();
    let first = &world.first;
    let text = world.put(first, b"of the parent");
    let child = world.fork(first);
    let pid = u64::from(child.process.number);
    world.write(&child, text, b"of the child!");
    let to = world.scratch(first, 32);
    let own = world.words(first, &[to, 6, to + 6, 26]);
    let other = world.words(first, &[text, 3, text + 3, 10]);
    assert_eq!(world.ok(first, __NR_process_vm_readv, &[pid, own, 2, other, 2, 0]), 13);
    assert_eq!(world.read(first, to, 13), b"of the child!");
    world.write(first, to, b"IN");
    assert_eq!(world.ok(first, __NR_process_vm_writev, &[pid, own, 1, other, 1, 0]), 3);
    assert_eq!(world.read(&child, text, 6), b"IN the"[..6]);
    assert_eq!(world.read(first, text, 2), b"of");
    let nowhere = world.words(first, &[8, 8]);
    world.refused(first, __NR_process_vm_readv, &[pid, own, 1, nowhere, 1, 0], Errno::EFAULT);
    world.refused(first, __NR_process_vm_readv, &[pid, own, 1, other, 1, 1], Errno::EINVAL);
    world.refused(first, __NR_process_vm_readv, &[pid, own, 1025, other, 1, 0], Errno::EINVAL);
    world.refused(first, __NR_process_vm_readv, &[999, own, 1, other, 1, 0], Errno::ESRCH);
    // What can be had is had.
    let cut = world.words(first, &[text, 3, 8, 8]);
    assert_eq!(world.ok(first, __NR_process_vm_readv, &[pid, own, 2, cut, 2, 0]), 3);
    world.ok(first, __NR_setresuid, &[1000, 1000, 1000]);
    world.refused(first, __NR_process_vm_readv, &[pid, own, 1, other, 1, 0], Errno::EPERM);
}
