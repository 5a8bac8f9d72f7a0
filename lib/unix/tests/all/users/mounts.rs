//! What may be mounted in a namespace of one's own, and what stays hidden there.

use super::{EINVAL, EPERM, as_root, owner, user};
use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

const NEWNS: u64 = l::CLONE_NEWNS as u64;
const ENOENT: i64 = -2;

pub(super) fn mount(program: &Program<'_>, from: &str, to: &str, kind: &str, flags: u32) -> i64 {
    let at = program.buffer + 1024;
    program.world.write(&program.thread, at, kind.as_bytes());
    program.world.write(&program.thread, at + kind.len() as u64, &[0]);
    let (from, to) = (program.path(0, from.as_bytes()), program.path(1, to.as_bytes()));
    program.call(l::__NR_mount, &[from, to, at, flags.into(), 0])
}

fn unmount(program: &Program<'_>, path: &str, flags: u32) -> i64 {
    program.on(l::__NR_umount2, path, &[flags.into()])
}

/// A world in which a mount hides a file: `/tmp/hidden/below`.
fn with_something_hidden(world: &World) -> Program<'_> {
    let first = Program::new(world, &world.first);
    first.mkdir("/tmp/hidden");
    first.make("/tmp/hidden/below", b"");
    assert_eq!(mount(&first, "none", "/tmp/hidden", "tmpfs", 0), 0);
    first.mkdir("/tmp/read-only");
    assert_eq!(mount(&first, "none", "/tmp/read-only", "tmpfs", l::MS_NOSUID), 0);
    let again = l::MS_REMOUNT | l::MS_BIND | l::MS_RDONLY | l::MS_NOSUID;
    assert_eq!(mount(&first, "none", "/tmp/read-only", "", again), 0);
    for at in ["/tmp/a", "/tmp/b"] {
        first.mkdir(at);
    }
    first
}

#[test]
fn file_systems_in_memory_can_be_mounted_for_oneself() {
    let world = World::new();
    let first = with_something_hidden(&world);
    let one = user(&first);
    as_root(&one, 0);
    // In the mounts of all it may change nothing.
    assert_eq!(mount(&one, "none", "/tmp/a", "tmpfs", 0), EPERM);
    assert_eq!(unmount(&one, "/tmp/hidden", 0), EPERM);
    assert_eq!(one.call(l::__NR_unshare, &[NEWNS]), 0);
    assert_eq!(mount(&one, "none", "/tmp/a", "tmpfs", 0), 0);
    assert_eq!(owner(&one, "/tmp/a"), (0, 0));
    one.make("/tmp/a/file", b"");
    assert_eq!(first.open("/tmp/a/file", 0, 0), ENOENT);
    assert_eq!(mount(&one, "/tmp/a", "/tmp/b", "", l::MS_BIND), 0);
    assert!(one.stat("/tmp/b/file").is_ok());
    assert_eq!([unmount(&one, "/tmp/b", 0), unmount(&one, "/tmp/a", 2)], [0, 0]);
    // What is the system's is not.
    assert_eq!(mount(&one, "none", "/tmp/a", "devtmpfs", 0), EPERM);
    // /proc is that of process numbers that do not belong to it.
    assert_eq!(mount(&one, "proc", "/tmp/a", "proc", 0), EPERM);
    assert_eq!(one.call(l::__NR_unshare, &[l::CLONE_NEWPID.into()]), 0);
    let child = one.fork();
    assert_eq!(mount(&child, "proc", "/tmp/a", "proc", 0), 0);
    assert_eq!(child.readlink("/tmp/a/self"), "1");
    assert_eq!(child.on(l::__NR_chroot, "/tmp", &[]), 0);
}

#[test]
fn what_was_mounted_before_stays() {
    let world = World::new();
    let first = with_something_hidden(&world);
    let one = user(&first);
    as_root(&one, NEWNS);
    for path in ["/tmp/hidden", "/tmp/read-only", "/proc", "/tmp"] {
        for flags in [0, l::MNT_DETACH] {
            assert_eq!(unmount(&one, path, flags), EINVAL, "{path} {flags}");
        }
        assert_eq!(mount(&one, path, "/tmp/a", "", l::MS_MOVE), EINVAL, "{path}");
    }
    // Neither are mounts that cannot be written made so, or set-id programs counted.
    let bind = l::MS_REMOUNT | l::MS_BIND;
    for flags in [0, l::MS_RDONLY, l::MS_NOSUID] {
        assert_eq!(mount(&one, "none", "/tmp/read-only", "", bind | flags), EPERM);
        assert_eq!(mount(&one, "none", "/tmp/read-only", "", l::MS_REMOUNT | flags), EPERM);
    }
    let stricter = bind | l::MS_RDONLY | l::MS_NOSUID | l::MS_NOEXEC;
    assert_eq!(mount(&one, "none", "/tmp/read-only", "", stricter), 0);
    // A copy is as its original, in another namespace of mounts, too.
    assert_eq!(mount(&one, "/tmp/read-only", "/tmp/a", "", l::MS_BIND), 0);
    assert_eq!(mount(&one, "none", "/tmp/a", "", bind), EPERM);
    assert_eq!(one.call(l::__NR_unshare, &[NEWNS]), 0);
    assert_eq!(unmount(&one, "/tmp/hidden", 0), EINVAL);
    assert_eq!(mount(&one, "none", "/tmp/read-only", "", bind), EPERM);
}

#[test]
fn nothing_shows_what_is_hidden() {
    let world = World::new();
    let first = with_something_hidden(&world);
    let one = user(&first);
    as_root(&one, NEWNS);
    let hidden = |program: &Program<'_>, path: &str| program.open(path, 0, 0) == ENOENT;
    assert!(hidden(&one, "/tmp/hidden/below"));
    // A copy of what is around it has to have all of it.
    assert_eq!(mount(&one, "/tmp", "/tmp/a", "", l::MS_BIND), EINVAL);
    assert_eq!(mount(&one, "/tmp/b", "/tmp/a", "", l::MS_BIND), 0);
    assert_eq!(unmount(&one, "/tmp/a", 0), 0);
    assert_eq!(mount(&one, "/tmp", "/tmp/a", "", l::MS_BIND | l::MS_REC), 0);
    assert!(hidden(&one, "/tmp/a/hidden/below"));
    assert_eq!(unmount(&one, "/tmp/a/hidden", 0), EINVAL);
    // Nor does one that is taken away with who is in it.
    assert_eq!(one.on(l::__NR_chdir, "/tmp/a", &[]), 0);
    let fd = one.opened("/tmp/a", l::O_DIRECTORY);
    assert_eq!(unmount(&one, "/tmp/a", l::MNT_DETACH), 0);
    assert!(hidden(&one, "hidden/below"));
    let path = one.path(0, b"hidden/below");
    assert_eq!(one.call(l::__NR_openat, &[fd, path, 0, 0]), ENOENT);
    // Nor does the end of the namespace, for who still has something of it.
    let other = user(&first);
    as_root(&other, NEWNS);
    assert_eq!(mount(&other, "/tmp", "/tmp/a", "", l::MS_BIND | l::MS_REC), 0);
    let covered = |path: &str| first.stat(path).is_ok();
    assert!(covered("/tmp/hidden"));
    world.call(&other.thread, l::__NR_exit, &[0]);
    world.call(&one.thread, l::__NR_exit, &[0]);
    assert!(hidden(&first, "/tmp/hidden/below"));
    assert_eq!(unmount(&first, "/tmp/hidden", 0), 0);
    assert!(!hidden(&first, "/tmp/hidden/below"));
    // What nobody covers any more is gone without a trace.
    assert_eq!(first.on(l::__NR_unlink, "/tmp/hidden/below", &[]), 0);
    assert_eq!(first.on(l::__NR_rmdir, "/tmp/hidden", &[]), 0);
}

#[test]
fn a_proc_of_which_something_is_hidden_is_not_mounted_anew() {
    let world = World::new();
    let first = with_something_hidden(&world);
    // Nothing is mounted on files of /proc, but on all of it.
    assert_eq!(mount(&first, "none", "/proc", "tmpfs", 0), 0);
    let one = user(&first);
    assert_eq!(mount(&first, "none", "/tmp/b", "tmpfs", 0), 0);
    let flags = l::CLONE_NEWUSER | l::CLONE_NEWNS | l::CLONE_NEWPID;
    assert_eq!(one.call(l::__NR_unshare, &[flags.into()]), 0);
    let child = one.fork();
    assert_eq!(mount(&child, "none", "/tmp/a", "tmpfs", 0), 0);
    assert_eq!(mount(&child, "proc", "/tmp/a", "proc", 0), EPERM);
}

#[test]
fn what_others_mount_is_heard_of_and_stays() {
    let world = World::new();
    let first = with_something_hidden(&world);
    assert_eq!(mount(&first, "none", "/", "", l::MS_SHARED | l::MS_REC), 0);
    let one = user(&first);
    as_root(&one, NEWNS);
    assert_eq!(mount(&first, "none", "/tmp/a", "tmpfs", l::MS_NOEXEC), 0);
    first.make("/tmp/a/seen", b"");
    assert!(one.open("/tmp/a/seen", 0, 0) >= 0);
    let bind = l::MS_REMOUNT | l::MS_BIND;
    assert_eq!(mount(&one, "none", "/tmp/a", "", bind), EPERM);
    // The other way nobody hears anything.
    assert_eq!(mount(&one, "none", "/tmp/b", "tmpfs", 0), 0);
    one.make("/tmp/b/own", b"");
    assert_eq!(first.open("/tmp/b/own", 0, 0), ENOENT);
    // What hides something here stays when it goes there.
    assert_eq!(unmount(&first, "/tmp/hidden", 0), 0);
    assert!(first.open("/tmp/hidden/below", 0, 0) >= 0);
    assert_eq!(one.open("/tmp/hidden/below", 0, 0), ENOENT);
}

#[test]
fn what_is_covered_in_proc_stays_so() {
    let world = World::new();
    let first = with_something_hidden(&world);
    assert_eq!(mount(&first, "none", "/proc/sys/kernel", "tmpfs", 0), 0);
    let program = user(&first);
    as_root(&program, NEWNS);
    assert_eq!(mount(&program, "/proc/sys", "/tmp/a", "", l::MS_BIND), EINVAL);
    assert_eq!(mount(&program, "/proc", "/tmp/a", "", l::MS_BIND), EINVAL);
    assert_eq!(unmount(&program, "/proc/sys/kernel", 0), EINVAL);
    assert_eq!(mount(&program, "/proc/sys", "/tmp/a", "", l::MS_BIND | l::MS_REC), 0);
    assert!(program.names("/tmp/a/kernel").is_empty());
    assert!(!program.names("/tmp/a/vm").is_empty());
}
