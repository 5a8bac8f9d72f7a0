//! Walking the bootinfo.

use abi::Framebuffer;
use abi::bootinfo::{
    FRAMEBUFFER, FRAMEBUFFER_WORDS, HEADER_WORDS, MAGIC, MODULE, SIMPLE_EXEC, SIMPLE_EXEC_WORDS,
    exec, module, record as common,
};

/// Longest command line that is kept, bytes.
pub const LINE_BYTES: usize = 512;
/// More records than any system has: a broken chain ends here.
const MAX_RECORDS: u64 = 256;

/// The bootinfo cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadBootinfo {
    /// The first word is not the magic number.
    Magic(u64),
    /// A record lies outside of the bootinfo's size.
    Outside(u64),
}

impl core::fmt::Display for BadBootinfo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Magic(found) => write!(
                f,
                "the bootinfo starts with {found:#x} instead of {MAGIC:#x}; \
                boot with the loader that the image was made for"
            ),
            Self::Outside(offset) => write!(
                f,
                "the bootinfo's record at offset {offset:#x} lies outside of it; \
                make the image again"
            ),
        }
    }
}

/// What a record describes; addresses are physical unless they say otherwise, sizes in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file as it is.
    Module {
        /// First byte.
        start: u64,
        /// Size.
        size: u64,
    },
    /// A program: text, data and bss follow each other.
    Program {
        /// First byte in physical memory.
        phys: u64,
        /// First byte where it runs (virtual).
        virt: u64,
        /// Size of the read-only part.
        text: u64,
        /// Size of the initialised data.
        data: u64,
        /// Size of the zeroed data.
        bss: u64,
        /// Entry point (virtual).
        entry: u64,
    },
    /// The boot loader's picture, not checked.
    Framebuffer(Framebuffer),
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// What it describes.
    pub kind: Kind,
    line: [u8; LINE_BYTES],
    line_len: usize,
}

impl Record {
    /// The command line.
    #[must_use]
    pub fn line(&self) -> &str {
        let bytes = &self.line[..self.line_len];
        core::str::from_utf8(bytes).unwrap_or_else(|error| {
            core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or("")
        })
    }
}

/// Calls `visit` with each program, module and framebuffer. `read` returns the word at a byte
/// offset, a multiple of 8, from the bootinfo's start.
pub fn records(
    read: impl Fn(u64) -> u64,
    mut visit: impl FnMut(&Record),
) -> Result<(), BadBootinfo> {
    if read(0) != MAGIC {
        return Err(BadBootinfo::Magic(read(0)));
    }
    let (size, mut at, count) = (read(16), read(24), read(32));
    for _ in 0..count.min(MAX_RECORDS) {
        if at < HEADER_WORDS as u64 * 8
            || at % 8 != 0
            || at.checked_add(48).is_none_or(|end| end > size)
        {
            return Err(BadBootinfo::Outside(at));
        }
        if let Some(record) = record(&read, at, size)? {
            visit(&record);
        }
        match read(at + common::NEXT as u64 * 8) {
            0 => break,
            next => at = at.wrapping_add(next),
        }
    }
    Ok(())
}

fn record(read: &impl Fn(u64) -> u64, at: u64, size: u64) -> Result<Option<Record>, BadBootinfo> {
    let word = |index: usize| read(at + index as u64 * 8);
    let (kind, line_at) = match word(common::TYPE) {
        MODULE => (
            Kind::Module { start: word(module::START), size: word(module::SIZE) },
            word(module::COMMAND_LINE),
        ),
        SIMPLE_EXEC => {
            if at + SIMPLE_EXEC_WORDS as u64 * 8 > size {
                return Err(BadBootinfo::Outside(at));
            }
            let kind = Kind::Program {
                phys: word(exec::TEXT),
                virt: word(exec::TEXT + 1),
                text: word(exec::TEXT + 2),
                data: word(exec::DATA + 2),
                bss: word(exec::BSS + 2),
                entry: word(exec::ENTRY),
            };
            (kind, word(exec::COMMAND_LINE))
        }
        FRAMEBUFFER => {
            if at + FRAMEBUFFER_WORDS as u64 * 8 > size {
                return Err(BadBootinfo::Outside(at));
            }
            let first = FRAMEBUFFER_WORDS - abi::framebuffer::WORDS;
            let words = core::array::from_fn(|index| word(first + index));
            (Kind::Framebuffer(Framebuffer::decode(words)), 0)
        }
        _ => return Ok(None),
    };
    let mut record = Record { kind, line: [0; LINE_BYTES], line_len: 0 };
    if line_at != 0 {
        read_line(read, at.wrapping_add(line_at), size, &mut record);
    }
    Ok(Some(record))
}

/// Copies the zero-terminated line at byte offset `from`.
fn read_line(read: &impl Fn(u64) -> u64, from: u64, size: u64, record: &mut Record) {
    for at in (from..size).take(LINE_BYTES) {
        let byte = read(at & !7).to_le_bytes()[(at & 7) as usize];
        if byte == 0 {
            return;
        }
        record.line[record.line_len] = byte;
        record.line_len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use std::string::String;
    use std::vec::Vec;

    fn bootinfo(lines: &[&str]) -> Vec<u64> {
        let mut words = std::vec![MAGIC, 1, 0, 64, lines.len() as u64, 0, 0, 0];
        for (index, line) in lines.iter().enumerate() {
            let start = words.len();
            words.extend([
                SIMPLE_EXEC,
                1,
                0,
                0x20_0000,
                0x40_0000,
                0x3000,
                0x20_3000,
                0x40_3000,
                0x1000,
                0,
                0x40_4000,
                0x800,
                0x40_0010,
                1,
                0,
                128,
            ]);
            let mut bytes: Vec<u8> = line.bytes().collect();
            bytes.push(0);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            words.extend(bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())));
            words[start + 2] =
                if index + 1 == lines.len() { 0 } else { (words.len() - start) as u64 * 8 };
        }
        words[2] = words.len() as u64 * 8;
        words
    }

    fn lines(words: &[u64]) -> Result<Vec<String>, BadBootinfo> {
        let mut found = Vec::new();
        records(
            |at| words.get(at as usize / 8).copied().unwrap_or(0),
            |record| found.push(record.line().into()),
        )?;
        Ok(found)
    }

    #[test]
    fn walks_programs_and_lines() {
        let words = bootinfo(&["hello priority=10", "pager", ""]);
        assert_eq!(lines(&words).unwrap(), ["hello priority=10", "pager", ""]);
        let mut seen = None;
        records(|at| words[at as usize / 8], |record| seen = Some(record.kind)).unwrap();
        let expected = Kind::Program {
            phys: 0x20_0000,
            virt: 0x40_0000,
            text: 0x3000,
            data: 0x1000,
            bss: 0x800,
            entry: 0x40_0010,
        };
        assert_eq!(seen, Some(expected));
    }

    #[test]
    fn the_framebuffer_is_a_record_without_a_line() {
        let said = Framebuffer::decode([0xFD00_0000, 640 << 32 | 2560, 480, 32, 7]);
        let mut words = std::vec![MAGIC, 1, 0, 64, 1, 0, 0, 0, FRAMEBUFFER, 1, 0];
        words.extend(said.words());
        let read = |words: &[u64]| {
            let mut seen = Vec::new();
            let word = |at: u64| words.get(at as usize / 8).copied().unwrap_or(0);
            records(word, |record| seen.push(record.kind)).map(|()| seen)
        };
        words[2] = words.len() as u64 * 8;
        assert_eq!(read(&words).unwrap(), [Kind::Framebuffer(said)]);
        words[2] -= 8;
        assert_eq!(read(&words), Err(BadBootinfo::Outside(64)));
    }

    #[test]
    fn refuses_what_is_broken() {
        let mut words = bootinfo(&["a", "b"]);
        words[3] = 1 << 40;
        assert_eq!(lines(&words), Err(BadBootinfo::Outside(1 << 40)));
        words[0] = 5;
        assert_eq!(lines(&words), Err(BadBootinfo::Magic(5)));
    }

    #[test]
    fn a_long_line_is_cut() {
        let long: String = core::iter::repeat_n('x', 1000).collect();
        assert_eq!(lines(&bootinfo(&[&long])).unwrap()[0].len(), LINE_BYTES);
    }
}
