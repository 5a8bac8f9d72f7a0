//! Leases: who may have one, who is told, who waits and for how long.

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR};
use linux_raw_sys::general as l;
use unix::errno::Errno;

const RDONLY: u32 = 0;

fn lease(root: &Program, fd: u64, kind: u32) -> i64 {
    root.call(l::__NR_fcntl, &[fd, l::F_SETLEASE.into(), kind.into()])
}

fn kind(root: &Program, fd: u64) -> u32 {
    root.call(l::__NR_fcntl, &[fd, l::F_GETLEASE.into()]) as u32
}

const AGAIN: i64 = -11;

#[test]
fn who_may_have_one() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    root.close(root.opened("/tmp/f", RDWR | CREAT));
    let written = root.opened("/tmp/f", RDWR);
    // Not for reading what somebody may write, nor alone where others are.
    assert_eq!(lease(&root, written, l::F_RDLCK), AGAIN);
    assert_eq!(lease(&root, written, l::F_WRLCK), 0);
    assert_eq!(kind(&root, written), l::F_WRLCK);
    assert_eq!(lease(&root, written, l::F_UNLCK), 0);
    assert_eq!(lease(&root, written, l::F_UNLCK), AGAIN);
    root.close(written);
    let (one, other) = (root.opened("/tmp/f", RDONLY), root.opened("/tmp/f", RDONLY));
    assert_eq!(lease(&root, one, l::F_WRLCK), AGAIN);
    assert_eq!([lease(&root, one, l::F_RDLCK), lease(&root, other, l::F_RDLCK)], [0, 0]);
    assert_eq!([kind(&root, one), kind(&root, other)], [l::F_RDLCK; 2]);
    // Readers disturb nobody.
    root.close(root.opened("/tmp/f", RDONLY));
    root.close(one);
    root.close(other);
    let again = root.opened("/tmp/f", RDONLY);
    assert_eq!(kind(&root, again), l::F_UNLCK);
    assert_eq!(lease(&root, again, 7), -22);
    let directory = root.opened("/tmp", RDONLY);
    assert_eq!(lease(&root, directory, l::F_RDLCK), -22);
    // Somebody else's file.
    root.on(l::__NR_chmod, "/tmp/f", &[0o666]);
    let first = &world.first;
    world.ok(first, l::__NR_setresuid, &[1000, 1000, 1000]);
    let arguments = [again, l::F_SETLEASE.into(), l::F_RDLCK.into()];
    world.refused(first, l::__NR_fcntl, &arguments, Errno::EACCES);
}

#[test]
fn who_opens_waits_and_the_holder_is_told() {
    let world = World::new();
    let first = &world.first;
    let root = Program::new(&world, first);
    root.close(root.opened("/tmp/f", RDWR | CREAT));
    let own = root.opened("/tmp/f", RDONLY);
    let mask = world.words(first, &[1 << (l::SIGIO - 1)]);
    world.ok(first, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
    assert_eq!(lease(&root, own, l::F_RDLCK), 0);
    let told = || {
        world.collect();
        let zero = world.words(first, &[0, 0]);
        world.now(first, l::__NR_rt_sigtimedwait, &[mask, 0, zero, 8]) == l::SIGIO.into()
    };
    let other = world.fork(first);
    world.ok(&other, l::__NR_close, &[own]);
    let path = world.text(&other, "/tmp/f");
    // Who does not wait is refused; the holder is told once.
    let quick = u64::from(l::O_WRONLY | l::O_NONBLOCK);
    world.refused(&other, l::__NR_open, &[path, quick], Errno::EAGAIN);
    assert!(told());
    world.refused(&other, l::__NR_open, &[path, quick], Errno::EAGAIN);
    assert!(!told());
    assert_eq!(kind(&root, own), l::F_UNLCK);
    assert_eq!(lease(&root, own, l::F_RDLCK), AGAIN);
    world.waits(&other, l::__NR_open, &[path, l::O_WRONLY.into()]);
    assert_eq!(lease(&root, own, l::F_UNLCK), 0);
    let fd = world.next_reply(&other).unwrap();
    world.ok(&other, l::__NR_close, &[fd]);
    // A lease for writing becomes one for reading where somebody reads.
    root.close(own);
    let own = root.opened("/tmp/f", RDWR);
    assert_eq!(lease(&root, own, l::F_WRLCK), 0);
    world.waits(&other, l::__NR_open, &[path, 0]);
    assert!(told());
    assert_eq!(kind(&root, own), l::F_RDLCK);
    // Whose file is closed has no lease.
    root.close(own);
    let fd = world.next_reply(&other).unwrap();
    world.ok(&other, l::__NR_close, &[fd]);
}

#[test]
fn nobody_waits_longer_than_the_break_time() {
    let world = World::new();
    let first = &world.first;
    let root = Program::new(&world, first);
    let setting = root.opened("/proc/sys/fs/lease-break-time", RDWR);
    root.write(setting, b"3");
    root.close(root.opened("/tmp/f", RDWR | CREAT));
    let own = root.opened("/tmp/f", RDONLY);
    let mask = world.words(first, &[1 << (l::SIGIO - 1)]);
    world.ok(first, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
    assert_eq!(lease(&root, own, l::F_RDLCK), 0);
    let other = world.fork(first);
    let path = world.text(&other, "/tmp/f");
    world.waits(&other, l::__NR_truncate, &[path, 0]);
    world.advance(2_900_000_000);
    assert_eq!(world.next_reply(&other), None);
    world.advance(200_000_000);
    assert_eq!(world.next_reply(&other), Some(0));
    assert_eq!(kind(&root, own), l::F_UNLCK);
    assert_eq!(lease(&root, own, l::F_RDLCK), 0);
}

#[test]
fn an_open_that_fails_leaves_no_writer_behind() {
    let world = World::new();
    let first = &world.first;
    let root = Program::new(&world, first);
    let name = world.text(first, "m");
    let sealed = world.ok(first, l::__NR_memfd_create, &[name, l::MFD_ALLOW_SEALING.into()]);
    let text = world.put(first, b"text");
    world.ok(first, l::__NR_write, &[sealed, text, 4]);
    let seals = [sealed, l::F_ADD_SEALS.into(), l::F_SEAL_SHRINK.into()];
    world.ok(first, l::__NR_fcntl, &seals);
    let path = world.text(first, &format!("/proc/self/fd/{sealed}"));
    let arguments = [path, (l::O_WRONLY | l::O_TRUNC).into()];
    world.refused(first, l::__NR_open, &arguments, Errno::EPERM);
    let read_only = world.ok(first, l::__NR_open, &[path, 0]);
    root.close(sealed);
    assert_eq!(lease(&root, read_only, l::F_RDLCK), 0);
}
