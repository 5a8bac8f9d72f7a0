//! Where numbers are told and said: `/proc`, signals, sockets, locks, owners, clocks, other objects.

use super::{ENOENT, EPERM, ESRCH, NEW, born, kill};
use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

/// Mounts `/proc` of the program's namespace.
#[track_caller]
fn mount_proc(program: &Program<'_>, at: &str) {
    program.mkdir(at);
    let (kind, to) = (program.path(0, b"proc"), program.path(1, at.as_bytes()));
    assert_eq!(program.call(l::__NR_mount, &[kind, to, kind, 0, 0]), 0);
}

fn line(text: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(text).into_owned();
    let line = text.lines().find(|line| line.starts_with(name));
    line.unwrap_or_else(|| panic!("no {name}")).to_owned()
}

#[test]
fn proc_shows_the_namespace_of_who_mounted_it() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW);
    let (_, child) = born(&init, 0);
    assert_eq!(child.call(l::__NR_setsid, &[]), 2);
    mount_proc(&init, "/tmp/proc");
    let numbers = |program: &Program<'_>, path: &str| {
        let names = program.names(path);
        names.into_iter().filter(|name| name.parse::<u32>().is_ok()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&init, "/tmp/proc"), ["1", "2"]);
    assert_eq!(numbers(&init, "/proc"), ["1", "2", "3"]);
    assert_eq!(init.readlink("/tmp/proc/self"), "1");
    assert_eq!(init.readlink("/proc/self"), format!("{outer}"));
    assert_eq!(child.readlink("/tmp/proc/thread-self"), "2/task/2");
    assert_eq!(init.names("/tmp/proc/2/task"), ["2"]);
    // Who is not there has no number there.
    let path = first.path(0, b"/tmp/proc/self");
    assert_eq!(first.call(l::__NR_readlink, &[path, first.buffer, 64]), ENOENT);
    assert_eq!(init.open("/tmp/proc/3/stat", 0, 0), ENOENT);
    let status = init.contents("/tmp/proc/2/status");
    for (name, wanted) in
        [("Pid", "2"), ("Tgid", "2"), ("PPid", "1"), ("NSpid", "2"), ("NSsid", "2")]
    {
        assert_eq!(line(&status, name), format!("{name}:\t{wanted}"));
    }
    let status = init.contents("/proc/3/status");
    for (name, wanted) in
        [("Pid", "3"), ("PPid", "2"), ("NStgid", "3\t2"), ("NSpid", "3\t2"), ("NSpgid", "3\t2")]
    {
        assert_eq!(line(&status, name), format!("{name}:\t{wanted}"));
    }
    let stat = String::from_utf8(first.contents("/tmp/proc/2/stat")).unwrap();
    assert!(stat.starts_with("2 ("), "{stat}");
    assert!(stat.contains(" 1 2 2 "), "{stat}");
    assert_eq!(line(&first.contents("/proc/1/status"), "NSpid"), "NSpid:\t1");
}

/// `si_pid` of the signal that is pending.
fn sender(program: &Program<'_>, signal: u32) -> u32 {
    let set = program.world.words(&program.thread, &[1 << (signal - 1)]);
    let info = program.buffer;
    assert_eq!(program.call(l::__NR_rt_sigtimedwait, &[set, info, 0, 8]), i64::from(signal));
    program.world.read_u32(&program.thread, info + 16)
}

#[test]
fn signals_say_who_sent_them_if_that_can_be_seen() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW);
    let (_, child) = born(&init, 0);
    let signal = l::SIGUSR1;
    for program in [&first, &init, &child] {
        let set = world.words(&program.thread, &[1 << (signal - 1) | 1 << (l::SIGCHLD - 1)]);
        assert_eq!(program.call(l::__NR_rt_sigprocmask, &[0, set, 0, 8]), 0);
    }
    assert_eq!(kill(&child, 1, signal), 0);
    assert_eq!(sender(&init, signal), 2);
    assert_eq!(kill(&first, outer, signal), 0);
    assert_eq!(sender(&init, signal), 0);
    assert_eq!(first.call(l::__NR_tgkill, &[3, 3, signal.into()]), 0);
    assert_eq!(sender(&child, signal), 0);
    // What it claims itself, it can only claim to who sees it.
    let said = [signal, 0, l::SI_QUEUE as u32, 0, 77, 0].map(u32::to_le_bytes).concat();
    world.write(&first.thread, first.buffer, &said);
    assert_eq!(first.call(l::__NR_rt_sigqueueinfo, &[3, signal.into(), first.buffer]), 0);
    assert_eq!(sender(&child, signal), 0);
    world.call(&child.thread, l::__NR_exit, &[0]);
    assert_eq!(sender(&init, l::SIGCHLD), 2);
    world.call(&init.thread, l::__NR_exit, &[0]);
    assert_eq!(sender(&first, l::SIGCHLD), outer as u32);
}

#[test]
fn sockets_say_who_is_there_in_the_numbers_of_who_asks() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (_, init) = born(&first, NEW);
    assert_eq!(init.call(l::__NR_socketpair, &[1, 1, 0, init.buffer]), 0);
    let fds = [0, 4].map(|at| u64::from(world.read_u32(&init.thread, init.buffer + at)));
    let (_, child) = born(&init, 0);
    let peer = |program: &Program<'_>, fd: u64| {
        world.write(&program.thread, program.buffer, &12_u32.to_le_bytes());
        let option = [fd, 1, 17, program.buffer + 8, program.buffer];
        assert_eq!(program.call(l::__NR_getsockopt, &option), 0);
        world.read_u32(&program.thread, program.buffer + 8)
    };
    assert_eq!([&init, &child].map(|one| peer(one, fds[0])), [1, 1]);
    // Owners of files, who holds locks, who made a segment.
    assert_eq!(child.call(l::__NR_fcntl, &[fds[0], l::F_SETOWN.into(), 2]), 0);
    assert_eq!(child.call(l::__NR_fcntl, &[fds[0], l::F_SETOWN.into(), 3]), ESRCH);
    let owner = |program: &Program<'_>| program.call(l::__NR_fcntl, &[fds[0], l::F_GETOWN.into()]);
    assert_eq!([&init, &child].map(owner), [2, 2]);
    first.make("/tmp/locked", b"");
    let lock = |program: &Program<'_>, command: u32| {
        let fd = program.opened("/tmp/locked", l::O_RDWR);
        let words = world.words(&program.thread, &[1, 0, 0, 0]);
        assert_eq!(program.call(l::__NR_fcntl, &[fd, command.into(), words]), 0);
        world.read_u32(&program.thread, words + 24)
    };
    lock(&child, l::F_SETLK);
    assert_eq!([&first, &init].map(|program| lock(program, l::F_GETLK)), [3, 2]);
    let segment = first.call(l::__NR_shmget, &[7, 4096, 0o1600]) as u64;
    let maker = |program: &Program<'_>| {
        assert_eq!(program.call(l::__NR_shmctl, &[segment, 2, program.buffer]), 0);
        world.read_u32(&program.thread, program.buffer + 80)
    };
    assert_eq!([&first, &init].map(maker), [1, 0]);
}

#[test]
fn arguments_that_are_numbers_mean_the_caller_s_own() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let others = first.fork();
    let (_, init) = born(&first, NEW);
    let (_, child) = born(&init, 0);
    assert_eq!(others.thread.own_tid.get(), 2);
    let set = [0, 2, 7].map(|value: u64| value);
    assert_eq!(init.call(l::__NR_setpriority, &set), 0);
    assert_eq!(child.thread.tuning.get().nice, 7);
    assert_eq!(others.thread.tuning.get().nice, 0);
    for (call, arguments) in [
        (l::__NR_getpgid, vec![4]),
        (l::__NR_getsid, vec![4]),
        (l::__NR_sched_getscheduler, vec![4]),
        (l::__NR_prlimit64, vec![4, 0, 0, 0]),
        (l::__NR_getpriority, vec![0, 4]),
        (l::__NR_pidfd_open, vec![4, 0]),
        (l::__NR_ptrace, vec![16, 4, 0, 0]),
        (l::__NR_tkill, vec![4, 0]),
        (l::__NR_tgkill, vec![4, 4, 0]),
        (l::__NR_kcmp, vec![4, 4, 0, 0, 0]),
        (l::__NR_setpgid, vec![4, 0]),
        (l::__NR_sched_getaffinity, vec![4, 8, init.buffer]),
        (l::__NR_get_robust_list, vec![4, init.buffer, init.buffer]),
    ] {
        assert_eq!(init.call(call, &arguments), ESRCH, "{call}");
    }
    assert_eq!(init.call(l::__NR_setpgid, &[2, 4]), EPERM);
    assert_eq!(init.call(l::__NR_setpgid, &[2, 2]), 0);
    assert_eq!([&init, &first].map(|one| one.call(l::__NR_getpgid, &[2])), [2, 1]);
    // The clock of a process: its number, inverted, above three bits.
    let clock = |number: i64| ((!number) << 3 | 2) as u64;
    assert_eq!(init.call(l::__NR_clock_getres, &[clock(2), 0]), 0);
    assert_eq!(init.call(l::__NR_clock_getres, &[clock(4), 0]), -22);
}

#[test]
fn a_futex_is_held_by_a_thread_and_says_its_number() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (_, init) = born(&first, NEW);
    let word = init.buffer;
    assert_eq!(init.call(l::__NR_futex, &[word, l::FUTEX_LOCK_PI.into(), 0, 0]), 0);
    assert_eq!(world.read_u32(&init.thread, word), 1);
    // Process 1 of all has the same number elsewhere, and ends nothing of it.
    assert_eq!(first.call(l::__NR_futex, &[word, l::FUTEX_LOCK_PI.into(), 0, 0]), 0);
    assert_eq!(first.call(l::__NR_futex, &[word, l::FUTEX_UNLOCK_PI.into(), 0, 0]), 0);
    assert_eq!(init.call(l::__NR_futex, &[word, l::FUTEX_UNLOCK_PI.into(), 0, 0]), 0);
    assert_eq!(world.read_u32(&init.thread, word), 0);
}
