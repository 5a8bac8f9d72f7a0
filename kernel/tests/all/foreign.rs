//! Foreign threads: whatever else their task's threads do with them, they reach nobody but their handler.

use abi::syscall::{exregs, state};
use abi::{CallError, Ceilings, ThreadId, Time, utcb};
use kernel::check;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::foreign::thread_state;
use kernel::control::{arm, lifecycle};
use kernel::space::SpaceRef;
use kernel::thread::tcb::Resume;
use kernel::thread::{Kind, TcbRef, set_current};

use crate::common::clan::{LOW, World, id, rank};
use crate::common::tasks::{UTCBS, ipc, machine, thread};

/// A thread that waits for its start message from `pager`.
fn unstarted(id: ThreadId, space: SpaceRef, slot: u64, pager: TcbRef) -> TcbRef {
    let thread = lifecycle::create(id, space, pager.scheduler.get()).expect("quota suffices");
    lifecycle::place_utcb(thread, UTCBS + slot * utcb::SIZE).expect("the location is good");
    lifecycle::activate(thread, pager.id.get());
    thread
}

#[test]
fn a_thread_that_was_armed_before_it_started_is_none_as_a_foreign_one() {
    let (_machine, spaces) = machine(2);
    let native = thread(spaces[0], 0, ThreadId::NIL);
    let foreign = unstarted(id(1000, 1), spaces[0], 1, native);
    set_current(native);
    arm::arm(native, ThreadId(foreign.utcb.get()));
    assert!(foreign.is_armed());
    assert_eq!(thread_state(native, foreign.id.get(), state::FOREIGN, 0), Ok(()));
    assert!(foreign.is_foreign() && !foreign.is_armed(), "its calls would be this kernel's");
    assert_eq!(check::violations(), 0);
}

#[test]
fn a_foreign_thread_that_is_out_of_time_is_not_freed_by_being_stopped() {
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(1000), ..LOW });
    let foreign = unstarted(id(1005, 1), world.spaces[0], 5, world.one);
    rank(world.two, 10);
    set_current(world.one);
    assert_eq!(thread_state(world.one, foreign.id.get(), state::FOREIGN, 0), Ok(()));
    let _ = ipc(world.one, foreign.id.get(), ThreadId::NIL);
    assert!(foreign.is_ready());
    rank(foreign, 50);
    rank(world.root, 10);
    foreign.timeslice_us.set(10_000);
    foreign.quantum_left_us.set(0);
    set_current(foreign);
    kernel::sched::grant_slice(foreign);
    // On another processor, and not picked since.
    foreign.frame().set_out_of_time();
    foreign.resume.set(Resume::Entered);
    set_current(world.one);
    let stopped = thread_state(world.one, foreign.id.get(), state::STOP, 0);
    assert_eq!((stopped, foreign.resume.get()), (Err(CallError::NoPrivilege), Resume::Entered));
    set_current(foreign);
    foreign.resume.set(Resume::Frame);
    let _ = kernel::irq::tick::tick(foreign);
    assert_eq!(foreign.kind.get(), Kind::Preemption);
    set_current(world.one);
    let stopped = thread_state(world.one, foreign.id.get(), state::STOP, 0);
    assert_eq!((stopped, foreign.kind.get()), (Err(CallError::NoPrivilege), Kind::Preemption));
    // Its chief may.
    set_current(world.root);
    let stopped = thread_state(world.root, foreign.id.get(), state::STOP, 0);
    assert_eq!((stopped, foreign.kind.get()), (Ok(()), Kind::SystemCall));
    let frees = Registers { control: exregs::DELIVER, ..Registers::default() };
    assert!(exchange_registers(world.root, foreign.id.get(), &frees).is_some());
}
