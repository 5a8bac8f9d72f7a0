//! mount_setattr: flags of mounts, of one or of a tree, and who hears of them.

use linux_raw_sys::{errno, general as l};

use super::{bind, prepared, told};
use crate::common::caller::{Program, error};

/// `mount_setattr` with what is set, what is cleared, and the propagation.
fn attributes(program: &Program<'_>, path: &str, flags: u32, words: [u64; 3]) -> i64 {
    sized(program, path, flags, &[words[0], words[1], words[2], 0])
}

fn sized(program: &Program<'_>, path: &str, flags: u32, words: &[u64]) -> i64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    program.world.write(&program.thread, program.buffer, &bytes);
    let path = program.path(0, path.as_bytes());
    let size = words.len() as u64 * 8;
    let here = l::AT_FDCWD as u64;
    program.call(l::__NR_mount_setattr, &[here, path, flags.into(), program.buffer, size])
}

#[test]
fn mounts_get_flags_and_lose_them() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a/in", "/b", 0), 0);
    let [read_only, no_exec] = [l::MOUNT_ATTR_RDONLY, l::MOUNT_ATTR_NOEXEC].map(u64::from);
    assert_eq!(attributes(&program, "/b", 0, [read_only | no_exec, 0, 0]), 0);
    assert_eq!(told(&program, "/b"), ["/a/in ro,noexec,relatime - tmpfs rootfs rw"]);
    assert_eq!(program.on(l::__NR_mkdir, "/b/new", &[0o755]), error(errno::EROFS));
    let times = u64::from(l::MOUNT_ATTR__ATIME);
    let no_times = u64::from(l::MOUNT_ATTR_NOATIME);
    assert_eq!(attributes(&program, "/b", 0, [no_times, read_only | times, 0]), 0);
    assert_eq!(told(&program, "/b"), ["/a/in rw,noexec,noatime - tmpfs rootfs rw"]);
    assert_eq!(program.on(l::__NR_mkdir, "/b/new", &[0o755]), 0);
}

#[test]
fn a_tree_of_mounts_changes_at_once() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a", "/a", 0), 0);
    assert_eq!(bind(&program, "/c", "/a/in", 0), 0);
    let no_devices = l::MOUNT_ATTR_NODEV.into();
    let shared = l::MS_SHARED.into();
    assert_eq!(attributes(&program, "/a", l::AT_RECURSIVE, [no_devices, 0, shared]), 0);
    for place in ["/a", "/a/in"] {
        let told = told(&program, place).concat();
        assert!(told.contains("rw,nodev,relatime shared:"), "{told}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a/in", "/b", 0), 0);
    let invalid = error(errno::EINVAL);
    let times = u64::from(l::MOUNT_ATTR__ATIME);
    let two = u64::from(l::MS_SHARED | l::MS_SLAVE);
    for words in [
        [0, 0, u64::MAX],
        [0, 0, two],
        [1 << 31, 0, 0],
        [u64::from(l::MOUNT_ATTR_NOATIME), 0, 0],
        [0, u64::from(l::MOUNT_ATTR_NOATIME), 0],
        [times, times, 0],
        [0, u64::from(l::MOUNT_ATTR_IDMAP), 0],
    ] {
        assert_eq!(attributes(&program, "/b", 0, words), invalid, "{words:x?}");
    }
    assert_eq!(attributes(&program, "/b", 1, [1, 0, 0]), invalid, "an unknown flag");
    assert_eq!(attributes(&program, "/a", 0, [1, 0, 0]), invalid, "no mount's root");
    assert_eq!(attributes(&program, "/nothing", 0, [0, 0, 0]), 0, "nothing is to be done");
    assert_eq!(sized(&program, "/b", 0, &[1, 0, 0]), invalid, "too short");
    assert_eq!(sized(&program, "/b", 0, &[1, 0, 0, 0, 0]), 0, "longer, with nothing behind");
    assert_eq!(sized(&program, "/b", 0, &[1, 0, 0, 0, 7]), error(errno::E2BIG));
    assert_eq!(told(&program, "/b"), ["/a/in ro,relatime - tmpfs rootfs rw"]);
}
