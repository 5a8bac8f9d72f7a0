//! I/O port mappings: one port is one very small page (Liedtke 1995, 2.1).
//!
//! A port has the same number in every space. A node covers a naturally aligned
//! power of two of ports; a space's nodes are disjoint and form a list, short by
//! decree ([`MAX_RANGES`]). The trees work like those of memory, the hardware's
//! permission bitmap is the cache (`ports`).

use super::Step;
use super::node::{LIVE, NodeRef, PORTS};
use super::ports;
use super::quota::NoMemory;
use super::slab;
use super::space::SpaceRef;
use crate::arch::preemption::Pace;
use crate::arch::{phys_to_virt, virt_to_phys};

/// How many port ranges a space can hold: looking for one stays short.
pub const MAX_RANGES: u64 = 256;

/// Log2 of the number of all ports.
pub const ALL_BITS: u32 = 16;

/// First port of a port node.
pub(crate) fn start(node: NodeRef) -> u64 {
    node.raw().1.get() & 0xFFFF
}

/// Log2 of the number of ports.
pub(crate) fn bits(node: NodeRef) -> u32 {
    (node.raw().0.get() >> 40) as u32 & 0x1F
}

/// One past the last port.
pub(crate) fn end(node: NodeRef) -> u64 {
    start(node) + (1 << bits(node))
}

/// The next node of the same space.
fn next(node: NodeRef) -> Option<NodeRef> {
    let phys = node.raw().1.get() >> 16 << 4;
    let word = if phys == 0 { 0 } else { phys_to_virt(phys) as u64 };
    // SAFETY: `set_next` has put it there, and `delist` takes a node out before it is freed.
    unsafe { NodeRef::from_word(word) }
}

fn set_next(node: NodeRef, next: Option<NodeRef>) {
    let phys = next.map_or(0, |node| virt_to_phys(node.word() as *const u8));
    let place = node.raw().1;
    place.set(place.get() & 0xFFFF | phys >> 4 << 16);
}

fn set_bits(node: NodeRef, bits: u32) {
    let frame = node.raw().0;
    frame.set(frame.get() & !(0x1F << 40) | u64::from(bits) << 40);
}

/// The newest node of a space.
fn first(space: SpaceRef) -> Option<NodeRef> {
    // SAFETY: the list's head is 0 or a node's word; `delist` takes a node out before it is freed.
    unsafe { NodeRef::from_word(space.ports().0.get()) }
}

/// The nodes of a space, newest first.
pub(crate) fn of(space: SpaceRef) -> impl Iterator<Item = NodeRef> {
    paced(first(space), next)
}

/// The children of a node. The one that came last may leave it.
pub(crate) fn children(node: NodeRef) -> impl Iterator<Item = NodeRef> {
    paced(node.first_child(), |child| child.sibling())
}

/// The nodes from `first` on. Users decide how many there are, so interrupts are noted on the way.
fn paced(
    first: Option<NodeRef>,
    next: impl Fn(NodeRef) -> Option<NodeRef>,
) -> impl Iterator<Item = NodeRef> {
    let mut pace = Pace::default();
    core::iter::successors(first, move |node| {
        pace.round();
        next(*node)
    })
}

/// The space's node that covers `port`.
pub(crate) fn find(space: SpaceRef, port: u64) -> Option<NodeRef> {
    of(space).find(|node| start(*node) <= port && port < end(*node))
}

/// The first node that begins in `from..to`.
pub(crate) fn first_in(space: SpaceRef, from: u64, to: u64) -> Option<NodeRef> {
    of(space).filter(|node| (from..to).contains(&start(*node))).min_by_key(|node| start(*node))
}

/// Whether `space` may use `port`, by the mappings.
#[must_use]
pub fn allowed(space: SpaceRef, port: u16) -> bool {
    find(space, u64::from(port)).is_some()
}

/// A node without links for ports that are not in the space yet.
fn enlist(space: SpaceRef, start: u64, bits: u32) -> Result<NodeRef, NoMemory> {
    let (head, count) = space.ports();
    if count.get() >= MAX_RANGES {
        return Err(NoMemory);
    }
    let node = slab::alloc(space)?;
    node.init(0, 0, 0);
    let (frame, place) = node.raw();
    frame.set(u64::from(bits) << 40 | LIVE | PORTS);
    place.set(start);
    set_next(node, first(space));
    head.set(node.word());
    count.set(count.get() + 1);
    Ok(node)
}

/// Takes a node off its space's list and frees it; it is in no tree any more.
fn delist(space: SpaceRef, node: NodeRef) {
    let (head, count) = space.ports();
    match of(space).find(|before| next(*before) == Some(node)) {
        Some(before) => set_next(before, next(node)),
        None => head.set(next(node).map_or(0, NodeRef::word)),
    }
    count.set(count.get() - 1);
    slab::free(space, node);
}

/// Gives the space, whose bitmap is prepared, 2^`bits` ports; the caller links the node into a tree.
pub(crate) fn insert(space: SpaceRef, start: u64, bits: u32) -> Result<NodeRef, NoMemory> {
    let node = enlist(space, start, bits).inspect_err(|_| release_unused(space))?;
    ports::allow(space, start, bits);
    Ok(node)
}

/// Takes the ports of a node without children from its space.
pub(crate) fn remove(node: NodeRef) {
    let space = node.space();
    ports::forbid(space, start(node), bits(node));
    node.unlink();
    delist(space, node);
    release_unused(space);
}

/// Who has no port needs no bitmap.
fn release_unused(space: SpaceRef) {
    if space.port_ranges() == 0 {
        ports::release(space);
    }
}

/// Cuts a node of at least two ports, none of whose children is as large, into
/// halves; the space pays for the new one.
pub(crate) fn halve(node: NodeRef) -> Result<(), NoMemory> {
    let half = bits(node).checked_sub(1).ok_or(NoMemory)?;
    let middle = start(node) + (1 << half);
    let upper = enlist(node.space(), middle, half)?;
    set_bits(node, half);
    upper.link_behind(node);
    for child in children(node) {
        if start(child) >= middle {
            child.unlink();
            child.link_below(upper);
        }
    }
    Ok(())
}

/// The last in a chain of descendants of `node`, or itself, that `leads` from one to the next.
pub(crate) fn deepest(node: NodeRef, leads: impl Fn(NodeRef) -> bool) -> NodeRef {
    let mut last = node;
    while let Some(child) = children(last).find(|child| leads(*child)) {
        last = child;
    }
    last
}

/// Whether `node` has any of the ports `low..high`.
pub(crate) fn overlaps(node: NodeRef, low: u64, high: u64) -> bool {
    start(node) < high && low < end(node)
}

/// σ0's node for all ports, made when it is first needed.
pub(crate) fn sigma0_root(space: SpaceRef) -> Result<NodeRef, NoMemory> {
    match find(space, 0) {
        Some(node) => Ok(node),
        None => {
            while ports::prepare(space)? == Step::More {}
            insert(space, 0, ALL_BITS)
        }
    }
}
