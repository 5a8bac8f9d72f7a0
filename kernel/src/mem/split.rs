//! Runs of pages that a large page was split into.
//!
//! They have one node, and what was derived from any of them is below it. A walk looks at
//! all of that, so a revocation takes as many pages as it can with one walk (`revoke.rs`);
//! page by page, whoever splits a page of 2 MiB multiplied what it costs to take back what
//! was derived from it by 512.

use super::LARGEST_LEVEL;
use super::budget::Budget;
use super::space::SpaceRef;
use super::table::{self, ENTRIES, Leaf, Slot, twin_word};
use crate::arch::paging::{Entry, index, span};
use crate::arch::preemption::Pace;

/// Units of a step's budget for one entry: some 35 instructions.
const UNITS_PER_ENTRY: u32 = 2;

/// Where the last of those pages ends that follow `leaf`, which ends at `high`, in its table
/// and have the same node, as far as `budget` pays for looking and they end at `end` or before.
pub(super) fn run(leaf: Leaf, (high, end): (u64, u64), budget: &mut Budget) -> u64 {
    let size = span(leaf.level);
    let mut until = high;
    for at in leaf.index + 1..ENTRIES {
        if end - until < size || !belongs(leaf, at) || budget.is_used_up() {
            break;
        }
        budget.spend(UNITS_PER_ENTRY);
        until += size;
    }
    until
}

/// Whether entry `at` of the table is a page of the split one that `leaf` is of: it has no node
/// of its own.
fn belongs(leaf: Leaf, at: usize) -> bool {
    let entry = leaf.table.get(at);
    let is_page = entry.present() && entry.is_leaf(leaf.level) && !entry.has(Entry::KERNEL);
    is_page && twin_word(leaf.table, at) == 0
}

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
                // Those without a word of their own are one node's.
                let word = twin_word(table, at);
                if told != Some(word) {
                    told = Some(word);
                    tell(space, pos + (at - index(pos, level)) as u64 * span(level));
                }
            }
        }
    }
}

/// Whose page is at `vaddr` of `space` learns that it stays.
fn tell(space: SpaceRef, vaddr: u64) {
    if let Slot::Leaf(leaf) = table::find(space, vaddr)
        && let Some(node) = leaf.node
    {
        node.is_spared();
    }
}
