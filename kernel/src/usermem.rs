//! User memory as a type: the one module that reads and writes what users own.
//!
//! UTCBs are kernel frames, reached through the map of physical memory; their
//! contents may change under the kernel's hands (another thread of the space may
//! write them), so every word is read once and then is a value. Strings are
//! reached page by page after `AddressSpace::resolve` has checked them.

use core::cell::{Cell, UnsafeCell};
use core::mem::offset_of;

use abi::{ThreadId, utcb};

use crate::arch::phys_to_virt;
use crate::mem::{Access, SpaceRef, Span};
use crate::techniques;

/// MR1 to so many are registers of the processor while a thread runs (X.2 4.1).
const IN_REGISTERS: usize = 7;
/// The words of most messages.
const FEW: usize = 3;

/// A thread's UTCB: a pointer to MR0 that is valid as long as the thread is active.
#[derive(Clone, Copy)]
pub struct Utcb(*mut u64);

impl Utcb {
    /// The UTCB of which a tcb holds `address`, in the map of physical memory; 0: the thread is not active.
    #[inline(always)]
    pub(crate) fn held(address: u64) -> Option<Self> {
        (address != 0).then_some(Self(address as *mut u64))
    }

    /// The UTCB of `space` whose local id is `local`, if the space has memory for it.
    #[must_use]
    pub fn at(space: SpaceRef, local: ThreadId) -> Option<Self> {
        let (_, area) = space.areas();
        let location = local.0.wrapping_sub(utcb::POINTER_OFFSET);
        let inside = (area.start..area.end).contains(&location);
        if !inside || !location.is_multiple_of(utcb::SIZE) {
            return None;
        }
        let frame = space.kernel_page(location)?;
        Some(Self(phys_to_virt(frame + location % 4096 + utcb::POINTER_OFFSET).cast()))
    }

    /// The word at `index` words from U; indices wrap at the UTCB's ends.
    #[inline(always)]
    fn slot(self, index: isize) -> *mut u64 {
        // `utcb_k` points 512 bytes into a 1 KiB block of a kernel frame that lives
        // as long as the thread is active: -64..64 words.
        self.0.wrapping_offset((index + 64 & 127) - 64)
    }

    /// Reads the word at `index` words from U (see `abi::utcb`).
    #[inline(always)]
    #[must_use]
    pub fn word(self, index: isize) -> u64 {
        // SAFETY: `slot` stays inside the UTCB.
        unsafe { self.slot(index).read_volatile() }
    }

    /// Writes the word at `index` words from U.
    #[inline(always)]
    pub fn set_word(self, index: isize, value: u64) {
        // SAFETY: `slot` stays inside the UTCB.
        unsafe { self.slot(index).write_volatile(value) }
    }

    /// Message register `index`, 0 to 63.
    #[inline(always)]
    #[must_use]
    pub fn mr(self, index: usize) -> u64 {
        // SAFETY: message registers are the words 0 to 63 from U.
        unsafe { self.0.wrapping_add(index & 63).read_volatile() }
    }

    /// Sets message register `index`.
    #[inline(always)]
    pub fn set_mr(self, index: usize, value: u64) {
        // SAFETY: message registers are the words 0 to 63 from U.
        unsafe { self.0.wrapping_add(index & 63).write_volatile(value) }
    }

    /// Buffer register `index`, 0 to 32.
    #[must_use]
    pub fn br(self, index: usize) -> u64 {
        self.word(utcb::BR0 - (index.min(utcb::BRS - 1)) as isize)
    }

    /// The thread id in a thread control register.
    #[must_use]
    pub fn thread(self, index: isize) -> ThreadId {
        ThreadId(self.word(index))
    }

    /// Preempt and coprocessor flags.
    #[must_use]
    pub fn flags(self) -> u64 {
        self.word(utcb::FLAGS)
    }

    /// Sets preempt and coprocessor flags.
    pub fn set_flags(self, value: u64) {
        self.set_word(utcb::FLAGS, value);
    }

    /// Copies message registers 1 to `count` from `source`. Those that are registers of the
    /// processor go together, as they do on the fast path.
    #[inline(always)]
    pub fn copy_mrs(self, source: Utcb, count: usize) {
        if count > IN_REGISTERS {
            return self.copy_many(source, count);
        }
        if count > 0 {
            (1..=FEW).for_each(|index| self.set_mr(index, source.mr(index)));
        }
        if count > FEW {
            (FEW + 1..=IN_REGISTERS).for_each(|index| self.set_mr(index, source.mr(index)));
        }
    }

    #[inline(never)]
    fn copy_many(self, source: Utcb, count: usize) {
        // SAFETY: both blocks hold 64 message registers from U on; the blocks are
        // the same or disjoint.
        unsafe { core::ptr::copy(source.0.add(1), self.0.add(1), count.min(63)) };
    }
}

/// The word of a space that says in user mode which of its armed threads runs (Wenske 2002,
/// 5.3: CurrentUTCB). It lies in a page of the UTCB area, which lives as long as the space.
#[derive(Default)]
pub struct CurrentWord {
    /// In the kernel's map of physical memory; 0: there is none yet.
    kernel: Cell<u64>,
    user: Cell<u64>,
}

impl CurrentWord {
    /// Where the kernel's address is, for assembly.
    pub const KERNEL: usize = offset_of!(Self, kernel);
    /// Where the user's is.
    pub const USER: usize = offset_of!(Self, user);

    /// Puts it into the UTCB with the local id `local` that is at `kernel` in the kernel's map of physical memory, if
    /// there is one and it is nowhere yet.
    pub fn place(&self, local: u64, kernel: u64) {
        let offset = utcb::LIPC_CURRENT as i64 * 8;
        if self.kernel.get() == 0 && kernel != 0 {
            self.kernel.set(kernel.wrapping_add_signed(offset));
            self.user.set(local.wrapping_add_signed(offset));
        }
    }

    /// Its address in the space, and in the kernel's map of physical memory.
    #[must_use]
    pub fn places(&self) -> (u64, u64) {
        (self.user.get(), self.kernel.get())
    }

    /// What it says, or what the program has written there.
    #[must_use]
    pub fn read(&self) -> ThreadId {
        let word = self.kernel.get() as *const u64;
        // SAFETY: not null, it lies in a UTCB page of the space, which lives as long as this.
        ThreadId(if word.is_null() { 0 } else { unsafe { word.read_volatile() } })
    }

    /// Says that the thread with the local id `local` runs.
    pub fn write(&self, local: ThreadId) {
        let word = self.kernel.get() as *mut u64;
        if !word.is_null() {
            // SAFETY: as in `read`.
            unsafe { word.write_volatile(local.0) };
        }
    }
}

/// Copies `len` bytes, or as many as there are on both sides; how many. Both go on behind them.
#[inline(always)]
pub fn copy(target: &mut Span, source: &mut Span, len: u64) -> u64 {
    let count = len.min(target.left()).min(source.left());
    let len = count as usize;
    let (to, from) = (target.phys(), source.phys());
    // SAFETY: a span is ordinary memory in the physical map, of a user who may access it, and
    // `len` bytes are in both. Overlap is possible when a user sends a string to itself, hence
    // `copy` semantics are kept word by word.
    unsafe {
        if techniques::SINGLE_COPY {
            crate::arch::copy_bytes(phys_to_virt(to), phys_to_virt(from), len);
        } else {
            let buffer = COPY_BUFFER.0.get().cast();
            crate::arch::copy_bytes(buffer, phys_to_virt(from), len.min(COPY_BYTES));
            crate::arch::copy_bytes(phys_to_virt(to), buffer, len.min(COPY_BYTES));
        }
        target.advance(count);
        source.advance(count);
    }
    count
}

/// Longest copy, bytes: nobody copies more than a page at once.
const COPY_BYTES: usize = 4096;

/// The buffer of the twofold copy, when the single copy is switched off.
struct CopyBuffer(UnsafeCell<[u8; if techniques::SINGLE_COPY { 0 } else { COPY_BYTES }]>);
// SAFETY: one processor, interrupts off, and no copy is interrupted by another.
unsafe impl Sync for CopyBuffer {}
static COPY_BUFFER: CopyBuffer =
    CopyBuffer(UnsafeCell::new([0; if techniques::SINGLE_COPY { 0 } else { COPY_BYTES }]));

/// Copies `from` to the memory of `space` at `address`; `None` if a page of it is not
/// there or not writable.
pub fn copy_from_cells(space: SpaceRef, address: u64, from: &[Cell<u8>]) -> Option<()> {
    each_piece(space, address, from, Access::Write, |memory, cells, len| {
        // SAFETY: a resolved user page is ordinary memory in the physical map, and the piece
        // stays inside it; cells are the kernel's own and never in a user page.
        unsafe { crate::arch::copy_bytes(memory, cells, len) };
    })
}

/// Copies from the memory of `space` at `address` to `to`; `None` if a page is not there.
pub fn copy_to_cells(space: SpaceRef, address: u64, to: &[Cell<u8>]) -> Option<()> {
    each_piece(space, address, to, Access::Read, |memory, cells, len| {
        // SAFETY: as above; cells may be written through a shared reference.
        unsafe { crate::arch::copy_bytes(cells, memory, len) };
    })
}

/// Calls `each(memory, cells, bytes)` for the pieces that are in one page.
fn each_piece(
    space: SpaceRef,
    address: u64,
    cells: &[Cell<u8>],
    access: Access,
    each: impl Fn(*mut u8, *mut u8, usize),
) -> Option<()> {
    let mut done = 0;
    while done < cells.len() {
        let at = address.checked_add(done as u64)?;
        let page = space.resolve(at, access).filter(|page| !page.is_device)?;
        let piece = (page.bytes_left_in_page as usize).min(cells.len() - done);
        each(phys_to_virt(page.phys), cells[done..].as_ptr().cast_mut().cast(), piece);
        done += piece;
    }
    Some(())
}

/// Reads the first bytes of a span into `to`; how many.
pub fn read(mut span: Span, to: &mut [u8]) -> usize {
    let mut done = 0;
    for (to, byte) in to.iter_mut().zip(core::iter::from_fn(|| read_byte(&mut span))) {
        *to = byte;
        done += 1;
    }
    done
}

/// Reads the first byte of a span and goes on behind it.
#[inline(always)]
pub fn read_byte(span: &mut Span) -> Option<u8> {
    if span.left() == 0 {
        return None;
    }
    // SAFETY: a span is ordinary memory in the physical map, and there is a byte left of it.
    unsafe {
        let byte = phys_to_virt(span.phys()).read_volatile();
        span.advance(1);
        Some(byte)
    }
}
