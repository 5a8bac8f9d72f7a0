//! The world itself: process 1 is there and is answered.

use crate::common::World;
use linux_raw_sys::general::{__NR_getpid, __NR_gettid};
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
