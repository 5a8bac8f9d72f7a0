//! Where things are in an ordinary task's address space. The pager's policy
//! (`lib/paging`) uses the same constants, from `proto::layout`.

use core::sync::atomic::{AtomicU64, Ordering};

pub use proto::layout::*;

use crate::random;

static STACKS_AT: AtomicU64 = AtomicU64::new(STACKS);

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    static __text_end: u8;
}

/// Learns where the stacks are, from an address in the main thread's; at the start.
pub(crate) fn learn(address: u64) {
    STACKS_AT.store(stacks_of(address), Ordering::Relaxed);
}

/// Where this task's stacks begin: the root task has chosen.
#[must_use]
pub fn stacks() -> u64 {
    STACKS_AT.load(Ordering::Relaxed)
}

/// Top of the stack of this task's thread number `index`.
#[must_use]
pub fn stack_top(index: u64) -> u64 {
    proto::layout::stack_top(stacks(), index)
}

/// A random word, unless this task's stacks are where they are if nothing is to be random: then 0.
#[must_use]
pub(crate) fn chance() -> u64 {
    if stacks() == STACKS { 0 } else { random::word() }
}

/// The program's own image: first byte and one past the last.
#[must_use]
pub fn image() -> (u64, u64) {
    (&raw const __image_start as u64, &raw const __image_end as u64)
}

/// Reads a byte of every page of the image, so that the calling task has no faults there later.
pub fn touch_image() {
    let (begin, end) = image();
    for page in (begin..end).step_by(4096) {
        // SAFETY: the program's own image, which nobody takes away.
        unsafe { (page as *const u8).read_volatile() };
    }
}

/// One past the last byte of the read-only part of the image.
#[must_use]
pub fn text_end() -> u64 {
    &raw const __text_end as u64
}
