//! Processes: fork, vfork, threads, exit, wait, groups and sessions, orphans, limits.

use crate::common::World;
use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::Reply;
use unix::process::Pid;

/// `wait4(pid, &status, options, NULL)`: its result, and the status if one was written.
#[track_caller]
fn wait4(
    world: &World,
    thread: &std::rc::Rc<unix::thread::Thread>,
    pid: i64,
    options: u32,
) -> (i64, u32) {
    let status = world.put(thread, &[0xEE; 4]);
    let result = world.now(thread, l::__NR_wait4, &[pid as u64, status, u64::from(options), 0]);
    (result as i64, world.read_u32(thread, status))
}

#[test]
fn a_child_ends_and_is_waited_for() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    assert_eq!(world.registers(&child).rax, 0);
    let pid = u64::from(child.process().number);
    assert_eq!(world.ok(&child, l::__NR_getppid, &[]), 1);
    assert_eq!(wait4(&world, first, -1, l::WNOHANG).0, 0);
    let status = world.put(first, &[0; 4]);
    world.waits(first, l::__NR_wait4, &[pid, status, 0, 0]);
    assert_eq!(world.call(&child, l::__NR_exit_group, &[7]), None);
    assert_eq!(world.next_reply(first), Some(pid));
    assert_eq!(world.read_u32(first, status), 7 << 8);
    assert_eq!(wait4(&world, first, -1, 0).0, -10);
    assert_eq!(world.machine.threads.borrow().len(), 1);
    assert_eq!(world.machine.spaces.borrow().len(), 1);
}

#[test]
fn memory_is_copied_by_fork_and_shared_by_vfork() {
    let world = World::new();
    let first = &world.first;
    let at = world.put(first, b"parent");
    let child = world.fork(first);
    world.write(&child, at, b"child!");
    assert_eq!(world.read(first, at, 6), b"parent");

    world.waits(first, l::__NR_vfork, &[]);
    let pid = child.own_tid.get() + 1;
    let vchild = world.thread(u64::from(pid));
    assert_eq!(world.next_event(&vchild), Some(Reply::Resume));
    world.write(&vchild, at, b"vfork!");
    assert_eq!(world.next_reply(first), None);
    world.call(&vchild, l::__NR_exit_group, &[0]);
    assert_eq!(world.next_reply(first), Some(u64::from(pid)));
    assert_eq!(world.read(first, at, 6), b"vfork!");
}

#[test]
fn only_sigkill_ends_a_wait_for_vfork() {
    let world = World::new();
    let parent = world.fork(&world.first);
    world.waits(&parent, l::__NR_vfork, &[]);
    let pid = u64::from(parent.own_tid.get());
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGTERM.into()]);
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    assert_eq!(parent.process().ended.get(), None);
    assert_eq!(parent.process().signals.stopped.get(), None);
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGKILL.into()]);
    assert_eq!(parent.process().ended.get(), Some(l::SIGKILL));
}

#[test]
fn threads_share_their_process_and_exit_one_by_one() {
    let world = World::new();
    let process = world.fork(&world.first);
    let words = world.words(&process, &[0, 0]);
    let flags = l::CLONE_VM
        | l::CLONE_FS
        | l::CLONE_FILES
        | l::CLONE_SIGHAND
        | l::CLONE_THREAD
        | l::CLONE_SETTLS
        | l::CLONE_PARENT_SETTID
        | l::CLONE_CHILD_CLEARTID;
    let arguments = [flags.into(), 0x5000, words, words + 8, 0x1234_5000];
    world.write(&process, words + 8, &[9; 4]);
    let tid = world.ok(&process, l::__NR_clone, &arguments);
    let thread = world.thread(tid);
    assert_eq!(world.next_event(&thread), Some(Reply::Resume));
    let registers = world.registers(&thread);
    assert_eq!((registers.rax, registers.rsp, registers.fs_base), (0, 0x5000, 0x1234_5000));
    assert_eq!(u64::from(world.read_u32(&process, words)), tid);
    assert_eq!(world.ok(&thread, l::__NR_getpid, &[]), u64::from(process.own_tid.get()));
    assert_eq!(world.ok(&thread, l::__NR_gettid, &[]), tid);
    world.call(&thread, l::__NR_exit, &[3]);
    assert_eq!(world.read_u32(&process, words + 8), 0);
    assert_eq!(process.process().ended.get(), None);
    assert!(world.unix.processes.thread(Pid::from_first(tid as u32)).is_none());
    world.call(&process, l::__NR_exit, &[4]);
    assert_eq!(process.process().ended.get(), Some(4 << 8));
}

#[test]
fn exit_group_and_fatal_signals_end_all_threads() {
    let world = World::new();
    for kill in [false, true] {
        let process = world.fork(&world.first);
        let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD;
        let tid = world.ok(&process, l::__NR_clone, &[flags.into(), 0x5000]);
        let thread = world.thread(tid);
        assert_eq!(world.next_event(&thread), Some(Reply::Resume));
        world.waits(&thread, l::__NR_pause, &[]);
        let status = if kill {
            world.ok(
                &world.first,
                l::__NR_kill,
                &[process.own_tid.get().into(), l::SIGTERM.into()],
            );
            l::SIGTERM
        } else {
            world.call(&process, l::__NR_exit_group, &[5]);
            5 << 8
        };
        assert_eq!(process.process().ended.get(), Some(status));
        assert_eq!(wait4(&world, &world.first, -1, 0), (process.own_tid.get().into(), status));
    }
    assert_eq!(world.machine.threads.borrow().len(), 1);
}

#[test]
fn impossible_clones_are_refused() {
    let world = World::new();
    let first = &world.first;
    let bad =
        [l::CLONE_THREAD, l::CLONE_SIGHAND, l::CLONE_THREAD | l::CLONE_SIGHAND, l::CLONE_PARENT];
    for flags in bad {
        world.refused(first, l::__NR_clone, &[flags.into(), 0], Errno::EINVAL);
    }
    let arguments = world.words(first, &[0; 12]);
    world.refused(first, l::__NR_clone3, &[arguments, 63], Errno::EINVAL);
    world.refused(first, l::__NR_clone3, &[arguments, 4097], Errno::E2BIG);
    world.refused(first, l::__NR_clone3, &[8, 64], Errno::EFAULT);
    let stack_without_size = world.words(first, &[0, 0, 0, 0, 17, 0x5000, 0, 0, 0, 0, 0]);
    world.refused(first, l::__NR_clone3, &[stack_without_size, 88], Errno::EINVAL);
    let more = world.words(first, &[0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 1]);
    world.refused(first, l::__NR_clone3, &[more, 96], Errno::E2BIG);
    assert_eq!(world.machine.threads.borrow().len(), 1);
    let good = world.words(first, &[0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]);
    let pid = world.ok(first, l::__NR_clone3, &[good, 96]);
    assert_eq!(world.next_event(&world.thread(pid)), Some(Reply::Resume));
}

#[test]
fn a_fork_bomb_meets_the_limit() {
    let world = World::new();
    let mut count = 0;
    loop {
        let result = world.now(&world.first, l::__NR_fork, &[]) as i64;
        if result < 0 {
            assert_eq!(result, -11);
            break;
        }
        world.next_event(&world.thread(result as u64));
        count += 1;
        assert!(count < 20_000);
    }
    assert!(count > 60);
    // Zombies count, too; when they are buried there is room again.
    let child = world.thread(2);
    world.call(&child, l::__NR_exit_group, &[0]);
    world.refused(&world.first, l::__NR_fork, &[], Errno::EAGAIN);
    assert_eq!(wait4(&world, &world.first, 2, 0).0, 2);
    assert!(world.ok(&world.first, l::__NR_fork, &[]) > 0);
}

#[test]
fn the_machine_s_limit_is_told_and_nothing_is_left_behind() {
    let world = World::new();
    world.machine.max_threads.set(1);
    world.refused(&world.first, l::__NR_fork, &[], Errno::EAGAIN);
    assert_eq!(world.machine.spaces.borrow().len(), 1);
    assert!(world.first.process().children.borrow().is_empty());
    assert_eq!(world.unix.processes.by_pid.borrow().len(), 1);
}

#[test]
fn stops_and_continues_are_reported() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    let pid = u64::from(child.own_tid.get());
    world.ok(first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    assert_eq!(world.machine.with(child.machine.get(), |thread| thread.stops), 1);
    assert_eq!(wait4(&world, first, -1, l::WNOHANG).0, 0);
    assert_eq!(wait4(&world, first, -1, l::WUNTRACED), (pid as i64, l::SIGSTOP << 8 | 0x7F));
    assert_eq!(wait4(&world, first, -1, l::WUNTRACED | l::WNOHANG).0, 0);
    assert_eq!(world.next_event(&child), None);
    world.ok(first, l::__NR_kill, &[pid, l::SIGCONT.into()]);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(wait4(&world, first, -1, l::WCONTINUED), (pid as i64, 0xFFFF));
    // A process that stops itself gets the result of its call when it is continued.
    assert_eq!(world.call(&child, l::__NR_kill, &[pid, l::SIGSTOP.into()]), None);
    assert_eq!(child.process().signals.stopped.get(), Some(l::SIGSTOP));
    world.ok(first, l::__NR_kill, &[pid, l::SIGCONT.into()]);
    assert_eq!(world.next_reply(&child), Some(0));
    // A stopped process can be killed.
    world.ok(first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    world.ok(first, l::__NR_kill, &[pid, l::SIGKILL.into()]);
    assert_eq!(wait4(&world, first, -1, 0), (pid as i64, l::SIGKILL));
}

#[test]
fn a_call_that_waits_goes_on_after_a_stop() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    let pid = u64::from(child.own_tid.get());
    let time = world.words(&child, &[1, 0]);
    world.waits(&child, l::__NR_nanosleep, &[time, 0]);
    world.ok(first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    world.advance(2_000_000_000);
    assert_eq!(world.next_reply(&child), None);
    world.ok(first, l::__NR_kill, &[pid, l::SIGCONT.into()]);
    assert_eq!(world.next_reply(&child), Some(0));
}

#[test]
fn waitid_tells_more_and_can_leave_the_child() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    let pid = u64::from(child.own_tid.get());
    world.call(&child, l::__NR_exit_group, &[0x1FF]);
    let info = world.put(first, &[0xEE; 128]);
    let options = u64::from(l::WEXITED | l::WNOWAIT);
    for options in [options, u64::from(l::WEXITED)] {
        let arguments = [l::P_PID.into(), pid, info, options, 0];
        assert_eq!(world.ok(first, l::__NR_waitid, &arguments), 0);
        let words = |at| world.read_u32(first, info + at);
        assert_eq!(
            (words(0), words(8), words(16), words(24)),
            (l::SIGCHLD, l::CLD_EXITED, pid as u32, 0xFF)
        );
    }
    let any = [l::P_ALL.into(), 0, info, u64::from(l::WEXITED)];
    world.refused(first, l::__NR_waitid, &any, Errno::ECHILD);
    world.refused(first, l::__NR_waitid, &[l::P_ALL.into(), 0, info, 0], Errno::EINVAL);
    world.refused(first, l::__NR_waitid, &[9, 0, info, 4], Errno::EINVAL);
    world.refused(first, l::__NR_wait4, &[u64::MAX, 0, 0x40, 0], Errno::EINVAL);
    world.refused(first, l::__NR_wait4, &[i32::MIN as u64, 0, 0, 0], Errno::ESRCH);
}

#[test]
fn who_ignores_sigchld_gets_no_zombies() {
    let world = World::new();
    let first = &world.first;
    let action = world.words(first, &[1, 0, 0, 0]);
    world.ok(first, l::__NR_rt_sigaction, &[l::SIGCHLD.into(), action, 0, 8]);
    let child = world.fork(first);
    let status = world.put(first, &[0; 4]);
    world.waits(first, l::__NR_wait4, &[u64::MAX, status, 0, 0]);
    world.call(&child, l::__NR_exit_group, &[0]);
    assert_eq!(world.next_reply(first), Some(Errno::ECHILD.result()));
    assert_eq!(world.unix.processes.by_pid.borrow().len(), 1);
}

#[test]
fn orphans_go_to_a_reaper_or_to_process_1() {
    let world = World::new();
    let reaper = world.fork(&world.first);
    world.ok(&reaper, l::__NR_prctl, &[linux_raw_sys::prctl::PR_SET_CHILD_SUBREAPER.into(), 1]);
    let middle = world.fork(&reaper);
    let child = world.fork(&middle);
    world.ok(&child, l::__NR_prctl, &[linux_raw_sys::prctl::PR_SET_PDEATHSIG.into(), 17]);
    world.call(&middle, l::__NR_exit_group, &[0]);
    assert_eq!(world.ok(&child, l::__NR_getppid, &[]), reaper.own_tid.get().into());
    world.call(&reaper, l::__NR_exit_group, &[0]);
    assert_eq!(world.ok(&child, l::__NR_getppid, &[]), 1);
    world.call(&child, l::__NR_exit_group, &[0]);
    // Process 1 buries all three.
    for _ in 0..3 {
        assert!(wait4(&world, &world.first, -1, 0).0 > 1);
    }
    assert_eq!(wait4(&world, &world.first, -1, 0).0, -10);
}

#[test]
fn groups_and_sessions() {
    let world = World::new();
    let first = &world.first;
    let shell = world.fork(first);
    let pid = u64::from(shell.own_tid.get());
    assert_eq!(world.ok(&shell, l::__NR_setsid, &[]), pid);
    world.refused(&shell, l::__NR_setsid, &[], Errno::EPERM);
    world.refused(&shell, l::__NR_setpgid, &[0, 0], Errno::EPERM);
    let job = world.fork(&shell);
    let job_pid = u64::from(job.own_tid.get());
    assert_eq!(world.ok(&job, l::__NR_getpgrp, &[]), pid);
    world.ok(&shell, l::__NR_setpgid, &[job_pid, 0]);
    assert_eq!(world.ok(&job, l::__NR_getpgid, &[0]), job_pid);
    assert_eq!(world.ok(&job, l::__NR_getsid, &[0]), pid);
    let second = world.fork(&shell);
    world.ok(&second, l::__NR_setpgid, &[0, job_pid]);
    world.refused(&second, l::__NR_setpgid, &[0, 1], Errno::EPERM);
    world.refused(&second, l::__NR_setpgid, &[job_pid, 0], Errno::ESRCH);
    world.refused(&second, l::__NR_setpgid, &[0, u64::MAX], Errno::EINVAL);
    world.refused(first, l::__NR_setpgid, &[pid, 0], Errno::EPERM);
    world.refused(first, l::__NR_getpgid, &[4000], Errno::ESRCH);
    // A signal to the group reaches both, and the group can be waited for.
    world.ok(&shell, l::__NR_kill, &[(-(job_pid as i64)) as u64, l::SIGINT.into()]);
    for _ in 0..2 {
        assert_eq!(wait4(&world, &shell, -(job_pid as i64), 0).1, l::SIGINT);
    }
    world.refused(&shell, l::__NR_kill, &[(-(job_pid as i64)) as u64, 0], Errno::ESRCH);
}

#[test]
fn a_stopped_job_without_shell_is_hung_up() {
    let world = World::new();
    let shell = world.fork(&world.first);
    world.ok(&shell, l::__NR_setsid, &[]);
    let job = world.fork(&shell);
    world.ok(&job, l::__NR_setpgid, &[0, 0]);
    let pid = u64::from(job.own_tid.get());
    world.ok(&shell, l::__NR_kill, &[pid, l::SIGTSTP.into()]);
    assert_eq!(job.process().signals.stopped.get(), Some(l::SIGTSTP));
    world.call(&shell, l::__NR_exit_group, &[0]);
    assert_eq!(job.process().ended.get(), Some(l::SIGHUP));
}

#[test]
fn terminal_stops_do_not_stop_orphans() {
    let world = World::new();
    let orphan = world.fork(&world.first);
    world.ok(&orphan, l::__NR_setsid, &[]);
    let pid = u64::from(orphan.own_tid.get());
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGTSTP.into()]);
    assert_eq!(orphan.process().signals.stopped.get(), None);
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    assert_eq!(orphan.process().signals.stopped.get(), Some(l::SIGSTOP));
}

#[test]
fn the_end_of_process_1_ends_the_system() {
    let world = World::new();
    world.call(&world.first, l::__NR_exit_group, &[3]);
    assert_eq!(world.machine.halted.get(), Some(3 << 8));
}

#[test]
fn a_policy_that_is_reset_on_fork_is() {
    let world = World::new();
    let parameter = world.put(&world.first, &[7, 0, 0, 0]);
    let policy = u64::from(l::SCHED_FIFO | l::SCHED_RESET_ON_FORK);
    world.ok(&world.first, l::__NR_sched_setscheduler, &[0, policy, parameter]);
    assert_eq!(world.ok(&world.first, l::__NR_sched_getscheduler, &[0]), policy);
    let child = world.fork(&world.first);
    assert_eq!(world.ok(&child, l::__NR_sched_getscheduler, &[0]), l::SCHED_NORMAL.into());
}

#[test]
fn who_has_all_the_threads_leaves_room_for_processes() {
    let world = World::new();
    let first = &world.first;
    let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD;
    let stack = world.scratch(first, 4096) + 4096;
    let clone = || world.now(first, l::__NR_clone, &[flags.into(), stack, 0, 0, 0]) as i64;
    let mut made = 0;
    let result = loop {
        match clone() {
            tid if tid > 0 => {
                made += u64::from(world.next_event(&world.thread(tid as u64)).is_some())
            }
            error => break error,
        }
    };
    assert_eq!(result, -11);
    assert!(made > 50, "{made}");
    world.fork(first);
    assert_eq!(clone(), -11);
}
