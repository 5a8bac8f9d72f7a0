//! How much kernel memory programs' spaces have (`docs/decisions/0114`).

use unix::machine::SPACE_PAGES;

use crate::common::World;

/// A thousand small processes fit because none is given what a large one may need.
#[test]
fn children_have_as_much_kernel_memory_as_their_parents_and_no_more() {
    let world = World::new();
    let first = &world.first;
    let latest = || world.machine.kernel_pages.get();
    world.fork(first);
    assert_eq!(latest(), SPACE_PAGES);
    let more = world.unix.more_kernel_memory(first);
    assert_eq!(more, Some(SPACE_PAGES / 2));
    let child = world.fork(first);
    assert_eq!(latest(), SPACE_PAGES + SPACE_PAGES / 2);
    // Half of what it has: however much a program needs, it does not ask often.
    assert_eq!(world.unix.more_kernel_memory(&child), Some((SPACE_PAGES + SPACE_PAGES / 2) / 2));
}

/// CPython's `test_multiprocessing_fork`: the ninetieth child of one that had grown found no kernel memory.
#[test]
fn a_child_of_a_large_program_has_a_small_ones_kernel_memory() {
    let world = World::new();
    let first = &world.first;
    (0..10).for_each(|_| assert!(world.unix.more_kernel_memory(first).is_some()));
    let child = world.fork(first);
    assert_eq!(world.machine.kernel_pages.get(), 128);
    assert_eq!(world.unix.more_kernel_memory(&child), Some(64));
}
