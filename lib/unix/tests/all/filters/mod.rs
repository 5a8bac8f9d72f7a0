//! Filters of calls (seccomp): their programs, what they say, and who has them.

mod programs;
mod tracer;

use std::rc::Rc;

use linux_raw_sys::general as l;
use linux_raw_sys::prctl as p;
use linux_raw_sys::ptrace as s;
use unix::errno::Errno;
use unix::machine::Reply;
use unix::process::seccomp::bpf::Instruction;
use unix::thread::Thread;
use zerocopy::IntoBytes;

use crate::common::World;

/// An instruction that jumps nowhere.
fn statement(code: u32, k: u32) -> Instruction {
    Instruction { code: code as u16, k, ..Instruction::default() }
}

/// A comparison with `k`.
fn jump(operation: u32, k: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code: (s::BPF_JMP | operation) as u16, jump_true, jump_false, k }
}

/// A program that says `verdict` to call `number`, and lets all others pass.
fn about(number: u32, verdict: u32) -> Vec<Instruction> {
    vec![
        statement(s::BPF_LD | s::BPF_ABS, 0),
        jump(s::BPF_JEQ, number, 0, 1),
        statement(s::BPF_RET, verdict),
        statement(s::BPF_RET, s::SECCOMP_RET_ALLOW),
    ]
}

/// The `struct sock_fprog` of a program.
fn program(world: &World, thread: &Rc<Thread>, code: &[Instruction]) -> u64 {
    let at = world.put(thread, code.as_bytes());
    world.words(thread, &[code.len() as u64, at])
}

/// `seccomp(SECCOMP_SET_MODE_FILTER, flags)`.
fn set(world: &World, thread: &Rc<Thread>, flags: u32, code: &[Instruction]) -> i64 {
    let at = program(world, thread, code);
    let arguments = [s::SECCOMP_SET_MODE_FILTER.into(), flags.into(), at];
    world.now(thread, l::__NR_seccomp, &arguments) as i64
}

/// A child with a filter that says this to `getppid`.
#[track_caller]
fn child(world: &World, verdict: u32) -> Rc<Thread> {
    let child = world.fork(&world.first);
    assert_eq!(set(world, &child, 0, &about(l::__NR_getppid, verdict)), 0);
    child
}

/// Another thread of the same process.
#[track_caller]
fn second(world: &World, thread: &Rc<Thread>) -> Rc<Thread> {
    let flags = l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD;
    let other = world.thread(world.ok(thread, l::__NR_clone, &[flags.into()]));
    assert_eq!(world.next_event(&other), Some(Reply::Resume));
    other
}

/// It ends, and is buried.
fn end(world: &World, thread: Rc<Thread>) {
    assert_eq!(world.call(&thread, l::__NR_exit_group, &[0]), None);
    let pid = u64::from(thread.process.number);
    drop(thread);
    world.ok(&world.first, l::__NR_wait4, &[pid, 0, 0, 0]);
}

fn mode(world: &World, thread: &Rc<Thread>) -> u64 {
    world.ok(thread, l::__NR_prctl, &[p::PR_GET_SECCOMP.into()])
}

#[test]
fn errors_are_what_the_filter_says() {
    let world = World::new();
    for (value, result) in [(0, 0), (1, -1), (4095, -4095), (4096, -4095), (0xFFFF, -4095)] {
        let child = child(&world, s::SECCOMP_RET_ERRNO | value);
        assert_eq!(world.now(&child, l::__NR_getppid, &[]) as i64, result);
        world.ok(&child, l::__NR_getpid, &[]);
        assert_eq!(mode(&world, &child), 2);
    }
    assert_eq!(mode(&world, &world.first), 0);
    let child = child(&world, s::SECCOMP_RET_USER_NOTIF);
    world.refused(&child, l::__NR_getppid, &[], Errno::ENOSYS);
    assert!(world.machine.log.borrow().is_empty(), "{:?}", world.machine.log);
}

#[test]
fn numbers_that_nobody_has_are_filtered() {
    let world = World::new();
    let child = world.fork(&world.first);
    for number in [400, 511, 512, 1 << 30, u32::MAX] {
        world.refused(&child, number, &[], Errno::ENOSYS);
        assert_eq!(set(&world, &child, 0, &about(number, s::SECCOMP_RET_ERRNO)), 0);
        assert_eq!(world.now(&child, number, &[]), 0, "call {number}");
    }
    world.refused(&child, 513, &[], Errno::ENOSYS);
}

#[test]
fn the_whole_call_is_seen() {
    let world = World::new();
    let child = world.fork(&world.first);
    let address = world.registers(&child).rip + 2 * 8;
    let arguments: [u64; 6] = std::array::from_fn(|at| 0x0101_0203_0000_0007 * (at as u64 + 1));
    let mut words = vec![l::__NR_getppid, 0xC000_003E, address as u32, (address >> 32) as u32];
    words.extend(arguments.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]));
    // All words as they should be: errno 7 for getppid; for others nothing.
    let mut code = vec![];
    for (at, word) in words.iter().enumerate() {
        code.push(statement(s::BPF_LD | s::BPF_ABS, 4 * at as u32));
        let left = 2 * (words.len() - at - 1) as u8;
        code.push(jump(s::BPF_JEQ, *word, 0, left + 1));
    }
    code.push(statement(s::BPF_RET, s::SECCOMP_RET_ERRNO | 7));
    code.push(statement(s::BPF_RET, s::SECCOMP_RET_ALLOW));
    assert_eq!(set(&world, &child, 0, &code), 0);
    let mut got = vec![];
    for _ in 0..12 {
        got.push(world.now(&child, l::__NR_getppid, &arguments) as i64);
    }
    assert_eq!(got.iter().filter(|value| **value == -7).count(), 1, "{got:?}");
}

#[test]
fn what_restricts_most_counts() {
    let world = World::new();
    let call = l::__NR_getppid;
    let order = [
        s::SECCOMP_RET_ALLOW,
        s::SECCOMP_RET_LOG,
        s::SECCOMP_RET_TRACE,
        s::SECCOMP_RET_ERRNO | 3,
        s::SECCOMP_RET_KILL_THREAD,
    ];
    for (at, weak) in order.iter().enumerate() {
        for strong in &order[at + 1..] {
            for verdicts in [[weak, strong], [strong, weak]] {
                let child = child(&world, *verdicts[0]);
                assert_eq!(set(&world, &child, 0, &about(call, *verdicts[1])), 0);
                let result = world.call(&child, call, &[]).map(|value| value as i64);
                let wanted = match *strong & s::SECCOMP_RET_ACTION_FULL {
                    s::SECCOMP_RET_LOG => Some(1),
                    s::SECCOMP_RET_TRACE => Some(-38),
                    s::SECCOMP_RET_ERRNO => Some(-3),
                    _ => None,
                };
                assert_eq!(result, wanted, "{verdicts:x?}");
            }
        }
    }
    // Of two that say the same the newer one counts.
    let child = child(&world, s::SECCOMP_RET_ERRNO | 3);
    assert_eq!(set(&world, &child, 0, &about(call, s::SECCOMP_RET_ERRNO | 9)), 0);
    assert_eq!(world.now(&child, call, &[]) as i64, -9);
}

#[test]
fn a_filter_kills_a_thread_or_the_process() {
    let world = World::new();
    let call = |thread: &Rc<Thread>| assert_eq!(world.call(thread, l::__NR_getppid, &[]), None);
    for verdict in [s::SECCOMP_RET_KILL_PROCESS, s::SECCOMP_RET_KILL_THREAD, 0x1234_0000] {
        let alone = child(&world, verdict);
        // Neither a handler nor a mask keeps it from that.
        let all = world.words(&alone, &[u64::MAX]);
        world.ok(&alone, l::__NR_rt_sigprocmask, &[0, all, 0, 8]);
        call(&alone);
        assert_eq!(alone.process.ended.get(), Some(l::SIGSYS), "{verdict:x}");
    }
    let both = child(&world, s::SECCOMP_RET_KILL_THREAD);
    let other = second(&world, &both);
    call(&other);
    assert_eq!((both.process.ended.get(), both.process.threads.borrow().len()), (None, 1));
    call(&both);
    assert_eq!(both.process.ended.get(), Some(l::SIGSYS));
    let all = child(&world, s::SECCOMP_RET_KILL_PROCESS);
    call(&second(&world, &all));
    assert_eq!(all.process.ended.get(), Some(l::SIGSYS));
    let log = world.machine.log.borrow();
    assert_eq!(log.len(), 6, "{log:?}");
    assert!(log[0].ends_with("made system call 110; its filter ends it"), "{log:?}");
}

#[test]
fn a_trap_is_a_signal_with_the_call() {
    let world = World::new();
    let child = child(&world, s::SECCOMP_RET_TRAP | 0x123);
    let stack = world.scratch(&child, 16384) + 16384;
    world.machine.with(child.machine.get(), |thread| thread.registers.rsp = stack);
    let flags = l::SA_RESTORER | l::SA_SIGINFO;
    let action = world.words(&child, &[0x41_0000, flags.into(), 0x42_0000, 0]);
    world.ok(&child, l::__NR_rt_sigaction, &[l::SIGSYS.into(), action, 0, 8]);
    let address = world.registers(&child).rip + 2;
    assert_eq!(world.call(&child, l::__NR_getppid, &[]), None);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    let registers = world.registers(&child);
    assert_eq!((registers.rip, registers.rdi), (0x41_0000, l::SIGSYS.into()));
    let info = |at: u64| world.read_u32(&child, registers.rsi + at);
    assert_eq!([info(0), info(4), info(8)], [l::SIGSYS, 0x123, l::SYS_SECCOMP]);
    assert_eq!(world.read_u64(&child, registers.rsi + 16), address);
    assert_eq!([info(24), info(28)], [l::__NR_getppid, 0xC000_003E]);
    // RAX of the frame (`gregs[13]`) is the call's number, as before.
    assert_eq!(world.read_u64(&child, registers.rdx + 40 + 8 * 13), l::__NR_getppid.into());
    // Blocked, it ends the process.
    let all = world.words(&child, &[u64::MAX]);
    world.ok(&child, l::__NR_rt_sigprocmask, &[0, all, 0, 8]);
    assert_eq!(world.call(&child, l::__NR_getppid, &[]), None);
    assert_eq!(child.process.ended.get(), Some(l::SIGSYS));
}

#[test]
fn filters_are_inherited_and_stay() {
    let world = World::new();
    let parent = child(&world, s::SECCOMP_RET_ERRNO | 5);
    let (heir, thread) = (world.fork(&parent), second(&world, &parent));
    for one in [&parent, &heir, &thread] {
        assert_eq!(world.now(one, l::__NR_getppid, &[]) as i64, -5);
        world.refused(one, l::__NR_seccomp, &[0, 0, 0], Errno::EINVAL);
    }
    assert_eq!(set(&world, &heir, 0, &about(l::__NR_getuid, s::SECCOMP_RET_ERRNO | 6)), 0);
    assert_eq!(world.now(&heir, l::__NR_getuid, &[]) as i64, -6);
    world.ok(&parent, l::__NR_getuid, &[]);
    let path = world.text(&heir, "/proc/self/status");
    let fd = world.ok(&heir, l::__NR_open, &[path, 0]);
    let to = world.scratch(&heir, 4096);
    let len = world.ok(&heir, l::__NR_read, &[fd, to, 4096]);
    let text = String::from_utf8(world.read(&heir, to, len as usize)).unwrap();
    assert!(text.contains("\nSeccomp:\t2\nSeccomp_filters:\t2\n"), "{text}");
}

#[test]
fn threads_get_the_same_filters_if_theirs_are_older() {
    let world = World::new();
    let first = world.fork(&world.first);
    let (other, third) = (second(&world, &first), second(&world, &first));
    let (both, silent) = (s::SECCOMP_FILTER_FLAG_TSYNC, s::SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
    let refuse = |errno: u32| about(l::__NR_getppid, s::SECCOMP_RET_ERRNO | errno);
    assert_eq!(set(&world, &first, both, &refuse(3)), 0);
    assert_eq!(world.now(&other, l::__NR_getppid, &[]) as i64, -3);
    // The third has one of its own.
    assert_eq!(set(&world, &third, 0, &refuse(4)), 0);
    assert_eq!(set(&world, &first, both, &refuse(5)), i64::from(third.own_tid.get()));
    assert_eq!(set(&world, &first, both | silent, &refuse(5)), -3);
    assert_eq!(world.now(&other, l::__NR_getppid, &[]) as i64, -3);
    // And can give it to the others.
    assert_eq!(set(&world, &third, both, &refuse(6)), 0);
    assert_eq!(world.now(&first, l::__NR_getppid, &[]) as i64, -6);
}

#[test]
fn who_may_not_and_what_is_wrong() {
    let world = World::new();
    let child = world.fork(&world.first);
    let good = about(l::__NR_getppid, s::SECCOMP_RET_ERRNO);
    let filter = |flags: u32, at: u64| [s::SECCOMP_SET_MODE_FILTER.into(), flags.into(), at];
    world.refused(&child, l::__NR_seccomp, &filter(0, 8), Errno::EFAULT);
    let at = program(&world, &child, &good);
    for flags in [s::SECCOMP_FILTER_FLAG_NEW_LISTENER, 32, 64, 1 << 31] {
        world.refused(&child, l::__NR_seccomp, &filter(flags, at), Errno::EINVAL);
    }
    for (words, errno) in [
        ([0, at], Errno::EINVAL),
        ([4097, at], Errno::EINVAL),
        ([1, 8], Errno::EFAULT),
        ([1, at], Errno::EINVAL),
    ] {
        let at = world.words(&child, &words);
        world.refused(&child, l::__NR_seccomp, &filter(0, at), errno);
        let arguments = [p::PR_SET_SECCOMP.into(), 2, at];
        world.refused(&child, l::__NR_prctl, &arguments, errno);
    }
    world.refused(&child, l::__NR_prctl, &[p::PR_SET_SECCOMP.into(), 3, at], Errno::EINVAL);
    world.ok(&child, l::__NR_setresuid, &[1000; 3]);
    world.refused(&child, l::__NR_seccomp, &filter(0, at), Errno::EACCES);
    world.ok(&child, l::__NR_prctl, &[p::PR_SET_NO_NEW_PRIVS.into(), 1, 0, 0, 0]);
    world.ok(&child, l::__NR_prctl, &[p::PR_SET_SECCOMP.into(), 2, at]);
    assert_eq!(world.now(&child, l::__NR_getppid, &[]), 0);
    for (action, known) in [
        (s::SECCOMP_RET_KILL_PROCESS, true),
        (s::SECCOMP_RET_ERRNO, true),
        (s::SECCOMP_RET_USER_NOTIF, false),
        (1, false),
    ] {
        let at = world.words(&child, &[action.into()]);
        let errno = if known { 0 } else { -95 };
        let result = world.now(&child, l::__NR_seccomp, &[2, 0, at]) as i64;
        assert_eq!(result, errno, "{action:x}");
    }
}

#[test]
fn filters_are_as_many_as_on_linux_and_are_paid() {
    let world = World::new();
    let user = world.first.process.user();
    let used = || user.used(unix::account::What::Heap);
    end(&world, world.fork(&world.first));
    let at_first = used();
    let child = world.fork(&world.first);
    let before = used();
    let long = vec![statement(s::BPF_RET, s::SECCOMP_RET_ALLOW); 4096];
    let at = program(&world, &child, &long);
    let add = || world.now(&child, l::__NR_seccomp, &[1, 0, at]) as i64;
    for _ in 0..7 {
        assert_eq!(add(), 0);
    }
    // Eight times 4,096, and four for each of seven: 28 too many.
    assert_eq!(add(), -12);
    let at = world.words(&child, &[4096 - 28, world.read_u64(&child, at + 8)]);
    world.ok(&child, l::__NR_seccomp, &[1, 0, at]);
    let paid = used() - before;
    assert!((32_740 * 8..32_740 * 8 + 4096).contains(&paid), "{paid}");
    // Thousands of short ones, which end one after the other.
    let many = world.fork(&world.first);
    let at = program(&world, &many, &long[..1]);
    while world.now(&many, l::__NR_seccomp, &[1, 0, at]) == 0 {}
    assert_eq!(unix::process::seccomp::filter::count(&many), 6554);
    for one in [child, many] {
        end(&world, one);
    }
    assert_eq!(used(), at_first);
}
