//! Threads whose user code runs on another processor, which the test plays.

use crate::common::clan::{World, asks};
use crate::common::tasks::QUIET_LINE;
use abi::ThreadId;
use kernel::arch::cpu;
use kernel::between::berth::Stand;
use kernel::check;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::schedule;
use kernel::elsewhere;
use kernel::elsewhere::visits::{self, INTERRUPT, accept, berth, enter, set_processors};
use kernel::irq::{comers, watch};
use kernel::sched::leaving;
use kernel::sched::{self, make_ready};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, set_current};

/// The vector of a page fault.
const PAGE_FAULT: u64 = 14;

/// A world of two processors, in which the root thread runs.
fn world() -> World {
    let world = World::new();
    set_processors(2);
    set_current(world.root);
    make_ready(world.root);
    world
}

/// Sends `thread`, which is made ready, to processor 1.
fn go(world: &World, thread: TcbRef) {
    make_ready(thread);
    place(world, thread, 1).expect("the root task may");
    comers::look();
}

fn place(world: &World, thread: TcbRef, number: u64) -> Result<(), abi::CallError> {
    let change = schedule::Change { processor: number, ..asks(thread) };
    schedule::schedule(world.root, &change).map(|_| ())
}

/// Runs a test with a thread that is offered, there, and back with an entry, each on a machine of
/// its own.
fn wherever(test: fn(u32)) {
    for far in 0..3 {
        std::thread::spawn(move || test(far)).join().expect("the test passes");
    }
}

fn sound() {
    assert_eq!(check::violations(), 0);
}

#[test]
fn only_processors_that_run_are_named() {
    let world = world();
    for number in [2, 3, 255, 0xFFFF] {
        assert_eq!(place(&world, world.one, number), Err(abi::CallError::InvalidParameter));
    }
    assert_eq!(place(&world, world.one, 1), Ok(()));
    assert_eq!(place(&world, world.one, 0), Ok(()));
}

#[test]
fn a_ready_thread_leaves_and_nobody_takes_it_for_ready() {
    let world = world();
    go(&world, world.one);
    assert!(world.one.is_away() && !world.one.is_ready() && !world.one.ready.are_linked());
    sound();
    let visitor = accept(1).expect("it may come");
    assert_eq!(visitor.id.get(), world.one.id.get());
    sound();
}

#[test]
fn an_entry_brings_it_back_ready_to_make_it() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    enter(1, PAGE_FAULT);
    assert!(world.one.is_away(), "nobody has looked yet");
    comers::look();
    assert!(world.one.is_ready());
    assert_eq!(world.one.resume.get(), Resume::Entered);
    sound();
}

#[test]
fn an_interrupt_there_brings_it_back_and_it_goes_again() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    enter(1, INTERRUPT);
    comers::look();
    assert!(world.one.is_away());
    assert!(accept(1).is_some(), "it was offered again");
    sound();
}

/// The first processor has nobody here, and somebody is back whenever it looks.
#[test]
fn who_idles_lets_interrupts_in_though_others_come() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    enter(1, PAGE_FAULT);
    let cpu = cpu();
    set_current(cpu.scheduler.idle.get().expect("there is one"));
    cpu.interrupt.set(Some((0, QUIET_LINE)));
    let next = watch::watch();
    assert!(next.is_some() && world.one.is_ready(), "nobody has seen that it is back");
    assert_eq!(cpu.interrupt.get(), None, "the interrupt still waits");
    cpu.pending_lines.set(0);
    sound();
}

#[test]
fn one_of_two_is_there_and_the_more_urgent_one() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    go(&world, world.two);
    assert!(world.two.is_away() && world.two.ready.are_linked(), "it waits for its turn");
    sound();
    let change = schedule::Change { priority: 200, ..asks(world.two) };
    assert!(schedule::schedule(world.root, &change).is_ok());
    comers::look();
    let visitor = accept(1).expect("the more urgent one may come");
    assert_eq!(visitor.id.get(), world.two.id.get());
    assert!(world.one.is_away() && world.one.ready.are_linked());
    sound();
}

/// A partner runs here on the slice of somebody who has left and waits for its turn there: when that
/// slice ends, the owner stays where it is queued.
#[test]
fn a_slice_that_ends_here_moves_nobody_who_is_elsewhere() {
    let world = world();
    crate::common::clan::rank(world.one, 50);
    go(&world, world.two);
    let _ = accept(1);
    make_ready(world.one);
    place(&world, world.one, 1).expect("the root task may");
    sched::grant_slice(world.one);
    comers::look();
    assert!(world.one.is_away() && world.one.ready.are_linked(), "it waits for its turn");
    cpu().scheduler.slice_left_us.set(0);
    let _ = sched::slice::reschedule(world.root);
    sound();
    assert!(world.one.ready.are_linked());
    enter(1, PAGE_FAULT);
    comers::look();
    let next = accept(1).expect("its turn has come");
    assert_eq!(next.id.get(), world.one.id.get());
    sound();
}

/// Whoever reads or changes a thread has it here, wherever it was: offered, there, or back with
/// an entry, which it has not made then.
#[test]
fn who_controls_a_thread_has_it_here() {
    wherever(|far| {
        let world = world();
        go(&world, world.one);
        world.one.frame().ip.set(0x1000);
        if far > 0 {
            let _ = accept(1);
        }
        if far > 1 {
            enter(1, PAGE_FAULT);
        }
        let registers = Registers { control: abi::syscall::exregs::DELIVER, ..Default::default() };
        let (_, old) = exchange_registers(world.root, world.one.id.get(), &registers).expect("may");
        assert_eq!(old.ip, 0x1000);
        assert!(world.one.is_ready(), "after {far}");
        assert_eq!(world.one.resume.get(), Resume::Frame);
        assert_eq!(berth(1).call_back(), kernel::between::berth::Call::Empty);
        sound();
        comers::look();
        assert!(world.one.is_away(), "it goes again");
    });
}

#[test]
fn a_thread_is_deleted_wherever_it_is() {
    wherever(|far| {
        let world = world();
        go(&world, world.one);
        if far > 0 {
            let _ = accept(1);
        }
        if far > 1 {
            enter(1, PAGE_FAULT);
        }
        let id = world.one.id.get();
        let _ = kernel::control::lifecycle::delete(world.one);
        assert!(kernel::thread::lookup(id).is_none());
        comers::look();
        assert!(accept(1).is_none(), "nobody is left to come");
        assert!(cpu().guests.is_empty());
    });
}

#[test]
fn before_tables_change_nobody_of_the_space_is_elsewhere() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    kernel::mem::quiesce::quiet(world.spaces[1]);
    assert!(berth(1).stand() == Stand::GoesOn, "another space's tables");
    kernel::mem::quiesce::quiet(world.spaces[0]);
    kernel::mem::quiesce::quiet(world.spaces[0]);
    assert_eq!(visits::interrupts(), 2, "one to come, one to stop");
    assert!(berth(1).stand() == Stand::Still && cpu().pending_lines.get() != 0);
    sound();
    comers::look();
    assert!(berth(1).stand() == Stand::GoesOn, "it goes on when the kernel is left");
    assert!(cpu().scheduler.stopped.is_empty());
    sound();
    kernel::mem::quiesce::vacate(world.spaces[1]);
    assert!(cpu().guests.has(1), "another space's root");
    kernel::mem::quiesce::vacate(world.spaces[0]);
    assert!(cpu().guests.is_empty());
    assert!(world.one.is_away() && cpu().pending_lines.get() != 0, "it goes again soon");
    sound();
}

/// Who stands still is called, dies, or comes back for an errand as if it ran.
#[test]
fn who_stands_still_is_had_back() {
    for way in 0..3 {
        std::thread::spawn(move || {
            let world = world();
            go(&world, world.one);
            let _ = accept(1);
            kernel::mem::quiesce::quiet(world.spaces[0]);
            match way {
                0 => elsewhere::recall(world.one),
                1 => {
                    let _ = kernel::control::lifecycle::delete(world.one);
                }
                _ => enter(1, INTERRUPT),
            }
            comers::look();
            assert!(cpu().scheduler.stopped.is_empty());
            if way != 1 {
                assert!(world.one.is_away());
                assert!(accept(1).is_some() && berth(1).stand() == Stand::GoesOn);
            }
            sound();
        })
        .join()
        .expect("the test passes");
    }
}

/// An operation at whose end only those go on who stand still for it leaves nothing to be looked at;
/// anything else does.
#[test]
fn who_stands_still_goes_on_at_once() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    let noted = &cpu().pending_lines;
    noted.set(0);
    kernel::mem::quiesce::quiet(world.spaces[0]);
    assert!(elsewhere::lets_all_go_on());
    assert_eq!(noted.get(), 0);
    assert!(berth(1).stand() == Stand::GoesOn && cpu().scheduler.stopped.is_empty());
    assert!(!elsewhere::lets_all_go_on(), "nobody stands still");
    kernel::mem::quiesce::quiet(world.spaces[0]);
    noted.set(noted.get() | 1);
    assert!(!elsewhere::lets_all_go_on(), "there is an interrupt");
    noted.set(1 << leaving::LINE);
    enter(1, PAGE_FAULT);
    assert!(!elsewhere::lets_all_go_on(), "it has come back");
    assert_ne!(noted.get(), 0);
    comers::look();
    assert!(world.one.is_ready());
    sound();
}

/// Who goes to a processor where nobody goes for a while leaves the kernel here, and later.
#[test]
fn who_wants_to_leave_for_a_processor_that_rests_goes_on_here() {
    let world = world();
    go(&world, world.one);
    for _ in 0..20 {
        kernel::mem::quiesce::quiet(world.spaces[0]);
        comers::look();
    }
    place(&world, world.root, 1).expect("it may");
    assert_eq!(world.root.resume.get(), Resume::Anew);
    assert!(elsewhere::leave(world.root) == world.root, "the processor rests");
    assert!(kernel::arch::entry::resume(world.root) == world.root);
    assert_eq!(world.root.resume.get(), Resume::Frame);
    sound();
}

/// A task that takes pages back all the time only sends the others home.
#[test]
fn who_is_called_back_all_the_time_runs_at_home() {
    let world = world();
    go(&world, world.one);
    let calls = (0..20).take_while(|_| {
        kernel::mem::quiesce::quiet(world.spaces[0]);
        comers::look();
        world.one.is_away()
    });
    assert!(calls.count() < 10);
    assert!(world.one.is_ready() && world.one.id.get() != ThreadId::NIL);
    assert!(visits::interrupts() < 40);
    sound();
}

/// Makes processor 1 rest, on which nobody is: `thread` goes there, and its tables change too often.
fn tire(world: &World, thread: TcbRef) {
    go(world, thread);
    let space = thread.space().expect("it has one");
    for _ in 0..20 {
        kernel::mem::quiesce::quiet(space);
        comers::look();
    }
    assert!(thread.is_ready(), "it goes on here meanwhile");
}

/// Who gets another name goes on there, whoever runs here.
#[test]
fn who_gets_another_name_goes_on_there() {
    wherever(|far| {
        let world = world();
        go(&world, world.one);
        if far > 0 {
            let _ = accept(1);
        }
        if far > 1 {
            enter(1, PAGE_FAULT);
        }
        let id = crate::common::clan::id(world.one.id.get().number(), 2);
        kernel::control::lifecycle::change_id(world.one, id);
        comers::look();
        assert!(world.one.is_away(), "it goes again");
        sound();
    });
}

/// Who has gone on here, for its processor rested, and lost the processor to somebody more urgent leaves when its own
/// takes it again.
#[test]
fn who_has_gone_on_here_leaves_when_its_processor_has_rested() {
    let world = world();
    go(&world, world.one);
    let _ = accept(1);
    enter(1, PAGE_FAULT);
    comers::look();
    tire(&world, world.two);
    // Its entry is made, and is over.
    world.one.resume.set(Resume::Frame);
    assert!(elsewhere::leave(world.one) == world.one, "the processor rests");
    kernel::arch::clock::PAGE.offset_us.fetch_add(10_000, core::sync::atomic::Ordering::Relaxed);
    assert!(!cpu().scheduler.leaving.is_empty(), "the tick looks");
    comers::look();
    assert!(world.one.is_away() && world.two.is_away());
    sound();
}

/// However often somebody becomes ready whose processor rests, others are remembered.
#[test]
fn who_cannot_leave_keeps_nobody_from_it() {
    let world = world();
    set_processors(3);
    tire(&world, world.one);
    for _ in 0..20 {
        make_ready(world.one);
        comers::look();
    }
    assert!(world.one.is_ready(), "its processor rests");
    place(&world, world.two, 2).expect("the root task may");
    comers::look();
    assert!(accept(2).is_some(), "its processor is free");
    sound();
}

/// Short visits, none of them met by a tick, use up a quantum as others do.
#[test]
fn who_is_out_of_time_does_not_go() {
    let world = world();
    world.one.quantum_left_us.set(0);
    go(&world, world.one);
    assert!(accept(1).is_none(), "nobody may come");
    assert!(world.one.is_ready() && world.one.ready.are_linked(), "it is here");
    assert!(world.one.resume.get() == Resume::Entered && world.one.frame().is_out_of_time());
    sound();
}
