//! The I/O permission bitmap (SDM vol. 1, 19.5.2), one per space at no cost.
//!
//! Slot 510 of the root table maps the TSS page, two pages of bitmap and a page
//! of ones (docs/kernel-plan.md). Spaces without ports share one subtree whose
//! bitmap is all ones; a space with ports has its own tables and bitmap, paid
//! from its quota: loading CR3 is all that a switch takes. A 0 bit allows.

use super::{root, tlb};
use crate::arch::paging::{Entry, ROOT, Table, index};
use crate::arch::phys_to_virt;
use crate::arch::preemption::Pace;
use crate::arch::x86_64::tables::{PORTS_SLOT, STATE, STATE_THERE};
use crate::mem::frames::FRAME;
use crate::mem::quiesce::vacate;
use crate::mem::{NoMemory, PhysFrame, Quota, SpaceRef, Step};
use core::cell::Cell;

/// Distance from the start of the TSS page to the bitmap.
pub const BITMAP_OFFSET: u64 = 0x1000;

/// Log2 of the ports of a page of the bitmap.
const PAGE_PORTS_BITS: u32 = 15;

/// The pages of the bitmap in the table of the leaves.
const BITMAP: [usize; 2] = [1, 2];
/// Frames that a space's own bitmap takes: three tables and its pages.
const FRAMES_AT_MOST: usize = 3 + BITMAP.len();

const PRESENT: u64 = Entry::P | Entry::W;
const DATA: u64 = Entry::P | Entry::W | Entry::NX;

/// The subtree that spaces without ports share.
pub struct Defaults {
    slot: Cell<u64>,
    tss: Cell<u64>,
    ones: Cell<u64>,
}

impl Defaults {
    /// Not built yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { slot: Cell::new(0), tss: Cell::new(0), ones: Cell::new(0) }
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self::new()
    }
}

fn defaults() -> &'static Defaults {
    root::shared().ports()
}

/// Builds the shared subtree around the TSS in `tss_frame`, and enters it into
/// the root table `template`, whose kernel half all spaces copy. `quota` pays
/// four frames.
///
/// # Errors
/// [`NoMemory`] if the quota is exhausted.
pub fn init(tss_frame: PhysFrame, template: u64, quota: &Quota) -> Result<(), NoMemory> {
    let ones = quota.take_frame()?;
    fill(ones.address(), !0);
    let defaults = defaults();
    defaults.tss.set(tss_frame.address());
    defaults.ones.set(ones.address());
    let upper = Cell::new(0);
    let leaves = loop {
        if let Some(leaves) = tables_of(&upper, quota)? {
            break leaves;
        }
    };
    show(leaves, ones.address(), ones.address());
    let slot = upper.get() | PRESENT;
    defaults.slot.set(slot);
    Table::at(template).set(PORTS_SLOT, Entry(slot));
    Ok(())
}

/// Physical address of the page of ones: every port is closed.
#[must_use]
pub fn closed() -> u64 {
    defaults().ones.get()
}

/// Makes the first table that is missing below `upper`, or that one; once all three are there,
/// the one of the leaves.
fn tables_of(upper: &Cell<u64>, quota: &Quota) -> Result<Option<Table>, NoMemory> {
    if upper.get() == 0 {
        upper.set(quota.take_zeroed_frame()?.address());
        return Ok(None);
    }
    let mut table = Table::at(upper.get());
    for _ in 0..2 {
        if !table.get(0).present() {
            table.set(0, Entry(quota.take_zeroed_frame()?.address() | PRESENT));
            return Ok(None);
        }
        table = table.get(0).below();
    }
    Ok(Some(table))
}

/// Enters all pages into the table of the leaves.
fn show(leaves: Table, low: u64, high: u64) {
    let defaults = defaults();
    for (index, page) in [defaults.tss.get(), low, high, defaults.ones.get()].iter().enumerate() {
        leaves.set(index, Entry(page | DATA));
    }
}

fn fill(page: u64, byte: u8) {
    // SAFETY: the page is a frame that the caller just took from the pool, or of a bitmap, whose
    // words nobody else writes.
    unsafe { crate::arch::fill_page(phys_to_virt(page), u64::from_ne_bytes([byte; 8])) };
    // As for zeroed frames: interrupts are noted.
    crate::arch::preemption::let_in();
}

/// Makes the next page of a bitmap of the space's own, which begins all closed: done when one is
/// in force. A page is 520 instructions in which interrupts are only noted, so whoever calls this
/// looks for them in between. What was made stays with the space, until [`release`].
///
/// # Errors
/// [`NoMemory`] if the space cannot pay; then all of it is given back.
pub(crate) fn prepare(space: SpaceRef) -> Result<Step, NoMemory> {
    if is_own(space) || defaults().slot.get() == 0 {
        return Ok(Step::Done);
    }
    prepare_page(space).inspect_err(|_| release(space))
}

#[cold]
fn prepare_page(space: SpaceRef) -> Result<Step, NoMemory> {
    let (root, quota) = (space.root(), space.quota());
    let Some(leaves) = tables_of(root.bitmap_to_come(), quota)? else { return Ok(Step::More) };
    for index in BITMAP {
        if !leaves.get(index).present() {
            let page = quota.take_frame()?.address();
            fill(page, !0);
            leaves.set(index, Entry(page | DATA));
            return Ok(Step::More);
        }
    }
    let [low, high] = BITMAP.map(|index| leaves.get(index).address());
    show(leaves, low, high);
    // Another processor shows the bitmap that was in force when the thread came.
    vacate(space);
    root.bitmap().set(root.bitmap_to_come().replace(0));
    enter(space, root.bitmap().get() | PRESENT);
    Ok(Step::Done)
}

/// Opens 2^`bits` ports from `start` for the space, whose bitmap is prepared.
pub(crate) fn allow(space: SpaceRef, start: u64, bits: u32) {
    if is_own(space) {
        change(space, start, bits, 0);
    }
}

/// Closes 2^`bits` ports from `start`.
pub(crate) fn forbid(space: SpaceRef, start: u64, bits: u32) {
    if is_own(space) {
        change(space, start, bits, !0);
    }
}

/// Puts `slot` into the space's root table.
fn enter(space: SpaceRef, slot: u64) {
    space.root().table().set(PORTS_SLOT, Entry(slot));
    for page in 0..4 {
        tlb::invalidate(space, STATE + page * FRAME);
    }
}

/// The tables of a space's own subtree: upper, middle, leaves.
fn tables(space: SpaceRef) -> [u64; 3] {
    let upper = space.root().bitmap().get();
    let middle = Table::at(upper).get(0).address();
    [upper, middle, Table::at(middle).get(0).address()]
}

/// Shows the bitmap that the root table `from` shows in `to`, another processor's, which has it elsewhere, in
/// tables of its own, and is not loaded.
pub fn copy(from: Table, to: Table) {
    let shown = from.get(PORTS_SLOT).below().get(0).below().get(0).below();
    let mut own = to;
    for level in (1..=ROOT).rev() {
        own = own.get(index(STATE_THERE, level)).below();
    }
    for page in BITMAP {
        own.set(index(STATE_THERE, 0) + page, shown.get(page));
    }
}

/// Gives the space's own bitmap back, or what there is of one; the shared one is in force again.
pub(crate) fn release(space: SpaceRef) {
    let mut frames = [0; FRAMES_AT_MOST];
    let mut count = 0;
    for_each_frame(space, |frame| {
        frames[count] = frame;
        count += 1;
    });
    let root = space.root();
    root.bitmap_to_come().set(0);
    if root.bitmap().get() != 0 {
        vacate(space);
        root.bitmap().set(0);
        enter(space, defaults().slot.get());
    }
    for frame in frames.into_iter().take(count) {
        space.quota().give_back(PhysFrame::at(frame));
    }
}

/// Sets the bits of 2^`bits` ports from `start` to those of `value`, all ones or all zeros.
fn change(space: SpaceRef, start: u64, bits: u32, value: u64) {
    let leaves = Table::at(tables(space)[2]);
    if bits >= PAGE_PORTS_BITS {
        for page in start >> PAGE_PORTS_BITS..(start + (1 << bits)) >> PAGE_PORTS_BITS {
            fill(leaves.get(1 + page as usize).address(), value as u8);
        }
        return;
    }
    let mask = if bits >= 6 { !0 } else { ((1 << (1 << bits)) - 1) << (start & 63) };
    let first = start / 64;
    let mut pace = Pace::default();
    for word in first..first + (1u64 << bits).div_ceil(64) {
        // Up to 256 words: too long to keep interrupts off.
        pace.round();
        let page = leaves.get(1 + (word as usize >> 9 & 1)).below();
        let index = word as usize & 511;
        page.set_word(index, page.word_at(index) & !mask | value & mask);
    }
}

/// Whether the bitmap in force for the space lets `port` through: for checks.
#[must_use]
pub fn is_open(space: SpaceRef, port: u16) -> bool {
    if !is_own(space) {
        return false;
    }
    let leaves = Table::at(tables(space)[2]);
    let word = usize::from(port) / 64;
    let page = leaves.get(1 + (word >> 9 & 1)).below();
    page.word_at(word & 511) >> (port % 64) & 1 == 0
}

/// Whether the space has a bitmap of its own.
pub(crate) fn is_own(space: SpaceRef) -> bool {
    space.root().bitmap().get() != 0
}

/// Calls `each` with the address of every frame of the space's own bitmap, be it in force or
/// still to come.
pub(crate) fn for_each_frame(space: SpaceRef, mut each: impl FnMut(u64)) {
    let mut table = space.root().bitmap().get() | space.root().bitmap_to_come().get();
    for level in 0..3 {
        if table == 0 {
            return;
        }
        each(table);
        if level < 2 {
            table = Table::at(table).get(0).address();
        }
    }
    let pages = BITMAP.map(|index| Table::at(table).get(index).address());
    pages.into_iter().filter(|page| *page != 0).for_each(each);
}
