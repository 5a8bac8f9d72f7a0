//! Clocks, sleeping, interval timers.

use std::rc::Rc;

use crate::common::World;
use crate::common::caller::Program;
use crate::common::machine::BOOT_NS;
use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::Reply;
use unix::thread::Thread;

#[test]
fn clocks_tell_the_time() {
    let world = World::new();
    let first = &world.first;
    let time = world.words(first, &[0, 0]);
    world.advance(500_000_000);
    let read = || (world.read_u64(first, time), world.read_u64(first, time + 8));
    world.ok(first, l::__NR_clock_gettime, &[l::CLOCK_MONOTONIC.into(), time]);
    assert_eq!(read(), (1, 500_000_000));
    world.ok(first, l::__NR_clock_gettime, &[l::CLOCK_REALTIME.into(), time]);
    assert_eq!(read(), (BOOT_NS / 1_000_000_000 + 1, 500_000_000));
    world.ok(first, l::__NR_gettimeofday, &[time, 0]);
    assert_eq!(read().1, 500_000);
    world.machine.with(first.machine.get(), |thread| thread.user_ns = 3_000_000_007);
    for clock in [2_i64, 3, !1 << 3 | 2, !1 << 3 | 6] {
        world.ok(first, l::__NR_clock_gettime, &[clock as u64, time]);
        assert_eq!(read(), (3, 7));
    }
    for clock in [12_i64, 99, !500 << 3 | 2, -1] {
        world.refused(first, l::__NR_clock_gettime, &[clock as u64, time], Errno::EINVAL);
    }
    world.refused(first, l::__NR_clock_gettime, &[0, 8], Errno::EFAULT);
    let new = world.words(first, &[1000, 5]);
    world.ok(first, l::__NR_clock_settime, &[0, new]);
    assert_eq!(world.ok(first, l::__NR_time, &[0]), 1000);
    // The data page of the vDSO says when boot was by the new time.
    let unix = &world.unix;
    let boot = unix.mm.vdso.boot_time(unix).expect("a vDSO");
    assert_eq!(boot + world.machine.now_ns.get(), 1_000_000_000_005);
}

/// By the real time as it is now.
#[test]
fn a_clock_that_is_set_is_the_futexes_and_the_boot_time_s_too() {
    let world = World::new();
    let first = &world.first;
    let new = world.words(first, &[1000, 0]);
    world.ok(first, l::__NR_clock_settime, &[0, new]);
    let word = world.words(first, &[0]);
    let until = world.words(first, &[1002, 0]);
    let operation = u64::from(l::FUTEX_WAIT_BITSET | l::FUTEX_CLOCK_REALTIME);
    world.waits(first, l::__NR_futex, &[word, operation, 0, until, 0, u64::MAX]);
    world.advance(1_999_999_999);
    assert_eq!(world.next_reply(first), None);
    world.advance(1);
    assert_eq!(world.next_reply(first), Some(Errno::ETIMEDOUT.result()));
    // It had run for a second when it was set.
    let stat = Program::new(&world, first).contents("/proc/stat");
    let stat = String::from_utf8(stat).unwrap();
    assert!(stat.lines().any(|line| line == "btime 999"), "{stat}");
}

#[test]
fn sleepers_wake_in_order() {
    let world = World::new();
    let (first, second) = (world.first.clone(), world.fork(&world.first));
    let long = world.words(&first, &[2, 0]);
    let short = world.words(&second, &[1, 0]);
    world.waits(&first, l::__NR_nanosleep, &[long, 0]);
    world.waits(&second, l::__NR_nanosleep, &[short, 0]);
    world.advance(999_999_999);
    assert_eq!((world.next_reply(&first), world.next_reply(&second)), (None, None));
    world.advance(1);
    assert_eq!((world.next_reply(&first), world.next_reply(&second)), (None, Some(0)));
    world.advance(1_000_000_000);
    assert_eq!(world.next_reply(&first), Some(0));
    let bad = world.words(&first, &[0, 1_000_000_000]);
    world.refused(&first, l::__NR_nanosleep, &[bad, 0], Errno::EINVAL);
    world.refused(&first, l::__NR_nanosleep, &[8, 0], Errno::EFAULT);
    let zero = world.words(&first, &[0, 0]);
    world.ok(&first, l::__NR_nanosleep, &[zero, 0]);
    // An absolute time that has passed.
    world.ok(&first, l::__NR_clock_nanosleep, &[1, 1, long, 0]);
    world.refused(&first, l::__NR_clock_nanosleep, &[3, 0, long, 0], Errno::EOPNOTSUPP);
}

/// Process 2 with a handler for `signal` and a stack.
fn with_handler(world: &World, signal: u32) -> std::rc::Rc<unix::thread::Thread> {
    let thread = world.fork(&world.first);
    let stack = world.scratch(&thread, 8192) + 8192;
    world.machine.with(thread.machine.get(), |thread| thread.registers.rsp = stack);
    let action = world.words(&thread, &[0x41_0000, l::SA_RESTORER.into(), 0x42_0000, 0]);
    world.ok(&thread, l::__NR_rt_sigaction, &[signal.into(), action, 0, 8]);
    thread
}

#[test]
fn an_interrupted_sleep_tells_what_is_left() {
    let world = World::new();
    let thread = with_handler(&world, l::SIGALRM);
    assert_eq!(world.ok(&thread, l::__NR_alarm, &[3]), 0);
    world.advance(1_000_000_000);
    assert_eq!(world.ok(&thread, l::__NR_alarm, &[1]), 2);
    let time = world.words(&thread, &[5, 0, 0, 0]);
    world.waits(&thread, l::__NR_nanosleep, &[time, time + 16]);
    world.advance(1_000_000_000);
    assert_eq!(world.next_event(&thread), Some(Reply::Resume));
    assert_eq!(world.registers(&thread).rdi, l::SIGALRM.into());
    let frame = world.registers(&thread).rsp;
    assert_eq!(world.read_u64(&thread, frame + 8 + 40 + 13 * 8), Errno::EINTR.result());
    assert_eq!((world.read_u64(&thread, time + 16), world.read_u64(&thread, time + 24)), (4, 0));
    assert_eq!(world.ok(&thread, l::__NR_alarm, &[0]), 0);
}

#[test]
fn interval_timers_repeat() {
    let world = World::new();
    let thread = with_handler(&world, l::SIGALRM);
    let mask = world.words(&thread, &[1 << (l::SIGALRM - 1)]);
    world.ok(&thread, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
    // Period 2 s, first after 1 s.
    let timer = world.words(&thread, &[2, 0, 1, 0]);
    let old = world.words(&thread, &[9, 9, 9, 9]);
    world.ok(&thread, l::__NR_setitimer, &[0, timer, old]);
    assert_eq!(world.read_u64(&thread, old), 0);
    for _ in 0..3 {
        world.waits(&thread, l::__NR_rt_sigtimedwait, &[mask, 0, 0, 8]);
        world.advance(2_000_000_000);
        assert_eq!(world.next_reply(&thread), Some(l::SIGALRM.into()));
    }
    world.ok(&thread, l::__NR_getitimer, &[0, old]);
    assert_eq!((world.read_u64(&thread, old), world.read_u64(&thread, old + 16)), (2, 1));
    world.refused(&thread, l::__NR_getitimer, &[3, old], Errno::EINVAL);
    let bad = world.words(&thread, &[0, 1_000_000, 0, 0]);
    world.refused(&thread, l::__NR_setitimer, &[0, bad, 0], Errno::EINVAL);
}

#[test]
fn processor_time_timers_go_with_the_process() {
    let world = World::new();
    let thread = with_handler(&world, l::SIGPROF);
    let timer = world.words(&thread, &[0, 0, 1, 0]);
    world.ok(&thread, l::__NR_setitimer, &[l::ITIMER_PROF.into(), timer, 0]);
    world.advance(1_500_000_000);
    assert_eq!(world.next_event(&thread), None);
    world.machine.with(thread.machine.get(), |thread| thread.user_ns = 1_000_000_000);
    world.advance(1_000_000_000);
    assert_eq!(world.next_event(&thread), Some(Reply::Resume));
    assert_eq!(world.registers(&thread).rdi, l::SIGPROF.into());
}

#[test]
fn processor_time_that_stands_still_is_looked_at_by_the_tick() {
    let world = World::new();
    let thread = with_handler(&world, l::SIGVTALRM);
    let timer = world.words(&thread, &[0, 0, 0, 20_000]);
    world.ok(&thread, l::__NR_setitimer, &[l::ITIMER_VIRTUAL.into(), timer, 0]);
    world.machine.with(thread.machine.get(), |thread| thread.user_ns = 19_999_999);
    world.advance(20_000_000);
    let next_ns = world.machine.alarm.get().expect("the timer still runs");
    assert!(
        next_ns >= world.machine.now_ns.get() + 3_000_000,
        "it would be looked at all the time"
    );
    world.machine.with(thread.machine.get(), |thread| thread.user_ns = 20_000_000);
    world.advance(8_000_000);
    assert_eq!(world.next_event(&thread), Some(Reply::Resume));
    assert_eq!(world.registers(&thread).rdi, l::SIGVTALRM.into());
}

/// Lets time pass in which `thread` alone computes.
fn compute(world: &World, thread: &std::rc::Rc<unix::thread::Thread>, ns: u64) {
    world.machine.with(thread.machine.get(), |thread| thread.user_ns += ns);
    world.advance(ns);
}

#[test]
fn too_much_processor_time_is_told_and_then_ends_the_process() {
    const SECOND: u64 = 1_000_000_000;
    let world = World::new();
    let parent = with_handler(&world, l::SIGXCPU);
    let limit = world.words(&parent, &[2, 4]);
    world.ok(&parent, l::__NR_setrlimit, &[l::RLIMIT_CPU.into(), limit]);
    // A child begins anew, with the same limit.
    compute(&world, &parent, SECOND);
    let child = world.fork(&parent);
    compute(&world, &child, SECOND + SECOND / 2);
    assert_eq!((world.next_event(&child), world.next_event(&parent)), (None, None));
    compute(&world, &child, SECOND);
    assert_eq!(world.next_event(&child), Some(Reply::Resume));
    assert_eq!(world.registers(&child).rdi, l::SIGXCPU.into());
    let now = world.words(&child, &[0, 0]);
    world.ok(&child, l::__NR_getrlimit, &[l::RLIMIT_CPU.into(), now]);
    assert_eq!((world.read_u64(&child, now), world.read_u64(&child, now + 8)), (3, 4));
    compute(&world, &child, SECOND);
    assert!(child.process().ended.get().is_none());
    compute(&world, &child, SECOND);
    assert_eq!(child.process().ended.get(), Some(l::SIGKILL));
    assert!(parent.process().ended.get().is_none());
    // A limit that is taken back means nothing.
    let limit = world.words(&parent, &[u64::MAX, u64::MAX]);
    world.ok(&parent, l::__NR_setrlimit, &[l::RLIMIT_CPU.into(), limit]);
    compute(&world, &parent, 5 * SECOND);
    assert!(parent.process().ended.get().is_none());
    assert_eq!(world.next_event(&parent), None);
}

#[test]
fn timers_count_what_they_could_not_tell() {
    let world = World::new();
    let thread = world.fork(&world.first);
    let signal = 40_u32;
    let mask = world.words(&thread, &[1 << (signal - 1)]);
    world.ok(&thread, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
    let event = world.words(&thread, &[77, u64::from(signal), 0, 0, 0, 0, 0, 0]);
    let number = world.put(&thread, &[0xEE; 4]);
    world.ok(&thread, l::__NR_timer_create, &[1, event, number]);
    let number = u64::from(world.read_u32(&thread, number));
    let time = world.words(&thread, &[1, 0, 1, 0]);
    world.ok(&thread, l::__NR_timer_settime, &[number, 0, time, 0]);
    world.advance(3_000_000_000);
    let info = world.put(&thread, &[0; 128]);
    let arguments = [mask, info, 0, 8];
    assert_eq!(world.ok(&thread, l::__NR_rt_sigtimedwait, &arguments), signal.into());
    assert_eq!(world.read_u32(&thread, info + 8) as i32, l::SI_TIMER);
    assert_eq!(u64::from(world.read_u32(&thread, info + 16)), number);
    assert_eq!(world.read_u32(&thread, info + 20), 2);
    assert_eq!(world.read_u64(&thread, info + 24), 77);
    assert_eq!(world.ok(&thread, l::__NR_timer_getoverrun, &[number]), 2);
    world.ok(&thread, l::__NR_timer_delete, &[number]);
    world.refused(&thread, l::__NR_timer_gettime, &[number, info], Errno::EINVAL);
    world.refused(&thread, l::__NR_timer_create, &[99, 0, info], Errno::EINVAL);
    let wrong = world.words(&thread, &[0, 99, 0, 0, 0, 0, 0, 0]);
    world.refused(&thread, l::__NR_timer_create, &[1, wrong, info], Errno::EINVAL);
    world.advance(5_000_000_000);
    assert!(thread.process().signals.pending.is_empty());
}

/// A process whose timer expires every microsecond; the timer's number.
fn busy_timer(world: &World, signal: u32) -> (std::rc::Rc<unix::thread::Thread>, u64) {
    let thread = world.fork(&world.first);
    let event = world.words(&thread, &[0, u64::from(signal), 0, 0, 0, 0, 0, 0]);
    let number = world.put(&thread, &[0xEE; 4]);
    world.ok(&thread, l::__NR_timer_create, &[1, event, number]);
    let number = u64::from(world.read_u32(&thread, number));
    let time = world.words(&thread, &[0, 1000, 0, 1000]);
    world.ok(&thread, l::__NR_timer_settime, &[number, 0, time, 0]);
    (thread, number)
}

#[test]
fn a_timer_whose_signal_nobody_takes_costs_nothing() {
    let world = World::new();
    let signal = 40_u32;
    let mask = world.words(&world.first, &[1 << (signal - 1)]);
    world.ok(&world.first, l::__NR_rt_sigprocmask, &[0, mask, 0, 8]);
    let (thread, number) = busy_timer(&world, signal);
    world.machine.alarms.set(0);
    world.advance(1_000_000_000);
    assert_eq!(world.machine.alarms.get(), 1);
    // It has gone on counting.
    let arguments = [mask, 0, 0, 8];
    assert_eq!(world.ok(&thread, l::__NR_rt_sigtimedwait, &arguments), signal.into());
    assert_eq!(world.ok(&thread, l::__NR_timer_getoverrun, &[number]), 999_999);
    // Taken, it is told again.
    world.advance(1_000_000);
    assert_eq!(world.machine.alarms.get(), 2);
    assert_eq!(world.ok(&thread, l::__NR_rt_sigtimedwait, &arguments), signal.into());
    assert_eq!(world.ok(&thread, l::__NR_timer_getoverrun, &[number]), 999);
}

#[test]
fn alarms_leave_programs_half_of_the_time() {
    let world = World::new();
    // Interval timers ring whether or not their signals are taken.
    let timers = [busy_timer(&world, l::SIGCHLD), busy_timer(&world, l::SIGCHLD)];
    for (thread, _) in &timers {
        let time = world.words(thread, &[0, 1, 0, 1]);
        world.ok(thread, l::__NR_setitimer, &[0, time, 0]);
        let time = world.words(thread, &[0, 1, 0, 1]);
        world.ok(thread, l::__NR_setitimer, &[1, time, 0]);
    }
    world.machine.alarms.set(0);
    world.advance(10_000_000);
    let alarms = world.machine.alarms.get();
    assert!(alarms <= 200, "{alarms} alarms in 10 ms");
    // A look that takes long is followed by a pause that is as long.
    world.machine.ns_per_look.set(1_000_000);
    world.machine.alarms.set(0);
    world.advance(100_000_000);
    let alarms = world.machine.alarms.get();
    assert!(alarms <= 51, "{alarms} alarms of a millisecond in 100 ms");
}

/// What a clock's steersman sets is told again; a step moves the clock; others may only look.
#[test]
fn adjustments_of_the_clock_are_kept() {
    let world = World::new();
    let first = &world.first;
    let timex = world.scratch(first, 208);
    let call = |who: &Rc<Thread>, words: &[(u64, u64)]| {
        world.write(who, timex, &[0; 208]);
        words.iter().for_each(|(at, value)| world.write(who, timex + at * 8, &value.to_ne_bytes()));
        world.call(who, l::__NR_adjtimex, &[timex])
    };
    assert_eq!(call(first, &[]), Some(5), "nobody has set the clock");
    assert_eq!(world.read_u64(first, timex + 11 * 8), 10_000);
    // ADJ_FREQUENCY, ADJ_TICK, ADJ_STATUS.
    assert_eq!(call(first, &[(0, 0x4012), (2, 77), (11, 9_999), (5, 0)]), Some(0));
    call(first, &[]);
    assert_eq!(world.read_u64(first, timex + 2 * 8), 77);
    assert_eq!(world.read_u64(first, timex + 11 * 8), 9_999);
    let before = world.read_u64(first, timex + 9 * 8);
    call(first, &[(0, 0x100), (9, 1_000)]);
    call(first, &[]);
    assert!((1_000..1_002).contains(&(world.read_u64(first, timex + 9 * 8) - before)));
    let errno = |errno: Errno| Some(errno.result());
    assert_eq!(call(first, &[(0, 0x4000), (11, 8_999)]), errno(Errno::EINVAL));
    assert_eq!(call(first, &[(0, 0x100), (10, 1_000_000)]), errno(Errno::EINVAL));
    assert_eq!(call(first, &[(0, 0x8000)]), errno(Errno::EINVAL));
    let other = world.fork(first);
    world.ok(&other, l::__NR_setuid, &[1000]);
    assert_eq!(call(&other, &[]), Some(0));
    assert_eq!(call(&other, &[(0, 2)]), errno(Errno::EPERM));
    assert_eq!(call(&other, &[(0, 0xA001)]), Some(0), "looks only");
    world.refused(first, l::__NR_clock_adjtime, &[1, timex], Errno::EOPNOTSUPP);
    world.refused(first, l::__NR_clock_adjtime, &[16, timex], Errno::EINVAL);
    world.refused(first, l::__NR_adjtimex, &[u64::MAX], Errno::EFAULT);
}
