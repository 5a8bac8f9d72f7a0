//! Memory that two address spaces have: copies on write, and shared for good.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::Access;
use unix::mm::AddressSpace;

use super::{PAGE, PRIVATE, RW, SHARED, map, mapped, touch};
use crate::common::World;

#[test]
fn a_fork_copies_on_write() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, 2 * PAGE, RW, PRIVATE);
    world.write(first, at, b"parent");
    touch(&world, first, at, Access::WRITE);
    let before = world.unix.memory.available();
    let parent = first.process().space();
    let child = AddressSpace::fork(&world.unix, &parent).unwrap();
    assert_eq!(world.unix.memory.available(), before);
    assert_eq!(mapped(&world, at), Some(Access::READ));
    let read = |space: &Rc<AddressSpace>| {
        let mut bytes = [0; 6];
        let memory = unix::user::UserMemory::new(&world.unix, space.clone());
        memory.read_bytes(at, &mut bytes).unwrap();
        bytes
    };
    unix::user::UserMemory::new(&world.unix, child.clone()).write_bytes(at, b"child!").unwrap();
    assert_eq!(world.unix.memory.available(), before - 1);
    assert_eq!((read(&parent), read(&child)), (*b"parent", *b"child!"));
    // The parent has its page for itself again: no copy.
    assert_eq!(touch(&world, first, at, Access::WRITE), Some(Access::READ | Access::WRITE));
    assert_eq!(world.unix.memory.available(), before - 1);
    let spaces = world.machine.spaces.borrow().len();
    child.retire(&world.unix);
    drop(child);
    assert_eq!(world.unix.memory.available(), before);
    assert_eq!(world.machine.spaces.borrow().len(), spaces - 1);
}

#[test]
fn a_fault_on_a_shared_frame_maps_the_copy() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, PAGE, RW, PRIVATE);
    world.write(first, at, b"x");
    touch(&world, first, at, Access::WRITE);
    let space = first.process().space();
    let child = AddressSpace::fork(&world.unix, &space).unwrap();
    let old = space.frame_for(&world.unix, at, false).unwrap();
    assert_eq!(touch(&world, first, at, Access::READ), Some(Access::READ));
    assert_eq!(touch(&world, first, at, Access::WRITE), Some(Access::READ | Access::WRITE));
    let new = world.machine.mapping(space.machine(), at).unwrap().frame;
    assert_ne!(new, old);
    assert_eq!(child.frame_for(&world.unix, at, false), Ok(old));
    // A call that writes the other side's page takes the stale mapping away.
    drop(child);
}

/// A thread on another processor goes on while the fault is answered: until the copy is there
/// it must not use a frame that the other side owns, who may write it or give it back.
#[test]
fn threads_elsewhere_lose_a_frame_that_is_copied() {
    for (processors, taken) in [(1, false), (2, true)] {
        let world = World::with_processors(processors);
        let first = &world.first;
        let flags = u64::from(l::CLONE_VM | l::CLONE_SIGHAND | l::CLONE_THREAD);
        world.ok(first, l::__NR_clone, &[flags, 0x5000, 0, 0, 0]);
        let at = map(&world, 0, PAGE, RW, PRIVATE);
        world.write(first, at, b"x");
        touch(&world, first, at, Access::WRITE);
        let space = first.process().space();
        let child = AddressSpace::fork(&world.unix, &space).unwrap();
        let old = space.frame_for(&world.unix, at, false).unwrap();
        world.machine.revoked.borrow_mut().clear();
        touch(&world, first, at, Access::WRITE);
        let revoked = world.machine.revoked.borrow().contains(&(old, Access::all()));
        assert_eq!(revoked, taken, "{processors} processors");
        assert_ne!(world.machine.mapping(space.machine(), at).unwrap().frame, old);
        drop(child);
    }
}

#[test]
fn a_call_that_copies_a_page_takes_the_old_mapping_away() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, PAGE, RW, PRIVATE);
    world.write(first, at, b"x");
    let child = AddressSpace::fork(&world.unix, &first.process().space()).unwrap();
    touch(&world, first, at, Access::READ);
    assert!(mapped(&world, at).is_some());
    world.write(first, at, b"y");
    assert_eq!(mapped(&world, at), None);
    drop(child);
}

#[test]
fn shared_memory_is_shared_and_freed_by_the_last() {
    let world = World::new();
    let first = &world.first;
    let before = world.unix.memory.available();
    let at = map(&world, 0, PAGE, RW, SHARED);
    let parent = first.process().space();
    let child = AddressSpace::fork(&world.unix, &parent).unwrap();
    unix::user::UserMemory::new(&world.unix, child.clone()).write_bytes(at, b"seen").unwrap();
    assert_eq!(world.read(first, at, 4), b"seen");
    assert_eq!(world.unix.memory.available(), before - 1);
    world.ok(first, l::__NR_munmap, &[at, PAGE]);
    assert_eq!(world.unix.memory.available(), before - 1);
    child.retire(&world.unix);
    assert_eq!(world.unix.memory.available(), before);
}

#[test]
fn advice_about_forks_is_followed() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, 3 * PAGE, RW, PRIVATE);
    world.write(first, at, &[7; 3 * PAGE as usize]);
    world.ok(first, l::__NR_madvise, &[at, PAGE, l::MADV_DONTFORK.into()]);
    world.ok(first, l::__NR_madvise, &[at + PAGE, PAGE, l::MADV_WIPEONFORK.into()]);
    let child = AddressSpace::fork(&world.unix, &first.process().space()).unwrap();
    let memory = unix::user::UserMemory::new(&world.unix, child.clone());
    assert_eq!(memory.read::<u8>(at), Err(Errno::EFAULT));
    assert_eq!(memory.read::<u8>(at + PAGE), Ok(0));
    assert_eq!(memory.read::<u8>(at + 2 * PAGE), Ok(7));
    drop(memory);
    child.retire(&world.unix);
}

#[test]
fn shared_memory_can_be_mapped_twice_by_mremap() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, PAGE, RW, SHARED);
    let may_move = u64::from(l::MREMAP_MAYMOVE);
    let twin = world.ok(first, l::__NR_mremap, &[at, 0, PAGE, may_move]);
    world.write(first, at, b"both");
    assert_eq!(world.read(first, twin, 4), b"both");
}

#[test]
fn pages_of_a_mapping_change_places() {
    let world = World::new();
    let first = &world.first;
    let name = world.text(first, "file");
    let file = world.ok(first, l::__NR_open, &[name, 0o102, 0o600]);
    for page in 0..4 {
        let text = world.put(first, &[page; PAGE as usize]);
        world.ok(first, l::__NR_write, &[file, text, PAGE]);
    }
    let shared = l::MAP_SHARED.into();
    let of_file = world.ok(first, l::__NR_mmap, &[0, 4 * PAGE, 3, shared, file, 0]);
    let flags = (l::MAP_SHARED | l::MAP_ANONYMOUS).into();
    let nameless = world.ok(first, l::__NR_mmap, &[0, 4 * PAGE, 3, flags, u64::MAX, 0]);
    for page in 0..4 {
        world.write(first, nameless + page * PAGE, &[page as u8; 8]);
    }
    for at in [of_file, nameless] {
        let turn = |page: u64, len: u64, to: u64| [at + page * PAGE, len * PAGE, 0, to, 0];
        world.ok(first, l::__NR_remap_file_pages, &turn(0, 2, 2));
        world.ok(first, l::__NR_remap_file_pages, &turn(3, 1, 0));
        // Over what are several mappings now.
        let pages = [0, 1, 2, 3].map(|page| world.read(first, at + page * PAGE, 1)[0]);
        assert_eq!(pages, [2, 3, 2, 0]);
        world.write(first, at + 3 * PAGE, &[9]);
        world.ok(first, l::__NR_remap_file_pages, &turn(0, 4, 0));
        let pages = [0, 1, 2, 3].map(|page| world.read(first, at + page * PAGE, 1)[0]);
        assert_eq!(pages, [9, 1, 2, 3]);
        for bad in [turn(0, 0, 0), turn(3, 2, 0), turn(0, 1, u64::MAX)] {
            world.refused(first, l::__NR_remap_file_pages, &bad, Errno::EINVAL);
        }
        let with_rights = [at, PAGE, 1, 0, 0];
        world.refused(first, l::__NR_remap_file_pages, &with_rights, Errno::EINVAL);
    }
    // Memory without a name has an end; memory that is not shared has no other pages.
    let behind = [nameless, PAGE, 0, 4, 0];
    world.refused(first, l::__NR_remap_file_pages, &behind, Errno::EINVAL);
    let own = map(&world, 0, PAGE, RW, PRIVATE);
    world.refused(first, l::__NR_remap_file_pages, &[own, PAGE, 0, 0, 0], Errno::EINVAL);
    world.refused(first, l::__NR_remap_file_pages, &[0, PAGE, 0, 0, 0], Errno::EINVAL);
}
