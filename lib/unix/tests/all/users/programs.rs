//! Programs that are run in a namespace of users: set-id ones, and those that are not to be read.

use super::{EACCES, EPERM, NEW, as_root, capabilities, ids, user};
use crate::common::World;
use crate::common::caller::Program;
use crate::common::program::{Extra, Load, Member, archive, elf};
use linux_raw_sys::{general as l, ptrace as p};
use unix::machine::Reply;

const CODE: &[u8] = &[0x0f, 0x05, 0xeb, 0xfe];
const DATA: u64 = 0x40_3ff0;
const FILE: u32 = 0o100_755;
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// A world with programs of root's.
fn world() -> World {
    let loads = [Load(0x40_1000, CODE, 4, 5), Load(DATA, b"data at the end.", 0x5010, 6)];
    let plain = elf(0x40_1000, &loads, &Extra::default());
    let world = World::new();
    let members = [
        Member("bin", 0o40_755, b""),
        Member("bin/plain", FILE, &plain),
        Member("bin/hidden", 0o100_711, &plain),
        Member("bin/set-user", FILE | SET_USER, &plain),
        Member("bin/set-group", FILE | SET_GROUP, &plain),
        Member("bin/set-both", FILE | SET_USER | SET_GROUP, &plain),
    ];
    unix::fs::unpack(&world.unix, &archive(&members)).unwrap();
    world
}

/// Runs a program, whose calls are made from now on.
#[track_caller]
fn run<'a>(program: &Program<'a>, path: &str) -> Program<'a> {
    let (world, thread) = (program.world, &program.thread);
    let name = program.path(0, path.as_bytes());
    let argv = world.words(thread, &[name, 0]);
    assert_eq!(world.call(thread, l::__NR_execve, &[name, argv, 0]), None, "{path}");
    assert_eq!(world.next_event(thread), Some(Reply::Resume));
    world.forget_scratch(thread);
    Program::new(world, thread)
}

/// A copy of a program of the caller's own, with this mode.
fn copy(program: &Program<'_>, to: &str, mode: u32) {
    program.make(to, &program.contents("/bin/plain"));
    assert_eq!(program.on(l::__NR_chmod, to, &[mode.into()]), 0);
}

fn real(program: &Program<'_>) -> [u32; 4] {
    let who = program.thread.process();
    let who = who.credentials.borrow();
    [who.uid, who.euid, who.gid, who.egid]
}

#[test]
fn set_id_programs_of_who_is_not_known_give_nothing() {
    let world = world();
    let first = Program::new(&world, &world.first);
    for path in ["/bin/set-user", "/bin/set-group", "/bin/set-both"] {
        // Neither before anybody is known, nor with a map of one's own.
        let one = user(&first);
        assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0);
        let one = run(&one, path);
        assert_eq!(real(&one), [1000; 4], "{path}");
        assert_eq!(capabilities(&one), "CapEff:\t0000000000000000", "{path}");
        let one = user(&first);
        as_root(&one, 0);
        let one = run(&one, path);
        assert_eq!([real(&one), [1000; 4]], [[1000; 4]; 2], "{path}");
        assert_eq!(ids(&one), [0; 4]);
        assert!(!one.thread.process().state.not_dumpable.get());
        // It is root there as before, and nowhere else.
        assert_eq!(capabilities(&one), "CapEff:\t000001ffffffffff");
        assert_eq!(one.on(l::__NR_chmod, path, &[0o777]), EPERM);
        assert_eq!(first.call(l::__NR_kill, &[one.thread.own_tid.get().into(), 0]), 0);
    }
    // Whose user is known and whose group is not.
    copy(&first, "/tmp/half", 0);
    assert_eq!(first.on(l::__NR_chown, "/tmp/half", &[1000, 0]), 0);
    assert_eq!(first.on(l::__NR_chmod, "/tmp/half", &[(FILE | SET_GROUP).into()]), 0);
    let one = user(&first);
    as_root(&one, 0);
    assert_eq!(real(&run(&one, "/tmp/half")), [1000; 4]);
}

#[test]
fn set_id_programs_of_who_is_known_give_what_their_owner_has_there() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0);
    let number = one.thread.own_tid.get();
    let map = "0 1000 1\n1 100000 65536\n";
    for file in ["uid_map", "gid_map"] {
        let wrote = super::set(&first, &format!("/proc/{number}/{file}"), map);
        assert_eq!(wrote, map.len() as i64, "{file}");
    }
    copy(&one, "/tmp/of-user", FILE | SET_USER | SET_GROUP);
    for call in [l::__NR_setresgid, l::__NR_setresuid] {
        assert_eq!(one.call(call, &[5; 3]), 0);
    }
    assert_eq!(real(&one), [100_004; 4]);
    assert_eq!(capabilities(&one), "CapEff:\t0000000000000000");
    let other = run(&one.fork(), "/bin/set-both");
    assert_eq!(real(&other), [100_004; 4]);
    // Root's in the namespace, who is user 1000.
    let one = run(&one, "/tmp/of-user");
    assert_eq!(real(&one), [100_004, 1000, 100_004, 1000]);
    assert_eq!(ids(&one), [5, 0, 5, 0]);
    assert_eq!(capabilities(&one), "CapEff:\t000001ffffffffff");
    assert!(one.thread.process().state.not_dumpable.get());
    assert_eq!(one.on(l::__NR_chmod, "/bin/plain", &[0o777]), EPERM);
}

#[test]
fn set_id_programs_on_mounts_of_ones_own_count_there_only() {
    let world = world();
    let first = Program::new(&world, &world.first);
    first.mkdir("/tmp/a");
    let one = user(&first);
    one.thread.process().state.not_dumpable.set(false);
    as_root(&one, l::CLONE_NEWNS.into());
    assert_eq!(super::mounts::mount(&one, "none", "/tmp/a", "tmpfs", 0), 0);
    copy(&one, "/tmp/a/program", FILE | SET_USER | SET_GROUP);
    let number = one.thread.own_tid.get();
    let other = first.fork();
    assert_eq!(other.call(l::__NR_setresgid, &[2000; 3]), 0);
    let other = run(&other, &format!("/proc/{number}/root/tmp/a/program"));
    assert_eq!(real(&other), [0, 0, 2000, 2000]);
    let one = run(&one, "/tmp/a/program");
    assert_eq!(real(&one), [1000; 4]);
}

/// Root of a namespace would read any program that may be executed.
#[test]
fn a_program_that_is_not_to_be_read_is_not_read_by_a_namespace_s_root() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    as_root(&one, 0);
    assert_eq!(one.open("/bin/hidden", 0, 0), EACCES);
    let hidden = run(&one.fork(), "/bin/hidden");
    let number = u64::from(hidden.thread.own_tid.get());
    for file in ["mem", "maps", "environ", "exe", "auxv"] {
        let flags = if file == "mem" { 2 } else { 0 };
        let open = one.open(&format!("/proc/{number}/{file}"), flags, 0);
        let read =
            if open < 0 { open } else { one.call(l::__NR_read, &[open as u64, one.buffer, 8]) };
        assert_eq!(read, EACCES, "{file}");
    }
    let ranges = world.words(&one.thread, &[one.buffer, 8]);
    let theirs = world.words(&one.thread, &[DATA, 8]);
    let copy = [number, ranges, 1, theirs, 1, 0];
    assert_eq!(one.call(l::__NR_process_vm_readv, &copy), EPERM);
    for request in [p::PTRACE_ATTACH, p::PTRACE_SEIZE] {
        assert_eq!(one.call(l::__NR_ptrace, &[request.into(), number, 0, 0]), EPERM);
    }
    let to = one.buffer;
    assert_eq!(one.call(l::__NR_get_robust_list, &[number, to, to]), EPERM);
    // Neither of its children, whatever namespace they make.
    let child = hidden.fork();
    assert_eq!(child.call(l::__NR_unshare, &[NEW]), 0);
    let number = u64::from(child.thread.own_tid.get());
    assert_eq!(one.call(l::__NR_ptrace, &[p::PTRACE_SEIZE.into(), number, 0, 0]), EPERM);
    assert_eq!(first.call(l::__NR_ptrace, &[p::PTRACE_SEIZE.into(), number, 0, 0]), 0);
    // The next program is one that it may see.
    let plain = run(&hidden, "/bin/plain");
    let number = u64::from(plain.thread.own_tid.get());
    assert_eq!(one.call(l::__NR_ptrace, &[p::PTRACE_SEIZE.into(), number, 0, 0]), 0);
}

/// Root would have given its memory, and all that it can reach, to who is root in the namespace that it enters.
#[test]
fn who_enters_a_namespace_is_not_seen_there_before_its_next_program() {
    let world = world();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    as_root(&one, 0);
    let helper = first.fork();
    let users = helper.opened(&format!("/proc/{}/ns/user", one.thread.own_tid.get()), 0);
    assert_eq!(helper.call(l::__NR_setns, &[users, 0]), 0);
    let number = u64::from(helper.thread.own_tid.get());
    for file in ["mem", "maps", "fd", "root"] {
        let open = one.open(&format!("/proc/{number}/{file}"), 0, 0);
        let read =
            if open < 0 { open } else { one.call(l::__NR_read, &[open as u64, one.buffer, 8]) };
        assert_eq!(read, EACCES, "{file}");
    }
    assert_eq!(one.call(l::__NR_ptrace, &[p::PTRACE_SEIZE.into(), number, 0, 0]), EPERM);
    let pidfd = one.call(l::__NR_pidfd_open, &[number, 0]) as u64;
    assert_eq!(one.call(l::__NR_pidfd_getfd, &[pidfd, users, 0]), EPERM);
    let helper = run(&helper, "/bin/plain");
    let number = u64::from(helper.thread.own_tid.get());
    assert_eq!(one.call(l::__NR_ptrace, &[p::PTRACE_SEIZE.into(), number, 0, 0]), 0);
}
