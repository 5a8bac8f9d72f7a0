//! Threads of one space that hand over to each other in user mode of another processor, which the test plays:
//! whoever asks for one of them finds it as if the kernel had seen it (decision 0088).

use crate::common::clan::{World, asks};
use crate::common::tasks::{make, registers};
use abi::{ThreadId, Timeouts, utcb};
use kernel::arch::cpu;
use kernel::check;
use kernel::control::arm::arm;
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::control::schedule;
use kernel::elsewhere;
use kernel::elsewhere::visits::{INTERRUPT, accept, enter, set_processors};
use kernel::ipc::{syscall, wait};
use kernel::irq::comers;
use kernel::sched::make_ready;
use kernel::thread::rendezvous::{self, Busy, Waits};
use kernel::thread::state::State;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, set_current};

/// The vector of a page fault.
const PAGE_FAULT: u64 = 14;

/// `one` and two others of its space, all of processor 1 and armed; the others wait for anybody.
struct Talk {
    world: World,
    mates: [TcbRef; 2],
}

fn place(world: &World, thread: TcbRef, number: u64) {
    let change = schedule::Change { processor: number, ..asks(thread) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
}

fn waits(thread: TcbRef) {
    let _ = syscall::ipc(thread, ThreadId::NIL, ThreadId::ANY, Timeouts::NEVER.0);
    wait::seal(thread);
}

impl Talk {
    fn new() -> Self {
        let world = World::new();
        set_processors(3);
        set_current(world.root);
        make_ready(world.root);
        let mates = [1, 2].map(|index| {
            let slot = 2 + index;
            let mate = make(ThreadId::global(902 + index, 1), world.spaces[0], slot, ThreadId::NIL);
            mate.scheduler.set(world.root.id.get());
            place(&world, mate, 1);
            make_ready(mate);
            waits(mate);
            mate
        });
        make_ready(world.one);
        place(&world, world.one, 1);
        for mate in mates {
            arm(world.one, ThreadId(mate.utcb.get()));
            assert!(rendezvous::is_published_there(mate));
        }
        let talk = Self { world, mates };
        talk.go();
        talk
    }

    /// Whoever has something to do there goes.
    fn go(&self) {
        comers::look();
        assert_eq!(check::violations(), 0);
    }

    /// The path of local IPC on processor 1, where `guest` has gone: a call of `to` by `from`, who runs, or its
    /// answer. Whether it needs no kernel.
    fn hands_over(&self, guest: TcbRef, from: TcbRef, to: TcbRef, calls: bool) -> bool {
        let (own, partner) = (registers(from), registers(to));
        let state = own.word(utcb::LIPC_STATE);
        let theirs = partner.word(utcb::LIPC_WAIT);
        let is_open = state & 0xFFFF != 0;
        if !is_open || theirs != state && theirs != from.utcb.get() {
            return false;
        }
        own.set_word(utcb::LIPC_SP, 0x2000);
        own.set_word(utcb::LIPC_WAIT, if calls { to.utcb.get() } else { state });
        registers(guest).set_word(utcb::SELF, to.utcb.get());
        partner.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
        true
    }

    /// `one` has called `mate`, which runs.
    fn calls(&self, mate: usize) {
        assert!(accept(1).is_some());
        assert!(self.hands_over(self.world.one, self.world.one, self.mates[mate], true));
    }
}

fn sound() {
    assert_eq!(check::violations(), 0);
}

/// Runs a test on a machine of its own.
fn apart(test: impl FnOnce() + Send + 'static) {
    std::thread::spawn(test).join().expect("the test passes");
}

#[test]
fn whoever_runs_there_comes_back_with_the_entry() {
    let talk = Talk::new();
    let one = talk.world.one;
    assert!(rendezvous::is_seated(one));
    talk.calls(0);
    // It has begun to wait while its slice ran here.
    cpu().scheduler.slice_owner.set(Some(talk.mates[0]));
    enter(1, PAGE_FAULT);
    comers::look();
    assert!(cpu().scheduler.slice_owner.get().is_none(), "it comes back with one of its own");
    assert!(talk.mates[0].is_ready() && talk.mates[0].resume.get() == Resume::Entered);
    assert!(rendezvous::is_published_there(one));
    assert_eq!(registers(one).word(utcb::LIPC_WAIT), talk.mates[0].utcb.get());
    assert_eq!(registers(one).word(utcb::SELF), one.utcb.get());
    sound();
    // Asked for, it waits for the one it has called.
    assert_eq!(wait::state(one), State::Waits(talk.mates[0].id.get()));
    assert!(!rendezvous::is_public(one));
    sound();
}

#[test]
fn the_middle_of_a_chain_waits_for_its_end() {
    let talk = Talk::new();
    let ([first, second], one) = (talk.mates, talk.world.one);
    talk.calls(0);
    assert!(talk.hands_over(one, first, second, true));
    enter(1, INTERRUPT);
    comers::look();
    // The last one is offered again, and answers back along the chain.
    assert!(rendezvous::is_seated(second));
    assert!(rendezvous::is_published_there(one) && rendezvous::is_published_there(first));
    sound();
    assert!(accept(1).is_some());
    assert!(talk.hands_over(second, second, first, false));
    assert!(talk.hands_over(second, first, one, false));
    enter(1, PAGE_FAULT);
    comers::look();
    assert!(one.is_ready() && one.resume.get() == Resume::Entered);
    assert_eq!([wait::state(first), wait::state(second)], [State::Waits(ThreadId::ANY); 2]);
    sound();
}

/// Whoever asks for one of them has all of them.
#[test]
fn a_question_finds_out_who_runs() {
    for asked in 0..3 {
        for far in 0..3 {
            apart(move || {
                let talk = Talk::new();
                match far {
                    0 => {}
                    1 => assert!(accept(1).is_some()),
                    _ => talk.calls(0),
                }
                let thread = [talk.world.one, talk.mates[0], talk.mates[1]][asked];
                let runs = if far < 2 { 0 } else { 1 };
                let waits = wait::waits(thread);
                let expected = if asked == runs { Busy::Ready } else { Busy::Waiting };
                assert_eq!(waits, Waits::Busy(expected));
                assert!(cpu().guests.is_empty());
                sound();
                talk.go();
            });
        }
    }
}

#[test]
fn each_of_them_dies() {
    for which in 0..3 {
        for far in 0..3 {
            apart(move || {
                let talk = Talk::new();
                match far {
                    0 => {}
                    1 => assert!(accept(1).is_some()),
                    _ => talk.calls(0),
                }
                let threads = [talk.world.one, talk.mates[0], talk.mates[1]];
                let _ = kernel::control::lifecycle::delete(threads[which]);
                sound();
                talk.go();
                for (place, thread) in threads.into_iter().enumerate() {
                    if place != which {
                        let _ = wait::waits(thread);
                    }
                }
                sound();
            });
        }
    }
}

/// Whoever moves takes no part any more, and nobody waits for it in public who could be met by it elsewhere.
#[test]
fn each_of_them_moves() {
    for which in 0..3 {
        for to in [0, 2] {
            apart(move || {
                let talk = Talk::new();
                talk.calls(0);
                let mover = [talk.world.one, talk.mates[0], talk.mates[1]][which];
                place(&talk.world, mover, to);
                assert!(!mover.is_armed() && !rendezvous::is_public(mover));
                assert_eq!(rendezvous::is_public(talk.world.one), which == 2);
                sound();
                talk.go();
                assert_eq!(u64::from(mover.processor.get()), to);
            });
        }
    }
}

#[test]
fn who_is_halted_does_not_run() {
    for which in 0..3 {
        apart(move || {
            use abi::syscall::exregs;
            let talk = Talk::new();
            talk.calls(0);
            let thread = [talk.world.one, talk.mates[0], talk.mates[1]][which];
            let control = exregs::HALT | exregs::HALT_VALID;
            let registers = Registers { control, ..Default::default() };
            let asked = exchange_registers(talk.world.root, thread.id.get(), &registers);
            assert!(asked.is_some() && !rendezvous::is_public(thread));
            sound();
            talk.go();
            assert!(thread.halted.get() && !thread.is_ready());
        });
    }
}

/// A word that names somebody who can't be woken there is not believed.
#[test]
fn lies_are_not_believed() {
    let lies: [fn(&Talk) -> ThreadId; 6] = [
        |talk| {
            talk.mates[0].halted.set(true);
            let _ = wait::waits(talk.mates[0]);
            ThreadId(talk.mates[0].utcb.get())
        },
        |talk| {
            place(&talk.world, talk.mates[0], 0);
            ThreadId(talk.mates[0].utcb.get())
        },
        |talk| {
            place(&talk.world, talk.mates[0], 2);
            ThreadId(talk.mates[0].utcb.get())
        },
        |talk| talk.world.root.id.get(),
        |_| ThreadId(64),
        |_| ThreadId(!0),
    ];
    for lie in lies {
        apart(move || {
            let talk = Talk::new();
            let name = lie(&talk);
            let before = rendezvous::peek(talk.mates[0]);
            talk.go();
            assert!(rendezvous::is_seated(talk.world.one) && accept(1).is_some());
            registers(talk.world.one).set_word(utcb::SELF, name.0);
            enter(1, PAGE_FAULT);
            comers::look();
            assert!(talk.world.one.is_ready());
            assert_eq!(rendezvous::peek(talk.mates[0]), before);
            assert_eq!(registers(talk.world.one).word(utcb::SELF), talk.world.one.utcb.get());
            sound();
            talk.mates[0].unhalt();
        });
    }
}

/// Whoever would be passed over by one of them keeps them from handing over.
#[test]
fn nobody_more_urgent_is_passed_over() {
    let talk = Talk::new();
    assert!(accept(1).is_some());
    cpu().scheduler.ready.remove(talk.mates[1]);
    talk.mates[1].priority.set(50);
    // Somebody more urgent than the least of them wants the processor.
    make_ready(talk.world.two);
    place(&talk.world, talk.world.two, 1);
    comers::look();
    assert!(!rendezvous::is_seated(talk.world.one) && talk.world.one.is_away());
    sound();
    let _ = accept(1);
    let one = talk.world.one;
    assert!(!talk.hands_over(one, one, talk.mates[0], true), "it hands over");
    talk.mates[1].priority.set(one.priority.get());
}

/// Whoever is asked for all the time is taken for one who does not hide for a while.
#[test]
fn who_is_asked_for_all_the_time_does_not_hide() {
    let talk = Talk::new();
    let asks = (0..20).take_while(|_| {
        let hides = rendezvous::is_seated(talk.world.one);
        let _ = wait::waits(talk.world.one);
        comers::look();
        hides
    });
    assert!(asks.count() < 10);
    assert!(talk.world.one.is_away());
    sound();
}

/// A wait for somebody of another processor is none that could be ended in user mode.
#[test]
fn nobody_waits_in_public_for_somebody_elsewhere() {
    let talk = Talk::new();
    let (one, mate) = (talk.world.one, talk.mates[0]);
    place(&talk.world, mate, 2);
    elsewhere::recall(one);
    one.resume.set(Resume::Ipc);
    one.partner.set(mate.id.get());
    rendezvous::set_busy(one, Busy::Waiting);
    cpu().scheduler.ready.remove(one);
    wait::seal(one);
    assert!(one.is_armed() && !rendezvous::is_public(one));
    sound();
}
