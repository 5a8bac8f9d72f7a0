//! How many mounts there can be, how long what is told of them, and how far up one comes in them.

use linux_raw_sys::{errno, general as l};

use super::{REC, bind, mount, prepared, told, unmount, unshare};
use crate::common::caller::{Program, RDONLY, error};

/// What is mounted for those who hear of it counts before it is mounted.
#[test]
fn copies_for_peers_count() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a", "/a", 0), 0);
    assert_eq!(mount(&program, "", "/a", "", l::MS_SHARED), 0);
    for peer in 0..20 {
        let place = format!("/p{peer}");
        program.mkdir(&place);
        assert_eq!(bind(&program, "/a", &place, 0), 0);
    }
    assert_eq!(bind(&program, "/b", "/b", 0), 0);
    (0..100).for_each(|_| assert_eq!(mount(&program, "x", "/b", "tmpfs", 0), 0));
    let count = || program.contents("/proc/self/mountinfo").split(|byte| *byte == b'\n').count();
    let before = count();
    // As many as there are peers, and each a tree.
    assert_eq!(bind(&program, "/", "/a/in", REC), error(errno::ENOSPC));
    assert_eq!(count(), before);
    // A tree that is moved stays where it was.
    assert_eq!(mount(&program, "/b", "/a/in", "", l::MS_MOVE), 0);
    assert_eq!(count(), before + 20);
    assert_eq!(unmount(&program, "/a/in", l::MNT_DETACH), 0);
    assert_eq!(count(), before - 1);
}

#[test]
fn what_cannot_be_moved_stays() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a", "/a", 0), 0);
    assert_eq!(mount(&program, "", "/a", "", l::MS_SHARED), 0);
    assert_eq!(bind(&program, "/a", "/c", 0), 0);
    assert_eq!(bind(&program, "/b", "/b", 0), 0);
    program.make("/b/file", b"here");
    // No room for the copy that the other peer gets.
    while mount(&program, "x", "/tmp", "tmpfs", 0) == 0 {}
    assert_eq!(mount(&program, "/b", "/a/in", "", l::MS_MOVE), error(errno::ENOSPC));
    assert_eq!(told(&program, "/b"), ["/b rw,relatime - tmpfs rootfs rw"]);
    assert_eq!(unmount(&program, "/tmp", 0), 0);
    assert_eq!(mount(&program, "/b", "/a/in", "", l::MS_MOVE), 0);
    assert_eq!(program.contents("/c/in/file"), b"here");
}

/// Names that become four times as long do not fit; then nothing is told.
#[test]
fn a_list_that_does_not_fit_is_refused() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    unshare(&program);
    crate::given_back::limit(4 << 20);
    let blank = " ".repeat(4000);
    let mounted = (0..300).take_while(|_| mount(&program, &blank, "/b", "tmpfs", 0) == 0).count();
    assert!(mounted > 100, "{mounted}");
    for list in ["mounts", "mountinfo"] {
        let fd = program.opened(&format!("/proc/self/{list}"), RDONLY);
        let told = program.call(l::__NR_read, &[fd, program.buffer, 4096]);
        assert!(told == error(errno::ENOMEM) || told > 0, "{told}");
    }
    crate::given_back::no_limit();
}

/// In a mount of a part, `..` leads up, and not out where a directory was moved away.
#[test]
fn the_way_up_in_a_part() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    for directory in ["/a/in/x", "/a/in/x/y", "/a/in/x/z", "/a/in/w"] {
        program.mkdir(directory);
    }
    assert_eq!(bind(&program, "/a/in", "/b", 0), 0);
    for (path, found) in [
        ("/b/x/y/../z/../../w/../file", true),
        ("/b/x/y/../../file", true),
        ("/b/x/../../b/x/y/../../file", true),
        ("/b/x/y/../../../b/file", true),
        ("/b/x/y/../../../in/file", false),
    ] {
        assert_eq!(program.stat(path).is_ok(), found, "{path}");
    }
    // Who is in a directory that is moved out of it goes up no further.
    assert_eq!(program.on(l::__NR_chdir, "/b/x/y", &[]), 0);
    assert_eq!(program.on_two(l::__NR_rename, "/a/in/x", "/a/x"), 0);
    for path in ["..", "../z", "../..", "../y/../z", "../../in"] {
        assert_eq!(program.stat(path).err(), Some(error(errno::ENOENT)), "{path}");
    }
}
