//! Checks a finished boot image against the format alone, as the kernel will.
//!
//! Independent of the [`super::Builder`]: it reads bytes, never panics, and
//! names the first thing that is wrong.

use std::ops::Range;

use abi::image::{HEADER_WORDS, MAGIC, RECORD_WORDS, VERSION, kind, word};
use anyhow::{Result, bail, ensure};

use super::{LOAD_LIMIT, LOWEST_LOAD_ADDRESS, MAX_RECORDS, PAGE, checksum, page_down, page_up};

/// A record as read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The words of the record.
    pub words: [u64; RECORD_WORDS],
    /// Its command line.
    pub cmdline: String,
}

impl Entry {
    /// One of `abi::image::kind`.
    #[must_use]
    pub fn kind(&self) -> u64 {
        self.words[word::KIND]
    }

    /// Where its bytes lie in the image.
    #[must_use]
    pub fn bytes(&self) -> Range<usize> {
        let start = self.words[word::OFFSET] as usize;
        start..start + self.words[word::FILE_BYTES] as usize
    }
}

/// Checks `image` completely.
///
/// # Errors
/// A sentence that names the record and what is wrong with it.
pub fn verify(image: &[u8]) -> Result<Vec<Entry>> {
    let count = header(image)?;
    let entries = (0..count).map(|index| entry(image, index, count)).collect::<Result<Vec<_>>>()?;
    disjoint("the bytes", &entries, |entry| {
        let bytes = entry.bytes();
        Some(bytes.start as u64..page_up(bytes.end as u64))
    })?;
    disjoint("the load addresses", &entries, |entry| {
        let start = entry.words[word::PHYS];
        let end = start.saturating_add(entry.words[word::MEM_BYTES]);
        is_load(entry.kind()).then(|| page_down(start)..page_up(end))
    })?;
    Ok(entries)
}

const fn is_load(of: u64) -> bool {
    matches!(of, kind::SIGMA0 | kind::SIGMA1 | kind::ROOT)
}

/// Word `index` of the image; the caller has checked that it is there.
fn word_at(image: &[u8], index: usize) -> u64 {
    let bytes = image.get(index * 8..index * 8 + 8).and_then(|b| b.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

/// Checks the header and returns the number of records.
fn header(image: &[u8]) -> Result<usize> {
    ensure!(
        image.len() >= HEADER_WORDS * 8,
        "the image is truncated: {} bytes are less than its header",
        image.len()
    );
    ensure!(word_at(image, 0) == MAGIC, "this is not a boot image: its magic word is wrong");
    ensure!(
        word_at(image, 1) == VERSION,
        "the image has format version {}, this tool knows {VERSION}",
        word_at(image, 1)
    );
    let total = word_at(image, 3);
    ensure!(
        total == image.len() as u64,
        "the image is truncated or padded: its header says {total} bytes, the file has {}",
        image.len()
    );
    ensure!(total.is_multiple_of(8), "the image's length {total} is not a multiple of 8");
    let count = word_at(image, 2);
    let room = (image.len() / 8 - HEADER_WORDS) / RECORD_WORDS;
    ensure!(
        count <= MAX_RECORDS as u64 && count <= room as u64,
        "the image claims {count} records, but has room for {} at most",
        room.min(MAX_RECORDS)
    );
    let (said, is) = (word_at(image, 4), checksum(&image[HEADER_WORDS * 8..]));
    ensure!(
        said == is,
        "the image is damaged: its checksum is {is:#018x}, the header says {said:#018x}"
    );
    Ok(count as usize)
}

/// Reads and checks record `index` of `count`.
fn entry(image: &[u8], index: usize, count: usize) -> Result<Entry> {
    let mut words = [0; RECORD_WORDS];
    for (at, word) in words.iter_mut().enumerate() {
        *word = word_at(image, HEADER_WORDS + index * RECORD_WORDS + at);
    }
    let total = image.len() as u64;
    let first = ((HEADER_WORDS + count * RECORD_WORDS) * 8) as u64;
    let inside = |what: &str, start: u64, len: u64| {
        let ok = start.checked_add(len).is_some_and(|end| end <= total);
        ensure!(
            ok,
            "{what} of record {index} (offset {start:#x}, {len} bytes) lies outside the image"
        );
        ensure!(start >= first, "{what} of record {index} (offset {start:#x}) lies in the records");
        Ok(())
    };
    inside("the content", words[word::OFFSET], words[word::FILE_BYTES])?;
    inside("the command line", words[word::CMDLINE], words[word::CMDLINE_BYTES].saturating_add(1))?;
    let start = words[word::CMDLINE] as usize;
    let line = &image[start..=start + words[word::CMDLINE_BYTES] as usize];
    let Some((0, text)) = line.split_last() else {
        bail!("the command line of record {index} is not terminated by a zero byte");
    };
    let cmdline = std::str::from_utf8(text).ok().filter(|text| !text.contains('\0'));
    let Some(cmdline) = cmdline else {
        bail!("the command line of record {index} is not text");
    };
    check_kind(&words, index)?;
    Ok(Entry { words, cmdline: cmdline.to_owned() })
}

/// The rules that depend on the record's kind.
fn check_kind(words: &[u64; RECORD_WORDS], index: usize) -> Result<()> {
    let (file, mem) = (words[word::FILE_BYTES], words[word::MEM_BYTES]);
    ensure!(
        file <= mem,
        "record {index} has more bytes in the image ({file}) than in memory ({mem})"
    );
    match words[word::KIND] {
        of if is_load(of) => {
            let start = words[word::PHYS];
            ensure!(
                start >= LOWEST_LOAD_ADDRESS
                    && start.checked_add(mem).is_some_and(|end| end <= LOAD_LIMIT),
                "record {index} cannot be loaded at {start:#x} ({mem} bytes)"
            );
        }
        kind::PROGRAM => check_program(words, index)?,
        kind::MODULE => ensure!(
            words[word::OFFSET].is_multiple_of(PAGE),
            "module record {index} does not start on a page"
        ),
        other => bail!("record {index} has the unknown kind {other}"),
    }
    Ok(())
}

/// A program's parts must add up and its entry be in its text.
fn check_program(words: &[u64; RECORD_WORDS], index: usize) -> Result<()> {
    let (text, data) = (words[word::TEXT], words[word::DATA]);
    let (virt, entry) = (words[word::VIRT], words[word::ENTRY]);
    for (what, value) in [("offset", words[word::OFFSET]), ("virtual start", virt), ("text", text)]
    {
        ensure!(
            value.is_multiple_of(PAGE),
            "the {what} of program record {index} ({value:#x}) is not a multiple of the page size"
        );
    }
    ensure!(
        text.checked_add(data) == Some(words[word::FILE_BYTES]),
        "text ({text}) and data ({data}) of program record {index} do not add up to its {} bytes",
        words[word::FILE_BYTES]
    );
    let end = virt.checked_add(words[word::MEM_BYTES]);
    ensure!(
        end.is_some_and(|end| end <= abi::layout::USER_END),
        "program record {index} does not end below the last user address"
    );
    ensure!(
        (virt..virt + text).contains(&entry),
        "the entry point {entry:#x} of program record {index} is not in its text"
    );
    Ok(())
}

/// Refuses two records whose `range`s meet.
fn disjoint(
    what: &str,
    entries: &[Entry],
    range: impl Fn(&Entry) -> Option<Range<u64>>,
) -> Result<()> {
    let mut ranges: Vec<(usize, Range<u64>)> = entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((index, range(entry)?)))
        .filter(|(_, range)| !range.is_empty())
        .collect();
    ranges.sort_by_key(|(_, range)| range.start);
    for pair in ranges.windows(2) {
        let ((a, first), (b, second)) = (&pair[0], &pair[1]);
        ensure!(
            first.end <= second.start,
            "{what} of records {a} and {b} overlap ({first:#x?} and {second:#x?})"
        );
    }
    Ok(())
}
