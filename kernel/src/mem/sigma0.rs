//! σ0, the initial space: all memory that the kernel does not keep, and all ports.
//!
//! Its mappings are the identity, so its tables need not be filled in advance:
//! a root node is made when σ0 faults or when one of its pages is sent. The page
//! is the largest that contains nothing of the kernel's and lies on one side of
//! the border between RAM and the rest; what is not RAM is mapped uncached.

use super::node::NodeRef;
use super::reserved::{self, Content};
use super::space::SpaceRef;
use super::table::{self, Slot};
use super::{LARGEST_LEVEL, NoMemory, slab, state};
use crate::arch::paging::{Entry, ROOT, index, span};
use abi::Rights;
use abi::layout::USER_END;

/// σ0 touched `addr`: gives it its page. False if that is not σ0's to have (or
/// its quota is exhausted).
pub fn sigma0_fault(space: SpaceRef, addr: u64) -> bool {
    space.is_sigma0() && (matches!(make(space, addr), Ok(true)) || node(addr).is_some())
}

/// σ0 used a port: opens all ports to it. False if it is not σ0, or out of memory.
pub fn sigma0_open_ports(space: SpaceRef) -> bool {
    space.is_sigma0() && super::io::sigma0_root(space).is_ok()
}

/// Makes σ0's page at `addr`; false if it is there already or not σ0's to have.
pub(crate) fn make(space: SpaceRef, addr: u64) -> Result<bool, NoMemory> {
    if addr >= USER_END || matches!(table::find(space, addr), Slot::Leaf(_)) {
        return Ok(false);
    }
    let Some((level, caching)) = choose(space, addr) else {
        return Ok(false);
    };
    let start = addr & !(span(level) - 1);
    let table = table::ensure(space, start, level)?;
    let node = slab::alloc(space).inspect_err(|_| table::prune(space, start, level))?;
    node.init(start, start, level);
    let entry = Entry::page(start, level, Rights::RWX, caching);
    table::put(table, index(start, level), entry, Some(node));
    Ok(true)
}

/// The node of σ0's page at `addr`, if there is one.
pub(crate) fn node(addr: u64) -> Option<NodeRef> {
    match table::find(state().sigma0.get()?, addr) {
        Slot::Leaf(leaf) => leaf.node,
        Slot::Empty { .. } => None,
    }
}

/// The level of the page for `addr` and its caching; none if σ0 may not have it.
fn choose(space: SpaceRef, addr: u64) -> Option<(u32, u64)> {
    let largest = if state().huge_pages.get() { LARGEST_LEVEL } else { LARGEST_LEVEL.min(1) };
    for level in (0..=largest).rev() {
        let start = addr & !(span(level) - 1);
        let end = start + span(level);
        if end > USER_END || space.is_protected(start, end) {
            continue;
        }
        match reserved::kind(start, end) {
            Content::Ram => return Some((level, 0)),
            Content::Device => return Some((level, Entry::UNCACHED)),
            Content::Mixed | Content::Beyond => {}
        }
    }
    None
}

/// The level of the empty entry around `addr`, which σ0 does not have: nothing
/// at all beyond the processor's physical addresses.
pub(crate) fn empty_level(addr: u64) -> u32 {
    if reserved::kind(addr, addr + 1) == Content::Beyond { ROOT } else { 0 }
}
