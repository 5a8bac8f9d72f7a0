//! The generic bootinfo for the root task (X.2 6.11): what is where in memory.
//!
//! Servers and programs are SimpleExec records, raw files are Module records, in
//! the image's order, each followed by its zero-terminated command line. The boot loader's framebuffer,
//! if there is one, is the first record: who reads of a task that names it knows it already.

use abi::Framebuffer;
use abi::bootinfo::{
    FRAMEBUFFER, FRAMEBUFFER_WORDS, HEADER_WORDS, MAGIC, MODULE, MODULE_WORDS, SIMPLE_EXEC,
    SIMPLE_EXEC_WORDS, exec, module, record,
};
use abi::image::kind;

use super::image::{Image, Record, SERVERS};

/// ELF class of 64-bit programs (the SimpleExec record's flags).
const ELF_CLASS_64: u64 = 2;
/// Version of header and records.
const VERSION: u64 = 1;

/// A record's own words and how many of them count.
type RecordWords = ([u64; SIMPLE_EXEC_WORDS], usize);

/// Bytes of the bootinfo for `image` and `screen`.
#[must_use]
pub fn bytes_needed(image: &Image<'_>, screen: Option<Framebuffer>) -> u64 {
    let header = HEADER_WORDS as u64;
    let words = entries(image, 0, screen)
        .fold(header, |sum, (words, line)| sum + total_words(words.1, line) as u64);
    words * 8
}

/// Fills `out`, which must be zero, with the bootinfo of an image at physical
/// address `place`; false if it is too small.
#[must_use]
pub fn build(image: &Image<'_>, place: u64, screen: Option<Framebuffer>, out: &mut [u64]) -> bool {
    let mut at = HEADER_WORDS;
    let mut count = 0;
    for ((mut words, own), line) in entries(image, place, screen) {
        let total = total_words(own, line);
        words[record::NEXT] = total as u64 * 8;
        let Some(target) = out.get_mut(at..at + total) else { return false };
        let (fields, text) = target.split_at_mut(own);
        fields.copy_from_slice(&words[..own]);
        for (word, chunk) in text.iter_mut().zip(line.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(padded);
        }
        at += total;
        count += 1;
    }
    let header = [MAGIC, VERSION, at as u64 * 8, HEADER_WORDS as u64 * 8, count, 0, 0, 0];
    out.first_chunk_mut().map(|first| *first = header).is_some()
}

/// Words of a record with its command line and the zero behind that.
const fn total_words(own: usize, line: &[u8]) -> usize {
    own + (line.len() + 1).div_ceil(8)
}

/// Every record to write: the framebuffer's, one per server, one per program and module.
fn entries<'a>(
    image: &'a Image<'a>,
    place: u64,
    screen: Option<Framebuffer>,
) -> impl Iterator<Item = (RecordWords, &'a [u8])> + 'a {
    let servers = SERVERS.into_iter().filter_map(move |(kind, _)| {
        let first = image.records().find(|record| record.kind == kind)?;
        Some((server_words(image, kind)?, image.command_line(&first)))
    });
    let others = image.records().filter(|record| !record.is_load());
    let screen = screen.map(|screen| (screen_words(&screen), &[][..]));
    screen.into_iter().chain(servers).chain(
        others.map(move |record| (record_words(&record, place), image.command_line(&record))),
    )
}

fn screen_words(screen: &Framebuffer) -> RecordWords {
    let mut words = [0; SIMPLE_EXEC_WORDS];
    words[record::TYPE] = FRAMEBUFFER;
    words[record::VERSION] = VERSION;
    words[FRAMEBUFFER_WORDS - screen.words().len()..FRAMEBUFFER_WORDS]
        .copy_from_slice(&screen.words());
    (words, FRAMEBUFFER_WORDS)
}

fn simple_exec(text: [u64; 3], data: [u64; 3], bss: [u64; 3], entry: u64) -> RecordWords {
    let mut words = [0; SIMPLE_EXEC_WORDS];
    words[record::TYPE] = SIMPLE_EXEC;
    words[record::VERSION] = VERSION;
    words[exec::TEXT..exec::TEXT + 3].copy_from_slice(&text);
    words[exec::DATA..exec::DATA + 3].copy_from_slice(&data);
    words[exec::BSS..exec::BSS + 3].copy_from_slice(&bss);
    words[exec::ENTRY] = entry;
    words[exec::FLAGS] = ELF_CLASS_64;
    words[exec::COMMAND_LINE] = SIMPLE_EXEC_WORDS as u64 * 8;
    (words, SIMPLE_EXEC_WORDS)
}

/// A server runs where it was loaded; all of it counts as text.
fn server_words(image: &Image<'_>, kind: u64) -> Option<RecordWords> {
    let server = image.server(kind)?;
    let text = [server.range.start, server.range.start, server.range.len()];
    Some(simple_exec(text, [0; 3], [0; 3], server.entry))
}

/// A program's text and data lie in the image; its bss has no memory yet.
fn record_words(record: &Record, place: u64) -> RecordWords {
    let start = place + record.file.start;
    if record.kind == kind::PROGRAM {
        let (data_at, bss_at) = (record.text, record.text + record.data);
        let text = [start, record.virt, record.text];
        let data = [start + data_at, record.virt + data_at, record.data];
        let bss = [0, record.virt + bss_at, record.memory_bytes - bss_at];
        return simple_exec(text, data, bss, record.entry);
    }
    let mut words = [0; SIMPLE_EXEC_WORDS];
    words[record::TYPE] = MODULE;
    words[record::VERSION] = VERSION;
    words[module::START] = start;
    words[module::SIZE] = record.file.len();
    words[module::COMMAND_LINE] = MODULE_WORDS as u64 * 8;
    (words, MODULE_WORDS)
}
