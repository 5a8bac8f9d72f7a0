//! The first process of a namespace: what it is safe from, whom it inherits, what ends with it.

use super::{ANY, CHILD, ECHILD, EINVAL, ENOMEM, ESRCH, NEW, born, calls_itself, kill, wait};
use crate::common::World;
use crate::common::caller::Program;
use linux_raw_sys::general as l;

#[test]
fn an_init_is_safe_from_its_own() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW);
    let (_, child) = born(&init, 0);
    let runs = || init.thread.process().ended.get().is_none();
    for signal in [l::SIGKILL, l::SIGTERM, l::SIGSTOP, l::SIGSEGV, l::SIGTSTP] {
        assert_eq!([kill(&child, 1, signal), kill(&init, 1, signal)], [0; 2]);
        assert!(runs() && init.thread.process().signals.stopped.get().is_none(), "{signal}");
    }
    // Neither do they get further by claiming to be nobody, or the kernel.
    for code in [l::SI_QUEUE, l::SI_TKILL, l::SI_KERNEL as i32] {
        let said = [l::SIGKILL.to_le_bytes(), [0; 4], code.to_le_bytes(), [0; 4], [0; 4]].concat();
        world.write(&child.thread, child.buffer, &said);
        let send = [1, l::SIGKILL.into(), child.buffer];
        child.call(l::__NR_rt_sigqueueinfo, &send);
        child.call(l::__NR_rt_tgsigqueueinfo, &[1, 1, l::SIGKILL.into(), child.buffer]);
    }
    let pidfd = child.call(l::__NR_pidfd_open, &[1, 0]) as u64;
    child.call(l::__NR_pidfd_send_signal, &[pidfd, l::SIGKILL.into(), 0, 0]);
    child.call(l::__NR_kill, &[ANY, l::SIGKILL.into()]);
    assert!(runs());
    // From above it can be stopped and killed, but not asked.
    assert_eq!(kill(&first, outer, l::SIGTERM), 0);
    assert!(runs());
    assert_eq!(kill(&first, outer, l::SIGSTOP), 0);
    assert!(init.thread.process().signals.stopped.get().is_some());
    assert_eq!(kill(&first, outer, l::SIGCONT), 0);
    assert_eq!(kill(&first, outer, l::SIGKILL), 0);
    assert!(!runs());
    assert_eq!(wait(&first, ANY), (outer as i64, l::SIGKILL));
}

#[test]
fn all_of_a_namespace_end_with_its_init() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW);
    let (_, child) = born(&init, 0);
    let (_, grandchild) = born(&child, 0);
    let (_, deeper) = born(&child, NEW);
    // One that has a parent outside.
    let (_, guest) = born(&first, 0);
    let fd = guest.opened(&format!("/proc/{outer}/ns/pid"), 0);
    assert_eq!(guest.call(l::__NR_setns, &[fd, 0]), 0);
    let (visitor, _) = born(&guest, 0);
    // The child stays a zombie of its namespace, and the grandchild stands still.
    world.call(&child.thread, l::__NR_exit, &[3]);
    assert_eq!(calls_itself(&grandchild)[2], 1);
    let pidfd = first.call(l::__NR_pidfd_open, &[outer, 0]) as u64;
    let is_told = || {
        let poll = [pidfd.to_le_bytes()[..4].to_vec(), vec![1, 0, 0, 0]].concat();
        world.write(&first.thread, first.buffer, &poll);
        first.call(l::__NR_poll, &[first.buffer, 1, 0]) == 1
    };
    assert!(!is_told());
    world.call(&init.thread, l::__NR_exit, &[7]);
    for process in [&grandchild, &deeper] {
        assert_eq!(process.thread.process().ended.get(), Some(l::SIGKILL));
    }
    assert!(is_told());
    assert_eq!(wait(&first, ANY), (outer as i64, 7 << 8));
    assert_eq!(wait(&guest, ANY), (visitor as i64, l::SIGKILL));
    assert_eq!(world.unix.processes.by_pid.borrow().len(), 2);
    // Nobody is born there any more.
    assert_eq!(guest.call(l::__NR_fork, &[]), ENOMEM);
    assert_eq!(guest.call(l::__NR_setns, &[guest.opened("/proc/self/ns/pid", 0), 0]), 0);
    assert!(guest.call(l::__NR_fork, &[]) > 0);
}

#[test]
fn an_init_s_end_is_told_when_the_others_have_ended() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW);
    let (_, child) = born(&init, 0);
    world.waits(&first.thread, l::__NR_wait4, &[outer, first.buffer, 0, 0]);
    let process = init.thread.process();
    unix::process::end_process(&world.unix, &process, 5 << 8);
    // The child ends at its turn.
    assert!(child.thread.process().ended.get().is_none() && process.state.lingers.get());
    assert!(world.unix.processes.process(process.pid).is_some());
    world.collect();
    assert_eq!(child.thread.process().ended.get(), Some(l::SIGKILL));
    assert_eq!(world.next_reply(&first.thread), Some(outer));
    let (outer, init) = born(&first, NEW);
    let (_, _) = born(&init, 0);
    world.call(&init.thread, l::__NR_exit, &[5]);
    assert_eq!(wait(&first, ANY), (outer as i64, 5 << 8));
    assert_eq!(wait(&first, ANY), (ECHILD, 0));
}

#[test]
fn orphans_stay_in_their_namespace() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let above = first.fork();
    const SUBREAPER: u64 = 36;
    assert_eq!(above.call(l::__NR_prctl, &[SUBREAPER, 1]), 0);
    let (_, init) = born(&above, NEW);
    let (_, child) = born(&init, 0);
    let (_, orphan) = born(&child, 0);
    world.call(&child.thread, l::__NR_exit, &[0]);
    assert_eq!(calls_itself(&orphan)[2], 1);
    assert_eq!([wait(&init, ANY), wait(&init, ANY)], [(2, 0), (0, 0)]);
    // A visitor's child, whose parent is above, comes to the init as well.
    let (_, guest) = born(&first, 0);
    let number = init.thread.tid.get().first();
    let fd = guest.opened(&format!("/proc/{number}/ns/pid"), 0);
    assert_eq!(guest.call(l::__NR_setns, &[fd, 0]), 0);
    let (_, visitor) = born(&guest, 0);
    let (_, left) = born(&visitor, 0);
    assert_eq!(calls_itself(&visitor)[2], 0);
    world.call(&visitor.thread, l::__NR_exit, &[0]);
    assert_eq!(calls_itself(&left)[2], 1);
    // The subreaper above gets the visitor's like of its own, and the parent's end is a signal from above.
    const DEATH_SIGNAL: u64 = 1;
    assert_eq!(init.call(l::__NR_prctl, &[DEATH_SIGNAL, l::SIGKILL.into()]), 0);
    world.call(&above.thread, l::__NR_exit, &[0]);
    assert_eq!(init.thread.process().ended.get(), Some(l::SIGKILL));
}

#[test]
fn a_reboot_ends_the_namespace() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let reboot = |program: &Program<'_>, what: u32| {
        world.call(&program.thread, l::__NR_reboot, &[0xFEE1_DEAD, 672_274_793, what.into()])
    };
    for (what, signal) in [(0x0123_4567, l::SIGHUP), (0x4321_FEDC, l::SIGINT)] {
        let (outer, init) = born(&first, NEW);
        let (_, child) = born(&init, 0);
        assert_eq!(reboot(&init, 0xD000_FCE2).map(|value| value as i64), Some(EINVAL));
        assert_eq!(reboot(&child, what), None);
        assert_eq!(wait(&first, ANY), (outer as i64, signal));
    }
    assert_eq!(world.machine.halted.get(), None);
}

#[test]
fn who_is_killed_for_memory_is_killed_although_it_is_an_init() {
    let world = World::new();
    let first = Program::new(&world, &world.first);
    let (outer, init) = born(&first, NEW | CHILD);
    unix::process::end_by_signal(&world.unix, &first.fork().thread.process(), l::SIGKILL);
    let kernel = unix::signal::Info::kernel(l::SIGKILL);
    unix::signal::send(&world.unix, &init.thread.process(), kernel);
    world.collect();
    assert_eq!(wait(&first, outer), (outer as i64, l::SIGKILL));
    assert_eq!(kill(&first, outer, 0), ESRCH);
}
