//! The world itself: process 1 is there and is answered.

use crate::common::World;
use crate::common::caller::{Program, RDWR};
use linux_raw_sys::general::{__NR_getpid, __NR_gettid, __NR_prctl};
use linux_raw_sys::prctl::PR_SET_NAME;
use unix::errno::Errno;

#[test]
fn process_1_is_answered() {
    let world = World::new();
    assert_eq!(world.ok(&world.first, __NR_getpid, &[]), 1);
    assert_eq!(world.ok(&world.first, __NR_gettid, &[]), 1);
}

#[test]
fn a_call_that_is_not_there_is_named_once_per_program() {
    let world = World::new();
    for _ in 0..2 {
        world.refused(&world.first, 511, &[], Errno::ENOSYS);
        world.refused(&world.first, u32::MAX, &[], Errno::ENOSYS);
    }
    assert_eq!(world.machine.log.borrow().len(), 2);
}

/// Any program can choose its name, and so a part of what the operator's terminal shows.
#[test]
fn what_programs_choose_does_not_reach_the_operators_cursor() {
    let world = World::new();
    let name = world.text(&world.first, "\x1b[2J\nkernel:");
    world.ok(&world.first, __NR_prctl, &[PR_SET_NAME.into(), name]);
    world.refused(&world.first, 511, &[], Errno::ENOSYS);
    let said = world.machine.log.borrow()[0].clone();
    assert!(said.starts_with("unix: \\x1b[2J\\x0akernel: (process 1) made"), "{said}");
}

#[test]
fn lines_for_the_kernels_log_are_spelled_out() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let log = program.opened("/dev/kmsg", RDWR);
    assert_eq!(program.write(log, b"one\x1b]0;title\x07\ntwo\r\n"), 19);
    assert_eq!(
        *world.machine.log.borrow(),
        ["unix: process 1 logs: one\\x1b]0;title\\x07", "unix: process 1 logs: two"]
    );
}

/// Nobody's line looks like the kernel's, a server's, or another program's.
#[test]
fn a_line_for_the_kernels_log_says_whose_it_is() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let log = program.opened("/dev/kmsg", RDWR);
    let lies = ["baton: kernel panic", "root: console is stopped.", "unix: process 7 logs: a lie"];
    for lie in lies {
        for line in
            [format!("{lie}\n"), format!("\n{lie}"), format!("\r{lie}"), format!("\x0b{lie}\x0c")]
        {
            assert_eq!(program.write(log, line.as_bytes()), line.len() as i64);
        }
    }
    for line in world.machine.log.borrow().iter() {
        assert!(
            line.starts_with("unix: process 1 logs: ") && !line.contains(char::is_control),
            "{line}"
        );
    }
}
