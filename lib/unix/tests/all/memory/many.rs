//! Calls about many areas at once.

use linux_raw_sys::general as l;

use super::PAGE;
use crate::common::World;
use crate::common::caller::{CREAT, Program, RDWR};
use crate::common::effort::Effort;

const COUNT: u64 = 60_000;
/// So far apart that each has a leaf of the page map for itself.
const APART: u64 = 64 * PAGE;
const BASE: u64 = 1 << 40;

/// A page of a file, seen at many places, and its descriptor.
fn scattered<'a>(world: &'a World) -> (Program<'a>, u64) {
    let program = Program::new(world, &world.first);
    let fd = program.opened("/tmp/page", RDWR | CREAT);
    assert_eq!(program.write(fd, &[7; PAGE as usize]), PAGE as i64);
    let flags = l::MAP_SHARED | l::MAP_FIXED | l::MAP_POPULATE;
    for number in 0..COUNT {
        let at = BASE + number * APART;
        let map = [at, PAGE, l::PROT_READ.into(), flags.into(), fd, 0];
        assert_eq!(program.call(l::__NR_mmap, &map), at as i64);
    }
    (program, fd)
}

fn resident(world: &World) -> usize {
    world.first.process().space().resident()
}

#[test]
fn pages_of_many_areas_are_not_needed() {
    let world = World::new();
    let (program, _) = scattered(&world);
    let before = resident(&world);
    let effort = Effort::begin();
    let all = [BASE, COUNT * APART, l::MADV_DONTNEED.into()];
    // There are gaps.
    assert_eq!(program.call(l::__NR_madvise, &all), -12);
    effort.is_less_than(5);
    assert_eq!(before - resident(&world), COUNT as usize);
}

#[test]
fn a_file_that_many_areas_show_is_cut_off() {
    let world = World::new();
    let (program, fd) = scattered(&world);
    let before = resident(&world);
    let effort = Effort::begin();
    assert_eq!(program.call(l::__NR_ftruncate, &[fd, 0]), 0);
    effort.is_less_than(5);
    assert_eq!(before - resident(&world), COUNT as usize);
    // And those that come back are found.
    assert_eq!(program.call(l::__NR_ftruncate, &[fd, PAGE]), 0);
    for number in (0..COUNT).step_by(1000) {
        assert_eq!(world.read(&world.first, BASE + number * APART, 4), [0; 4]);
    }
    assert_eq!(before - resident(&world), COUNT as usize * 999 / 1000);
}

/// Below those that become one there are as many that do not.
#[test]
fn many_areas_become_one() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    let flags = l::MAP_PRIVATE | l::MAP_ANONYMOUS | l::MAP_FIXED_NOREPLACE;
    let map = [BASE, COUNT * PAGE, l::PROT_NONE.into(), flags.into(), u64::MAX, 0];
    assert_eq!(program.call(l::__NR_mmap, &map), BASE as i64);
    let rights = u64::from(l::PROT_READ | l::PROT_WRITE);
    for at in (0..COUNT).step_by(2).map(|number| BASE + number * PAGE) {
        assert_eq!(program.call(l::__NR_mprotect, &[at, PAGE, rights]), 0);
    }
    let count = world.first.process().space().area_count();
    assert!(count >= COUNT as usize);
    let (upper, len) = (BASE + COUNT / 2 * PAGE, COUNT / 2 * PAGE);
    let all_become_one = |number, rest: &[u64]| {
        let effort = Effort::begin();
        assert_eq!(program.call(number, &[&[upper, len], rest].concat()), 0);
        effort.is_less_than(1);
        let now = world.first.process().space().area_count();
        assert_eq!(count - now, COUNT as usize / 2 - 1);
    };
    all_become_one(l::__NR_mprotect, &[rights]);
    // The same with advice.
    let (dump, do_dump) = (u64::from(l::MADV_DONTDUMP), u64::from(l::MADV_DODUMP));
    for at in (0..COUNT / 2).step_by(2).map(|number| upper + number * PAGE) {
        assert_eq!(program.call(l::__NR_madvise, &[at, PAGE, dump]), 0);
    }
    all_become_one(l::__NR_madvise, &[do_dump]);
}

/// Rights are given up to the first gap, or to what cannot have them.
#[test]
fn rights_end_where_they_cannot_be_had() {
    let world = World::new();
    let program = Program::new(&world, &world.first);
    program.make("/tmp/read", &[7; 4096]);
    let fd = program.opened("/tmp/read", 0);
    let flags = l::MAP_PRIVATE | l::MAP_ANONYMOUS | l::MAP_FIXED_NOREPLACE;
    let rights = u64::from(l::PROT_READ | l::PROT_WRITE);
    let map = [BASE, 2 * PAGE, l::PROT_READ.into(), flags.into(), u64::MAX, 0];
    assert_eq!(program.call(l::__NR_mmap, &map), BASE as i64);
    let shared = u64::from(l::MAP_SHARED | l::MAP_FIXED_NOREPLACE);
    let map = [BASE + 2 * PAGE, PAGE, l::PROT_READ.into(), shared, fd, 0];
    assert_eq!(program.call(l::__NR_mmap, &map), (BASE + 2 * PAGE) as i64);
    assert_eq!(program.call(l::__NR_mprotect, &[BASE, 4 * PAGE, rights]), -13);
    world.write(&world.first, BASE + 2 * PAGE - 1, &[1]);
    let none = u64::from(l::PROT_NONE);
    assert_eq!(program.call(l::__NR_mprotect, &[BASE + PAGE, 3 * PAGE, none]), -12);
    let lost = BASE + 2 * PAGE;
    let to = program.opened("/tmp/to", RDWR | CREAT);
    assert_eq!(program.call(l::__NR_write, &[to, lost - PAGE - 1, 1]), 1);
    assert_eq!(program.call(l::__NR_write, &[to, lost - 1, 1]), -14);
    assert_eq!(program.call(l::__NR_write, &[to, lost, 1]), -14);
}
