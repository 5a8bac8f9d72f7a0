//! What physical memory is: RAM or not, and which parts the kernel keeps.
//!
//! Told once by boot; σ0's pages are cut to fit (`sigma0.rs`).

use super::state;
use core::cell::Cell;

const RANGES: usize = 64;

/// A list of address ranges, each `start..end`.
pub(crate) struct Ranges {
    range: [Cell<(u64, u64)>; RANGES],
    count: Cell<usize>,
}

impl Ranges {
    const fn new() -> Self {
        Self { range: [const { Cell::new((0, 0)) }; RANGES], count: Cell::new(0) }
    }

    fn add(&self, start: u64, end: u64) -> bool {
        let count = self.count.get();
        match self.range.get(count) {
            Some(cell) => {
                cell.set((start, end));
                self.count.set(count + 1);
                true
            }
            None => false,
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.range.iter().take(self.count.get()).map(Cell::get)
    }

    fn touches(&self, start: u64, end: u64) -> bool {
        self.iter().any(|(s, e)| s < end && start < e)
    }

    /// Whether the union of the ranges covers `start..end`.
    fn covers(&self, start: u64, end: u64) -> bool {
        let mut reached = start;
        while reached < end {
            let next = self.iter().filter(|r| r.0 <= reached).map(|r| r.1).max().unwrap_or(0);
            if next <= reached {
                return false;
            }
            reached = next;
        }
        true
    }
}

/// The physical address space as boot described it.
pub(crate) struct Layout {
    ram: Ranges,
    kernel: Ranges,
    end: Cell<u64>,
}

impl Layout {
    pub(crate) const fn new() -> Self {
        Self { ram: Ranges::new(), kernel: Ranges::new(), end: Cell::new(1 << 36) }
    }
}

/// What a region of physical addresses consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Memory throughout.
    Ram,
    /// No memory at all: devices, or nothing.
    Device,
    /// Some of both, or something that the kernel keeps.
    Mixed,
    /// Beyond the processor's physical addresses.
    Beyond,
}

/// Says that `start..end` is RAM. False if the table is full.
#[must_use]
pub fn add_ram(start: u64, end: u64) -> bool {
    state().layout.ram.add(start, end)
}

/// Says that the kernel keeps `start..end` (its image, the pool, boot
/// structures). Whole pages are kept. False if the table is full: stop the boot.
#[must_use]
pub fn add_reserved(start: u64, end: u64) -> bool {
    state().layout.kernel.add(start & !0xFFF, end.next_multiple_of(4096))
}

/// Sets the number of physical address bits (CPUID 8000_0008h, EAX 7..0).
pub fn set_phys_bits(bits: u32) {
    state().layout.end.set(1 << bits.clamp(32, 46));
}

/// What `start..end` consists of.
#[must_use]
pub fn kind(start: u64, end: u64) -> Content {
    let layout = &state().layout;
    if end > layout.end.get() {
        Content::Beyond
    } else if layout.kernel.touches(start, end) {
        Content::Mixed
    } else if !layout.ram.touches(start, end) {
        Content::Device
    } else if layout.ram.covers(start, end) {
        Content::Ram
    } else {
        Content::Mixed
    }
}
