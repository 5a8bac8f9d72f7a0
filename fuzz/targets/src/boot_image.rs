//! The boot image, as the kernel reads it, and the bootinfo that comes of it.

use abi::image::{HEADER_WORDS, checksum};
use kernel::boot::bootinfo;
use kernel::boot::image::Image;
use kernel::boot::memory::{Range, Regions};
use kernel::boot::plan::{Needs, Plan, plan};

pub(crate) const KERNEL: Range = Range::new(0x20_0000, 0x24_0000);
const TABLES: u64 = 0x1_0000;

/// Reads the image as it is and with its checksum mended, without which nothing behind
/// the header would ever be looked at.
pub fn boot_image(bytes: &[u8]) -> bool {
    let as_it_is = read(bytes);
    let mut mended = bytes.to_vec();
    let total = word(bytes, 3).min(bytes.len() as u64) as usize;
    if let Some(body) = bytes.get(HEADER_WORDS * 8..total) {
        let words = body.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        mended[32..40].copy_from_slice(&checksum(words).to_le_bytes());
    }
    read(&mended) || as_it_is
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let word = bytes.get(index * 8..index * 8 + 8);
    word.map_or(0, |word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

/// A machine of 64 MiB.
pub(crate) fn regions() -> Regions {
    let mut regions = Regions::new();
    regions.push(0, 0x9_FC00, 1);
    regions.push(0x10_0000, 63 << 20, 1);
    regions
}

fn read(bytes: &[u8]) -> bool {
    let Ok(image) = Image::parse(bytes) else { return false };
    let whole = Range::new(0, bytes.len() as u64);
    for record in image.records() {
        assert!(whole.contains(record.file), "{record:x?}");
        assert_eq!(image.command_line(&record).len() as u64, record.command_line.len());
    }
    let again = Image::reopen(bytes, &image.seal()).expect("the same bytes");
    assert!(again.records().eq(image.records()));
    read_bootinfo(&image);
    let regions = regions();
    if image.check_places(&regions, KERNEL).is_ok() {
        make_plan(&regions, &image);
    }
    true
}

/// The root task finds every server, program and module in the bootinfo.
fn read_bootinfo(image: &Image<'_>) {
    let screen = Some(abi::Framebuffer::decode([0xFD00_0000, 640 << 32 | 2560, 480, 32, 0]));
    let bytes = bootinfo::bytes_needed(image, screen);
    let mut words = vec![0; (bytes / 8) as usize];
    assert!(bootinfo::build(image, 0x100_0000, screen, &mut words), "{bytes} bytes were asked for");
    let mut found = 0;
    let read = |at: u64| words.get((at / 8) as usize).copied().unwrap_or(0);
    bootcfg::records(read, |_| found += 1).expect("the kernel's own bootinfo");
    let others = image.records().filter(|record| !record.is_load()).count();
    assert_eq!(found, 1 + image.servers().count() + others);
}

/// Every place lies in usable memory, and no two overlap.
pub(crate) fn make_plan(regions: &Regions, image: &Image<'_>) {
    let needs = Needs {
        kernel: KERNEL,
        tables: TABLES,
        bootinfo: bootinfo::bytes_needed(image, None),
        pool: None,
    };
    let loaded = Range::new(0x300_0000, 0x300_0000 + image.len());
    if !regions.is_usable(loaded) || !regions.is_usable(KERNEL) {
        return;
    }
    let Ok(Plan { image: moved, tables, bootinfo, pool, trampoline }) =
        plan(regions, loaded, image, &needs)
    else {
        return;
    };
    let mut uses = vec![KERNEL, moved.pages_out(), tables, bootinfo, pool];
    if !trampoline.is_empty() {
        assert!(trampoline.len() == 4096 && trampoline.end <= 0xA_0000, "{trampoline:x?}");
        uses.push(trampoline);
    }
    uses.extend(image.servers().map(|(_, server)| server.range.pages_out()));
    for (index, range) in uses.iter().enumerate() {
        assert!(!range.is_empty() && regions.is_usable(*range), "{range:x?} of {uses:x?}");
        assert!(uses[..index].iter().all(|other| !other.overlaps(*range)), "{uses:x?}");
    }
}
