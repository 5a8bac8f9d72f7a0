//! The checker: rebuilds σ from the mapping trees and compares it with the page
//! tables, and both with the counters. Costs time proportional to all mappings.

use super::frames::Info;
use super::io;
use super::node::{NodeRef, PORTS};
use super::slab;
use super::space::SpaceRef;
use super::table::{self, Leaf, Slot};
use crate::arch::iobitmap;
use crate::arch::paging::{Entry, ROOT, Table, span};
use abi::layout::USER_END;

/// What is wrong, and where in which space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The space's number.
    pub space: u32,
    /// A user address, a port, or 0.
    pub at: u64,
    /// The rule that is broken.
    pub rule: Rule,
}

/// The rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A page has a mapping node.
    PageHasNode,
    /// The node belongs to the page's space and covers the page.
    NodeCoversPage,
    /// The page shows the frame that the tree says.
    SameFrame,
    /// The parent has the page, under its node.
    ParentHasPage,
    /// A page has no right that its parent's lacks.
    RightsShrink,
    /// As many entries refer to a node as it counts.
    EntryCount,
    /// A node without entries is only found while a removal is under way.
    NoGhosts,
    /// Siblings are linked both ways and name their parent.
    Links,
    /// A table's count of used entries, and no table is empty.
    TableCount,
    /// The quota is charged for all the frames in use here, at least.
    Charged,
    /// The counters of tables and nodes.
    Counters,
    /// The port bitmap says what the port mappings say.
    Bitmap,
}

/// Checks one space; calls `report` for every violation. `jobs_under_way` says
/// whether removals may be half done: ghosts, and children whose turn has not come.
pub fn check(space: SpaceRef, jobs_under_way: bool, report: &mut dyn FnMut(Violation)) {
    let mut report = |at, rule| report(Violation { space: space.id(), at, rule });
    let leaves = pages(space, &mut |at, rule| {
        let transient = matches!(rule, Rule::ParentHasPage | Rule::RightsShrink);
        if !(transient && jobs_under_way) {
            report(at, rule);
        }
    });
    let mut counted = 0;
    let mut nodes = 0;
    let slabs = slab::for_each(space, |node| {
        nodes += 1;
        links(node, &mut report);
        if node.has(PORTS) {
            return;
        }
        counted += node.count();
        if node.count() == 0 && !jobs_under_way {
            report(node.vaddr(), Rule::NoGhosts);
        }
    });
    if counted != leaves {
        report(0, Rule::EntryCount);
    }
    let tables = tables(space, &mut report);
    let bitmap = if space.ports().2.get() == 0 { 0 } else { iobitmap::OWN_FRAMES };
    if tables != space.table_pages() || nodes != space.nodes() {
        report(0, Rule::Counters);
    }
    if space.quota().used() < 2 + tables + slabs + bitmap {
        report(0, Rule::Charged);
    }
    ports(space, &mut report);
}

/// Checks all pages; returns how many entries have nodes.
fn pages(space: SpaceRef, report: &mut impl FnMut(u64, Rule)) -> u64 {
    let mut vaddr = 0;
    let mut leaves = 0;
    while vaddr < USER_END {
        let level = match table::find(space, vaddr) {
            Slot::Empty { level } => level,
            Slot::Leaf(leaf) => {
                if !leaf.entry.has(Entry::KERNEL) {
                    leaves += 1;
                    match page(space, vaddr, leaf) {
                        Ok(()) => {}
                        Err(rule) => report(vaddr, rule),
                    }
                }
                leaf.level
            }
        };
        vaddr = (vaddr | (span(level) - 1)) + 1;
    }
    leaves
}

/// Physical address of the start of a node's region, from the tree alone.
fn base(node: NodeRef) -> u64 {
    let mut node = node;
    let mut offset = 0;
    while let Some(parent) = node.parent() {
        offset += node.offset();
        node = parent;
    }
    node.vaddr() + offset
}

fn page(space: SpaceRef, vaddr: u64, leaf: Leaf) -> Result<(), Rule> {
    let node = leaf.node.ok_or(Rule::PageHasNode)?;
    let inside = vaddr.wrapping_sub(node.vaddr());
    if node.space() != space || inside >= node.size() {
        return Err(Rule::NodeCoversPage);
    }
    if base(node) + inside != leaf.phys() {
        return Err(Rule::SameFrame);
    }
    let Some(parent) = node.parent() else {
        return if space.is_sigma0() { Ok(()) } else { Err(Rule::ParentHasPage) };
    };
    let size = span(leaf.level);
    let mut at = 0;
    while at < size {
        let above = parent.vaddr() + node.offset() + inside + at;
        let Slot::Leaf(source) = table::find(parent.space(), above) else {
            return Err(Rule::ParentHasPage);
        };
        if source.node != Some(parent) {
            return Err(Rule::ParentHasPage);
        }
        if !source.entry.rights().contains(leaf.entry.rights()) {
            return Err(Rule::RightsShrink);
        }
        at += span(source.level);
    }
    Ok(())
}

fn links(node: NodeRef, report: &mut impl FnMut(u64, Rule)) {
    let mut child = node.first_child();
    while let Some(this) = child {
        if this.parent() != Some(node) || this.has(PORTS) != node.has(PORTS) {
            report(node.vaddr(), Rule::Links);
            return;
        }
        child = this.sibling();
    }
}

/// Counts the table pages and twins below the root, and their entries.
fn tables(space: SpaceRef, report: &mut impl FnMut(u64, Rule)) -> u64 {
    let mut pages = 0;
    let mut path = [(space.root_table(), 0usize, 0u64); 4];
    let mut level = ROOT;
    loop {
        let (table, next, used) = path[level as usize & 3];
        let end = if level == ROOT { 256 } else { 512 };
        if next < end {
            let entry = table.get(next);
            path[level as usize & 3] = (table, next + 1, used + u64::from(entry.present()));
            if entry.present() && !entry.is_leaf(level) {
                level -= 1;
                path[level as usize & 3] = (Table(entry.address()), 0, 0);
            }
            continue;
        }
        let info = Info::of(table.0);
        if info.used() != used || (used == 0 && level != ROOT) {
            report(0, Rule::TableCount);
        }
        if level == ROOT {
            return pages;
        }
        pages += 1 + u64::from(info.twin() != 0);
        level += 1;
    }
}

fn ports(space: SpaceRef, report: &mut impl FnMut(u64, Rule)) {
    if space.port_ranges() != io::of(space).count() as u64 {
        report(0, Rule::Counters);
    }
    for node in io::of(space) {
        let (low, high) = (io::start(node), io::end(node));
        let held = node.parent().is_none_or(|up| io::start(up) <= low && high <= io::end(up));
        if !held || (node.parent().is_none() && !space.is_sigma0()) {
            report(low, Rule::ParentHasPage);
        }
    }
    if space.ports().2.get() != 0 {
        for port in 0..=u16::MAX {
            if iobitmap::is_open(space, port) != io::allowed(space, port) {
                report(u64::from(port), Rule::Bitmap);
            }
        }
    }
}
