//! What loaders pass: sound information is understood, anything else is survived.

use abi::framebuffer::Defect;

use super::{FakeMemory, Random};
use crate::boot::acpi::{self, RootTable};
use crate::boot::info::{BootInfo, CommandLine, LoaderError};
use crate::boot::memory::Range;
use crate::boot::{multiboot2, pvh};

const PLACE: u64 = 0x9000;
/// Pixels have colours of their own.
const RGB: u8 = 1;
type Parse = fn(&FakeMemory) -> Result<BootInfo, LoaderError>;
const BOTH: [Parse; 2] =
    [|memory| pvh::parse(memory, PLACE), |memory| multiboot2::parse(memory, PLACE)];

fn put32(bytes: &mut Vec<u8>, values: &[u32]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn put64(bytes: &mut Vec<u8>, values: &[u64]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

pub(super) fn rsdp(revision: u8) -> Vec<u8> {
    let mut bytes = b"RSD PTR \0BATON ".to_vec();
    bytes[8] = 0;
    bytes.truncate(15);
    bytes.push(revision);
    put32(&mut bytes, &[0x1234_5678]);
    bytes[8] = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    put32(&mut bytes, &[36]);
    put64(&mut bytes, &[0xAABB_CCDD_0000]);
    bytes.extend([0; 4]);
    bytes[32] = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    bytes
}

/// Start information at [`PLACE`], then map, module list, command line, RSDP.
fn pvh_memory() -> FakeMemory {
    let mut bytes = Vec::new();
    put32(&mut bytes, &[0x336E_C578, 1, 0, 1]);
    put64(
        &mut bytes,
        &[PLACE + 56 + 48, PLACE + 56 + 48 + 32, PLACE + 56 + 48 + 32 + 16, PLACE + 56],
    );
    put32(&mut bytes, &[2, 0]);
    put64(&mut bytes, &[0, 0x9_FC00, 1, 0x10_0000, 0x1FF0_0000, 1]);
    put64(&mut bytes, &[0x100_0000, 0x5000, 0, 0]);
    bytes.extend(b"kmem=64M a\x07b\0\0\0\0");
    bytes.extend(rsdp(2));
    FakeMemory { start: PLACE, bytes }
}

fn multiboot2_memory() -> FakeMemory {
    let mut bytes = vec![0; 8];
    put32(&mut bytes, &[1, 8 + 7]);
    bytes.extend(b"kmem=1\0\0");
    put32(&mut bytes, &[3, 17, 0x20_0000, 0x20_1000]);
    bytes.extend([0; 8]);
    put32(&mut bytes, &[3, 17, 0x30_0000, 0x30_1000]);
    bytes.extend([0; 8]);
    put32(&mut bytes, &[6, 16 + 48, 24, 0]);
    put64(&mut bytes, &[0x10_0000, 0x700_0000, 1, 0xFEC0_0000, 0x1000, 2]);
    put32(&mut bytes, &[8, 8 + 30]);
    put64(&mut bytes, &[0xFD00_0000]);
    put32(&mut bytes, &[4096, 1024, 768]);
    bytes.extend([32, RGB, 0, 0, 16, 8, 8, 8, 0, 8, 0, 0]);
    put32(&mut bytes, &[14, 8 + 20]);
    bytes.extend(&rsdp(0)[..20]);
    bytes.extend([0; 4]);
    put32(&mut bytes, &[0, 8]);
    let total = bytes.len() as u32;
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    FakeMemory { start: PLACE, bytes }
}

#[test]
fn pvh_information_is_understood() {
    let info = pvh::parse(&pvh_memory(), PLACE).expect("sound information");
    let usable: Vec<Range> = info.regions.conventional().collect();
    assert_eq!(usable, [Range::new(0, 0x9_F000), Range::new(0x10_0000, 0x2000_0000)]);
    assert_eq!(info.image, Range::new(0x100_0000, 0x100_5000));
    assert_eq!(info.command_line.text(), "kmem=64M a b");
    assert_eq!(info.command_line.size_option("kmem"), Some(64 << 20));
    assert_eq!(info.acpi, Some(RootTable::Xsdt(0xAABB_CCDD_0000)));
}

#[test]
fn multiboot2_information_is_understood() {
    let info = multiboot2::parse(&multiboot2_memory(), PLACE).expect("sound information");
    assert_eq!(info.image, Range::new(0x20_0000, 0x20_1000), "the first module is the boot image");
    assert_eq!(info.regions.iter().count(), 2);
    assert_eq!(info.regions.top(), 0x710_0000);
    assert_eq!(info.command_line.text(), "kmem=1");
    assert_eq!(info.acpi, Some(RootTable::Rsdt(0x1234_5678)));
}

/// Where the framebuffer's tag is in [`multiboot2_memory`].
fn framebuffer_at(memory: &FakeMemory) -> usize {
    let tag = [8_u32, 38].map(u32::to_le_bytes).concat();
    memory.bytes.windows(8).position(|bytes| bytes == tag).expect("the tag")
}

#[test]
fn the_framebuffer_is_understood_or_not_believed() {
    let memory = multiboot2_memory();
    let at = framebuffer_at(&memory);
    let with = |offset: usize, bytes: &[u8]| {
        let mut memory = FakeMemory { start: PLACE, bytes: memory.bytes.clone() };
        memory.bytes[at + offset..at + offset + bytes.len()].copy_from_slice(bytes);
        multiboot2::parse(&memory, PLACE).expect("the rest is sound").framebuffer
    };
    let screen = with(0, &[]).expect("a framebuffer").expect("that can be");
    assert_eq!((screen.address, screen.pitch, screen.bits), (0xFD00_0000, 4096, 32));
    assert_eq!((screen.width, screen.height), (1024, 768));
    assert_eq!(
        screen.channels.map(|channel| (channel.position, channel.bits)),
        [(16, 8), (8, 8), (0, 8)]
    );
    assert_eq!(with(29, &[2]), None, "text mode");
    assert_eq!(with(29, &[0]), None, "a palette");
    assert_eq!(with(4, &[31]), None, "a tag without its colours");
    assert_eq!(with(8, &[0xFF; 8]), Some(Err(Defect::Unaligned(u64::MAX))));
    assert_eq!(with(16, &[0; 4]), Some(Err(Defect::Pitch(0))));
    assert_eq!(with(20, &[0xFF; 4]), Some(Err(Defect::Size(u32::MAX, 768))));
    assert!(matches!(with(32, &[31]), Some(Err(Defect::Channel(_)))));
}

#[test]
fn missing_pieces_are_named() {
    let mut memory = pvh_memory();
    memory.bytes[0] = 0;
    assert_eq!(pvh::parse(&memory, PLACE).err(), Some(LoaderError::Magic(0x336E_C500)));
    let mut memory = pvh_memory();
    memory.bytes[48] = 0;
    assert_eq!(pvh::parse(&memory, PLACE).err(), Some(LoaderError::NoMemoryMap));
    assert_eq!(pvh::parse(&memory, 0).err(), Some(LoaderError::Unreadable(0)));
    let end =
        FakeMemory { start: PLACE, bytes: vec![16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0] };
    assert_eq!(multiboot2::parse(&end, PLACE).err(), Some(LoaderError::NoMemoryMap));
}

#[test]
fn damaged_information_never_panics() {
    let mut random = Random(3);
    for (good, parse) in [pvh_memory(), multiboot2_memory()].iter().zip(BOTH) {
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut memory = FakeMemory { start: PLACE, bytes: good.bytes.clone() };
            for _ in 0..=random.below(3) {
                let at = random.below(memory.bytes.len() as u64 - 8) as usize & !3;
                let value = random.awkward().to_le_bytes();
                memory.bytes[at..at + 4].copy_from_slice(&value[..4]);
            }
            memory.bytes.truncate(random.below(good.bytes.len() as u64 * 2) as usize);
            accepted += u32::from(parse(&memory).is_ok());
        }
        assert!(
            accepted > 1000,
            "only {accepted} were accepted: the test does not reach what it is for"
        );
    }
}

#[test]
fn acpi_needs_its_checksums() {
    let good = rsdp(2);
    for at in 0..20 {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(acpi::parse(&bad), None);
    }
    let mut bad = good.clone();
    bad[24] ^= 1;
    assert_eq!(
        acpi::parse(&bad),
        Some(RootTable::Rsdt(0x1234_5678)),
        "the first checksum still holds"
    );
    assert_eq!(acpi::parse(&good[..19]), None);
}

#[test]
fn options_of_the_command_line() {
    let line = |text: &str| {
        CommandLine::read(&FakeMemory { start: 1, bytes: [text.as_bytes(), &[0]].concat() }, 1)
    };
    assert_eq!(line("a kmem=3G").size_option("kmem"), Some(3 << 30));
    assert_eq!(line("kmem=1 kmem=2k").size_option("kmem"), Some(2048));
    for bad in [
        "",
        "kmem",
        "kmem=",
        "kmem=M",
        "kmem=x",
        "kmem=-1",
        "kmem=99999999999999999999",
        "kmem=17179869184G",
    ] {
        assert_eq!(line(bad).size_option("kmem"), None, "{bad}");
    }
    let long = "x".repeat(5000);
    assert_eq!(line(&long).text().len(), crate::boot::info::COMMAND_LINE_BYTES);
    assert_eq!(line("caf\u{e9} kmem=7").size_option("kmem"), Some(7));
}
