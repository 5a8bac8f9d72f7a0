//! Births, ends and strangers.

use super::{ORIG_RAX, RAX, STOP, ask, child, go, refused, registers, wait};
use crate::common::World;
use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;
use unix::errno::Errno;
use unix::machine::Reply;
use unix::thread::Doing;

#[test]
fn children_of_a_traced_process_are_traced() {
    let world = World::new();
    let (child, pid) = child(&world);
    let options = p::PTRACE_O_TRACEFORK | p::PTRACE_O_TRACECLONE | p::PTRACE_O_TRACEEXIT;
    ask(&world, p::PTRACE_SETOPTIONS, pid, 0, options.into());
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    assert_eq!(world.call(&child, l::__NR_fork, &[]), None);
    let told = [wait(&world, 0), wait(&world, 0)];
    let event = (pid, (l::SIGTRAP | p::PTRACE_EVENT_FORK << 8) << 8 | STOP);
    assert!(told.contains(&event), "{told:x?}");
    let message = world.scratch(&world.first, 8);
    ask(&world, p::PTRACE_GETEVENTMSG, pid, 0, message);
    let grandchild = world.read_u64(&world.first, message);
    assert!(told.contains(&(grandchild, l::SIGSTOP << 8 | STOP)), "{told:x?}");
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax, grandchild);
    let thread = world.thread(grandchild);
    go(&world, p::PTRACE_CONT, &thread, grandchild, 0);
    assert_eq!(world.next_event(&thread), Some(Reply::Resume));
    // Its end is told before it, and then as that of any: to who traces it, and to its parent.
    assert_eq!(world.call(&thread, l::__NR_exit_group, &[3]), None);
    let event = (grandchild, (l::SIGTRAP | p::PTRACE_EVENT_EXIT << 8) << 8 | STOP);
    assert_eq!(wait(&world, 0), event);
    ask(&world, p::PTRACE_GETEVENTMSG, grandchild, 0, message);
    assert_eq!(world.read_u64(&world.first, message), 3 << 8);
    go(&world, p::PTRACE_CONT, &thread, grandchild, 0);
    let told = [wait(&world, 0), wait(&world, 0)];
    assert!(told.contains(&(grandchild, 3 << 8)), "{told:x?}");
    assert!(told.contains(&(pid, l::SIGCHLD << 8 | STOP)), "{told:x?}");
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    let at = world.scratch(&child, 8);
    assert_eq!(world.ok(&child, l::__NR_wait4, &[grandchild, at, 0, 0]), grandchild);
}

#[test]
fn a_signal_that_ends_is_told_before() {
    let world = World::new();
    let (child, pid) = child(&world);
    ask(&world, p::PTRACE_SETOPTIONS, pid, 0, p::PTRACE_O_TRACEEXIT.into());
    go(&world, p::PTRACE_CONT, &child, pid, l::SIGTERM);
    let event = (pid, (l::SIGTRAP | p::PTRACE_EVENT_EXIT << 8) << 8 | STOP);
    assert_eq!(wait(&world, 0), event);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(wait(&world, 0), (pid, l::SIGTERM));
}

#[test]
fn strangers_are_attached_and_let_go() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    let pid = u64::from(child.process.number);
    world.waits(&child, l::__NR_pause, &[]);
    ask(&world, p::PTRACE_ATTACH, pid, 0, 0);
    refused(&world, p::PTRACE_ATTACH, pid, 0, 0, Errno::EPERM);
    world.collect();
    assert_eq!(wait(&world, 0), (pid, l::SIGSTOP << 8 | STOP));
    refused(&world, p::PTRACE_LISTEN, pid, 0, 0, Errno::EIO);
    ask(&world, p::PTRACE_DETACH, pid, 0, 0);
    world.collect();
    assert_eq!((world.next_event(&child), child.doing.get()), (None, Doing::Call));
    refused(&world, p::PTRACE_CONT, pid, 0, 0, Errno::ESRCH);
    // Seized, it stops when it is told to.
    refused(&world, p::PTRACE_SEIZE, pid, 1, 0, Errno::EIO);
    refused(&world, p::PTRACE_SEIZE, pid, 0, 1 << 50, Errno::EIO);
    ask(&world, p::PTRACE_SEIZE, pid, 0, p::PTRACE_O_TRACESYSGOOD.into());
    assert_eq!(wait(&world, 0), (0, 0));
    ask(&world, p::PTRACE_INTERRUPT, pid, 0, 0);
    world.collect();
    let interrupted = (pid, (l::SIGTRAP | p::PTRACE_EVENT_STOP << 8) << 8 | STOP);
    assert_eq!(wait(&world, 0), interrupted);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
}

#[test]
fn stop_signals_stop_seized_ones_twice() {
    let world = World::new();
    let first = &world.first;
    let child = world.fork(first);
    let pid = u64::from(child.process.number);
    world.waits(&child, l::__NR_pause, &[]);
    ask(&world, p::PTRACE_SEIZE, pid, 0, 0);
    let interrupted = (pid, (l::SIGTRAP | p::PTRACE_EVENT_STOP << 8) << 8 | STOP);
    // As a signal, and as its process's stop.
    world.ok(first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    assert_eq!(wait(&world, 0), (pid, l::SIGSTOP << 8 | STOP));
    go(&world, p::PTRACE_CONT, &child, pid, l::SIGSTOP);
    let group = (pid, (l::SIGSTOP | p::PTRACE_EVENT_STOP << 8) << 8 | STOP);
    assert_eq!(wait(&world, 0), group);
    ask(&world, p::PTRACE_LISTEN, pid, 0, 0);
    assert_eq!(wait(&world, 0), (0, 0));
    refused(&world, p::PTRACE_CONT, pid, 0, 0, Errno::ESRCH);
    world.ok(first, l::__NR_kill, &[pid, l::SIGCONT.into()]);
    assert_eq!(wait(&world, 0), interrupted);
    // Continued before its tracer listens, it tells so then.
    ask(&world, p::PTRACE_CONT, pid, 0, 0);
    assert_eq!(wait(&world, 0), (pid, l::SIGCONT << 8 | STOP));
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.ok(first, l::__NR_kill, &[pid, l::SIGSTOP.into()]);
    go(&world, p::PTRACE_CONT, &child, pid, l::SIGSTOP);
    assert_eq!(wait(&world, 0), group);
    world.ok(first, l::__NR_kill, &[pid, l::SIGCONT.into()]);
    assert_eq!(wait(&world, 0), (0, 0));
    ask(&world, p::PTRACE_LISTEN, pid, 0, 0);
    assert_eq!(wait(&world, 0), interrupted);
    // Its tracer's end would let it go; SIGKILL needs nobody.
    world.ok(first, l::__NR_kill, &[pid, l::SIGKILL.into()]);
    assert_eq!(wait(&world, 0), (pid, l::SIGKILL));
}

#[test]
fn a_tracers_end_lets_go_or_ends() {
    let world = World::new();
    let first = &world.first;
    let [victim, second] = [world.fork(first), world.fork(first)];
    let tracer = world.fork(first);
    for (thread, options) in [(&victim, 0), (&second, p::PTRACE_O_EXITKILL)] {
        let pid = u64::from(thread.process.number);
        world.waits(thread, l::__NR_pause, &[]);
        let seize = [p::PTRACE_SEIZE.into(), pid, 0, options.into()];
        world.ok(&tracer, l::__NR_ptrace, &seize);
        world.ok(&tracer, l::__NR_ptrace, &[p::PTRACE_INTERRUPT.into(), pid]);
        world.collect();
        assert_eq!(thread.doing.get(), Doing::Traced);
        // The parent is not told of that.
        assert_eq!(wait(&world, l::WUNTRACED), (0, 0));
    }
    world.call(&tracer, l::__NR_exit_group, &[0]);
    assert_eq!(victim.doing.get(), Doing::Call);
    assert!(!victim.is_traced());
    assert_eq!(wait(&world, 0), (second.process.number.into(), l::SIGKILL));
    assert_eq!(wait(&world, 0), (tracer.process.number.into(), 0));
}

#[test]
fn only_who_may_traces() {
    let world = World::new();
    let first = &world.first;
    let own = u64::from(first.process.number);
    refused(&world, p::PTRACE_ATTACH, own, 0, 0, Errno::EPERM);
    refused(&world, p::PTRACE_ATTACH, 999, 0, 0, Errno::ESRCH);
    let (user, other) = (world.fork(first), world.fork(first));
    world.ok(&user, l::__NR_setresgid, &[1000, 1000, 1000]);
    world.ok(&user, l::__NR_setresuid, &[1000, 1000, 1000]);
    let attach = [p::PTRACE_ATTACH.into(), other.process.number.into()];
    world.refused(&user, l::__NR_ptrace, &attach, Errno::EPERM);
    // Another user's, and one's own that keeps its memory to itself.
    world.ok(&other, l::__NR_setresgid, &[1000, 1000, 1000]);
    world.ok(&other, l::__NR_setresuid, &[1000, 1000, 0]);
    world.refused(&user, l::__NR_ptrace, &attach, Errno::EPERM);
    world.ok(&other, l::__NR_setresuid, &[1000, 1000, 1000]);
    world.refused(&user, l::__NR_ptrace, &attach, Errno::EPERM);
    world.ok(&other, l::__NR_prctl, &[4, 1]);
    world.ok(&user, l::__NR_ptrace, &attach);
    // A tracee of somebody else's.
    refused(&world, p::PTRACE_CONT, other.process.number.into(), 0, 0, Errno::ESRCH);
    // Who is traced by somebody with fewer rights gets none from a file.
    assert!(unix::trace::attach::keeps_rights_away(&other.process));
    assert!(!unix::trace::attach::keeps_rights_away(&user.process));
}

#[test]
fn threads_of_a_tracee_end_for_their_tracer() {
    let world = World::new();
    let (child, pid) = child(&world);
    ask(&world, p::PTRACE_SETOPTIONS, pid, 0, p::PTRACE_O_TRACECLONE.into());
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    let flags = l::CLONE_VM | l::CLONE_FILES | l::CLONE_FS | l::CLONE_SIGHAND | l::CLONE_THREAD;
    let stack = world.scratch(&child, 4096) + 4096;
    assert_eq!(world.call(&child, l::__NR_clone, &[flags.into(), stack]), None);
    let told = [wait(&world, l::__WALL), wait(&world, l::__WALL)];
    let other = told.iter().find(|told| told.0 != pid).unwrap().0;
    assert!(told.contains(&(other, l::SIGSTOP << 8 | STOP)), "{told:x?}");
    let thread = world.thread(other);
    go(&world, p::PTRACE_CONT, &thread, other, 0);
    world.next_event(&thread);
    assert_eq!(world.call(&thread, l::__NR_exit, &[4]), None);
    assert_eq!(wait(&world, l::__WALL), (other, 4 << 8));
    assert_eq!(wait(&world, l::__WALL), (0, 0));
    refused(&world, p::PTRACE_CONT, other, 0, 0, Errno::ESRCH);
}

#[test]
fn memory_is_a_file() {
    let world = World::new();
    let first = &world.first;
    let page = world.ok(first, l::__NR_mmap, &[0, 8192, 3, 0x22, u64::MAX, 0]);
    world.write(first, page, &[0x22; 8192]);
    world.ok(first, l::__NR_mprotect, &[page, 8192, 1]);
    let child = world.fork(first);
    let path = world.text(first, &format!("/proc/{}/mem", child.process.number));
    let file = world.ok(first, l::__NR_open, &[path, 2]);
    let to = world.scratch(first, 8192);
    assert_eq!(world.ok(first, l::__NR_pread64, &[file, to, 5000, page + 10]), 5000);
    assert_eq!(world.read(first, to, 5000), [0x22; 5000]);
    // As far as there is something, and an error if there is nothing.
    assert_eq!(world.ok(first, l::__NR_pread64, &[file, to, 100, page + 8182]), 10);
    world.refused(first, l::__NR_pread64, &[file, to, 100, page + 8192], Errno::EIO);
    world.write(first, to, b"written");
    assert_eq!(world.ok(first, l::__NR_pwrite64, &[file, to, 7, page + 4093]), 7);
    assert_eq!(world.read(&child, page + 4093, 7), b"written");
    assert_eq!(world.read(first, page + 4093, 7), [0x22; 7]);
    world.refused(first, l::__NR_pwrite64, &[file, to, 7, 0x1000], Errno::EIO);
    // Another user's memory is not told, whoever opened the file.
    world.ok(first, l::__NR_setresgid, &[1000, 1000, 1000]);
    world.ok(first, l::__NR_setresuid, &[1000, 1000, 1000]);
    world.refused(first, l::__NR_pread64, &[file, to, 8, page], Errno::EACCES);
}

#[test]
fn a_tracers_end_ends_its_steps() {
    let world = World::new();
    let first = &world.first;
    let (victim, tracer) = (world.fork(first), world.fork(first));
    let pid = u64::from(victim.process.number);
    for request in [p::PTRACE_SEIZE, p::PTRACE_INTERRUPT, p::PTRACE_SINGLESTEP] {
        world.ok(&tracer, l::__NR_ptrace, &[request.into(), pid]);
        world.collect();
    }
    assert_eq!(world.next_event(&victim), Some(Reply::Resume));
    assert_ne!(world.registers(&victim).rflags & 0x100, 0);
    let stops = world.machine.with(victim.machine.get(), |thread| thread.stops);
    world.call(&tracer, l::__NR_exit_group, &[0]);
    assert_eq!(world.next_event(&victim), Some(Reply::Resume));
    assert_eq!(world.registers(&victim).rflags & 0x100, 0);
    // It ran, and had to be stopped for that.
    assert_eq!(world.machine.with(victim.machine.get(), |thread| thread.stops), stops + 1);
}

#[test]
fn who_has_become_somebody_else_keeps_its_memory() {
    let world = World::new();
    let first = &world.first;
    let (user, other) = (world.fork(first), world.fork(first));
    for thread in [&user, &other] {
        world.ok(thread, l::__NR_setresgid, &[1000, 1000, 1000]);
        world.ok(thread, l::__NR_setresuid, &[1000, 1000, 1000]);
    }
    let maps = world.text(&user, &format!("/proc/{}/maps", other.process.number));
    let file = world.ok(&user, l::__NR_open, &[maps, 0]);
    let to = world.scratch(&user, 64);
    world.refused(&user, l::__NR_read, &[file, to, 64], Errno::EACCES);
    // Itself it may look at.
    let own = world.text(&other, "/proc/self/maps");
    let file = world.ok(&other, l::__NR_open, &[own, 0]);
    let to = world.scratch(&other, 64);
    assert_ne!(world.ok(&other, l::__NR_read, &[file, to, 64]), 0);
    // To become who one is already changes nothing.
    world.ok(&other, l::__NR_prctl, &[4, 1]);
    world.ok(&other, l::__NR_setresuid, &[1000, 1000, 1000]);
    assert_eq!(world.ok(&other, l::__NR_prctl, &[3]), 1);
}

#[test]
fn who_is_woken_while_it_is_stopped_has_been_woken() {
    let world = World::new();
    let first = &world.first;
    let word = world.ok(first, l::__NR_mmap, &[0, 4096, 3, 0x21, u64::MAX, 0]);
    let (child, pid) = child(&world);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    world.waits(&child, l::__NR_futex, &[word, l::FUTEX_WAIT.into(), 0, 0]);
    // Its tracer has its turn, and meanwhile somebody wakes it.
    world.ok(first, l::__NR_kill, &[pid, l::SIGUSR2.into()]);
    assert_eq!(wait(&world, 0), (pid, l::SIGUSR2 << 8 | STOP));
    assert_eq!(world.ok(first, l::__NR_futex, &[word, l::FUTEX_WAKE.into(), 1]), 1);
    assert_eq!(world.ok(first, l::__NR_futex, &[word, l::FUTEX_WAKE.into(), 1]), 0);
    assert_eq!(child.doing.get(), Doing::Traced);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(world.next_reply(&child), Some(0));
}

#[test]
fn a_programs_numbers_are_not_taken_for_a_broken_call() {
    let world = World::new();
    let (child, pid) = child(&world);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    world.ok(&child, l::__NR_getppid, &[]);
    // It computes -512, and is stopped by a breakpoint.
    world.machine.with(child.machine.get(), |thread| thread.registers.rax = -512_i64 as u64);
    let rip = world.registers(&child).rip;
    world.unix.exception(&child, 3, 0);
    world.collect();
    assert_eq!(wait(&world, 0), (pid, l::SIGTRAP << 8 | STOP));
    let words = registers(&world, pid);
    assert_eq!((words[RAX] as i64, words[ORIG_RAX]), (-512, u64::MAX));
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!((world.registers(&child).rip, world.registers(&child).rax as i64), (rip, -512));
}
