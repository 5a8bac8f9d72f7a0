//! Process-context ids: more spaces than the processor has ids for.

use crate::common::Machine;
use kernel::arch::hardware;
use kernel::arch::x86_64::mem::pcid::COUNT;
use kernel::mem::root::{enable_tags, on_change};
use kernel::mem::{AddressSpace, SpaceRef};

#[test]
fn the_running_space_leaves_a_pcid_that_is_stolen_from_it() {
    let machine = Machine::new(0, 0, false);
    enable_tags();
    let running = AddressSpace::create(2, &machine.bank, 2).expect("frames suffice");
    hardware::load(running.root().word().value());
    let own = running.root().pcid();
    assert_ne!(own, 0);
    let mut id = 3;
    let thief = loop {
        let space = AddressSpace::create(id, &machine.bank, 2).expect("frames suffice");
        if space.root().pcid() == own {
            break space;
        }
        id += 1;
        assert!((id as usize) < 2 * COUNT, "nobody ever got PCID {own}");
    };
    assert_eq!(running.root().pcid(), 0);
    assert_eq!(
        hardware::loaded(),
        running.root().word().value(),
        "the processor still caches the loser's pages as the thief's"
    );
    assert_ne!(thief.root().word().value() & 0xFFF, hardware::loaded() & 0xFFF);
}

thread_local! {
    static LOSERS: std::cell::RefCell<Vec<u32>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[test]
fn a_stolen_pcid_is_announced() {
    let machine = Machine::new(0, 0, false);
    enable_tags();
    on_change(|space| LOSERS.with(|list| list.borrow_mut().push(space.id())));
    let create = |id| AddressSpace::create(id, &machine.bank, 2).expect("the pool is fresh");
    let word = |space: &SpaceRef| space.root().word().value();
    let table = |space: &SpaceRef| space.root().table().address();
    let spaces: Vec<_> = (1..COUNT as u32).map(create).collect();
    assert!(
        spaces
            .iter()
            .all(|space| word(space) == table(space) | u64::from(space.root().pcid()) | 1 << 63)
    );
    let before = hardware::invalidations();
    let last = create(5000);
    assert!(hardware::invalidations() > before, "the loser's translations are flushed");
    assert_eq!(LOSERS.with(|list| list.borrow().clone()), [1]);
    assert_eq!((spaces[0].root().pcid(), word(&spaces[0])), (0, table(&spaces[0])));
    assert_eq!(last.root().pcid(), 1);
    spaces[6].free(&machine.bank);
    assert_eq!(create(5001).root().pcid(), 7, "a free one nearby");
    hardware::load(word(&spaces[7]));
    assert_eq!(create(5002).root().pcid(), 8, "the next in turn");
    assert_eq!(hardware::loaded(), table(&spaces[7]), "the loser runs on without it");
}
