//! Threads' control blocks. The array that shows them (Liedtke 1993, 5.2.5) is not there yet:
//! no thread can be made, and none is found. A block looks as it does elsewhere: the tcb at
//! its end, the register frame and the kernel stack below it.

use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;

use abi::ThreadId;
use abi::id::THREAD_BITS;

use super::frame::{FRAME_SIZE, Frame, TrapFrame};
use super::percpu::cpu;
use crate::mem::{MarkerRef, PhysFrame};
use crate::thread::tcb::{BLOCK_SIZE, TCB_SIZE, Tcb, USES_VECTOR, Vectors};

/// Bytes of kernel stack that a thread has below its register frame.
pub const STACK_BYTES: usize = BLOCK_SIZE / 2 - TCB_SIZE - FRAME_SIZE;
/// Bytes of a vector state: RV64IMAC has none.
pub const VECTOR_BYTES: usize = 0;

/// A pointer to a tcb of an allocated block.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct TcbRef(NonNull<Tcb>);

impl Deref for TcbRef {
    type Target = Tcb;
    fn deref(&self) -> &Tcb {
        // SAFETY: nothing makes a `TcbRef` but `install`, of an allocated block; fields are
        // cells, so shared references never conflict.
        unsafe { self.0.as_ref() }
    }
}

impl TcbRef {
    /// The register frame's place on the kernel stack.
    #[must_use]
    pub fn frame(self) -> Frame {
        // SAFETY: the frame lies inside the block, below the tcb, aligned.
        unsafe { &*self.0.as_ptr().cast::<u8>().sub(FRAME_SIZE).cast::<TrapFrame>() }
    }

    /// Its marker for memory operations, of which a thread is in one at a time.
    #[must_use]
    pub fn marker(self) -> MarkerRef {
        // SAFETY: the tcb stays until the thread is deleted, which abandons its job first.
        unsafe { MarkerRef::at(&self.marker) }
    }

    /// Nobody has run on a kernel stack.
    #[must_use]
    pub fn has_used_spare_stack(self) -> bool {
        false
    }
}

/// There is no array for a block yet.
#[must_use]
pub fn install(_id: ThreadId, _vector: PhysFrame, _top: PhysFrame) -> Option<TcbRef> {
    None
}

/// No block has frames.
#[must_use]
pub fn remove(_number: u32) -> [Option<PhysFrame>; 2] {
    [None, None]
}

/// The addresses of the frames of `thread`; for checks.
#[must_use]
pub fn frames_of(_thread: TcbRef) -> [u64; 2] {
    [0, 0]
}

/// Nobody is found.
#[must_use]
pub fn lookup(_id: ThreadId) -> Option<TcbRef> {
    None
}

/// Nobody is found.
#[must_use]
pub fn lookup_number(_number: u32) -> Option<TcbRef> {
    None
}

/// Numbers whose blocks the array shows or does not show together: all of them.
pub const STRETCH: u32 = 1 << THREAD_BITS;

/// Nobody is found.
#[must_use]
pub fn has_stretch(_number: u32) -> bool {
    false
}

/// No number has been used.
#[must_use]
pub fn last_version(_number: u32) -> u32 {
    0
}

/// There is no memory for versions yet.
#[must_use]
pub fn set_last_version(_number: u32, _version: u32) -> Option<()> {
    None
}

/// No vector state.
#[must_use]
pub fn vector_state(_thread: TcbRef) -> (&'static [Cell<u8>], usize) {
    (&[], 0)
}

/// No vector state.
pub fn clear_vector(_thread: TcbRef) {}

/// No vector state.
pub fn sanitise_vector(_thread: TcbRef) {}

/// No vector state.
#[must_use]
pub fn keeps_vector(_thread: TcbRef) -> bool {
    false
}

/// No vector state.
pub fn abandon_vector(_thread: TcbRef) {}

/// No vector state: only the word is kept.
pub fn declare_vector(thread: TcbRef, vectors: Vectors) {
    thread.set_special(USES_VECTOR, vectors == Vectors::Used);
}

/// What linkage words count from (`thread::linkage`).
pub const LINKAGE_BASE: u64 = 0;

/// There is no fast path.
#[must_use]
pub fn is_fast_path_closed() -> bool {
    true
}

/// There is no fast path.
pub fn close_fast_path() {}

/// There is no fast path for threads with vector state.
#[must_use]
pub fn has_vector_gate() -> bool {
    false
}

/// There is no fast path that a thread could be too special for.
pub fn update_special(_thread: TcbRef) {}

/// No vector state.
pub fn pass_vector(_from: TcbRef, _to: TcbRef) {}

/// The thread that runs on this processor.
///
/// # Panics
/// If [`set_current`] has not been called: boot makes the idle thread current first.
#[must_use]
pub fn current() -> TcbRef {
    let Some(thread) = NonNull::new(cpu().current.get() as *mut Tcb) else {
        panic!("nobody runs yet: boot has to make the idle thread current first");
    };
    TcbRef(thread)
}

/// Makes `thread` current.
pub fn set_current(thread: TcbRef) {
    cpu().current.set(thread.0.as_ptr() as u64);
}
