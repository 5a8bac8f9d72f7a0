//! Signals: frames, returns, masks, stacks, restarts, queues, exceptions.

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::{Access, Reply};
use unix::thread::Thread;

const HANDLER: u64 = 0x41_0000;
const RESTORER: u64 = 0x42_0000;
/// Offsets in a frame: context, its registers, mask; the signal's information.
const STACK: u64 = 8 + 16;
const REGISTERS: u64 = 8 + 40;
const RAX: u64 = REGISTERS + 13 * 8;
const RIP: u64 = REGISTERS + 16 * 8;
const TRAP: u64 = REGISTERS + 19 * 8;
const STATE: u64 = REGISTERS + 23 * 8;
const MASK: u64 = 8 + 296;
const INFO: u64 = 312;

/// Makes `handler` handle a signal, with a stack for its frames.
#[track_caller]
fn catch(world: &World, thread: &Rc<Thread>, signal: u32, flags: u32, mask: u64) {
    if world.registers(thread).rsp == 0x7000_0000 {
        let stack = world.scratch(thread, 16384) + 16384;
        let machine = thread.machine.get();
        world.machine.with(machine, |thread| thread.registers.rsp = stack);
    }
    let flags = u64::from(flags | l::SA_RESTORER);
    let action = world.words(thread, &[HANDLER, flags, RESTORER, mask]);
    world.ok(thread, l::__NR_rt_sigaction, &[signal.into(), action, 0, 8]);
}

/// The thread is at the start of its handler: the frame's address.
#[track_caller]
fn handler(world: &World, thread: &Rc<Thread>, signal: u32) -> u64 {
    assert_eq!(world.next_event(thread), Some(Reply::Resume));
    let registers = world.registers(thread);
    assert_eq!((registers.rip, registers.rdi), (HANDLER, signal.into()));
    assert_eq!(registers.rsp % 16, 8);
    assert_eq!(world.read_u64(thread, registers.rsp), RESTORER);
    assert_eq!(world.read_u32(thread, registers.rsi), signal);
    assert_eq!(registers.rsi, registers.rsp + INFO);
    assert_eq!(registers.rdx, registers.rsp + 8);
    registers.rsp
}

/// The handler returns.
#[track_caller]
fn sigreturn(world: &World, thread: &Rc<Thread>) {
    let machine = thread.machine.get();
    world.machine.with(machine, |thread| thread.registers.rsp += 8);
    assert_eq!(world.call(thread, l::__NR_rt_sigreturn, &[]), None);
    assert_eq!(world.next_event(thread), Some(Reply::Resume));
}

#[track_caller]
fn kill(world: &World, thread: &Rc<Thread>, signal: u32) {
    let pid = thread.process().number;
    world.ok(&world.first, l::__NR_kill, &[pid.into(), signal.into()]);
}

fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

#[test]
fn a_handler_runs_and_returns() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, l::SA_SIGINFO, bit(l::SIGUSR2));
    let before = {
        let machine = thread.machine.get();
        world.machine.with(machine, |thread| {
            thread.registers.rbx = 77;
            thread.registers.rax = 88;
            thread.vector[0..2].copy_from_slice(&[0x7F, 3]);
            thread.vector[24..28].copy_from_slice(&0x1F80_u32.to_le_bytes());
            thread.vector[160] = 0xAB;
            thread.vector[512] = 3;
        });
        world.registers(&thread)
    };
    kill(&world, &thread, l::SIGUSR1);
    let frame = handler(&world, &thread, l::SIGUSR1);
    assert!(frame + 440 <= before.rsp - 128);
    assert_eq!(world.read_u64(&thread, frame + RAX), 88);
    assert_eq!(world.read_u64(&thread, frame + RIP), before.rip);
    assert_eq!(world.read_u64(&thread, frame + MASK), 0);
    assert_eq!(world.read_u32(&thread, frame + INFO + 16), 1);
    assert_eq!(thread.signals.blocked.get(), bit(l::SIGUSR1) | bit(l::SIGUSR2));
    // The vector state is in the frame, marked as Linux does; the handler has a fresh one.
    let state = world.read_u64(&thread, frame + STATE);
    assert_eq!(state % 64, 0);
    assert_eq!(world.read_u32(&thread, state + 464), 0x4650_5853);
    assert_eq!(world.read_u32(&thread, state + 468), 832 + 4);
    assert_eq!(world.read_u32(&thread, state + 832), 0x4650_5845);
    assert_eq!(world.read(&thread, state + 160, 1), [0xAB]);
    assert_eq!(world.machine.with(thread.machine.get(), |one| one.vector[160]), 0);
    // What the handler changes in the frame counts.
    world.write(&thread, frame + RAX, &99_u64.to_le_bytes());
    world.write(&thread, state + 160, &[0xCD]);
    sigreturn(&world, &thread);
    let after = world.registers(&thread);
    assert_eq!((after.rax, after.rbx, after.rip, after.rsp), (99, 77, before.rip, before.rsp));
    assert_eq!(thread.signals.blocked.get(), 0);
    assert_eq!(world.machine.with(thread.machine.get(), |one| one.vector[160]), 0xCD);
}

#[test]
fn a_signal_to_oneself_is_delivered_before_the_call_returns() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, 0, 0);
    let pid = u64::from(thread.own_tid.get());
    assert_eq!(world.call(&thread, l::__NR_tgkill, &[pid, pid, l::SIGUSR1.into()]), None);
    let frame = handler(&world, &thread, l::SIGUSR1);
    assert_eq!(world.read_u64(&thread, frame + RAX), 0);
    assert_eq!(world.read_u32(&thread, frame + INFO + 8) as i32, l::SI_TKILL);
}

#[test]
fn handlers_stack_and_masks_keep_them_apart() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, 0, 0);
    catch(&world, &thread, l::SIGUSR2, l::SA_NODEFER, 0);
    kill(&world, &thread, l::SIGUSR1);
    let outer = handler(&world, &thread, l::SIGUSR1);
    // The same signal waits, another one comes in between.
    kill(&world, &thread, l::SIGUSR1);
    assert_eq!(world.next_event(&thread), None);
    kill(&world, &thread, l::SIGUSR2);
    let inner = handler(&world, &thread, l::SIGUSR2);
    assert!(inner < outer);
    assert_eq!(thread.signals.blocked.get(), bit(l::SIGUSR1));
    sigreturn(&world, &thread);
    assert_eq!(world.registers(&thread).rsp, outer);
    // The end of the first handler starts the second delivery at once.
    let machine = thread.machine.get();
    world.machine.with(machine, |thread| thread.registers.rsp += 8);
    assert_eq!(world.call(&thread, l::__NR_rt_sigreturn, &[]), None);
    handler(&world, &thread, l::SIGUSR1);
    sigreturn(&world, &thread);
    assert_eq!(thread.signals.blocked.get(), 0);
    assert_eq!(thread.signals.pending.set(), 0);
}

#[test]
fn waiting_calls_are_interrupted_or_restarted() {
    let world = World::new();
    let thread = world.fork(&world.first);
    let child = world.fork(&thread);
    for restart in [false, true] {
        let flags = if restart { l::SA_RESTART } else { 0 };
        catch(&world, &thread, l::SIGUSR1, flags, 0);
        let before = world.registers(&thread);
        world.waits(&thread, l::__NR_wait4, &[u64::MAX, 0, 0, 0]);
        kill(&world, &thread, l::SIGUSR1);
        let frame = handler(&world, &thread, l::SIGUSR1);
        let (rip, rax) = if restart {
            (before.rip, u64::from(l::__NR_wait4))
        } else {
            (before.rip + 2, Errno::EINTR.result())
        };
        assert_eq!(world.read_u64(&thread, frame + RIP), rip);
        assert_eq!(world.read_u64(&thread, frame + RAX), rax);
        sigreturn(&world, &thread);
    }
    // A pause is interrupted in any case; nothing happens to it without a handler.
    world.waits(&thread, l::__NR_pause, &[]);
    kill(&world, &thread, l::SIGCHLD);
    kill(&world, &thread, l::SIGWINCH);
    assert_eq!(world.next_event(&thread), None);
    kill(&world, &thread, l::SIGUSR1);
    let frame = handler(&world, &thread, l::SIGUSR1);
    assert_eq!(world.read_u64(&thread, frame + RAX), Errno::EINTR.result());
    drop(child);
}

#[test]
fn sigsuspend_waits_with_its_mask_and_puts_the_old_one_back() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, 0, 0);
    let masks = world.words(&thread, &[bit(l::SIGUSR1) | bit(l::SIGHUP), bit(l::SIGUSR2), 0]);
    world.ok(&thread, l::__NR_rt_sigprocmask, &[l::SIG_SETMASK.into(), masks, 0, 8]);
    kill(&world, &thread, l::SIGUSR1);
    assert_eq!(world.next_event(&thread), None);
    world.ok(&thread, l::__NR_rt_sigpending, &[masks + 16, 8]);
    assert_eq!(world.read_u64(&thread, masks + 16), bit(l::SIGUSR1));
    assert_eq!(world.call(&thread, l::__NR_rt_sigsuspend, &[masks + 8, 8]), None);
    let frame = handler(&world, &thread, l::SIGUSR1);
    assert_eq!(world.read_u64(&thread, frame + RAX), Errno::EINTR.result());
    assert_eq!(world.read_u64(&thread, frame + MASK), bit(l::SIGUSR1) | bit(l::SIGHUP));
    assert_eq!(thread.signals.blocked.get(), bit(l::SIGUSR1) | bit(l::SIGUSR2));
    sigreturn(&world, &thread);
    assert_eq!(thread.signals.blocked.get(), bit(l::SIGUSR1) | bit(l::SIGHUP));
}

#[test]
fn handlers_can_have_a_stack_of_their_own() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, l::SA_ONSTACK | l::SA_NODEFER, 0);
    let base = world.scratch(&thread, 8192);
    let stack = world.words(&thread, &[base, 0, 8192, 0, 0, 0]);
    world.ok(&thread, l::__NR_sigaltstack, &[stack, 0]);
    kill(&world, &thread, l::SIGUSR1);
    let frame = handler(&world, &thread, l::SIGUSR1);
    assert!((base..base + 8192).contains(&frame));
    assert_eq!(world.read_u64(&thread, frame + STACK), base);
    world.ok(&thread, l::__NR_sigaltstack, &[0, stack + 24]);
    assert_eq!(world.read_u32(&thread, stack + 24 + 8), l::SS_ONSTACK);
    world.refused(&thread, l::__NR_sigaltstack, &[stack, 0], Errno::EPERM);
    // A second frame goes below the first on the same stack.
    kill(&world, &thread, l::SIGUSR1);
    assert!(handler(&world, &thread, l::SIGUSR1) < frame);
    sigreturn(&world, &thread);
    sigreturn(&world, &thread);
    let small = world.words(&thread, &[base, 0, 100]);
    world.refused(&thread, l::__NR_sigaltstack, &[small, 0], Errno::ENOMEM);
    let wrong = world.words(&thread, &[base, 8, 8192]);
    world.refused(&thread, l::__NR_sigaltstack, &[wrong, 0], Errno::EINVAL);
}

#[test]
fn an_overflow_of_the_stack_ends_the_process() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, 0, 0);
    catch(&world, &thread, l::SIGSEGV, 0, 0);
    world.machine.with(thread.machine.get(), |thread| thread.registers.rsp = 0x10);
    kill(&world, &thread, l::SIGUSR1);
    assert_eq!(thread.process().ended.get(), Some(l::SIGSEGV));
}

#[test]
fn a_forged_frame_cannot_do_harm() {
    let world = World::new();
    for rip in [0x8000_0000_0000, u64::MAX] {
        let thread = world.fork(&world.first);
        catch(&world, &thread, l::SIGUSR1, 0, 0);
        kill(&world, &thread, l::SIGUSR1);
        let frame = handler(&world, &thread, l::SIGUSR1);
        world.write(&thread, frame + RIP, &rip.to_le_bytes());
        world.machine.with(thread.machine.get(), |thread| thread.registers.rsp += 8);
        assert_eq!(world.call(&thread, l::__NR_rt_sigreturn, &[]), None);
        assert_eq!(thread.process().ended.get(), Some(l::SIGSEGV));
    }
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, 0, 0);
    kill(&world, &thread, l::SIGUSR1);
    let frame = handler(&world, &thread, l::SIGUSR1);
    // IOPL and other flags of the system stay as they were.
    world.write(&thread, frame + RIP + 8, &u64::MAX.to_le_bytes());
    sigreturn(&world, &thread);
    assert_eq!(world.registers(&thread).rflags & !0x5_0DD5, 0);
}

#[test]
fn faults_are_signals_that_cannot_be_blocked() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGSEGV, l::SA_SIGINFO, 0);
    world.unix.page_fault(&thread, 0xDEAD_0000, Access::WRITE);
    world.collect();
    let frame = handler(&world, &thread, l::SIGSEGV);
    assert_eq!(world.read_u32(&thread, frame + INFO + 8), l::SEGV_MAPERR);
    assert_eq!(world.read_u64(&thread, frame + INFO + 16), 0xDEAD_0000);
    assert_eq!(world.read_u64(&thread, frame + TRAP), 6);
    assert_eq!(world.read_u64(&thread, frame + TRAP + 8), 14);
    // Again, while the first is handled (and blocked): the end.
    world.unix.page_fault(&thread, 0xDEAD_0000, Access::READ);
    world.collect();
    assert_eq!(thread.process().ended.get(), Some(l::SIGSEGV));
}

#[test]
fn exceptions_have_their_signals() {
    let world = World::new();
    let cases = [
        (0, l::SIGFPE),
        (1, l::SIGTRAP),
        (3, l::SIGTRAP),
        (6, l::SIGILL),
        (12, l::SIGBUS),
        (13, l::SIGSEGV),
        (17, l::SIGBUS),
        (19, l::SIGFPE),
        (255, l::SIGSEGV),
    ];
    for (vector, signal) in cases {
        let thread = world.fork(&world.first);
        world.unix.exception(&thread, vector, 0);
        world.collect();
        assert_eq!(thread.process().ended.get(), Some(signal), "vector {vector}");
    }
    // Process 1 is protected from signals, but not from itself.
    kill(&world, &world.first, l::SIGKILL);
    kill(&world, &world.first, l::SIGTERM);
    assert_eq!(world.machine.halted.get(), None);
    world.unix.exception(&world.first, 6, 0);
    world.collect();
    assert_eq!(world.machine.halted.get(), Some(l::SIGILL));
}

#[test]
fn one_shot_handlers_are_gone_after_the_first_signal() {
    let world = World::new();
    let thread = world.fork(&world.first);
    catch(&world, &thread, l::SIGUSR1, l::SA_RESETHAND, 0);
    kill(&world, &thread, l::SIGUSR1);
    handler(&world, &thread, l::SIGUSR1);
    sigreturn(&world, &thread);
    kill(&world, &thread, l::SIGUSR1);
    assert_eq!(thread.process().ended.get(), Some(l::SIGUSR1));
}

#[test]
fn parents_hear_of_their_children() {
    let world = World::new();
    let parent = world.fork(&world.first);
    catch(&world, &parent, l::SIGCHLD, l::SA_SIGINFO | l::SA_NOCLDSTOP, 0);
    let child = world.fork(&parent);
    kill(&world, &child, l::SIGSTOP);
    kill(&world, &child, l::SIGCONT);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.next_event(&parent), None);
    world.call(&child, l::__NR_exit_group, &[9]);
    let frame = handler(&world, &parent, l::SIGCHLD);
    assert_eq!(world.read_u32(&parent, frame + INFO + 8), l::CLD_EXITED);
    assert_eq!(world.read_u32(&parent, frame + INFO + 16), child.own_tid.get());
    assert_eq!(world.read_u32(&parent, frame + INFO + 24), 9);
}

#[test]
fn another_thread_takes_what_the_first_blocks() {
    let world = World::new();
    let main = world.fork(&world.first);
    catch(&world, &main, l::SIGUSR1, 0, 0);
    let stack = world.scratch(&main, 8192) + 8192;
    let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD;
    let tid = world.ok(&main, l::__NR_clone, &[flags.into(), stack]);
    let other = world.thread(tid);
    assert_eq!(world.next_event(&other), Some(Reply::Resume));
    let mask = world.words(&main, &[bit(l::SIGUSR1)]);
    world.ok(&main, l::__NR_rt_sigprocmask, &[l::SIG_BLOCK.into(), mask, 0, 8]);
    kill(&world, &main, l::SIGUSR1);
    assert_eq!(world.next_event(&main), None);
    handler(&world, &other, l::SIGUSR1);
}
