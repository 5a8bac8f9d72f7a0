//! What a flush that stopped has left of a long chain of mappings vanishes in steps, too, whoever meets it.

use crate::common::{Machine, RAM, marker};
use abi::{Fpage, MapItem, Rights};
use kernel::mem::{Access, DestroyJob, MapJob, STEP_BUDGET, Scope, SpaceRef, Step, UnmapJob};

/// Mappings, each derived from the one before.
const LONG: u64 = 400;
/// Nodes that may be freed in a step.
const MOST: u64 = 16;

fn page(addr: u64) -> Fpage {
    Fpage::memory(addr, 12, Rights::RWX)
}

fn map(src: SpaceRef, dst: SpaceRef, from: u64, to: u64) {
    let item = MapItem::map(page(from), to);
    MapJob::new(src, dst, item, Fpage::COMPLETE, marker()).finish().expect("it can pay");
}

fn flush(space: SpaceRef, addr: u64) -> UnmapJob {
    UnmapJob::new(space, page(addr), Scope::Own, marker())
}

/// A chain, of which a flush of the first page has taken all up to `last`.
fn cut(machine: &Machine, last: u64) -> UnmapJob {
    let [sigma0, a, ..] = machine.spaces[..] else { panic!("two spaces") };
    map(sigma0, a, RAM, 0);
    (0..LONG).for_each(|at| map(a, a, at << 12, (at + 1) << 12));
    let mut first = flush(a, 0);
    while a.page(last << 12).is_some() {
        assert_eq!(first.step(4), Step::More);
    }
    assert!(a.page((last + 1) << 12).is_some() && a.nodes() == LONG + 1);
    first
}

/// Another flush takes what is left of the chain, and all that is above that, in steps.
fn vanishes(last: u64, how: impl FnOnce(&Machine, UnmapJob)) {
    let machine = Machine::new(1, 200, true);
    let [_, a] = machine.spaces[..] else { panic!("two spaces") };
    let first = cut(&machine, last);
    let mut second = flush(a, (last + 1) << 12);
    let mut before = a.nodes();
    while second.step(STEP_BUDGET) == Step::More {
        assert!(a.nodes() + MOST >= before, "from {before} to {} in a step", a.nodes());
        before = a.nodes();
    }
    assert!(a.nodes() + MOST >= before, "from {before} to {} in the last", a.nodes());
    how(&machine, first);
    assert_eq!((a.nodes(), machine.violations(false)), (0, vec![]));
}

#[test]
fn what_is_above_a_flush_vanishes_in_steps() {
    for last in [LONG / 2, LONG - 2, LONG - 1] {
        vanishes(last, |_, mut first| first.finish());
    }
}

#[test]
fn what_is_above_a_flush_vanishes_though_the_first_is_given_up() {
    let machine = Machine::new(1, 200, true);
    let [_, a] = machine.spaces[..] else { panic!("two spaces") };
    for last in [LONG / 2, LONG - 2, LONG - 1] {
        let mut first = cut(&machine, last);
        first.abandon();
        flush(a, (last + 1) << 12).finish();
        // All but the page that was to go.
        assert_eq!(a.nodes(), 1);
        flush(a, 0).finish();
        assert_eq!((a.nodes(), machine.violations(false)), (0, vec![]));
    }
}

/// The status of a page that a flush takes waits at a ghost while that flush stands still.
#[test]
fn what_was_written_is_told_to_who_frees_the_ghosts() {
    let machine = Machine::new(1, 200, true);
    let [_, a] = machine.spaces[..] else { panic!("two spaces") };
    let mut first = cut(&machine, LONG - 1);
    assert!(a.resolve(LONG << 12, Access::Write).is_some());
    let mut second = flush(a, LONG << 12);
    assert_eq!(second.step(1), Step::More);
    first.finish();
    assert!(first.status().contains(Rights::W), "{:?}", first.status());
    second.finish();
    assert_eq!((a.nodes(), machine.violations(false)), (0, vec![]));
}

/// A page from σ0 through four spaces, the last of which has written it.
fn written() -> (Machine, [SpaceRef; 4]) {
    let machine = Machine::new(4, 200, true);
    let [sigma0, p, a, b, c] = machine.spaces[..] else { panic!("five spaces") };
    map(sigma0, p, RAM, 0);
    [(p, a), (a, b), (b, c)].into_iter().for_each(|(src, dst)| map(src, dst, 0, 0));
    assert!(c.resolve(0, Access::Write).is_some());
    (machine, [p, a, b, c])
}

/// Goes on until `space` has lost its page.
fn steps(mut step: impl FnMut() -> Step, space: SpaceRef) {
    while space.page(0).is_some() {
        assert_eq!(step(), Step::More);
    }
}

fn hears(machine: &Machine, space: SpaceRef) {
    let mut job = flush(space, 0);
    job.finish();
    assert!(job.status().contains(Rights::W), "{:?}", job.status());
    assert_eq!(machine.violations(true), vec![]);
}

#[test]
fn what_was_written_is_told_to_who_takes_the_root_from_a_flush_that_stands_still() {
    let (machine, [p, a, _, c]) = written();
    let mut first = flush(a, 0);
    steps(|| first.step(4), c);
    assert!(a.page(0).is_some());
    hears(&machine, p);
    first.finish();
    assert_eq!(machine.violations(false), vec![]);
}

#[test]
fn what_was_written_is_told_though_the_flush_that_found_it_is_given_up() {
    for own in [false, true] {
        let (machine, [p, a, _, c]) = written();
        let mut first = flush(a, 0);
        steps(|| first.step(4), c);
        first.abandon();
        hears(&machine, if own { a } else { p });
    }
}

#[test]
fn what_was_written_below_a_ghost_is_told_when_the_ghosts_space_ends() {
    for ends in [false, true] {
        let (machine, [p, a, b, c]) = written();
        let mut first = flush(a, 0);
        steps(|| first.step(4), b);
        assert!(c.page(0).is_some());
        first.abandon();
        let mut end = DestroyJob::new(b, marker());
        steps(|| end.step(4), c);
        if ends {
            end.finish();
        }
        hears(&machine, if ends { a } else { p });
        end.finish();
        assert_eq!(machine.violations(true), vec![]);
    }
}
