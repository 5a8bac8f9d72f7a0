//! Good inputs of every kind: what the corpus begins with.

use abi::bootinfo::{self as info, exec, module, record};
use abi::image::{HEADER_WORDS, MAGIC, RECORD_WORDS, VERSION, checksum, kind, word};

use crate::common::program::{Extra, Load, Member, archive, elf};
use crate::loader::PLACE;
use crate::madt;

/// Where loaders say that ACPI's root table is; nobody reads it there.
const ACPI_ROOT: u64 = 0xAABB_CCDD_0000;
const CODE: &[u8] = &[0x0f, 0x05, 0xeb, 0xfe];

/// The samples of a target, by file name.
///
/// # Panics
/// If there is no such target.
#[must_use]
pub fn samples(target: &str) -> Vec<(&'static str, Vec<u8>)> {
    match target {
        "boot_image" => vec![("image", boot_image())],
        "loader" => vec![("pvh", pvh()), ("multiboot2", multiboot2())],
        "madt" => vec![
            ("usual", [vec![0], madt::usual()].concat()),
            ("newer", [vec![1], madt::newer()].concat()),
            ("memory", [vec![2], madt::firmware(madt::usual())].concat()),
        ],
        "bootinfo" => vec![("bootinfo", bootinfo())],
        "system" => vec![
            ("system.toml", SYSTEM.as_bytes().to_vec()),
            ("small.toml", SMALL_SYSTEM.as_bytes().to_vec()),
        ],
        "task_line" => vec![("line", LINE.as_bytes().to_vec())],
        "archive" => vec![("newc", newc()), ("two", [newc(), vec![0; 512], newc()].concat())],
        "program" => vec![
            ("fixed", fixed()),
            ("moving", moving(None)),
            ("linked", moving(Some("/bin/other"))),
            ("script", b"#! /bin/other  -x -y \nrest".to_vec()),
        ],
        "tool_elf" => vec![("fixed", fixed())],
        other => panic!("there is no target {other}"),
    }
}

const SYSTEM: &str = "[sigma0]\nimage = \"sigma0\"\n[root]\nimage = \"root\"\nargs = \"x\"\n\
    [[task]]\nname = \"serial\"\nimage = \"serial\"\npriority = 200\nirqs = [4, 3]\n\
    ports = [\"0x3f8+8\", \"112+1\"]\nmmio = [\"0xfed00000+0x1000\"]\ntrusted = [\"console\"]\n\
    provides = [\"console\"]\nrestart = true\nmemory_pages = 16\nthreads = 32\n\
    [[task]]\nname = \"shell\"\nimage = \"monitor\"\nquota_pages = 32\nautostart = false\n\
    control = true\npager = \"root\"\nargs = \"two words\"\n\
    [[module]]\nname = \"motd\"\nfile = \"README.md\"\n";
/// So small that many mutations of it still mean something.
const SMALL_SYSTEM: &str = "[sigma0]\nimage = \"sigma0\"\n[root]\nimage = \"root\"\n\
    # A comment, of which any byte may change.\n[[task]]\nname = \"a\"\nimage = \"a\"\n";
const LINE: &str = "boot/serial priority=200 quota=0x40 memory=16 irq=4,8 ports=0x3F8+8,0x70+2 \
    mmio=0xFED00000+0x1000 threads=32 slice=5000 provides=console uses=- start=0 restart=1 control=1 pager=root args=one two";

fn words(bytes: &mut Vec<u8>, words: &[u64]) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn halves(bytes: &mut Vec<u8>, halves: &[u32]) {
    bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
}

/// σ0, the root task, a program and a module.
#[must_use]
pub fn boot_image() -> Vec<u8> {
    let mut parts = [[0; RECORD_WORDS]; 4];
    for (part, (what, at)) in
        parts.iter_mut().zip([(kind::SIGMA0, 0x80_0000), (kind::ROOT, 0x90_0000)])
    {
        part[word::KIND] = what;
        part[word::FILE_BYTES] = 100;
        part[word::MEM_BYTES] = 9000;
        (part[word::PHYS], part[word::ENTRY]) = (at, at + 16);
    }
    parts[2][word::KIND] = kind::PROGRAM;
    parts[2][word::FILE_BYTES] = 4096 + 50;
    parts[2][word::MEM_BYTES] = 4096 + 50 + 5000;
    (parts[2][word::VIRT], parts[2][word::ENTRY]) = (0x40_0000, 0x40_0010);
    (parts[2][word::TEXT], parts[2][word::DATA]) = (4096, 50);
    parts[3][word::KIND] = kind::MODULE;
    parts[3][word::FILE_BYTES] = 77;
    let mut body = Vec::new();
    let start = (HEADER_WORDS + parts.len() * RECORD_WORDS) * 8;
    for part in &mut parts {
        body.resize((start + body.len()).next_multiple_of(4096) - start, 0);
        part[word::OFFSET] = (start + body.len()) as u64;
        body.resize(body.len() + part[word::FILE_BYTES] as usize, 0xA5);
        part[word::CMDLINE] = (start + body.len()) as u64;
        part[word::CMDLINE_BYTES] = 7;
        body.extend(b"name -v\0");
    }
    body.resize(body.len().next_multiple_of(8), 0);
    let mut behind = Vec::new();
    parts.iter().for_each(|part| words(&mut behind, part));
    behind.extend(body);
    let sum = checksum(behind.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
    let total = (HEADER_WORDS * 8 + behind.len()) as u64;
    let mut image = Vec::new();
    words(&mut image, &[MAGIC, VERSION, parts.len() as u64, total, sum]);
    [image, behind].concat()
}

/// ACPI's pointer, to the root table at `root`.
pub(crate) fn rsdp(root: u64) -> Vec<u8> {
    let mut bytes = b"RSD PTR \0BATON \x02".to_vec();
    halves(&mut bytes, &[0x1234_5678]);
    bytes[8] = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    halves(&mut bytes, &[36]);
    words(&mut bytes, &[root]);
    bytes.extend([0; 4]);
    bytes[32] = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    bytes
}

/// PVH's start information: then map, module list, command line, ACPI's pointer.
fn pvh() -> Vec<u8> {
    let mut bytes = Vec::new();
    halves(&mut bytes, &[0x336E_C578, 1, 0, 1]);
    let map = PLACE + 56;
    words(&mut bytes, &[map + 48, map + 80, map + 96, map]);
    halves(&mut bytes, &[2, 0]);
    words(&mut bytes, &[0, 0x9_FC00, 1, 0x10_0000, 0x3F0_0000, 1]);
    words(&mut bytes, &[0x300_0000, 0x5000, 0, 0]);
    bytes.extend(b"kmem=4M a\x07b\0\0\0\0\0");
    bytes.extend(rsdp(ACPI_ROOT));
    [vec![0], bytes].concat()
}

fn multiboot2() -> Vec<u8> {
    let mut bytes = vec![0; 8];
    halves(&mut bytes, &[1, 8 + 7]);
    bytes.extend(b"kmem=1\0\0");
    halves(&mut bytes, &[3, 17, 0x300_0000, 0x301_0000, 0, 0]);
    halves(&mut bytes, &[6, 16 + 72, 24, 0]);
    words(&mut bytes, &[0, 0x9_FC00, 1, 0x10_0000, 0x3F0_0000, 1, 0xFEC0_0000, 0x1000, 2]);
    halves(&mut bytes, &[8, 8 + 30]);
    words(&mut bytes, &[0xFD00_0000]);
    halves(&mut bytes, &[4096, 1024, 768]);
    bytes.extend([32, 1, 0, 0, 16, 8, 8, 8, 0, 8, 0, 0]);
    halves(&mut bytes, &[14, 8 + 20]);
    bytes.extend(&rsdp(ACPI_ROOT)[..20]);
    bytes.extend([0; 4]);
    halves(&mut bytes, &[0, 8]);
    let total = bytes.len() as u32;
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    [vec![1], bytes].concat()
}

fn bootinfo() -> Vec<u8> {
    let (program_words, module_words) = (info::SIMPLE_EXEC_WORDS + 2, info::MODULE_WORDS + 1);
    let total = info::HEADER_WORDS + program_words + module_words;
    let first = info::HEADER_WORDS as u64 * 8;
    let mut all = vec![info::MAGIC, 1, total as u64 * 8, first, 2, 0, 0, 0];
    let mut program = vec![0; program_words];
    program[record::TYPE] = info::SIMPLE_EXEC;
    program[record::NEXT] = program_words as u64 * 8;
    program[exec::TEXT..exec::TEXT + 3].copy_from_slice(&[0x30_0000, 0x40_0000, 4096]);
    program[exec::COMMAND_LINE] = info::SIMPLE_EXEC_WORDS as u64 * 8;
    program[info::SIMPLE_EXEC_WORDS] = u64::from_le_bytes(*b"pager st");
    program[info::SIMPLE_EXEC_WORDS + 1] = u64::from_le_bytes(*b"art=1\0\0\0");
    let mut file = vec![0; module_words];
    file[record::TYPE] = info::MODULE;
    (file[module::START], file[module::SIZE]) = (0x31_0000, 77);
    file[module::COMMAND_LINE] = info::MODULE_WORDS as u64 * 8;
    file[info::MODULE_WORDS] = u64::from_le_bytes(*b"motd\0\0\0\0");
    all.extend(program.into_iter().chain(file));
    all.iter().flat_map(|word: &u64| word.to_le_bytes()).collect()
}

fn newc() -> Vec<u8> {
    archive(&[
        Member(".", 0o40_711, b""),
        Member("bin", 0o40_755, b""),
        Member("bin/busybox", 0o100_755, b"the program"),
        Member("bin/ls", 0o120_777, b"busybox"),
        Member("etc/deep/file", 0o100_600, &[9; 5000]),
        Member("dev/own", 0o20_640, b""),
        Member("pipe", 0o10_644, b""),
    ])
}

/// A program at fixed addresses.
#[must_use]
pub fn fixed() -> Vec<u8> {
    let loads = [Load(0x40_1000, CODE, 4, 5), Load(0x40_2ff0, b"data at the end.", 0x3010, 6)];
    elf(0x40_1000, &loads, &Extra::default())
}

/// One that can be loaded anywhere.
#[must_use]
pub fn moving(interpreter: Option<&str>) -> Vec<u8> {
    let loads = [Load(0x1000, CODE, 4, 5), Load(0x2000, b"data", 0x10, 6)];
    elf(0x1002, &loads, &Extra { dynamic: true, interpreter, ..Extra::default() })
}
