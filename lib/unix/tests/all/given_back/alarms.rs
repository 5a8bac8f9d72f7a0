//! Alarms for a time that nobody lives to see go with who has set them.

use linux_raw_sys::general as l;

use super::{ends, leaves_nothing, ok};
use crate::common::caller::Program;

/// Some hundred years, in seconds.
const NEVER_S: u64 = 4_000_000_000;

/// A `struct itimerspec` for then, once.
fn never(program: &Program<'_>) -> u64 {
    let words = [0, 0, NEVER_S, 0].map(u64::to_le_bytes).concat();
    program.world.write(&program.thread, program.buffer + 64, &words);
    program.buffer + 64
}

#[test]
fn of_files() {
    leaves_nothing(|program| {
        let timer = ok(program, l::__NR_timerfd_create, &[l::CLOCK_MONOTONIC.into(), 0]);
        ok(program, l::__NR_timerfd_settime, &[timer, 0, never(program), 0]);
        program.close(timer);
    });
}

#[test]
fn of_processes() {
    leaves_nothing(|program| {
        let world = program.world;
        let child = world.fork(&program.thread);
        let at = program.buffer;
        for clock in [l::CLOCK_MONOTONIC, l::CLOCK_PROCESS_CPUTIME_ID] {
            assert_eq!(world.now(&child, l::__NR_timer_create, &[clock.into(), 0, at]), 0);
            let id = world.read_u32(&child, at).into();
            world.write(&child, at + 64, &[0, 0, NEVER_S, 0].map(u64::to_le_bytes).concat());
            assert_eq!(world.now(&child, l::__NR_timer_settime, &[id, 0, at + 64, 0]), 0);
        }
        world.write(&child, at, &[NEVER_S, NEVER_S].map(u64::to_le_bytes).concat());
        assert_eq!(world.now(&child, l::__NR_setrlimit, &[l::RLIMIT_CPU.into(), at]), 0);
        ends(program, &child);
    });
}

#[test]
fn of_who_sleeps() {
    leaves_nothing(|program| {
        let world = program.world;
        let child = world.fork(&program.thread);
        world.write(&child, program.buffer, &[NEVER_S, 0].map(u64::to_le_bytes).concat());
        assert_eq!(world.call(&child, l::__NR_nanosleep, &[program.buffer, 0]), None);
        let pid = u64::from(child.process().number);
        world.forget_scratch(&child);
        ok(program, l::__NR_kill, &[pid, l::SIGKILL.into()]);
        assert_eq!(ok(program, l::__NR_wait4, &[pid, 0, 0, 0]), pid);
    });
}
