//! Frames: 4 KiB pieces of memory, counted. File contents, anonymous memory and
//! everything else that programs can see lives in frames; the server reads and
//! writes them through this module, the only one that holds a pointer.
//!
//! All frames lie in one region that the binding hands over at the start. A frame's
//! *count* says how many owners it has (a file's page, each address space that has it
//! in a private or shared mapping); at zero it is free.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;

/// Bytes of a page and of a frame.
pub const PAGE: usize = 4096;
/// Log2 of [`PAGE`].
pub const PAGE_BITS: u32 = 12;

/// Frames that there can be: what the page map has room for ([`crate::mm::pages::Page`]).
pub const FRAMES_MAX: usize = 1 << 25;

/// Number of a frame in the region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// A frame that has an owner as long as this is there.
pub struct Frame {
    id: FrameId,
    memory: Rc<Memory>,
}

impl Frame {
    /// One full of zeroes.
    #[must_use]
    pub fn new(memory: &Rc<Memory>) -> Option<Self> {
        Some(Self { id: memory.allocate_zeroed()?, memory: memory.clone() })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> FrameId {
        self.id
    }

    /// Reads the word at `offset`.
    #[must_use]
    pub fn word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(self.id, offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Writes it.
    pub fn set_word(&self, offset: usize, word: u64) {
        self.memory.write(self.id, offset, &word.to_le_bytes());
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.memory.release(self.id);
    }
}

/// All frames.
pub struct Memory {
    base: NonNull<u8>,
    counts: Vec<Cell<u32>>,
    free: RefCell<Vec<FrameId>>,
    fresh: Cell<u32>,
    /// Frames from here on are held back.
    end: Cell<usize>,
}

#[allow(unsafe_code)]
impl Memory {
    /// Takes over `frames` frames from `base` on, and of these [`FRAMES_MAX`] at most.
    ///
    /// # Safety
    /// The region is readable and writable, page-aligned, lives as long as the value, and
    /// nobody in this program has references into it. Programs to which frames are mapped
    /// may change them at any time: bytes are only ever copied, never borrowed.
    #[must_use]
    pub unsafe fn new(base: NonNull<u8>, frames: usize) -> Self {
        let frames = frames.min(FRAMES_MAX);
        let mut counts = Vec::new();
        counts.resize_with(frames, || Cell::new(0));
        Self {
            base,
            counts,
            free: RefCell::new(Vec::new()),
            fresh: Cell::new(0),
            end: Cell::new(frames),
        }
    }

    /// A frame with count 1 and unknown contents.
    #[must_use]
    pub fn allocate(&self) -> Option<FrameId> {
        let frame = match self.free.borrow_mut().pop() {
            Some(frame) => frame,
            None if (self.fresh.get() as usize) < self.end.get() => {
                self.fresh.set(self.fresh.get() + 1);
                FrameId(self.fresh.get() - 1)
            }
            None => return None,
        };
        self.counts[frame.0 as usize].set(1);
        Some(frame)
    }

    /// A frame with count 1, full of zeroes.
    #[must_use]
    pub fn allocate_zeroed(&self) -> Option<FrameId> {
        let frame = self.allocate()?;
        self.zero(frame, 0, PAGE);
        Some(frame)
    }

    /// Nobody gets the last `frames` frames until this is called again. They must not have
    /// been given yet.
    pub fn hold_back(&self, frames: usize) {
        self.end.set(self.counts.len().saturating_sub(frames));
    }

    /// One more owner.
    pub fn share(&self, frame: FrameId) {
        let count = &self.counts[frame.0 as usize];
        count.set(count.get() + 1);
    }

    /// One owner less; whether the frame is free now. The last owner has revoked all
    /// mappings of it before.
    pub fn release(&self, frame: FrameId) -> bool {
        let count = &self.counts[frame.0 as usize];
        count.set(count.get() - 1);
        if count.get() == 0 {
            self.free.borrow_mut().push(frame);
        }
        count.get() == 0
    }

    /// Number of owners.
    #[must_use]
    pub fn count(&self, frame: FrameId) -> u32 {
        self.counts[frame.0 as usize].get()
    }

    /// Frames in all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.counts.len()
    }

    /// Frames nobody owns.
    #[must_use]
    pub fn available(&self) -> usize {
        self.end.get().saturating_sub(self.fresh.get() as usize) + self.free.borrow().len()
    }

    /// Where a frame's bytes from `offset` on are; `offset + len` is inside the frame.
    fn at(&self, frame: FrameId, offset: usize, len: usize) -> *mut u8 {
        assert!((frame.0 as usize) < self.counts.len() && offset <= PAGE && len <= PAGE - offset);
        // SAFETY: inside the region, by the assertion.
        unsafe { self.base.as_ptr().add(frame.0 as usize * PAGE + offset) }
    }

    /// Address of a frame, for the binding's mappings.
    #[must_use]
    pub fn address(&self, frame: FrameId) -> u64 {
        self.at(frame, 0, PAGE) as u64
    }

    /// Copies bytes out of a frame.
    pub fn read(&self, frame: FrameId, offset: usize, to: &mut [u8]) {
        let from = self.at(frame, offset, to.len());
        // SAFETY: `from` is valid for the length, and no reference to it exists (see `new`).
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
    }

    /// Copies bytes into a frame.
    pub fn write(&self, frame: FrameId, offset: usize, from: &[u8]) {
        let to = self.at(frame, offset, from.len());
        // SAFETY: as in `read`.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    }

    /// Copies bytes from frame to frame (they may be the same one).
    pub fn copy(&self, from: (FrameId, usize), to: (FrameId, usize), len: usize) {
        let (from, to) = (self.at(from.0, from.1, len), self.at(to.0, to.1, len));
        // SAFETY: both are valid for the length.
        unsafe { to.copy_from(from, len) };
    }

    /// Fills bytes of a frame with zeroes.
    pub fn zero(&self, frame: FrameId, offset: usize, len: usize) {
        let at = self.at(frame, offset, len);
        // SAFETY: as in `write`.
        unsafe { at.write_bytes(0, len) };
    }

    /// Reads the aligned 32-bit word at `offset`, in one piece (futexes).
    #[must_use]
    pub fn load_u32(&self, frame: FrameId, offset: usize) -> u32 {
        let at = self.at(frame, offset & !3, 4).cast::<u32>();
        // SAFETY: valid and aligned; programs write it concurrently, hence atomic.
        unsafe { core::sync::atomic::AtomicU32::from_ptr(at) }
            .load(core::sync::atomic::Ordering::SeqCst)
    }

    /// Replaces the aligned 32-bit word at `offset` if it is `old`.
    pub fn compare_exchange_u32(&self, frame: FrameId, offset: usize, old: u32, new: u32) -> bool {
        let at = self.at(frame, offset & !3, 4).cast::<u32>();
        let order = core::sync::atomic::Ordering::SeqCst;
        // SAFETY: as in `load_u32`.
        unsafe { core::sync::atomic::AtomicU32::from_ptr(at) }
            .compare_exchange(old, new, order, order)
            .is_ok()
    }
}
