//! The flag X of a message's tag: whether it came from another processor, on every way that a message takes
//! through the kernel (`exchanges.rs` has the one on which the sender does not run here).

use crate::common::clan::{World, asks};
use abi::{Acceptor, MapItem, MsgTag, ThreadId, Timeouts, utcb};
use kernel::check;
use kernel::control::schedule;
use kernel::elsewhere::visits::set_processors;
use kernel::ipc::kernel_message;
use kernel::ipc::syscall::ipc;
use kernel::thread::{TcbRef, set_current};
use kernel::usermem::Utcb;

/// What is said; flags that an earlier message had are nobody's.
const TAG: MsgTag = MsgTag::new(7, 2, 0);
const STALE: u64 = MsgTag::XCPU | MsgTag::REDIRECTED;

/// A world of three processors, with `one` and `two` on these.
fn world(one: u64, two: u64) -> World {
    let world = World::new();
    set_processors(3);
    for (thread, processor) in [(world.one, one), (world.two, two)] {
        let change = schedule::Change { processor, ..asks(thread) };
        let _ = schedule::schedule(world.root, &change).expect("the root task may");
    }
    world
}

fn own(thread: TcbRef) -> Utcb {
    Utcb::of(thread).expect("it has one")
}

/// `thread` runs here and makes an IPC.
fn runs(thread: TcbRef, to: ThreadId, from: ThreadId) {
    set_current(thread);
    let _ = ipc(thread, to, from, Timeouts::NEVER.0);
}

fn waits(thread: TcbRef) {
    runs(thread, ThreadId::NIL, ThreadId::ANY);
}

fn sends(thread: TcbRef, to: TcbRef, tag: MsgTag) {
    own(thread).set_mr(0, tag.0 | STALE);
    runs(thread, to.id.get(), ThreadId::NIL);
}

/// The flags that `thread` sees.
fn flags(thread: TcbRef) -> u64 {
    assert_eq!(check::violations(), 0);
    own(thread).mr(0) & 0xF000
}

/// Where sender and receiver are, and what the receiver is told.
const CASES: [(u64, u64, u64); 6] = [
    (0, 0, 0),
    (1, 0, MsgTag::XCPU),
    (0, 1, MsgTag::XCPU),
    (1, 2, MsgTag::XCPU),
    (1, 1, 0),
    (2, 2, 0),
];

/// Runs `test` for each case on a machine of its own.
fn each(test: fn(&World, u64)) {
    for (one, two, flags) in CASES {
        let case = move || test(&world(one, two), flags);
        std::thread::spawn(case).join().unwrap_or_else(|_| panic!("{one} to {two}"));
    }
}

#[test]
fn who_waits_is_told_where_a_message_came_from() {
    each(|world, expected| {
        waits(world.two);
        sends(world.one, world.two, TAG);
        assert_eq!(flags(world.two), expected);
        assert_eq!(own(world.one).mr(0), TAG.0 | STALE, "a sender's own tag stays");
    });
}

#[test]
fn who_takes_a_message_that_waited_is_told_too() {
    each(|world, expected| {
        sends(world.one, world.two, TAG);
        waits(world.two);
        assert_eq!(flags(world.two), expected);
    });
}

/// An answer is a message like any other.
#[test]
fn who_calls_is_told_of_the_answer() {
    each(|world, expected| {
        waits(world.two);
        own(world.one).set_mr(0, TAG.0);
        runs(world.one, world.two.id.get(), world.two.id.get());
        sends(world.two, world.one, TAG);
        assert_eq!(flags(world.one), expected);
    });
}

/// With items, and where one of them finds no window.
#[test]
fn a_message_that_breaks_off_tells_it_as_well() {
    each(|world, expected| {
        waits(world.two);
        own(world.two).set_word(utcb::BR0, Acceptor(0).0);
        let item = MapItem::map(abi::Fpage::memory(0x1000, 12, abi::Rights::R), 0).words();
        (3..).zip(item).for_each(|(index, word)| own(world.one).set_mr(index, word));
        sends(world.one, world.two, MsgTag::new(7, 2, 2));
        assert_eq!(flags(world.two), expected | MsgTag::ERROR);
        assert_eq!(own(world.one).mr(0) & 0xF000, MsgTag::ERROR | STALE, "the sender's tag");
    });
}

#[test]
fn a_message_in_anothers_name_says_where_its_sender_is() {
    each(|world, expected| {
        // The receiver's own name: two of one task may stand for each other.
        let space = world.one.space.replace(world.two.space());
        own(world.one).set_word(utcb::VIRTUAL_SENDER, world.two.id.get().0);
        // The second one is in its own name.
        let seen = [MsgTag::PROPAGATED, 0].map(|flag| {
            waits(world.two);
            sends(world.one, world.two, TAG.with(flag));
            own(world.two).mr(0) & 0xF000
        });
        world.one.space.set(space);
        assert_eq!(seen, [expected | MsgTag::PROPAGATED, expected]);
        assert_eq!(flags(world.two), expected);
    });
}

/// The tags of the kernel's protocols have no flags (X.2 6).
#[test]
fn a_message_that_the_kernel_makes_has_no_flags() {
    each(|world, _| {
        waits(world.two);
        own(world.one).set_word(utcb::PAGER, world.two.id.get().0);
        set_current(world.one);
        let _ = kernel_message::page_fault(world.one, 0x5000, abi::Rights::R, 0x2000);
        assert_eq!(own(world.two).mr(1), 0x5000, "it has arrived");
        assert_eq!(flags(world.two), 0);
    });
}

/// Who is halted is looked at twice, too.
#[test]
fn who_is_halted_here_is_told_nothing() {
    let world = world(0, 0);
    waits(world.two);
    world.two.halt();
    kernel::ipc::wait::wait_for_the_complete_path(world.two);
    sends(world.one, world.two, TAG);
    assert_eq!(flags(world.two), 0);
}

/// Who moves sends from where it is then.
#[test]
fn who_comes_home_is_no_stranger() {
    let world = world(1, 0);
    let change = schedule::Change { processor: 0, ..asks(world.one) };
    let _ = schedule::schedule(world.root, &change).expect("the root task may");
    waits(world.two);
    sends(world.one, world.two, TAG);
    assert_eq!(flags(world.two), 0);
}
