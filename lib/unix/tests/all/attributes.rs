//! Extended attributes.

use linux_raw_sys::{errno, general as l};

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR, error};

/// Sets the attribute `name` of `path`.
fn set(program: &Program<'_>, path: &str, name: &str, value: &[u8], flags: u64) -> i64 {
    let name = program.world.text(&program.thread, name);
    let at = program.world.put(&program.thread, value);
    program.on(l::__NR_setxattr, path, &[name, at, value.len() as u64, flags])
}

/// The attribute `name` of `path`, if a buffer of `room` bytes is enough.
fn get(program: &Program<'_>, path: &str, name: &str, room: u64) -> Result<Vec<u8>, i64> {
    let name = program.world.text(&program.thread, name);
    let len = program.on(l::__NR_getxattr, path, &[name, program.buffer, room]);
    if len < 0 {
        return Err(len);
    }
    Ok(program.world.read(&program.thread, program.buffer, len as usize))
}

#[test]
fn attributes_are_kept_and_listed() {
    let world = World::new();
    let root = Program::new(&world, &world.first);
    root.close(root.opened("/tmp/file", RDWR | CREAT));
    assert_eq!(get(&root, "/tmp/file", "trusted.a", 9), Err(error(errno::ENODATA)));
    assert_eq!(set(&root, "/tmp/file", "trusted.a", b"one", 2), error(errno::ENODATA));
    assert_eq!(set(&root, "/tmp/file", "trusted.a", b"one", 1), 0);
    assert_eq!(set(&root, "/tmp/file", "trusted.a", b"two", 1), error(errno::EEXIST));
    assert_eq!(set(&root, "/tmp/file", "security.b", b"", 0), 0);
    assert_eq!(get(&root, "/tmp/file", "trusted.a", 3), Ok(b"one".to_vec()));
    assert_eq!(get(&root, "/tmp/file", "trusted.a", 2), Err(error(errno::ERANGE)));
    let len = root.on(l::__NR_listxattr, "/tmp/file", &[root.buffer, 64]);
    let names = b"security.b\0trusted.a\0";
    assert_eq!(world.read(&root.thread, root.buffer, len as usize), names);
    assert_eq!(root.on(l::__NR_listxattr, "/tmp/file", &[0, 0]), names.len() as i64);
    // Others see that there is something for everybody, and may change nothing.
    let other = root.fork();
    other.lose_privileges();
    assert_eq!(other.on(l::__NR_listxattr, "/tmp/file", &[0, 0]), 11);
    assert_eq!(get(&other, "/tmp/file", "trusted.a", 3), Err(error(errno::ENODATA)));
    assert_eq!(set(&other, "/tmp/file", "trusted.a", b"x", 0), error(errno::EPERM));
    assert_eq!(set(&other, "/tmp/file", "security.b", b"x", 0), error(errno::EPERM));
    let name = world.text(&root.thread, "trusted.a");
    assert_eq!(root.on(l::__NR_removexattr, "/tmp/file", &[name]), 0);
    assert_eq!(root.on(l::__NR_removexattr, "/tmp/file", &[name]), error(errno::ENODATA));
    assert_eq!(set(&root, "/tmp/file", "user.a", b"x", 0), error(errno::EOPNOTSUPP));
    assert_eq!(set(&root, "/tmp/file", "security.capability", b"x", 0), error(errno::EOPNOTSUPP));
    assert_eq!(set(&root, "/tmp/file", "trusted.long", &[7; 65_537], 0), error(errno::E2BIG));
    assert_eq!(set(&root, "/proc/self/status", "trusted.a", b"x", 0), error(errno::EOPNOTSUPP));
}
