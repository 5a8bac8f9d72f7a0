//! `/proc/cpuinfo`: what CPUID says, in Linux's words.

use crate::common::World;
use crate::common::caller::Program;

/// An EPYC of Zen 3's kind with AVX, as far as it is told.
const EPYC: [((u32, u32), [u32; 4]); 11] = [
    ((0, 0), [0x10, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
    ((1, 0), [0x00A2_0F12, 0x0100_0800, 0x1C00_2001, 0x0788_8111]),
    ((7, 0), [1, 0x0001_0029, 1 << 22, 0]),
    ((0xD, 0), [7, 832, 0, 0]),
    ((0xD, 2), [256, 576, 0, 0]),
    ((0x8000_0001, 0), [0, 0, 0x21, 0x2010_0800]),
    ((0x8000_0002, 0), [0x2044_4D41, 0x4359_5045, 0x3337_3720, 0x2020_2020]),
    ((0x8000_0003, 0), [0x2020_2020, 0, 0, 0]),
    ((0x8000_0004, 0), [0, 0, 0, 0]),
    ((0x8000_0007, 0), [0, 0, 0, 1 << 8]),
    ((0x8000_0008, 0), [0x3030, 0, 0, 0]),
];

/// The lines about one processor, with tabs as they are.
fn told(world: &World) -> Vec<String> {
    let text = Program::new(world, &world.first).contents("/proc/cpuinfo");
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}

fn line(world: &World, name: &str) -> String {
    let lines = told(world);
    let begins = |line: &&String| line.split('\t').next() == Some(name);
    lines.iter().find(begins).unwrap_or_else(|| panic!("no {name} in {lines:?}")).clone()
}

#[test]
fn the_processor_is_told_as_linux_tells_it() {
    let world = World::with_processors(2);
    world.machine.cpuid.borrow_mut().extend(EPYC);
    let one = |number: u32| {
        format!(
            "processor\t: {number}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 33\n\
             model name\t: AMD EPYC 773\nstepping\t: 2\ncpu MHz\t\t: 1000.000\nphysical id\t: 0\n\
             siblings\t: 2\ncore id\t\t: {number}\ncpu cores\t: 2\nfpu\t\t: yes\n\
             fpu_exception\t: yes\ncpuid level\t: 16\nwp\t\t: yes\nflags\t\t: fpu tsc cx8 cmov clflush mmx \
             fxsr sse sse2 syscall nx lm constant_tsc nonstop_tsc pni cx16 xsave avx lahf_lm abm \
             fsgsbase bmi1 avx2 rdpid\nclflush size\t: 64\ncache_alignment\t: 64\n\
             address sizes\t: 48 bits physical, 48 bits virtual\n"
        )
    };
    assert_eq!(told(&world).join("\n"), format!("{}\n{}", one(0), one(1)));
}

/// Registers that the kernel has not switched on are nobody's, whatever the processor has.
#[test]
fn what_is_not_switched_on_is_not_told() {
    let world = World::new();
    world.machine.cpuid.borrow_mut().extend(EPYC);
    world.machine.cpuid.borrow_mut().insert((0xD, 0), [7, 576, 0, 0]);
    assert!(line(&world, "flags").ends_with(" xsave lahf_lm abm fsgsbase bmi1 rdpid"));
    // Neither does it say so of what it has not.
    world.machine.cpuid.borrow_mut().remove(&(0xD, 2));
    assert!(!line(&world, "flags").contains("avx"));
}

/// Names are what the processor says, which may be anything.
#[test]
fn a_processor_without_a_name_is_unknown() {
    let world = World::new();
    assert_eq!(line(&world, "vendor_id"), "vendor_id\t: unknown");
    assert_eq!(line(&world, "model name"), "model name\t: unknown");
    world.machine.cpuid.borrow_mut().insert((0x8000_0002, 0), [0x0A42_1B41, 0xFF, 0, 0]);
    assert_eq!(line(&world, "model name"), "model name\t: A B");
}
