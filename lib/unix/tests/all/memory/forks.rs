//! What a fork copies at once.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::Access;
use unix::mm::AddressSpace;

use super::{PAGE, PRIVATE, RW, map, mapped, touch};
use crate::common::World;

/// The frame of the page at `at`.
fn frame(world: &World, space: &Rc<AddressSpace>, at: u64) -> unix::memory::FrameId {
    space.frame_for(&world.unix, at, false).unwrap()
}

/// Writes into the page at `at` of `space`, as its program does or a call for it.
fn write(world: &World, space: &Rc<AddressSpace>, at: u64, byte: u8) {
    unix::user::UserMemory::new(&world.unix, space.clone()).write_bytes(at, &[byte]).unwrap();
}

fn read(world: &World, space: &Rc<AddressSpace>, at: u64) -> u8 {
    let mut bytes = [0];
    unix::user::UserMemory::new(&world.unix, space.clone()).read_bytes(at, &mut bytes).unwrap();
    bytes[0]
}

/// A fork that has ended again.
fn fork_and_end(
    world: &World,
    space: &Rc<AddressSpace>,
    meanwhile: impl FnOnce(&Rc<AddressSpace>),
) {
    let child = AddressSpace::fork(&world.unix, space).unwrap();
    meanwhile(&child);
    child.retire(&world.unix);
}

#[test]
fn what_was_written_after_a_fork_is_copied_by_the_next() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, 3 * PAGE, RW, PRIVATE);
    let [by_parent, by_child, by_nobody] = [at, at + PAGE, at + 2 * PAGE];
    let space = first.process().space();
    for page in [by_parent, by_child, by_nobody] {
        write(&world, &space, page, 1);
    }
    fork_and_end(&world, &space, |child| {
        touch(&world, first, by_parent, Access::WRITE);
        write(&world, child, by_child, 2);
    });
    let before = world.unix.memory.available();
    world.machine.revoked.borrow_mut().clear();
    let child = AddressSpace::fork(&world.unix, &space).unwrap();
    assert_eq!(world.unix.memory.available(), before - 2);
    assert_eq!(mapped(&world, by_parent), Some(Access::READ | Access::WRITE));
    assert!(world.machine.revoked.borrow().is_empty());
    assert_ne!(frame(&world, &space, by_parent), frame(&world, &child, by_parent));
    assert_ne!(frame(&world, &space, by_child), frame(&world, &child, by_child));
    assert_eq!(frame(&world, &space, by_nobody), frame(&world, &child, by_nobody));
    // Both sides write without a copy, and neither sees it of the other.
    for page in [by_parent, by_child] {
        write(&world, &space, page, 3);
        write(&world, &child, page, 4);
        assert_eq!((read(&world, &space, page), read(&world, &child, page)), (3, 4));
    }
    assert_eq!(world.unix.memory.available(), before - 2);
    child.retire(&world.unix);
    assert_eq!(world.unix.memory.available(), before);
}

/// It took them from all who had them: where processes ran out, each attempt made hundreds of programs fault.
#[test]
fn a_fork_that_gets_no_space_takes_pages_from_nobody() {
    let world = World::new();
    let at = map(&world, 0, 2 * PAGE, RW, PRIVATE);
    let space = world.first.process().space();
    touch(&world, &world.first, at, Access::WRITE);
    let sharer = AddressSpace::fork(&world.unix, &space).unwrap();
    touch(&world, &world.first, at, Access::READ);
    touch(&world, &world.first, at + PAGE, Access::WRITE);
    world.machine.revoked.borrow_mut().clear();
    world.machine.refuses_spaces.set(true);
    let before = world.unix.memory.available();
    assert_eq!(AddressSpace::fork(&world.unix, &space).err(), Some(Errno::EAGAIN));
    world.unix.mm.bury(&world.unix);
    assert!(world.machine.revoked.borrow().is_empty());
    assert_eq!(mapped(&world, at), Some(Access::READ));
    assert_eq!(mapped(&world, at + PAGE), Some(Access::READ | Access::WRITE));
    assert_eq!(world.unix.memory.available(), before);
    sharer.retire(&world.unix);
}

#[test]
fn now_and_then_a_fork_shares_everything_and_learns_anew() {
    let world = World::new();
    let at = map(&world, 0, PAGE, RW, PRIVATE);
    let space = world.first.process().space();
    write(&world, &space, at, 1);
    // Written after the first fork only.
    fork_and_end(&world, &space, |_| write(&world, &space, at, 2));
    let copies = |_| {
        let before = world.unix.memory.available();
        let child = AddressSpace::fork(&world.unix, &space).unwrap();
        let copied = before - world.unix.memory.available();
        child.retire(&world.unix);
        copied
    };
    let copied: Vec<usize> = (1..40).map(copies).collect();
    assert_eq!((&copied[..15], &copied[15..]), (&[1; 15][..], &[0; 24][..]));
}

#[test]
fn a_copy_may_be_written_where_its_area_may() {
    let world = World::new();
    let at = map(&world, 0, PAGE, RW, PRIVATE);
    let space = world.first.process().space();
    write(&world, &space, at, 1);
    fork_and_end(&world, &space, |_| write(&world, &space, at, 2));
    world.ok(&world.first, l::__NR_mprotect, &[at, PAGE, l::PROT_READ.into()]);
    let child = AddressSpace::fork(&world.unix, &space).unwrap();
    assert_ne!(frame(&world, &space, at), frame(&world, &child, at));
    assert_eq!(child.frame_for(&world.unix, at, true), Err(Errno::EFAULT));
    child.retire(&world.unix);
}

#[test]
fn pages_are_copied_at_once_only_while_nobody_writes_them() {
    for (processors, copied) in [(1, 1), (2, 0)] {
        let world = World::with_processors(processors);
        let first = &world.first;
        let flags = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
        world.ok(first, l::__NR_clone, &[flags, 0x5000, 0, 0, 0]);
        let at = map(&world, 0, PAGE, RW, PRIVATE);
        let space = first.process().space();
        write(&world, &space, at, 1);
        fork_and_end(&world, &space, |_| write(&world, &space, at, 2));
        let before = world.unix.memory.available();
        let child = AddressSpace::fork(&world.unix, &space).unwrap();
        assert_eq!(before - world.unix.memory.available(), copied, "{processors} processors");
        child.retire(&world.unix);
    }
}

#[test]
fn a_fork_copies_no_more_than_others_can_wait_for() {
    let world = World::new();
    let at = map(&world, 0, 200 * PAGE, RW, PRIVATE);
    let space = world.first.process().space();
    let write_all = || (0..200).for_each(|page| write(&world, &space, at + page * PAGE, 1));
    write_all();
    fork_and_end(&world, &space, |_| write_all());
    let before = world.unix.memory.available();
    let child = AddressSpace::fork(&world.unix, &space).unwrap();
    assert_eq!(before - world.unix.memory.available(), 64);
    child.retire(&world.unix);
}
