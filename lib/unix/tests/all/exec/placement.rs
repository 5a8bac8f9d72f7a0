//! Where programs are placed.

use super::*;

/// Where the parts of a program are: interpreter, program, stack, heap, vDSO.
fn places(world: &World) -> [u64; 5] {
    exec(world, "/bin/linked", &["linked"], &[]);
    let stack = stack(world);
    let facts = [auxvec::AT_BASE, auxvec::AT_PHDR, auxvec::AT_RANDOM, auxvec::AT_SYSINFO_EHDR];
    let [base, program, random, vdso] = facts.map(|kind| stack.fact(kind));
    [base, program, random, world.ok(&world.first, l::__NR_brk, &[0]), vdso]
}

fn setting(world: &World, level: &str) {
    let path = world.text(&world.first, "/proc/sys/kernel/randomize_va_space");
    let fd = world.ok(&world.first, l::__NR_open, &[path, 1]);
    let text = world.text(&world.first, level);
    world.ok(&world.first, l::__NR_write, &[fd, text, 1]);
    world.ok(&world.first, l::__NR_close, &[fd]);
}

#[test]
fn programs_are_placed_at_random() {
    let world = world();
    let fixed = places(&world);
    assert_eq!(places(&world), fixed);
    setting(&world, "2");
    let mut seen = vec![fixed];
    for _ in 0..8 {
        let now = places(&world);
        for old in &seen {
            let same = now.iter().zip(old).filter(|(now, old)| now == old).count();
            assert_eq!(same, 0, "{now:x?} {old:x?}");
        }
        assert!(now.iter().all(|place| *place < unix::mm::USER_END));
        seen.push(now);
    }
    // Children have what their parent has; new mappings are near the others.
    let at = |thread| world.ok(thread, l::__NR_mmap, &[0, 4096, 3, 0x22, u64::MAX, 0]);
    let child = world.fork(&world.first);
    assert_eq!(at(&world.first), at(&child));
    // A program can do without.
    world.ok(&world.first, l::__NR_personality, &[0x0004_0000]);
    assert_eq!(places(&world), fixed);
    world.ok(&world.first, l::__NR_personality, &[0]);
    assert_ne!(places(&world), fixed);
    setting(&world, "0");
    assert_eq!(places(&world), fixed);
}

/// As on Linux; a program that maps nothing else has no page tables for the vDSO alone.
#[test]
fn the_vdso_is_right_above_the_stack() {
    const TABLE: u64 = 2 << 20;
    let world = world();
    setting(&world, "2");
    let mut distances = Vec::new();
    for _ in 0..16 {
        let [_, _, random, _, vdso] = places(&world);
        let (end, beside) = (vdso + 8192, vdso / TABLE - random / TABLE);
        assert!(vdso > random && end <= unix::mm::USER_END, "{vdso:x} {random:x}");
        assert_eq!(vdso / TABLE, (end - 1) / TABLE, "one table has both pages");
        assert!(beside <= 1, "{vdso:x} {random:x}");
        distances.push((vdso - random) / 4096);
    }
    distances.sort_unstable();
    distances.dedup();
    assert!(distances.len() > 8, "it is not always as far: {distances:?}");
}

#[test]
fn set_id_programs_are_placed_at_random_whatever_their_caller_wants() {
    let world = world();
    setting(&world, "2");
    world.ok(&world.first, l::__NR_setresuid, &[7; 3]);
    world.ok(&world.first, l::__NR_personality, &[0x0004_0000]);
    exec(&world, "/bin/suid", &[], &[]);
    let one = stack(&world).fact(auxvec::AT_RANDOM);
    assert_eq!(world.ok(&world.first, l::__NR_personality, &[0x0004_0000]), 0);
    world.ok(&world.first, l::__NR_setresuid, &[7; 3]);
    exec(&world, "/bin/suid", &[], &[]);
    assert_ne!(stack(&world).fact(auxvec::AT_RANDOM), one);
}

#[test]
fn a_stack_without_a_limit_is_no_obstacle() {
    let world = world();
    let limit = world.words(&world.first, &[u64::MAX, u64::MAX]);
    world.ok(&world.first, l::__NR_setrlimit, &[l::RLIMIT_STACK.into(), limit]);
    exec(&world, "/bin/plain", &["plain"], &[]);
    assert_eq!(stack(&world).arguments, ["plain"]);
}

/// Found by the fuzzer: the first instruction was at an address that is none.
#[test]
fn programs_begin_below_the_end_of_their_addresses() {
    let world = world();
    let code = [Load(0x1000, CODE, 4, 5)];
    let dynamic = Extra { dynamic: true, ..Extra::default() };
    for entry in [0x00FF_8000_0000_0002, 0x7FFF_FFFF_F000] {
        let members = [Member("bin/far", FILE, &elf(entry, &code, &dynamic))];
        unix::fs::unpack(&world.unix, &archive(&members)).unwrap();
        refused(&world, "/bin/far", Errno::ENOEXEC);
    }
}
