//! ptrace: stops, what a tracer sees and changes, and who may trace whom.

mod family;

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general as l;
use linux_raw_sys::ptrace as p;
use unix::errno::Errno;
use unix::machine::Reply;
use unix::thread::{Doing, Thread};

const RAX: usize = 10;
const ORIG_RAX: usize = 15;
const RIP: usize = 16;
const FLAGS: usize = 18;
const TRAP_FLAG: u64 = 0x100;
const STOP: u32 = 0x7F;

/// A request that must succeed.
#[track_caller]
fn ask(world: &World, request: u32, tracee: u64, address: u64, data: u64) -> u64 {
    world.ok(&world.first, l::__NR_ptrace, &[request.into(), tracee, address, data])
}

#[track_caller]
fn refused(world: &World, request: u32, tracee: u64, address: u64, data: u64, errno: Errno) {
    let arguments = [request.into(), tracee, address, data];
    world.refused(&world.first, l::__NR_ptrace, &arguments, errno);
}

/// What the first process is told by `wait4`: whose state has changed, and how.
#[track_caller]
fn wait(world: &World, flags: u32) -> (u64, u32) {
    let at = world.put(&world.first, &[0; 8]);
    let arguments = [u64::MAX, at, (flags | l::WNOHANG).into(), 0];
    let who = world.ok(&world.first, l::__NR_wait4, &arguments);
    (who, world.read_u32(&world.first, at))
}

#[track_caller]
fn registers(world: &World, tracee: u64) -> [u64; 27] {
    let at = world.scratch(&world.first, 27 * 8);
    ask(world, p::PTRACE_GETREGS, tracee, 0, at);
    core::array::from_fn(|index| world.read_u64(&world.first, at + 8 * index as u64))
}

#[track_caller]
fn set_registers(world: &World, tracee: u64, words: &[u64; 27]) {
    let at = world.words(&world.first, words);
    ask(world, p::PTRACE_SETREGS, tracee, 0, at);
}

/// A child that is traced by the first process and stopped by a signal.
#[track_caller]
fn child(world: &World) -> (Rc<Thread>, u64) {
    let child = world.fork(&world.first);
    let pid = u64::from(child.process.number);
    world.ok(&child, l::__NR_ptrace, &[p::PTRACE_TRACEME.into()]);
    world.refused(&child, l::__NR_ptrace, &[p::PTRACE_TRACEME.into()], Errno::EPERM);
    assert_eq!(world.call(&child, l::__NR_kill, &[pid, l::SIGUSR1.into()]), None);
    assert_eq!(wait(world, 0), (pid, l::SIGUSR1 << 8 | STOP));
    assert_eq!(child.doing.get(), Doing::Traced);
    (child, pid)
}

/// A child that is let go on to its next call.
#[track_caller]
fn going(world: &World) -> (Rc<Thread>, u64) {
    let (child, pid) = child(world);
    go(world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    (child, pid)
}

#[track_caller]
fn go(world: &World, request: u32, _child: &Rc<Thread>, pid: u64, signal: u32) {
    ask(world, request, pid, 0, signal.into());
    world.collect();
}

#[test]
fn a_signal_stops_and_its_tracer_decides() {
    let world = World::new();
    let (first, second) = (child(&world), child(&world));
    // It is told once.
    assert_eq!(wait(&world, 0), (0, 0));
    let info = world.scratch(&world.first, 128);
    ask(&world, p::PTRACE_GETSIGINFO, first.1, 0, info);
    assert_eq!(world.read_u32(&world.first, info), l::SIGUSR1);
    assert_eq!(u64::from(world.read_u32(&world.first, info + 16)), first.1);
    // Without the signal the call has its result.
    go(&world, p::PTRACE_CONT, &first.0, first.1, 0);
    assert_eq!(world.next_event(&first.0), Some(Reply::Resume));
    assert_eq!(world.registers(&first.0).rax, 0);
    refused(&world, p::PTRACE_CONT, first.1, 0, 0, Errno::ESRCH);
    // With it the child ends.
    go(&world, p::PTRACE_CONT, &second.0, second.1, l::SIGUSR1);
    assert_eq!(wait(&world, 0), (second.1, l::SIGUSR1));
    refused(&world, p::PTRACE_CONT, second.1, 0, 0, Errno::ESRCH);
}

#[test]
fn even_ignored_signals_stop() {
    let world = World::new();
    let (child, pid) = child(&world);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    for signal in [l::SIGCHLD, l::SIGWINCH, l::SIGSTOP] {
        assert_eq!(world.call(&child, l::__NR_kill, &[pid, signal.into()]), None);
        assert_eq!(wait(&world, 0), (pid, signal << 8 | STOP));
        go(&world, p::PTRACE_CONT, &child, pid, 0);
        assert_eq!(world.next_event(&child), Some(Reply::Resume));
    }
}

#[test]
fn calls_stop_before_and_after() {
    let world = World::new();
    let (child, pid) = child(&world);
    ask(&world, p::PTRACE_SETOPTIONS, pid, 0, p::PTRACE_O_TRACESYSGOOD.into());
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.call(&child, l::__NR_getppid, &[7, 8, 9]), None);
    let stopped = (pid, (l::SIGTRAP | 0x80) << 8 | STOP);
    assert_eq!(wait(&world, 0), stopped);
    let words = registers(&world, pid);
    assert_eq!(words[ORIG_RAX], l::__NR_getppid.into());
    assert_eq!(words[RAX] as i64, -38);
    let info = world.scratch(&world.first, 96);
    let len = ask(&world, p::PTRACE_GET_SYSCALL_INFO, pid, 96, info);
    assert_eq!(len, 80);
    assert_eq!(world.read_u64(&world.first, info), 0xC000_003E_0000_0001);
    assert_eq!(world.read_u64(&world.first, info + 24), l::__NR_getppid.into());
    assert_eq!(world.read_u64(&world.first, info + 40), 8);
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(wait(&world, 0), stopped);
    assert_eq!(registers(&world, pid)[RAX], 1);
    let len = ask(&world, p::PTRACE_GET_SYSCALL_INFO, pid, 96, info);
    assert_eq!((len, world.read_u64(&world.first, info + 24)), (33, 1));
    assert_eq!(world.read(&world.first, info + 32, 1), [0]);
    // The result can be another one.
    let mut words = registers(&world, pid);
    words[RAX] = 77;
    set_registers(&world, pid, &words);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax, 77);
    // And nobody stops at calls any more.
    assert_eq!(world.ok(&child, l::__NR_getppid, &[]), 1);
}

#[test]
fn a_call_can_become_another_or_none() {
    let world = World::new();
    let (child, pid) = going(&world);
    assert_eq!(world.call(&child, l::__NR_getppid, &[]), None);
    let mut words = registers(&world, pid);
    words[ORIG_RAX] = l::__NR_getpid.into();
    set_registers(&world, pid, &words);
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(registers(&world, pid)[RAX], pid);
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.call(&child, l::__NR_exit_group, &[0]), None);
    let mut words = registers(&world, pid);
    (words[ORIG_RAX], words[RAX]) = (u64::MAX, 5);
    set_registers(&world, pid, &words);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rax, 5);
    // A number that nobody has.
    assert_eq!(world.now(&child, 400, &[]) as i64, -38);
}

#[test]
fn calls_that_wait_go_on() {
    let world = World::new();
    let (child, pid) = child(&world);
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    let ends = world.scratch(&child, 8);
    world.ok(&child, l::__NR_pipe2, &[ends, 0]);
    let (reader, writer) = (world.read_u32(&child, ends), world.read_u32(&child, ends + 4));
    let to = world.scratch(&child, 8);
    world.waits(&child, l::__NR_read, &[reader.into(), to, 8]);
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGUSR2.into()]);
    assert_eq!(wait(&world, 0), (pid, l::SIGUSR2 << 8 | STOP));
    let words = registers(&world, pid);
    assert_eq!((words[ORIG_RAX], words[RAX] as i64), (l::__NR_read.into(), -512));
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    assert_eq!(world.next_event(&child), None);
    // Who looks at calls sees it end and begin again.
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGUSR2.into()]);
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(wait(&world, 0), (pid, l::SIGTRAP << 8 | STOP));
    assert_eq!(registers(&world, pid)[RAX] as i64, -38);
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(wait(&world, 0), (0, 0));
    world.ok(&world.first, l::__NR_kill, &[pid, l::SIGUSR2.into()]);
    assert_eq!(wait(&world, 0), (pid, l::SIGTRAP << 8 | STOP));
    assert_eq!(registers(&world, pid)[RAX] as i64, -512);
    go(&world, p::PTRACE_SYSCALL, &child, pid, 0);
    assert_eq!(wait(&world, 0), (pid, l::SIGUSR2 << 8 | STOP));
    ask(&world, p::PTRACE_DETACH, pid, 0, 0);
    world.collect();
    assert_eq!(world.next_event(&child), None);
    // It waits still, and nobody traces it: the end of the pipe that the parent opens ends it.
    let path = world.text(&world.first, &format!("/proc/{pid}/fd/{writer}"));
    let writer = world.ok(&world.first, l::__NR_open, &[path, 1]);
    let text = world.put(&world.first, b"x");
    world.ok(&world.first, l::__NR_write, &[writer, text, 1]);
    assert_eq!(world.next_reply(&child), Some(1));
}

#[test]
fn memory_is_read_and_written_whatever_the_program_may() {
    let world = World::new();
    // A page that may only be read, shared with the parent until it is written.
    let page = world.ok(&world.first, l::__NR_mmap, &[0, 4096, 3, 0x22, u64::MAX, 0]);
    world.write(&world.first, page, &[0x11; 16]);
    world.ok(&world.first, l::__NR_mprotect, &[page, 4096, 1]);
    let (child, pid) = child(&world);
    let to = world.scratch(&world.first, 8);
    ask(&world, p::PTRACE_PEEKTEXT, pid, page + 3, to);
    assert_eq!(world.read_u64(&world.first, to), 0x1111_1111_1111_1111);
    ask(&world, p::PTRACE_POKETEXT, pid, page, 0xCC);
    assert_eq!(world.read_u64(&child, page), 0xCC);
    assert_eq!(world.read_u64(&world.first, page), 0x1111_1111_1111_1111);
    // The program itself may write it no more than before.
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    world.refused(&child, l::__NR_clock_gettime, &[0, page], Errno::EFAULT);
    // What is not there, and what others would see.
    let (_, pid) = self::child(&world);
    for bad in [0, u64::MAX, u64::MAX - 3, 1 << 47] {
        refused(&world, p::PTRACE_PEEKDATA, pid, bad, to, Errno::EIO);
        refused(&world, p::PTRACE_POKEDATA, pid, bad, 1, Errno::EIO);
    }
    refused(&world, p::PTRACE_PEEKDATA, pid, page, 3, Errno::EFAULT);
}

#[test]
fn words_of_user_are_checked() {
    let world = World::new();
    let (child, pid) = child(&world);
    let to = world.scratch(&world.first, 8);
    ask(&world, p::PTRACE_POKEUSR, pid, 8 * 2, 0x1234);
    assert_eq!(world.registers(&child).r13, 0x1234);
    ask(&world, p::PTRACE_PEEKUSR, pid, 8 * 2, to);
    assert_eq!(world.read_u64(&world.first, to), 0x1234);
    for bad in [1, 929, 936, u64::MAX, u64::MAX - 7] {
        refused(&world, p::PTRACE_PEEKUSR, pid, bad, to, Errno::EIO);
        refused(&world, p::PTRACE_POKEUSR, pid, bad, 0, Errno::EIO);
    }
    // Debug registers are kept; nothing is enabled by them.
    ask(&world, p::PTRACE_POKEUSR, pid, 848, 2);
    ask(&world, p::PTRACE_PEEKUSR, pid, 848, to);
    assert_eq!(world.read_u64(&world.first, to), 2);
    refused(&world, p::PTRACE_POKEUSR, pid, 848, 1 << 63, Errno::EINVAL);
    refused(&world, p::PTRACE_POKEUSR, pid, 848 + 56, 1, Errno::ENOSPC);
    let mut words = registers(&world, pid);
    words[21] = 1 << 63;
    let at = world.words(&world.first, &words);
    refused(&world, p::PTRACE_SETREGS, pid, 0, at, Errno::EIO);
    refused(&world, p::PTRACE_SETREGS, pid, 0, 3, Errno::EFAULT);
    refused(&world, p::PTRACE_GETREGS, pid, 0, 3, Errno::EFAULT);
    refused(&world, 12345, pid, 0, 0, Errno::EIO);
    refused(&world, p::PTRACE_SETOPTIONS, pid, 0, 1 << 40, Errno::EINVAL);
    refused(&world, p::PTRACE_CONT, pid, 0, 65, Errno::EIO);
}

#[test]
fn register_sets_are_notes() {
    let world = World::new();
    let (child, pid) = child(&world);
    let to = world.scratch(&world.first, 4096);
    let vector = world.words(&world.first, &[to, 4096]);
    ask(&world, p::PTRACE_GETREGSET, pid, 1, vector);
    assert_eq!(world.read_u64(&world.first, vector + 8), 27 * 8);
    assert_eq!(world.read_u64(&world.first, to + 16 * 8), world.registers(&child).rip);
    world.write(&world.first, to, &7_u64.to_le_bytes());
    let vector = world.words(&world.first, &[to, 8]);
    ask(&world, p::PTRACE_SETREGSET, pid, 1, vector);
    assert_eq!(world.registers(&child).r15, 7);
    let vector = world.words(&world.first, &[to, 4096]);
    ask(&world, p::PTRACE_GETREGSET, pid, 0x202, vector);
    let len = world.read_u64(&world.first, vector + 8);
    assert!(len >= 512, "{len}");
    // Bits of the header that nobody has are refused.
    if len > 576 {
        world.write(&world.first, to + 520, &u64::MAX.to_le_bytes());
        refused(&world, p::PTRACE_SETREGSET, pid, 0x202, vector, Errno::EINVAL);
    }
    let vector = world.words(&world.first, &[to, 9]);
    refused(&world, p::PTRACE_GETREGSET, pid, 1, vector, Errno::EINVAL);
    refused(&world, p::PTRACE_GETREGSET, pid, 99, vector, Errno::EINVAL);
    ask(&world, p::PTRACE_GETFPREGS, pid, 0, to);
    ask(&world, p::PTRACE_SETFPREGS, pid, 0, to);
}

#[test]
fn one_instruction_at_a_time() {
    let world = World::new();
    let (child, pid) = child(&world);
    go(&world, p::PTRACE_SINGLESTEP, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_ne!(world.registers(&child).rflags & TRAP_FLAG, 0);
    world.unix.exception(&child, 1, 0);
    world.collect();
    assert_eq!(wait(&world, 0), (pid, l::SIGTRAP << 8 | STOP));
    assert_eq!(registers(&world, pid)[FLAGS] & TRAP_FLAG, 0);
    let info = world.scratch(&world.first, 128);
    ask(&world, p::PTRACE_GETSIGINFO, pid, 0, info);
    assert_eq!(world.read_u32(&world.first, info + 8), l::TRAP_TRACE);
    // A call is one instruction.
    go(&world, p::PTRACE_SINGLESTEP, &child, pid, 0);
    world.next_event(&child);
    assert_eq!(world.call(&child, l::__NR_getppid, &[]), None);
    assert_eq!(wait(&world, 0), (pid, l::SIGTRAP << 8 | STOP));
    let words = registers(&world, pid);
    assert_eq!((words[RAX], words[FLAGS] & TRAP_FLAG), (1, 0));
    // A handler's first instruction comes next.
    go(&world, p::PTRACE_CONT, &child, pid, 0);
    world.next_event(&child);
    let stack = world.scratch(&child, 16384) + 16384;
    world.machine.with(child.machine.get(), |thread| thread.registers.rsp = stack);
    let action = world.words(&child, &[0x41_0000, l::SA_RESTORER.into(), 0x42_0000, 0]);
    world.ok(&child, l::__NR_rt_sigaction, &[l::SIGUSR1.into(), action, 0, 8]);
    assert_eq!(world.call(&child, l::__NR_kill, &[pid, l::SIGUSR1.into()]), None);
    go(&world, p::PTRACE_SINGLESTEP, &child, pid, l::SIGUSR1);
    assert_eq!(world.next_event(&child), None);
    let words = registers(&world, pid);
    assert_eq!((words[RIP], words[FLAGS] & TRAP_FLAG), (0x41_0000, 0));
    go(&world, p::PTRACE_DETACH, &child, pid, 0);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
}
