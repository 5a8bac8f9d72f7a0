//! Quotas, σ0's pages, protected areas, splitting that cannot be paid, the
//! mapping tree as the monitor shows it, and jobs that interrupt each other.

mod jobs;

use crate::common::{Machine, RAM, marker};
use abi::{Fpage, MapItem, Rights};
use kernel::arch::hardware;
use kernel::mem::space::Area;
use kernel::mem::trees::{Record, Tree};
use kernel::mem::{
    Access, AddressSpace, DestroyJob, MapJob, NoMemory, Quota, Scope, SpaceRef, UnmapJob, frames,
    reserved, sigma0_fault,
};

fn page(addr: u64, bits: u32, rights: Rights) -> Fpage {
    Fpage::memory(addr, bits, rights)
}

/// Maps 2^`bits` bytes at `from` to `to`.
fn map(
    src: SpaceRef,
    dst: SpaceRef,
    from: u64,
    to: u64,
    bits: u32,
    rights: Rights,
) -> Result<(), NoMemory> {
    let item = MapItem::map(page(from, bits, rights), to);
    MapJob::new(src, dst, item, Fpage::COMPLETE, marker()).finish()
}

fn flush(space: SpaceRef, addr: u64, bits: u32, rights: Rights) -> Rights {
    let mut job = UnmapJob::new(space, page(addr, bits, rights), Scope::Own, marker());
    job.finish();
    job.status()
}

#[test]
fn quotas_move_but_do_not_grow() {
    let (rich, poor) = (Quota::new(10), Quota::new(1));
    assert_eq!(rich.transfer(&poor, 11), Err(NoMemory));
    assert_eq!(rich.transfer(&poor, 4), Ok(()));
    assert_eq!((rich.limit(), poor.limit()), (6, 5));
    let machine = Machine::new(0, 0, false);
    let free = frames::free();
    assert_eq!(AddressSpace::create(9, &poor, 1), Err(NoMemory), "a space needs two frames");
    assert_eq!((poor.limit(), frames::free()), (5, free));
    let space = AddressSpace::create(9, &poor, 5).expect("five are enough");
    assert_eq!((poor.limit(), space.quota().used()), (0, 2));
    DestroyJob::new(space, marker()).finish();
    space.free(&poor);
    assert_eq!((poor.limit(), frames::free()), (5, free));
    assert_eq!(machine.violations(false), []);
}

#[test]
fn sigma0_gets_the_largest_page_without_the_kernel_in_it() {
    let machine = Machine::new(1, 100, false);
    assert!(reserved::add_reserved(RAM + 0x5000, RAM + 0x5001));
    let sigma0 = machine.sigma0();
    let bits = |addr| sigma0.page(addr).map(|page| (page.phys, page.bits));
    assert!(!sigma0_fault(sigma0, RAM - 0x1000), "the kernel's");
    assert!(!sigma0_fault(sigma0, RAM + 0x5FFF), "the kernel's page");
    assert!(!sigma0_fault(sigma0, 1 << 36), "beyond the physical addresses");
    assert!(!sigma0_fault(sigma0, 0xFFFF_8000_0000_0000), "not a user address");
    assert!(!sigma0_fault(machine.spaces[1], RAM), "not σ0");
    assert!(sigma0_fault(sigma0, RAM + 0x4123));
    assert_eq!(bits(RAM + 0x4123), Some((RAM + 0x4123, 12)));
    assert!(sigma0_fault(sigma0, RAM + 0x20_0000));
    assert_eq!(bits(RAM + 0x20_0000), Some((RAM + 0x20_0000, 21)));
    kernel::mem::enable_huge_pages();
    assert!(sigma0_fault(sigma0, 0x8000_0000));
    assert_eq!(bits(0x8000_0000), Some((0x8000_0000, 30)));
    assert!(sigma0_fault(sigma0, 0x1_2345_6789), "device memory above RAM");
    assert_eq!(bits(0x1_2345_6789), Some((0x1_2345_6789, 30)));
    assert_eq!(machine.violations(false), []);
}

#[test]
fn a_gigabyte_page_is_mapped_split_and_gone() {
    let machine = Machine::new(2, 1100, false);
    kernel::mem::enable_huge_pages();
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    let giga = 0x4000_0000;
    map(sigma0, a, giga, giga * 8, 30, Rights::RWX).expect("few frames are needed");
    map(a, b, giga * 8, giga * 3, 30, Rights::RWX).expect("few frames are needed");
    assert_eq!(b.page(giga * 3).map(|page| (page.phys, page.bits)), Some((giga, 30)));
    flush(a, giga * 8 + 0x1234_5000, 12, Rights::RWX);
    for (space, base) in [(a, giga * 8), (b, giga * 3)] {
        assert_eq!(space.page(base + 0x1234_5000), None);
        let next = space.page(base + 0x1234_6000).map(|page| (page.phys, page.bits));
        assert_eq!(next, Some((giga + 0x1234_6000, 12)));
        let other = space.page(base + 0x2000_0000).map(|page| (page.phys, page.bits));
        assert_eq!(other, Some((giga + 0x2000_0000, 21)));
        assert_eq!(space.nodes(), 1, "a split page keeps its one node");
    }
    assert_eq!(machine.violations(false), []);
    flush(a, giga * 8, 30, Rights::RWX);
    assert_eq!((a.nodes(), b.nodes(), a.quota().used(), b.quota().used()), (0, 0, 2, 2));
}

/// Whoever has a large page has paid for taking a part of it back: nothing is left of the
/// poor one's quota, and it loses no more than the others.
#[test]
fn a_split_was_paid_when_the_page_was_mapped() {
    let mut machine = Machine::new(1, 100, false);
    // Descriptor, root, two tables and a twin, one slab, and the price of a split.
    let poor = AddressSpace::create(8, &machine.bank, 8).expect("the pool is fresh");
    let heir = AddressSpace::create(9, &machine.bank, 100).expect("the pool is fresh");
    machine.spaces.extend([poor, heir]);
    let [sigma0, rich, ..] = machine.spaces[..] else { panic!("four spaces") };
    map(sigma0, rich, RAM, RAM, 21, Rights::RWX).expect("it can pay");
    map(rich, poor, RAM, RAM, 21, Rights::RWX).expect("it can pay");
    map(poor, heir, RAM, RAM, 21, Rights::RWX).expect("it can pay");
    assert_eq!(poor.quota().used(), poor.quota().limit());
    flush(rich, RAM + 0x3000, 12, Rights::W);
    let rights = |space: SpaceRef, addr| space.page(addr).map(|page| page.rights);
    for space in [rich, poor, heir] {
        assert_eq!(rights(space, RAM + 0x3000), Some(Rights::RX));
        assert_eq!(rights(space, RAM), Some(Rights::RWX), "only that part");
    }
    assert_eq!(poor.quota().used(), 8, "the split was paid before");
    assert_eq!(machine.violations(false), []);
    flush(poor, RAM + 0x8000, 12, Rights::RWX);
    assert_eq!((poor.page(RAM + 0x8000), heir.page(RAM + 0x8000)), (None, None));
    assert!(poor.page(RAM + 0x9000).is_some() && rich.page(RAM + 0x8000).is_some());
    assert_eq!(machine.violations(false), []);
    flush(rich, RAM, 21, Rights::RWX);
    assert_eq!((poor.quota().used(), heir.quota().used()), (2, 2), "nothing stays charged");
}

/// Who cannot pay for the largest page that would fit gets smaller ones, as far as it can pay.
#[test]
fn who_cannot_pay_for_a_large_page_gets_smaller_ones() {
    let mut machine = Machine::new(0, 0, false);
    kernel::mem::enable_huge_pages();
    // Descriptor, root, two tables and a twin, one slab; three more pages can be split.
    let poor = AddressSpace::create(8, &machine.bank, 6 + 3 * 2 + 1).expect("the pool is fresh");
    machine.spaces.push(poor);
    let giga = 0x4000_0000;
    assert_eq!(map(machine.sigma0(), poor, giga, giga, 30, Rights::RWX), Err(NoMemory));
    let bits = |addr| poor.page(addr).map(|page| page.bits);
    assert_eq!(
        (bits(giga), bits(giga + 0x40_0000), bits(giga + 0x60_0000)),
        (Some(21), Some(21), None)
    );
    assert_eq!(machine.violations(false), []);
    flush(poor, giga, 30, Rights::RWX);
    assert_eq!(poor.quota().used(), 2);
}

/// Small pages out of a large one, where the table is there already: each is its own part of
/// it, with the rights of both, and goes with it.
#[test]
fn parts_of_a_large_page_are_handed_on_one_by_one() {
    let machine = Machine::new(2, 1100, false);
    kernel::mem::enable_huge_pages();
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    let giga = 0x4000_0000;
    for (large, bits) in [(RAM, 21), (giga, 30)] {
        map(sigma0, a, large, large, bits, Rights::RX).expect("it can pay");
        let part = large + (1 << bits) / 2 + 0x3_7000;
        map(a, b, part, 0x5000, 12, Rights::RWX).expect("it can pay");
        map(a, b, part + 0x1000, 0x8000, 14, Rights::RWX).expect("it can pay");
        map(a, b, part - 0x9000, 0x6000, 12, Rights::R).expect("it can pay");
        let at = |to| b.page(to).map(|page| (page.phys, page.bits, page.rights));
        assert_eq!(at(0x5000), Some((part, 12, Rights::RX)));
        assert_eq!(at(0x6000), Some((part - 0x9000, 12, Rights::R)));
        assert_eq!(at(0x7000), None);
        for page in [0x0, 0x1000, 0x2000, 0x3000] {
            assert_eq!(at(0x8000 + page), Some((part + 0x1000 + page, 12, Rights::RX)));
        }
        assert_eq!((b.nodes(), machine.violations(false)), (6, vec![]));
        map(a, b, large, 0x20_1000, 12, Rights::R).expect("it can pay");
        map(a, b, large, 0x20_0000, 21, Rights::R).expect("it can pay");
        assert_eq!(b.page(0x20_0000).map(|page| page.bits), Some(21), "whole, where it fits");
        flush(a, part, 12, Rights::RWX);
        assert_eq!((at(0x5000), at(0x6000).is_some()), (None, true), "only that part");
        flush(a, large, bits, Rights::RWX);
        assert_eq!((a.nodes(), b.nodes(), machine.violations(false)), (0, 0, vec![]));
    }
}

#[test]
fn running_out_of_quota_changes_nothing_halfway() {
    let mut machine = Machine::new(1, 100, true);
    let poor = AddressSpace::create(8, &machine.bank, 6).expect("the pool is fresh");
    machine.spaces.push(poor);
    let [sigma0, rich, _] = machine.spaces[..] else { panic!("three spaces") };
    map(sigma0, rich, RAM, RAM, 20, Rights::RWX).expect("it can pay");
    // The tables take four frames, the slab the last.
    assert_eq!(map(rich, poor, RAM, RAM, 12, Rights::RWX), Err(NoMemory));
    assert_eq!((poor.quota().used(), poor.table_pages(), poor.nodes()), (2, 0, 0));
    assert_eq!(machine.violations(false), []);
    machine.bank.transfer(poor.quota(), 1).expect("the bank is rich");
    assert_eq!(map(rich, poor, RAM, RAM, 12, Rights::RWX), Ok(()));
    assert_eq!(map(rich, poor, RAM + 0x1000, 0, 12, Rights::RWX), Err(NoMemory));
    assert_eq!(map(rich, poor, RAM, RAM, 20, Rights::RWX), Err(NoMemory));
    assert_eq!(poor.nodes(), 84, "one slab's worth arrived");
    assert_eq!(machine.violations(false), []);
}

#[test]
fn areas_of_the_kernel_are_left_alone() {
    let machine = Machine::new(2, 200, false);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    let (kip, utcb) = (RAM + 0x8000, RAM + 0x20_0000);
    let area = |start, size| Area { start, end: start + size };
    a.set_areas(area(kip, 0x1000), area(utcb, 0x4000));
    a.map_kernel_page(kip, 0x5000, Rights::RX).expect("it can pay");
    a.map_kernel_page(utcb, 0x6000, Rights::RW).expect("it can pay");
    map(sigma0, a, RAM, RAM, 22, Rights::RWX).expect("it can pay");
    let at = |space: SpaceRef, addr| space.page(addr).map(|page| (page.phys, page.bits));
    assert_eq!(at(a, kip), Some((0x5000, 12)));
    assert_eq!(at(a, RAM + 0x7000), Some((RAM + 0x7000, 12)), "beside the KIP");
    assert_eq!(at(a, utcb + 0x1000), None, "in the UTCB area");
    assert_eq!(at(a, utcb + 0x4000), Some((RAM + 0x20_4000, 12)));
    map(a, b, RAM, RAM, 22, Rights::RWX).expect("it can pay");
    assert_eq!((at(b, kip), at(b, utcb)), (None, None), "not sent on");
    flush(a, RAM, 22, Rights::RWX);
    assert_eq!((at(a, kip), at(a, RAM)), (Some((0x5000, 12)), None));
    assert_eq!(b.nodes(), 0);
    assert!(
        a.resolve(utcb + 8, Access::Write).is_some() && a.resolve(kip, Access::Write).is_none()
    );
    assert_eq!(a.unmap_kernel_page(utcb), Some(0x6000));
    assert_eq!(a.unmap_kernel_page(utcb), None);
    assert_eq!(a.unmap_kernel_page(kip), Some(0x5000));
    assert_eq!(a.quota().used(), 2);
}

#[test]
fn resolving_marks_pages_and_unmap_reports_it() {
    let machine = Machine::new(2, 200, false);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    map(sigma0, a, RAM, RAM, 21, Rights::RWX).expect("it can pay");
    map(a, b, RAM + 0x1000, 0x7000, 12, Rights::R).expect("it can pay");
    let found = a.resolve(RAM + 0x1234, Access::Read).expect("mapped");
    assert_eq!((found.phys, found.bytes_left_in_page), (RAM + 0x1234, 0x20_0000 - 0x1234));
    assert_eq!(flush(a, RAM, 21, Rights::NONE), Rights::RX);
    assert_eq!(flush(a, RAM, 21, Rights::NONE), Rights::NONE, "reset by reading");
    assert_eq!(b.resolve(0x7000, Access::Write), None, "read-only");
    let found = b.resolve(0x7FFF, Access::Read).expect("mapped");
    assert_eq!((found.phys, found.bytes_left_in_page), (RAM + 0x1FFF, 1));
    assert!(a.resolve(RAM, Access::Write).is_some());
    let mut job = UnmapJob::new(a, page(RAM, 21, Rights::NONE), Scope::Derived, marker());
    job.finish();
    assert_eq!(job.status(), Rights::RX, "the own page is not included");
    assert_eq!(flush(a, RAM, 21, Rights::NONE), Rights::RWX);
    assert!(b.resolve(0x7000, Access::Read).is_some());
    flush(b, 0x7000, 12, Rights::RWX);
    assert_eq!(flush(a, RAM, 21, Rights::NONE), Rights::RX, "left by the vanished child");
    assert_eq!(a.resolve(0xFFFF_8000_0000_0000, Access::Read), None);
}

#[test]
fn translations_are_forgotten_where_they_may_be_cached() {
    let machine = Machine::new(2, 200, true);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    let forgotten = |action: &dyn Fn()| {
        let before = hardware::invalidations();
        action();
        hardware::invalidations() - before
    };
    let fill = |space| map(sigma0, space, RAM, RAM, 14, Rights::RWX).expect("it can pay");
    hardware::load(a.root().word().value());
    assert_eq!(forgotten(&|| fill(a)), 0, "nothing is cached of what was not there");
    assert_eq!(forgotten(&|| fill(b)), 0);
    assert_eq!(
        forgotten(&|| {
            flush(a, RAM, 12, Rights::W);
        }),
        1
    );
    let again = || map(sigma0, a, RAM, RAM, 12, Rights::RWX).expect("it can pay");
    assert_eq!(forgotten(&again), 1, "a page that was read-only may be cached as such");
    assert_eq!(
        forgotten(&|| {
            flush(b, RAM, 14, Rights::RWX);
        }),
        0,
        "not the current space"
    );
    assert_eq!(
        forgotten(&|| {
            flush(a, RAM, 14, Rights::RWX);
        }),
        4
    );
}

#[test]
fn the_tree_is_listed_in_preorder() {
    let machine = Machine::new(3, 200, false);
    let [sigma0, a, b, c] = machine.spaces[..] else { panic!("four spaces") };
    map(sigma0, a, RAM, RAM, 21, Rights::RWX).expect("it can pay");
    map(a, b, RAM + 0x3000, 0x3000, 12, Rights::RX).expect("it can pay");
    map(b, c, 0x3000, 0x9000, 12, Rights::R).expect("it can pay");
    map(a, c, RAM + 0x3000, 0x5000, 12, Rights::RW).expect("it can pay");
    map(a, c, RAM + 0x4000, 0x6000, 12, Rights::RW).expect("it can pay");
    let record = |depth, space, vaddr, bits, rights| Record { depth, space, vaddr, bits, rights };
    let listed: Vec<_> = Tree::of(sigma0, RAM + 0x3000).collect();
    assert_eq!(
        listed,
        [
            record(0, 1, RAM + 0x3000, 21, Rights::RWX),
            record(1, 2, RAM + 0x3000, 21, Rights::RWX),
            record(2, 4, 0x5000, 12, Rights::RW),
            record(2, 3, 0x3000, 12, Rights::RX),
            record(3, 4, 0x9000, 12, Rights::R),
        ]
    );
}

#[test]
fn a_grant_into_a_smaller_window_takes_the_whole_flexpage() {
    let machine = Machine::new(2, 200, true);
    let [sigma0, a, b] = machine.spaces[..] else { panic!("three spaces") };
    map(sigma0, a, RAM, RAM, 16, Rights::RWX).expect("it can pay");
    let item = MapItem::grant(page(RAM, 16, Rights::RWX), 0x3000);
    MapJob::new(a, b, item, page(0x1000, 12, Rights::NONE), marker()).finish().expect("it can pay");
    assert_eq!(b.page(0x1000).map(|page| page.phys), Some(RAM + 0x3000));
    assert_eq!((a.nodes(), b.nodes()), (0, 1));
    assert_eq!(machine.violations(false), []);
}
