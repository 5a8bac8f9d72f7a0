//! The boot image: what is accepted, what is refused and why.

use abi::bootinfo::{self as format, exec, module as module_word, record as record_word};
use abi::image::{HEADER_WORDS, RECORD_WORDS, kind, word};

use super::{
    Part, Random, build, good_parts, module, program, seal, server, set_record_word, set_word,
};
use crate::boot::bootinfo;
use crate::boot::image::{Image, MAX_RECORDS};
use crate::boot::memory::{Range, Regions};
use crate::boot::refusal::{Obstacle, RecordFault, Refusal};

const KERNEL: Range = Range::new(0x20_0000, 0x22_0000);

fn regions() -> Regions {
    let mut regions = Regions::new();
    regions.push(0, 0x9_FC00, 1);
    regions.push(0x10_0000, 63 << 20, 1);
    regions
}

#[track_caller]
fn refused(bytes: &[u8]) -> Refusal {
    Image::parse(bytes).map(|_| ()).expect_err("the image should be refused")
}

#[track_caller]
fn misplaced(parts: &[Part]) -> Refusal {
    let bytes = build(parts);
    let image = Image::parse(&bytes).expect("the image itself is sound");
    image.check_places(&regions(), KERNEL).expect_err("the places should be refused")
}

#[test]
fn a_good_image_is_accepted_as_it_is() {
    let bytes = build(&good_parts());
    let image = Image::parse(&bytes).expect("a good image");
    assert_eq!(image.check_places(&regions(), KERNEL), Ok(()));
    assert_eq!(image.records().count(), 6);
    let root = image.server(kind::ROOT).expect("a root task");
    assert_eq!((root.range, root.entry), (Range::new(0x100_0000, 0x102_0064), 0x100_0000));
    assert_eq!(image.server(kind::SIGMA1), None);
    let program = image.record(3);
    assert_eq!(image.command_line(&program), b"program -v");
    assert_eq!(&bytes[program.file.start as usize..][..3], &[0xCC; 3]);
}

#[test]
fn a_larger_module_than_the_image_is_accepted() {
    let mut bytes = build(&good_parts());
    let len = bytes.len() as u64;
    bytes.extend([0xEE; 5000]);
    assert_eq!(Image::parse(&bytes).expect("padding is harmless").len(), len);
}

#[test]
fn every_truncation_is_refused() {
    let bytes = build(&good_parts());
    for len in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        match refused(&bytes[..len]) {
            Refusal::Short { have, need } => assert!(have < need),
            Refusal::Total { total, have } => assert!(have < total),
            other => panic!("truncated to {len} bytes: {other:?}"),
        }
    }
}

#[test]
fn every_flipped_bit_behind_the_header_breaks_the_checksum() {
    let mut bytes = build(&good_parts());
    let mut random = Random(1);
    for _ in 0..500 {
        let at = HEADER_WORDS * 8 + random.below((bytes.len() - HEADER_WORDS * 8) as u64) as usize;
        let bit = 1 << random.below(8);
        bytes[at] ^= bit;
        assert!(matches!(refused(&bytes), Refusal::Checksum { .. }));
        bytes[at] ^= bit;
    }
    assert!(Image::parse(&bytes).is_ok());
}

#[test]
fn the_header_is_checked() {
    let good = build(&good_parts());
    let with = |at, value| {
        let mut bytes = good.clone();
        set_word(&mut bytes, at, value);
        refused(&bytes)
    };
    assert_eq!(with(0, 7), Refusal::Magic(7));
    assert_eq!(with(1, 9), Refusal::Version(9));
    assert_eq!(with(2, u64::MAX), Refusal::Count { count: u64::MAX, limit: MAX_RECORDS as u64 });
    assert!(matches!(with(3, good.len() as u64 - 4), Refusal::Total { .. }));
    assert!(matches!(with(3, u64::MAX), Refusal::Total { .. }));
    assert!(matches!(with(3, 8), Refusal::Total { .. }));
    assert!(matches!(with(4, 0), Refusal::Checksum { expected: 0, .. }));
}

#[test]
fn each_fault_of_a_record_has_its_name() {
    let cases = [
        (0, word::KIND, 99, RecordFault::Kind(99)),
        (0, word::OFFSET, 0, RecordFault::Outside),
        (0, word::OFFSET, u64::MAX, RecordFault::Outside),
        (0, word::FILE_BYTES, u64::MAX, RecordFault::Outside),
        (0, word::MEM_BYTES, 4999, RecordFault::Memory),
        (0, word::PHYS, u64::MAX - 8, RecordFault::Wraps),
        (0, word::CMDLINE, u64::MAX - 2, RecordFault::CommandLine),
        (0, word::CMDLINE_BYTES, 1 << 40, RecordFault::CommandLine),
        (0, word::CMDLINE_BYTES, 3, RecordFault::CommandLine),
        (3, word::VIRT, 0x40_0800, RecordFault::Unaligned),
        (3, word::VIRT, abi::layout::USER_END - 4096, RecordFault::Wraps),
        (3, word::VIRT, u64::MAX - 4095, RecordFault::Wraps),
        (3, word::TEXT, 100, RecordFault::Sections),
        (3, word::DATA, u64::MAX, RecordFault::Sections),
        (3, word::DATA, 101, RecordFault::Sections),
        (3, word::ENTRY, 0x3F_FFFF, RecordFault::Entry(0x3F_FFFF)),
        (3, word::ENTRY, 0x41_0000, RecordFault::Entry(0x41_0000)),
    ];
    for (index, at, value, fault) in cases {
        let mut bytes = build(&good_parts());
        set_record_word(&mut bytes, index, at, value);
        seal(&mut bytes);
        assert_eq!(refused(&bytes), Refusal::Record { index, fault }, "word {at} := {value:#x}");
    }
}

#[test]
fn records_cannot_share_bytes() {
    let mut bytes = build(&good_parts());
    let program_at = Image::parse(&bytes).expect("good").record(3).file.start;
    set_record_word(&mut bytes, 4, word::OFFSET, program_at + 4096);
    set_record_word(&mut bytes, 4, word::FILE_BYTES, 10);
    seal(&mut bytes);
    assert_eq!(refused(&bytes), Refusal::Overlap { first: 3, second: 4 });
}

#[test]
fn without_sigma0_nothing_starts() {
    assert_eq!(refused(&build(&[server(kind::ROOT, 0x100_0000, 1, 1)])), Refusal::NoSigma0);
    assert_eq!(refused(&build(&[])), Refusal::NoSigma0);
}

#[test]
fn servers_need_memory_of_their_own() {
    let obstacle =
        |physical, memory| match misplaced(&[server(kind::SIGMA0, physical, 100, memory)]) {
            Refusal::Place { obstacle, .. } => obstacle,
            other => panic!("{other:?}"),
        };
    assert_eq!(obstacle(0x21_F000, 4096), Obstacle::Kernel);
    assert_eq!(obstacle(0x10_0000, 0x20_0000), Obstacle::Kernel);
    assert_eq!(obstacle(0x8_0000, 4096), Obstacle::OutOfReach);
    assert_eq!(obstacle(1 << 32, 4096), Obstacle::OutOfReach);
    assert_eq!(obstacle(64 << 20, 4096), Obstacle::NotMemory);
    assert_eq!(obstacle((64 << 20) - 4096, 8192), Obstacle::NotMemory);
    let twice = [server(kind::SIGMA0, 0xF0_0000, 10, 5000), server(kind::ROOT, 0xF0_1F00, 10, 10)];
    assert!(matches!(
        misplaced(&twice),
        Refusal::Place { obstacle: Obstacle::Server("sigma0"), .. }
    ));
    let inside =
        [server(kind::SIGMA0, 0xF0_0000, 10, 5000), server(kind::SIGMA0, 0xF0_0100, 10, 10)];
    assert_eq!(misplaced(&inside), Refusal::Overlap { first: 0, second: 1 });
}

#[test]
fn awkward_numbers_anywhere_never_panic() {
    let mut random = Random(42);
    let good = build(&good_parts());
    let words = HEADER_WORDS + good_parts().len() * RECORD_WORDS;
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(4) {
            let value = random.awkward();
            set_word(&mut bytes, random.below(words as u64) as usize, value);
        }
        if random.below(8) != 0 {
            seal(&mut bytes);
        }
        let Ok(image) = Image::parse(&bytes) else { continue };
        accepted += 1;
        let sound = Range::new(0, image.len());
        for record in image.records() {
            assert!(sound.contains(record.file));
            assert!(record.memory_bytes >= record.file.len() || record.kind == kind::MODULE);
            let _line = image.command_line(&record);
        }
        if image.check_places(&regions(), KERNEL).is_ok() {
            for (_, server) in image.servers() {
                assert!(regions().is_usable(server.range) && !server.range.overlaps(KERNEL));
            }
        }
        check_bootinfo(&image);
    }
    assert!(
        accepted > 500,
        "only {accepted} images were accepted: the test does not reach what it is for"
    );
}

#[test]
fn random_bytes_are_no_image() {
    let mut random = Random(7);
    for len in 0..2000 {
        let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        assert!(matches!(refused(&bytes), Refusal::Magic(_) | Refusal::Short { .. }));
    }
}

/// Builds the bootinfo and walks it as a root task does.
fn check_bootinfo(image: &Image<'_>) -> Vec<(Vec<u64>, String)> {
    check_bootinfo_with(image, None)
}

fn check_bootinfo_with(
    image: &Image<'_>,
    screen: Option<abi::Framebuffer>,
) -> Vec<(Vec<u64>, String)> {
    const PLACE: u64 = 0x300_0000;
    let mut words = vec![0; (bootinfo::bytes_needed(image, screen) / 8) as usize];
    assert!(bootinfo::build(image, PLACE, screen, &mut words));
    assert_eq!(&words[..2], &[format::MAGIC, 1]);
    assert_eq!(words[2], words.len() as u64 * 8);
    let mut at = (words[3] / 8) as usize;
    let mut found = Vec::new();
    for _ in 0..words[4] {
        let (own, line_at) = match words[at + record_word::TYPE] {
            format::MODULE => (format::MODULE_WORDS, words[at + module_word::COMMAND_LINE]),
            format::SIMPLE_EXEC => (format::SIMPLE_EXEC_WORDS, words[at + exec::COMMAND_LINE]),
            format::FRAMEBUFFER => {
                (format::FRAMEBUFFER_WORDS, 8 * format::FRAMEBUFFER_WORDS as u64)
            }
            other => panic!("record type {other}"),
        };
        let text: Vec<u8> = words[at + (line_at / 8) as usize..]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let line = text.split(|byte| *byte == 0).next().unwrap_or_default();
        found.push((words[at..at + own].to_vec(), String::from_utf8_lossy(line).into_owned()));
        at += (words[at + record_word::NEXT] / 8) as usize;
    }
    assert_eq!(at, words.len());
    let mut short = vec![0; words.len() - 1];
    assert!(!bootinfo::build(image, PLACE, screen, &mut short));
    found
}

#[test]
fn the_bootinfo_tells_where_everything_is() {
    let bytes = build(&good_parts());
    let image = Image::parse(&bytes).expect("good");
    let records = check_bootinfo(&image);
    let lines: Vec<&str> = records.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines, ["server", "server", "program -v", "a.file", ""]);
    let (root, program, file) = (&records[1].0, &records[2].0, &records[3].0);
    assert_eq!(root[exec::TEXT..exec::TEXT + 3], [0x100_0000, 0x100_0000, 0x2_0064]);
    let place = 0x300_0000 + image.record(3).file.start;
    assert_eq!(
        program[exec::TEXT..exec::ENTRY + 1],
        [place, 0x40_0000, 8192, place + 8192, 0x40_2000, 100, 0, 0x40_2064, 5000, 0x40_0010,]
    );
    assert_eq!(file[module_word::START] % 4096, 0);
    assert_eq!(file[module_word::SIZE], 12_345);
}

#[test]
fn the_framebuffer_is_the_first_record() {
    let bytes = build(&good_parts());
    let image = Image::parse(&bytes).expect("good");
    let words = [0xFD00_0000, 1024 << 32 | 4096, 768, 32, 0x0800_0808_0810];
    let screen = abi::Framebuffer::decode(words);
    let records = check_bootinfo_with(&image, Some(screen));
    assert_eq!(records.len(), check_bootinfo(&image).len() + 1);
    assert_eq!((records[0].0[3..].to_vec(), records[0].1.as_str()), (words.to_vec(), ""));
}

#[test]
fn as_many_records_as_fit_and_no_more() {
    let mut parts = vec![server(kind::SIGMA0, 0xF0_0000, 1, 1), program(1, 0, 0)];
    parts.resize(MAX_RECORDS, module(8, "m"));
    let bytes = build(&parts);
    assert_eq!(check_bootinfo(&Image::parse(&bytes).expect("as many as fit")).len(), MAX_RECORDS);
    parts.push(module(8, "one too many"));
    assert!(matches!(refused(&build(&parts)), Refusal::Count { .. }));
}
