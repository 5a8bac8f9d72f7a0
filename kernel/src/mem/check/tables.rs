//! The page tables of a space: counts, twins, the kernel's half.

use super::Rule;
use crate::arch::paging::{Entry, KERNEL_HALF, ROOT, Table};
use crate::mem::frames::Info;
use crate::mem::space::SpaceRef;
use crate::mem::table;

/// Checks the tables; returns the number of table pages and twins below the root.
pub(super) fn check(space: SpaceRef, report: &mut impl FnMut(u64, Rule)) -> u64 {
    space.root().check(&mut |index| report(index, Rule::KernelHalf));
    if !space.is_near_right() {
        report(space.root_table().address(), Rule::Near);
    }
    let mut pages = 0;
    for_each(space, |table, level, used| {
        let info = Info::of(table.address());
        if info.used() != used || (used == 0 && level != ROOT) {
            report(table.address(), Rule::TableCount);
        }
        if info.twin() != 0 && !is_twin(table, info.twin_table(), level) {
            report(table.address(), Rule::Twin);
        }
        if level != ROOT {
            pages += 1 + u64::from(info.twin() != 0);
        }
    });
    pages
}

/// Whether `twin` has nodes only for entries of `table` that are pages of users, or
/// tables below which pages inherit one.
fn is_twin(table: Table, twin: Table, level: u32) -> bool {
    (0..512).all(|index| {
        let entry = table.get(index);
        let user = entry.is_leaf(level) && !entry.has(Entry::KERNEL);
        let inherited = !entry.is_leaf(level) && entry.has(Entry::INHERIT);
        twin.word_at(index) == 0 || entry.present() && (user || inherited)
    })
}

/// Calls `each` with every table of the user's half, its level, and how many
/// entries it has in use; the root last.
pub(super) fn for_each(space: SpaceRef, mut each: impl FnMut(Table, u32, u64)) {
    let mut path = [(space.root_table(), 0usize, 0u64); 4];
    let mut level = ROOT;
    loop {
        let (table, next, used) = path[level as usize & 3];
        let end = if level == ROOT { KERNEL_HALF } else { 512 };
        if next < end {
            let entry = table.get(next);
            path[level as usize & 3] = (table, next + 1, used + u64::from(entry.present()));
            if entry.present() && !entry.is_leaf(level) {
                level -= 1;
                path[level as usize & 3] = (entry.below(), 0, 0);
            }
            continue;
        }
        each(table, level, used);
        if level == ROOT {
            return;
        }
        level += 1;
    }
}

/// What splitting the large pages of `space` can take; it has paid for that.
pub(super) fn reserved(space: SpaceRef) -> u64 {
    let mut pages = 0;
    let large = |table: Table, level| {
        (0..512).filter(|at| table.get(*at).present() && table.get(*at).is_leaf(level)).count()
    };
    for_each(space, |table, level, _| {
        if level > 0 && level != ROOT {
            pages += large(table, level) as u64 * table::split_price(level);
        }
    });
    if space.is_sigma0() { 0 } else { pages }
}
