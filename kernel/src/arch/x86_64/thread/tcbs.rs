//! The virtual array of thread control blocks (Liedtke 1993, 5.2.5).
//!
//! 2^17 blocks of 8 KiB in the top 2 GiB of the address space, so that a thread
//! number, shifted and masked, addresses a tcb by a displacement. All leaf tables
//! exist from boot; the upper page of a block that is not allocated is a shared
//! read-only null page, in which every id is 0: looking up a thread needs no bounds
//! check and no presence check.
//!
//! The lower page of every block is never there: a kernel stack that grows too long
//! ends in a double fault with a sentence (`trap`) instead of in somebody's memory.
//! Its leaf entry, which the processor does not look at beyond the present bit, keeps
//! the last version of the thread number ([`last_version`]). The saved vector state has
//! a frame of its own, reached through the map of physical memory.

use core::ops::Deref;
use core::ptr::NonNull;

use abi::ThreadId;
use abi::id::{THREAD_BITS, USER_BASE};

use crate::arch::x86_64::features::XSAVE_LIMIT;
use crate::arch::x86_64::frame::{FRAME_SIZE, Frame, TrapFrame};
use crate::arch::x86_64::{asm, kernel_tables};
use crate::arch::{phys_to_virt, virt_to_phys};
use crate::mem::MarkerRef;
use crate::mem::frames::{self, PhysFrame};
use crate::thread::tcb::{BLOCK_BITS, BLOCK_SIZE, TCB_SIZE, Tcb};

/// First byte of the array.
pub const TCB_ARRAY: u64 = 0xFFFF_FFFF_A000_0000;
/// Address of the tcb of thread number 0.
pub const TCB_FIRST: u64 = TCB_ARRAY + (BLOCK_SIZE - TCB_SIZE) as u64;
/// Mask of a thread number shifted to its block's offset.
pub const TCB_MASK: u64 = ((1 << THREAD_BITS) - 1) << BLOCK_BITS;
/// What the linkage words of a tcb count from (`thread::linkage`): a page of zeros that is always there,
/// that of a thread number which nobody ever has. So the words of a thread without linkage are 0.
pub const LINKAGE_BASE: u64 = TCB_ARRAY + (USER_BASE as u64 - 1) * BLOCK_SIZE as u64 + 4096;
/// Bytes that a thread has for its vector state: a frame.
pub const VECTOR_AREA: usize = 4096;
const _: () = assert!(XSAVE_LIMIT as usize <= VECTOR_AREA);
/// Bytes of kernel stack that a thread has below its register frame.
pub const STACK_BYTES: usize = BLOCK_SIZE / 2 - TCB_SIZE - FRAME_SIZE;

/// Bytes of kernel stack that no path has ever come near to.
const STACK_SPARE: usize = 512;

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

    /// The area for saved vector state: a frame of the thread's, [`VECTOR_AREA`] bytes.
    #[must_use]
    pub fn vector_area(self) -> *mut u8 {
        self.vector_area.get() as *mut u8
    }

    /// Its marker for memory operations, of which a thread is in one at a time.
    #[must_use]
    pub fn marker(self) -> MarkerRef {
        // SAFETY: the tcb stays until the thread is deleted, which abandons its job first.
        unsafe { MarkerRef::at(&self.marker) }
    }

    /// Whether the thread has written to the last [`STACK_SPARE`] bytes of its kernel stack.
    #[must_use]
    pub fn has_used_spare_stack(self) -> bool {
        let bottom = (self.address() & !4095) as *const u64;
        // SAFETY: the page is the upper one of an allocated block; a stack that is in use
        // is read, too, but nobody writes to it meanwhile.
        let word = |index: usize| unsafe { bottom.add(index).read_volatile() };
        (0..STACK_SPARE / 8).any(|index| word(index) != 0)
    }

    /// Zeroes the bytes that tell [`Self::has_used_spare_stack`]; the stack is not in use.
    fn mark_stack(self) {
        let bottom = (self.address() & !4095) as *mut [u64; STACK_SPARE / 8];
        // SAFETY: the page is the upper one of an allocated block, of a thread that has not run.
        unsafe { bottom.write([0; STACK_SPARE / 8]) };
    }
}

/// Whether `address` lies in the page below the kernel stack of `thread`.
#[must_use]
pub fn is_below_stack(thread: TcbRef, address: u64) -> bool {
    address >> 12 == (thread.address() >> 12) - 1
}

/// The tcb address of thread `number`, by the fast path's own arithmetic.
const fn address_of(number: u32) -> u64 {
    TCB_FIRST + (((number as u64) << BLOCK_BITS) & TCB_MASK)
}

/// The thread with the current id `id`, if there is one.
#[must_use]
#[inline(always)]
pub fn lookup(id: ThreadId) -> Option<TcbRef> {
    let address = address_of(id.number());
    // SAFETY: every address of the array is mapped, to a tcb or to the null page.
    let found = unsafe { (*(address as *const Tcb)).id.get() };
    // Whatever is no global id is no thread's: creation lets only such through.
    // SAFETY: only an allocated block holds a non-zero id.
    (found == id && !id.is_nil()).then(|| unsafe { TcbRef::from_address(address) })
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

/// Numbers whose blocks lie in one stretch of the array (`kernel_tables`).
pub const STRETCH: u32 = 1 << (21 - BLOCK_BITS);

/// Whether any number of the stretch that `number` is in may be somebody's.
#[must_use]
pub fn has_stretch(number: u32) -> bool {
    kernel_tables::has_leaf(block(number))
}

/// Address of the lower page of block `number`.
const fn block(number: u32) -> u64 {
    TCB_ARRAY + (((number as u64) << BLOCK_BITS) & TCB_MASK)
}

/// Address of the upper page of block `number`, tcb and stack.
#[must_use]
pub const fn page(number: u32) -> u64 {
    block(number) + 4096
}

/// The leaf entry that maps the upper page of block `number`.
fn entry(number: u32) -> Option<*mut u64> {
    kernel_tables::leaf_entry(block(number) + 4096, new_table)
}

/// A frame for one of the array's own tables, for good.
fn new_table() -> Option<u64> {
    frames::take_for_kernel().map(PhysFrame::address)
}

/// Address bits beyond all memory, set in entries that are not present: a processor that
/// goes on with such an entry in speculation (L1 terminal fault) finds nothing there.
const NOWHERE: u64 = 0xFFFF << 36;
/// Where a version lies in the entry of a lower page.
const VERSION_SHIFT: u32 = 1;

/// The version that [`set_last_version`] left for thread number `number`; 0 without.
/// It survives the thread.
#[must_use]
pub fn last_version(number: u32) -> u32 {
    version_in(kernel_tables::read_leaf(block(number)))
}

/// The version in the entry of a lower page.
const fn version_in(entry: u64) -> u32 {
    (entry >> VERSION_SHIFT) as u32
}

/// The entry of a lower page that keeps `version`.
const fn lower_entry(version: u32) -> u64 {
    NOWHERE | (version as u64) << VERSION_SHIFT
}

/// Keeps `version` for thread number `number`; `None` if there is no frame for the array's
/// own tables. There always is while the thread exists.
#[must_use]
pub fn set_last_version(number: u32, version: u32) -> Option<()> {
    let slot = kernel_tables::leaf_entry(block(number), new_table)?;
    // SAFETY: the slot is the leaf entry of a lower page, and stays non-present.
    unsafe { slot.write(lower_entry(version)) };
    Some(())
}

const ADDRESS: u64 = 0x000F_FFFF_FFFF_F000;
const PRESENT_WRITE_GLOBAL_NX: u64 = 1 << 63 | 1 << 8 | 1 << 6 | 1 << 5 | 3;

/// Backs the block of the new thread `id`, which is free, with the frame `top` and returns
/// its tcb, whose id is still 0; `vector` is for its vector state. Both have arbitrary
/// content: the tcb is written as a whole, the register frame when there is something in it
/// to return through, the stack before it is read, the vector state as `vector::prepare`
/// says. The last version of the number is at least the id's. `None` if there is no frame
/// for the array's own tables.
#[must_use]
pub fn install(id: ThreadId, vector: PhysFrame, top: PhysFrame) -> Option<TcbRef> {
    let number = id.number();
    let slot = entry(number)?;
    // SAFETY: the slot is a leaf entry of the array, of a block that is free; the entry of the
    // block's lower page is the one before it.
    unsafe {
        slot.write(top.address() | PRESENT_WRITE_GLOBAL_NX);
        let lower = slot.sub(1);
        if id.version() > version_in(lower.read()) {
            lower.write(lower_entry(id.version()));
        }
    }
    asm::invlpg(block(number) + 4096);
    let tcb = address_of(number) as *mut Tcb;
    // SAFETY: the block was just mapped and is nobody else's.
    let thread = unsafe {
        tcb.write(Tcb::default());
        TcbRef::from_address(address_of(number))
    };
    thread.mark_stack();
    thread.vector_area.set(phys_to_virt(vector.address()) as u64);
    super::vector::prepare(thread);
    Some(thread)
}

/// Maps the null page over the upper page of block `number`, which is allocated, and
/// returns the thread's two frames. The caller has removed the thread from every queue
/// (5.3.2).
pub fn remove(number: u32) -> [Option<PhysFrame>; 2] {
    let Some(slot) = entry(number) else { return [None, None] };
    // SAFETY: the block is allocated.
    let thread = unsafe { TcbRef::from_address(address_of(number)) };
    let vector = PhysFrame::at(virt_to_phys(thread.vector_area()));
    // SAFETY: the block is allocated, so the entry holds its frame; the null page is
    // mapped read-only.
    let top = PhysFrame::at(unsafe { slot.read() } & ADDRESS);
    // SAFETY: as above.
    unsafe { slot.write(kernel_tables::null_entry()) };
    asm::invlpg(block(number) + 4096);
    [Some(vector), Some(top)]
}

/// The addresses of the two frames of `thread`; for checks.
#[must_use]
pub fn frames_of(thread: TcbRef) -> [u64; 2] {
    let top = kernel_tables::read_leaf(block(thread.id.get().number()) + 4096);
    [virt_to_phys(thread.vector_area()), top & ADDRESS]
}
