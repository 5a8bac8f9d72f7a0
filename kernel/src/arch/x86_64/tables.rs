//! The kernel's own page tables, built once at boot.
//!
//! The top half of every space is a copy of the upper half of this root table:
//! all physical memory, the kernel image with the rights its parts need, the
//! tcb array (a shared read-only null page until tcbs exist) and the user page.
//! Slot 510 (I/O permission bitmap) stays empty: it belongs to each space.

use abi::layout;

use super::boot::{self, EarlyMemory, Part};
use crate::boot::memory::Range;

/// First address of the tcb array.
pub const TCB_ARRAY: u64 = 0xFFFF_FFFF_A000_0000;
/// Bytes of the tcb array.
pub const TCB_ARRAY_BYTES: u64 = 1 << 30;
/// Root slot of the task state segment and the port bitmap.
pub const PORTS_SLOT: usize = 510;
/// Kernel address of the segment's page; the bitmap begins one page behind it.
pub const STATE: u64 = 0xFFFF_FF00_0000_0000;
/// Where other processors than the first have the segment's page, and the bitmap behind it: in a table that is
/// their own anyway.
pub const STATE_THERE: u64 = layout::STUBS + 0x10_1000;
/// End of where the image can be; then come the kernel's devices (`kernel_tables`).
pub const IMAGE_END: u64 = TCB_ARRAY - MIB_2;

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const LARGE: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
const NO_EXECUTE: u64 = 1 << 63;

const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;

const FRAME: u64 = 1 << 12;
const MIB_2: u64 = 1 << 21;
const GIB: u64 = 1 << 30;
const GIB_512: u64 = 1 << 39;
/// The physical map reaches at least this far: devices live below 4 GiB.
const PHYS_MAP_MIN: u64 = 4 * GIB;

/// The largest page that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Largest {
    /// 2 MiB.
    Mib2,
    /// 1 GiB.
    Gib,
}

/// The most memory that the tables are built for, bytes: it bounds the frames they take.
#[must_use]
pub const fn physical_limit(largest: Largest) -> u64 {
    match largest {
        Largest::Gib => 16 << 40,
        Largest::Mib2 => 512 << 30,
    }
}

/// Frames for boot-time tables, handed out one after the other, zeroed.
pub struct Frames {
    whole: Range,
    rest: Range,
}

impl Frames {
    /// Hands out the frames of `range`, which `memory` gives up for them; `None`
    /// if it is not free.
    #[must_use]
    pub fn new(memory: &mut EarlyMemory, range: Range) -> Option<Self> {
        memory.take(range).map(|_| Self { whole: range, rest: range })
    }

    /// The next frame's physical address, zeroed.
    ///
    /// # Panics
    /// If more frames are taken than [`frames_needed`] counted: a defect here.
    pub fn take(&mut self) -> u64 {
        assert!(
            self.rest.len() >= FRAME,
            "the boot-time tables need more frames than were counted"
        );
        let frame = self.rest.start;
        self.rest.start += FRAME;
        entries(frame).fill(0);
        frame
    }

    /// The next frame as a page to fill in, with its physical address.
    pub fn take_page(&mut self) -> (u64, &'static mut [u64; 512]) {
        let frame = self.take();
        (frame, entries(frame))
    }

    /// Those that were handed out.
    const fn taken(&self) -> Range {
        Range::new(self.whole.start, self.rest.start)
    }

    /// Frames left over.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.rest.len() / FRAME
    }
}

/// What the tables give to the rest of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelTables {
    /// Physical address of the kernel's root table.
    pub root: u64,
    /// The frame that every absent tcb shows: zeros, read-only.
    pub null_frame: u64,
    /// The last-level table that maps it over every second page, shared by the whole tcb array.
    pub null_table: u64,
    /// The frames of the tables, which the map of physical memory shows read-only.
    pub frames: Range,
}

/// Frames that [`build`] takes for memory up to `top`.
#[must_use]
pub fn frames_needed(top: u64, largest: Largest, image_bytes: u64) -> u64 {
    let top = mapped_top(top);
    let directories = if largest == Largest::Gib { 0 } else { top / GIB };
    // The map may begin in the middle of a root entry.
    let physical = top.div_ceil(GIB_512) + 1 + directories;
    // The image may straddle one more directory entry than its length says.
    let image = image_bytes.div_ceil(MIB_2) + 1;
    // Root, upper pointer table, its two directories, user page, null frame and table.
    let tables = 7 + physical + image;
    // What is not mapped like the rest takes smaller pages: the image's text and constants,
    // and the tables themselves, each in up to two directories.
    let guarded = 4 + image + (2 * tables * FRAME).div_ceil(MIB_2) + 1;
    tables + guarded
}

/// Builds the tables, with the map of physical memory at `base`. The caller loads the root when nothing needs identity any more.
#[must_use]
pub fn build(frames: &mut Frames, top: u64, largest: Largest, base: u64) -> KernelTables {
    let root = frames.take();
    let map = Map { root, base };
    map_physical(map, frames, mapped_top(top), largest);
    let pointers = frames.take();
    let (image_directory, last_directory) = (frames.take(), frames.take());
    entries(root)[511] = pointers | PRESENT | WRITABLE | USER;
    entries(pointers)[510] = image_directory | PRESENT | WRITABLE;
    entries(pointers)[511] = last_directory | PRESENT | WRITABLE | USER;
    map_image(image_directory, frames);
    let (null_frame, null_table) = (frames.take(), frames.take());
    // Nothing but the upper page of a block is ever there (`tcbs`).
    for upper in entries(null_table).iter_mut().skip(1).step_by(2) {
        *upper = null_frame | PRESENT | GLOBAL | NO_EXECUTE;
    }
    // The array is the upper half of one directory and the lower half of the next.
    entries(image_directory)[index(TCB_ARRAY, 21)..].fill(null_table | PRESENT | WRITABLE);
    entries(last_directory)[..index(TCB_ARRAY + TCB_ARRAY_BYTES, 21)]
        .fill(null_table | PRESENT | WRITABLE);
    map_user_pages(last_directory, frames);
    guard(map, frames.taken());
    KernelTables { root, null_frame, null_table, frames: frames.taken() }
}

/// Bytes of the map for memory up to `top`.
#[must_use]
pub fn mapped_top(top: u64) -> u64 {
    top.max(PHYS_MAP_MIN).next_multiple_of(GIB)
}

/// How the map of physical memory shows a page.
const SHOWN: u64 = PRESENT | WRITABLE | GLOBAL | NO_EXECUTE;

/// Whether large pages may not cover `range`: something in it is not [`SHOWN`].
fn is_guarded(range: Range, tables: Range) -> bool {
    let [hidden, constants] = boot::guarded_image();
    [hidden, constants, tables].into_iter().any(|guarded| guarded.overlaps(range))
}

/// The map of physical memory: its root table and where it begins.
#[derive(Clone, Copy)]
struct Map {
    root: u64,
    base: u64,
}

fn map_physical(map: Map, frames: &mut Frames, top: u64, largest: Largest) {
    let mut pointers = 0;
    for gib in (0..top).step_by(GIB as usize) {
        if pointers == 0 || (map.base + gib).is_multiple_of(GIB_512) {
            pointers = frames.take();
            entries(map.root)[index(map.base + gib, 39)] =
                pointers | PRESENT | WRITABLE | NO_EXECUTE;
        }
        let may_be_whole = largest == Largest::Gib;
        let is_whole = may_be_whole && !is_guarded(Range::new(gib, gib + GIB), frames.whole);
        entries(pointers)[index(map.base + gib, 30)] =
            if is_whole { gib | SHOWN | LARGE } else { map_gib(gib, frames) };
    }
}

/// The entry for the GiB of physical memory at `gib` in smaller pages.
fn map_gib(gib: u64, frames: &mut Frames) -> u64 {
    let directory = frames.take();
    for (part, entry) in (gib..).step_by(MIB_2 as usize).zip(entries(directory)) {
        *entry = part | SHOWN | LARGE;
        if is_guarded(Range::new(part, part + MIB_2), frames.whole) {
            let table = frames.take();
            for (page, entry) in (part..).step_by(FRAME as usize).zip(entries(table)) {
                *entry = page | SHOWN;
            }
            *entry = table | PRESENT | WRITABLE;
        }
    }
    directory | PRESENT | WRITABLE
}

/// Takes from the map of physical memory what nobody may reach through it: the kernel's text
/// is not there, its constants and the tables themselves cannot be written.
fn guard(map: Map, tables: Range) {
    let [hidden, constants] = boot::guarded_image();
    for page in pages(hidden) {
        *shown(map, page) = 0;
    }
    for page in pages(constants).chain(pages(tables)) {
        *shown(map, page) &= !WRITABLE;
    }
}

fn pages(range: Range) -> impl Iterator<Item = u64> {
    (range.start..range.end).step_by(FRAME as usize)
}

/// The last-level entry that shows the frame `page`.
fn shown(map: Map, page: u64) -> &'static mut u64 {
    let mut table = map.root;
    for bits in [39, 30, 21] {
        table = entries(table)[index(map.base + page, bits)] & ADDRESS;
    }
    &mut entries(table)[index(page, 12)]
}

fn map_image(directory: u64, frames: &mut Frames) {
    for part in boot::image_parts() {
        let (range, rights) = match part {
            Part::Text(range) => (range, 0),
            Part::ReadOnly(range) => (range, NO_EXECUTE),
            Part::Data(range) => (range, NO_EXECUTE | WRITABLE),
        };
        let pages = (range.start..range.end).step_by(FRAME as usize);
        for virt in pages.filter(|virt| !boot::guards().contains(virt)) {
            let slot = index(virt, 21);
            if entries(directory)[slot] == 0 {
                entries(directory)[slot] = frames.take() | PRESENT | WRITABLE;
            }
            let table = entries(directory)[slot] & !(FRAME - 1);
            entries(table)[index(virt, 12)] = (virt - boot::base()) | PRESENT | GLOBAL | rights;
        }
    }
}

fn map_user_pages(directory: u64, frames: &mut Frames) {
    let table = frames.take();
    let stubs = super::stubs::page().as_ptr() as u64 - boot::base();
    let data = &raw const crate::arch::clock::PAGE as u64 - boot::base();
    entries(directory)[index(layout::STUBS, 21)] = table | PRESENT | WRITABLE | USER;
    entries(table)[index(layout::STUBS, 12)] = stubs | PRESENT | USER | GLOBAL;
    entries(table)[index(layout::USER_DATA, 12)] = data | PRESENT | USER | GLOBAL | NO_EXECUTE;
    #[cfg(target_os = "none")]
    {
        let idt = super::descriptors::idt() - boot::base();
        let page = index(super::descriptors::IDT_PAGE, 12);
        entries(table)[page] = idt | PRESENT | GLOBAL | NO_EXECUTE;
    }
}

/// Index of `address` in the table whose entries cover 2^`bits` bytes.
const fn index(address: u64, bits: u32) -> usize {
    (address >> bits & 511) as usize
}

/// The 512 words of a boot-time table.
fn entries(frame: u64) -> &'static mut [u64; 512] {
    // SAFETY: only called with frames that `Frames` handed out: they are below
    // 4 GiB, which the map covers from the first instruction on, belong to this
    // module while it builds, and no two references to one frame live at a time.
    unsafe { &mut *(boot::physical(frame) as *mut [u64; 512]) }
}
