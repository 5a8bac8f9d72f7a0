//! What the page says, word by word, for two machines.

use super::*;
use std::vec::Vec;

fn filled(regions: &Regions, modules: &[Range]) -> Result<[u64; 512], KipFull> {
    let server =
        |start| Some(Server { range: Range::new(start, start + 0x2100), entry: start + 8 });
    let facts = Facts {
        regions,
        servers: [server(0xF0_0000), None, server(0x100_0000)],
        kernel: Range::new(0x20_0000, 0x22_1000),
        tables: Range::new(0x3F0_0000, 0x3F1_0000),
        pool: Range::new(0x380_0000, 0x3A0_0000),
        bootinfo: Range::new(0x3E0_0000, 0x3E0_1000),
        trampoline: Range::new(0x9_E000, 0x9_F000),
        counter_khz: 2_400_000,
        tick_us: 1000,
        has_gib_pages: true,
    };
    let mut words = [0; 512];
    fill(&mut words, &facts, modules.iter().copied()).map(|()| words)
}

fn pc() -> Regions {
    let mut regions = Regions::new();
    regions.push(0x9_FC00, 0x400, 2);
    regions.push(0, 0x9_FC00, 1);
    regions.push(0x10_0000, 63 << 20, 1);
    regions.push(0x40_0000_0000, 0x1000, 3);
    regions
}

fn descriptors(words: &[u64; 512]) -> Vec<MemoryDescriptor> {
    let info = words[offset::MEMORY_INFO / 8];
    let first = (info >> 32) as usize / 8;
    let pairs = words[first..].chunks_exact(2).take(info as u32 as usize);
    pairs.map(|pair| MemoryDescriptor::decode([pair[0], pair[1]])).collect()
}

#[test]
fn the_fixed_words_are_those_of_the_interface() {
    let words = filled(&pc(), &[]).expect("room");
    let at = |byte: usize| words[byte / 8];
    assert_eq!(at(0).to_le_bytes(), *b"L4\xE6K\0\0\0\0");
    assert_eq!((at(8), at(0x10), at(0x18)), (0x8405_0000, 4, 0x280));
    assert_eq!([at(0x40), at(0x48), at(0x50), at(0x58)], [0, 0xF0_0008, 0xF0_0000, 0xF0_2100]);
    assert_eq!([at(0x60), at(0x68), at(0x70), at(0x78)], [0; 4]);
    assert_eq!(at(0x98), 0x100_2100);
    assert_eq!((at(0x150), at(0x158), at(0x170)), (0xC2801, 0xC, 0x3E0_0000));
    assert_eq!((at(0x178), at(0x248)), (0x240, 2_400_000));
    assert_eq!(at(0x180), 0x03E8_0001);
    assert_eq!(at(0x188), 0x0800_4011);
    assert_eq!((at(0x190), at(0x198)), (0x4020_1007, 0x5000_0000_0000_0000));
}

#[test]
fn the_version_is_that_of_the_sources() {
    let (version, sub, subsub) = KERNEL_VERSION;
    assert_eq!(std::format!("{version}.{sub}.{subsub}"), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_kernel_descriptor_lists_no_feature() {
    let words = filled(&pc(), &[]).expect("room");
    let bytes: Vec<u8> =
        words[0x280 / 8..0x300 / 8].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(bytes[..4], [0, 0, 1, 0xBA]);
    assert_eq!(bytes[24..32], *b"BATN\0\0\0\0");
    let end = 32 + bytes[32..].iter().position(|byte| *byte == 0).expect("a terminated string");
    assert!(bytes[32..end].starts_with(b"Baton "));
    assert!(bytes[end..].iter().all(|byte| *byte == 0));
}

#[test]
fn links_lead_to_the_stubs() {
    let words = filled(&pc(), &[]).expect("room");
    let links = &words[0x1A0 / 8..0x1F8 / 8];
    let indices: Vec<u64> =
        links.iter().map(|link| (link - layout::STUBS) / layout::STUB_SIZE).collect();
    assert_eq!(indices, [8, 3, 9, 10, 0, 1, 7, 2, 4, 5, 6]);
    let baton = &words[words[0xA0 / 8] as usize / 8..][..5];
    assert_eq!(baton[0].to_le_bytes(), *b"BATON\0\0\0");
    assert_eq!(baton[2..], [layout::stub_address(11), layout::stub_address(12), 0]);
}

#[test]
fn later_descriptors_decide_who_owns_an_address() {
    let module = Range::new(0x300_0000, 0x300_5001);
    let list = descriptors(&filled(&pc(), &[module]).expect("room"));
    let owner = |address: u64| {
        let hit = list
            .iter()
            .rev()
            .find(|one| !one.is_virtual && one.low <= address && address <= one.high);
        hit.map(|one| (one.kind, one.subtype))
    };
    let cases = [
        (0x1000, (1, 0)),
        (0x9_DFFF, (1, 0)),
        (0x9_E000, (2, 0)),
        (0x9_F800, (0xF, 2)),
        (0xA_0000, (4, 0)),
        (0xE_FFFF, (4, 0)),
        (0xF_0000, (4, 0)),
        (0x20_0000, (2, 0)),
        (0x22_0FFF, (2, 0)),
        (0x22_1000, (1, 0)),
        (0x380_0000, (2, 0)),
        (0x3F0_FFFF, (2, 0)),
        (0xF0_2FFF, (0xE, 2)),
        (0x300_5FFF, (0xE, 3)),
        (0x300_6000, (1, 0)),
        (0x3E0_0000, (0xE, 1)),
        (0x40_0000_0000, (0xF, 3)),
        (0xFEC0_0000, (4, 0)),
    ];
    for (address, expected) in cases {
        assert_eq!(owner(address), Some(expected), "{address:#x}");
    }
    let last = list.last().expect("descriptors");
    assert!(
        last.is_virtual && last.kind == 1 && last.low == 0 && last.high == layout::USER_END - 1
    );
}

#[test]
fn the_most_that_boot_accepts_fits() {
    let mut regions = Regions::new();
    for index in 0..crate::boot::memory::MAX_REGIONS as u64 {
        regions.push(index << 24, 1 << 20, 1);
    }
    let modules = |count| -> Vec<Range> {
        (0..count).map(|at| Range::new(at << 20, (at << 20) + 1)).collect()
    };
    let most = filled(&regions, &modules(crate::boot::image::MAX_RECORDS as u64)).expect("room");
    let windows = machine::SHARED_WINDOWS.len();
    assert_eq!(descriptors(&most).len(), 64 + 100 + 1 + windows + 4 + 2 + 1 + 1);
    assert_eq!(filled(&regions, &modules(200)), Err(KipFull));
}
