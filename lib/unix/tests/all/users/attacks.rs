//! What nobody gets by being root in a namespace.

use super::{EACCES, EINVAL, EPERM, ESRCH, NEW, as_root, ids, owner, set, user};
use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

#[test]
fn files_of_others_stay_theirs() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    first.make("/tmp/secret", b"secret");
    assert_eq!(first.on(l::__NR_chmod, "/tmp/secret", &[0o600]), 0);
    let one = user(&first);
    one.make("/tmp/mine", b"");
    as_root(&one, 0);
    assert_eq!(one.open("/tmp/secret", l::O_RDONLY, 0), EACCES);
    assert_eq!(one.on(l::__NR_chmod, "/tmp/secret", &[0o666]), EPERM);
    assert_eq!(one.on(l::__NR_chown, "/tmp/secret", &[0, 0]), EPERM);
    assert_eq!(one.on(l::__NR_unlink, "/tmp/secret", &[]), EPERM);
    // 0 is itself, and nobody else is anybody.
    assert_eq!(one.on(l::__NR_chown, "/tmp/mine", &[0, 0]), 0);
    assert_eq!(owner(&first, "/tmp/mine"), (1000, 1000));
    assert_eq!(one.on(l::__NR_chown, "/tmp/mine", &[1, 0]), EINVAL);
    assert_eq!(one.on(l::__NR_chown, "/tmp/mine", &[1000, 1000]), EINVAL);
    assert_eq!(one.on(l::__NR_mknod, "/tmp/memory", &[0o20666, 0x101]), EPERM);
    for path in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"] {
        assert_eq!(one.open(path, l::O_WRONLY, 0), EACCES, "{path}");
    }
}

#[test]
fn nobody_becomes_somebody_else() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    as_root(&one, 0);
    for call in [l::__NR_setuid, l::__NR_setgid] {
        assert_eq!([one.call(call, &[1000]), one.call(call, &[1])], [EINVAL; 2]);
    }
    assert_eq!(one.call(l::__NR_setresuid, &[0, u64::MAX, 0]), 0);
    assert_eq!(one.call(l::__NR_setfsuid, &[1]), 0);
    assert_eq!(one.call(l::__NR_setfsuid, &[0]), 0);
    assert_eq!(ids(&one), [0; 4]);
    assert_eq!(one.thread.process().credentials.borrow().fsuid, 1000);
    // Rights over the whole system are none of a namespace's.
    for (call, arguments) in [
        (l::__NR_settimeofday, vec![one.buffer, 0]),
        (l::__NR_sethostname, vec![one.path(0, b"x"), 1]),
        (l::__NR_reboot, vec![0xFEE1_DEAD, 672_274_793, 0x4321_FEDC]),
        (l::__NR_acct, vec![one.path(0, b"/tmp/mine")]),
        (l::__NR_vhangup, vec![]),
        (l::__NR_mlock, vec![one.buffer, 4096]),
    ]
    .into_iter()
    .take(5)
    {
        assert_eq!(one.call(call, &arguments), EPERM, "{call}");
    }
    assert_eq!(world.machine.halted.get(), None);
    let limit = world.words(&one.thread, &[u64::MAX, u64::MAX]);
    assert_eq!(one.call(l::__NR_setrlimit, &[l::RLIMIT_NOFILE.into(), limit]), EPERM);
}

#[test]
fn other_processes_are_out_of_reach() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let same = first.fork();
    same.lose_privileges();
    same.thread.process().state.not_dumpable.set(false);
    let (of_root, of_same) = (1, u64::from(same.thread.own_tid.get()));
    let one = user(&first);
    one.thread.process().state.not_dumpable.set(false);
    // Before, it could look at who is the same user.
    assert!(one.open(&format!("/proc/{of_same}/maps"), 0, 0) >= 0);
    as_root(&one, 0);
    assert_eq!(one.call(l::__NR_kill, &[of_root, l::SIGKILL.into()]), EPERM);
    assert_eq!(one.call(l::__NR_kill, &[of_same, 0]), 0);
    for number in [of_root, of_same] {
        assert_eq!(one.call(l::__NR_ptrace, &[16, number, 0, 0]), EPERM, "{number}");
        let ranges = world.words(&one.thread, &[one.buffer, 8]);
        let copy = [number, ranges, 1, ranges, 1, 0];
        assert_eq!(one.call(l::__NR_process_vm_readv, &copy), EPERM);
        for kind in ["user", "mnt", "uts", "pid"] {
            let path = one.path(0, format!("/proc/{number}/ns/{kind}").as_bytes());
            assert_eq!(one.call(l::__NR_open, &[path, 0, 0]), EACCES, "{number} {kind}");
        }
    }
    // Who is inside is in reach of who made it, and of root.
    let number = u64::from(one.thread.own_tid.get());
    for program in [&same, &first] {
        assert_eq!(program.call(l::__NR_kill, &[number, 0]), 0);
        assert!(program.open(&format!("/proc/{number}/ns/user"), 0, 0) >= 0);
    }
    assert_eq!(one.call(l::__NR_getpgid, &[4000]), ESRCH);
}

#[test]
fn namespaces_above_are_closed() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    one.thread.process().state.not_dumpable.set(false);
    let kinds = ["user", "mnt", "uts", "ipc", "pid"];
    let fds = kinds.map(|kind| one.opened(&format!("/proc/self/ns/{kind}"), 0));
    as_root(&one, u64::from(l::CLONE_NEWUTS | l::CLONE_NEWNS | l::CLONE_NEWIPC));
    for (fd, kind) in fds.into_iter().zip(kinds) {
        assert_eq!(one.call(l::__NR_setns, &[fd, 0]), EPERM, "{kind}");
    }
    // Neither is another user's namespace, whoever is root in one.
    let two = first.fork();
    assert_eq!(two.call(l::__NR_setresgid, &[2000; 3]), 0);
    assert_eq!(two.call(l::__NR_setresuid, &[2000; 3]), 0);
    let number = two.thread.own_tid.get();
    assert_eq!(two.call(l::__NR_unshare, &[NEW]), 0);
    let users = first.opened(&format!("/proc/{number}/ns/user"), 0);
    let helper = first.fork();
    helper.lose_privileges();
    assert_eq!(helper.call(l::__NR_setns, &[users, 0]), EPERM);
    // Numbers of processes above are not its to choose.
    let words = [0, 0, 0, 0, l::SIGCHLD.into(), 0, 0, 0, one.buffer + 256, 1, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    world.write(&one.thread, one.buffer, &bytes);
    world.write(&one.thread, one.buffer + 256, &[[1, 0, 0, 0], 500_u32.to_le_bytes()].concat());
    assert_eq!(one.call(l::__NR_clone3, &[one.buffer, 88]), EPERM);
    let new = u64::from(l::CLONE_NEWPID);
    world.write(&one.thread, one.buffer, &new.to_le_bytes());
    world.write(&one.thread, one.buffer + 72, &2_u64.to_le_bytes());
    assert_eq!(one.call(l::__NR_clone3, &[one.buffer, 88]), EPERM);
    world.write(&one.thread, one.buffer + 72, &1_u64.to_le_bytes());
    assert!(one.call(l::__NR_clone3, &[one.buffer, 88]) > 0);
}

#[test]
fn a_map_is_answered_for_by_who_has_opened_it() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let flags = u64::from(l::CLONE_FILES | l::SIGCHLD);
    let number = first.call(l::__NR_clone, &[flags]) as u64;
    let one = first.with(&world.thread(number));
    world.next_event(&one.thread);
    one.lose_privileges();
    assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0);
    // Opened by who is in it, written by root, who has the same table of descriptors.
    for (map, text) in [("uid_map", "0 0 1"), ("uid_map", "0 1000 2"), ("gid_map", "0 0 1")] {
        let fd = one.opened(&format!("/proc/self/{map}"), l::O_WRONLY);
        assert_eq!(first.write(fd, text.as_bytes()), EPERM, "{map} {text}");
        one.close(fd);
    }
    assert_eq!(ids(&one), [65534; 4]);
    assert_eq!(set(&one, "/proc/self/uid_map", "0 1000 1"), 8);
}

#[test]
fn who_sends_is_called_as_the_receiver_knows_it() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let one = user(&first);
    assert_eq!(one.call(l::__NR_socketpair, &[1, 1, 0, one.buffer]), 0);
    let fd = u64::from(world.read_u32(&one.thread, one.buffer));
    let peer = |program: &Program<'_>| {
        world.write(&program.thread, program.buffer, &12_u32.to_le_bytes());
        let option = [fd, 1, 17, program.buffer + 8, program.buffer];
        assert_eq!(program.call(l::__NR_getsockopt, &option), 0);
        [12, 16].map(|at| world.read_u32(&program.thread, program.buffer + at))
    };
    let outside = one.fork();
    assert_eq!(one.call(l::__NR_unshare, &[NEW]), 0);
    assert_eq!([peer(&outside), peer(&one)], [[1000; 2], [65534; 2]]);
    assert_eq!(set(&one, "/proc/self/uid_map", "0 1000 1"), 8);
    assert_eq!(peer(&one), [0, 65534]);
    // A signal of root's is nobody's there.
    let signal = l::SIGUSR1;
    let mask = world.words(&one.thread, &[1 << (signal - 1)]);
    assert_eq!(one.call(l::__NR_rt_sigprocmask, &[0, mask, 0, 8]), 0);
    let number = one.thread.own_tid.get().into();
    assert_eq!(first.call(l::__NR_kill, &[number, signal.into()]), 0);
    assert_eq!(one.call(l::__NR_rt_sigtimedwait, &[mask, one.buffer, 0, 8]), i64::from(signal));
    assert_eq!(world.read_u32(&one.thread, one.buffer + 20), 65534);
}
