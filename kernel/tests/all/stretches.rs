//! Where users decide how long the kernel works for other processors, it lets interrupts in in between.

use crate::common::clan::{World, asks};
use crate::common::tasks::windows;
use crate::parties::begin;
use abi::ThreadId;
use kernel::control::schedule;
use kernel::irq::comers;
use kernel::resume;
use kernel::thread::rendezvous;
use kernel::thread::set_current;
use kernel::thread::tcb::Resume;

/// As many as live elsewhere may have come back with entries, each of which may end with the next one's.
#[test]
fn who_makes_its_entry_here_lets_interrupts_in_first() {
    let world = World::new();
    set_current(world.one);
    world.one.resume.set(Resume::Entered);
    let taken = windows(|| assert!(resume::resume(world.one, |thread| thread) == world.one));
    assert_eq!(taken, 1);
    world.one.resume.set(Resume::Frame);
}

/// Windows until whoever has become ready for processor 1 is there, alone or with a thread that it has called.
fn windows_to_go(with_company: bool) -> u32 {
    let world = begin(World::new());
    place(&world, 0);
    assert!(!rendezvous::is_seated(world.two), "it waits here");
    if !with_company {
        world.one.partner.set(ThreadId::NIL);
    }
    place(&world, 1);
    let taken = windows(comers::look);
    assert_eq!(rendezvous::is_seated(world.two), with_company);
    taken
}

fn place(world: &World, processor: u64) {
    let change = schedule::Change { processor, ..asks(world.one) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
}

/// Who else comes along is looked for again after each who does.
#[test]
fn who_brings_others_along_lets_interrupts_in_for_each() {
    let [with, without] = [true, false].map(|with| {
        // A thread has one processor, and that one world.
        std::thread::spawn(move || windows_to_go(with)).join().expect("a look succeeds")
    });
    // Two around the zeroing of the frame of the seat, one before anybody has a seat, and one behind who comes along.
    assert_eq!(with, without + 4);
}
