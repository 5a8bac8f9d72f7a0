//! What the plays have in common: a world, whose threads live where, and the way out of the kernel.

use std::cell::Cell;

use crate::common::clan::{World, asks, rank};
use crate::common::exit;
use crate::common::tasks::{self, make};
use abi::{ThreadId, Timeouts};
use kernel::arch::cpu;
use kernel::control::schedule;
use kernel::elsewhere;
use kernel::elsewhere::visits::{accept, set_processors};
use kernel::irq::{self, comers};
use kernel::sched::{self, make_ready};
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, current, own, set_current};

/// The vector of a page fault.
pub const PAGE_FAULT: u64 = 14;
pub const LOW: u8 = 100;
pub const MIDDLE: u8 = 150;
pub const HIGH: u8 = 200;
/// The line of a handler.
pub const DEVICE: u64 = 1 << tasks::QUIET_LINE;

thread_local! {
    /// What is done for other processors behind a switch is under way.
    pub static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// The way out of the kernel, which says what is behind a switch.
pub fn leave(next: TcbRef) -> TcbRef {
    exit::leave_by(next, |before| {
        IS_BEHIND.set(true);
        elsewhere::left(before);
        IS_BEHIND.set(false);
    })
}

pub fn line() -> ThreadId {
    ThreadId::irq(tasks::QUIET_LINE)
}

/// The root task's thread computes on the first of so many processors.
pub fn world(processors: u32) -> World {
    let world = World::new();
    set_processors(processors);
    own::make_interrupts();
    set_current(world.root);
    make_ready(world.root);
    rank(world.root, MIDDLE);
    sched::grant_slice(world.root);
    world
}

pub fn lives(world: &World, thread: TcbRef, processor: u64) {
    let change = schedule::Change { processor, ..asks(thread) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
}

/// `thread` waits here for `from`.
pub fn waits(thread: TcbRef, from: ThreadId, timeouts: Timeouts) {
    let running = current();
    sched::requeue(running);
    make_ready(thread);
    set_current(thread);
    thread.resume.set(Resume::Ipc);
    let _ = kernel::ipc::syscall::ipc(thread, ThreadId::NIL, from, timeouts.0);
    set_current(running);
}

/// It sleeps for a while that is over with the next tick of a test.
pub fn sleeps(thread: TcbRef) {
    waits(thread, line(), Timeouts::new(abi::Time::NEVER, abi::Time::micros(5_000)));
}

/// It is the most urgent of all, and handles the line.
pub fn handles(world: &World, thread: TcbRef, priority: u8) {
    rank(thread, priority);
    let root = world.root.space().expect("it has one");
    irq::attach(root, line(), thread.id.get()).expect("it may");
    waits(thread, line(), Timeouts::NEVER);
}

/// It waits for ever, whoever it is.
pub fn is_gone(thread: TcbRef) {
    rendezvous::set_busy(thread, Busy::Halted);
    cpu().scheduler.ready.remove(thread);
}

/// Nothing is noted, and nobody remembered.
pub fn clean() {
    cpu().scheduler.leaving.clear();
    cpu().pending_lines.set(0);
    cpu().look_first.set(false);
    sched::grant_slice(current());
}

pub fn more(world: &World, index: u32, priority: u8) -> TcbRef {
    let space = world.spaces[1 - index as usize % 2];
    let thread = make(ThreadId::global(920 + index, 1), space, 3 + index, ThreadId::NIL);
    thread.scheduler.set(world.root.id.get());
    rank(thread, priority);
    thread
}

/// `thread` computes on processor `number`.
pub fn computes(world: &World, thread: TcbRef, number: u32) {
    make_ready(thread);
    lives(world, thread, number.into());
    comers::look();
    assert!(accept(number).is_some());
}

pub fn is_back(thread: &&TcbRef) -> bool {
    thread.resume.get() == Resume::Entered
}

/// The play ends in the middle of an entry: nothing is checked.
pub fn over(world: World) {
    cpu().in_windows.take();
    std::mem::forget(world);
}
