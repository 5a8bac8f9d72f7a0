//! Limits of processes, and memory that is used up.

use std::rc::Rc;

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::{Access, Reply};
use unix::mm::AddressSpace;

use super::{BASE, FIXED, NONE, PAGE, PRIVATE, RW, SHARED, map};
use crate::common::World;

#[test]
fn limits_hold() {
    let world = World::new();
    let first = &world.first;
    map(&world, BASE, 8 * PAGE, RW, PRIVATE);
    first.process().limits.borrow_mut()[l::RLIMIT_AS as usize].0 = 10 * PAGE;
    let mmap = |len, prot| [0, len, prot, PRIVATE, NONE, 0];
    world.refused(first, l::__NR_mmap, &mmap(3 * PAGE, RW), Errno::ENOMEM);
    world.ok(first, l::__NR_mmap, &mmap(2 * PAGE, RW));
    first.process().limits.borrow_mut()[l::RLIMIT_AS as usize].0 = u64::MAX;
    first.process().limits.borrow_mut()[l::RLIMIT_DATA as usize].0 = 11 * PAGE;
    world.refused(first, l::__NR_mmap, &mmap(2 * PAGE, RW), Errno::ENOMEM);
    world.ok(first, l::__NR_mmap, &mmap(2 * PAGE, 1));
}

#[test]
fn without_memory_calls_fail_and_the_server_lives() {
    let world = World::with_frames(256);
    let first = &world.first;
    let at = map(&world, 0, 250 * PAGE, RW, PRIVATE);
    let space = first.process().space();
    let mut got = 0;
    while space.frame_for(&world.unix, at + got * PAGE, true).is_ok() {
        got += 1;
    }
    assert!(got > 100 && got < 250);
    assert_eq!(space.frame_for(&world.unix, at + got * PAGE, true), Err(Errno::ENOMEM));
    world.ok(first, l::__NR_munmap, &[at, 250 * PAGE]);
    assert!(world.unix.memory.available() > 200);
}

#[test]
fn random_calls_keep_the_books() {
    let world = World::with_frames(4096);
    let first = &world.first;
    let before = world.unix.memory.available();
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut forks: Vec<Rc<AddressSpace>> = Vec::new();
    for _ in 0..20_000 {
        let (at, len) = (BASE + random(64) * PAGE, random(16) * PAGE);
        let prot = random(8);
        match random(9) {
            0 | 1 => {
                let flags = [PRIVATE, SHARED][random(2) as usize] | FIXED;
                world.now(first, l::__NR_mmap, &[at, len, prot, flags, NONE, 0]);
            }
            2 => drop(world.now(first, l::__NR_munmap, &[at, len])),
            3 => drop(world.now(first, l::__NR_mprotect, &[at, len, prot])),
            4 => {
                let to = BASE + random(64) * PAGE;
                world.now(first, l::__NR_mremap, &[at, len, random(16) * PAGE, random(8), to]);
            }
            5 => drop(world.now(first, l::__NR_madvise, &[at, len, random(26)])),
            6 if forks.len() < 3 => {
                forks.push(AddressSpace::fork(&world.unix, &first.process().space()).unwrap());
            }
            7 if !forks.is_empty() => {
                let fork = forks.swap_remove(random(forks.len() as u64) as usize);
                for page in 0..64 {
                    let _ = fork.frame_for(&world.unix, BASE + page * PAGE, page % 2 == 0);
                }
                fork.retire(&world.unix);
            }
            _ => {
                let space = first.process().space();
                for _ in 0..8 {
                    let write = random(2) == 0;
                    let _ = space.frame_for(&world.unix, BASE + random(80) * PAGE, write);
                }
            }
        }
    }
    forks.drain(..).for_each(|fork| fork.retire(&world.unix));
    for area in first.process().space().areas() {
        world.ok(first, l::__NR_munmap, &[area.start, area.end - area.start]);
    }
    world.unix.mm.bury(&world.unix);
    assert_eq!(world.unix.memory.available(), before);
    assert_eq!(first.process().space().resident(), 0);
}

#[test]
fn the_greediest_process_dies_when_memory_is_used_up() {
    let world = World::with_frames(512);
    let (hog, modest) = (world.fork(&world.first), world.fork(&world.first));
    let noreserve = PRIVATE | u64::from(l::MAP_NORESERVE);
    let at = world.ok(&hog, l::__NR_mmap, &[0, 1 << 24, RW, noreserve, NONE, 0]);
    for page in 0..800 {
        world.unix.page_fault(&hog, at + page * PAGE * 5, Access::WRITE);
        world.collect();
        assert_eq!(world.next_event(&hog), Some(Reply::Mapped));
        // A few more than the 104 that programs leave.
        if world.unix.memory.available() <= 110 {
            break;
        }
    }
    let at = world.ok(&modest, l::__NR_mmap, &[0, 1 << 20, RW, PRIVATE, NONE, 0]);
    for page in 0..20 {
        world.unix.page_fault(&modest, at + page * PAGE * 3, Access::WRITE);
        world.collect();
        assert_eq!(world.next_event(&modest), Some(Reply::Mapped), "page {page}");
    }
    assert_eq!(hog.process().ended.get(), Some(l::SIGKILL));
    assert_eq!(modest.process().ended.get(), None);
    assert!(world.machine.log.borrow().iter().any(|line| line.contains("memory is used up")));
}
