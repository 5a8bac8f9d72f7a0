//! Looking at mapping trees, for the monitor and the tests.

use super::node::NodeRef;
use super::space::SpaceRef;
use crate::arch::preemption::Pace;
use abi::Rights;

/// One mapping of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// 0 for σ0's page.
    pub depth: u32,
    /// The space that has the mapping.
    pub space: u32,
    /// Where it has the frame.
    pub vaddr: u64,
    /// Log2 of the page's size there.
    pub bits: u32,
    /// What it may do.
    pub rights: Rights,
}

/// The mappings of one frame in preorder.
pub struct Tree {
    phys: u64,
    next: Option<NodeRef>,
    depth: u32,
    /// A tree can be large: interrupts are let in on the way.
    pace: Pace,
}

impl Tree {
    /// The mappings of the frame that contains `phys`.
    #[must_use]
    pub fn of(sigma0: SpaceRef, phys: u64) -> Self {
        let next = sigma0.page(phys).and_then(|page| page.node);
        Self { phys, next, depth: 0, pace: Pace::default() }
    }

    /// The node behind `node` in preorder.
    fn advance(&mut self, node: NodeRef) {
        if let Some(child) = node.first_child() {
            self.depth += 1;
            self.next = Some(child);
            return;
        }
        let mut node = node;
        self.next = loop {
            if let Some(next) = node.sibling() {
                break Some(next);
            }
            match node.parent() {
                Some(parent) => node = parent,
                None => break None,
            }
            self.depth -= 1;
        };
    }

    /// The mapping that `node` has of the frame.
    fn record(&self, node: NodeRef) -> Option<Record> {
        let inside = self.phys.checked_sub(node.phys()).filter(|inside| *inside < node.size())?;
        let vaddr = node.vaddr() + inside;
        let page = node.space().page(vaddr).filter(|page| page.node == Some(node))?;
        let (bits, rights) = (page.bits, page.rights);
        Some(Record { depth: self.depth, space: node.space().id(), vaddr, bits, rights })
    }
}

impl Iterator for Tree {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            self.pace.rounds(3);
            let node = self.next?;
            let record = self.record(node);
            self.advance(node);
            if record.is_some() {
                return record;
            }
        }
    }
}
