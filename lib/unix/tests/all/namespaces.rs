//! Namespaces: names of the system that not everybody sees, and files that are namespaces.

use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

const EPERM: i64 = -1;
const EBADF: i64 = -9;
const EINVAL: i64 = -22;
const NEW: u64 = l::CLONE_NEWUTS as u64;

fn set_host(program: &Program<'_>, name: &str) {
    let at = program.path(0, name.as_bytes());
    assert_eq!(program.call(l::__NR_sethostname, &[at, name.len() as u64]), 0);
}

/// The host's name, by `uname` and by `/proc`, which agree.
#[track_caller]
fn host(program: &Program<'_>) -> String {
    assert_eq!(program.call(l::__NR_uname, &[program.buffer]), 0);
    let bytes = program.world.read(&program.thread, program.buffer + 65, 65);
    let name = bytes.split(|byte| *byte == 0).next().unwrap();
    let name = String::from_utf8(name.to_vec()).unwrap();
    let told = program.contents("/proc/sys/kernel/hostname");
    assert_eq!(told, format!("{name}\n").into_bytes());
    name
}

fn setns(program: &Program<'_>, fd: u64, kind: u64) -> i64 {
    program.call(l::__NR_setns, &[fd, kind])
}

#[test]
fn names_are_the_process_s_own_if_it_wants() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let own = first.fork();
    let link = first.readlink("/proc/self/ns/uts");
    assert_eq!(
        (link.as_str(), own.readlink("/proc/self/ns/uts")),
        ("uts:[4026531838]", link.clone())
    );
    let before = own.opened("/proc/self/ns/uts", 0);
    assert_eq!(own.call(l::__NR_unshare, &[NEW]), 0);
    assert_ne!(own.readlink("/proc/self/ns/uts"), link);
    assert_eq!(host(&own), "baton");
    set_host(&own, "other");
    let heir = own.fork();
    assert_eq!([host(&first), host(&own), host(&heir)], ["baton", "other", "other"]);
    // A child has its own if that was asked for.
    let flags = NEW | u64::from(l::SIGCHLD);
    let tid = own.call(l::__NR_clone, &[flags]) as u64;
    let third = own.with(&world.thread(tid));
    world.next_event(&third.thread);
    set_host(&third, "third");
    assert_eq!([host(&own), host(&third)], ["other", "third"]);
    // Back again, and into that of another process.
    assert_eq!(setns(&own, before, 0), 0);
    assert_eq!(host(&own), "baton");
    let pidfd = own.call(l::__NR_pidfd_open, &[tid, 0]) as u64;
    assert_eq!(setns(&own, pidfd, 0), EINVAL);
    assert_eq!(setns(&own, pidfd, NEW), 0);
    assert_eq!(host(&own), "third");
    assert_eq!(own.readlink("/proc/self/ns/uts"), third.readlink("/proc/self/ns/uts"));
    set_host(&first, "changed");
    assert_eq!([host(&first), host(&own)], ["changed", "third"]);
}

#[test]
fn who_may_not_and_what_is_none() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/file", b"");
    let file = program.opened("/tmp/file", 0);
    let [names, users] = ["uts", "user"].map(|one| program.opened(&format!("/proc/1/ns/{one}"), 0));
    assert_eq!(program.open("/proc/1/ns/uts", l::O_RDWR, 0), EPERM);
    assert_eq!(program.call(l::__NR_read, &[names, program.buffer, 8]), EINVAL);
    assert_eq!(program.names("/proc/1/ns"), ["mnt", "user", "uts"]);
    assert_eq!(program.readlink(&format!("/proc/self/fd/{names}")), "uts:[4026531838]");
    for (fd, kind, wanted) in [
        (u32::MAX.into(), NEW, EBADF),
        (file, NEW, EINVAL),
        (file, 0, EINVAL),
        (names, u32::MAX.into(), EINVAL),
        (names, l::CLONE_NEWUSER.into(), EINVAL),
        (users, 0, EINVAL),
        (names, NEW, 0),
    ] {
        assert_eq!(setns(&program, fd, kind), wanted, "{fd} {kind:x}");
    }
    let ioctl = |fd: u64, request: u64| program.call(l::__NR_ioctl, &[fd, request, program.buffer]);
    let of_names = [0xB701, 0xB702, 0xB703, 0xB704].map(|request| ioctl(names, request));
    assert_eq!(of_names[1..], [EINVAL, l::CLONE_NEWUTS.into(), EINVAL]);
    assert_eq!(program.readlink(&format!("/proc/self/fd/{}", of_names[0])), "user:[4026531837]");
    let of_users = [0xB701, 0xB702, 0xB703, 0xB704].map(|request| ioctl(users, request));
    assert_eq!(of_users, [EPERM, EPERM, l::CLONE_NEWUSER.into(), 0]);
    let unshare = |program: &Program<'_>, flags: u64| program.call(l::__NR_unshare, &[flags]);
    assert_eq!(
        [u64::MAX, l::CLONE_NEWIPC.into()].map(|flags| unshare(&program, flags)),
        [EINVAL; 2]
    );
    let user = program.fork();
    user.lose_privileges();
    let all = [NEW, l::CLONE_NEWNS.into(), l::CLONE_NEWUSER.into(), u64::MAX];
    assert_eq!(all.map(|flags| unshare(&user, flags)), [EPERM, EPERM, EINVAL, EINVAL]);
    assert_eq!(user.call(l::__NR_clone, &[NEW]), EPERM);
    assert_eq!(setns(&user, names, 0), EPERM);
}
