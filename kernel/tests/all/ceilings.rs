//! Ceilings that a chief gives: no thread of the task gets above them, whoever schedules it.

use core::sync::atomic::Ordering;

use crate::common::clan::*;
use crate::common::tasks::{make, registers};
use abi::{CallError, Ceilings, ThreadId, Time};
use kernel::arch::cpu;
use kernel::control::lifecycle;
use kernel::control::schedule::{self, schedule};
use kernel::control::thread_control::{Form, Request, in_form};
use kernel::space::SpaceRef;
use kernel::thread::{lookup, own, set_current};

/// What Schedule says to a thread of `world.one` about itself: it is its own scheduler.
fn schedules_itself(world: &World, change: impl Fn(&mut schedule::Change)) -> Option<CallError> {
    assert!(create(world.one, id(FIRST + 1, 1)).is_ok());
    let partner = lookup(id(FIRST + 1, 1)).expect("it was created");
    partner.scheduler.set(world.one.id.get());
    let mut request = asks(partner);
    change(&mut request);
    let result = because(schedule(world.one, &request));
    let _ = delete(world.one, partner.id.get());
    cpu().scheduler.ready.remove(world.one);
    result
}

fn time(slice: Time, quantum: Time) -> u64 {
    u64::from(slice.0) << 16 | u64::from(quantum.0)
}

#[test]
fn a_tasks_own_scheduler_gives_no_more_than_the_ceilings() {
    let no = Some(CallError::NoPrivilege);
    let world = World::new();
    rank(world.one, 40);
    world.limits(world.one, LOW);
    let result = schedules_itself(&world, |request| request.time = time(Time::NEVER, Time::NEVER));
    assert_eq!(result, no, "an endless slice");
}

#[test]
fn each_ceiling_holds_at_its_edge() {
    let no = Some(CallError::NoPrivilege);
    let cases: [(u64, u64, u64, Option<CallError>); 7] = [
        (UNCHANGED, time(Time::micros(10_000), Time::NEVER), UNCHANGED, None),
        (UNCHANGED, time(Time::micros(10_240), Time::NEVER), UNCHANGED, no),
        (50, UNCHANGED, UNCHANGED, None),
        (51, UNCHANGED, UNCHANGED, no),
        (UNCHANGED, UNCHANGED, 50 << 16, None),
        (UNCHANGED, UNCHANGED, 51 << 16, no),
        (UNCHANGED, UNCHANGED, 1, no),
    ];
    for (priority, time, preemption, expected) in cases {
        let run = || {
            let world = World::new();
            world.limits(world.one, LOW);
            let dest = world.one.id.get();
            // The root task is bound by the ceilings that it gave, too.
            let request = schedule::Change { dest, priority, time, processor: !0, preemption };
            assert_eq!(because(schedule(world.root, &request)), expected);
        };
        std::thread::scope(|scope| scope.spawn(run).join()).expect("the case holds");
    }
}

#[test]
fn nobody_schedules_the_kernels_own_threads() {
    let world = World::new();
    own::make_waker();
    let scheduler = &cpu().scheduler;
    let own = [scheduler.idle.get(), scheduler.waker.get()];
    for thread in own.map(|thread| thread.expect("the kernel has it")) {
        let all = (thread.priority.get(), thread.timeslice_us.get(), thread.quantum_left_us.get());
        for dest in [thread.id.get(), id(thread.id.get().number(), 2)] {
            let request = schedule::Change {
                dest,
                priority: 200,
                time: time(Time::micros(10), Time::NEVER),
                ..asks(thread)
            };
            assert_eq!(because(schedule(world.root, &request)), Some(CallError::InvalidThread));
            assert_eq!(because(schedule(world.one, &request)), Some(CallError::NoPrivilege));
        }
        let now = (thread.priority.get(), thread.timeslice_us.get(), thread.quantum_left_us.get());
        assert_eq!(now, all, "it is changed");
    }
}

#[test]
fn lower_ceilings_lower_what_is_there_and_what_is_below() {
    let world = World::new();
    assert!(call(world.one, id(FIRST, 1), id(FIRST, 1), Form::Create).is_ok());
    let child = lookup(id(FIRST, 1)).expect("it was created");
    for thread in [world.one, child] {
        thread.timeslice_us.set(u64::MAX);
        thread.slice_left_us.set(u64::MAX);
        thread.max_delay_us.set(65_535);
        thread.sensitive_priority.set(255);
    }
    world.limits(world.one, LOW);
    for thread in [world.one, child] {
        assert_eq!((thread.priority.get(), thread.sensitive_priority.get()), (50, 50));
        assert_eq!((thread.timeslice_us.get(), thread.max_delay_us.get()), (10_000, 0));
        assert!(thread.slice_left_us.get() <= 10_000);
    }
    assert_eq!(child.space().map(SpaceRef::ceilings), Some(LOW));
    assert_eq!(world.two.priority.get(), lifecycle::DEFAULT_PRIORITY);
    // They never rise again, and the next ones are inherited.
    let raise = control(world.root, world.one, UNCHANGED, Ceilings::NONE.word());
    assert_eq!(because(raise), Some(CallError::NoPrivilege));
    assert!(call(world.one, id(FIRST + 1, 1), id(FIRST + 1, 1), Form::Create).is_ok());
    let late = lookup(id(FIRST + 1, 1)).expect("it was created");
    assert_eq!((late.priority.get(), late.timeslice_us.get()), (50, 10_000));
}

#[test]
fn a_used_up_quantum_is_not_refilled_from_inside() {
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(1000), ..LOW });
    assert_eq!(world.one.quantum_left_us.get(), 1000);
    // A new thread takes half of its creator's; so does one in a new task.
    assert!(create(world.one, id(FIRST, 1)).is_ok());
    let made = lookup(id(FIRST, 1)).expect("it was created");
    assert_eq!((world.one.quantum_left_us.get(), made.quantum_left_us.get()), (500, 500));
    assert!(call(world.one, id(FIRST + 1, 1), id(FIRST + 1, 1), Form::Create).is_ok());
    let below = lookup(id(FIRST + 1, 1)).expect("it was created");
    assert_eq!((world.one.quantum_left_us.get(), below.quantum_left_us.get()), (250, 250));
    // Its own task does not refill it, by whatever scheduler.
    let mut request = asks(below);
    request.time = time(Time::micros(1000), Time::micros(1000));
    assert_eq!(because(schedule(world.one, &request)), Some(CallError::NoPrivilege));
    let own = Request {
        dest: id(FIRST + 2, 1),
        pager: ThreadId::NIL,
        scheduler: world.one.id.get(),
        space: world.one.id.get(),
        utcb_location: !0,
    };
    let made = in_form(world.one, &own, Form::Any);
    assert_eq!(because(made), Some(CallError::InvalidScheduler));
    // The chief does.
    assert!(schedule(world.root, &request).is_ok());
    assert_eq!(below.quantum_left_us.get(), 1000);
}

#[test]
fn who_has_no_time_to_give_makes_nobody() {
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(200), ..LOW });
    assert!(create(world.one, id(FIRST, 1)).is_ok());
    let made = lookup(id(FIRST, 1)).expect("it was created");
    assert_eq!((world.one.quantum_left_us.get(), made.quantum_left_us.get()), (100, 100));
    // Each of them would run until the timer interrupts, and then another one.
    for space in [world.one.id.get(), id(FIRST + 1, 1)] {
        let made = call(world.one, id(FIRST + 1, 1), space, Form::Any);
        assert_eq!(because(made), Some(CallError::NoPrivilege));
    }
    assert!(create(world.root, id(FIRST + 1, 1)).is_ok(), "its chief is not bound");
}

#[test]
fn a_creation_that_is_refused_takes_no_time() {
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(1000), ..LOW });
    set_current(world.one);
    let request = Request {
        dest: id(FIRST, 1),
        pager: world.one.id.get(),
        scheduler: world.one.scheduler.get(),
        space: world.one.id.get(),
        utcb_location: 8,
    };
    let made = in_form(world.one, &request, Form::Create);
    assert_eq!(because(made), Some(CallError::UtcbArea));
    assert_eq!(world.one.quantum_left_us.get(), 1000);
}

#[test]
fn who_is_out_of_time_is_not_freed_by_its_own_task() {
    use abi::syscall::exregs as bit;
    use kernel::control::exregs::{Registers, exchange_registers};
    use kernel::thread::Kind;
    use kernel::thread::tcb::Resume;
    let world = World::new();
    world.limits(world.one, Ceilings { quantum: Time::micros(1000), ..LOW });
    let helper = make(id(FIRST + 5, 1), world.spaces[0], 5, ThreadId::NIL);
    kernel::sched::slice::set_quantum(helper, 500);
    rank(helper, 50);
    helper.timeslice_us.set(10_000);
    kernel::sched::slice::set_quantum(world.one, 0);
    [world.root, world.two].into_iter().for_each(|thread| rank(thread, 10));
    set_current(world.one);
    kernel::sched::grant_slice(world.one);
    world.one.resume.set(Resume::Frame);
    let _ = kernel::irq::tick::tick(world.one);
    assert_eq!(world.one.kind.get(), Kind::Preemption);
    set_current(helper);
    let control = bit::ABORT_RECEIVE | bit::ABORT_SEND | bit::HALT_VALID;
    let frees = Registers { control, ..Registers::default() };
    assert!(exchange_registers(helper, world.one.id.get(), &frees).is_some());
    assert_eq!(world.one.kind.get(), Kind::Preemption);
    set_current(world.root);
    assert!(exchange_registers(world.root, world.one.id.get(), &frees).is_some());
    assert_eq!(world.one.kind.get(), Kind::User);
}

#[test]
fn a_quantum_that_is_used_up_pays_no_more_for_partners() {
    let world = World::new();
    kernel::sched::slice::set_quantum(world.one, 0);
    set_current(world.one);
    kernel::sched::grant_slice(world.one);
    set_current(world.two);
    let _ = kernel::irq::tick::tick(world.two);
    assert!(cpu().scheduler.slice_owner.get() != Some(world.one));
    for thread in [world.one, world.two] {
        cpu().scheduler.ready.insert(thread);
    }
}

#[test]
fn partners_delay_no_longer_than_one_of_them() {
    use abi::utcb::PREEMPT_DELAY;
    let world = World::new();
    let (first, second, urgent) = (world.one, world.two, world.root);
    for thread in [first, second] {
        registers(thread).set_flags(PREEMPT_DELAY);
        thread.max_delay_us.set(5_000);
        thread.sensitive_priority.set(255);
    }
    rank(urgent, 200);
    let scheduler = &cpu().scheduler;
    set_current(first);
    kernel::sched::grant_slice(first);
    assert!(kernel::sched::slice::reschedule(first) == first, "the first delays");
    assert_ne!(scheduler.delayed_since_us.get(), 0);
    // All of it passes; then a message hands the processor over.
    kernel::arch::clock::PAGE.offset_us.fetch_add(5_002, Ordering::Relaxed);
    set_current(second);
    assert!(kernel::sched::slice::reschedule(second) == urgent, "the second delays once more");
}

#[test]
fn thread_switch_does_not_pass_a_delay_on() {
    let world = World::new();
    rank(world.root, 200);
    set_current(world.one);
    cpu().scheduler.delayed_since_us.set(1);
    let next = schedule::thread_switch(world.one, world.two.id.get());
    assert!(next == world.root);
}
