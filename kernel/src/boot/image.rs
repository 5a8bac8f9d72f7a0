//! The boot image: checked once, as a whole, before anything in it is used.
//!
//! The bytes come from a file through a loader, so every number is an
//! allegation. [`Image::parse`] accepts an image only if all records are sound;
//! afterwards reading them cannot fail. The format is [`abi::image`].

use abi::image::{HEADER_WORDS, MAGIC, RECORD_WORDS, VERSION, checksum, kind, word};

use super::info::field;
use super::memory::{LOW_LIMIT, PAGE, Range, Regions};
use super::refusal::{Obstacle, RecordFault, Refusal};

/// The most records that the kernel takes: the KIP has one descriptor for each.
pub const MAX_RECORDS: usize = 100;
/// End of the addresses that a load record may go to: what boot code can reach.
const LOAD_LIMIT: u64 = 4 << 30;

const HEADER_BYTES: u64 = HEADER_WORDS as u64 * 8;
const RECORD_BYTES: u64 = RECORD_WORDS as u64 * 8;

/// The initial servers, in the order of the KIP.
pub const SERVERS: [(u64, &str); 3] =
    [(kind::SIGMA0, "sigma0"), (kind::SIGMA1, "sigma1"), (kind::ROOT, "the root task")];

/// A sound boot image.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// What [`Image::parse`] found out about an image.
#[derive(Clone, Copy, Debug)]
pub struct Seal {
    len: usize,
    count: usize,
}

impl Seal {
    /// Bytes of the image.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an image always has a header")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Number of records.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// One of [`kind`].
    pub kind: u64,
    /// Where its bytes are in the image.
    pub file: Range,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Physical load address (load records).
    pub physical: u64,
    /// Virtual start address (programs).
    pub virt: u64,
    /// Entry point.
    pub entry: u64,
    /// Bytes of text (programs).
    pub text: u64,
    /// Bytes of data (programs).
    pub data: u64,
    /// Where its command line is in the image, without the final zero.
    pub command_line: Range,
}

/// An initial server, from all of its load records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server {
    /// Physical memory from its lowest to its highest byte.
    pub range: Range,
    /// Entry point.
    pub entry: u64,
}

impl Record {
    /// Whether the kernel copies it to its physical address.
    #[must_use]
    pub const fn is_load(&self) -> bool {
        matches!(self.kind, kind::SIGMA0 | kind::SIGMA1 | kind::ROOT)
    }

    /// Where a load record goes.
    #[must_use]
    pub const fn target(&self) -> Range {
        Range::new(self.physical, self.physical.saturating_add(self.memory_bytes))
    }

    /// Where its bytes are in physical memory, whole pages, with the image at `image`.
    #[must_use]
    pub const fn place(&self, image: u64) -> Range {
        Range::new(image.saturating_add(self.file.start), image.saturating_add(self.file.end))
            .pages_out()
    }
}

impl<'a> Image<'a> {
    /// Checks all of `bytes`.
    ///
    /// # Errors
    /// What is wrong, for the log.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let have = bytes.len() as u64;
        let header = |index: usize| {
            field::u64(bytes, index * 8).ok_or(Refusal::Short { have, need: HEADER_BYTES })
        };
        let (magic, version, count, total, expected) =
            (header(0)?, header(1)?, header(2)?, header(3)?, header(4)?);
        if magic != MAGIC {
            return Err(Refusal::Magic(magic));
        }
        if version != VERSION {
            return Err(Refusal::Version(version));
        }
        if total < HEADER_BYTES || total > have || !total.is_multiple_of(8) {
            return Err(Refusal::Total { total, have });
        }
        let limit = ((total - HEADER_BYTES) / RECORD_BYTES).min(MAX_RECORDS as u64);
        if count > limit {
            return Err(Refusal::Count { count, limit });
        }
        let bytes = bytes.get(..total as usize).ok_or(Refusal::Total { total, have })?;
        let found = checksum(words(bytes.get(HEADER_BYTES as usize..).unwrap_or_default()));
        if found != expected {
            return Err(Refusal::Checksum { expected, found });
        }
        let image = Self { bytes, count: count as usize };
        image.check_records()?;
        Ok(image)
    }

    fn check_records(&self) -> Result<(), Refusal> {
        for (index, record) in self.records().enumerate() {
            self.check_record(index, &record).map_err(|fault| Refusal::Record { index, fault })?;
        }
        for (second, record) in self.records().enumerate() {
            // Programs and modules are handed out by the page.
            let claim = |record: Record| {
                if record.is_load() { record.file } else { record.file.pages_out() }
            };
            let clash =
                self.records().take(second).position(|other| claim(other).overlaps(claim(record)));
            if let Some(first) = clash {
                return Err(Refusal::Overlap { first, second });
            }
        }
        if self.server(kind::SIGMA0).is_none() { Err(Refusal::NoSigma0) } else { Ok(()) }
    }

    fn check_record(&self, index: usize, record: &Record) -> Result<(), RecordFault> {
        let total = self.bytes.len() as u64;
        let behind_records = HEADER_BYTES + self.count as u64 * RECORD_BYTES;
        let body = Range::new(behind_records, total);
        let [file_start, file_bytes] =
            [word::OFFSET, word::FILE_BYTES].map(|at| self.word(index, at));
        let file = Range::sized(file_start, file_bytes).ok_or(RecordFault::Outside)?;
        if !body.contains(file) {
            return Err(RecordFault::Outside);
        }
        let [line_start, line_bytes] =
            [word::CMDLINE, word::CMDLINE_BYTES].map(|at| self.word(index, at));
        if line_bytes > 0 {
            let line = Range::sized(line_start, line_bytes).ok_or(RecordFault::CommandLine)?;
            let has_end = self.bytes.get(line.end as usize) == Some(&0);
            if !body.contains(line) || line.end >= total || !has_end {
                return Err(RecordFault::CommandLine);
            }
        }
        match record.kind {
            kind::SIGMA0 | kind::SIGMA1 | kind::ROOT => check_load(record),
            kind::PROGRAM => check_program(record),
            kind::MODULE if !record.file.start.is_multiple_of(PAGE) => Err(RecordFault::Unaligned),
            kind::MODULE => Ok(()),
            other => Err(RecordFault::Kind(other)),
        }
    }

    /// The records, in order.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        (0..self.count).map(|index| self.record(index))
    }

    /// Record number `index`; zeros if there is none.
    #[must_use]
    pub fn record(&self, index: usize) -> Record {
        let word = |at| self.word(index, at);
        let range = |start: u64, len: u64| Range::new(start, start.saturating_add(len));
        Record {
            kind: word(word::KIND),
            file: range(word(word::OFFSET), word(word::FILE_BYTES)),
            memory_bytes: word(word::MEM_BYTES),
            physical: word(word::PHYS),
            virt: word(word::VIRT),
            entry: word(word::ENTRY),
            text: word(word::TEXT),
            data: word(word::DATA),
            command_line: range(word(word::CMDLINE), word(word::CMDLINE_BYTES)),
        }
    }

    fn word(&self, record: usize, at: usize) -> u64 {
        field::u64(self.bytes, (HEADER_WORDS + record * RECORD_WORDS + at) * 8).unwrap_or(0)
    }

    /// Proof that the image was checked, for [`Image::reopen`].
    #[must_use]
    pub fn seal(&self) -> Seal {
        Seal { len: self.bytes.len(), count: self.count }
    }

    /// The same image again, perhaps at another place, without checking it twice.
    #[must_use]
    pub fn reopen(bytes: &'a [u8], seal: &Seal) -> Option<Self> {
        Some(Self { bytes: bytes.get(..seal.len)?, count: seal.count })
    }

    /// Bytes of the whole image.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether the image has no byte; never, since it has a header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A record's command line; empty if it has none.
    #[must_use]
    pub fn command_line(&self, record: &Record) -> &'a [u8] {
        let line = record.command_line;
        self.bytes.get(line.start as usize..line.end as usize).unwrap_or_default()
    }

    /// The server made of all load records of `kind`; `None` without any.
    #[must_use]
    pub fn server(&self, kind: u64) -> Option<Server> {
        let mut server: Option<Server> = None;
        for record in self.records().filter(|record| record.kind == kind && record.is_load()) {
            let target = record.target();
            let known = server.get_or_insert(Server { range: target, entry: record.entry });
            known.range =
                Range::new(known.range.start.min(target.start), known.range.end.max(target.end));
            if known.entry == 0 {
                known.entry = record.entry;
            }
        }
        server
    }

    /// The initial servers that the image has, with their names.
    pub fn servers(&self) -> impl Iterator<Item = (&'static str, Server)> + '_ {
        SERVERS.into_iter().filter_map(|(kind, name)| Some((name, self.server(kind)?)))
    }

    /// Checks that every server goes to memory of its own.
    ///
    /// # Errors
    /// Which server meets which obstacle.
    pub fn check_places(&self, regions: &Regions, kernel: Range) -> Result<(), Refusal> {
        for (index, (server, Server { range, entry })) in self.servers().enumerate() {
            let pages = range.pages_out();
            let other = self
                .servers()
                .take(index)
                .find(|(_, other)| other.range.pages_out().overlaps(pages));
            let obstacle = if !Range::new(LOW_LIMIT, LOAD_LIMIT).contains(pages) {
                Obstacle::OutOfReach
            } else if pages.overlaps(kernel) {
                Obstacle::Kernel
            } else if !regions.is_usable(pages) {
                Obstacle::NotMemory
            } else if entry < range.start || entry >= range.end {
                Obstacle::Entry(entry)
            } else if let Some((name, _)) = other {
                Obstacle::Server(name)
            } else {
                continue;
            };
            return Err(Refusal::Place { server, range, obstacle });
        }
        for (second, record) in self.records().enumerate().filter(|(_, record)| record.is_load()) {
            let mut before = self.records().take(second);
            if let Some(first) =
                before.position(|other| other.is_load() && other.target().overlaps(record.target()))
            {
                return Err(Refusal::Overlap { first, second });
            }
        }
        Ok(())
    }
}

fn check_load(record: &Record) -> Result<(), RecordFault> {
    if record.memory_bytes < record.file.len() || record.memory_bytes == 0 {
        return Err(RecordFault::Memory);
    }
    record.physical.checked_add(record.memory_bytes).ok_or(RecordFault::Wraps)?;
    // An entry of zero: another record of the server has it.
    Ok(())
}

fn check_program(record: &Record) -> Result<(), RecordFault> {
    if !record.file.start.is_multiple_of(PAGE) || !record.virt.is_multiple_of(PAGE) {
        return Err(RecordFault::Unaligned);
    }
    if record.memory_bytes < record.file.len() {
        return Err(RecordFault::Memory);
    }
    let end = record.virt.checked_add(record.memory_bytes).ok_or(RecordFault::Wraps)?;
    if end > abi::layout::USER_END {
        return Err(RecordFault::Wraps);
    }
    let initialised = record.text.checked_add(record.data).ok_or(RecordFault::Sections)?;
    if !record.text.is_multiple_of(PAGE) || initialised > record.file.len() {
        return Err(RecordFault::Sections);
    }
    let is_inside = record.virt <= record.entry && record.entry < end;
    if is_inside { Ok(()) } else { Err(RecordFault::Entry(record.entry)) }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}
