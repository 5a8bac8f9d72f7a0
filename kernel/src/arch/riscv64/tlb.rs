//! Forgetting cached translations. One processor, and no tags: a space that is not loaded has
//! none. Called after the tables were changed.

use super::root::RootWord;
use crate::arch::{cpu, hardware};
use crate::elsewhere;
use crate::mem::SpaceRef;

/// Whether the processor is using the tables of `space` now.
#[inline]
#[must_use]
pub fn is_current(space: SpaceRef) -> bool {
    let word: RootWord = space.root().word();
    hardware::loaded() == word.value()
}

/// An entry of the tables of `space` is about to be taken, changed or freed: no other processor
/// uses them until this one leaves the kernel (`elsewhere`).
#[inline]
pub fn quiet(space: SpaceRef) {
    if !cpu().guests.is_empty() {
        elsewhere::quiet(space);
    }
}

/// The root of `space` is about to be another than that with which others have come to their processors:
/// nobody of it is there.
pub fn vacate(space: SpaceRef) {
    if !cpu().guests.is_empty() {
        elsewhere::vacate(space);
    }
}

/// Forgets the translation of `vaddr` in `space`.
#[inline]
pub fn invalidate(space: SpaceRef, vaddr: u64) {
    if is_current(space) {
        hardware::forget(vaddr);
    }
}

/// Forgets every translation of `space`.
pub fn flush_space(space: SpaceRef) {
    if is_current(space) {
        hardware::reload();
    }
}
