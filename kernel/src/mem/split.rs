//! Runs of pages that a large page was split into.
//!
//! They have one node, and what was derived from any of them is below it. A walk looks at
//! all of that, so a revocation takes as many pages as it can with one walk (`revoke.rs`);
//! page by page, whoever splits a page of 2 MiB multiplied what it costs to take back what
//! was derived from it by 512.

use super::budget::Budget;
use super::table::{ENTRIES, Leaf, twin_word};
use crate::arch::paging::{Entry, span};
use crate::arch::preemption::let_in;

/// Units of a step's budget for one entry: some 35 instructions.
const UNITS_PER_ENTRY: u32 = 2;
/// Entries between two looks for interrupts, where nothing bounds their number.
const ENTRIES_PER_WINDOW: usize = 128;

/// Sets `bits` in `leaf`, a page that ends at `high`, and in those that follow it in its table
/// and have the same node, as far as `budget` pays for it and they end at `end` or before.
/// Returns where the last one ends.
pub(super) fn mark(leaf: Leaf, (high, end): (u64, u64), bits: u64, budget: &mut Budget) -> u64 {
    let size = span(leaf.level);
    let mut until = high;
    for at in leaf.index.. {
        if bits != 0 {
            leaf.table.set_bits(at, bits);
        }
        budget.spend(UNITS_PER_ENTRY);
        let next = at + 1;
        let stays = next < ENTRIES && end - until >= size && belongs(leaf, next);
        if !stays || budget.is_used_up() {
            break;
        }
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

/// Takes the mark of dying pages from `leaf`, the page at `pos`, and those of its table that
/// follow it up to `end`.
pub(super) fn keep(leaf: Leaf, pos: u64, end: u64) {
    let count = end.saturating_sub(pos).div_ceil(span(leaf.level)) as usize;
    let last = (leaf.index + count).min(ENTRIES);
    for at in leaf.index..last {
        leaf.table.clear_bits(at, Entry::DYING);
        if at % ENTRIES_PER_WINDOW == ENTRIES_PER_WINDOW - 1 {
            let_in();
        }
    }
}
