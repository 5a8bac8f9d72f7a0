//! Who goes first, and who goes at once, where looks at other processors are put off: plays that found what was wrong with it.

mod play;

use std::cell::Cell;
use std::rc::Rc;

use crate::common::apart;
use crate::common::clan::rank;
use crate::common::exit::later;
use crate::common::tasks;
use abi::{ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::elsewhere::visits::{accept, berth, enter};
use kernel::irq::{self, ahead, comers};
use kernel::sched::leaving::LINE;
use kernel::sched::{self, make_ready};
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, set_current};
use play::*;

#[test]
fn who_wakes_and_lives_elsewhere_goes_in_the_same_tick() {
    for idles in [false, true] {
        apart(|| {
            let world = world(3);
            rank(world.one, HIGH);
            lives(&world, world.one, 1);
            sleeps(world.one);
            clean();
            if idles {
                is_gone(world.root);
                set_current(cpu().scheduler.idle.get().expect("there is one"));
            }
            later(10_000);
            let _ = leave(irq::interrupt(current(), 0));
            assert!(berth(1).is_offered(), "idles: {idles}");
            over(world);
        });
    }
}

#[test]
fn a_handler_that_lives_elsewhere_goes_by_the_look() {
    let world = world(3);
    lives(&world, world.one, 1);
    handles(&world, world.one, HIGH);
    clean();
    cpu().pending_lines.set(1 << LINE | DEVICE);
    let _ = leave(current());
    assert!(berth(1).is_offered());
    over(world);
}

/// The short way back of who has its answer passes over nothing that is owed.
#[test]
fn who_goes_back_passes_over_no_look() {
    let world = world(3);
    let (last, handler, client) = (more(&world, 0, LOW), world.two, world.one);
    handles(&world, handler, HIGH);
    rank(client, MIDDLE);
    lives(&world, client, 1);
    waits(client, handler.id.get(), Timeouts::NEVER);
    make_ready(last);
    lives(&world, last, 2);
    is_gone(world.root);
    set_current(last);
    last.resume.set(Resume::Frame);
    clean();
    cpu().pending_lines.set(1 << LINE | DEVICE);
    assert!(leave(last) == handler);
    assert!(last.is_away());
    let next = tasks::ipc(handler, client.id.get(), line());
    assert!(next == client);
    let _ = leave(next);
    assert!(berth(1).is_offered() && berth(2).is_offered());
    over(world);
}

/// A tick wakes two of one priority: nobody is above the other.
#[test]
fn its_like_for_a_free_processor_does_not_wait_for_a_handler() {
    let world = world(3);
    for thread in [world.one, world.two] {
        rank(thread, HIGH);
    }
    lives(&world, world.one, 1);
    sleeps(world.two);
    sleeps(world.one);
    clean();
    later(10_000);
    assert!(leave(irq::interrupt(current(), 0)) == world.two);
    assert!(berth(1).is_offered());
    over(world);
}

/// And if it is less urgent, it waits until the handler has run.
#[test]
fn who_wakes_with_a_handler_goes_when_that_has_run() {
    for idles in [true, false] {
        apart(|| {
            let world = world(3);
            rank(world.two, HIGH);
            rank(world.one, MIDDLE + 10);
            lives(&world, world.one, 1);
            sleeps(world.two);
            sleeps(world.one);
            clean();
            if idles {
                is_gone(world.root);
                set_current(cpu().scheduler.idle.get().expect("there is one"));
            }
            later(10_000);
            assert!(leave(irq::interrupt(current(), 0)) == world.two);
            let _ = leave(tasks::ipc(world.two, ThreadId::NIL, line()));
            assert!(berth(1).is_offered(), "idles: {idles}");
            over(world);
        });
    }
}

/// Nobody remembers that it would leave.
#[test]
fn who_leaves_by_itself_is_no_reason_to_put_a_look_off() {
    let world = world(3);
    let last = more(&world, 0, HIGH);
    rank(world.two, HIGH + 50);
    is_gone(world.root);
    is_gone(world.one);
    make_ready(last);
    lives(&world, last, 2);
    set_current(world.two);
    make_ready(world.two);
    clean();
    ahead::put_off();
    rendezvous::set_busy(world.two, Busy::Halted);
    let _ = leave(sched::blocked(world.two));
    assert!(berth(2).is_offered());
    over(world);
}

/// Threads that are not ready any more may be queued above a handler.
#[test]
fn a_handler_is_found_behind_those_who_have_left_the_queue() {
    for stale in [0, 8, 20] {
        apart(|| {
            let world = world(8);
            handles(&world, world.two, HIGH);
            let guests: Vec<TcbRef> = (0..7).map(|index| more(&world, index, LOW)).collect();
            guests.iter().zip(1..).for_each(|(guest, number)| computes(&world, *guest, number));
            clean();
            for index in 0..stale {
                let stale = more(&world, 7 + index, HIGH + 20);
                make_ready(stale);
                rendezvous::set_busy(stale, Busy::Halted);
            }
            (1..8).for_each(|number| enter(number, PAGE_FAULT));
            cpu().pending_lines.set(1 << LINE | DEVICE);
            assert!(leave(current()) == world.two, "behind {stale}");
            assert_eq!(guests.iter().filter(is_back).count(), 0, "behind {stale}");
            over(world);
        });
    }
}

/// In windows behind a switch, too, as many may come back as live elsewhere.
#[test]
fn somebody_runs_before_all_have_come_back_behind_switches() {
    let world = world(8);
    let crowd: Vec<TcbRef> = (0..42)
        .map(|index| {
            let thread = more(&world, index, MIDDLE);
            make_ready(thread);
            lives(&world, thread, 1 + u64::from(index % 7));
            comers::look();
            thread
        })
        .collect();
    // One has come back, has made its entry, and waits; another one is to run.
    let [first, second] = [1, 2].map(|number| {
        let thread = accept(number).expect("somebody is offered it");
        enter(number, PAGE_FAULT);
        comers::look();
        thread
    });
    waits(first, world.two.id.get(), Timeouts::NEVER);
    clean();
    set_current(first);
    sched::requeue(world.root);
    cpu().in_windows.replace(Some(Box::new(|| {
        for number in (1..8).filter(|_| IS_BEHIND.get()) {
            if berth(number).is_offered() && accept(number).is_some() {
                enter(number, PAGE_FAULT);
                cpu().pending_lines.set(cpu().pending_lines.get() | 1 << LINE);
            }
        }
    })));
    sched::grant_slice(second);
    let _ = leave(second);
    let back = crowd.iter().filter(is_back).count();
    assert!(back <= 4 * 7, "{back} of {} are back", crowd.len());
    over(world);
}

/// Whoever delays its preemption runs on, and no look waits for that.
#[test]
fn nothing_is_put_off_for_who_has_to_wait() {
    let world = world(3);
    handles(&world, world.two, HIGH);
    rank(world.one, LOW);
    computes(&world, world.one, 1);
    clean();
    world.root.sensitive_priority.set(255);
    world.root.max_delay_us.set(5_000);
    let utcb = tasks::registers(world.root);
    utcb.set_flags(utcb.flags() | abi::utcb::PREEMPT_DELAY);
    enter(1, PAGE_FAULT);
    cpu().pending_lines.set(1 << LINE | DEVICE);
    assert!(leave(world.root) == world.root);
    assert!(is_back(&&world.one));
    over(world);
}

/// The current thread, which lives elsewhere, is picked behind one who is sent away when a handler's interrupt comes.
#[test]
fn a_handler_waits_for_nobody_behind_one_who_leaves() {
    let world = world(8);
    handles(&world, world.two, HIGH + 20);
    let guests: Vec<TcbRef> = (0..5).map(|index| more(&world, index, LOW - 10)).collect();
    guests.iter().zip(3..).for_each(|(guest, number)| computes(&world, *guest, number));
    let (running, leaver) = (world.one, more(&world, 9, HIGH));
    rank(running, LOW);
    lives(&world, running, 1);
    make_ready(leaver);
    lives(&world, leaver, 2);
    set_current(running);
    running.resume.set(Resume::Frame);
    make_ready(running);
    is_gone(world.root);
    clean();
    let windows = Rc::new(Cell::new(0));
    let count = Rc::clone(&windows);
    cpu().in_windows.replace(Some(Box::new(move || {
        count.set(count.get() + 1);
        if count.get() == 1 {
            (3..8).for_each(|number| enter(number, PAGE_FAULT));
            cpu().pending_lines.set(1 << LINE | DEVICE);
        }
    })));
    sched::requeue(running);
    assert!(leave(leaver) == world.two);
    let back = guests.iter().filter(is_back).count();
    assert!(back <= 1, "{back} are back before the handler");
    over(world);
}

/// A crowd comes back all the time; whoever has its turn behind it has it before nobody who is more urgent.
#[test]
fn nobody_has_a_turn_before_who_is_more_urgent_and_back() {
    for comes in 1..60 {
        apart(|| {
            let world = world(8);
            let urgent = more(&world, 0, HIGH);
            computes(&world, urgent, 7);
            for index in 1..42 {
                let thread = more(&world, index, LOW);
                make_ready(thread);
                lives(&world, thread, 1 + u64::from(index % 6));
                comers::look();
            }
            clean();
            let windows = Cell::new(0);
            cpu().in_windows.replace(Some(Box::new(move || {
                windows.set(windows.get() + 1);
                let lines = &cpu().pending_lines;
                for number in 1..7 {
                    if berth(number).is_offered() && accept(number).is_some() {
                        enter(number, PAGE_FAULT);
                        lines.set(lines.get() | 1 << LINE);
                    }
                }
                if windows.get() == comes {
                    enter(7, PAGE_FAULT);
                    lines.set(lines.get() | 1 << LINE);
                }
            })));
            cpu().pending_lines.set(1 << LINE);
            let next = leave(world.root);
            assert!(next != world.root || !berth(7).has_returned(), "back in window {comes}");
            over(world);
        });
    }
}
