//! Threads on the host: each test thread is a machine.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::mem::zeroed;
use std::ops::Deref;
use std::ptr::NonNull;

use abi::ThreadId;

use super::super::processor::frame::{Frame, TrapFrame};
use crate::mem::{MarkerRef, PhysFrame};
use crate::thread::tcb::{Tcb, USES_VECTOR, Vectors};

/// What stands for a block of the tcb array.
struct Block {
    tcb: Tcb,
    frame: TrapFrame,
    frames: [PhysFrame; 2],
}

/// A pointer to a tcb; blocks live as long as the process.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct TcbRef(NonNull<Block>);

impl Deref for TcbRef {
    type Target = Tcb;
    fn deref(&self) -> &Tcb {
        // SAFETY: blocks are leaked boxes; fields are cells, used by one thread.
        unsafe { &self.0.as_ref().tcb }
    }
}

impl TcbRef {
    /// The register frame.
    #[must_use]
    pub fn frame(self) -> Frame {
        // SAFETY: as in `deref`.
        unsafe { &(*self.0.as_ptr()).frame }
    }

    /// The address of its block.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// The thread at an address that [`Self::address`] has said.
    ///
    /// # Safety
    /// It is one.
    #[must_use]
    pub unsafe fn from_address(address: u64) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { NonNull::new_unchecked(address as *mut Block) })
    }

    /// Its marker for memory operations, of which a thread is in one at a time.
    #[must_use]
    pub fn marker(self) -> MarkerRef {
        // SAFETY: the tcb stays until the thread is deleted, which abandons its job first.
        unsafe { MarkerRef::at(&self.marker) }
    }

    /// Kernel code runs on the test's own stack.
    #[must_use]
    pub fn has_used_spare_stack(self) -> bool {
        false
    }
}

/// A block that is no thread's.
#[must_use]
pub fn spare_block() -> TcbRef {
    // SAFETY: a register frame is plain words.
    let frame: TrapFrame = unsafe { zeroed() };
    frame.reset();
    let frames = [PhysFrame::at(0); 2];
    TcbRef(NonNull::from(Box::leak(Box::new(Block { tcb: Tcb::default(), frame, frames }))))
}

/// Bytes of a kernel stack.
pub const STACK_BYTES: usize = 2048;

thread_local! {
    static CURRENT: Cell<Option<TcbRef>> = const { Cell::new(None) };
    static VERSIONS: RefCell<BTreeMap<u32, u32>> = const { RefCell::new(BTreeMap::new()) };
    static BLOCKS: RefCell<BTreeMap<u32, TcbRef>> = const { RefCell::new(BTreeMap::new()) };
}

/// The current thread, which a test has set.
///
/// # Panics
/// If no test has.
#[must_use]
pub fn current() -> TcbRef {
    CURRENT.with(Cell::get).expect("a test sets the current thread first")
}

/// Makes `thread` current.
pub fn set_current(thread: TcbRef) {
    CURRENT.with(|current| current.set(Some(thread)));
}

/// The version that [`set_last_version`] left for thread number `number`; 0 without.
#[must_use]
pub fn last_version(number: u32) -> u32 {
    VERSIONS.with(|versions| versions.borrow().get(&number).copied().unwrap_or(0))
}

/// Keeps `version` for thread number `number`.
#[must_use]
pub fn set_last_version(number: u32, version: u32) -> Option<()> {
    VERSIONS.with(|versions| versions.borrow_mut().insert(number, version));
    Some(())
}

/// Makes the block of thread `id`.
#[must_use]
pub fn install(id: ThreadId, vector: PhysFrame, top: PhysFrame) -> Option<TcbRef> {
    let number = id.number();
    if id.version() > last_version(number) {
        set_last_version(number, id.version())?;
    }
    // SAFETY: a register frame is plain words.
    let frame: TrapFrame = unsafe { zeroed() };
    frame.reset();
    let block = Box::leak(Box::new(Block { tcb: Tcb::default(), frame, frames: [vector, top] }));
    let thread = TcbRef(NonNull::from(block));
    BLOCKS.with(|blocks| blocks.borrow_mut().insert(number, thread));
    Some(thread)
}

/// Forgets block `number` and returns its frames.
#[must_use]
pub fn remove(number: u32) -> [Option<PhysFrame>; 2] {
    let block = BLOCKS.with(|blocks| blocks.borrow_mut().remove(&number));
    // SAFETY: as in `deref`.
    block.map_or([None, None], |thread| unsafe { thread.0.as_ref().frames }.map(Some))
}

/// The addresses of the two frames that stand for the block of `thread`.
#[must_use]
pub fn frames_of(thread: TcbRef) -> [u64; 2] {
    // SAFETY: as in `deref`.
    unsafe { thread.0.as_ref().frames }.map(PhysFrame::address)
}

/// The thread with the current id `id`.
#[must_use]
pub fn lookup(id: ThreadId) -> Option<TcbRef> {
    lookup_number(id.number()).filter(|thread| thread.id.get() == id)
}

/// The thread with this number.
#[must_use]
pub fn lookup_number(number: u32) -> Option<TcbRef> {
    BLOCKS.with(|blocks| blocks.borrow().get(&number).copied())
}

/// As on the machine.
pub const STRETCH: u32 = 256;

/// Whether any number of the stretch that `number` is in may be somebody's.
#[must_use]
pub fn has_stretch(number: u32) -> bool {
    let first = number / STRETCH * STRETCH;
    BLOCKS
        .with(|blocks| blocks.borrow().keys().any(|other| (first..first + STRETCH).contains(other)))
}

/// What linkage words count from (`thread::linkage`).
pub const LINKAGE_BASE: u64 = 0;

/// There is none.
#[must_use]
pub fn is_fast_path_closed() -> bool {
    false
}

/// The tests' fast path looks at `Cpu::look_first` itself.
pub fn close_fast_path() {}

/// Nothing is special on the host.
pub fn update_special(_thread: TcbRef) {}

/// Bytes of a vector state: there is none.
pub const VECTOR_BYTES: usize = 0;

/// No vector state.
#[must_use]
pub fn vector_state(_thread: TcbRef) -> (&'static [Cell<u8>], usize) {
    (&[], 0)
}

/// No vector state.
pub fn clear_vector(_thread: TcbRef) {}

/// No vector state.
pub fn sanitise_vector(_thread: TcbRef) {}

/// There are none.
pub fn keeps_vector(_thread: TcbRef) -> bool {
    false
}

/// There are none.
pub fn abandon_vector(_thread: TcbRef) {}

/// Only the word is kept.
pub fn declare_vector(thread: TcbRef, vectors: Vectors) {
    thread.set_special(USES_VECTOR, vectors == Vectors::Used);
}

/// As where there is a fast path for threads that use vector registers.
#[must_use]
pub fn has_vector_gate() -> bool {
    true
}

/// There are none.
pub fn pass_vector(_from: TcbRef, _to: TcbRef) {}
