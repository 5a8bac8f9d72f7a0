//! Threads of another processor that are there together and talk to each other; the test plays that
//! processor, fast path included.

use crate::common::clan::{World, asks};
use crate::common::{tasks, there};
use abi::{ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::between::SEATS;
use kernel::check;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::schedule;
use kernel::elsewhere;
use kernel::elsewhere::visits::{INTERRUPT, accept, enter, runs, set_processors};
use kernel::ipc::wait;
use kernel::irq::comers;
use kernel::sched::make_ready;
use kernel::thread::rendezvous::{self, Busy, Waits};
use kernel::thread::state::State;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, set_current};

/// The vector of a page fault.
const PAGE_FAULT: u64 = 14;

/// A world of two processors: `two` waits for anybody and `one` runs, both on processor 1.
fn world() -> World {
    begin(World::new())
}

pub fn begin(world: World) -> World {
    set_processors(2);
    set_current(world.root);
    make_ready(world.root);
    place(&world, world.two);
    make_ready(world.two);
    let _ = kernel::ipc::syscall::ipc(world.two, ThreadId::NIL, ThreadId::ANY, Timeouts::NEVER.0);
    wait::seal(world.two);
    make_ready(world.one);
    place(&world, world.one);
    // It has called the other one.
    world.one.partner.set(world.two.id.get());
    comers::look();
    world
}

fn place(world: &World, thread: TcbRef) {
    let change = schedule::Change { processor: 1, ..asks(thread) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
}

fn sound() {
    assert_eq!(check::violations(), 0);
}

/// Whoever runs on processor 1 talks to `to` there: the receiver runs, if it is served.
pub fn talk(to: ThreadId, from: ThreadId) -> bool {
    runs(1).expect("somebody runs there").frame().ip.set(0x2000);
    there::talk(to, from)
}

#[test]
fn who_waits_for_anybody_comes_along() {
    let world = world();
    assert!(rendezvous::is_seated(world.one) && rendezvous::is_seated(world.two));
    sound();
    assert!(accept(1).is_some());
    assert_eq!(runs(1).map(|it| it.id.get()), Some(world.one.id.get()));
    sound();
}

#[test]
fn they_talk_and_come_back_as_they_are() {
    let world = world();
    let (one, two) = (world.one.id.get(), world.two.id.get());
    let _ = accept(1);
    for _ in 0..3 {
        assert!(talk(two, two), "a call");
        assert!(talk(one, ThreadId::ANY), "the answer");
    }
    assert!(talk(two, two));
    enter(1, PAGE_FAULT);
    comers::look();
    assert!(world.two.is_ready() && world.two.resume.get() == Resume::Entered);
    assert_eq!(wait::state(world.one), State::Waits(two));
    assert_eq!((world.one.resume.get(), world.one.ip.get()), (Resume::Ipc, 0x2000));
    sound();
}

#[test]
fn an_interrupt_brings_whoever_runs_back_and_all_go_again() {
    let world = world();
    let two = world.two.id.get();
    let _ = accept(1);
    assert!(talk(two, two));
    enter(1, INTERRUPT);
    comers::look();
    // The caller waits for the one that is offered now.
    assert!(rendezvous::is_seated(world.one) && rendezvous::is_seated(world.two));
    sound();
    let _ = accept(1);
    assert!(talk(world.one.id.get(), ThreadId::ANY), "the call is still to be answered");
    sound();
}

/// Whoever asks for one of them has all of them, wherever they are.
#[test]
fn a_message_from_here_meets_them() {
    for far in 0..3 {
        std::thread::spawn(move || {
            let world = world();
            let two = world.two.id.get();
            if far > 0 {
                let _ = accept(1);
            }
            if far > 1 {
                assert!(talk(two, two));
            }
            let root = world.root;
            assert_eq!(kernel::ipc::send::accepts(world.two, root), far < 2);
            assert!(!rendezvous::is_seated(world.one) && !rendezvous::is_seated(world.two));
            let waits = wait::waits(world.one);
            let expected = if far > 1 { Busy::Waiting } else { Busy::Ready };
            assert_eq!(waits, Waits::Busy(expected));
            sound();
        })
        .join()
        .expect("the test passes");
    }
}

#[test]
fn who_has_a_sender_here_does_not_wait_for_anybody_there() {
    let world = world();
    let (one, two) = (world.one.id.get(), world.two.id.get());
    let _ = accept(1);
    assert!(talk(two, two));
    // `two` runs; the root thread waits to send to it.
    set_current(world.root);
    let call = kernel::ipc::syscall::ipc;
    let _ = call(world.root, two, two, Timeouts::NEVER.0);
    assert_eq!(wait::state(world.root), State::Polls(two));
    comers::look();
    let _ = accept(1);
    assert!(!talk(one, ThreadId::ANY), "somebody waits to send to it");
    sound();
}

#[test]
fn one_of_them_dies() {
    for which in 0..2 {
        for talks in 0..3 {
            std::thread::spawn(move || {
                let world = world();
                let ids = [world.one.id.get(), world.two.id.get()];
                let _ = accept(1);
                for turn in 0..talks {
                    let to = ids[1 - turn % 2];
                    assert!(talk(to, if turn % 2 == 0 { to } else { ThreadId::ANY }));
                }
                let victim = [world.one, world.two][which];
                let _ = kernel::control::lifecycle::delete(victim);
                sound();
                comers::look();
                sound();
                if let Some(runner) = accept(1).and_then(|_| runs(1)) {
                    assert_ne!(runner.id.get(), ids[which]);
                    assert!(!talk(ids[which], ThreadId::ANY), "nobody meets the dead");
                }
            })
            .join()
            .expect("the test passes");
        }
    }
}

#[test]
fn who_controls_one_has_it_here() {
    let world = world();
    let two = world.two.id.get();
    let _ = accept(1);
    assert!(talk(two, two));
    let registers = Registers { control: abi::syscall::exregs::DELIVER, ..Default::default() };
    let (_, old) = exchange_registers(world.root, world.one.id.get(), &registers).expect("may");
    assert_eq!(old.ip, 0x2000);
    assert_eq!(wait::state(world.one), State::Waits(two));
    sound();
}

#[test]
fn before_tables_change_nobody_of_the_space_is_elsewhere() {
    let world = world();
    let _ = accept(1);
    // The space of the one that waits.
    kernel::mem::quiesce::quiet(world.spaces[1]);
    assert!(cpu().scheduler.stopped.has(1));
    sound();
    // Now its root, with which it is there.
    kernel::mem::quiesce::vacate(world.spaces[1]);
    assert!(cpu().guests.is_empty());
    assert!(world.one.is_away());
    sound();
}

/// Whoever is asked for all the time is not there together with others for a while.
#[test]
fn who_is_asked_for_all_the_time_takes_nobody_from_its_work() {
    let world = world();
    let asks = (0..20).take_while(|_| {
        let is_there = rendezvous::is_seated(world.two);
        let _ = wait::waits(world.two);
        comers::look();
        is_there
    });
    assert!(asks.count() < 10);
    assert!(world.one.is_away() && !rendezvous::is_seated(world.one));
    sound();
}

/// Nobody who waits with a limit, for somebody outside, or for the first processor is there.
#[test]
fn who_waits_otherwise_stays_here() {
    let changes: [fn(&World); 4] = [
        |world| world.two.wake_at_us.set(1),
        |world| world.two.partner.set(world.root.id.get()),
        |world| world.two.lines.set(1 << 5),
        |world| world.two.processor.set(0),
    ];
    for change in changes {
        std::thread::spawn(move || {
            let world = world();
            let _ = wait::waits(world.two);
            change(&world);
            comers::look();
            assert!(world.one.is_away() && !rendezvous::is_seated(world.one));
            world.two.wake_at_us.set(0);
            world.two.lines.set(0);
            world.two.processor.set(1);
        })
        .join()
        .expect("the test passes");
    }
}

/// Frames that a space pays for.
fn used(world: &World, space: usize) -> u64 {
    world.spaces[space].quota().used()
}

/// Whose seat it is pays for it, until it is deleted, moves, or gets another name.
#[test]
fn who_sits_pays_until_it_leaves() {
    let leaves: [fn(&World); 3] = [
        |world| {
            let change = schedule::Change { processor: 0, ..asks(world.two) };
            let _ = schedule::schedule(world.root, &change).expect("the root task may");
        },
        |world| {
            let id = world.two.id.get();
            let next = ThreadId::global(id.number(), id.version() + 1);
            kernel::control::lifecycle::change_id(world.two, next);
        },
        |world| {
            let _ = kernel::control::lifecycle::delete(world.two);
        },
    ];
    for (which, leave) in leaves.into_iter().enumerate() {
        std::thread::spawn(move || {
            let alone = || {
                let world = World::new();
                [used(&world, 0), used(&world, 1)]
            };
            // A machine of its own.
            let before = std::thread::spawn(alone).join().expect("it can be made");
            let world = self::world();
            assert_eq!([used(&world, 0), used(&world, 1)], before.map(|frames| frames + 1));
            let _ = accept(1);
            leave(&world);
            let of_thread = if which == 2 { 2 } else { 0 };
            assert_eq!(used(&world, 1), before[1] - of_thread, "leaving {which}");
            assert_eq!(used(&world, 0), before[0] + 1);
            sound();
        })
        .join()
        .expect("the test passes");
    }
}

/// Whose space has nothing left is in no party, and nothing else happens.
#[test]
fn who_cannot_pay_has_no_seat() {
    for poor in 0..2 {
        std::thread::spawn(move || {
            let world = World::new();
            let quota = world.spaces[poor].quota();
            let rest = quota.limit() - quota.used();
            quota
                .transfer(world.root.space().expect("it has one").quota(), rest)
                .expect("it has it");
            let world = self::begin(world);
            assert!(world.one.is_away() && !rendezvous::is_seated(world.one));
            assert!(!rendezvous::is_seated(world.two));
            assert!(accept(1).is_some() && runs(1).is_none());
            sound();
        })
        .join()
        .expect("the test passes");
    }
}

/// A seat that somebody else gets is paid by that one, and whoever had it pays no more.
#[test]
fn a_seat_that_is_taken_is_paid_by_whoever_takes_it() {
    let world = world();
    let _ = accept(1);
    enter(1, INTERRUPT);
    comers::look();
    let before = [used(&world, 0), used(&world, 1)];
    // As many of the second space as there are seats begin to wait for their like there.
    let like = |number: u32| {
        let id = ThreadId::global(number, 1);
        tasks::make(id, world.spaces[1], number - 1000, ThreadId::NIL)
    };
    let waiters: Vec<TcbRef> = (1018..1018 + SEATS as u32 + 2).map(like).collect();
    let threads = used(&world, 1) - before[1];
    for waiter in &waiters {
        waiter.scheduler.set(world.root.id.get());
        place(&world, *waiter);
        make_ready(*waiter);
        let call = kernel::ipc::syscall::ipc;
        let _ = call(*waiter, ThreadId::NIL, world.two.id.get(), Timeouts::NEVER.0);
        wait::seal(*waiter);
        sound();
    }
    // Whoever is there keeps its seat.
    let taken = used(&world, 1) - before[1] - threads;
    assert_eq!((used(&world, 0), taken), (before[0], SEATS as u64 - 2));
    assert!(rendezvous::is_seated(world.one));
    sound();
}

/// Somebody who has a seat is deleted while others are there, whose processor shows it: they come back first.
#[test]
fn nobody_is_there_while_a_seat_goes() {
    let world = world();
    let _ = accept(1);
    let idler = tasks::make(ThreadId::global(1030, 1), world.spaces[1], 12, ThreadId::NIL);
    idler.processor.set(1);
    idler.special.set(kernel::thread::tcb::ELSEWHERE);
    rendezvous::set_closed(idler, world.two.id.get());
    idler.partner.set(world.two.id.get());
    elsewhere::begins_to_wait(idler);
    let before = used(&world, 1);
    let _ = kernel::control::lifecycle::delete(idler);
    assert!(!rendezvous::is_seated(world.one) && !rendezvous::is_seated(world.two));
    assert_eq!(used(&world, 1), before - 3, "block, vector registers, seat");
    comers::look();
    assert!(rendezvous::is_seated(world.one), "they go again");
    sound();
}
