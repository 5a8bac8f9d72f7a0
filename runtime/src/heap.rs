//! The heap: one range of addresses, filled by the pager on demand.
//!
//! Before [`init`] (and in the initial servers, which have none) every
//! allocation fails.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};

use talc::{ErrOnOom, Span, Talc};

use crate::sync::Lock;

struct Heap(Lock<Talc<ErrOnOom>>);

#[cfg_attr(target_os = "none", global_allocator)]
static HEAP: Heap = Heap(Lock::new(Talc::new(ErrOnOom)));

/// Gives the allocator the addresses from `base`; once per task, at its start.
pub(crate) fn init(base: u64, bytes: u64) {
    // SAFETY: `start_task` passes the heap region of `proto::layout`, which the
    // pager backs and nothing else uses (`Window::claim` refuses it).
    let _ = unsafe { HEAP.0.lock().claim(Span::from_base_size(base as *mut u8, bytes as usize)) };
}

// SAFETY: talc upholds the allocator's contract; the lock makes it exclusive.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: GlobalAlloc's caller passes a layout of non-zero size.
        unsafe { self.0.lock().malloc(layout) }.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if let Some(ptr) = NonNull::new(ptr) {
            // SAFETY: GlobalAlloc's caller passes what `alloc` returned, with its layout.
            unsafe { self.0.lock().free(ptr, layout) };
        }
    }
}
