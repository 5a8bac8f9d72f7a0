//! Forgetting cached translations. One processor, and no tags: a space that is not loaded has
//! none. Called after the tables were changed.

use super::root::RootWord;
use crate::arch::hardware;
use crate::mem::SpaceRef;

/// Whether the processor is using the tables of `space` now.
#[inline]
#[must_use]
pub fn is_current(space: SpaceRef) -> bool {
    let word: RootWord = space.root().word();
    hardware::loaded() == word.value()
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
