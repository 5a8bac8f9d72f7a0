//! Pages that are granted on while the children of an earlier grant have not all been told, by threads
//! that are deleted: the tree stays whole, and whoever takes the page back takes it from everybody.

use super::{map, page, unmap};
use crate::common::{Machine, RAM, marker};
use abi::{Fpage, MapItem, Rights};
use kernel::mem::{DestroyJob, MapJob, SpaceRef, Step};

/// Where a space has the page after each grant.
const PLACES: [u64; 4] = [RAM, 0x10_0000, 0x20_0000, 0x30_0000];

/// Begins to grant the page at `from` of `src`. In each of the steps that follow when it is there, one child is
/// told.
fn begin((src, from): (SpaceRef, u64), (dst, to): (SpaceRef, u64), steps: u32) -> MapJob {
    let item = MapItem::grant(page(from, 12, Rights::RWX), to);
    let mut job = MapJob::new(src, dst, item, Fpage::COMPLETE, marker());
    while dst.page(to).is_none() {
        assert_eq!(job.step(4), Ok(Step::More), "it comes to the page");
    }
    let _ = (0..steps).find(|_| job.step(4) != Ok(Step::More));
    job
}

/// Grants it, and is deleted after so many steps.
fn give_up(from: (SpaceRef, u64), to: (SpaceRef, u64), steps: u32) {
    begin(from, to, steps).abandon();
}

/// Maps the page at `from` of `src` to eight more places of `dst`.
fn hand_out((src, from): (SpaceRef, u64), dst: SpaceRef, first: u64) {
    for slot in first..first + 8 {
        map(src, dst, from, slot << 12);
    }
}

/// A grant stands among the children that it tells when the page is granted on by one that is given up; then it
/// goes on, and the page is granted a third time.
#[test]
fn a_grant_that_was_overtaken_tells_nothing_that_it_does_not_know() {
    let machine = Machine::new(2, 200, true);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    let when = (0..9).flat_map(|n| (0..10).map(move |m| (n, m)));
    for ((first, second), third) in when.flat_map(|when| [1, 2, 6, 12].map(|n| (when, n))) {
        let at = PLACES.map(|place| (a, place));
        map(sigma0, a, RAM, RAM);
        hand_out(at[0], b, 0);
        let mut job = begin(at[0], at[1], first);
        give_up(at[1], at[2], second);
        assert_eq!(machine.violations(false), [], "{first} and {second} steps");
        job.finish().expect("it can pay");
        hand_out(at[2], b, 8);
        give_up(at[2], at[3], third);
        assert_eq!(machine.violations(false), [], "{first}, {second} and {third} steps");
        for slot in [1, 9, 0, 8, 2] {
            unmap(b, slot << 12, 12, Rights::RWX, true).finish();
            assert_eq!(machine.violations(false), [], "{first}, {second} and {third} steps");
        }
        unmap(sigma0, RAM, 12, Rights::RWX, false).finish();
        assert_eq!((a.nodes(), b.nodes()), (0, 0), "{first}, {second} and {third} steps");
    }
}

/// The same beside the end of a space, which tells the children of what was granted away from there.
#[test]
fn the_end_of_a_space_that_was_overtaken_tells_nothing_that_it_does_not_know() {
    for (first, second) in (0..11).flat_map(|n| [0, 4, 8].map(|m| (n, m))) {
        let run = std::thread::spawn(move || end_beside_grants(first, second));
        assert!(run.join().is_ok(), "{first} and {second} steps");
    }
}

fn end_beside_grants(first: u32, second: u32) {
    let machine = Machine::new(3, 200, true);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    map(sigma0, a, RAM, RAM);
    hand_out((a, RAM), b, 0);
    give_up((a, RAM), (c, RAM), 2);
    let place = marker();
    let mut end = DestroyJob::new(a, place);
    while !place.is_linked() {
        assert_eq!(end.step(4), Step::More, "it comes to what is left of the grant");
    }
    let mut ended = (0..first).any(|_| end.step(4) == Step::Done);
    give_up((c, RAM), (c, 0), second);
    ended = ended || (0..100).any(|_| end.step(40) == Step::Done);
    assert!(ended, "it comes to its end");
    assert_eq!(machine.violations(false), []);
    give_up((c, 0), (c, RAM), 2);
    assert_eq!(machine.violations(false), []);
    unmap(sigma0, RAM, 12, Rights::RWX, false).finish();
    assert_eq!((a.quota().used(), b.nodes(), c.nodes()), (2, 0, 0));
}
