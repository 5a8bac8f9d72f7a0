//! The plan of memory: everything in usable memory, nothing over anything else.

use abi::image::kind;

use super::{Random, build, good_parts, module, server};
use crate::boot::image::Image;
use crate::boot::memory::{LOW_LIMIT, MAX_REGIONS, Range, Regions, Reserved, largest_gap};
use crate::boot::plan::{Needs, Plan, plan};

const MIB: u64 = 1 << 20;
const KERNEL: Range = Range::new(0x20_0000, 0x22_0000);
const NEEDS: Needs = Needs { kernel: KERNEL, tables: 16 * 4096, bootinfo: 5000, pool: None };

/// The memory map of a PC with `bytes` of memory.
fn machine(bytes: u64) -> Regions {
    let mut regions = Regions::new();
    let low = bytes.min(3 << 30);
    regions.push(0, 0x9_FC00, 1);
    regions.push(0x9_FC00, 0x400, 2);
    regions.push(0xF_0000, 0x1_0000, 2);
    regions.push(MIB, low - MIB - 0x2_0000, 1);
    regions.push(low - 0x2_0000, 0x2_0000, 2);
    regions.push(0xFFFC_0000, 0x4_0000, 2);
    regions.push(4 << 30, bytes - low, 1);
    regions
}

#[track_caller]
fn check(regions: &Regions, loaded: Range, image: &Image<'_>, needs: &Needs, plan: &Plan) {
    let mut uses =
        vec![needs.kernel, plan.image.pages_out(), plan.tables, plan.bootinfo, plan.pool];
    if !plan.trampoline.is_empty() {
        assert!(plan.trampoline.len() == 4096 && plan.trampoline.end <= 0xA_0000);
        uses.push(plan.trampoline);
    }
    uses.extend(image.servers().map(|(_, server)| server.range.pages_out()));
    for (index, range) in uses.iter().enumerate() {
        assert!(!range.is_empty() && regions.is_usable(*range), "{range:x?} in {plan:x?}");
        assert!(
            uses[..index].iter().all(|other| !other.overlaps(*range)),
            "{range:x?} in {plan:x?}"
        );
    }
    assert!(
        plan.tables.end <= 4 << 30 && plan.bootinfo.end <= 4 << 30 && plan.image.end <= 4 << 30
    );
    assert!(plan.tables.len() >= needs.tables && plan.bootinfo.len() >= needs.bootinfo);
    assert_eq!(plan.image.len(), image.len());
    assert_eq!(
        (plan.image.start
            | plan.tables.start
            | plan.bootinfo.start
            | plan.pool.start
            | plan.pool.end)
            % 4096,
        0
    );
    if plan.image.start != loaded.start {
        assert!(!plan.image.overlaps(loaded), "moving must not overwrite what is moved");
    }
}

#[test]
fn machines_of_every_size_work() {
    let bytes = build(&good_parts());
    let image = Image::parse(&bytes).expect("good");
    for mib in [32, 40, 64, 100, 512, 3000, 4096, 5000, 65_536, 4 << 20] {
        let regions = machine(mib * MIB);
        let top = (mib * MIB).min(3 << 30) - 0x2_0000;
        let loaded = Range::new(top - image.len().next_multiple_of(4096), top);
        let plan = plan(&regions, loaded, &image, &NEEDS).expect("room");
        check(&regions, loaded, &image, &NEEDS, &plan);
        let share = (regions.usable_bytes() / 8).clamp(8 * MIB, 2048 * MIB);
        assert!(
            plan.pool.len() >= share && plan.pool.len() < share + 4 * MIB,
            "{mib} MiB: {plan:x?}"
        );
        assert!(plan.pool.end <= 4 << 30, "{mib} MiB: {plan:x?}");
        assert_eq!(
            plan.image,
            Range::new(loaded.start, loaded.start + image.len()),
            "not moved without need"
        );
    }
}

#[test]
fn a_wish_for_the_pool_is_granted_as_far_as_it_goes() {
    let bytes = build(&good_parts());
    let image = Image::parse(&bytes).expect("good");
    let regions = machine(256 * MIB);
    let loaded = Range::new(200 * MIB, 201 * MIB);
    for (wish, least, most) in
        [(0, MIB, 4 * MIB), (20 * MIB, 20 * MIB, 24 * MIB), (1 << 60, 100 * MIB, 160 * MIB)]
    {
        let needs = Needs { pool: Some(wish), ..NEEDS };
        let plan = plan(&regions, loaded, &image, &needs).expect("room");
        check(&regions, loaded, &image, &needs, &plan);
        assert!((least..=most).contains(&plan.pool.len()), "{wish:#x}: {:#x}", plan.pool.len());
    }
}

#[test]
fn an_image_in_the_way_moves() {
    let bytes = build(&good_parts());
    let image = Image::parse(&bytes).expect("good");
    let regions = machine(64 * MIB);
    for start in [0xEF_F000, 0xF0_1000, 0x101_0000, 0x180_0004] {
        let loaded = Range::new(start, start + image.len());
        let plan = plan(&regions, loaded, &image, &NEEDS).expect("room");
        assert_ne!(plan.image.start, start);
        check(&regions, loaded, &image, &NEEDS, &plan);
    }
}

#[test]
fn too_little_memory_is_said() {
    let parts = [server(kind::SIGMA0, 0x40_0000, 10, 10), module(3 << 20, "big")];
    let bytes = build(&parts);
    let image = Image::parse(&bytes).expect("good");
    let regions = machine(6 * MIB);
    let loaded = Range::new(0x30_0000, 0x30_0000 + image.len());
    let error = plan(&regions, loaded, &image, &NEEDS).expect_err("3 MiB more are not there");
    assert_eq!(error.what, "the boot image");
    assert!(error.to_string().contains("give the machine more"));
}

#[test]
fn random_maps_never_break_the_rules() {
    let bytes = build(&[server(kind::SIGMA0, 0x80_0000, 10, 5000)]);
    let image = Image::parse(&bytes).expect("good");
    let mut random = Random(11);
    let mut planned = 0;
    for round in 0..5_000 {
        let mut regions = if round % 2 == 0 { machine(64 * MIB) } else { Regions::new() };
        for _ in 0..random.below(MAX_REGIONS as u64 + 8) {
            let (start, len) = if random.below(2) == 0 {
                (random.awkward(), random.awkward())
            } else {
                (random.below(128 * MIB), random.below(8 * MIB))
            };
            regions.push(start, len, random.below(4) as u32);
        }
        regions.clip(16 << 40);
        let loaded = Range::new(0x60_0000, 0x60_0000 + image.len());
        if image.check_places(&regions, KERNEL).is_err()
            || !regions.is_usable(loaded)
            || !regions.is_usable(KERNEL)
        {
            continue;
        }
        if let Ok(plan) = plan(&regions, loaded, &image, &NEEDS) {
            planned += 1;
            check(&regions, loaded, &image, &NEEDS, &plan);
        }
    }
    assert!(
        planned > 100,
        "only {planned} maps led to a plan: the test does not reach what it is for"
    );
}

/// The slow truth: the longest run of free pages, page by page.
fn longest_run(regions: &Regions, reserved: &Reserved, end: u64) -> u64 {
    let (mut best, mut run) = (0, 0);
    for page in (LOW_LIMIT..end).step_by(4096) {
        let range = Range::new(page, page + 4096);
        let is_free = regions.is_usable(range) && !reserved.overlaps(range);
        run = if is_free { run + 4096 } else { 0 };
        best = best.max(run);
    }
    best
}

#[test]
fn the_largest_gap_is_the_largest() {
    let mut random = Random(5);
    const END: u64 = LOW_LIMIT + 256 * 4096;
    for _ in 0..500 {
        let mut regions = Regions::new();
        let mut reserved = Reserved::default();
        regions.push(LOW_LIMIT, END - LOW_LIMIT, 1);
        for _ in 0..random.below(6) {
            regions.push(
                LOW_LIMIT + random.below(256 * 4096),
                random.below(16 * 4096),
                2 + random.below(3) as u32,
            );
        }
        for _ in 0..random.below(6) {
            let start = LOW_LIMIT + random.below(256 * 4096);
            assert!(reserved.add(Range::new(start, start + random.below(16 * 4096))));
        }
        let gap = largest_gap(&regions, &reserved, Range::new(0, END));
        assert_eq!(gap.len(), longest_run(&regions, &reserved, END));
        assert!(gap.is_empty() || (regions.is_usable(gap) && !reserved.overlaps(gap)));
    }
}

#[test]
fn regions_are_whole_pages_and_reserved_wins() {
    let mut regions = Regions::new();
    regions.push(0x1001, 0x5000, 1);
    regions.push(0x3FFF, 2, 2);
    regions.push(u64::MAX - 10, u64::MAX, 2); // the very last page has no end: left out
    let list: Vec<Range> = regions.iter().map(|region| region.range).collect();
    assert_eq!(list[..2], [Range::new(0x2000, 0x6000), Range::new(0x3000, 0x5000)]);
    assert!(
        regions.is_usable(Range::new(0x2000, 0x3000))
            && !regions.is_usable(Range::new(0x2000, 0x4000))
    );
    for _ in 0..100 {
        regions.push(0x10_0000, 0x1000, 1);
    }
    assert_eq!((regions.iter().count(), regions.dropped), (MAX_REGIONS, 38));
}
