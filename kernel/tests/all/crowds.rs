//! Many threads live on other processors, and come back as fast as they go: what a handler waits for here, and
//! everybody else.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::clan::{World, asks, rank};
use crate::common::exit::{later, leave};
use crate::common::tasks::{self, make};
use abi::{ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::control::schedule;
use kernel::elsewhere;
use kernel::elsewhere::visits::{accept, berth, enter, other, set_processors};
use kernel::irq::{self, comers};
use kernel::mem::quiesce::quiet;
use kernel::sched::leaving::{LINE, Owes};
use kernel::sched::{self, make_ready};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, own, set_current};

/// The vector of a page fault.
const PAGE_FAULT: u64 = 14;
const PROCESSORS: u32 = 8;
/// How many live elsewhere.
const CROWD: u32 = 42;
/// Priorities: of those, of whoever computes here, and of a handler.
const LOW: u8 = 100;
const MIDDLE: u8 = 150;
const HIGH: u8 = 200;

/// A machine of several processors, on the first of which the root task's thread computes, and a handler of the quiet line
/// waits.
struct Place {
    world: World,
    crowd: Vec<TcbRef>,
}

impl Place {
    /// All of the crowd are ready and wait for their processors, or are there.
    fn new() -> Self {
        let world = World::new();
        set_processors(PROCESSORS);
        own::make_interrupts();
        set_current(world.root);
        make_ready(world.root);
        rank(world.root, MIDDLE);
        let handler = world.two;
        rank(handler, HIGH);
        let line = ThreadId::irq(tasks::QUIET_LINE);
        irq::attach(world.root.space().expect("it has one"), line, handler.id.get())
            .expect("it may");
        sched::requeue(world.root);
        let _ = tasks::ipc(handler, ThreadId::NIL, line);
        let _ = tasks::ipc(world.one, ThreadId::NIL, world.root.id.get());
        set_current(world.root);
        let mut place = Self { world, crowd: Vec::new() };
        place.crowd = (0..CROWD).map(|index| place.one_more(index)).collect();
        comers::look();
        cpu().pending_lines.set(0);
        sched::grant_slice(place.world.root);
        place
    }

    fn one_more(&self, index: u32) -> TcbRef {
        let space = self.world.spaces[1 - index as usize % 2];
        let thread = make(ThreadId::global(920 + index, 1), space, 3 + index, ThreadId::NIL);
        thread.scheduler.set(self.world.root.id.get());
        thread.priority.set(LOW);
        make_ready(thread);
        let processor = 1 + u64::from(index % (PROCESSORS - 1));
        let change = schedule::Change { processor, ..asks(thread) };
        let _ = schedule::schedule(self.world.root, &change).expect("the root task may");
        comers::look();
        thread
    }

    /// How many have come back with entries that they have not made yet.
    fn back(&self) -> usize {
        self.crowd.iter().filter(|thread| thread.resume.get() == Resume::Entered).count()
    }

    fn handler(&self) -> TcbRef {
        self.world.two
    }
}

/// What happens in windows from now on: whoever is offered a processor comes there, and is back at once with a fault; and in
/// window `interrupts` a device interrupts. Returns the number of windows so far.
fn all_come_back(interrupts: u32) -> Rc<Cell<u32>> {
    let windows = Rc::new(Cell::new(0));
    let count = Rc::clone(&windows);
    cpu().in_windows.replace(Some(Box::new(move || {
        count.set(count.get() + 1);
        let lines = &cpu().pending_lines;
        for number in 1..PROCESSORS {
            if berth(number).is_offered() && accept(number).is_some() {
                enter(number, PAGE_FAULT);
                lines.set(lines.get() | 1 << LINE);
            }
        }
        if count.get() == interrupts {
            lines.set(lines.get() | 1 << tasks::QUIET_LINE);
        }
    })));
    windows
}

/// The play ends in the middle of an entry: nothing is checked.
fn over(place: Place) {
    cpu().in_windows.take();
    std::mem::forget(place);
}

#[test]
fn somebody_runs_before_a_crowd_has_come_back() {
    let place = Place::new();
    let _ = all_come_back(0);
    cpu().pending_lines.set(1 << LINE);
    assert!(leave(place.world.root) == place.world.root, "it is more urgent than all of them");
    // Four looks, in each of which one of each processor may come back.
    let most = 4 * (PROCESSORS as usize - 1);
    assert!(place.back() <= most, "{} have come back before it runs", place.back());
    assert!(place.back() < CROWD as usize);
    assert!(cpu().scheduler.owes.get() == Owes::Look && cpu().pending_lines.get() == 0);
    // The others are not forgotten: the next tick looks at them.
    let before = place.back();
    let _ = leave(irq::interrupt(place.world.root, 0));
    assert!(place.back() > before, "{before} had come back");
    over(place);
}

#[test]
fn a_handler_does_not_wait_for_a_crowd() {
    // Without a crowd that keeps the kernel: what is left of the window in which it is noted.
    for interrupts in 1..20 {
        let place = Place::new();
        let windows = all_come_back(interrupts);
        cpu().pending_lines.set(1 << LINE);
        let next = leave(place.world.root);
        if windows.get() >= interrupts {
            assert!(next == place.handler(), "window {interrupts}");
            // Somebody may have been on the way with several windows, those of a seat and a party.
            let waited = windows.get() - interrupts;
            assert!(waited <= 6, "{waited} windows behind that of its interrupt, {interrupts}");
        }
        over(place);
    }
}

#[test]
fn those_who_only_leave_do_not_keep_a_handler_either() {
    let place = Place::new();
    // They are ready here, above whoever runs, and nobody remembers that they want to leave.
    for thread in &place.crowd {
        elsewhere::recall(*thread);
        thread.resume.set(Resume::Frame);
        rank(*thread, MIDDLE + 1);
        make_ready(*thread);
    }
    cpu().scheduler.leaving.clear();
    cpu().pending_lines.set(0);
    let windows = all_come_back(3);
    sched::requeue(place.world.root);
    let next = leave(sched::pick());
    assert!(windows.get() >= 3 && next == place.handler());
    assert!(windows.get() <= 9, "{} windows", windows.get());
    over(place);
}

/// Who has not been looked at when an interrupt came is looked at later.
#[test]
fn who_would_leave_behind_an_interrupt_leaves_later() {
    let place = Place::new();
    let some = &place.crowd[..8];
    for thread in some {
        elsewhere::recall(*thread);
        rank(*thread, LOW);
        make_ready(*thread);
    }
    let windows = all_come_back(1);
    comers::look();
    assert_eq!(windows.get(), 1);
    let here = some.iter().filter(|thread| !thread.is_away()).count();
    assert_eq!(here, some.len() - 1);
    let next = leave(place.world.root);
    assert!(next == place.handler());
    let next = tasks::ipc(next, ThreadId::NIL, ThreadId::irq(tasks::QUIET_LINE));
    let next = leave(next);
    let _ = leave(irq::interrupt(next, 0));
    assert!(some.iter().all(|thread| !thread.is_ready() || thread.resume.get() == Resume::Entered));
    over(place);
}

/// Whoever stands still goes on, though the look is put off.
#[test]
fn nobody_stands_still_for_who_goes_first() {
    let place = Place::new();
    let there = (1..PROCESSORS).find_map(accept).expect("somebody is offered a processor");
    let space = there.space().expect("it has one");
    quiet(space);
    assert!(!cpu().scheduler.stopped.is_empty());
    cpu().pending_lines.set(1 << LINE | 1 << tasks::QUIET_LINE);
    assert!(leave(place.world.root) == place.handler());
    assert!(cpu().scheduler.owes.get() == Owes::Look);
    assert!(cpu().scheduler.stopped.is_empty() && cpu().scheduler.quiet.get().is_none());
    over(place);
}

/// What a tick does for others is done when who goes first has run; and by the second tick at the latest.
#[test]
fn who_goes_first_puts_off_one_tick_at_most() {
    for blocks in [true, false] {
        let place = Place::new();
        // Like them.
        rank(place.world.root, LOW);
        sched::requeue(place.world.root);
        let guests: Vec<TcbRef> = (1..PROCESSORS).filter_map(accept).collect();
        assert_eq!(guests.len(), PROCESSORS as usize - 1);
        guests.iter().for_each(|guest| guest.slice_left_us.set(0));
        let rivals = || (1..PROCESSORS).filter_map(other).filter_map(|other| other.guest());
        sleeps(place.handler());
        later(10_000);
        let next = leave(irq::interrupt(place.world.root, 0));
        assert!(next == place.handler(), "its time has come");
        assert!(rivals().eq(guests.iter().copied()), "nobody's slice has been looked at");
        if blocks {
            let next = tasks::ipc(next, ThreadId::NIL, ThreadId::irq(tasks::QUIET_LINE));
            assert!(leave(next) == place.world.root);
        } else {
            // Somebody else would go first, too.
            let other = place.world.one;
            make_ready(other);
            rank(other, HIGH + 1);
            sleeps(other);
            later(10_000);
            assert!(leave(irq::interrupt(next, 0)) == other);
        }
        assert!(rivals().all(|rival| !guests.contains(&rival)), "blocks: {blocks}");
        assert!(cpu().scheduler.owes.get() == Owes::Nothing);
        over(place);
    }
}

/// Whom a tick wakes, and who lives elsewhere, however urgent, goes there by the look, which is not put off for it.
#[test]
fn who_would_leave_is_not_who_goes_first() {
    let place = Place::new();
    let sleeper = place.crowd[0];
    elsewhere::recall(sleeper);
    rank(sleeper, HIGH);
    sleeps(sleeper);
    later(10_000);
    assert!(leave(irq::interrupt(place.world.root, 0)) == place.world.root);
    assert!(sleeper.is_away() && accept(1) == Some(sleeper));
    assert!(cpu().scheduler.owes.get() == Owes::Nothing);
    over(place);
}

/// `thread` waits for a time that comes soon.
fn sleeps(thread: TcbRef) {
    let running = current();
    sched::requeue(running);
    make_ready(thread);
    set_current(thread);
    let nobody = ThreadId::irq(tasks::QUIET_LINE);
    let timeouts = Timeouts::new(abi::Time::NEVER, abi::Time::micros(5_000));
    let _ = kernel::ipc::syscall::ipc(thread, ThreadId::NIL, nobody, timeouts.0);
    set_current(running);
}
