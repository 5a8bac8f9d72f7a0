//! Address spaces: the calls on memory, faults, copy on write, what is left when memory is
//! short.

mod forks;
mod limits;
mod many;
mod sharing;
mod wrapping;

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::{Access, Reply};
use unix::thread::Thread;

const PAGE: u64 = 4096;
const RW: u64 = 3;
const PRIVATE: u64 = (l::MAP_PRIVATE | l::MAP_ANONYMOUS) as u64;
const SHARED: u64 = (l::MAP_SHARED | l::MAP_ANONYMOUS) as u64;
const FIXED: u64 = l::MAP_FIXED as u64;
const NONE: u64 = u64::MAX;
const BASE: u64 = 0x1000_0000;

fn map(world: &World, address: u64, len: u64, prot: u64, flags: u64) -> u64 {
    world.ok(&world.first, l::__NR_mmap, &[address, len, prot, flags, NONE, 0])
}

/// The program of `thread` touches an address; what it may then do with the page.
fn touch(world: &World, thread: &Rc<Thread>, address: u64, access: Access) -> Option<Access> {
    world.unix.page_fault(thread, address, access);
    world.collect();
    match world.next_event(thread) {
        Some(Reply::Mapped) => {}
        _ => return None,
    }
    let space = thread.process().space().machine();
    Some(world.machine.mapping(space, address & !(PAGE - 1)).expect("nothing was mapped").access)
}

fn mapped(world: &World, address: u64) -> Option<Access> {
    let space = world.first.process().space().machine();
    world.machine.mapping(space, address).map(|mapping| mapping.access)
}

#[test]
fn mappings_are_placed_as_asked_or_from_the_top_down() {
    let world = World::new();
    let first = map(&world, 0, PAGE, RW, PRIVATE);
    let second = map(&world, 0, 3 * PAGE, RW, PRIVATE);
    assert_eq!(second, first - 3 * PAGE);
    assert_eq!(map(&world, BASE, 1, RW, PRIVATE), BASE);
    // A hint that is taken is not followed.
    assert_eq!(map(&world, BASE, 1, RW, PRIVATE), second - PAGE);
    assert_eq!(map(&world, BASE, 1, 0, PRIVATE | FIXED), BASE);
    let noreplace = u64::from(l::MAP_FIXED_NOREPLACE);
    let first = &world.first;
    let args = [BASE, PAGE, RW, PRIVATE | noreplace, NONE, 0];
    world.refused(first, l::__NR_mmap, &args, Errno::EEXIST);
    let low = map(&world, 0, PAGE, RW, PRIVATE | 0x40);
    assert!(low < 0x8000_0000);
}

#[test]
fn mmap_refuses_as_linux_does() {
    let world = World::new();
    let mmap = |args: [u64; 6], errno| world.refused(&world.first, l::__NR_mmap, &args, errno);
    mmap([0, 0, RW, PRIVATE, NONE, 0], Errno::EINVAL);
    mmap([0, PAGE, RW, PRIVATE, NONE, 1], Errno::EINVAL);
    mmap([0, u64::MAX, RW, PRIVATE, NONE, 0], Errno::ENOMEM);
    mmap([0, 1 << 47, RW, PRIVATE, NONE, 0], Errno::ENOMEM);
    mmap([BASE + 1, PAGE, RW, PRIVATE | FIXED, NONE, 0], Errno::EINVAL);
    mmap([0, PAGE, RW, PRIVATE | FIXED, NONE, 0], Errno::EPERM);
    mmap([0x7fff_f000_0000, PAGE, RW, PRIVATE | FIXED, NONE, 0], Errno::ENOMEM);
    mmap([u64::MAX - 4095, PAGE, RW, PRIVATE | FIXED, NONE, 0], Errno::ENOMEM);
    mmap([0, PAGE, RW, u64::from(l::MAP_ANONYMOUS), NONE, 0], Errno::EINVAL);
    mmap([0, PAGE, RW, u64::from(l::MAP_PRIVATE), 77, 0], Errno::EBADF);
    // More than there is memory.
    mmap([0, 1 << 40, RW, PRIVATE, NONE, 0], Errno::ENOMEM);
    map(&world, 0, 1 << 40, RW, PRIVATE | u64::from(l::MAP_NORESERVE));
    map(&world, 0, 1 << 40, 0, PRIVATE);
}

#[test]
fn fresh_memory_is_zero_and_keeps_what_is_written() {
    let world = World::new();
    let at = map(&world, 0, 2 * PAGE, RW, PRIVATE);
    assert_eq!(world.read(&world.first, at, 2 * PAGE as usize), vec![0; 2 * PAGE as usize]);
    world.write(&world.first, at + PAGE - 2, b"over");
    assert_eq!(world.read(&world.first, at + PAGE - 2, 4), b"over");
}

#[test]
fn memory_that_is_unmapped_is_given_back() {
    let world = World::new();
    let before = world.unix.memory.available();
    let at = map(&world, 0, 64 * PAGE, RW, PRIVATE);
    for page in 0..64 {
        touch(&world, &world.first, at + page * PAGE, Access::WRITE);
    }
    assert_eq!(world.unix.memory.available(), before - 64);
    world.ok(&world.first, l::__NR_munmap, &[at + PAGE, 62 * PAGE]);
    assert_eq!(world.unix.memory.available(), before - 2);
    assert_eq!(mapped(&world, at + PAGE), None);
    assert!(mapped(&world, at).is_some());
    world.ok(&world.first, l::__NR_munmap, &[at, 64 * PAGE]);
    assert_eq!(world.unix.memory.available(), before);
    for (start, len) in [(at + 1, PAGE), (at, 0), (0x7fff_f000_0000, PAGE), (0, u64::MAX)] {
        world.refused(&world.first, l::__NR_munmap, &[start, len], Errno::EINVAL);
    }
}

#[test]
fn a_fault_maps_what_is_there_around_it() {
    let world = World::new();
    let at = map(&world, BASE, 16 * PAGE, RW, PRIVATE);
    world.write(&world.first, at + 3 * PAGE, b"x");
    world.write(&world.first, at + 5 * PAGE, b"x");
    assert_eq!(touch(&world, &world.first, at, Access::READ), Some(Access::READ | Access::WRITE));
    assert!(mapped(&world, at + 3 * PAGE).is_some());
    assert!(mapped(&world, at + 5 * PAGE).is_some());
    assert_eq!(mapped(&world, at + 4 * PAGE), None);
}

#[test]
fn memory_touched_in_order_comes_several_pages_at_a_time() {
    let world = World::new();
    let at = map(&world, BASE, 64 * PAGE, RW, PRIVATE);
    let mut faults = 0;
    for page in 0..64 {
        if mapped(&world, at + page * PAGE).is_none() {
            touch(&world, &world.first, at + page * PAGE, Access::WRITE);
            faults += 1;
        }
    }
    assert!(faults <= 12, "{faults} faults for 64 pages");
    assert_eq!(world.first.process().space().resident(), 64);
}

#[test]
fn rights_are_taken_and_given() {
    let world = World::new();
    let at = map(&world, 0, 3 * PAGE, RW, PRIVATE);
    let first = &world.first;
    world.write(first, at + PAGE, b"kept");
    touch(&world, first, at + PAGE, Access::WRITE);
    world.ok(first, l::__NR_mprotect, &[at + PAGE, PAGE, 1]);
    assert_eq!(mapped(&world, at + PAGE), Some(Access::READ));
    let space = first.process().space();
    assert_eq!(space.frame_for(&world.unix, at + PAGE, true), Err(Errno::EFAULT));
    assert_eq!(world.read(first, at + PAGE, 4), b"kept");
    world.ok(first, l::__NR_mprotect, &[at + PAGE, PAGE, 0]);
    assert_eq!(mapped(&world, at + PAGE), None);
    assert_eq!(space.frame_for(&world.unix, at + PAGE, false), Err(Errno::EFAULT));
    assert_eq!(space.areas().len(), 3);
    world.ok(first, l::__NR_mprotect, &[at, 3 * PAGE, RW]);
    assert_eq!(space.areas().len(), 1);
    assert_eq!(world.read(first, at + PAGE, 4), b"kept");
    world.refused(first, l::__NR_mprotect, &[at + 1, PAGE, RW], Errno::EINVAL);
    world.refused(first, l::__NR_mprotect, &[at, PAGE, 0x40], Errno::EINVAL);
    world.refused(first, l::__NR_mprotect, &[at, 4 * PAGE, 1], Errno::ENOMEM);
    world.refused(first, l::__NR_mprotect, &[at, u64::MAX, 1], Errno::ENOMEM);
    assert_eq!(world.ok(first, l::__NR_mprotect, &[at, 0, 1]), 0);
}

#[test]
fn advice_drops_pages() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, 2 * PAGE, RW, PRIVATE);
    world.write(first, at, &[7; 2 * PAGE as usize]);
    world.ok(first, l::__NR_madvise, &[at, PAGE, l::MADV_DONTNEED.into()]);
    assert_eq!(world.read(first, at, 1), [0]);
    assert_eq!(world.read(first, at + PAGE, 1), [7]);
    let madvise = |args: [u64; 3], errno| world.refused(first, l::__NR_madvise, &args, errno);
    madvise([at + 1, PAGE, 4], Errno::EINVAL);
    madvise([at, PAGE, 999], Errno::EINVAL);
    madvise([at, 3 * PAGE, 4], Errno::ENOMEM);
    madvise([at, u64::MAX, 4], Errno::EINVAL);
    world.ok(first, l::__NR_mlock, &[at, PAGE]);
    madvise([at, PAGE, l::MADV_DONTNEED.into()], Errno::EINVAL);
    let shared = map(&world, 0, PAGE, RW, SHARED);
    madvise([shared, PAGE, l::MADV_FREE.into()], Errno::EINVAL);
}

#[test]
fn the_heap_grows_and_shrinks() {
    let world = World::new();
    let first = &world.first;
    let space = first.process().space();
    let mut layout = space.layout.get();
    layout.heap = (BASE, BASE);
    space.layout.set(layout);
    let brk = |to| world.ok(first, l::__NR_brk, &[to]);
    assert_eq!(brk(0), BASE);
    assert_eq!(brk(BASE + 10), BASE + 10);
    world.write(first, BASE, b"heap");
    assert_eq!(brk(BASE + 5 * PAGE), BASE + 5 * PAGE);
    assert_eq!(space.areas().len(), 1);
    assert_eq!(world.read(first, BASE, 4), b"heap");
    assert_eq!(brk(BASE + PAGE), BASE + PAGE);
    assert_eq!(brk(BASE - 1), BASE + PAGE);
    assert_eq!(brk(u64::MAX), BASE + PAGE);
    map(&world, BASE + 4 * PAGE, PAGE, RW, PRIVATE | FIXED);
    assert_eq!(brk(BASE + 4 * PAGE), BASE + PAGE, "no room for a guard page");
    assert_eq!(brk(BASE + 3 * PAGE), BASE + 3 * PAGE);
    assert_eq!(brk(BASE), BASE);
    first.process().limits.borrow_mut()[l::RLIMIT_DATA as usize].0 = 2 * PAGE;
    assert_eq!(brk(BASE + 3 * PAGE), BASE);
}

#[test]
fn areas_are_moved_grown_and_shrunk() {
    let world = World::new();
    let first = &world.first;
    let may_move = u64::from(l::MREMAP_MAYMOVE);
    let remap = |args: &[u64]| world.ok(first, l::__NR_mremap, args);
    let at = map(&world, BASE, 2 * PAGE, RW, PRIVATE);
    world.write(first, at + PAGE, b"moved");
    assert_eq!(remap(&[at, 2 * PAGE, 4 * PAGE, 0]), at);
    map(&world, BASE + 4 * PAGE, PAGE, 0, PRIVATE | FIXED);
    world.refused(first, l::__NR_mremap, &[at, 4 * PAGE, 8 * PAGE, 0], Errno::ENOMEM);
    let new = remap(&[at, 4 * PAGE, 8 * PAGE, may_move]);
    assert_eq!(world.read(first, new + PAGE, 5), b"moved");
    let space = first.process().space();
    assert_eq!(space.frame_for(&world.unix, at, false), Err(Errno::EFAULT));
    assert_eq!(remap(&[new, 8 * PAGE, 2 * PAGE, 0]), new);
    assert_eq!(space.frame_for(&world.unix, new + 2 * PAGE, false), Err(Errno::EFAULT));
    let fixed = may_move | u64::from(l::MREMAP_FIXED);
    assert_eq!(remap(&[new, 2 * PAGE, 2 * PAGE, fixed, BASE + 16 * PAGE]), BASE + 16 * PAGE);
    assert_eq!(world.read(first, BASE + 17 * PAGE, 5), b"moved");
    let refused = |args: &[u64], errno| world.refused(first, l::__NR_mremap, args, errno);
    let at = BASE + 16 * PAGE;
    refused(&[at + 1, PAGE, PAGE, 0], Errno::EINVAL);
    refused(&[at, PAGE, 0, 0], Errno::EINVAL);
    refused(&[at, PAGE, PAGE, 8], Errno::EINVAL);
    refused(&[at, 9 * PAGE, 10 * PAGE, 0], Errno::EFAULT);
    refused(&[0x5000_0000, PAGE, 2 * PAGE, 0], Errno::EFAULT);
    refused(&[at, 0, PAGE, may_move], Errno::EINVAL);
    refused(&[at, 2 * PAGE, 2 * PAGE, fixed, at + PAGE], Errno::EINVAL);
}

#[test]
fn a_stack_grows_to_its_limit() {
    let world = World::new();
    let first = &world.first;
    let space = first.process().space();
    let down = PRIVATE | FIXED | u64::from(l::MAP_GROWSDOWN);
    let top = 0x4000_0000;
    map(&world, top - PAGE, PAGE, RW, down);
    space.stack_limit.set(1 << 20);
    assert!(touch(&world, first, top - (1 << 20), Access::WRITE).is_some());
    assert_eq!(space.areas()[0].len(), 1 << 20);
    world.unix.page_fault(first, top - (1 << 20) - 1, Access::WRITE);
    world.collect();
    assert_ne!(world.next_event(first), Some(Reply::Mapped));
}

#[test]
fn mincore_tells_what_is_there() {
    let world = World::new();
    let first = &world.first;
    let at = map(&world, 0, 3 * PAGE, RW, PRIVATE);
    world.write(first, at + PAGE, b"x");
    let vector = world.scratch(first, 3);
    world.ok(first, l::__NR_mincore, &[at, 3 * PAGE, vector]);
    assert_eq!(world.read(first, vector, 3), [0, 1, 0]);
    let refused = |args: [u64; 3], errno| world.refused(first, l::__NR_mincore, &args, errno);
    refused([at + 1, PAGE, vector], Errno::EINVAL);
    refused([0x5000_0000, PAGE, vector], Errno::ENOMEM);
    refused([at, PAGE, 0], Errno::EFAULT);
    refused([at, u64::MAX, vector], Errno::ENOMEM);
}
