//! Memory that the runtime does not manage: windows that other tasks map into.
//!
//! A window is claimed once and never overlaps the image, the heap, the stacks,
//! the UTCBs or another window; so reading and writing it through these methods
//! can never touch a Rust object. All accesses are volatile, whole words. An
//! access to a page that nobody mapped is a page fault like any other.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use abi::{Fpage, Rights};
use proto::layout;

use crate::sync::Lock;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Enough for the root task's images, files, pools, and 16 blocks of each of 32 tasks.
const MAX_WINDOWS: usize = 576;

/// Whether this is an initial server: those have no heap and no stack regions,
/// and see memory at its physical address.
static INITIAL_SERVER: AtomicBool = AtomicBool::new(false);

static CLAIMED: Lock<([(u64, u64); MAX_WINDOWS], usize)> = Lock::new(([(0, 0); MAX_WINDOWS], 0));

/// Says that this is an initial server; before the first window.
pub(crate) fn initial_server() {
    INITIAL_SERVER.store(true, Ordering::Relaxed);
}

/// What the runtime manages: the image, the UTCBs and the KIP, heap and stacks.
fn managed() -> [(u64, u64); 4] {
    if INITIAL_SERVER.load(Ordering::Relaxed) {
        let kernel = (abi::layout::INITIAL_UTCB_AREA, abi::layout::INITIAL_KIP + PAGE);
        return [crate::layout::image(), kernel, (0, 0), (0, 0)];
    }
    let kernel = (layout::UTCBS, layout::KIP + PAGE);
    let heap = (layout::HEAP, layout::HEAPS_END);
    [crate::layout::image(), kernel, heap, (layout::STACKS, layout::STACKS_END)]
}

/// A claimed range of addresses.
#[derive(Debug)]
pub struct Window {
    base: u64,
    bytes: u64,
}

impl Window {
    /// Claims `bytes` bytes from `base`; both multiples of the page size.
    ///
    /// `None` if anything that the runtime manages lies there, if another window
    /// does, or if there are too many windows.
    #[must_use]
    pub fn claim(base: u64, bytes: u64) -> Option<Self> {
        let end = base.checked_add(bytes)?;
        let legal =
            (base | bytes).is_multiple_of(PAGE) && base >= PAGE && end <= abi::layout::USER_END;
        let clash = |&(low, high): &(u64, u64)| base < high && low < end;
        let mut claimed = CLAIMED.lock();
        let (list, count) = &mut *claimed;
        if !legal
            || managed().iter().any(clash)
            || list[..*count].iter().any(clash)
            || *count == MAX_WINDOWS
        {
            return None;
        }
        list[*count] = (base, end);
        *count += 1;
        Some(Self { base, bytes })
    }

    /// Gives the range up: it can be claimed again. What is mapped there stays mapped.
    pub fn release(self) {
        let mut claimed = CLAIMED.lock();
        let (list, count) = &mut *claimed;
        if let Some(index) = list[..*count].iter().position(|range| range.0 == self.base) {
            list[index] = list[*count - 1];
            *count -= 1;
        }
    }

    /// Address and size, for somebody who manages the memory from now on; it stays claimed.
    #[must_use]
    pub const fn into_raw(self) -> (u64, u64) {
        (self.base, self.bytes)
    }

    /// First address.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The window as a flexpage, if it is one: a power of two, naturally aligned.
    #[must_use]
    pub fn fpage(&self) -> Option<Fpage> {
        let fits = self.bytes.is_power_of_two() && self.base.is_multiple_of(self.bytes);
        fits.then(|| Fpage::memory(self.base, self.bytes.trailing_zeros(), Rights::RWX))
    }

    fn address(&self, offset: u64, bytes: u64) -> *mut u64 {
        let fits = offset.is_multiple_of(8)
            && offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(fits, "an access at offset {offset:#x} of a window of {:#x} bytes", self.bytes);
        (self.base + offset) as *mut u64
    }

    /// Reads the word at `offset` bytes, a multiple of 8.
    #[must_use]
    pub fn read(&self, offset: u64) -> u64 {
        // SAFETY: inside the window, which no Rust object overlaps (see the module).
        unsafe { self.address(offset, 8).read_volatile() }
    }

    /// Writes the word at `offset` bytes, a multiple of 8.
    pub fn write(&self, offset: u64, value: u64) {
        // SAFETY: as in `read`.
        unsafe { self.address(offset, 8).write_volatile(value) }
    }

    /// Reads the half word at `offset` bytes, a multiple of 4: registers of devices are that long.
    #[must_use]
    pub fn read32(&self, offset: u64) -> u32 {
        // SAFETY: as in `read`.
        unsafe { self.register(offset).read_volatile() }
    }

    /// Writes the half word at `offset` bytes, a multiple of 4.
    pub fn write32(&self, offset: u64, value: u32) {
        // SAFETY: as in `read`.
        unsafe { self.register(offset).write_volatile(value) }
    }

    fn register(&self, offset: u64) -> *mut u32 {
        assert!(offset.is_multiple_of(4), "a register at offset {offset:#x}");
        let word = self.address(offset & !7, 8).cast::<u32>();
        // Either half of the word is inside the window.
        word.wrapping_add(offset as usize / 4 % 2)
    }

    /// Makes sure that the page at `offset` is mapped here, by reading from it.
    pub fn touch(&self, offset: u64) {
        let _ = self.read(offset & !7);
    }

    /// Fills `bytes` (a multiple of 8) from `offset` with zeros.
    pub fn zero(&self, offset: u64, bytes: u64) {
        let to = self.address(offset, bytes);
        // SAFETY: the whole range is inside the window.
        unsafe {
            asm!("rep stosq", inout("rcx") bytes / 8 => _, inout("rdi") to => _, in("rax") 0, options(nostack));
        }
    }

    /// Copies `bytes` (a multiple of 8) from `source` at `source_offset` to `offset`.
    pub fn copy(&self, offset: u64, source: &Self, source_offset: u64, bytes: u64) {
        let to = self.address(offset, bytes);
        let from = source.address(source_offset, bytes);
        // SAFETY: both ranges are inside their windows; windows do not overlap,
        // and inside one window the pager copies between different pages.
        unsafe {
            asm!("rep movsq", inout("rcx") bytes / 8 => _, inout("rdi") to => _,
                 inout("rsi") from => _, options(nostack));
        }
    }

    /// Copies `bytes` to `offset`, whole words first: devices' memory takes them much sooner than
    /// single bytes.
    pub fn write_bytes(&mut self, offset: u64, bytes: &[u8]) {
        let words = offset & !7;
        let _ = self.address(words, (offset - words + bytes.len() as u64 + 7) & !7);
        let (count, rest) = (bytes.len() / 8, bytes.len() % 8);
        // SAFETY: the range is inside the window, which no Rust object overlaps; both copies read
        // `bytes` from its first to its last.
        unsafe {
            asm!("rep movsq", "mov rcx, {rest}", "rep movsb", rest = in(reg) rest,
                 inout("rcx") count => _, inout("rdi") self.base + offset => _,
                 inout("rsi") bytes.as_ptr() => _, options(nostack));
        }
    }

    /// Copies bytes from `offset` into `buffer`.
    pub fn read_bytes(&self, offset: u64, buffer: &mut [u8]) {
        let words = offset & !7;
        let _ = self.address(words, (offset - words + buffer.len() as u64 + 7) & !7);
        // SAFETY: the range is inside the window, which no Rust object overlaps.
        unsafe {
            asm!("rep movsb", inout("rcx") buffer.len() => _, inout("rdi") buffer.as_mut_ptr() => _,
                 inout("rsi") self.base + offset => _, options(nostack));
        }
    }
}
