//! Namespaces of users: who is called what, who may make one, and what its makers may do in it.

mod attacks;
mod holes;
mod mounts;
mod programs;

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

const EPERM: i64 = -1;
const ESRCH: i64 = -3;
const EACCES: i64 = -13;
const EINVAL: i64 = -22;
const ENOSPC: i64 = -28;
const NEW: u64 = l::CLONE_NEWUSER as u64;

/// A process of user and group 1000.
fn user<'a>(first: &Program<'a>) -> Program<'a> {
    let program = first.fork();
    program.lose_privileges();
    program
}

/// What writing says.
fn set(program: &Program<'_>, path: &str, text: &str) -> i64 {
    let fd = program.opened(path, l::O_WRONLY);
    let wrote = program.write(fd, text.as_bytes());
    program.close(fd);
    wrote
}

/// A namespace with these flags besides, in which user and group 1000 are 0.
#[track_caller]
fn as_root(program: &Program<'_>, flags: u64) {
    assert_eq!(program.call(l::__NR_unshare, &[NEW | flags]), 0);
    assert_eq!(set(program, "/proc/self/setgroups", "deny"), 4);
    assert_eq!(set(program, "/proc/self/uid_map", "0 1000 1\n"), 9);
    assert_eq!(set(program, "/proc/self/gid_map", "0 1000 1\n"), 9);
}

fn ids(program: &Program<'_>) -> [i64; 4] {
    [l::__NR_getuid, l::__NR_geteuid, l::__NR_getgid, l::__NR_getegid]
        .map(|call| program.call(call, &[]))
}

/// User and group of a file.
fn owner(program: &Program<'_>, path: &str) -> (u32, u32) {
    program.stat(path).map(|stat| stat.owner()).unwrap()
}

fn capabilities(program: &Program<'_>) -> String {
    let status = String::from_utf8(program.contents("/proc/self/status")).unwrap();
    status.lines().find(|line| line.starts_with("CapEff")).unwrap().to_owned()
}

#[test]
fn anybody_can_be_root_in_a_namespace_of_its_own() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    first.make("/tmp/of-root", b"");
    let one = user(&first);
    one.make("/tmp/mine", b"");
    assert_eq!(one.readlink("/proc/self/ns/user"), "user:[4026531837]");
    assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0);
    assert_ne!(one.readlink("/proc/self/ns/user"), "user:[4026531837]");
    assert_eq!(ids(&one), [65534; 4]);
    assert_eq!(capabilities(&one), "CapEff:\t000001ffffffffff");
    assert_eq!(one.contents("/proc/self/uid_map"), b"");
    assert_eq!(set(&one, "/proc/self/setgroups", "deny\n"), 5);
    assert_eq!(set(&one, "/proc/self/gid_map", "0 1000 1"), 8);
    assert_eq!(set(&one, "/proc/self/uid_map", "0 1000 1"), 8);
    assert_eq!(ids(&one), [0; 4]);
    assert_eq!(one.contents("/proc/self/uid_map"), b"         0       1000          1\n");
    assert_eq!(first.contents("/proc/1/uid_map"), b"         0          0 4294967295\n");
    assert_eq!([owner(&one, "/tmp/mine"), owner(&one, "/tmp/of-root")], [(0, 0), (65534, 65534)]);
    one.make("/tmp/new", b"");
    assert_eq!([owner(&one, "/tmp/new"), owner(&first, "/tmp/new")], [(0, 0), (1000, 1000)]);
    // Its own children are there, too, and outside they are who they were.
    let child = one.fork();
    assert_eq!(ids(&child), [0; 4]);
    let path = format!("/proc/{}/status", child.thread.tid.get().first());
    let status = String::from_utf8(first.contents(&path)).unwrap();
    assert!(status.contains("Uid:\t1000\t1000\t1000\t1000\n"), "{status}");
    // Once only.
    assert_eq!(set(&one, "/proc/self/uid_map", "0 1000 1"), EPERM);
    assert_eq!(one.call(l::__NR_setgroups, &[0, 0]), EPERM);
    // Another namespace in it, in which numbers mean the one above.
    assert_eq!(child.call(l::__NR_unshare, &[NEW]), 0);
    assert_eq!(set(&child, "/proc/self/uid_map", "7 0 1"), 5);
    assert_eq!(ids(&child)[..2], [7, 7]);
    assert_eq!(child.contents("/proc/self/uid_map"), b"         7          0          1\n");
    let path = format!("/proc/{}/uid_map", child.thread.tid.get().first());
    assert_eq!(first.contents(&path), b"         7       1000          1\n");
}

#[test]
fn maps_are_what_their_writer_may_give() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0);
    let (users, groups) = ("/proc/self/uid_map", "/proc/self/gid_map");
    for (text, wanted) in [
        ("", EINVAL),
        ("0", EINVAL),
        ("0 1000", EINVAL),
        ("0 1000 0", EINVAL),
        ("0 1000 1 1", EINVAL),
        ("x 1000 1", EINVAL),
        ("4294967295 1000 2", EINVAL),
        ("0 1000 1\n0 1001 1", EINVAL),
        ("0 1000 2\n5 1001 1", EINVAL),
        ("0 0 1", EPERM),
        ("0 999 1", EPERM),
        ("0 1000 2", EPERM),
        ("0 1000 1\n1 1001 1", EPERM),
    ] {
        assert_eq!(set(&one, users, text), wanted, "{text:?}");
    }
    // Groups can be left by nobody who could not before.
    assert_eq!(set(&one, groups, "0 1000 1"), EPERM);
    assert_eq!(set(&one, "/proc/self/setgroups", "perhaps"), EINVAL);
    assert_eq!(set(&one, "/proc/self/setgroups", "deny"), 4);
    assert_eq!(set(&one, "/proc/self/setgroups", "allow"), EPERM);
    assert_eq!(one.contents("/proc/self/setgroups"), b"deny\n");
    assert_eq!(set(&one, groups, "0 0 1"), EPERM);
    assert_eq!(set(&one, groups, "0 1000 1"), 8);
    // Whoever has the right to it above can give more; not to its own namespace.
    let number = one.thread.tid.get().first();
    assert_eq!(set(&user(&first), &format!("/proc/{number}/uid_map"), "0 1000 1"), 8);
    let other = user(&first);
    assert_eq!(other.call(l::__NR_unshare, &[NEW]), 0);
    let number = other.thread.tid.get().first();
    let map = "0 1000 1\n1 100000 65536\n";
    assert_eq!(set(&first, &format!("/proc/{number}/uid_map"), map), map.len() as i64);
    assert_eq!(set(&first, &format!("/proc/{number}/gid_map"), map), map.len() as i64);
    assert_eq!(set(&first, "/proc/1/uid_map", map), EPERM);
    assert_eq!(other.call(l::__NR_setuid, &[65537]), EINVAL);
    assert_eq!(other.call(l::__NR_setgroups, &[1, world.words(&other.thread, &[3])]), 0);
    assert_eq!(other.call(l::__NR_setresuid, &[5; 3]), 0);
    assert_eq!(other.thread.process().credentials.borrow().uid, 100_004);
    assert_eq!(capabilities(&other), "CapEff:\t0000000000000000");
}

#[test]
fn other_namespaces_belong_to_one_of_users() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    let name = |program: &Program<'_>| {
        let at = program.path(0, b"other");
        program.call(l::__NR_sethostname, &[at, 5])
    };
    as_root(&one, 0);
    assert_eq!(name(&one), EPERM);
    let flags = l::CLONE_NEWUTS | l::CLONE_NEWIPC | l::CLONE_NEWPID | l::CLONE_NEWNS;
    assert_eq!(one.call(l::__NR_unshare, &[flags.into()]), 0);
    assert_eq!(name(&one), 0);
    let child = one.fork();
    assert_eq!(child.call(l::__NR_getpid, &[]), 1);
    // Whose they are.
    for kind in ["uts", "ipc", "mnt", "pid", "user"] {
        let fd = child.opened(&format!("/proc/self/ns/{kind}"), 0);
        let owner = child.call(l::__NR_ioctl, &[fd, 0xB701, 0]);
        if kind == "user" {
            assert_eq!(owner, EPERM);
            assert_eq!(child.call(l::__NR_ioctl, &[fd, 0xB704, child.buffer]), 0);
            assert_eq!(world.read_u32(&child.thread, child.buffer), 0);
        } else {
            let link = child.readlink(&format!("/proc/self/fd/{owner}"));
            assert_eq!(link, child.readlink("/proc/self/ns/user"), "{kind}");
        }
    }
    // Together with the users, in one call, and by clone.
    let other = user(&first);
    as_root(&other, l::CLONE_NEWUTS.into());
    assert_eq!(name(&other), 0);
    let third = user(&first);
    let flags = NEW | u64::from(l::CLONE_NEWUTS | l::CLONE_NEWPID | l::SIGCHLD);
    let number = third.call(l::__NR_clone, &[flags]) as u64;
    let born = third.with(&world.thread_of(&third.thread, number));
    world.next_event(&born.thread);
    assert_eq!((name(&born), name(&third)), (0, EPERM));
    // As if it had run a program there.
    born.thread.process().state.not_dumpable.set(false);
    assert_eq!(born.call(l::__NR_getpid, &[]), 1);
    // The maker's outside may enter, with what it has made.
    let fd = third.opened(&format!("/proc/{number}/ns/uts"), 0);
    let users = third.opened(&format!("/proc/{number}/ns/user"), 0);
    assert_eq!(third.call(l::__NR_setns, &[fd, 0]), EPERM);
    assert_eq!(third.call(l::__NR_setns, &[users, 0]), 0);
    assert_eq!(third.call(l::__NR_setns, &[users, 0]), EINVAL);
    assert_eq!(third.call(l::__NR_setns, &[fd, 0]), 0);
}

#[test]
fn who_shares_memory_makes_no_namespace() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let parent = user(&first);
    world.waits(&parent.thread, l::__NR_vfork, &[]);
    let number = parent.thread.process().children.borrow()[0].number;
    let child = parent.with(&world.thread(number.into()));
    world.next_event(&child.thread);
    assert_eq!(child.call(l::__NR_unshare, &[NEW]), EINVAL);
    assert_eq!(child.call(l::__NR_unshare, &[l::CLONE_VM.into()]), EINVAL);
    world.call(&child.thread, l::__NR_exit, &[0]);
    world.collect();
    assert_eq!(world.next_reply(&parent.thread), Some(number.into()));
    assert_eq!(parent.call(l::__NR_unshare, &[NEW]), 0);
}

#[test]
fn namespaces_are_refused_where_they_would_be_too_many() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    let thread = u64::from(l::CLONE_THREAD | l::CLONE_SIGHAND | l::CLONE_VM);
    assert_eq!(one.call(l::__NR_clone, &[NEW | thread, 0x5000]), EINVAL);
    assert_eq!(one.call(l::__NR_clone, &[NEW | u64::from(l::CLONE_FS)]), EINVAL);
    for level in 1..=32 {
        assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0, "{level}");
        let above = if level == 1 { 1000 } else { 0 };
        let map = format!("0 {above} 1");
        assert_eq!(set(&one, "/proc/self/uid_map", &map), map.len() as i64);
        if level == 1 {
            assert_eq!(set(&one, "/proc/self/setgroups", "deny"), 4);
        }
        assert_eq!(set(&one, "/proc/self/gid_map", &map), map.len() as i64);
    }
    assert_eq!(ids(&one), [0; 4]);
    assert_eq!(one.call(l::__NR_unshare, &[NEW]), ENOSPC);
    // Who has no number in its own cannot make one; nor who is in another root directory.
    let two = user(&first);
    assert_eq!(two.call(l::__NR_unshare, &[NEW]), 0);
    assert_eq!(two.call(l::__NR_unshare, &[NEW]), EPERM);
    let three = first.fork();
    three.mkdir("/tmp/root");
    assert_eq!(three.on(l::__NR_chroot, "/tmp/root", &[]), 0);
    assert_eq!(three.call(l::__NR_unshare, &[NEW]), EPERM);
}
