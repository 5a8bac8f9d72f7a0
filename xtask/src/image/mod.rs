//! The image tool: lays out σ0, the root task, programs and raw files as the
//! one boot image that the kernel takes (`abi::image`).
//!
//! Everything that could be refused is refused here, on the host, with a
//! sentence; the kernel checks again, because a boot loader may damage a file.
//! [`verify`] is the reading side: it knows only the format, and every image is
//! passed through it before it is written.

pub mod elf;
pub mod places;
pub mod program;
pub mod verify;

use std::ops::Range;

use abi::image::{HEADER_WORDS, MAGIC, RECORD_WORDS, VERSION, kind, word};
use anyhow::{Result, bail, ensure};

use elf::Executable;
pub use verify::verify;

/// Page size: the alignment of programs and modules in the image, bytes.
pub const PAGE: u64 = 4096;
/// Most records in one image: the kernel describes each in its interface page.
pub const MAX_RECORDS: usize = 100;
/// Longest command line, bytes.
pub const MAX_CMDLINE_BYTES: usize = 1024;
/// Load records may not touch the memory below (BIOS, video, boot loader).
pub const LOWEST_LOAD_ADDRESS: u64 = 1 << 20;
/// End of the memory that load records may go to: what the kernel's boot code reaches.
pub const LOAD_LIMIT: u64 = 4 << 30;

/// `address` rounded down to a page.
#[must_use]
pub const fn page_down(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// `address` rounded up to a page; saturates at the top.
#[must_use]
pub const fn page_up(address: u64) -> u64 {
    page_down(address.saturating_add(PAGE - 1))
}

/// Which initial server a load record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The initial space.
    Sigma0,
    /// The chief of all tasks.
    Root,
}

impl Server {
    const fn kind(self) -> u64 {
        match self {
            Self::Sigma0 => kind::SIGMA0,
            Self::Root => kind::ROOT,
        }
    }
}

/// One record before it has a place in the file.
struct Record {
    words: [u64; RECORD_WORDS],
    bytes: Vec<u8>,
    cmdline: String,
}

/// Physical memory that is taken, with its owner's name for messages.
struct Claim {
    owner: String,
    range: Range<u64>,
}

/// Collects records; [`Builder::finish`] lays them out.
#[derive(Default)]
pub struct Builder {
    records: Vec<Record>,
    claims: Vec<Claim>,
}

impl Builder {
    /// An empty image for a kernel that occupies `kernel`'s physical span.
    #[must_use]
    pub fn new(kernel: &Executable) -> Self {
        let span = kernel.phys_span();
        let range = page_down(span.start)..page_up(span.end);
        Self { records: Vec::new(), claims: vec![Claim { owner: "the kernel".to_owned(), range }] }
    }

    /// Adds an initial server: one load record per segment, at its physical address.
    ///
    /// # Errors
    /// A sentence when a segment cannot be loaded where it wants to be.
    pub fn server(&mut self, server: Server, exe: &Executable, cmdline: &str) -> Result<()> {
        for segment in &exe.segments {
            let range = segment.phys_range();
            ensure!(
                range.start >= LOWEST_LOAD_ADDRESS,
                "{} wants to be loaded at {:#x}, below 1 MiB, which belongs to the firmware; \
                 link it higher",
                exe.name,
                range.start
            );
            ensure!(
                range.end <= LOAD_LIMIT,
                "{} wants to be loaded up to {:#x}, beyond the first 4 GiB, which is all that the \
                 kernel reaches when it boots; link it lower",
                exe.name,
                range.end
            );
            self.claim(&exe.name, page_down(range.start)..page_up(range.end))?;
            let mut words = [0; RECORD_WORDS];
            words[word::KIND] = server.kind();
            words[word::MEM_BYTES] = segment.mem_bytes;
            words[word::PHYS] = segment.phys;
            words[word::VIRT] = segment.virt;
            words[word::ENTRY] = exe.entry;
            self.push(words, segment.bytes.clone(), cmdline)?;
        }
        Ok(())
    }

    /// Adds a program for the root task to start.
    ///
    /// # Errors
    /// A sentence when `exe` cannot be flattened or there is no room.
    pub fn program(&mut self, exe: &Executable, cmdline: &str) -> Result<()> {
        let flat = program::flatten(exe)?;
        let mut words = [0; RECORD_WORDS];
        words[word::KIND] = kind::PROGRAM;
        words[word::MEM_BYTES] = flat.mem_bytes;
        words[word::VIRT] = flat.virt;
        words[word::ENTRY] = flat.entry;
        words[word::TEXT] = flat.text_bytes;
        words[word::DATA] = flat.data_bytes;
        self.push(words, flat.bytes, cmdline)
    }

    /// Adds a raw file.
    ///
    /// # Errors
    /// A sentence when there is no room.
    pub fn module(&mut self, bytes: Vec<u8>, cmdline: &str) -> Result<()> {
        let mut words = [0; RECORD_WORDS];
        words[word::KIND] = kind::MODULE;
        words[word::MEM_BYTES] = bytes.len() as u64;
        self.push(words, bytes, cmdline)
    }

    /// Takes `range` for `owner` unless somebody else has a page of it.
    fn claim(&mut self, owner: &str, range: Range<u64>) -> Result<()> {
        for other in &self.claims {
            if other.range.start < range.end && range.start < other.range.end {
                if other.owner == owner {
                    bail!(
                        "two segments of {owner} share the physical page {:#x}; align them in \
                           the linker script",
                        range.start.max(other.range.start)
                    );
                }
                bail!(
                    "{owner} would be loaded at {range:#x?}, where {} already is ({:#x?}); link \
                     one of them at another address",
                    other.owner,
                    other.range
                );
            }
        }
        self.claims.push(Claim { owner: owner.to_owned(), range });
        Ok(())
    }

    fn push(&mut self, words: [u64; RECORD_WORDS], bytes: Vec<u8>, cmdline: &str) -> Result<()> {
        ensure!(
            self.records.len() < MAX_RECORDS,
            "too many modules: a boot image holds at most {MAX_RECORDS} records \
             (one per program, per file and per segment of σ0 and root)"
        );
        ensure!(
            cmdline.len() <= MAX_CMDLINE_BYTES && !cmdline.contains('\0'),
            "the command line `{}` cannot be stored: at most {MAX_CMDLINE_BYTES} bytes, no zero byte",
            cmdline.escape_debug()
        );
        self.records.push(Record { words, bytes, cmdline: cmdline.to_owned() });
        Ok(())
    }

    /// Lays out header, records, command lines and blobs.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let mut tail = (HEADER_WORDS + self.records.len() * RECORD_WORDS) * 8;
        let mut blobs: Vec<(usize, Vec<u8>)> = Vec::new();
        for record in &mut self.records {
            record.words[word::CMDLINE] = tail as u64;
            record.words[word::CMDLINE_BYTES] = record.cmdline.len() as u64;
            let mut line = record.cmdline.clone().into_bytes();
            line.push(0);
            tail += line.len();
            blobs.push((record.words[word::CMDLINE] as usize, line));
        }
        for record in &mut self.records {
            tail = page_up(tail as u64) as usize;
            record.words[word::OFFSET] = tail as u64;
            record.words[word::FILE_BYTES] = record.bytes.len() as u64;
            tail += record.bytes.len();
            blobs.push((record.words[word::OFFSET] as usize, std::mem::take(&mut record.bytes)));
        }
        let mut image = vec![0; page_up(tail as u64) as usize];
        for (offset, blob) in blobs {
            image[offset..offset + blob.len()].copy_from_slice(&blob);
        }
        let records = self.records.iter().flat_map(|record| record.words);
        put_words(&mut image, HEADER_WORDS * 8, records);
        seal(&mut image, self.records.len() as u64);
        image
    }
}

/// Writes the header, checksum included.
fn seal(image: &mut [u8], records: u64) {
    let sum = checksum(&image[HEADER_WORDS * 8..]);
    let header = [MAGIC, VERSION, records, image.len() as u64, sum];
    put_words(image, 0, header.into_iter());
}

/// The format's checksum over `bytes`, a multiple of 8 long.
fn checksum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default()));
    abi::image::checksum(words)
}

fn put_words(image: &mut [u8], at: usize, words: impl Iterator<Item = u64>) {
    for (index, word) in words.enumerate() {
        let start = at + index * 8;
        image[start..start + 8].copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;
