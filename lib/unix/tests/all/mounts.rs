//! Mounts: bound directories and files, namespaces of them, who hears of what, and a new root.

mod attributes;
mod limits;

use linux_raw_sys::{errno, general as l};

use crate::common::World;
use crate::common::caller::{CREAT, Program, RDONLY, RDWR, error};

const REC: u32 = l::MS_REC;

fn mount(program: &Program<'_>, source: &str, target: &str, kind: &str, flags: u32) -> i64 {
    let kind = program.world.text(&program.thread, kind);
    let paths = [program.path(0, source.as_bytes()), program.path(1, target.as_bytes())];
    program.call(l::__NR_mount, &[paths[0], paths[1], kind, flags.into(), 0])
}

fn bind(program: &Program<'_>, source: &str, target: &str, flags: u32) -> i64 {
    mount(program, source, target, "", l::MS_BIND | flags)
}

fn unmount(program: &Program<'_>, target: &str, flags: u32) -> i64 {
    program.on(l::__NR_umount2, target, &[flags.into()])
}

fn unshare(program: &Program<'_>) {
    assert_eq!(program.call(l::__NR_unshare, &[l::CLONE_NEWNS.into()]), 0);
}

/// What `/proc/self/mountinfo` says of a place, without numbers.
fn told(program: &Program<'_>, place: &str) -> Vec<String> {
    let text = String::from_utf8(program.contents("/proc/self/mountinfo")).unwrap();
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        (words[4] == place).then(|| format!("{} {}", words[3], words[5..].join(" ")))
    };
    text.lines().filter_map(line).collect()
}

/// A world in which `/a/in/file` and the empty directories `/b` and `/c` are.
fn prepared() -> World {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    for directory in ["/a", "/a/in", "/b", "/c"] {
        program.mkdir(directory);
    }
    program.make("/a/in/file", b"contents");
    world
}

#[test]
fn a_directory_is_seen_at_two_places() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a/in", "/b", 0), 0);
    assert_eq!(program.contents("/b/file"), b"contents");
    let [one, other] = ["/a/in", "/b"].map(|path| program.stat(path).unwrap().inode());
    assert_eq!(one, other);
    assert_eq!(told(&program, "/b"), ["/a/in rw,relatime - tmpfs rootfs rw"]);
    // Each way in has its own way out.
    for (path, above) in [("/b", "/"), ("/a/in", "/a")] {
        assert_eq!(program.on(l::__NR_chdir, path, &[]), 0);
        assert_eq!(program.cwd(), path);
        assert_eq!(program.on(l::__NR_chdir, "..", &[]), 0);
        assert_eq!(program.cwd(), above);
    }
    let file = program.opened("/b/file", RDONLY);
    assert_eq!(program.readlink(&format!("/proc/self/fd/{file}")), "/b/file");
    assert_eq!(program.on_two(l::__NR_rename, "/b/file", "/a/in/file2"), error(errno::EXDEV));
    assert_eq!(program.on_two(l::__NR_link, "/b/file", "/a/in/file2"), error(errno::EXDEV));
    assert_eq!(unmount(&program, "/b", 0), error(errno::EBUSY));
    program.close(file);
    assert_eq!(program.on(l::__NR_rmdir, "/b", &[]), error(errno::EBUSY));
    assert_eq!(unmount(&program, "/b", 0), 0);
    assert!(program.names("/b").is_empty());
    assert_eq!(program.on(l::__NR_rmdir, "/b", &[]), 0);
    assert_eq!(program.contents("/a/in/file"), b"contents");
}

#[test]
fn what_is_bound_read_only_is_written_elsewhere_only() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(bind(&program, "/a/in", "/b", 0), 0);
    assert_eq!(bind(&program, "none", "/b", l::MS_REMOUNT | l::MS_RDONLY), 0);
    let refused = error(errno::EROFS);
    assert_eq!(program.open("/b/file", RDWR, 0), refused);
    assert_eq!(program.open("/b/new", CREAT, 0o644), refused);
    for (number, path) in [
        (l::__NR_chmod, "/b/file"),
        (l::__NR_chown, "/b/file"),
        (l::__NR_truncate, "/b/file"),
        (l::__NR_unlink, "/b/file"),
        (l::__NR_mkdir, "/b/new"),
    ] {
        assert_eq!(program.on(number, path, &[0, 0]), refused, "{number} {path}");
    }
    assert_eq!(program.on(l::__NR_access, "/b/file", &[2]), refused);
    let file = program.opened("/b/file", RDONLY);
    assert_eq!(program.call(l::__NR_fchmod, &[file, 0]), refused);
    assert_eq!(program.on_two(l::__NR_rename, "/b/file", "/b/new"), refused);
    assert_eq!(program.on(l::__NR_chmod, "/a/in/file", &[0o600]), 0);
    program.make("/a/in/file", b"other");
    assert_eq!(program.contents("/b/file"), b"other");
    // Programs are not run, and devices not opened, where a mount says so.
    assert_eq!(bind(&program, "/dev", "/c", 0), 0);
    assert!(program.open("/c/null", RDWR, 0) >= 0);
    assert_eq!(bind(&program, "none", "/c", l::MS_REMOUNT | l::MS_NODEV), 0);
    assert_eq!(program.open("/c/null", RDWR, 0), error(errno::EACCES));
}

#[test]
fn files_and_trees_are_bound() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    program.make("/c/over", b"below");
    assert_eq!(bind(&program, "/a/in/file", "/c", 0), error(errno::ENOTDIR));
    assert_eq!(bind(&program, "/a/in/file", "/c/over", 0), 0);
    assert_eq!(program.contents("/c/over"), b"contents");
    assert_eq!(told(&program, "/c/over"), ["/a/in/file rw,relatime - tmpfs rootfs rw"]);
    assert_eq!(program.on(l::__NR_unlink, "/c/over", &[]), error(errno::EBUSY));
    assert_eq!(unmount(&program, "/c/over", 0), 0);
    assert_eq!(program.contents("/c/over"), b"below");
    // With what is mounted below, or without.
    assert_eq!(mount(&program, "none", "/a/in", "tmpfs", 0), 0);
    program.make("/a/in/inner", b"");
    assert_eq!(bind(&program, "/a", "/b", 0), 0);
    assert_eq!(program.names("/b/in"), ["file"]);
    assert_eq!(unmount(&program, "/b", 0), 0);
    assert_eq!(bind(&program, "/a", "/b", REC), 0);
    assert_eq!(program.names("/b/in"), ["inner"]);
    assert_eq!(unmount(&program, "/b", 0), error(errno::EBUSY));
    assert_eq!(mount(&program, "/b", "/c", "", l::MS_MOVE), 0);
    assert_eq!((program.names("/c/in").len(), program.names("/b").len()), (1, 0));
    assert_eq!(mount(&program, "/c", "/c/in", "", l::MS_MOVE), error(errno::ELOOP));
    assert_eq!(unmount(&program, "/c", l::MNT_DETACH), 0);
    assert_eq!(program.names("/c"), ["over"]);
    assert_eq!(program.names("/a/in"), ["inner"]);
}

#[test]
fn a_namespace_s_mounts_are_its_own() {
    let world = prepared();
    let first = Program::new(&world, &world.first);
    let own = first.fork();
    let before = own.opened("/proc/self/ns/mnt", RDONLY);
    unshare(&own);
    assert_ne!(own.readlink("/proc/self/ns/mnt"), first.readlink("/proc/self/ns/mnt"));
    assert_eq!(mount(&own, "none", "/b", "tmpfs", 0), 0);
    own.make("/b/mine", b"");
    assert_eq!((own.names("/b").len(), first.names("/b").len()), (1, 0));
    assert!(told(&first, "/b").is_empty());
    // Others see it, or go into it.
    let pid = own.thread.process().number;
    assert_eq!(first.names(&format!("/proc/{pid}/root/b")), ["mine"]);
    let theirs = first.opened(&format!("/proc/{pid}/ns/mnt"), RDONLY);
    let third = first.fork();
    assert_eq!(third.call(l::__NR_setns, &[theirs, l::CLONE_NEWNS.into()]), 0);
    assert_eq!(third.names("/b"), ["mine"]);
    assert_eq!(own.call(l::__NR_setns, &[before, 0]), 0);
    assert!(own.names("/b").is_empty());
    // A directory that others have mounted on can be removed: not for them to hinder.
    assert_eq!(first.on(l::__NR_rmdir, "/b", &[]), 0);
    assert_eq!(third.open("/b", RDONLY, 0), error(errno::ENOENT));
    assert!(told(&third, "/b").is_empty());
    // Mounts of another namespace are not changed from here.
    let other = format!("/proc/{}/root/c", third.thread.process().number);
    assert_eq!(mount(&first, "none", &other, "tmpfs", 0), error(errno::EINVAL));
    assert_eq!(bind(&first, &other, "/c", 0), error(errno::EINVAL));
    assert_eq!(unmount(&first, &format!("{other}/../tmp"), 0), error(errno::EINVAL));
}

#[test]
fn peers_and_slaves_hear_of_mounts() {
    let world = prepared();
    let first = Program::new(&world, &world.first);
    assert_eq!(mount(&first, "none", "/a", "tmpfs", 0), 0);
    assert_eq!(mount(&first, "", "/a", "", l::MS_SHARED), 0);
    first.mkdir("/a/m");
    let [peer, slave, alone] = [0; 3].map(|_| {
        let program = first.fork();
        unshare(&program);
        program
    });
    assert_eq!(mount(&slave, "", "/", "", l::MS_SLAVE | REC), 0);
    assert_eq!(mount(&alone, "", "/", "", l::MS_PRIVATE | REC), 0);
    assert_eq!(told(&first, "/a"), ["/ rw,relatime shared:1 - tmpfs none rw"]);
    assert_eq!(told(&slave, "/a"), ["/ rw,relatime master:1 - tmpfs none rw"]);
    assert_eq!(told(&alone, "/a"), ["/ rw,relatime - tmpfs none rw"]);
    let seen = || [&first, &peer, &slave, &alone].map(|one| told(one, "/a/m").len());
    assert_eq!(mount(&peer, "none", "/a/m", "tmpfs", 0), 0);
    assert_eq!(seen(), [1, 1, 1, 0]);
    peer.make("/a/m/file", b"");
    assert_eq!(slave.names("/a/m"), ["file"]);
    assert_eq!(unmount(&first, "/a/m", 0), 0);
    assert_eq!(seen(), [0; 4]);
    assert_eq!(mount(&slave, "none", "/a/m", "tmpfs", 0), 0);
    assert_eq!(seen(), [0, 0, 1, 0]);
    assert_eq!(mount(&first, "", "/a", "", l::MS_UNBINDABLE), 0);
    assert_eq!(bind(&first, "/a", "/c", 0), error(errno::EINVAL));
}

#[test]
fn the_root_is_exchanged() {
    let world = prepared();
    let program = Program::new(&world, &world.first).fork();
    unshare(&program);
    let pivot = |new: &str, old: &str| program.on_two(l::__NR_pivot_root, new, old);
    for directory in ["/b/old", "/c/old"] {
        program.mkdir(directory);
    }
    assert_eq!(pivot("/b", "/b/old"), error(errno::EBUSY));
    assert_eq!(mount(&program, "none", "/b", "tmpfs", 0), 0);
    program.mkdir("/b/old");
    // The first root of a namespace is mounted nowhere.
    assert_eq!(pivot("/b", "/b/old"), error(errno::EINVAL));
    assert_eq!(program.on(l::__NR_chroot, "/b", &[]), 0);
    assert_eq!(program.on(l::__NR_chdir, "/", &[]), 0);
    program.mkdir("/new");
    assert_eq!(mount(&program, "none", "/new", "tmpfs", 0), 0);
    program.mkdir("/new/put");
    assert_eq!(pivot("/new", "/old"), error(errno::EBUSY));
    assert_eq!(pivot("/new", "/new/put"), 0);
    assert_eq!(
        (program.names("/"), program.names("/put")),
        (vec!["put".into()], vec!["new".into(), "old".into()])
    );
    assert_eq!(program.cwd(), "/");
    // Who is in a directory stays in it when it is covered.
    assert_eq!(program.on(l::__NR_chdir, "/put", &[]), 0);
    assert_eq!(mount(&program, "none", "/put", "tmpfs", 0), 0);
    assert_eq!((program.names(".").len(), program.names("/put").len()), (2, 0));
    assert_eq!(unmount(&program, "/put", l::MNT_DETACH), 0);
    assert_eq!(unmount(&program, "/put", l::MNT_DETACH), 0);
    assert!(program.names("/put").is_empty());
}

#[test]
fn nobody_leaves_what_is_bound() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    program.mkdir("/a/in/deep");
    assert_eq!(bind(&program, "/a/in", "/b", 0), 0);
    assert_eq!(program.on(l::__NR_chroot, "/b", &[]), 0);
    assert_eq!(program.on(l::__NR_chdir, "/deep", &[]), 0);
    // Somebody outside moves it out of what the mount shows.
    let mover = program.fork();
    mover.thread.process().place.borrow().set_root(world.unix.fs.first_spot());
    assert_eq!(mover.on_two(l::__NR_rename, "/a/in/deep", "/c/deep"), 0);
    assert_eq!(program.on(l::__NR_chdir, "..", &[]), error(errno::ENOENT));
    assert_eq!(program.open("../../a", RDONLY, 0), error(errno::ENOENT));
}

#[test]
fn who_may_not_and_how_many() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    let user = program.fork();
    user.lose_privileges();
    assert_eq!(bind(&user, "/a", "/b", 0), error(errno::EPERM));
    assert_eq!(unmount(&user, "/tmp", 0), error(errno::EPERM));
    assert_eq!(user.on_two(l::__NR_pivot_root, "/a", "/b"), error(errno::EPERM));
    assert_eq!(user.call(l::__NR_unshare, &[l::CLONE_NEWNS.into()]), error(errno::EPERM));
    let space = program.opened("/proc/self/ns/mnt", RDONLY);
    // A namespace that holds itself would never go.
    program.make("/c/file", b"");
    assert_eq!(
        bind(&program, &format!("/proc/self/fd/{space}"), "/c/file", 0),
        error(errno::EINVAL)
    );
    // A binding of all onto a part doubles what there is each time, up to a limit.
    let doubled = (0..16).map(|_| bind(&program, "/", "/b", REC)).find(|result| *result != 0);
    assert_eq!(doubled, Some(error(errno::ENOSPC)));
    assert_eq!(program.contents("/a/in/file"), b"contents");
}

/// Whoever wants to know of new mounts polls the list of them, as service managers do.
#[test]
fn a_change_of_mounts_can_be_waited_for() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    let list = program.opened("/proc/self/mountinfo", l::O_RDONLY);
    let epoll = program.call(l::__NR_epoll_create1, &[0]) as u64;
    world.write(&program.thread, program.buffer, &[l::POLLPRI as u8, 0, 0, 0]);
    let add = [epoll, l::EPOLL_CTL_ADD.into(), list, program.buffer];
    assert_eq!(program.call(l::__NR_epoll_ctl, &add), 0);
    let plain = program.opened("/proc/self/status", l::O_RDONLY);
    let add = [epoll, l::EPOLL_CTL_ADD.into(), plain, program.buffer];
    assert_eq!(program.call(l::__NR_epoll_ctl, &add), error(errno::EPERM));
    let other = program.fork();
    let wait = [epoll, program.buffer, 1, 1000];
    let changes: [&dyn Fn() -> i64; 3] = [
        &|| bind(&other, "/a/in", "/b", 0),
        &|| mount(&other, "none", "/b", "", l::MS_REMOUNT | l::MS_BIND | l::MS_NOSUID),
        &|| unmount(&other, "/b", 0),
    ];
    for change in changes {
        world.waits(&program.thread, l::__NR_epoll_wait, &wait);
        assert_eq!(change(), 0);
        assert_eq!(world.next_reply(&program.thread), Some(1));
        let told = world.read_u32(&program.thread, program.buffer);
        assert_eq!(told, u32::from(l::POLLPRI as u16 | l::POLLERR as u16), "said once");
    }
    world.waits(&program.thread, l::__NR_epoll_wait, &wait);
}

#[test]
fn what_is_always_in_proc_can_be_covered() {
    let world = prepared();
    let program = Program::new(&world, &world.first);
    assert_eq!(mount(&program, "none", "/proc/sys", "tmpfs", 0), 0);
    assert!(program.names("/proc/sys").is_empty());
    assert!(program.names("/proc/../proc/sys/.").is_empty());
    assert_eq!(program.on(l::__NR_chdir, "/proc/sys", &[]), 0);
    assert_eq!(program.cwd(), "/proc/sys");
    assert_eq!(program.on(l::__NR_chdir, "..", &[]), 0);
    assert_eq!(program.cwd(), "/proc");
    assert_eq!(unmount(&program, "/proc/sys", 0), 0);
    assert!(program.names("/proc/sys").contains(&"kernel".to_owned()));
    // A file, and a directory by itself so that it can only be read.
    assert_eq!(bind(&program, "/a/in/file", "/proc/meminfo", 0), 0);
    assert_eq!(program.contents("/proc/meminfo"), b"contents");
    assert_eq!(unmount(&program, "/proc/meminfo", 0), 0);
    assert!(program.contents("/proc/meminfo").starts_with(b"MemTotal"));
    assert_eq!(bind(&program, "/proc/sys", "/proc/sys", 0), 0);
    let again = l::MS_REMOUNT | l::MS_BIND | l::MS_RDONLY;
    assert_eq!(mount(&program, "none", "/proc/sys", "", again), 0);
    let open = |path: &str| program.open(path, l::O_WRONLY, 0);
    assert_eq!(open("/proc/sys/kernel/hostname"), error(errno::EROFS));
    assert_eq!(unmount(&program, "/proc/sys", 0), 0);
    assert!(open("/proc/sys/kernel/hostname") >= 0);
    // What comes and goes is not.
    assert_eq!(mount(&program, "none", "/proc/1/ns", "tmpfs", 0), error(errno::EBUSY));
}
