//! What the host tells a root task: the first raw file of the boot image.

use bootcfg::{Kind, records};
use runtime::window::Window;
use runtime::{kip, sigma0};

/// A raw file's memory.
pub struct File {
    window: Window,
    /// Where in the window it begins.
    start: u64,
    /// Bytes.
    size: u64,
}

impl File {
    /// The boot image's first raw file; its pages and those of the bootinfo are taken from σ0.
    #[must_use]
    pub fn first() -> Option<Self> {
        let at = kip::get().bootinfo();
        let first = at & !0xFFF;
        // Its first page says how many records there are.
        let head = sigma0::range(first, first + 4096)?;
        let offset = at - first;
        let size = head.read(offset + 16).min(1 << 16);
        let rest = first + 4096;
        let more = if at + size > rest { sigma0::range(rest, at + size) } else { None };
        let read = |byte: u64| match (offset + byte, &more) {
            (place, _) if place < 4096 => head.read(place),
            (place, Some(window)) if place - 4096 < window.bytes() => window.read(place - 4096),
            _ => 0,
        };
        let mut found = None;
        let walked = records(read, |record| {
            if let Kind::Module { start, size } = record.kind {
                found = found.or(Some((start, size)));
            }
        });
        let (start, size) = walked.ok().and(found)?;
        let page = start & !0xFFF;
        let window = sigma0::range(page, start + size)?;
        Some(Self { window, start: start - page, size })
    }

    /// Word `index`; 0 behind its end.
    #[must_use]
    pub fn word(&self, index: u64) -> u64 {
        if index * 8 < self.size { self.window.read(self.start + index * 8) } else { 0 }
    }

    /// Its bytes; the last ones may be zeros.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.size.div_ceil(8)).flat_map(|index| self.word(index).to_le_bytes())
    }
}
