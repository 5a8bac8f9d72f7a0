//! What calls need while they are at work is little, or looked for.

use super::*;
use crate::given_back::{limit, no_limit};

/// A program has megabytes of arguments, and the server no room for them.
#[test]
fn arguments_that_there_is_no_room_for() {
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    let user = root.fork();
    user.lose_privileges();
    let at = user.call(l::__NR_mmap, &[0, 2 << 20, 3, 0x22, u64::MAX, 0]) as u64;
    let space = user.thread.process.space();
    let mut layout = space.layout.get();
    layout.arguments = (at, at + (2 << 20));
    space.layout.set(layout);
    limit(1 << 20);
    let fd = user.opened("/proc/self/cmdline", l::O_RDONLY);
    let answer = user.call(l::__NR_read, &[fd, user.buffer, 10]);
    no_limit();
    assert_eq!(answer, -12);
    assert_eq!(user.call(l::__NR_read, &[fd, user.buffer, 10]), 10);
}

/// Hundreds of mounts are to be mounted where hundreds of groups hear of it. There is room for a number for each, not
/// for as many numbers as each has to give.
#[test]
fn groups_that_hear_of_many_mounts() {
    const COUNT: usize = 300;
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    let mount = |from: &str, to: &str, flags: u32| {
        let (from, to) = (root.path(0, from.as_bytes()), root.path(1, to.as_bytes()));
        world.write(&root.thread, root.buffer, b"tmpfs\0");
        root.call(l::__NR_mount, &[from, to, root.buffer, flags.into(), 0])
    };
    for directory in ["/tmp/on", "/tmp/tree"] {
        root.mkdir(directory);
        assert_eq!(mount("none", directory, 0), 0);
    }
    assert_eq!(mount("", "/tmp/on", l::MS_SHARED), 0);
    root.mkdir("/tmp/on/here");
    for number in 0..COUNT {
        let [hears, inside] = ["hears", "tree/"].map(|name| format!("/tmp/{name}{number}"));
        root.mkdir(&hears);
        assert_eq!(mount("/tmp/on", &hears, l::MS_BIND), 0);
        assert_eq!(mount("", &hears, l::MS_SLAVE), 0);
        assert_eq!(mount("", &hears, l::MS_SHARED), 0);
        root.mkdir(&inside);
        assert_eq!(mount("none", &inside, 0), 0);
    }
    limit(1 << 20);
    let answer = mount("/tmp/tree", "/tmp/on/here", l::MS_BIND | l::MS_REC);
    no_limit();
    assert_eq!(answer, -28);
}

/// Thousands of areas go at once, and the server has no room for a list of them.
#[test]
fn areas_that_go_at_once() {
    const COUNT: u64 = 20_000;
    let world = World::with_frames(FRAMES);
    let root = Program::new(&world, &world.first);
    let at = root.call(l::__NR_mmap, &[0, COUNT * PAGE, 1, 0x22, u64::MAX, 0]) as u64;
    for page in (0..COUNT).step_by(2) {
        assert_eq!(root.call(l::__NR_mprotect, &[at + page * PAGE, PAGE, 3]), 0);
    }
    limit(256 << 10);
    let answer = root.call(l::__NR_munmap, &[at, COUNT * PAGE]);
    no_limit();
    assert_eq!(answer, 0);
    let left = root.contents("/proc/self/maps").iter().filter(|byte| **byte == b'\n').count();
    assert!(left < 16, "{left} areas are left");
}
