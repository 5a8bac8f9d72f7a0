//! The virtual array of thread control blocks (Liedtke 1993, 5.2.5).
//!
//! 2^17 blocks of 8 KiB in the top 2 GiB of the address space, so that a thread
//! number, shifted and masked, addresses a tcb by a displacement. All leaf tables
//! exist from boot; a block that is not allocated maps a shared read-only null
//! page twice, in which every id is 0: looking up a thread needs no bounds check
//! and no presence check.

use core::ops::Deref;
use core::ptr::NonNull;

use abi::ThreadId;
use abi::id::THREAD_BITS;

use super::frame::{FRAME_SIZE, Frame, TrapFrame};
use crate::mem::frames::PhysFrame;
use crate::thread::tcb::{BLOCK_BITS, BLOCK_SIZE, TCB_SIZE, Tcb};

/// First byte of the array.
pub const TCB_ARRAY: u64 = 0xFFFF_FFFF_A000_0000;
/// Address of the tcb of thread number 0.
pub const TCB_FIRST: u64 = TCB_ARRAY + (BLOCK_SIZE - TCB_SIZE) as u64;
/// Mask of a thread number shifted to its block's offset.
pub const TCB_MASK: u64 = ((1 << THREAD_BITS) - 1) << BLOCK_BITS;
/// Bytes at the bottom of a block that hold the saved vector state.
pub const VECTOR_AREA: usize = 2688;

/// A pointer to a tcb in the array; copying it is free, dereferencing it is safe
/// as long as the block is allocated.
///
/// Invariant: a `TcbRef` is made only from the address of an allocated block, and
/// `thread::delete` removes every stored copy (queues, partners are ids) before
/// the block is released.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct TcbRef(NonNull<Tcb>);

impl Deref for TcbRef {
    type Target = Tcb;
    fn deref(&self) -> &Tcb {
        // SAFETY: see the invariant of the type; fields are cells, so shared
        // references never conflict.
        unsafe { self.0.as_ref() }
    }
}

impl TcbRef {
    /// The tcb at `address`.
    ///
    /// # Safety
    /// `address` is that of a tcb in an allocated block.
    #[must_use]
    pub unsafe fn from_address(address: u64) -> Self {
        // SAFETY: the array is not at address 0; the caller vouches for the rest.
        Self(unsafe { NonNull::new_unchecked(address as *mut Tcb) })
    }

    /// Address of the tcb: kernel stack top and, in the TSS, the current thread.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// The register frame's place on the kernel stack.
    #[must_use]
    pub fn frame(self) -> Frame {
        // SAFETY: the block is allocated, and the frame lies inside it, aligned.
        unsafe { &*((self.address() - FRAME_SIZE as u64) as *const TrapFrame) }
    }

    /// The area for saved vector state (64-byte aligned, [`VECTOR_AREA`] bytes).
    #[must_use]
    pub fn vector_area(self) -> *mut u8 {
        (self.address() & !(BLOCK_SIZE as u64 - 1)) as *mut u8
    }
}

/// The tcb address of thread `number`, by the fast path's own arithmetic.
const fn address_of(number: u32) -> u64 {
    TCB_FIRST + (((number as u64) << BLOCK_BITS) & TCB_MASK)
}

/// The thread with the current id `id`, if there is one.
#[must_use]
pub fn lookup(id: ThreadId) -> Option<TcbRef> {
    if !id.is_global() {
        return None;
    }
    let address = address_of(id.number());
    // SAFETY: every address of the array is mapped, to a tcb or to the null page.
    let found = unsafe { (*(address as *const Tcb)).id.get() };
    // SAFETY: only an allocated block holds a non-zero id.
    (found == id).then(|| unsafe { TcbRef::from_address(address) })
}

/// The thread with this number, whatever its version.
#[must_use]
pub fn lookup_number(number: u32) -> Option<TcbRef> {
    if number >> THREAD_BITS != 0 {
        return None;
    }
    // SAFETY: as in `lookup`.
    let tcb = unsafe { &*(address_of(number) as *const Tcb) };
    // SAFETY: as in `lookup`.
    (!tcb.id.get().is_nil()).then(|| unsafe { TcbRef::from_address(address_of(number)) })
}

/// The leaf entry that maps page `index` (0 or 1) of block `number`.
fn entry(number: u32, index: u64) -> Option<*mut u64> {
    let address = TCB_ARRAY + (u64::from(number) << BLOCK_BITS & TCB_MASK) + index * 4096;
    super::kernel_tables::leaf_entry(address)
}

const PRESENT_WRITE_GLOBAL_NX: u64 = 1 << 63 | 1 << 8 | 1 << 6 | 1 << 5 | 3;

/// Backs block `number`, which is free, with two zeroed frames and returns its
/// tcb, id still 0; `None` if there is no frame for the array's own tables.
#[must_use]
pub fn install(number: u32, stack: PhysFrame, top: PhysFrame) -> Option<TcbRef> {
    for (index, frame) in [(0, stack), (1, top)] {
        let slot = entry(number, index)?;
        // SAFETY: the slot is a leaf entry of the array, of a block that is free.
        unsafe { slot.write(frame.address() | PRESENT_WRITE_GLOBAL_NX) };
        super::asm::invlpg(TCB_ARRAY + (u64::from(number) << BLOCK_BITS) + index * 4096);
    }
    let tcb = address_of(number) as *mut Tcb;
    // SAFETY: the block was just mapped and is nobody else's.
    Some(unsafe {
        tcb.write(Tcb::default());
        TcbRef::from_address(address_of(number))
    })
}

/// Maps the null page over block `number` and returns its two frames.
/// The caller has removed the thread from every queue (5.3.2).
pub fn remove(number: u32) -> [Option<PhysFrame>; 2] {
    [0, 1].map(|index| {
        let slot = entry(number, index)?;
        // SAFETY: the block is allocated, so the entry holds one of its frames.
        let frame = PhysFrame::at(unsafe { slot.read() } & 0x000F_FFFF_FFFF_F000);
        // SAFETY: as above; the null page is mapped read-only.
        unsafe { slot.write(super::kernel_tables::null_entry()) };
        super::asm::invlpg(TCB_ARRAY + (u64::from(number) << BLOCK_BITS) + index * 4096);
        Some(frame)
    })
}

/// The addresses of the two frames behind the block of `thread`; for checks.
#[must_use]
pub fn frames_of(thread: TcbRef) -> [u64; 2] {
    let number = thread.id.get().number();
    [0, 1].map(|index| {
        // SAFETY: the slot is a leaf entry of the array.
        entry(number, index).map_or(0, |slot| unsafe { slot.read() } & 0x000F_FFFF_FFFF_F000)
    })
}

/// Whose vector state is in the registers; for checks.
#[must_use]
pub fn vector_owner() -> Option<TcbRef> {
    super::percpu::cpu().vector_owner.get()
}

/// Zeroes a frame that will back a block.
pub fn clear(frame: PhysFrame) {
    crate::mem::frames::zero(frame);
}
