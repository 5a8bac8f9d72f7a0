//! The heap: one range of addresses, filled by the pager on demand. A task that must not
//! depend on what others leave in the pager's pool moves it into memory of its own
//! ([`move_to`]), and has a reserve there: pieces that are given back lie between others that
//! are not, so there can be much memory and no place for a buffer of a call.
//!
//! Before [`init`] (and in the initial servers, which have none) every
//! allocation fails.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};

use talc::{OomHandler, Span, Talc};

use crate::sync::Lock;

/// The part of the whole that the reserve is, if there is a place for it, and what it is otherwise.
const RESERVES: [usize; 3] = [64, 256, 1024];

/// A piece that is taken, so that nobody gets it but who would otherwise get nothing.
struct Reserve {
    /// Bytes of which it is a part; 0 for who has none.
    of: usize,
    piece: Option<(NonNull<u8>, Layout)>,
}

// SAFETY: the piece is the allocator's, of which the reserve is a part.
unsafe impl Send for Reserve {}

impl OomHandler for Reserve {
    fn handle_oom(talc: &mut Talc<Self>, _: Layout) -> Result<(), ()> {
        let (at, layout) = talc.oom_handler.piece.take().ok_or(())?;
        // SAFETY: `keep` has it from this allocator with this layout, and it is used by nobody.
        unsafe { talc.free(at, layout) };
        Ok(())
    }
}

/// Sees to it that there is a reserve, as large as there is a place for.
fn keep(talc: &mut Talc<Reserve>) {
    let of = talc.oom_handler.of;
    let whole = of / RESERVES[0];
    if of == 0 || talc.oom_handler.piece.is_some_and(|(_, layout)| layout.size() == whole) {
        return;
    }
    let _ = Reserve::handle_oom(talc, Layout::new::<u8>());
    let layouts = RESERVES.map(|part| Layout::from_size_align(of / part, 16));
    for layout in layouts.into_iter().flatten() {
        // SAFETY: its size is not zero.
        if let Ok(at) = unsafe { talc.malloc(layout) } {
            talc.oom_handler.piece = Some((at, layout));
            return;
        }
    }
}

/// The allocator, what it was given first, and how much of it is in use.
struct State {
    talc: Talc<Reserve>,
    first: Span,
    /// Bytes that it can give.
    total: usize,
    /// Bytes that it has given, with what they cost it.
    used: usize,
}

struct Heap(Lock<State>);

#[cfg_attr(target_os = "none", global_allocator)]
static HEAP: Heap = Heap(Lock::new(State {
    talc: Talc::new(Reserve { of: 0, piece: None }),
    first: Span::empty(),
    total: 0,
    used: 0,
}));

/// What an allocation takes: a tag, and pieces of four words at least.
const fn taken(layout: Layout) -> usize {
    (layout.size() + layout.align() + 23) & !15
}

/// Gives the allocator the addresses from `base`; once per task, at its start.
pub(crate) fn init(base: u64, bytes: u64) {
    // SAFETY: `start_task` passes the heap region of `proto::layout`, which the
    // pager backs and nothing else uses (`Window::claim` refuses it).
    unsafe { give(Span::from_base_size(base as *mut u8, bytes as usize)) };
}

/// Gives the allocator these addresses.
///
/// # Safety
/// They are memory that nothing else uses from now on.
unsafe fn give(span: Span) {
    let mut heap = HEAP.0.lock();
    // SAFETY: the caller's promise.
    if let Ok(span) = unsafe { heap.talc.claim(span) } {
        heap.first = span;
        heap.total = span.size();
    }
}

/// The heap grows no more where the pager fills it: what is allocated from now on lies
/// between `base` and `base + bytes`.
///
/// # Safety
/// That is memory of this task's own, mapped for good, which nothing else uses.
pub unsafe fn move_to(base: u64, bytes: u64) {
    let mut heap = HEAP.0.lock();
    let old = heap.first;
    // SAFETY: `first` is what `claim` returned, and the lock is held in between.
    unsafe {
        let needed = heap.talc.get_allocated_span(old);
        heap.talc.truncate(old, needed);
    }
    drop(heap);
    let used = HEAP.0.lock().used;
    // SAFETY: the caller's promise.
    unsafe { give(Span::from_base_size(base as *mut u8, bytes as usize)) };
    let mut heap = HEAP.0.lock();
    heap.total += used;
    heap.talc.oom_handler.of = bytes as usize;
    keep(&mut heap.talc);
}

/// How many bytes there are for allocations in all, and how many are left: none without a
/// reserve, for then the next call's buffer would have no place.
#[must_use]
pub fn gauge() -> (u64, u64) {
    let mut heap = HEAP.0.lock();
    keep(&mut heap.talc);
    let Reserve { of, piece } = heap.talc.oom_handler;
    let is_whole = of == 0 || piece.is_some();
    let left = if is_whole { heap.total.saturating_sub(heap.used) } else { 0 };
    (heap.total as u64, left as u64)
}

// SAFETY: talc upholds the allocator's contract; the lock makes it exclusive.
unsafe impl GlobalAlloc for Heap {
    // Copies of both in all who allocate made the Unix server's text larger by a seventh, and its
    // answer to `getppid` longer by three instructions.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut heap = self.0.lock();
        // SAFETY: GlobalAlloc's caller passes a layout of non-zero size.
        match unsafe { heap.talc.malloc(layout) } {
            Ok(at) => {
                heap.used += taken(layout);
                at.as_ptr()
            }
            Err(()) => null_mut(),
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if let Some(ptr) = NonNull::new(ptr) {
            let mut heap = self.0.lock();
            heap.used -= taken(layout);
            // SAFETY: GlobalAlloc's caller passes what `alloc` returned, with its layout.
            unsafe { heap.talc.free(ptr, layout) };
        }
    }
}
