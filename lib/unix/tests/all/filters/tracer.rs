//! Filters that have a tracer asked about a call.

use std::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;
use unix::errno::Errno;
use unix::machine::Reply;
use unix::thread::Thread;

use super::{about, set};
use crate::common::World;

/// Positions in `struct user_regs_struct`.
const RAX: u64 = 10;
const RDI: u64 = 14;
const ORIG_RAX: u64 = 15;
/// A stop by SIGTRAP for this event.
const ASKED: u32 = (p::PTRACE_EVENT_SECCOMP << 8 | l::SIGTRAP) << 8 | 0x7F;

/// A request of the tracer that must succeed.
#[track_caller]
fn ask(world: &World, request: u32, tracee: u64, address: u64, data: u64) -> u64 {
    world.ok(&world.first, l::__NR_ptrace, &[request.into(), tracee, address, data])
}

#[track_caller]
fn go(world: &World, request: u32, tracee: u64) {
    ask(world, request, tracee, 0, 0);
    world.collect();
}

/// Whose state has changed, and how.
#[track_caller]
fn wait(world: &World) -> (u64, u32) {
    let at = world.put(&world.first, &[0; 8]);
    let who = world.ok(&world.first, l::__NR_wait4, &[u64::MAX, at, l::WNOHANG.into(), 0]);
    (who, world.read_u32(&world.first, at))
}

#[track_caller]
fn register(world: &World, tracee: u64, which: u64) -> i64 {
    let at = world.scratch(&world.first, 8);
    ask(world, p::PTRACE_PEEKUSR, tracee, 8 * which, at);
    world.read_u64(&world.first, at) as i64
}

/// A child that is traced, with these options, whose filter asks about `getppid`.
#[track_caller]
fn child(world: &World, options: u32) -> (Rc<Thread>, u64) {
    let child = world.fork(&world.first);
    let pid = u64::from(child.process.number);
    world.ok(&child, l::__NR_ptrace, &[p::PTRACE_TRACEME.into()]);
    assert_eq!(set(world, &child, 0, &about(l::__NR_getppid, p::SECCOMP_RET_TRACE | 7)), 0);
    assert_eq!(world.call(&child, l::__NR_kill, &[pid, l::SIGUSR1.into()]), None);
    assert_eq!(wait(world), (pid, l::SIGUSR1 << 8 | 0x7F));
    ask(world, p::PTRACE_SETOPTIONS, pid, 0, options.into());
    go(world, p::PTRACE_CONT, pid);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    (child, pid)
}

/// The same, stopped in the call.
#[track_caller]
fn asked(world: &World) -> (Rc<Thread>, u64) {
    let (child, pid) = child(world, p::PTRACE_O_TRACESECCOMP);
    assert_eq!(world.call(&child, l::__NR_getppid, &[9, 8]), None);
    assert_eq!(wait(world), (pid, ASKED));
    (child, pid)
}

#[test]
fn the_tracer_is_asked_and_lets_the_call_pass() {
    let world = World::new();
    let (child, pid) = asked(&world);
    let to = world.scratch(&world.first, 96);
    ask(&world, p::PTRACE_GETEVENTMSG, pid, 0, to);
    assert_eq!(world.read_u64(&world.first, to), 7);
    assert_eq!(ask(&world, p::PTRACE_GET_SYSCALL_INFO, pid, 96, to), 84);
    let word = |at: u64| world.read_u64(&world.first, to + 8 * at);
    let kind = u64::from(p::PTRACE_SYSCALL_INFO_SECCOMP);
    assert_eq!(word(0), kind | 0xC000_003E << 32);
    assert_eq!([word(3), word(4), word(5)], [l::__NR_getppid.into(), 9, 8]);
    assert_eq!(world.read_u32(&world.first, to + 80), 7);
    assert_eq!(register(&world, pid, ORIG_RAX), l::__NR_getppid.into());
    assert_eq!(register(&world, pid, RAX), -38);
    // Whoever wants to see the call's end sees it, and its beginning no more.
    go(&world, p::PTRACE_SYSCALL, pid);
    assert_eq!(wait(&world), (pid, l::SIGTRAP << 8 | 0x7F));
    assert_eq!(register(&world, pid, RAX), 1);
    go(&world, p::PTRACE_CONT, pid);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax, 1);
    // The next call is asked about anew.
    assert_eq!(world.call(&child, l::__NR_getppid, &[]), None);
    assert_eq!(wait(&world), (pid, ASKED));
}

#[test]
fn the_tracer_changes_the_call_which_is_filtered_again() {
    let world = World::new();
    let change = |pid: u64, number: i64, result: i64| {
        ask(&world, p::PTRACE_POKEUSR, pid, 8 * ORIG_RAX, number as u64);
        ask(&world, p::PTRACE_POKEUSR, pid, 8 * RAX, result as u64);
        go(&world, p::PTRACE_CONT, pid);
    };
    let (child, pid) = asked(&world);
    change(pid, l::__NR_getpid.into(), 0);
    assert_eq!(world.next_reply(&child), None);
    assert_eq!(world.registers(&child).rax, pid);
    let (child, pid) = asked(&world);
    change(pid, -1, 77);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax, 77);
    // What another filter refuses stays refused.
    let (child, pid) = self::child(&world, p::PTRACE_O_TRACESECCOMP);
    let refuse = about(l::__NR_getuid, p::SECCOMP_RET_ERRNO | 5);
    assert_eq!(set(&world, &child, 0, &refuse), 0);
    assert_eq!(world.call(&child, l::__NR_getppid, &[]), None);
    assert_eq!(wait(&world), (pid, ASKED));
    change(pid, l::__NR_getuid.into(), 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax as i64, -5);
}

#[test]
fn a_tracer_that_was_asked_and_goes_lets_the_call_pass() {
    let world = World::new();
    let (child, pid) = asked(&world);
    go(&world, p::PTRACE_DETACH, pid);
    assert_eq!(world.next_reply(&child), Some(1));
    // It was that call alone.
    world.refused(&child, l::__NR_getppid, &[], Errno::ENOSYS);
    // What the tracer has made of it is filtered again, too, and it was that call alone.
    let (child, pid) = asked(&world);
    ask(&world, p::PTRACE_POKEUSR, pid, 8 * ORIG_RAX, l::__NR_getpid.into());
    go(&world, p::PTRACE_DETACH, pid);
    world.collect();
    assert_eq!(world.registers(&child).rax, pid);
    world.next_event(&child);
    world.refused(&child, l::__NR_getppid, &[], Errno::ENOSYS);
}

#[test]
fn without_a_tracer_who_wants_it_nobody_is_asked() {
    let world = World::new();
    let (child, _) = child(&world, p::PTRACE_O_TRACESYSGOOD);
    world.refused(&child, l::__NR_getppid, &[], Errno::ENOSYS);
    let (child, pid) = asked(&world);
    assert_eq!(world.ok(&world.first, l::__NR_kill, &[pid, l::SIGKILL.into()]), 0);
    assert_eq!(child.process.ended.get(), Some(l::SIGKILL));
}

/// A call that a signal has broken off, and that is about to begin again, becomes another one.
#[test]
fn what_the_tracer_makes_of_a_call_that_begins_again_is_filtered() {
    let world = World::new();
    let (child, pid) = child(&world, 0);
    let refuse = about(l::__NR_getuid, p::SECCOMP_RET_ERRNO | 5);
    assert_eq!(set(&world, &child, 0, &refuse), 0);
    let ends = world.scratch(&child, 8);
    world.ok(&child, l::__NR_pipe2, &[ends, 0]);
    let reader = u64::from(world.read_u32(&child, ends));
    let to = world.scratch(&child, 8);
    world.waits(&child, l::__NR_read, &[reader, to, 8]);
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGUSR2.into()]);
    assert_eq!(wait(&world), (pid, l::SIGUSR2 << 8 | 0x7F));
    go(&world, p::PTRACE_SYSCALL, pid);
    assert_eq!(wait(&world), (pid, l::SIGTRAP << 8 | 0x7F));
    assert_eq!(register(&world, pid, ORIG_RAX), l::__NR_read.into());
    ask(&world, p::PTRACE_POKEUSR, pid, 8 * ORIG_RAX, l::__NR_getuid.into());
    go(&world, p::PTRACE_CONT, pid);
    world.next_event(&child);
    assert_eq!(world.registers(&child).rax as i64, -5);
}

/// The same, with other arguments only: it is a first try.
#[test]
fn a_call_that_begins_again_with_other_arguments_is_another_one() {
    let world = World::new();
    let (child, pid) = child(&world, 0);
    let time = world.words(&child, &[1, 0, 100, 0]);
    world.waits(&child, l::__NR_nanosleep, &[time, 0]);
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGUSR2.into()]);
    assert_eq!(wait(&world), (pid, l::SIGUSR2 << 8 | 0x7F));
    go(&world, p::PTRACE_SYSCALL, pid);
    assert_eq!(wait(&world), (pid, l::SIGTRAP << 8 | 0x7F));
    ask(&world, p::PTRACE_POKEUSR, pid, 8 * RDI, time + 16);
    go(&world, p::PTRACE_CONT, pid);
    world.advance(50_000_000_000);
    assert_eq!(world.next_event(&child), None);
    world.advance(60_000_000_000);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax, 0);
}
