//! Ranges of physical memory, the loader's map of it, and the search for room.
//!
//! Pure arithmetic on untrusted numbers: nothing here can overflow or panic.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The kernel places nothing below: firmware and loaders leave their tables there.
pub const LOW_LIMIT: u64 = 1 << 20;

/// Half-open range of physical addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Range {
    /// Nothing.
    pub const EMPTY: Self = Self { start: 0, end: 0 };

    /// From `start` up to `end`; empty if they are in the wrong order.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// `len` bytes from `start`, unless that wraps.
    #[must_use]
    pub const fn sized(start: u64, len: u64) -> Option<Self> {
        match start.checked_add(len) {
            Some(end) => Some(Self { start, end }),
            None => None,
        }
    }

    /// Bytes.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether there is no byte in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// Whether the two have a byte in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }

    /// Whether every byte of `other` is in `self`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// The part in both.
    #[must_use]
    pub fn clipped(self, to: Self) -> Self {
        Self::new(self.start.max(to.start), self.end.min(to.end))
    }

    /// The whole pages that hold any byte of it.
    #[must_use]
    pub const fn pages_out(self) -> Self {
        if self.is_empty() {
            return self;
        }
        let start = self.start / PAGE * PAGE;
        Self::new(start, self.end.saturating_add(PAGE - 1) / PAGE * PAGE)
    }

    /// The whole pages inside it.
    #[must_use]
    pub const fn pages_in(self) -> Self {
        let end = self.end / PAGE * PAGE;
        let start = self.start.saturating_add(PAGE - 1) / PAGE * PAGE;
        if start < end { Self { start, end } } else { Self { start: end, end } }
    }
}

/// Physical memory as boot code may read it.
pub trait PhysicalMemory {
    /// The bytes of `range`; `None` if it is empty or out of reach.
    fn bytes(&self, range: Range) -> Option<&[u8]>;
}

/// BIOS type of memory that can be used.
pub const BIOS_CONVENTIONAL: u32 = 1;
/// BIOS type of reserved memory.
pub const BIOS_RESERVED: u32 = 2;

/// An entry of the loader's memory map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Region {
    /// Where.
    pub range: Range,
    /// BIOS type (ACPI address range type): 1 is usable.
    pub kind: u32,
}

/// The most regions that are kept.
pub const MAX_REGIONS: usize = 64;

/// The loader's memory map.
#[derive(Clone, Debug)]
pub struct Regions {
    list: [Region; MAX_REGIONS],
    count: usize,
    /// Entries that did not fit.
    pub dropped: usize,
}

impl Regions {
    /// No region.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: [Region { range: Range::EMPTY, kind: 0 }; MAX_REGIONS], count: 0, dropped: 0 }
    }

    /// Adds `len` bytes from `start`, cut off at the end of the address space.
    /// Usable memory shrinks to whole pages, everything else grows to them.
    pub fn push(&mut self, start: u64, len: u64, kind: u32) {
        let whole = Range::new(start, start.saturating_add(len));
        let range = if kind == BIOS_CONVENTIONAL { whole.pages_in() } else { whole.pages_out() };
        if range.is_empty() {
            return;
        }
        match self.list.get_mut(self.count) {
            Some(slot) => {
                *slot = Region { range, kind };
                self.count += 1;
            }
            None => self.dropped += 1,
        }
    }

    /// The regions: usable ones first, so that the others, applied later, win
    /// where the map contradicts itself.
    pub fn iter(&self) -> impl Iterator<Item = Region> + '_ {
        let kept = self.list.get(..self.count).unwrap_or_default();
        let usable = kept.iter().filter(|region| region.kind == BIOS_CONVENTIONAL);
        usable.chain(kept.iter().filter(|region| region.kind != BIOS_CONVENTIONAL)).copied()
    }

    /// Usable memory only.
    pub fn conventional(&self) -> impl Iterator<Item = Range> + '_ {
        self.iter().filter(|region| region.kind == BIOS_CONVENTIONAL).map(|region| region.range)
    }

    /// Forgets usable memory at and above `limit`.
    pub fn clip(&mut self, limit: u64) {
        for region in self.list.iter_mut().take(self.count) {
            if region.kind == BIOS_CONVENTIONAL {
                region.range = region.range.clipped(Range::new(0, limit));
            }
        }
    }

    /// Usable bytes.
    #[must_use]
    pub fn usable_bytes(&self) -> u64 {
        self.conventional().fold(0, |sum, range| sum.saturating_add(range.len()))
    }

    /// End of the highest usable region.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.conventional().map(|range| range.end).max().unwrap_or(0)
    }

    /// Whether all of `range` is usable memory, possibly over adjacent regions.
    #[must_use]
    pub fn is_usable(&self, range: Range) -> bool {
        let mut done = range.start;
        while done < range.end {
            let here = Range::new(done, done + 1);
            match self.conventional().find(|region| region.contains(here)) {
                Some(region) => done = region.end,
                None => return false,
            }
        }
        !self.iter().any(|region| region.kind != BIOS_CONVENTIONAL && region.range.overlaps(range))
    }
}

impl Default for Regions {
    fn default() -> Self {
        Self::new()
    }
}

/// Ranges that are spoken for; at most as many as the plan has uses.
#[derive(Clone, Debug, Default)]
pub struct Reserved {
    list: [Range; 12],
    count: usize,
}

impl Reserved {
    /// Adds `range`, unless it is empty; false if there is no room to note it.
    #[must_use]
    pub fn add(&mut self, range: Range) -> bool {
        if range.is_empty() {
            return true;
        }
        let Some(slot) = self.list.get_mut(self.count) else { return false };
        *slot = range;
        self.count += 1;
        true
    }

    /// Whether any of it overlaps `range`.
    #[must_use]
    pub fn overlaps(&self, range: Range) -> bool {
        self.iter().any(|taken| taken.overlaps(range))
    }

    fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.list.iter().take(self.count).copied()
    }
}

/// The largest run of whole free pages inside `window` and above [`LOW_LIMIT`].
#[must_use]
pub fn largest_gap(regions: &Regions, reserved: &Reserved, window: Range) -> Range {
    let mut best = Range::EMPTY;
    for region in regions.conventional() {
        let region = region.clipped(window).clipped(Range::new(LOW_LIMIT, u64::MAX));
        let mut cursor = region.start;
        while cursor < region.end {
            let (gap, next) = gap_from(regions, reserved, cursor, region.end);
            if gap.pages_in().len() > best.len() {
                best = gap.pages_in();
            }
            cursor = next;
        }
    }
    best
}

/// The highest free page that a processor can start on, if there is one: below 640 KiB, and not
/// among firmware's first.
#[must_use]
pub fn low_page(regions: &Regions, reserved: &Reserved) -> Range {
    const PAGES: core::ops::Range<u64> = 0x8..0xA0;
    let mut pages = PAGES.rev().map(|page| Range::new(page * PAGE, (page + 1) * PAGE));
    let free = |page: &Range| regions.is_usable(*page) && !reserved.overlaps(*page);
    pages.find(free).unwrap_or(Range::EMPTY)
}

/// The free run at `cursor` (possibly empty) and where to look next.
fn gap_from(regions: &Regions, reserved: &Reserved, cursor: u64, end: u64) -> (Range, u64) {
    let unusable =
        regions.iter().filter(|region| region.kind != BIOS_CONVENTIONAL).map(|region| region.range);
    let mut gap = Range::new(cursor, end);
    let mut next = end;
    for blocker in unusable.chain(reserved.iter()) {
        if blocker.start <= cursor && cursor < blocker.end {
            return (Range::EMPTY, blocker.end);
        }
        if blocker.overlaps(gap) {
            gap.end = blocker.start;
            next = blocker.end;
        }
    }
    (gap, next.max(cursor + 1))
}
