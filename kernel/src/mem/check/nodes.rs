//! Every mapping node of a space: its links, its region, its count.

use super::Rule;
use crate::arch::paging::span;
use crate::mem::grant::is_forwarder;
use crate::mem::node::{MARKER, NodeRef, PORTS};
use crate::mem::space::SpaceRef;
use crate::mem::table::{self, Slot};

/// Checks one node of `space`; returns how many entries it counts.
pub(super) fn check(space: SpaceRef, node: NodeRef, report: &mut impl FnMut(u64, Rule)) -> u64 {
    if is_forwarder(node) {
        return 0;
    }
    links(node, report);
    if node.has(PORTS) {
        return 0;
    }
    if node.space() != space {
        report(node.vaddr(), Rule::NodeCoversPage);
    }
    let end = |node: NodeRef| node.phys() + node.size();
    let outside = |up: NodeRef| node.phys() < up.phys() || end(up) < end(node);
    if node.parent().is_some_and(outside) {
        report(node.vaddr(), Rule::Region);
    }
    if node.count() == 0 {
        report(node.vaddr(), Rule::NoGhosts);
    } else if entries(space, node) != node.count() {
        report(node.vaddr(), Rule::EntryCount);
    }
    node.count()
}

/// How many entries of the page tables refer to `node`.
fn entries(space: SpaceRef, node: NodeRef) -> u64 {
    let (mut vaddr, end) = (node.vaddr(), node.vaddr() + node.size());
    let mut count = 0;
    while vaddr < end {
        let level = match table::find(space, vaddr) {
            Slot::Empty { level, .. } => level,
            Slot::Leaf(leaf) => {
                count += u64::from(leaf.node == Some(node));
                leaf.level
            }
        };
        vaddr = (vaddr | (span(level) - 1)) + 1;
    }
    count
}

/// The list of `node`'s children, with all that is in it. Those behind a forwarder know `node` through it,
/// the others themselves.
fn links(node: NodeRef, report: &mut impl FnMut(u64, Rule)) {
    let (mut before, mut told) = (None, true);
    let mut next = node.first_raw();
    while let Some(this) = next {
        let same_kind = this.has(MARKER) || this.has(PORTS) == node.has(PORTS);
        let linked = this.parent() == Some(node) && this.elder() == before;
        if !same_kind || !linked || this.is_told() != told {
            report(node.vaddr(), Rule::Links);
            return;
        }
        told &= !is_forwarder(this);
        before = next;
        next = this.next_raw();
    }
    if !node.has(PORTS) && told == node.is_passed_on() {
        report(node.vaddr(), Rule::Links);
    }
}
