//! The marks of dying of a run: pages of one size that a large page was split into.
//!
//! They have one node, and what was derived from any of them is below it. A walk looks at
//! all of that, so it takes as many pages as it can (`walk.rs`); page by page, whoever splits a
//! page of 2 MiB multiplied what it costs to take back what was derived from it by 512.

use super::LARGEST_LEVEL;
use super::space::SpaceRef;
use super::table::{self, Slot, twin_word};
use crate::arch::paging::{Entry, index, span};
use crate::arch::preemption::Pace;

/// Whether a walk over `size` bytes of a page, or of a run, marks those of `level` as dying. So its marks are all in one
/// table.
pub(super) fn is_marked_at(level: u32, size: u64) -> bool {
    span(level) <= size && size <= span(level + 1)
}

/// Takes the mark of dying pages from those in `pos..end`, which were a run or parts of one page.
pub(super) fn keep(space: SpaceRef, pos: u64, end: u64) {
    for level in (0..=LARGEST_LEVEL).rev().filter(|level| is_marked_at(*level, end - pos)) {
        let Some(table) = table::at_level(space, pos, level) else { return };
        let mut pace = Pace::default();
        let mut told = None;
        for at in index(pos, level)..=index(end - 1, level) {
            pace.round();
            let entry = table.get(at);
            if entry.is_leaf(level) && entry.has(Entry::DYING) && !entry.has(Entry::KERNEL) {
                table.clear_bits(at, Entry::DYING);
                // Those without a word of their own are one node's, which learns that they stay.
                let word = twin_word(table, at);
                let vaddr = pos + (at - index(pos, level)) as u64 * span(level);
                if told.replace(word) != Some(word)
                    && let Slot::Leaf(leaf) = table::find(space, vaddr)
                    && let Some(node) = leaf.node
                {
                    node.is_spared();
                }
            }
        }
    }
}
