//! Every page of a space against the mapping trees.

use super::Rule;
use crate::arch::paging::{Entry, span};
use crate::mem::node::NodeRef;
use crate::mem::reserved::{self, Content};
use crate::mem::space::SpaceRef;
use crate::mem::table::{self, Leaf, Slot};
use abi::Rights;
use abi::layout::USER_END;

/// Longer chains of derivation than this are a loop.
const MAX_DEPTH: u32 = 1 << 20;

/// Checks all pages; returns how many entries have nodes.
pub(super) fn check(space: SpaceRef, report: &mut impl FnMut(u64, Rule)) -> u64 {
    let mut vaddr = 0;
    let mut leaves = 0;
    while vaddr < USER_END {
        let level = match table::find(space, vaddr) {
            Slot::Empty { level, .. } => level,
            Slot::Leaf(leaf) if leaf.entry.has(Entry::KERNEL) => {
                if !is_kernel_page(space, vaddr, leaf) {
                    report(vaddr, Rule::KernelPage);
                }
                leaf.level
            }
            Slot::Leaf(leaf) => {
                leaves += 1;
                if let Err(rule) = page(space, vaddr, leaf) {
                    report(vaddr, rule);
                }
                leaf.level
            }
        };
        vaddr = (vaddr | (span(level) - 1)) + 1;
    }
    leaves
}

/// Whether a kernel page at `vaddr` is the KIP, read-only, or part of the UTCB area.
/// Spaces without areas are the tests' own.
fn is_kernel_page(space: SpaceRef, vaddr: u64, leaf: Leaf) -> bool {
    let (kip, utcbs) = space.areas();
    let inside = (utcbs.start..utcbs.end).contains(&vaddr);
    let is_kip = vaddr == kip.start && !leaf.entry.rights().contains(Rights::W);
    kip.end == 0 || !super::is_sealed() || leaf.level == 0 && (inside || is_kip)
}

/// Where `node`'s tree begins; `None` in a loop.
fn root(node: NodeRef) -> Option<NodeRef> {
    let mut node = node;
    for _ in 0..MAX_DEPTH {
        let Some(parent) = node.parent() else { return Some(node) };
        node = parent;
    }
    None
}

fn page(space: SpaceRef, vaddr: u64, leaf: Leaf) -> Result<(), Rule> {
    let node = leaf.node.ok_or(Rule::PageHasNode)?;
    let inside = vaddr.wrapping_sub(node.vaddr());
    if node.space() != space || inside >= node.size() {
        return Err(Rule::NodeCoversPage);
    }
    let root = root(node).ok_or(Rule::Links)?;
    // A region lies within its parent's (`nodes.rs`), and σ0 has each frame where it is.
    if root.phys() != root.vaddr() || node.phys() + inside != leaf.phys() {
        return Err(Rule::SameFrame);
    }
    if !is_for_users(leaf) {
        return Err(Rule::NotTheKernels);
    }
    if space.is_protected(vaddr, vaddr + span(leaf.level)) {
        return Err(Rule::KernelPage);
    }
    if leaf.entry.has(Entry::DYING) {
        return Err(Rule::Dying);
    }
    let Some(parent) = node.parent() else {
        return if space.is_sigma0() { Ok(()) } else { Err(Rule::ParentHasPage) };
    };
    derived(leaf, parent)
}

/// Whether the page is memory throughout, cached, or none at all, uncached; and for users.
fn is_for_users(leaf: Leaf) -> bool {
    let cached = !leaf.entry.has(Entry::UNCACHED);
    leaf.entry.has(Entry::U)
        && match reserved::kind(leaf.phys(), leaf.phys() + span(leaf.level)) {
            Content::Ram => cached,
            Content::Device => !cached,
            Content::Mixed | Content::Beyond => false,
        }
}

/// Checks a page against its parent's own pages of the same frames.
fn derived(leaf: Leaf, parent: NodeRef) -> Result<(), Rule> {
    let size = span(leaf.level);
    let offset = leaf.phys().checked_sub(parent.phys()).ok_or(Rule::Region)?;
    let mut at = 0;
    while at < size {
        let above = parent.vaddr() + offset + at;
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
