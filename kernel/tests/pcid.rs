//! Process-context ids: more spaces than the processor has ids for.

mod common;

use common::Machine;
use kernel::arch::hardware;
use kernel::arch::root::enable_tags;
use kernel::arch::x86_64::pcid::COUNT;
use kernel::mem::AddressSpace;

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
