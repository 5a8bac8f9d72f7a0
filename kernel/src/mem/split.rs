//! Runs of pages that a large page was split into.
//!
//! They have one node, and what was derived from any of them is below it. A walk looks at
//! all of that, so a revocation takes as many pages as it can with one walk (`revoke.rs`);
//! page by page, whoever splits a page of 2 MiB multiplied what it costs to take back what
//! was derived from it by 512.

use super::LARGEST_LEVEL;
use super::budget::Budget;
use super::space::SpaceRef;
use super::table::{self, ENTRIES, Leaf, twin_word};
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

/// Takes the mark of dying pages from those in `pos..end`, which were a run or parts of one page, or what is left
/// of such. Each was at least as large as its parts and at most as large as their table is; what was split
/// meanwhile has no marks.
pub(super) fn keep(space: SpaceRef, pos: u64, end: u64) {
    let size = end - pos;
    let is_theirs = |level: &u32| span(*level) <= size && size <= span(*level + 1);
    for level in (0..=LARGEST_LEVEL).rev().filter(is_theirs) {
        let Some(table) = table::at_level(space, pos, level) else { return };
        let mut pace = Pace::default();
        for at in index(pos, level)..=index(end - 1, level) {
            pace.round();
            let entry = table.get(at);
            if entry.is_leaf(level) && !entry.has(Entry::KERNEL) {
                table.clear_bits(at, Entry::DYING);
            }
        }
    }
}
