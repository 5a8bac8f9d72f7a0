//! Tests of the boot logic on the host: hand-made inputs, and random ones that
//! must be refused or accepted but never panic or leave the rules.

mod image;
mod loader;
mod madt;
mod plan;

use super::memory::{PhysicalMemory, Range};
use abi::image::{HEADER_WORDS, MAGIC, RECORD_WORDS, VERSION, checksum, kind, word};

/// A small random generator (xorshift64*), so that every run tests the same cases.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Numbers that break arithmetic: small, page-sized, huge, at the edges.
    pub fn awkward(&mut self) -> u64 {
        match self.below(6) {
            0 => self.below(16),
            1 => self.below(1 << 24) & !0xFFF,
            2 => 1 << self.below(64),
            3 => u64::MAX - self.below(0x3000),
            4 => (1 << self.below(64)) - 1,
            _ => self.next(),
        }
    }
}

/// Physical memory that has bytes in one place only.
pub struct FakeMemory {
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl PhysicalMemory for FakeMemory {
    fn bytes(&self, range: Range) -> Option<&[u8]> {
        let from = range.start.checked_sub(self.start)?;
        let to = range.end.checked_sub(self.start)?;
        if from == to { None } else { self.bytes.get(from as usize..to as usize) }
    }
}

/// A record and its bytes, for [`build`].
#[derive(Clone)]
pub struct Part {
    pub words: [u64; RECORD_WORDS],
    pub bytes: Vec<u8>,
    pub command_line: &'static str,
}

/// A load record of `kind` with `len` bytes for `memory` bytes at `physical`.
pub fn server(kind: u64, physical: u64, len: usize, memory: u64) -> Part {
    let mut words = [0; RECORD_WORDS];
    words[word::KIND] = kind;
    words[word::MEM_BYTES] = memory;
    words[word::PHYS] = physical;
    words[word::ENTRY] = physical;
    Part { words, bytes: vec![0xAA; len], command_line: "server" }
}

/// A raw file.
pub fn module(len: usize, command_line: &'static str) -> Part {
    let mut words = [0; RECORD_WORDS];
    words[word::KIND] = kind::MODULE;
    Part { words, bytes: vec![0xBB; len], command_line }
}

/// A program at 4 MiB with `text` pages of text, `data` bytes of data and `bss` bytes of bss.
pub fn program(text: u64, data: u64, bss: u64) -> Part {
    let mut words = [0; RECORD_WORDS];
    words[word::KIND] = kind::PROGRAM;
    words[word::VIRT] = 0x40_0000;
    words[word::ENTRY] = 0x40_0010;
    words[word::TEXT] = text * 4096;
    words[word::DATA] = data;
    words[word::MEM_BYTES] = text * 4096 + data + bss;
    Part { words, bytes: vec![0xCC; (text * 4096 + data) as usize], command_line: "program -v" }
}

/// A good image: all servers, a program, two modules.
pub fn good_parts() -> Vec<Part> {
    vec![
        server(kind::SIGMA0, 0xF0_0000, 5000, 9000),
        server(kind::ROOT, 0x100_0000, 70_000, 90_000),
        server(kind::ROOT, 0x102_0000, 100, 100),
        program(2, 100, 5000),
        module(12_345, "a.file"),
        module(0, ""),
    ]
}

/// Lays the parts out as the image tool does.
pub fn build(parts: &[Part]) -> Vec<u8> {
    let mut records = Vec::new();
    let body_start = (HEADER_WORDS + parts.len() * RECORD_WORDS) * 8;
    let mut bytes = vec![0; body_start];
    for part in parts {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        let mut words = part.words;
        words[word::OFFSET] = bytes.len() as u64;
        words[word::FILE_BYTES] = part.bytes.len() as u64;
        bytes.extend(&part.bytes);
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        words[word::CMDLINE] = bytes.len() as u64;
        words[word::CMDLINE_BYTES] = part.command_line.len() as u64;
        bytes.extend(part.command_line.as_bytes());
        bytes.push(0);
        records.push(words);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    for (index, words) in records.iter().enumerate() {
        for (at, value) in words.iter().enumerate() {
            set_word(&mut bytes, HEADER_WORDS + index * RECORD_WORDS + at, *value);
        }
    }
    for (at, value) in
        [MAGIC, VERSION, parts.len() as u64, bytes.len() as u64].into_iter().enumerate()
    {
        set_word(&mut bytes, at, value);
    }
    seal(&mut bytes);
    bytes
}

/// Makes the checksum right again.
pub fn seal(bytes: &mut [u8]) {
    let words = bytes[HEADER_WORDS * 8..]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let sum = checksum(words);
    set_word(bytes, 4, sum);
}

/// Overwrites word `at`.
pub fn set_word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
}

/// Overwrites word `at` of record `index`.
pub fn set_record_word(bytes: &mut [u8], index: usize, at: usize, value: u64) {
    set_word(bytes, HEADER_WORDS + index * RECORD_WORDS + at, value);
}
