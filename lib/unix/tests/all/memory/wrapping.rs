//! Addresses and lengths whose sum is no address: refused, and nothing is touched.

use linux_raw_sys::general as l;
use unix::errno::Errno;
use unix::machine::Access;
use unix::mm::USER_END;

use super::{BASE, FIXED, NONE, PAGE, PRIVATE, RW, map};
use crate::common::World;

/// Where the area is that no call names.
const WITNESS: u64 = 0x5000_0000;
const MAY_MOVE: u64 = l::MREMAP_MAYMOVE as u64;
const MOVE_FIXED: u64 = (l::MREMAP_MAYMOVE | l::MREMAP_FIXED) as u64;

/// The areas of process 1: start, end, rights.
fn areas(world: &World) -> Vec<(u64, u64, Access)> {
    let areas = world.first.process().space().areas();
    areas.iter().map(|area| (area.start, area.end, area.access)).collect()
}

#[test]
fn mremap_of_a_range_that_wraps_unmaps_nothing() {
    let world = World::new();
    map(&world, BASE, 2 * PAGE, RW, PRIVATE);
    map(&world, WITNESS, PAGE, RW, PRIVATE);
    let before = areas(&world);
    let to = 0x6000_0000;
    for old in [u64::MAX - 4095, u64::MAX - BASE + 1, USER_END, USER_END - BASE + PAGE, 1 << 63] {
        for new in [PAGE, 2 * PAGE, 0_u64.wrapping_sub(BASE + PAGE), 0_u64.wrapping_sub(BASE)] {
            if new >= old {
                continue;
            }
            for (flags, to) in [(0, 0), (MAY_MOVE, 0), (MOVE_FIXED, to), (MOVE_FIXED, WITNESS)] {
                let args = [BASE, old, new, flags, to];
                world.refused(&world.first, l::__NR_mremap, &args, Errno::EINVAL);
                assert_eq!(areas(&world), before, "{args:x?}");
            }
        }
    }
    // What lies behind the area up to the last address can go, as on Linux.
    world.ok(&world.first, l::__NR_mremap, &[BASE, USER_END - BASE, PAGE, 0, 0]);
    assert_eq!(areas(&world), [(BASE, BASE + PAGE, Access::READ | Access::WRITE)]);
}

#[test]
fn no_length_reaches_what_no_call_names() {
    let world = World::new();
    map(&world, WITNESS, PAGE, RW, PRIVATE);
    let witness = (WITNESS, WITNESS + PAGE, Access::READ | Access::WRITE);
    let starts = [0, BASE, BASE + PAGE, USER_END - PAGE, USER_END, 1 << 63, u64::MAX - 4095];
    let negative = |of: u64| 0_u64.wrapping_sub(of);
    let lengths = [
        USER_END + PAGE,
        1 << 50,
        1 << 63,
        negative(BASE),
        negative(BASE + PAGE),
        negative(PAGE),
        negative(2 * PAGE),
        u64::MAX,
    ];
    for start in starts {
        for length in lengths {
            map(&world, BASE, 2 * PAGE, RW, PRIVATE | FIXED);
            let first = &world.first;
            for prot in [0, RW] {
                world.now(first, l::__NR_mmap, &[start, length, prot, PRIVATE | FIXED, NONE, 0]);
                world.now(first, l::__NR_mmap, &[start, length, prot, PRIVATE, NONE, 0]);
                world.now(first, l::__NR_mprotect, &[start, length, prot]);
            }
            world.now(first, l::__NR_munmap, &[start, length]);
            for other in [PAGE, length, USER_END] {
                for flags in 0..8 {
                    for to in starts {
                        world.now(first, l::__NR_mremap, &[start, length, other, flags, to]);
                        world.now(
                            first,
                            l::__NR_mremap,
                            &[start, other.min(PAGE), length, flags, to],
                        );
                    }
                }
            }
            for advice in [4, 8, 10, 18] {
                world.now(first, l::__NR_madvise, &[start, length, advice]);
            }
            for number in [l::__NR_mlock, l::__NR_munlock, l::__NR_mlock2] {
                world.now(first, number, &[start, length, 0]);
            }
            world.now(first, l::__NR_msync, &[start, length, 4]);
            world.now(first, l::__NR_mincore, &[start, length, BASE]);
            world.now(first, l::__NR_brk, &[length]);
            world.now(first, l::__NR_futex, &[start.wrapping_add(length), 1, 1]);
            assert!(
                areas(&world).contains(&witness),
                "{start:#x} {length:#x}: {:x?}",
                areas(&world)
            );
        }
    }
}
