//! Physical memory on the host: an arena per thread, so that tests can run side
//! by side, each with its own machine.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;

/// Bytes of simulated physical memory that may be touched (the kernel's pool
/// lies in here; users' pages above are only addresses).
pub const ARENA_BYTES: usize = 256 << 20;

/// One thread's physical memory.
struct Arena {
    allocated: *mut u8,
    base: *mut u8,
}

impl Arena {
    /// Room to align the base; asking for the alignment would touch every page.
    const LAYOUT: Layout = match Layout::from_size_align(ARENA_BYTES + 4096, 16) {
        Ok(layout) => layout,
        Err(_) => panic!("a constant layout"),
    };

    fn new() -> Self {
        // SAFETY: the layout is not empty.
        let allocated = unsafe { alloc_zeroed(Self::LAYOUT) };
        assert!(!allocated.is_null(), "no memory for the simulated machine");
        let base = allocated.wrapping_add(allocated.align_offset(4096));
        Self { allocated, base }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; the thread that used it is ending.
        unsafe { dealloc(self.allocated, Self::LAYOUT) };
    }
}

thread_local! {
    static ARENA: Arena = Arena::new();
    static CR3: Cell<u64> = const { Cell::new(0) };
}

/// The host's address of the physical address `phys`.
#[must_use]
pub fn phys_to_virt(phys: u64) -> *mut u8 {
    debug_assert!((phys as usize) < ARENA_BYTES, "{phys:#x} is outside the arena");
    ARENA.with(|arena| arena.base.wrapping_add(phys as usize))
}

/// The inverse of [`phys_to_virt`].
#[must_use]
pub fn virt_to_phys(pointer: *const u8) -> u64 {
    ARENA.with(|arena| pointer as u64 - arena.base as u64)
}

/// Stand-ins for the privileged instructions; a test can read what was asked.
pub mod hardware {
    use super::{CR3, Cell};

    thread_local! {
        static INVALIDATED: Cell<u64> = const { Cell::new(0) };
    }

    /// The simulated CR3.
    #[must_use]
    pub fn loaded() -> u64 {
        CR3.with(Cell::get)
    }

    /// Sets the simulated CR3.
    pub fn load(value: u64) {
        CR3.with(|cr3| cr3.set(value));
    }

    /// Counts a full flush of the current space.
    pub fn reload() {
        INVALIDATED.with(|n| n.set(n.get() + 1));
    }

    /// Counts an invalidation.
    pub fn forget(_address: u64) {
        INVALIDATED.with(|n| n.set(n.get() + 1));
    }

    /// Counts an invalidation.
    pub fn invpcid(_kind: u64, _pcid: u16, _address: u64) {
        INVALIDATED.with(|n| n.set(n.get() + 1));
    }

    /// How many invalidations were asked for so far.
    #[must_use]
    pub fn invalidations() -> u64 {
        INVALIDATED.with(Cell::get)
    }
}
