//! On which node memory is to be: calls as on a Linux with one, and what `/sys` and `/proc` tell of it.

use linux_raw_sys::general as l;
use unix::errno::Errno;

use crate::common::World;
use crate::common::caller::Program;

const PAGE: u64 = 4096;

#[test]
fn policies_are_checked_kept_and_told() {
    let world = World::new();
    let first = &world.first;
    let [one, two, none] = [1, 2, 0].map(|bits| world.words(first, &[bits]));
    let told = world.scratch(first, 16);
    let own = || {
        world.ok(first, l::__NR_get_mempolicy, &[told, told + 8, 64, 0, 0]);
        (world.read_u32(first, told), world.read_u64(first, told + 8))
    };
    assert_eq!(own(), (0, 0));
    let good = [
        (1, one, 1, 1),
        (1, none, 4, 0),
        (2, one, 2, 1),
        (3 | 1 << 15, one, 3 | 1 << 15, 1),
        (2 | 1 << 14, two, 2 | 1 << 14, 1),
        (2 | 1 << 13, one, 2 | 1 << 13, 1),
        (4, 0, 4, 0),
        (5, one, 5, 1),
        (0, 0, 0, 0),
    ];
    for (asked, mask, kept, nodes) in good {
        world.ok(first, l::__NR_set_mempolicy, &[asked, mask, 64]);
        assert_eq!(own(), (kept, nodes), "{asked:#x}");
    }
    let bad = [
        (6, one, 64),
        (0, one, 64),
        (4, one, 64),
        (2, none, 64),
        (2, two, 64),
        (1 | 1 << 15, none, 64),
        (2 | 3 << 14, one, 64),
        (1 | 1 << 13, one, 64),
        (2, one, 0),
        (2, one, 1 << 20),
    ];
    for (asked, mask, count) in bad {
        world.refused(first, l::__NR_set_mempolicy, &[asked, mask, count], Errno::EINVAL);
    }
    world.refused(first, l::__NR_set_mempolicy, &[2, 8, 64], Errno::EFAULT);
}

#[test]
fn a_child_has_its_parents_policy() {
    let world = World::new();
    let first = &world.first;
    let (one, told) = (world.words(first, &[1]), world.scratch(first, 16));
    world.ok(first, l::__NR_set_mempolicy, &[3, one, 64]);
    let child = world.fork(first);
    world.ok(&child, l::__NR_get_mempolicy, &[told, 0, 0, 0, 0]);
    assert_eq!(world.read_u32(&child, told), 3);
    world.ok(&child, l::__NR_get_mempolicy, &[told, 0, 0, 0, 1]);
    world.refused(&child, l::__NR_get_mempolicy, &[told, 0, 0, 0, 5], Errno::EINVAL);
    world.refused(&child, l::__NR_get_mempolicy, &[told, 0, 0, told, 0], Errno::EINVAL);
    world.refused(&child, l::__NR_get_mempolicy, &[told, told, 0, 0, 0], Errno::EINVAL);
    world.ok(&child, l::__NR_get_mempolicy, &[told, told + 8, 64, 0, 4]);
    assert_eq!(world.read_u64(&child, told + 8), 1);
}

#[test]
fn ranges_have_policies_of_their_own() {
    let world = World::new();
    let first = &world.first;
    let program = Program::new(&world, first);
    let one = world.words(first, &[1]);
    let at = world.ok(first, l::__NR_mmap, &[0, 8 * PAGE, 3, 0x22, u64::MAX, 0]);
    world.ok(first, l::__NR_mbind, &[at + PAGE, 2 * PAGE, 2, one, 64, 1]);
    let told = world.scratch(first, 8);
    let mode = |address| {
        world.ok(first, l::__NR_get_mempolicy, &[told, 0, 0, address, 2]);
        world.read_u32(first, told)
    };
    assert_eq!([at, at + PAGE, at + 3 * PAGE].map(mode), [0, 2, 0]);
    world.refused(first, l::__NR_get_mempolicy, &[told, 0, 0, 0, 2], Errno::EFAULT);
    world.write(first, at + PAGE, b"x");
    let maps = String::from_utf8(program.contents("/proc/self/numa_maps")).unwrap();
    let line = format!("{:08x} bind:0 anon=1 N0=1 kernelpagesize_kB=4\n", at + PAGE);
    assert!(maps.contains(&line), "{maps}");
    world.ok(first, l::__NR_set_mempolicy_home_node, &[at + PAGE, 2 * PAGE, 0, 0]);
    world.refused(first, l::__NR_set_mempolicy_home_node, &[at, PAGE, 1, 0], Errno::EINVAL);
    world.ok(first, l::__NR_mbind, &[at, PAGE, 1, one, 64, 0]);
    let refused = [at, PAGE, 0, 0];
    world.refused(first, l::__NR_set_mempolicy_home_node, &refused, Errno::EOPNOTSUPP);
    world.ok(first, l::__NR_mbind, &[at, 8 * PAGE, 0, 0, 0, 0]);
    assert_eq!([at, at + PAGE].map(mode), [0, 0]);
    world.refused(first, l::__NR_mbind, &[at + 1, PAGE, 2, one, 64, 0], Errno::EINVAL);
    world.refused(first, l::__NR_mbind, &[at, PAGE, 2, one, 64, 8], Errno::EINVAL);
    world.refused(first, l::__NR_mbind, &[8, PAGE, 2, one, 64, 0], Errno::EINVAL);
    world.refused(first, l::__NR_mbind, &[PAGE, PAGE, 2, one, 64, 0], Errno::EFAULT);
    world.ok(first, l::__NR_mbind, &[at, u64::MAX, 2, one, 64, 0]);
    let child = world.fork(first);
    world.ok(&child, l::__NR_setuid, &[1000]);
    world.refused(&child, l::__NR_mbind, &[at, PAGE, 2, one, 64, 4], Errno::EPERM);
}

#[test]
fn pages_are_where_they_belong() {
    let world = World::new();
    let first = &world.first;
    let at = world.ok(first, l::__NR_mmap, &[0, 2 * PAGE, 3, 0x22, u64::MAX, 0]);
    world.write(first, at, b"x");
    let pages = world.words(first, &[at, at + PAGE, PAGE, at]);
    let nodes = world.words(first, &[0, 1 << 32]);
    let status = world.scratch(first, 16);
    world.ok(first, l::__NR_move_pages, &[0, 3, pages, nodes, status, 2]);
    let states = || [0, 4, 8].map(|offset| world.read_u32(first, status + offset));
    let expected = [0, Errno::ENOENT.result() as u32, Errno::EFAULT.result() as u32];
    assert_eq!(states(), expected);
    world.ok(first, l::__NR_move_pages, &[0, 3, pages, 0, status, 0]);
    assert_eq!(states(), expected);
    world.refused(first, l::__NR_move_pages, &[0, 4, pages, nodes, status, 2], Errno::ENODEV);
    world.refused(first, l::__NR_move_pages, &[0, 1, pages, 0, status, 1], Errno::EINVAL);
    world.refused(first, l::__NR_move_pages, &[9999, 1, pages, 0, status, 2], Errno::ESRCH);
    let [all, one, none] = [u64::MAX, 1, 0].map(|bits| world.words(first, &[bits]));
    assert_eq!(world.ok(first, l::__NR_migrate_pages, &[0, 64, all, one]), 0);
    world.refused(first, l::__NR_migrate_pages, &[0, 64, all, none], Errno::EINVAL);
    world.refused(first, l::__NR_migrate_pages, &[9999, 64, all, one], Errno::ESRCH);
    let child = world.fork(first);
    let number = u64::from(first.own_tid.get());
    world.ok(&child, l::__NR_setuid, &[1000]);
    world.refused(&child, l::__NR_migrate_pages, &[number, 64, all, one], Errno::EPERM);
    world.refused(&child, l::__NR_move_pages, &[number, 1, pages, 0, status, 2], Errno::EPERM);
}

/// A long list is looked at in turns.
#[test]
fn a_long_list_of_pages_gives_way() {
    let world = World::new();
    let first = &world.first;
    let count = 5000;
    let pages = world.ok(first, l::__NR_mmap, &[0, count * 8, 3, 0x22, u64::MAX, 0]);
    let status = world.ok(first, l::__NR_mmap, &[0, count * 4, 3, 0x22, u64::MAX, 0]);
    world.waits(first, l::__NR_move_pages, &[0, count, pages, 0, status, 0]);
    world.advance(1_000_000);
    assert_eq!(world.next_reply(first), Some(0));
    let last = world.read_u32(first, status + 4 * (count - 1));
    assert_eq!(last, Errno::EFAULT.result() as u32);
}

#[test]
fn the_only_node_is_told() {
    let world = World::with_processors(3);
    let program = Program::new(&world, &world.first);
    let text = |path: &str| String::from_utf8(program.contents(path)).unwrap();
    let node = "/sys/devices/system/node";
    assert_eq!(program.names(&format!("{node}/node0")).len(), 5);
    assert_eq!(text(&format!("{node}/online")), "0\n");
    assert_eq!(text(&format!("{node}/node0/cpulist")), "0-2\n");
    assert_eq!(text(&format!("{node}/node0/cpumap")), "7\n");
    assert_eq!(text(&format!("{node}/node0/distance")), "10\n");
    assert!(text(&format!("{node}/node0/meminfo")).starts_with("Node 0 MemTotal: "));
    assert!(text(&format!("{node}/node0/numastat")).contains("\nnuma_miss 0\n"));
    assert_eq!(text("/sys/devices/system/cpu/possible"), "0-2\n");
    assert!(text("/proc/self/status").contains("\nMems_allowed:\t1\nMems_allowed_list:\t0\n"));
    assert!(text("/proc/mounts").contains("sysfs /sys sysfs rw"));
}
