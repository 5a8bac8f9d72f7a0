//! Flattens an executable into one PROGRAM record: text (page-padded), data,
//! bss, contiguous from the start page, so that whoever starts the task needs
//! no ELF reader (`abi::image`, X.2 bootinfo "SimpleExec").

use anyhow::{Result, ensure};

use super::elf::{Executable, Segment};
use super::{PAGE, page_down, page_up};

/// Largest flattened program; more means a linker script that scatters.
const MAX_PROGRAM_BYTES: u64 = 256 << 20;

/// A program laid out as it will stand in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatProgram {
    /// Virtual address of the first page.
    pub virt: u64,
    /// Entry point.
    pub entry: u64,
    /// Text, then data.
    pub bytes: Vec<u8>,
    /// Bytes of text, a multiple of the page size.
    pub text_bytes: u64,
    /// Bytes of initialised data.
    pub data_bytes: u64,
    /// Bytes of text, data and bss.
    pub mem_bytes: u64,
}

/// Flattens `exe`.
///
/// # Errors
/// A sentence when the segments are not an R-X part followed by an RW part on a
/// fresh page, or when the entry is not in the executable part.
pub fn flatten(exe: &Executable) -> Result<FlatProgram> {
    let name = &exe.name;
    let (virt, end) = span(exe)?;
    let text_end = text_end(exe, virt)?;
    let data_end = exe
        .segments
        .iter()
        .filter(|s| s.writable && !s.bytes.is_empty())
        .map(|s| s.virt + s.bytes.len() as u64)
        .max()
        .unwrap_or(text_end);
    ensure!(
        exe.segments
            .iter()
            .any(|s| !s.writable && s.executable && s.virt_range().contains(&exe.entry)),
        "the entry point {:#x} of {name} is not in its read-only executable part, the only part \
         that a task may execute; link code and data into separate segments",
        exe.entry
    );
    Ok(FlatProgram {
        virt,
        entry: exe.entry,
        bytes: fill(&exe.segments, virt, data_end),
        text_bytes: text_end - virt,
        data_bytes: data_end - text_end,
        mem_bytes: end.max(text_end) - virt,
    })
}

/// First page and end of the whole program.
fn span(exe: &Executable) -> Result<(u64, u64)> {
    let name = &exe.name;
    let first = exe.segments.iter().map(|s| s.virt).min().unwrap_or(0);
    let end = exe.segments.iter().map(|s| s.virt_range().end).max().unwrap_or(0);
    let virt = page_down(first);
    ensure!(
        virt >= PAGE,
        "{name} starts in page 0, which stays empty so that null pointers fault; link it at 0x400000"
    );
    ensure!(
        end <= abi::layout::USER_END,
        "{name} ends at {end:#x}, beyond the last user address {:#x}",
        abi::layout::USER_END
    );
    ensure!(
        end - virt <= MAX_PROGRAM_BYTES,
        "{name} spreads over {} MiB ({virt:#x} to {end:#x}); at most {} MiB can be flattened, so \
         bring its segments together",
        (end - virt) >> 20,
        MAX_PROGRAM_BYTES >> 20
    );
    Ok((virt, end))
}

/// End of the text part: where the writable part begins, or the last page.
fn text_end(exe: &Executable, virt: u64) -> Result<u64> {
    let name = &exe.name;
    let text = exe.segments.iter().filter(|s| !s.writable);
    let last_text = text.map(|s| s.virt_range().end).max().unwrap_or(virt);
    let Some(data) = exe.segments.iter().filter(|s| s.writable).map(|s| s.virt).min() else {
        return Ok(page_up(last_text));
    };
    ensure!(
        page_down(data) >= page_up(last_text),
        "the writable part of {name} ({data:#x}) does not start on a fresh page behind its \
         read-only part, which ends at {last_text:#x}; align it in the linker script"
    );
    Ok(page_down(data))
}

/// The bytes from `virt` to `end`, zero where no segment has any.
fn fill(segments: &[Segment], virt: u64, end: u64) -> Vec<u8> {
    let mut bytes = vec![0; (end - virt) as usize];
    for segment in segments {
        let at = (segment.virt - virt) as usize;
        bytes[at..at + segment.bytes.len()].copy_from_slice(&segment.bytes);
    }
    bytes
}
