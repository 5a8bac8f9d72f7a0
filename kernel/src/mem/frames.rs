//! The kernel's pool of 4 KiB frames, and one word of information per frame.
//!
//! Free frames form a list through their own first words; those that are zero but for that word
//! have a list of their own ([`prepare`]). The information word
//! of a page-table frame names its twin (the page with the mapping nodes of its
//! leaf entries) and counts its used entries. Called by quotas only, at run time.

use super::state;
use crate::arch::paging::Table;
use crate::arch::preemption::{let_in, must_stop};
use crate::arch::{fill_page, phys_to_virt};
use core::cell::Cell;

/// Bytes of a frame.
pub const FRAME: u64 = 4096;

/// One frame of the pool, by physical address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a frame that is dropped is lost"]
pub struct PhysFrame(u64);

impl PhysFrame {
    /// The frame that begins at `address`, a multiple of 4096.
    pub const fn at(address: u64) -> Self {
        Self(address & !(FRAME - 1))
    }

    /// Its physical address.
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }
}

impl Table {
    /// The one in `frame`, which holds a table or a twin.
    #[inline(always)]
    #[must_use]
    pub const fn of(frame: PhysFrame) -> Self {
        Self::at(frame.0)
    }
}

/// The pool.
pub struct Frames {
    head: Cell<u64>,
    /// Those that are zero but for their first word, and how many there are.
    clean: Cell<u64>,
    ready: Cell<u64>,
    /// All that are free.
    free: Cell<u64>,
    total: Cell<u64>,
    info: Cell<u64>,
    info_len: Cell<u64>,
    /// The addresses between which all frames of the pool are.
    low: Cell<u64>,
    high: Cell<u64>,
    /// For the checker: sum of all quotas, and frames that the kernel took for itself.
    pub(crate) granted: Cell<u64>,
    pub(crate) kept: Cell<u64>,
}

impl Frames {
    pub(crate) const fn new() -> Self {
        Self {
            head: Cell::new(0),
            clean: Cell::new(0),
            ready: Cell::new(0),
            free: Cell::new(0),
            total: Cell::new(0),
            info: Cell::new(0),
            info_len: Cell::new(0),
            low: Cell::new(u64::MAX),
            high: Cell::new(0),
            granted: Cell::new(0),
            kept: Cell::new(0),
        }
    }
}

/// Bytes of the information array for physical memory below `max_phys`.
#[must_use]
pub const fn info_bytes(max_phys: u64) -> u64 {
    (max_phys.div_ceil(FRAME) * 8).next_multiple_of(FRAME)
}

/// Places the information array at `info_phys`, for pool frames below `max_phys`.
/// Before the first [`add_region`]: nothing is in the pool.
pub fn init(info_phys: u64, max_phys: u64) {
    let frames = &state().frames;
    for empty in [&frames.head, &frames.clean, &frames.ready, &frames.free, &frames.total] {
        empty.set(0);
    }
    frames.info.set(info_phys);
    frames.info_len.set(max_phys.div_ceil(FRAME));
}

/// Adds the frames in `start..end` to the pool, those beyond the information
/// array excepted; returns how many.
pub fn add_region(start: u64, end: u64) -> u64 {
    let frames = &state().frames;
    let limit = end.min(frames.info_len.get() * FRAME);
    let mut address = start.next_multiple_of(FRAME).max(FRAME);
    let mut added = 0;
    while address + FRAME <= limit {
        give_back(PhysFrame(address));
        address += FRAME;
        added += 1;
    }
    frames.total.set(frames.total.get() + added);
    frames.low.set(frames.low.get().min(start.next_multiple_of(FRAME).max(FRAME)));
    frames.high.set(frames.high.get().max(address));
    added
}

/// Takes a frame with arbitrary content.
pub fn take() -> Option<PhysFrame> {
    let frames = &state().frames;
    pop(&frames.head).or_else(take_clean)
}

/// Takes the first frame of `list`.
#[inline(always)]
fn pop(list: &Cell<u64>) -> Option<PhysFrame> {
    let address = list.get();
    if address == 0 {
        return None;
    }
    let frames = &state().frames;
    // SAFETY: the frame is in a list of free ones, so nobody else uses it.
    list.set(unsafe { phys_to_virt(address).cast::<u64>().read() });
    frames.free.set(frames.free.get() - 1);
    Some(PhysFrame(address))
}

/// Takes a frame that is zero but for its first word.
#[cold]
fn take_clean() -> Option<PhysFrame> {
    let frames = &state().frames;
    let frame = pop(&frames.clean)?;
    frames.ready.set(frames.ready.get() - 1);
    Some(frame)
}

/// Whether `count` frames full of zeros can be taken without filling any; if not, one more can be
/// from now on. What takes several is done in steps that fill one each, so that whoever
/// interrupts does not wait for all of them. Others may take what is ready.
#[must_use]
pub(crate) fn prepare(count: u64) -> bool {
    let frames = &state().frames;
    if frames.ready.get() >= count {
        return true;
    }
    let Some(frame) = pop(&frames.head) else { return true };
    zero(frame);
    // SAFETY: it was just taken, and lies in the physical map.
    unsafe { phys_to_virt(frame.0).cast::<u64>().write(frames.clean.replace(frame.0)) };
    frames.ready.set(frames.ready.get() + 1);
    frames.free.set(frames.free.get() + 1);
    false
}

/// Sees to it that `count` frames full of zeros are ready, before a call has changed anything. Whether an interrupt has
/// come meanwhile, which is not to wait for what is left: then the call is made again. Each time one frame more is
/// ready, so it comes to an end unless others take them (docs/decisions/0136).
pub(crate) fn is_interrupted_before(count: u64) -> bool {
    while !prepare(count) {
        if must_stop() {
            return true;
        }
    }
    false
}

/// Takes a frame that the kernel keeps for itself, without a quota that pays.
pub fn take_for_kernel() -> Option<PhysFrame> {
    let frames = &state().frames;
    let frame = take()?;
    frames.kept.set(frames.kept.get() + 1);
    Some(frame)
}

/// The same, full of zeros.
#[inline(never)] // at many places
pub fn take_zeroed_for_kernel() -> Option<PhysFrame> {
    let frame = take_for_kernel()?;
    zero(frame);
    Some(frame)
}

/// Takes a frame full of zeros.
pub(crate) fn take_zeroed() -> Option<PhysFrame> {
    if state().frames.ready.get() == 0 {
        let frame = take()?;
        zero(frame);
        return Some(frame);
    }
    let frame = take_clean()?;
    // As where one is filled: whoever takes several does not count on it.
    let_in();
    // SAFETY: it was just taken, and lies in the physical map.
    unsafe { phys_to_virt(frame.0).cast::<u64>().write(0) };
    Some(frame)
}

/// Fills a frame with zeros.
#[inline(always)] // few callers; a call would be a quarter of it
pub fn zero(frame: PhysFrame) {
    // What led here, and several frames in a row, would keep interrupts off for too long;
    // they are only noted here.
    let_in();
    // SAFETY: the caller owns the frame; it lies in the physical map.
    unsafe { fill_page(phys_to_virt(frame.0), 0) };
    let_in();
}

/// Puts a frame back into the pool.
pub fn give_back(frame: PhysFrame) {
    let frames = &state().frames;
    // SAFETY: the caller owned the frame and gives it up.
    unsafe { phys_to_virt(frame.0).cast::<u64>().write(frames.head.get()) };
    frames.head.set(frame.0);
    frames.free.set(frames.free.get() + 1);
}

/// Frames in the pool that are free.
#[must_use]
pub fn free() -> u64 {
    state().frames.free.get()
}

/// Frames in the pool, used or not.
#[must_use]
pub fn total() -> u64 {
    state().frames.total.get()
}

/// Calls `each` with the address of every free frame; for checks.
pub(crate) fn for_each_free(mut each: impl FnMut(u64)) {
    let frames = &state().frames;
    // One more than there should be, so that a list too long is noticed.
    let mut left = frames.free.get() + 1;
    for list in [&frames.head, &frames.clean] {
        let mut address = list.get();
        while address != 0 && left > 0 {
            each(address);
            left -= 1;
            // SAFETY: as in `pop`.
            address = unsafe { phys_to_virt(address).cast::<u64>().read() };
        }
    }
}

/// Marks the frame at `address`; whether it was marked, `None` if it is not of the pool.
pub(crate) fn mark(address: u64) -> Option<bool> {
    let frames = &state().frames;
    let ours =
        (frames.low.get()..frames.high.get()).contains(&address) && address.is_multiple_of(FRAME);
    ours.then(|| Info::of(address).mark())
}

/// Takes the marks off all frames.
pub(crate) fn unmark_all() {
    let frames = &state().frames;
    let mut address = frames.low.get();
    while address < frames.high.get() {
        Info::of(address).unmark();
        address += FRAME;
    }
}

/// The information word of a page-table frame: the twin's address, and in the
/// low 11 bits the number of used entries. Bit 11 is the checker's mark, on no
/// frame at other times.
#[derive(Clone, Copy)]
pub(crate) struct Info(*mut u64);

const MARK: u64 = 1 << 11;

impl Info {
    /// The word for the pool frame at `phys`.
    #[inline]
    pub(crate) fn of(phys: u64) -> Self {
        let base = state().frames.info.get();
        Self(phys_to_virt(base + (phys >> 12) * 8).cast())
    }

    #[inline]
    fn get(self) -> u64 {
        // SAFETY: `add_region` admits only frames that the array covers.
        unsafe { self.0.read() }
    }

    #[inline]
    fn put(self, value: u64) {
        // SAFETY: as in `get`.
        unsafe { self.0.write(value) }
    }

    #[inline]
    pub(crate) fn init(self, twin: u64, used: u64) {
        self.put(twin | used);
    }

    /// The twin's address, 0 if there is none.
    #[inline]
    pub(crate) fn twin(self) -> u64 {
        self.get() & !0xFFF
    }

    /// The twin, which there is.
    #[inline(always)]
    pub(crate) fn twin_table(self) -> Table {
        Table::of(PhysFrame::at(self.twin()))
    }

    #[inline]
    pub(crate) fn used(self) -> u64 {
        self.get() & 0x7FF
    }

    /// Sets the checker's mark; whether it was set.
    fn mark(self) -> bool {
        let value = self.get();
        self.put(value | MARK);
        value & MARK != 0
    }

    /// Clears the checker's mark.
    fn unmark(self) {
        self.put(self.get() & !MARK);
    }

    #[inline]
    pub(crate) fn set_twin(self, twin: u64) {
        self.put(twin | self.used());
    }

    #[inline]
    pub(crate) fn one_more(self) {
        self.more(1);
    }

    /// Counts so many entries more; the table has room for them.
    #[inline]
    pub(crate) fn more(self, count: u64) {
        self.put(self.get() + count);
    }

    /// Counts one entry less; true if that was the last.
    #[inline]
    pub(crate) fn one_less(self) -> bool {
        let value = self.get() - 1;
        self.put(value);
        value & 0xFFF == 0
    }
}
