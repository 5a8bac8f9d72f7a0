//! One page of a map or grant item, and how it gets into its destination's tables ([`super::map`]).

use super::node::NodeRef;
use super::quota::NoMemory;
use super::slab;
use super::space::SpaceRef;
use super::table::{self, Leaf};
use crate::arch::paging::{Entry, Table, index, span};
use abi::Rights;

/// One page to be mapped.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) level: u32,
    pub(super) source: Leaf,
    pub(super) node: NodeRef,
    pub(super) rights: Rights,
}

impl Piece {
    pub(super) fn size(&self) -> u64 {
        span(self.level)
    }

    pub(super) fn phys(&self) -> u64 {
        self.source.phys() + (self.from & (span(self.source.level) - 1))
    }
}

/// The table for a new page at the destination, and a node.
#[inline]
fn room(dst: SpaceRef, piece: Piece) -> Result<(Table, NodeRef), NoMemory> {
    let table = table::ensure(dst, piece.to, piece.level)?;
    let node = slab::alloc(dst).inspect_err(|_| table::prune(dst, piece.to, piece.level))?;
    Ok((table, node))
}

/// Enters a new page at the destination; the node is not linked yet.
#[inline]
pub(super) fn insert(dst: SpaceRef, piece: Piece) -> Result<NodeRef, NoMemory> {
    let price = table::split_price(piece.level);
    dst.quota().reserve(price)?;
    let node = room(dst, piece).inspect_err(|_| dst.quota().release(price));
    let (table, node) = node?;
    node.init(piece.phys(), piece.to, piece.level);
    let caching = piece.source.entry.0 & Entry::UNCACHED;
    let entry = Entry::page(piece.phys(), piece.level, piece.rights, caching);
    table::put(table, index(piece.to, piece.level), entry, Some(node));
    Ok(node)
}
