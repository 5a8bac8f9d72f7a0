//! Unmaps beside one that is given up, and beside the end of a space.

use super::{map, page, rights, send, steps, unmap};
use crate::common::{Machine, RAM, marker};
use abi::{MapItem, Rights};
use kernel::mem::{DestroyJob, Scope, Step, UnmapJob};

/// Of two flushes of a page one is given up; the page may be handed on in between. The other one takes
/// everything all the same.
#[test]
fn a_flush_beside_one_that_is_given_up_takes_the_page() {
    let machine = Machine::new(3, 200, false);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    let ways = [(12, Rights::RWX), (12, Rights::W), (21, Rights::RWX)];
    for ((bits, taken), before) in ways.into_iter().flat_map(|way| (0..30).map(move |n| (way, n))) {
        send(sigma0, a, MapItem::map(page(RAM, bits, Rights::RWX), RAM));
        for slot in 0..8 {
            map(a, b, RAM, slot << 12);
        }
        let mut first = unmap(a, RAM, bits, taken, true);
        let first_done = steps(&mut first, before);
        let mut second = unmap(a, RAM, bits, Rights::RWX, true);
        let second_done = steps(&mut second, 3);
        if !first_done {
            first.abandon();
        }
        map(a, c, RAM, RAM);
        if !second_done {
            second.finish();
        }
        assert_eq!((a.page(RAM), c.page(RAM)), (None, None), "{taken:?}, {before} steps");
        assert_eq!((a.nodes(), b.nodes(), c.nodes()), (0, 0, 0));
        assert_eq!(machine.violations(false), []);
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
    }
}

/// A page was without its mark while it was handed on, and has that of a third flush when the second one comes back, which
/// may be given up in turn. Whoever had it must not have it when the second one is over.
#[test]
fn a_flush_takes_what_was_handed_on_though_a_third_one_has_marked_the_page() {
    let machine = Machine::new(3, 200, false);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    let when = (0..24).flat_map(|n| [0, 1, 2, 4, 9].map(|more| (n, more)));
    for (bits, (before, more)) in when.flat_map(|when| [12, 21].map(|bits| (bits, when))) {
        send(sigma0, a, MapItem::map(page(RAM, bits, Rights::RWX), RAM));
        for slot in 0..8 {
            map(a, b, RAM, slot << 12);
        }
        let flush = || unmap(a, RAM, bits, Rights::RWX, true);
        let mut first = flush();
        let first_done = steps(&mut first, before);
        let mut second = flush();
        let second_done = steps(&mut second, 3);
        if !first_done {
            first.abandon();
        }
        map(a, c, RAM, RAM);
        let mut third = flush();
        let third_done = steps(&mut third, more);
        if !second_done {
            second.finish();
        }
        let left = (a.page(RAM), c.page(RAM));
        assert_eq!(left, (None, None), "{bits}: {before} and {more} steps");
        if !third_done {
            third.abandon();
        }
        assert_eq!((a.nodes(), b.nodes(), c.nodes()), (0, 0, 0));
        assert_eq!(machine.violations(false), []);
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
    }
}

/// A flush began when nothing was derived from its pages, so it marked none, and stopped: behind the split of a large page,
/// or among the parts of one. Then a part is handed on, and another flush marks that and is given up below it. Whoever had
/// the part must not have it when the first flush is over.
#[test]
fn a_flush_that_has_marked_nothing_takes_what_is_under_the_mark_of_another() {
    let machine = Machine::new(2, 200, false);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    let when = (1..8).flat_map(|n| [4, 20, 40, 60].map(|budget| (n, budget)));
    let parts = [(false, 12, 0), (true, 14, 1), (true, 14, 3)];
    for ((before, budget), (is_split, bits, slot)) in when.flat_map(|n| parts.map(|p| (n, p))) {
        let case = format!("part {slot} of 2^{bits}, {before} steps of {budget}");
        let part = RAM + (slot << 12);
        send(sigma0, a, MapItem::map(page(RAM, 21, Rights::RWX), RAM));
        if is_split {
            unmap(a, RAM + 0x8000, 12, Rights::RWX, true).finish();
        }
        let mut first = unmap(a, RAM, bits, Rights::RWX, true);
        let first_done = (0..before).any(|_| first.step(budget) == Step::Done);
        map(a, b, part, 0);
        let mut other = unmap(a, part, 12, Rights::RWX, true);
        let other_done = steps(&mut other, 1);
        if !first_done {
            first.finish();
        }
        assert_eq!((rights(a, part), rights(b, 0)), (None, None), "{case}");
        if !other_done {
            other.abandon();
        }
        assert_eq!((b.nodes(), machine.violations(false)), (0, vec![]), "{case}");
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
        assert_eq!((a.nodes(), b.nodes()), (0, 0), "{case}");
    }
}

/// Of two flushes of a page one is given up, and the page granted to somebody else, from whom the other one does
/// not take it, though nothing is derived from it any more.
#[test]
fn a_flush_beside_one_that_is_given_up_takes_nothing_from_whom_the_page_was_granted_to() {
    let machine = Machine::new(4, 200, false);
    let [sigma0, a, b, c, d] = machine.spaces[..] else { panic!("five spaces") };
    for (before, bits) in (0..30).flat_map(|n| [(n, 12), (n, 21)]) {
        let whole = page(RAM, bits, Rights::RWX);
        send(sigma0, a, MapItem::map(whole, RAM));
        map(a, b, RAM, 0);
        for slot in 1..9 {
            map(b, c, 0, slot << 12);
        }
        let flush = || unmap(a, RAM, bits, Rights::RWX, true);
        let (mut first, mut second) = (flush(), flush());
        let first_done = steps(&mut first, before);
        if !steps(&mut second, 3) {
            second.abandon();
        }
        send(a, d, MapItem::grant(whole, RAM));
        let granted = rights(d, RAM);
        if !first_done {
            first.finish();
        }
        assert_eq!((rights(a, RAM), rights(d, RAM)), (None, granted), "{bits}: {before} steps");
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
        let left = [a, b, c, d].map(|space| space.nodes());
        assert_eq!((left, machine.violations(false)), ([0; 4], vec![]), "{bits}: {before} steps");
    }
}

/// Two unmaps are below a page when the one that has removed it is given up. The other one takes all that is
/// left below it, and leaves no node without a page.
#[test]
fn an_unmap_leaves_nothing_of_a_page_that_one_that_was_given_up_has_taken() {
    let machine = Machine::new(3, 200, true);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    let place = marker();
    for (before, after) in (0..40).flat_map(|n| (0..20).map(move |m| (n, m))) {
        map(sigma0, a, RAM, RAM);
        map(a, b, RAM, RAM);
        for slot in 0..4 {
            map(b, c, RAM, slot << 12);
            map(c, c, slot << 12, (8 + slot) << 12);
        }
        let own = page(RAM, 12, Rights::RWX);
        let mut first = UnmapJob::new(b, own, Scope::Derived, place);
        let is_below = !steps(&mut first, before) && place.is_linked();
        let mut second = unmap(a, RAM, 12, Rights::RWX, false);
        if !steps(&mut second, after) {
            second.abandon();
        }
        if is_below {
            first.finish();
            let left = u64::from(b.page(RAM).is_some());
            assert_eq!((b.nodes(), c.nodes()), (left, 0), "{before} and {after} steps");
            assert_eq!(machine.violations(false), [], "{before} and {after} steps");
        }
        unmap(sigma0, RAM, 12, Rights::RWX, false).finish();
    }
}

/// A flush of some large parts of a larger page is given up when one of them has been split meanwhile, by
/// another flush of a small part of it. Whatever is left can be handed on as before.
#[test]
fn a_flush_of_parts_that_is_given_up_leaves_no_marks() {
    let when = (0..30).flat_map(|n| [(n, 0), (n, 1), (n, 3)]);
    for ((before, split), after) in when.flat_map(|way| [0, 3, 520].map(|after| (way, after))) {
        let run = std::thread::spawn(move || give_up_parts(before, split << 21, after));
        assert!(
            run.join().is_ok(),
            "part {split:#x} is split after {before} steps, {after} follow"
        );
    }
}

fn give_up_parts(before: u32, split: u64, after: u32) {
    const GIGA: u64 = 1 << 30;
    kernel::mem::enable_huge_pages();
    let machine = Machine::new(3, 1100, false);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    let whole = page(GIGA, 30, Rights::RWX);
    send(sigma0, a, MapItem::map(whole, GIGA));
    for slot in 0..16 {
        map(a, b, GIGA + 0x3000, slot << 12);
        map(a, b, GIGA + 0x60_0000, (16 + slot) << 12);
    }
    let mut first = unmap(a, GIGA, 23, Rights::RWX, true);
    let mut first_done = steps(&mut first, before);
    let mut second = unmap(a, GIGA + split + 0x5000, 12, Rights::RWX, true);
    second.finish();
    first_done = first_done || steps(&mut first, after);
    let mut third = unmap(a, GIGA, 23, Rights::RWX, true);
    let third_done = steps(&mut third, 4);
    if !first_done {
        first.abandon();
    }
    if !third_done {
        third.abandon();
    }
    assert_eq!(machine.violations(false), []);
    for at in (0..4 << 21).step_by(1 << 20).map(|at| GIGA + at) {
        map(a, c, at, at);
        assert_eq!(a.page(at).is_some(), c.page(at).is_some(), "{at:#x}");
    }
    unmap(a, GIGA, 30, Rights::RWX, true).finish();
    assert_eq!((a.nodes(), b.nodes(), c.nodes()), (0, 0, 0));
    assert_eq!(machine.violations(false), []);
}

/// A space ends while somebody else's unmap has passed its page and is at what was derived from that.
#[test]
fn a_space_ends_in_the_middle_of_anothers_unmap() {
    for (before, budget) in (0..24).flat_map(|n| [(n, 20), (n, 60)]) {
        let run = std::thread::spawn(move || end_during(before, budget));
        assert!(run.join().is_ok(), "{before} steps before the end, of {budget} units each");
    }
}

fn end_during(before: u32, budget: u32) {
    let machine = Machine::new(3, 200, true);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    map(sigma0, a, RAM, RAM);
    map(a, b, RAM, RAM);
    for slot in 0..16 {
        map(b, c, RAM, slot << 12);
        map(c, a, slot << 12, slot << 12);
    }
    let mut job = unmap(a, RAM, 12, Rights::RWX, false);
    let done = (0..before).any(|_| job.step(20) == Step::Done);
    let mut end = DestroyJob::new(b, marker());
    let ends = (0..1000).any(|_| end.step(budget) == Step::Done);
    assert!(ends, "it comes to its end");
    assert_eq!((b.quota().used(), c.nodes(), a.nodes()), (2, 0, 1));
    if !done {
        job.finish();
    }
    assert_eq!(machine.violations(false), []);
}

/// An unmap of the parts of a split page, among which there is a page from elsewhere, looks at the first of them when
/// another one takes them all: it goes on behind them.
#[test]
fn an_unmap_of_parts_that_vanish_comes_to_what_is_among_them() {
    let machine = Machine::new(2, 200, false);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    for (before, flush) in (0..30).flat_map(|n| [(n, false), (n, true)]) {
        send(sigma0, a, MapItem::map(page(RAM, 21, Rights::RWX), RAM));
        unmap(a, RAM + 0x8000, 12, Rights::RWX, true).finish();
        map(sigma0, a, RAM + 0x40_0000, RAM + 0x8000);
        map(a, b, RAM + 0x1000, 0x1000);
        map(a, b, RAM + 0x8000, 0x8000);
        let mut job = unmap(a, RAM, 16, Rights::RWX, flush);
        let done = steps(&mut job, before);
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
        if !done {
            job.finish();
        }
        let left = (!flush).then_some(Rights::RWX);
        let case = format!("{before} steps, flush: {flush}");
        assert_eq!((rights(a, RAM + 0x8000), b.nodes()), (left, 0), "{case}");
        assert_eq!(machine.violations(false), [], "{case}");
        unmap(sigma0, RAM, 23, Rights::RWX, false).finish();
        assert_eq!(a.nodes(), 0, "{case}");
    }
}
