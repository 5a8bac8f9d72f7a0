//! What one user's namespace could do to others before it was mended.

use super::mounts::mount;
use super::{EINVAL, EPERM, as_root, set, user};
use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

const NEWNS: u64 = l::CLONE_NEWNS as u64;
/// More mounts than a space may have.
const MANY: usize = 200_000;

#[test]
fn terminals_mounted_for_oneself_stay_everybodys() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    first.mkdir("/tmp/a");
    let one = user(&first);
    as_root(&one, NEWNS);
    assert_eq!(mount(&one, "none", "/tmp/a", "devpts", l::MS_RDONLY), 0);
    assert_eq!(mount(&one, "none", "/tmp/a", "", l::MS_REMOUNT | l::MS_RDONLY), EPERM);
    let other = user(&first);
    as_root(&other, NEWNS);
    assert_eq!(mount(&other, "none", "/tmp/a", "devpts", 0), 0);
}

#[test]
fn a_namespace_without_room_does_not_keep_others_from_mounting() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    first.mkdir("/tmp/a");
    first.mkdir("/tmp/b");
    assert_eq!(mount(&first, "none", "/", "", l::MS_SHARED | l::MS_REC), 0);
    let one = user(&first);
    as_root(&one, NEWNS);
    let is_full = (0..MANY).any(|_| mount(&one, "none", "/tmp/a", "tmpfs", 0) != 0);
    assert!(is_full, "there is no end to its mounts");
    assert_eq!(mount(&first, "none", "/tmp/b", "tmpfs", 0), 0);
}

#[test]
fn the_id_that_means_none_is_nobodys() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    first.mkdir("/tmp/a");
    let none = world.words(&first.thread, &[u64::from(u32::MAX)]);
    assert_eq!(first.call(l::__NR_setgroups, &[1, none]), EINVAL);
    let at = first.buffer + 2048;
    for option in ["uid=4294967295", "uid=4294967296", "gid=4294967295"] {
        let (kind, point) = (first.path(0, b"tmpfs"), first.path(1, b"/tmp/a"));
        world.write(&first.thread, at, option.as_bytes());
        world.write(&first.thread, at + option.len() as u64, &[0]);
        assert_eq!(first.call(l::__NR_mount, &[kind, point, kind, 0, at]), EINVAL, "{option}");
    }
}

#[test]
fn who_is_not_in_a_group_makes_no_programs_of_it() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    first.mkdir("/tmp/team");
    assert_eq!(first.on(l::__NR_chown, "/tmp/team", &[0, 7]), 0);
    assert_eq!(first.on(l::__NR_chmod, "/tmp/team", &[0o2777]), 0);
    let one = user(&first);
    let made = |program: &Program<'_>, path: &str, mode: u32| {
        let fd = program.open(path, l::O_CREAT | l::O_WRONLY, mode);
        assert!(fd >= 0, "{path}: {fd}");
        let stat = program.stat(path).unwrap();
        (stat.mode() & 0o7777, stat.owner().1)
    };
    assert_eq!(made(&one, "/tmp/team/program", 0o6711), (0o4711, 7));
    assert_eq!(made(&one, "/tmp/team/locked", 0o2701), (0o2701, 7));
    assert_eq!(made(&first, "/tmp/team/of-root", 0o2711), (0o2711, 7));
}

#[test]
fn a_root_removes_files_of_users_that_it_knows_from_where_all_may_write() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    assert_eq!(first.on(l::__NR_chmod, "/tmp", &[0o1777]), 0);
    for (path, owner) in [("/tmp/known", 100_005), ("/tmp/unknown", 5)] {
        first.make(path, b"");
        assert_eq!(first.on(l::__NR_chown, path, &[owner, owner]), 0);
    }
    let one = user(&first);
    assert_eq!(one.call(l::__NR_unshare, &[super::NEW]), 0);
    let number = one.thread.tid.get().first();
    let map = "0 1000 1\n1 100000 65536\n";
    for file in ["uid_map", "gid_map"] {
        assert_eq!(set(&first, &format!("/proc/{number}/{file}"), map), map.len() as i64);
    }
    assert_eq!(one.on(l::__NR_unlink, "/tmp/unknown", &[]), EPERM);
    assert_eq!(one.on(l::__NR_unlink, "/tmp/known", &[]), 0);
}
