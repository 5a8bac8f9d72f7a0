//! What processes may do: capabilities, `no_new_privs`, seccomp's strict mode.

use std::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::{prctl as p, ptrace as t};
use unix::errno::Errno;
use unix::machine::Reply;
use unix::process::capability::{ALL, Capabilities};
use unix::thread::Thread;

use crate::common::World;
use crate::common::program::{Extra, Load, Member, archive, elf};

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u64 = 0x2008_0522;
const CODE: &[u8] = &[0x0f, 0x05, 0xeb, 0xfe];

fn world() -> World {
    let world = World::new();
    let program = elf(0x40_1000, &[Load(0x40_1000, CODE, 4, 5)], &Extra::default());
    let members = [
        Member("bin", 0o40_755, b""),
        Member("bin/plain", 0o100_755, &program),
        Member("bin/suid", 0o104_755, &program),
        Member("bin/sgid", 0o102_755, &program),
        Member("secret", 0o100_600, b"secret"),
    ];
    unix::fs::unpack(&world.unix, &archive(&members)).unwrap();
    world
}

fn sets(thread: &Rc<Thread>) -> Capabilities {
    thread.process.credentials.borrow().capabilities
}

fn prctl(world: &World, thread: &Rc<Thread>, option: u32, args: &[u64]) -> i64 {
    let mut all = vec![u64::from(option)];
    all.extend_from_slice(args);
    world.now(thread, l::__NR_prctl, &all) as i64
}

#[track_caller]
fn exec(world: &World, thread: &Rc<Thread>, path: &str) {
    let path = world.text(thread, path);
    assert_eq!(world.call(thread, l::__NR_execve, &[path, 0, 0]), None);
    assert_eq!(world.next_event(thread), Some(Reply::Resume));
    world.forget_scratch(thread);
}

/// `capset`: effective, permitted, inheritable.
fn capset(
    world: &World,
    thread: &Rc<Thread>,
    [effective, permitted, inheritable]: [u64; 3],
) -> i64 {
    let header = world.words(thread, &[VERSION]);
    let word = |index: u32| {
        let half = |set: u64| set >> (32 * index) & 0xffff_ffff;
        [half(effective), half(permitted), half(inheritable)]
    };
    let bytes: Vec<u8> =
        [word(0), word(1)].concat().iter().flat_map(|half| (*half as u32).to_le_bytes()).collect();
    let data = world.put(thread, &bytes);
    world.now(thread, l::__NR_capset, &[header, data]) as i64
}

/// `capget`: effective, permitted, inheritable.
fn capget(world: &World, thread: &Rc<Thread>) -> [u64; 3] {
    let header = world.words(thread, &[VERSION]);
    let data = world.put(thread, &[0; 24]);
    world.ok(thread, l::__NR_capget, &[header, data]);
    let half = |index: u64| u64::from(world.read_u32(thread, data + 4 * index));
    [0, 1, 2].map(|set| half(set) | half(set + 3) << 32)
}

const EPERM: i64 = -1;
const EACCES: i64 = -13;
const EINVAL: i64 = -22;

#[test]
fn who_wants_no_new_privileges_gets_none() {
    let world = world();
    let user = world.fork(&world.first);
    world.ok(&user, l::__NR_setresgid, &[1000; 3]);
    world.ok(&user, l::__NR_setresuid, &[1000; 3]);
    let other = world.fork(&user);
    exec(&world, &other, "/bin/suid");
    assert_eq!(other.process.credentials.borrow().euid, 0);
    assert_eq!(sets(&other).effective, ALL);
    assert_eq!(prctl(&world, &user, p::PR_SET_NO_NEW_PRIVS, &[1, 0, 0, 0]), 0);
    for program in ["/bin/suid", "/bin/sgid"] {
        let heir = world.fork(&user);
        exec(&world, &heir, program);
        let who = heir.process.credentials.borrow().clone();
        assert_eq!((who.euid, who.suid, who.egid, who.sgid), (1000, 1000, 1000, 1000));
        assert_eq!((who.capabilities.permitted, who.capabilities.effective), (0, 0));
    }
    // User 0 does not get back what it gave up, either.
    let root = world.fork(&world.first);
    assert_eq!(prctl(&world, &root, p::PR_SET_NO_NEW_PRIVS, &[1, 0, 0, 0]), 0);
    assert_eq!(capset(&world, &root, [1, 1, 0]), 0);
    exec(&world, &root, "/bin/plain");
    assert_eq!((sets(&root).permitted, sets(&root).effective), (1, 1));
}

/// User 0 with few rights, as in a container, is not the user 0 that has all.
#[test]
fn who_may_less_does_not_look_into_who_may_more() {
    let world = world();
    let (all, few) = (world.fork(&world.first), world.fork(&world.first));
    assert_eq!(capset(&world, &few, [1, 1, 0]), 0);
    let looks = |who: &Rc<Thread>, at: &Rc<Thread>| {
        let pid = u64::from(at.process.number);
        let text = world.text(who, &format!("/proc/{pid}/environ"));
        let file = world.ok(who, l::__NR_open, &[text, l::O_RDONLY.into(), 0]);
        let buffer = world.scratch(who, 64);
        let pieces = world.words(who, &[buffer, 8]);
        let pidfd = world.ok(who, l::__NR_pidfd_open, &[pid, 0]);
        let seize = t::PTRACE_SEIZE.into();
        [
            world.now(who, l::__NR_read, &[file, buffer, 64]) as i64,
            world.now(who, l::__NR_process_vm_writev, &[pid, pieces, 1, pieces, 1, 0]) as i64,
            world.now(who, l::__NR_pidfd_getfd, &[pidfd, 0, 0]) as i64,
            world.now(who, l::__NR_get_robust_list, &[pid, buffer, buffer + 8]) as i64,
            world.now(who, l::__NR_ptrace, &[seize, pid, 0, 0]) as i64,
        ]
    };
    assert_eq!(looks(&few, &all), [EACCES, EPERM, EPERM, EPERM, EPERM]);
    assert!(looks(&all, &few).iter().all(|answer| ![EACCES, EPERM].contains(answer)));
}

#[test]
fn capset_refuses_what_it_must_and_capget_tells_the_rest() {
    let world = world();
    let root = world.fork(&world.first);
    assert_eq!(capget(&world, &root), [ALL, ALL, 0]);
    assert_eq!(capset(&world, &root, [0b111, 0b111, 0b10]), 0);
    assert_eq!(capget(&world, &root), [0b111, 0b111, 0b10]);
    // More is permitted, in effect, inherited than there is.
    assert_eq!(capset(&world, &root, [0b111, 0b1111, 0b10]), EPERM);
    assert_eq!(capset(&world, &root, [0b110, 0b101, 0b10]), EPERM);
    assert_eq!(capset(&world, &root, [0b111, 0b111, 0b1010]), EPERM);
    assert_eq!(capset(&world, &root, [0b1, 0b11, 0b110]), 0);
    // What is permitted can be put into effect again.
    assert_eq!(capset(&world, &root, [0b11, 0b11, 0b110]), 0);
    assert_eq!(capget(&world, &root), [0b11, 0b11, 0b110]);
    let header = world.words(&root, &[VERSION | 1 << 32]);
    let data = world.put(&root, &[0; 24]);
    world.refused(&root, l::__NR_capset, &[header, data], Errno::EPERM);
    world.ok(&root, l::__NR_capget, &[header, data]);
    let old = world.words(&root, &[1]);
    world.refused(&root, l::__NR_capget, &[old, data], Errno::EINVAL);
    assert_eq!(world.read_u64(&root, old), VERSION);
}

#[test]
fn user_0_without_a_capability_may_not_either() {
    let world = world();
    let root = world.fork(&world.first);
    world.ok(&root, l::__NR_setresgid, &[7; 3]);
    let secret = world.text(&root, "/secret");
    world.ok(&root, l::__NR_chown, &[secret, 5, 5]);
    assert_eq!(capset(&world, &root, [0, ALL, 0]), 0);
    let name = world.text(&root, "host");
    world.refused(&root, l::__NR_sethostname, &[name, 4], Errno::EPERM);
    world.refused(&root, l::__NR_setuid, &[5], Errno::EPERM);
    world.refused(&root, l::__NR_setgroups, &[0, 0], Errno::EPERM);
    world.refused(&root, l::__NR_chown, &[secret, 0, 0], Errno::EPERM);
    world.refused(&root, l::__NR_open, &[secret, 0, 0], Errno::EACCES);
    world.refused(&root, l::__NR_chroot, &[world.text(&root, "/bin")], Errno::EPERM);
    let read_search = 1 << l::CAP_DAC_READ_SEARCH;
    assert_eq!(capset(&world, &root, [read_search, ALL, 0]), 0);
    world.refused(&root, l::__NR_open, &[secret, 1, 0], Errno::EACCES);
    world.ok(&root, l::__NR_open, &[secret, 0, 0]);
}

#[test]
fn a_change_of_users_changes_capabilities() {
    let world = world();
    let user = world.fork(&world.first);
    world.ok(&user, l::__NR_setresuid, &[u64::MAX, 1000, u64::MAX]);
    assert_eq!((sets(&user).permitted, sets(&user).effective), (ALL, 0));
    world.ok(&user, l::__NR_setresuid, &[u64::MAX, 0, u64::MAX]);
    assert_eq!(sets(&user).effective, ALL);
    world.ok(&user, l::__NR_setfsuid, &[1000]);
    assert_eq!(sets(&user).effective & 0b11111, 0);
    world.ok(&user, l::__NR_setfsuid, &[0]);
    assert_eq!(sets(&user).effective, ALL);
    let keeper = world.fork(&user);
    assert_eq!(prctl(&world, &keeper, p::PR_SET_KEEPCAPS, &[1]), 0);
    for (thread, kept) in [(&user, 0), (&keeper, ALL)] {
        world.ok(thread, l::__NR_setuid, &[1000]);
        assert_eq!((sets(thread).permitted, sets(thread).effective), (kept, 0));
    }
    exec(&world, &keeper, "/bin/plain");
    assert_eq!(sets(&keeper).permitted, 0);
    assert_eq!(prctl(&world, &keeper, p::PR_GET_KEEPCAPS, &[]), 0);
}

#[test]
fn bounding_and_ambient_sets_decide_what_a_program_gets() {
    let world = world();
    let (bit, other) = (1_u64 << l::CAP_KILL, 1_u64 << l::CAP_SYS_TIME);
    let root = world.fork(&world.first);
    let drop = |thread, which: u32| prctl(&world, thread, p::PR_CAPBSET_DROP, &[which.into()]);
    assert_eq!(drop(&root, l::CAP_SYS_TIME), 0);
    assert_eq!(drop(&root, 41), EINVAL);
    assert_eq!(prctl(&world, &root, p::PR_CAPBSET_READ, &[l::CAP_SYS_TIME.into()]), 0);
    assert_eq!(prctl(&world, &root, p::PR_CAPBSET_READ, &[l::CAP_KILL.into()]), 1);
    // Dropped from the bounding set, it is lost with the next program only.
    assert_eq!(sets(&root).permitted, ALL);
    exec(&world, &root, "/bin/plain");
    assert_eq!(sets(&root).permitted, ALL & !other);
    // An ambient capability must be permitted and inheritable; it survives a program.
    let ambient = |what: u32, which: u32| {
        prctl(&world, &root, p::PR_CAP_AMBIENT, &[what.into(), which.into(), 0, 0])
    };
    assert_eq!(ambient(p::PR_CAP_AMBIENT_RAISE, l::CAP_KILL), EPERM);
    assert_eq!(prctl(&world, &root, p::PR_SET_KEEPCAPS, &[1]), 0);
    world.ok(&root, l::__NR_setuid, &[1000]);
    assert_eq!(capset(&world, &root, [bit, bit, bit]), 0);
    assert_eq!(ambient(p::PR_CAP_AMBIENT_RAISE, l::CAP_KILL), 0);
    assert_eq!(ambient(p::PR_CAP_AMBIENT_IS_SET, l::CAP_KILL), 1);
    assert_eq!(drop(&root, l::CAP_CHOWN), EPERM);
    exec(&world, &root, "/bin/plain");
    assert_eq!((sets(&root).permitted, sets(&root).effective), (bit, bit));
    world.ok(&root, l::__NR_kill, &[1, 0]);
    // A set-id program takes it away, giving what user 0 has.
    exec(&world, &root, "/bin/suid");
    assert_eq!((sets(&root).permitted, sets(&root).ambient), (ALL & !other, 0));
}

#[test]
fn locked_secure_bits_stay() {
    let world = world();
    let root = world.fork(&world.first);
    let set = |bits: u64| prctl(&world, &root, p::PR_SET_SECUREBITS, &[bits]);
    assert_eq!(set(1 << 20), EPERM);
    // SECBIT_NOROOT and its lock.
    assert_eq!(set(3), 0);
    assert_eq!(set(0), EPERM);
    assert_eq!(set(2), EPERM);
    assert_eq!(prctl(&world, &root, p::PR_GET_SECUREBITS, &[]), 3);
    exec(&world, &root, "/bin/plain");
    assert_eq!((sets(&root).permitted, sets(&root).effective), (0, 0));
    assert_eq!(set(3), EPERM);
}

#[test]
fn a_strict_thread_reads_writes_and_ends() {
    let world = world();
    let first = &world.first;
    let strict = world.fork(first);
    let ends = world.words(&strict, &[0]);
    world.ok(&strict, l::__NR_pipe, &[ends]);
    let pipe = world.read_u64(&strict, ends);
    let (from, to) = (pipe & 0xffff_ffff, pipe >> 32);
    assert_eq!(prctl(&world, &strict, p::PR_GET_SECCOMP, &[]), 0);
    world.refused(&strict, l::__NR_seccomp, &[1, 0, 0], Errno::EFAULT);
    let bad = world.fork(&strict);
    for (thread, call) in [
        (&strict, (l::__NR_prctl, [p::PR_SET_SECCOMP.into(), 1, 0])),
        (&bad, (l::__NR_seccomp, [0, 0, 0])),
    ] {
        world.ok(thread, call.0, &call.1);
        world.ok(thread, l::__NR_write, &[to, ends, 1]);
        world.ok(thread, l::__NR_read, &[from, ends, 1]);
    }
    assert_eq!(world.call(&strict, l::__NR_exit, &[3]), None);
    assert_eq!(strict.process.ended.get(), Some(3 << 8));
    assert_eq!(world.call(&bad, l::__NR_getpid, &[]), None);
    assert_eq!(bad.process.ended.get(), Some(l::SIGKILL));
    for number in [l::__NR_prctl, l::__NR_exit_group, 511, 512, u32::MAX] {
        let child = world.fork(first);
        world.ok(&child, l::__NR_seccomp, &[0, 0, 0]);
        assert_eq!(world.call(&child, number, &[]), None);
        assert_eq!(child.process.ended.get(), Some(l::SIGKILL), "call {number}");
    }
}
