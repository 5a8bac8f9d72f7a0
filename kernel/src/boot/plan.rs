//! Who gets which memory at boot: kernel tables, bootinfo, the kernel's pool.
//!
//! Decided before anything is written, from the loader's map, the kernel's own
//! place and the places the boot image asks for.

use core::fmt;

use super::image::Image;
use super::memory::{LOW_LIMIT, PAGE, Range, Regions, Reserved, largest_gap, low_page};

/// What boot code can reach: everything but the pool must be below.
const REACH: Range = Range::new(0, 4 << 30);
const MIB: u64 = 1 << 20;
/// The pool without a wish: this part of all memory, within the two limits.
const POOL_SHARE: u64 = 8;
const POOL_MIN: u64 = 8 * MIB;
const POOL_MAX: u64 = 2048 * MIB;
/// A smaller pool than this cannot run a system.
const POOL_USABLE: u64 = MIB;
/// The pool's edges, so that the memory left to users keeps its large pages.
const POOL_ALIGN: u64 = 2 * MIB;

/// The places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The boot image, moved out of the servers' way if need be.
    pub image: Range,
    /// Frames for the kernel's page tables and the KIP.
    pub tables: Range,
    /// The bootinfo.
    pub bootinfo: Range,
    /// The kernel's pool of frames.
    pub pool: Range,
    /// A page below 1 MiB where other processors start; empty if there is none.
    pub trampoline: Range,
}

/// What there is no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// What.
    pub what: &'static str,
    /// Bytes that it needs in one piece.
    pub bytes: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = self.bytes.div_ceil(1024);
        write!(
            f,
            "no {kib} KiB of free memory in one piece for {}; give the machine more",
            self.what
        )
    }
}

/// What has to find a place.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The kernel image.
    pub kernel: Range,
    /// Bytes of tables.
    pub tables: u64,
    /// Bytes of bootinfo.
    pub bootinfo: u64,
    /// Bytes of the pool that the command line asks for.
    pub pool: Option<u64>,
}

/// Finds a place for everything.
///
/// # Errors
/// What there was no room for.
pub fn plan(
    regions: &Regions,
    loaded: Range,
    image: &Image<'_>,
    needs: &Needs,
) -> Result<Plan, NoRoom> {
    let mut taken = Reserved::default();
    let mut is_in_the_way = !loaded.start.is_multiple_of(PAGE);
    let mut has_room = taken.add(needs.kernel) && taken.add(loaded.pages_out());
    for (_, server) in image.servers() {
        let pages = server.range.pages_out();
        is_in_the_way |= pages.overlaps(loaded);
        has_room &= taken.add(pages);
    }
    let mut place = |what, bytes: u64, window| -> Result<Range, NoRoom> {
        let range =
            top_of(largest_gap(regions, &taken, window), bytes).ok_or(NoRoom { what, bytes })?;
        has_room &= taken.add(range);
        Ok(range)
    };
    let image_start = if is_in_the_way {
        place("the boot image", image.len(), REACH)?.start
    } else {
        loaded.start
    };
    let image = Range::new(image_start, image_start.saturating_add(image.len()));
    let tables = place("the kernel's page tables", needs.tables, REACH)?;
    let bootinfo = place("the bootinfo", needs.bootinfo, REACH)?;
    let pool = place_pool(regions, &taken, needs.pool)?;
    let trampoline = low_page(regions, &taken);
    if has_room {
        Ok(Plan { image, tables, bootinfo, pool, trampoline })
    } else {
        Err(NoRoom { what: "the list of uses", bytes: 0 })
    }
}

/// The last `bytes` of `gap`, whole pages.
fn top_of(gap: Range, bytes: u64) -> Option<Range> {
    let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
    (gap.len() >= bytes).then(|| Range::new(gap.end - bytes, gap.end))
}

/// The pool: at the top of the largest gap below 4 GiB if that leaves a quarter of
/// the gap to others, else anywhere, else as much as there is.
fn place_pool(regions: &Regions, taken: &Reserved, wish: Option<u64>) -> Result<Range, NoRoom> {
    let share = (regions.usable_bytes() / POOL_SHARE).clamp(POOL_MIN, POOL_MAX);
    let bytes = wish.unwrap_or(share).max(POOL_USABLE);
    let low = largest_gap(regions, taken, REACH);
    let anywhere = largest_gap(regions, taken, Range::new(LOW_LIMIT, u64::MAX));
    let fits = |gap: &Range| bytes <= gap.len() / 4 * 3;
    let gap = [low, anywhere].into_iter().find(fits).unwrap_or(anywhere);
    let bytes = bytes.min(gap.len() / 4 * 3);
    if bytes < POOL_USABLE {
        return Err(NoRoom { what: "the kernel's pool", bytes: POOL_USABLE });
    }
    let end = gap.end / POOL_ALIGN * POOL_ALIGN;
    let start = end.saturating_sub(bytes) / POOL_ALIGN * POOL_ALIGN;
    let aligned = Range::new(start, end);
    if gap.contains(aligned) && aligned.len() >= bytes {
        return Ok(aligned);
    }
    top_of(gap, bytes / PAGE * PAGE).ok_or(NoRoom { what: "the kernel's pool", bytes })
}
