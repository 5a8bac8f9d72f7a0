//! Unmaps that others overtake between two steps: whatever happens to the pages
//! in between, at the end nobody has more than the page that his is derived from.

mod ended;
mod granted;

use crate::common::{Machine, RAM, marker};
use abi::{Fpage, MapItem, Rights};
use kernel::mem::{AddressSpace, MapJob, Scope, SpaceRef, Step, UnmapJob};

/// More than any of the unmaps here has.
const MOST_STEPS: u32 = 80;

fn page(addr: u64, bits: u32, rights: Rights) -> Fpage {
    Fpage::memory(addr, bits, rights)
}

fn send(src: SpaceRef, dst: SpaceRef, item: MapItem) {
    MapJob::new(src, dst, item, Fpage::COMPLETE, marker()).finish().expect("it can pay");
}

/// Maps the small page at `from` to `to`.
fn map(src: SpaceRef, dst: SpaceRef, from: u64, to: u64) {
    send(src, dst, MapItem::map(page(from, 12, Rights::RWX), to));
}

/// Grants the small page at `at` to the same address of `dst`.
fn grant(src: SpaceRef, dst: SpaceRef, at: u64) {
    send(src, dst, MapItem::grant(page(at, 12, Rights::RWX), at));
}

fn unmap(space: SpaceRef, addr: u64, bits: u32, rights: Rights, flush: bool) -> UnmapJob {
    let scope = if flush { Scope::Own } else { Scope::Derived };
    UnmapJob::new(space, page(addr, bits, rights), scope, marker())
}

/// Makes the shortest steps that get on; true if the job is done.
fn steps(job: &mut UnmapJob, count: u32) -> bool {
    (0..count).any(|_| job.step(4) == Step::Done)
}

fn rights(space: SpaceRef, addr: u64) -> Option<Rights> {
    space.page(addr).map(|page| page.rights)
}

/// The children of a page move to another node while a walk is among them.
#[test]
fn a_grant_does_not_hide_pages_from_an_unmap_under_way() {
    let machine = Machine::new(4, 200, true);
    let [sigma0, a, b, c, d] = machine.spaces[..] else { panic!("five spaces") };
    for before in 0..MOST_STEPS {
        map(sigma0, a, RAM, RAM);
        map(a, b, RAM, RAM);
        for slot in 0..16 {
            map(b, c, RAM, slot << 12);
        }
        let mut job = unmap(a, RAM, 12, Rights::W, false);
        let done = steps(&mut job, before);
        grant(b, d, RAM);
        if !done {
            job.finish();
        }
        assert_eq!((b.nodes(), c.nodes(), d.nodes()), (0, 16, 1));
        for slot in 0..16 {
            assert_eq!(rights(c, slot << 12), Some(Rights::RX), "page {slot}, {before} steps");
        }
        assert_eq!(machine.violations(false), []);
        unmap(sigma0, RAM, 12, Rights::RWX, false).finish();
    }
}

/// Unmaps from a page that has children and grandchildren while it is granted.
fn grant_during(machine: &Machine, job: &dyn Fn(SpaceRef) -> UnmapJob, between: &dyn Fn()) {
    let [sigma0, a, b, c, d] = machine.spaces[..] else { panic!("five spaces") };
    for before in 0..MOST_STEPS {
        map(sigma0, a, RAM, RAM);
        for slot in 0..3 {
            map(a, b, RAM, slot << 12);
            map(b, c, slot << 12, slot << 12);
        }
        let mut job = job(a);
        let done = steps(&mut job, before);
        between();
        grant(a, d, RAM);
        if !done {
            job.finish();
        }
        assert_eq!(machine.violations(false), [], "{before} steps before the grant");
        unmap(sigma0, RAM, 12, Rights::RWX, false).finish();
        assert_eq!((a.nodes(), b.nodes(), c.nodes(), d.nodes()), (0, 0, 0, 0));
    }
}

#[test]
fn a_page_granted_during_its_unmap_takes_nothing_unfinished_along() {
    let machine = Machine::new(4, 200, true);
    for taken in [Rights::W, Rights(3), Rights::RWX] {
        for flush in [false, true] {
            grant_during(&machine, &|space| unmap(space, RAM, 12, taken, flush), &|| ());
        }
    }
}

/// An unmap that has not come to a page before that was granted leaves it to its new owner.
#[test]
fn an_unmap_takes_nothing_from_whom_the_page_was_granted_to() {
    let machine = Machine::new(4, 200, false);
    let [sigma0, a, b, _, d] = machine.spaces[..] else { panic!("five spaces") };
    for (before, taken) in (0..20).flat_map(|n| [(n, Rights::W), (n, Rights::RWX)]) {
        for bits in [12, 21] {
            let whole = |at| page(at, bits, Rights::RWX);
            send(sigma0, a, MapItem::map(whole(RAM), RAM));
            map(a, b, RAM, 0);
            let mut job = unmap(a, RAM, bits, taken, true);
            let done = steps(&mut job, before);
            send(a, d, MapItem::grant(whole(RAM), RAM));
            let granted = rights(d, RAM);
            if !done {
                job.finish();
            }
            assert_eq!(rights(d, RAM), granted, "{before} steps");
            assert_eq!(machine.violations(false), []);
            unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
        }
    }
}

/// A page of `space` from which much is derived.
fn crowded(sigma0: SpaceRef, space: SpaceRef) {
    map(sigma0, space, RAM + 0x40_0000, 0);
    for slot in 1..20 {
        map(space, space, 0, slot << 12);
    }
}

/// Begins many unmaps of that page, which stay under way for good.
fn crowd(space: SpaceRef) {
    for _ in 0..40 {
        let mut job = unmap(space, 0, 12, Rights::NONE, false);
        assert!(!steps(&mut job, 5), "it is under way");
    }
}

/// Others are under way, however many, before the page goes.
#[test]
fn an_unmap_among_many_finishes_what_it_began() {
    let mut machine = Machine::new(4, 200, true);
    let other = AddressSpace::create(40, &machine.bank, 200).expect("the pool is fresh");
    crowded(machine.sigma0(), other);
    let job = |space| unmap(space, RAM, 12, Rights::W, true);
    grant_during(&machine, &job, &|| crowd(other));
    machine.spaces.push(other);
    assert_eq!(machine.violations(false), []);
}

/// The receiver of the grant has the page already, with fewer rights.
#[test]
fn a_grant_gives_no_rights_back_that_an_unmap_under_way_took() {
    let machine = Machine::new(3, 200, true);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    for before in 0..MOST_STEPS {
        map(sigma0, a, RAM, RAM);
        map(a, b, RAM, RAM);
        map(a, c, RAM, RAM);
        let mut job = unmap(a, RAM, 12, Rights::W, false);
        let done = steps(&mut job, before);
        grant(b, c, RAM);
        if !done {
            job.finish();
        }
        assert_eq!((rights(b, RAM), rights(c, RAM)), (None, Some(Rights::RX)), "{before} steps");
        assert_eq!(machine.violations(false), []);
        unmap(sigma0, RAM, 12, Rights::RWX, false).finish();
    }
}

/// A part of a large page is granted while an unmap is among what was derived from it: that part
/// takes nothing along, and the rest stays as it is.
#[test]
fn a_part_granted_during_an_unmap_leaves_what_was_derived_from_it() {
    let machine = Machine::new(4, 200, false);
    let [sigma0, a, b, c, d] = machine.spaces[..] else { panic!("five spaces") };
    for (before, taken) in (0..MOST_STEPS).flat_map(|n| [(n, Rights::W), (n, Rights::RWX)]) {
        send(sigma0, a, MapItem::map(page(RAM, 21, Rights::RWX), RAM));
        send(a, b, MapItem::map(page(RAM, 21, Rights::RWX), RAM));
        send(b, c, MapItem::map(page(RAM, 21, Rights::RWX), RAM));
        for slot in 0..4 {
            map(b, c, RAM + (slot << 12), slot << 12);
            map(c, c, slot << 12, (8 + slot) << 12);
        }
        let mut job = unmap(a, RAM, 21, taken, false);
        let done = steps(&mut job, before);
        grant(b, d, RAM + 0x2000);
        if !done {
            assert_eq!(machine.violations(true), [], "{before} steps");
            job.finish();
        }
        let left = (!taken.contains(Rights::R)).then_some(Rights::RX);
        assert_eq!(rights(c, 0x1000), left, "{before} steps");
        assert_eq!((rights(c, 0x2000), rights(c, 0xA000)), (None, None), "{before} steps");
        assert_eq!((rights(c, RAM + 0x2000), rights(c, RAM + 0x3000)), (None, left));
        assert_eq!((rights(b, RAM + 0x2000), rights(d, RAM + 0x2000)), (None, left));
        assert_eq!(machine.violations(false), [], "{before} steps");
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
        assert_eq!((a.nodes(), b.nodes(), c.nodes(), d.nodes()), (0, 0, 0, 0));
    }
}

/// Unmaps a part of a large page of `rich`, which `peer` and `poor` (who has nothing left but
/// the price of a split) have too, `heir` has parts from `poor`; in the middle `between` happens.
fn part_taken(machine: &Machine, flush: bool, taken: Rights, between: &dyn Fn()) {
    let [sigma0, rich, heir, peer, _, poor] = machine.spaces[..] else { panic!("six spaces") };
    let large = |src, dst| send(src, dst, MapItem::map(page(RAM, 21, Rights::RWX), RAM));
    let left = (!taken.contains(Rights::R)).then_some(Rights::RX);
    for before in 0..2 * MOST_STEPS {
        let order = if before % 2 == 0 { [peer, poor] } else { [poor, peer] };
        large(sigma0, rich);
        large(rich, order[0]);
        large(rich, order[1]);
        for slot in [1, 3, 8] {
            map(poor, heir, RAM + (slot << 12), slot << 12);
        }
        let mut job = unmap(rich, RAM + 0x3000, 12, taken, flush);
        let done = steps(&mut job, before / 2);
        between();
        if !done {
            job.finish();
        }
        for slot in [1, 3, 8] {
            let left = if slot == 3 { left } else { Some(Rights::RWX) };
            assert_eq!(rights(heir, slot << 12), left, "page {slot}, {before} half steps");
        }
        for space in [peer, poor] {
            assert_eq!(rights(space, RAM + 0x3000), left);
            assert_eq!(rights(space, RAM + 0x8000), Some(Rights::RWX), "only a part is lost");
        }
        assert_eq!(machine.violations(false), []);
        unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
    }
}

/// A part of a large page is taken from all who have it and from those who have that part,
/// even if the unmap has to start again in the middle.
#[test]
fn an_unmap_of_a_part_that_starts_again_takes_that_part() {
    let mut machine = Machine::new(4, 200, false);
    // Descriptor, root, two tables and a twin, one slab, the price of a split.
    let poor = AddressSpace::create(8, &machine.bank, 8).expect("the pool is fresh");
    let [sigma0, .., peer, other] = machine.spaces[..] else { panic!("five spaces") };
    machine.spaces.push(poor);
    crowded(sigma0, other);
    let moves = || {
        map(other, other, 0x1000, 0x3_0000);
        map(other, peer, 0x3_0000, 0x4_0000);
        grant(other, peer, 0x3_0000);
    };
    for taken in [Rights::W, Rights::RWX] {
        for flush in [false, true] {
            part_taken(&machine, flush, taken, &moves);
            part_taken(&machine, flush, taken, &|| crowd(other));
        }
    }
}

/// A grant of a page with many children is given up while they are told their new parent. What
/// is left of the old page's node goes with the new page, with the next grant, or with its space.
#[test]
fn a_grant_that_is_given_up_leaves_a_whole_tree() {
    for before in 0..MOST_STEPS {
        for after in [After::Unmap, After::Grant, After::Destroy] {
            std::thread::spawn(move || give_up_a_grant(before, after)).join().expect("it holds");
        }
    }
}

/// What comes after the grant.
#[derive(Clone, Copy)]
enum After {
    Unmap,
    Grant,
    Destroy,
}

fn give_up_a_grant(before: u32, after: After) {
    let machine = Machine::new(5, 200, true);
    let [sigma0, a, b, c, d, e] = machine.spaces[..] else { panic!("six spaces") };
    map(sigma0, a, RAM, RAM);
    map(a, b, RAM, RAM);
    for slot in 0..16 {
        map(b, c, RAM, slot << 12);
    }
    let item = MapItem::grant(page(RAM, 12, Rights::RWX), RAM);
    let mut job = MapJob::new(b, d, item, Fpage::COMPLETE, marker());
    let _ = (0..before).find(|_| job.step(1) != Ok(Step::More));
    job.abandon();
    assert_eq!(machine.violations(false), [], "{before} steps");
    let owner = if d.page(RAM).is_some() { d } else { b };
    match after {
        After::Unmap => {}
        After::Grant => {
            grant(owner, e, RAM);
            assert_eq!((b.nodes(), d.nodes(), e.nodes(), c.nodes()), (0, 0, 1, 16));
            unmap(e, RAM, 12, Rights::W, false).finish();
            assert_eq!(rights(c, 0x3000), Some(Rights::RX), "{before} steps");
        }
        After::Destroy => {
            kernel::mem::DestroyJob::new(b, marker()).finish();
            assert_eq!((b.quota().used(), c.nodes()), (2, 16 * d.nodes()), "{before} steps");
        }
    }
    assert_eq!(machine.violations(false), []);
    unmap(a, RAM, 12, Rights::RWX, false).finish();
    assert_eq!((b.nodes(), c.nodes(), d.nodes(), e.nodes()), (0, 0, 0, 0), "{before} steps");
}

/// Flushes the page at RAM from `a` twice, and maps it anew in between and once more when
/// the first flush is under way. `first_size`: log2 of the bytes of the page at first.
fn flush_twice(machine: &Machine, first_size: u32, before: u32, after: u32) {
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    let fill = |bits| {
        send(sigma0, a, MapItem::map(page(RAM, bits, Rights::RWX), RAM));
        for slot in 0..3 {
            map(a, b, RAM, slot << 12);
            map(b, c, slot << 12, slot << 12);
        }
    };
    let flush = || unmap(a, RAM, 12, Rights::RWX, true);
    fill(first_size);
    let mut first = flush();
    let first_done = steps(&mut first, before);
    flush().finish();
    fill(12);
    let mut second = flush();
    let second_done = steps(&mut second, after);
    if !first_done {
        first.finish();
    }
    if !second_done {
        second.finish();
    }
    assert_eq!(machine.violations(false), [], "{before} and {after} steps");
    assert_eq!((a.page(RAM), b.nodes(), c.nodes()), (None, 0, 0));
    unmap(sigma0, RAM, 21, Rights::RWX, false).finish();
}

/// A flush comes back to a page that was mapped anew and that another flush works on.
#[test]
fn a_flush_leaves_a_page_to_the_flush_that_is_at_it() {
    let machine = Machine::new(3, 200, false);
    // Another page keeps a's slab, so that the next node is where the last one was.
    map(machine.sigma0(), machine.spaces[1], RAM + 0x40_0000, 0);
    for (before, after) in (0..30).flat_map(|before| (0..30).map(move |after| (before, after))) {
        flush_twice(&machine, 12, before, after);
        flush_twice(&machine, 21, before, after);
    }
}

/// Whom an item has to give way to is asked about its own pages: what is behind them is no business of
/// its, and at the end of a program's memory there are no tables that could be asked.
#[test]
fn an_item_asks_about_its_own_pages_only() {
    let machine = Machine::new(5, 200, true);
    let [sigma0, a, b, c, ..] = machine.spaces[..] else { panic!("six spaces") };
    for at in [RAM, RAM + 0x1000, RAM + 0x2000] {
        map(sigma0, a, at, at);
    }
    // The receiver has shared the page behind the first one of the two.
    map(a, b, RAM + 0x1000, 0x1000);
    map(b, c, 0x1000, 0x1000);
    let item = |bits: u32| MapItem::map(page(RAM, bits, Rights::RWX), 0);
    let one = MapJob::new(a, b, item(12), Fpage::COMPLETE, marker());
    assert_eq!(one.sharers(), [None; 2]);
    let two = MapJob::new(a, b, item(13), Fpage::COMPLETE, marker());
    assert_eq!(two.sharers(), [Some(c), Some(b)]);
    let none = MapJob::new(a, sigma0, item(13), Fpage::COMPLETE, marker());
    assert_eq!(none.sharers(), [None; 2]);
}
