//! Who comes back from another processor while the first one has something to do, and is only noted.

use crate::common::clan::{World, asks, rank};
use crate::common::exit::leave;
use crate::common::tasks::make;
use abi::{ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::control::schedule;
use kernel::elsewhere;
use kernel::elsewhere::visits::{accept, enter, set_processors};
use kernel::ipc::syscall::ipc;
use kernel::irq::{comers, watch};
use kernel::mem::quiesce::quiet;
use kernel::resume;
use kernel::sched::{self, leaving, make_ready};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, set_current};

/// The vector of a page fault.
const PAGE_FAULT: u64 = 14;

/// `thread` computes on processor `number`.
fn computes(world: &World, thread: TcbRef, number: u32) {
    make_ready(thread);
    let change = schedule::Change { processor: number.into(), ..asks(thread) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    comers::look();
    assert!(accept(number).is_some());
}

/// Three processors, on the first of which the root task's thread computes.
fn world() -> World {
    let world = World::new();
    set_processors(3);
    set_current(world.root);
    make_ready(world.root);
    world
}

/// Whether somebody with something left of its slice runs at once, who comes back before another one has made its
/// entry: `noted` in the window before that, or after it.
fn runs_at_once(noted: bool) -> bool {
    let world = world();
    computes(&world, world.one, 1);
    computes(&world, world.two, 2);
    cpu().pending_lines.set(0);
    sched::grant_slice(world.root);
    enter(1, PAGE_FAULT);
    let first = leave(watch::interrupted(world.root));
    assert!(first == world.one && first.resume.get() == Resume::Entered, "before its like");
    enter(2, PAGE_FAULT);
    cpu().interrupt.set(noted.then_some((0, leaving::LINE)));
    let next = resume::resume(first, |thread| {
        thread.resume.set(Resume::Ipc);
        ipc(thread, ThreadId::NIL, world.root.id.get(), Timeouts::NEVER.0)
    });
    assert!(next == world.root);
    assert_eq!(cpu().pending_lines.get() != 0, noted);
    let next = leave(next);
    let next = if noted { next } else { leave(watch::interrupted(next)) };
    let is_two = next == world.two;
    // The play ends in the middle of an entry: nothing is checked.
    std::mem::forget(world);
    is_two
}

#[test]
fn who_is_noted_as_back_comes_before_its_like() {
    for noted in [false, true] {
        let ran = std::thread::spawn(move || runs_at_once(noted)).join();
        assert!(ran.expect("nothing fails"), "noted: {noted}");
    }
}

#[test]
fn who_came_back_while_others_stood_still_is_not_forgotten() {
    let world = world();
    let three = make(ThreadId::global(903, 1), world.spaces[0], 3, ThreadId::NIL);
    three.scheduler.set(world.root.id.get());
    computes(&world, world.one, 1);
    computes(&world, three, 2);
    cpu().pending_lines.set(0);
    rank(world.root, 50);
    sched::grant_slice(world.root);
    // It is more urgent, and its interrupt comes in the window behind it.
    enter(1, PAGE_FAULT);
    cpu().interrupt.set(Some((0, leaving::LINE)));
    quiet(world.spaces[0]);
    assert!(world.one.resume.get() == Resume::Entered && world.one.is_ready());
    assert!(!elsewhere::lets_all_go_on());
    assert!(leave(world.root) == world.one);
}
