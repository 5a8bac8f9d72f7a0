//! Who has waited long goes first where many compute (`docs/decisions/0134`).

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::machine::{Share, Urgency};
use unix::thread::Thread;

use crate::common::World;

const MS: u64 = 1_000_000;
/// Turns in front of all others.
const FIRST: Option<Share> = Some(Share { urgency: Urgency::Boosted, ticks: 2 });
/// As all others.
const ORDINARY: Option<Share> = Some(Share { urgency: Urgency::Ordinary, ticks: 10 });

/// A world in which process 1 and so many children of it compute.
fn crowd(children: usize) -> World {
    let world = World::new();
    (0..children).for_each(|_| drop(world.fork(&world.first)));
    world
}

fn share(world: &World, thread: &Rc<Thread>) -> Option<Share> {
    world.machine.with(thread.machine.get(), |thread| thread.share)
}

/// `thread` sleeps for so long, and goes on.
fn sleep(world: &World, thread: &Rc<Thread>, ms: u64) {
    looks(world);
    let time = world.words(thread, &[0, ms * MS]);
    world.waits(thread, l::__NR_nanosleep, &[time, 0]);
    world.advance(ms * MS);
    assert_eq!(world.next_reply(thread), Some(0));
    looks(world);
}

/// As the server does before it works on an event.
fn looks(world: &World) {
    world.unix.processors.look(world.machine.now_ns.get());
}

fn runs(world: &World, thread: &Rc<Thread>, ms: u64) {
    world.machine.with(thread.machine.get(), |thread| thread.user_ns += ms * MS);
}

#[test]
fn who_has_waited_long_goes_first_until_it_has_run() {
    let world = crowd(10);
    let sleeper = world.fork(&world.first);
    sleep(&world, &sleeper, 100);
    assert_eq!(share(&world, &sleeper), FIRST);
    runs(&world, &sleeper, 49);
    world.advance(10 * MS);
    assert_eq!(share(&world, &sleeper), FIRST);
    runs(&world, &sleeper, 1);
    world.advance(10 * MS);
    assert_eq!(share(&world, &sleeper), ORDINARY);
    // Nobody is looked at any more; a short wait earns nothing.
    let alarms = world.machine.alarms.get();
    world.advance(1000 * MS);
    assert_eq!(world.machine.alarms.get(), alarms);
    sleep(&world, &sleeper, 99);
    assert_eq!(share(&world, &sleeper), ORDINARY);
}

#[test]
fn where_few_compute_all_are_alike() {
    let world = crowd(3);
    let sleeper = world.fork(&world.first);
    sleep(&world, &sleeper, 500);
    assert_eq!(share(&world, &sleeper), None);
}

/// So a shell's command is done before the others have had their turns.
#[test]
fn children_share_what_their_parent_has() {
    let world = crowd(10);
    let shell = world.fork(&world.first);
    sleep(&world, &shell, 200);
    runs(&world, &shell, 10);
    let child = world.fork(&shell);
    assert_eq!(share(&world, &child), FIRST);
    runs(&world, &child, 20);
    world.advance(10 * MS);
    assert_eq!([share(&world, &shell), share(&world, &child)], [FIRST, ORDINARY]);
    // What a child leaves is its parent's again.
    let other = world.fork(&shell);
    world.call(&other, l::__NR_exit_group, &[0]);
    runs(&world, &shell, 19);
    world.advance(10 * MS);
    assert_eq!(share(&world, &shell), FIRST);
    runs(&world, &shell, 1);
    world.advance(10 * MS);
    assert_eq!(share(&world, &shell), ORDINARY);
}

/// However many sleep and wake.
#[test]
fn those_who_go_first_have_half_of_the_time_at_most() {
    let world = crowd(10);
    let sleeper = world.fork(&world.first);
    sleep(&world, &sleeper, 200);
    let mut first = 0;
    for _ in 0..40 {
        first += usize::from(share(&world, &sleeper) == FIRST);
        world.advance(10 * MS);
    }
    assert_eq!(first, 20);
}

#[test]
fn who_waits_keeps_its_credit_and_its_place_is_free() {
    let world = crowd(10);
    let sleeper = world.fork(&world.first);
    sleep(&world, &sleeper, 200);
    runs(&world, &sleeper, 30);
    sleep(&world, &sleeper, 20);
    assert_eq!(share(&world, &sleeper), FIRST);
    runs(&world, &sleeper, 20);
    world.advance(10 * MS);
    assert_eq!(share(&world, &sleeper), ORDINARY);
}

/// A nice value comes before it, and the background is not left for it.
#[test]
fn a_nice_value_is_kept() {
    let world = crowd(10);
    let sleeper = world.fork(&world.first);
    let set_nice = |nice| world.ok(&sleeper, l::__NR_setpriority, &[0, 0, nice]);
    sleep(&world, &sleeper, 200);
    set_nice(1);
    assert_eq!(share(&world, &sleeper), Some(Share { urgency: Urgency::Ordinary, ticks: 8 }));
    sleep(&world, &sleeper, 200);
    assert_eq!(share(&world, &sleeper), FIRST);
    set_nice(19);
    let background = Some(Share { urgency: Urgency::Background, ticks: 1 });
    assert_eq!(share(&world, &sleeper), background);
    sleep(&world, &sleeper, 200);
    assert_ne!(share(&world, &sleeper), FIRST);
}
