//! The image tool against small ELF files that the tests lay out themselves.

use super::*;

use super::sample::{Part, R, W, X, elf_file, part};

fn exe(name: &str, entry: u64, parts: &[Part]) -> Executable {
    Executable::parse(name, &elf_file(entry, parts)).expect("a sound test file")
}

fn kernel() -> Executable {
    let virt = 0xFFFF_FFFF_8020_0000;
    let text = Part { virt, phys: 0x20_0000, bytes: vec![0x90; 16], mem: 0x3_0000, flags: R | X };
    exe("the kernel", virt, &[text])
}

fn sigma0() -> Executable {
    exe("sigma0", 0xF0_0000, &[part(0xF0_0000, &[1; 100], 100, R | X)])
}

fn root() -> Executable {
    let text = part(0x100_0000, &[2; 5000], 5000, R | X);
    let data = part(0x100_2000, &[3; 10], 0x3000, R | W);
    exe("root", 0x100_0010, &[text, data])
}

fn task() -> Executable {
    let text = part(0x40_0000, &[4; 5000], 5000, R | X);
    let data = part(0x40_2000, &[5; 12], 0x1800, R | W);
    exe("serial", 0x40_0008, &[text, data])
}

fn sample() -> Vec<u8> {
    let mut builder = Builder::new(&kernel());
    builder.server(Server::Sigma0, &sigma0(), "").unwrap();
    builder.server(Server::Root, &root(), "root verbose=1").unwrap();
    builder.program(&task(), "serial priority=200 irq=4").unwrap();
    builder.module(b"raw bytes".to_vec(), "notes").unwrap();
    builder.finish()
}

/// The sentence with which `result` was refused.
fn refusal<T: std::fmt::Debug>(result: Result<T>) -> String {
    format!("{:#}", result.expect_err("this must be refused"))
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T>, words: &str) {
    let sentence = refusal(result);
    assert!(sentence.contains(words), "expected `{words}` in: {sentence}");
}

fn words_of(image: &mut [u8], index: usize, value: u64) {
    put_words(image, index * 8, std::iter::once(value));
}

/// Changes one word of record `record` and repairs the checksum.
fn tampered(record: usize, at: usize, value: u64) -> Vec<u8> {
    let mut image = sample();
    words_of(&mut image, HEADER_WORDS + record * RECORD_WORDS + at, value);
    let records = u64::from_le_bytes(image[16..24].try_into().unwrap());
    seal(&mut image, records);
    image
}

#[test]
fn image_reads_back_as_built() {
    let image = sample();
    let entries = verify(&image).expect("a sound image");
    let kinds: Vec<u64> = entries.iter().map(verify::Entry::kind).collect();
    assert_eq!(kinds, [kind::SIGMA0, kind::ROOT, kind::ROOT, kind::PROGRAM, kind::MODULE]);
    assert_eq!(entries[1].words[word::PHYS], 0x100_0000);
    assert_eq!(entries[1].words[word::ENTRY], 0x100_0010);
    assert_eq!(entries[2].words[word::FILE_BYTES], 10);
    assert_eq!(entries[2].words[word::MEM_BYTES], 0x3000);
    assert_eq!(entries[3].cmdline, "serial priority=200 irq=4");
    assert_eq!(&image[entries[4].bytes()], b"raw bytes");
    let line_end =
        (entries[3].words[word::CMDLINE] + entries[3].words[word::CMDLINE_BYTES]) as usize;
    assert_eq!(image[line_end], 0, "command lines end with a zero byte");
}

#[test]
fn programs_are_flattened_text_data_bss() {
    let image = sample();
    let entry = &verify(&image).unwrap()[3];
    assert_eq!(entry.words[word::VIRT], 0x40_0000);
    assert_eq!(entry.words[word::TEXT], 0x2000);
    assert_eq!(entry.words[word::DATA], 12);
    assert_eq!(entry.words[word::MEM_BYTES], 0x2000 + 0x1800);
    let bytes = &image[entry.bytes()];
    assert_eq!(bytes.len(), 0x2000 + 12);
    assert!(bytes[..5000].iter().all(|&b| b == 4));
    assert!(bytes[5000..0x2000].iter().all(|&b| b == 0), "text is padded with zeros");
    assert!(bytes[0x2000..].iter().all(|&b| b == 5));
}

#[test]
fn several_read_only_segments_become_one_text() {
    let parts = [
        part(0x40_0000, &[1; 8], 8, R),
        part(0x40_1000, &[2; 8], 8, R | X),
        part(0x40_4000, &[3; 8], 8, R | W),
    ];
    let flat = program::flatten(&exe("three", 0x40_1000, &parts)).unwrap();
    assert_eq!((flat.text_bytes, flat.data_bytes, flat.mem_bytes), (0x4000, 8, 0x4008));
    assert_eq!(flat.bytes[0x1000], 2);
}

#[test]
fn a_program_of_text_alone_has_no_data() {
    let flat =
        program::flatten(&exe("t", 0x40_0010, &[part(0x40_0010, &[9; 4], 4, R | X)])).unwrap();
    assert_eq!((flat.virt, flat.text_bytes, flat.data_bytes), (0x40_0000, PAGE, 0));
    assert_eq!(flat.mem_bytes, PAGE);
    assert_eq!(flat.bytes.len() as u64, PAGE + flat.data_bytes);
    assert_eq!(flat.bytes[0x10..0x14], [9; 4]);
}

#[test]
fn a_program_of_bss_and_text_keeps_its_bss() {
    let parts = [part(0x40_0000, &[9; 4], 4, R | X), part(0x40_1000, &[], 0x5000, R | W)];
    let flat = program::flatten(&exe("t", 0x40_0000, &parts)).unwrap();
    assert_eq!((flat.data_bytes, flat.mem_bytes), (0, 0x6000));
}

#[test]
fn programs_that_cannot_be_flattened_are_refused() {
    let text = part(0x40_0000, &[1; 16], 16, R | X);
    let shared = part(0x40_0800, &[2; 16], 16, R | W);
    assert_refused(program::flatten(&exe("p", 0x40_0000, &[text.clone(), shared])), "fresh page");
    let far = part(0x9000_0000, &[2; 16], 16, R | W);
    assert_refused(program::flatten(&exe("p", 0x40_0000, &[text, far])), "spreads over");
    let null = part(0x10, &[1; 16], 16, R | X);
    assert_refused(program::flatten(&exe("p", 0x10, &[null])), "page 0");
    let wx = part(0x40_0000, &[1; 16], 16, R | W | X);
    assert_refused(program::flatten(&exe("p", 0x40_0000, &[wx])), "read-only executable part");
    let high = part(abi::layout::USER_END - 8, &[1; 8], 16, R | X);
    assert_refused(
        program::flatten(&exe("p", abi::layout::USER_END - 8, &[high])),
        "beyond the last user address",
    );
}

#[test]
fn files_that_are_no_static_executables_are_refused() {
    let good = elf_file(0x40_0000, &[part(0x40_0000, &[1; 16], 16, R | X)]);
    let with = |at: usize, value: u8| {
        let mut file = good.clone();
        file[at] = value;
        Executable::parse("f", &file)
    };
    assert_refused(Executable::parse("f", &good[..40]), "too short");
    assert_refused(Executable::parse("f", &good[..100]), "truncated");
    assert_refused(Executable::parse("f", &good[..good.len() - 1]), "truncated");
    assert_refused(with(0, b'M'), "not an ELF file");
    assert_refused(with(4, 1), "64-bit");
    assert_refused(with(5, 2), "little-endian");
    assert_refused(with(16, 3), "position independent");
    assert_refused(with(16, 1), "link it first");
    assert_refused(with(18, 183), "machine type 183");
    assert_refused(Executable::parse("f", &elf_file(0, &[])), "no loadable segment");
}

#[test]
fn unsound_segments_are_refused() {
    let parse = |entry, parts: &[Part]| Executable::parse("f", &elf_file(entry, parts));
    let text = part(0x40_0000, &[1; 16], 16, R | X);
    assert_refused(parse(0x50_0000, &[text.clone()]), "lies in none of its segments");
    let over = part(0x40_0008, &[1; 16], 16, R | W);
    assert_refused(parse(0x40_0000, &[text, over]), "overlap");
    assert_refused(parse(0x40_0000, &[part(0x40_0000, &[1; 16], 8, R)]), "more bytes in the file");
    assert_refused(parse(u64::MAX - 7, &[part(u64::MAX - 7, &[1; 8], 16, R)]), "address space");
}

#[test]
fn every_truncation_of_an_elf_file_is_refused_not_a_panic() {
    let file = elf_file(0x40_0000, &[part(0x40_0000, &[1; 32], 64, R | X)]);
    for len in 0..file.len() {
        assert!(Executable::parse("f", &file[..len]).is_err(), "{len} bytes were accepted");
    }
}

#[test]
fn load_records_that_collide_are_refused() {
    let mut builder = Builder::new(&kernel());
    builder.server(Server::Sigma0, &sigma0(), "").unwrap();
    let again = exe("root", 0xF0_0080, &[part(0xF0_0080, &[1; 16], 16, R | X)]);
    assert_refused(builder.server(Server::Root, &again, ""), "where sigma0 already is");
    let on_kernel = exe("root", 0x22_0000, &[part(0x22_0000, &[1; 16], 16, R | X)]);
    assert_refused(builder.server(Server::Root, &on_kernel, ""), "where the kernel already is");
    let low = exe("root", 0x8000, &[part(0x8000, &[1; 16], 16, R | X)]);
    assert_refused(builder.server(Server::Root, &low, ""), "below 1 MiB");
    let high = exe("root", LOAD_LIMIT - 8, &[part(LOAD_LIMIT - 8, &[1; 16], 16, R | X)]);
    assert_refused(builder.server(Server::Root, &high, ""), "first 4 GiB");
    let page_shared =
        [part(0x200_0000, &[1; 16], 16, R | X), part(0x200_0800, &[1; 16], 16, R | W)];
    let shared = exe("root", 0x200_0000, &page_shared);
    assert_refused(builder.server(Server::Root, &shared, ""), "share the physical page");
}

#[test]
fn limits_of_the_image_are_kept() {
    let mut builder = Builder::new(&kernel());
    for _ in 0..MAX_RECORDS {
        builder.module(vec![0], "m").unwrap();
    }
    assert_refused(builder.module(vec![0], "m"), "too many modules");
    assert_eq!(verify(&builder.finish()).unwrap().len(), MAX_RECORDS);
    let mut builder = Builder::new(&kernel());
    assert_refused(builder.module(vec![], "a\0b"), "no zero byte");
    assert_refused(builder.module(vec![], &"x".repeat(MAX_CMDLINE_BYTES + 1)), "cannot be stored");
}

#[test]
fn every_truncated_image_is_refused() {
    let image = sample();
    for len in (0..image.len()).step_by(7) {
        assert!(verify(&image[..len]).is_err(), "{len} bytes were accepted");
    }
    assert_refused(verify(&image[..image.len() - 8]), "truncated");
}

#[test]
fn every_flipped_byte_is_noticed() {
    let mut image = sample();
    for at in (0..image.len()).step_by(11) {
        image[at] ^= 0x20;
        assert!(verify(&image).is_err(), "a flip at {at} went unnoticed");
        image[at] ^= 0x20;
    }
    verify(&image).expect("the image is whole again");
}

#[test]
fn wrong_checksum_is_named() {
    let mut image = sample();
    let last = image.len() - 1;
    image[last] ^= 1;
    assert_refused(verify(&image), "checksum");
}

#[test]
fn sealed_but_wrong_records_are_refused() {
    let cases: [(usize, usize, u64, &str); 15] = [
        (0, word::KIND, 99, "unknown kind 99"),
        (0, word::OFFSET, u64::MAX - 10, "outside the image"),
        (0, word::FILE_BYTES, 1 << 40, "outside the image"),
        (0, word::CMDLINE, u64::MAX, "outside the image"),
        (0, word::CMDLINE_BYTES, u64::MAX, "outside the image"),
        (0, word::MEM_BYTES, 1, "more bytes in the image"),
        (0, word::PHYS, 0x7000, "cannot be loaded"),
        (0, word::PHYS, LOAD_LIMIT, "cannot be loaded"),
        (1, word::PHYS, 0xF0_0000, "load addresses"),
        (3, word::TEXT, 0x1000, "do not add up"),
        (3, word::VIRT, 0x40_0001, "not a multiple of the page size"),
        (3, word::ENTRY, 0x40_2000, "not in its text"),
        (4, word::OFFSET, 0, "lies in the records"),
        (4, word::CMDLINE, 0, "lies in the records"),
        (4, word::OFFSET, 0x1000, "overlap"),
    ];
    for (record, at, value, words) in cases {
        assert_refused(verify(&tampered(record, at, value)), words);
    }
}
