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
    assert_eq!(
        program.names("/proc/1/ns"),
        ["ipc", "mnt", "pid", "pid_for_children", "time", "time_for_children", "user", "uts"]
    );
    assert_eq!(program.readlink(&format!("/proc/self/fd/{names}")), "uts:[4026531838]");
    for (fd, kind, wanted) in [
        (u32::MAX.into(), NEW, EBADF),
        (file, NEW, EINVAL),
        (file, 0, EINVAL),
        (names, u32::MAX.into(), EINVAL),
        (names, l::CLONE_NEWUSER.into(), EINVAL),
        // It is in that one already.
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
        [u64::MAX, l::CLONE_NEWNET.into()].map(|flags| unshare(&program, flags)),
        [EINVAL; 2]
    );
    let user = program.fork();
    user.lose_privileges();
    let all = [NEW, l::CLONE_NEWNS.into(), l::CLONE_NEWNET.into(), u64::MAX];
    assert_eq!(all.map(|flags| unshare(&user, flags)), [EPERM, EPERM, EPERM, EINVAL]);
    assert_eq!(user.call(l::__NR_clone, &[NEW]), EPERM);
    assert_eq!(setns(&user, names, 0), EPERM);
}

const IPC: u64 = l::CLONE_NEWIPC as u64;
const ENOENT: i64 = -2;
/// Flags of a new object.
const CREATE: u64 = 0o1600;

/// How many segments a process finds, and a heading.
fn segments(program: &Program<'_>) -> usize {
    program.contents("/proc/sysvipc/shm").iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn objects_of_ipc_are_found_in_their_namespace_only() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let other = first.fork();
    assert_eq!(first.readlink("/proc/self/ns/ipc"), "ipc:[4026531839]");
    let semaphores = first.call(l::__NR_semget, &[7, 1, CREATE]);
    let segment = first.call(l::__NR_shmget, &[7, 4096, CREATE]);
    let messages = first.call(l::__NR_msgget, &[7, CREATE]);
    assert!([segment, semaphores, messages].iter().all(|number| *number >= 0));
    let queue = |program: &Program<'_>, flags: u32| {
        let name = program.path(0, b"queue");
        program.call(l::__NR_mq_open, &[name, flags.into(), 0o600, 0])
    };
    assert!(queue(&first, l::O_CREAT | l::O_RDWR) >= 0);
    // Changed with SEM_UNDO: taken back when it leaves.
    let change = world.words(&other.thread, &[0x1000_0003_0000]);
    assert_eq!(other.call(l::__NR_semop, &[semaphores as u64, change, 1]), 0);
    let value = || first.call(l::__NR_semctl, &[semaphores as u64, 0, 12]);
    assert_eq!(value(), 3);
    assert_eq!(other.call(l::__NR_unshare, &[IPC]), 0);
    assert_eq!(value(), 0);
    assert_ne!(other.readlink("/proc/self/ns/ipc"), "ipc:[4026531839]");
    assert_eq!(other.call(l::__NR_shmget, &[7, 4096, 0o600]), ENOENT);
    assert_eq!(other.call(l::__NR_semget, &[7, 1, 0o600]), ENOENT);
    assert_eq!(other.call(l::__NR_msgget, &[7, 0o600]), ENOENT);
    assert_eq!(queue(&other, l::O_RDWR), ENOENT);
    assert_eq!([&first, &other].map(segments), [2, 1]);
}

#[test]
fn a_namespace_of_ipc_ends_with_its_last_process() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let other = first.fork();
    let before = other.opened("/proc/self/ns/ipc", 0);
    assert_eq!(other.call(l::__NR_unshare, &[IPC]), 0);
    let own = other.call(l::__NR_shmget, &[9, 4096, CREATE]) as u64;
    assert_eq!([&first, &other].map(segments), [1, 2]);
    let at = other.call(l::__NR_shmat, &[own, 0, 0]) as u64;
    world.write(&other.thread, at, b"there");
    assert_eq!(setns(&other, before, 0), 0);
    assert_eq!(segments(&other), 1);
    assert_eq!(other.call(l::__NR_shmget, &[9, 4096, 0o600]), ENOENT);
    // What is attached stays, until it is detached.
    assert_eq!(world.read(&other.thread, at, 5), b"there");
    assert_eq!(other.call(l::__NR_shmdt, &[at]), 0);
    assert_eq!(other.call(l::__NR_shmdt, &[at]), EINVAL);
}

#[test]
fn a_child_has_a_namespace_of_ipc_of_its_own_if_it_may() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    assert!(first.call(l::__NR_shmget, &[7, 4096, CREATE]) >= 0);
    let flags = IPC | u64::from(l::SIGCHLD);
    assert_eq!(first.call(l::__NR_clone, &[flags | u64::from(l::CLONE_SYSVSEM)]), EINVAL);
    let heir = first.call(l::__NR_clone, &[flags]) as u64;
    let heir = first.with(&world.thread(heir));
    world.next_event(&heir.thread);
    assert_eq!(heir.call(l::__NR_shmget, &[7, 4096, 0o600]), ENOENT);
    heir.lose_privileges();
    assert_eq!(heir.call(l::__NR_unshare, &[IPC]), EPERM);
}
