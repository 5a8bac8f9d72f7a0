//! Forgetting cached translations.
//!
//! Without PCIDs a space's translations die with the next load of CR3, so only
//! the current space needs work. With PCIDs they survive, and INVPCID reaches
//! those of other spaces. Called after the tables were changed, so that the
//! caches of table entries are covered too (SDM vol. 3, 4.10.4). One CPU.

use crate::arch::hardware;
use crate::arch::paging::Entry;
use crate::mem::SpaceRef;

/// Whether the processor is using the tables of `space` now.
#[inline]
#[must_use]
pub fn is_current(space: SpaceRef) -> bool {
    hardware::loaded() & Entry::ADDRESS == space.root().table().address()
}

/// Forgets the translation of `vaddr` in `space`.
#[inline]
pub fn invalidate(space: SpaceRef, vaddr: u64) {
    if is_current(space) {
        hardware::forget(vaddr);
    } else if space.root().pcid() != 0 {
        hardware::invpcid(0, space.root().pcid(), vaddr);
    }
}

/// Forgets every translation of `space`.
pub fn flush_space(space: SpaceRef) {
    if is_current(space) {
        hardware::reload();
    } else if space.root().pcid() != 0 {
        hardware::invpcid(1, space.root().pcid(), 0);
    }
}

/// Loads CR3 anew if the processor is using the tables of `space`, whose PCID changed.
pub fn reload_if_current(space: SpaceRef) {
    if is_current(space) {
        hardware::load(space.root().word().value());
    }
}

/// Forgets every translation under `pcid`, before another space gets it.
pub fn flush_pcid(pcid: u16) {
    hardware::invpcid(1, pcid, 0);
}
