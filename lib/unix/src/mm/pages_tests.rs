//! Tests of the pages of an address space.

extern crate std;
use super::*;
use alloc::collections::BTreeMap;

fn page(number: u32) -> Page {
    Page::new(FrameId(number), Page::READABLE)
}

#[test]
fn agrees_with_a_map_under_random_use() {
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    let (mut pages, mut model) = (PageMap::default(), BTreeMap::new());
    for step in 0..20_000 {
        let address = (random() % 600) * PAGE as u64 + (random() % 3 << 40);
        match random() % 10 {
            0 => {
                let end = address + random() % 200 * PAGE as u64;
                let mut taken = std::vec::Vec::new();
                pages.remove(address, end, |at, page| taken.push((at, page)));
                let expected: std::vec::Vec<_> =
                    model.range(address..end).map(|(at, page)| (*at, *page)).collect();
                assert_eq!(taken, expected);
                model.retain(|at, _| *at < address || *at >= end);
            }
            _ => {
                let new = page(step);
                let old = pages.insert(address, new, |_| Ok(())).unwrap();
                assert_eq!(old, model.insert(address, new));
            }
        }
        let probe = (random() % 600) * PAGE as u64;
        let end = probe + random() % 300 * PAGE as u64 + (random() % 2 << 40);
        assert_eq!(pages.first_in(probe, end), model.range(probe..end).next().map(|(at, _)| *at));
        assert_eq!(pages.get(probe), model.get(&probe).copied());
        assert_eq!(pages.resident(), model.len());
    }
    let mut all = std::vec::Vec::new();
    pages.for_each(0, USER_END, |at, page| all.push((at, page)));
    assert_eq!(all, model.into_iter().collect::<std::vec::Vec<_>>());
}

#[test]
fn takes_any_address() {
    let pages = PageMap::default();
    assert_eq!(pages.get(u64::MAX & !4095), None);
    assert_eq!(pages.get(0), None);
}

#[test]
fn knows_which_neighbours_are_there() {
    let mut pages = PageMap::default();
    pages.insert(0x10000, page(1), |_| Ok(())).unwrap();
    pages.insert(0x13000, page(2), |_| Ok(())).unwrap();
    pages.insert(0x20000, page(3), |_| Ok(())).unwrap();
    assert_eq!(pages.window(0x10000), 0b1001);
    assert_eq!(pages.window(0x20000), 1);
    assert_eq!(pages.window(0x30000), 0);
}

#[test]
fn a_fork_changes_both() {
    let mut pages = PageMap::default();
    pages.insert(0x10000, page(1).with(Page::WRITABLE), |_| Ok(())).unwrap();
    let copy = pages.fork(|_, page| (page.without(Page::WRITABLE), page)).unwrap();
    assert!(!pages.get(0x10000).unwrap().has(Page::WRITABLE));
    assert!(copy.get(0x10000).unwrap().has(Page::WRITABLE));
    assert_eq!(copy.get(0x10000).unwrap().frame(), FrameId(1));
}
