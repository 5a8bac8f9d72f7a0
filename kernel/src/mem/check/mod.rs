//! The checker of memory: rebuilds σ from the mapping trees and compares it with
//! the page tables, both with the counters, and the counters with the frames.
//!
//! Called on demand by `crate::check` and by the tests. Costs time proportional to
//! all mappings; changes nothing but a mark per frame, which it takes off again.

mod account;
mod nodes;
mod pages;
mod ports;
mod tables;

pub use account::{is_sealed, ledger, seal, sealed_limits};

use super::root::Root;
use super::slab;
use super::space::SpaceRef;
use core::fmt;

/// What is wrong, and where in which space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The space's number.
    pub space: u32,
    /// A user address, a port, a frame, or 0.
    pub at: u64,
    /// The rule that is broken.
    pub rule: Rule,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "space {} at {:#x}: {}", self.space, self.at, self.rule.sentence())
    }
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
    /// A page shows nothing that the kernel keeps, and is cached if it is memory.
    NotTheKernels,
    /// The kernel's own pages are in the KIP and UTCB areas, and nothing else is.
    KernelPage,
    /// A page that is being flushed belongs to a flush that is under way.
    Dying,
    /// As many entries refer to a node as it counts.
    EntryCount,
    /// A node without entries is only found while a removal is under way.
    NoGhosts,
    /// Siblings are linked both ways and name their parent.
    Links,
    /// A node's region lies within its parent's.
    Region,
    /// A table's count of used entries, and no table is empty.
    TableCount,
    /// A table and its twin name the same pages.
    Twin,
    /// The kernel's half is the same in every space.
    KernelHalf,
    /// The table that was walked last is not the one on the way.
    Near,
    /// The quota is charged for all the frames in use here, at least.
    Charged,
    /// The counters of tables and nodes.
    Counters,
    /// The port bitmap says what the port mappings say.
    Bitmap,
    /// A frame has one owner.
    OneOwner,
    /// A frame that the kernel uses is from its pool.
    FromPool,
}

impl Rule {
    /// What is wrong if the rule is broken.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::PageHasNode => "a page has no mapping node",
            Self::NodeCoversPage => "a page's node is another space's or does not cover it",
            Self::SameFrame => "a page shows another frame than its mapping tree says",
            Self::ParentHasPage => "a page is derived from one that is not there",
            Self::RightsShrink => "a page has a right that the page it is derived from lacks",
            Self::NotTheKernels => "a page shows memory of the kernel's, or is cached wrongly",
            Self::KernelPage => "a page of the kernel's is outside of its area, or not alone in it",
            Self::Dying => "a page is marked as being flushed, but nobody flushes",
            Self::EntryCount => "a mapping node counts other entries than refer to it",
            Self::NoGhosts => "a mapping node has no page, and no removal is under way",
            Self::Links => "a mapping tree's links are broken",
            Self::Region => "a mapping is not inside the one that it is derived from",
            Self::TableCount => "a page table counts other entries than it has, or is empty",
            Self::Twin => "a page table and the list of its mapping nodes differ",
            Self::KernelHalf => "the kernel's half of the address space differs",
            Self::Near => "the table that was walked last is another one now",
            Self::Charged => "the quota is charged for fewer frames than are in use",
            Self::Counters => "the counters of tables, nodes or ports are wrong",
            Self::Bitmap => "the port bitmap and the port mappings differ",
            Self::OneOwner => "a frame of the kernel's has two owners",
            Self::FromPool => "a frame in use is not one of the kernel's pool",
        }
    }

    /// Whether the rule may be broken for a while when a removal is half done:
    /// children whose turn has not come, and ghosts.
    const fn is_transient(self) -> bool {
        matches!(self, Self::ParentHasPage | Self::RightsShrink | Self::NoGhosts | Self::Dying)
    }
}

/// Whether removals may be half done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removals {
    /// Nobody is at one.
    Done,
    /// Some thread is.
    UnderWay,
}

/// Checks one space; calls `report` for every violation.
pub fn check(space: SpaceRef, removals: Removals, report: &mut dyn FnMut(Violation)) {
    let mut report = |at, rule: Rule| {
        if !(rule.is_transient() && removals == Removals::UnderWay) {
            report(Violation { space: space.id(), at, rule });
        }
    };
    let leaves = pages::check(space, &mut report);
    let (mut counted, mut nodes) = (0, 0);
    let slabs = slab::for_each(space, |node| {
        nodes += 1;
        counted += nodes::check(space, node, &mut report);
    });
    if counted != leaves {
        report(0, Rule::EntryCount);
    }
    let tables = tables::check(space, &mut report);
    let mut bitmap = 0;
    super::ports::for_each_frame(space, |_| bitmap += 1);
    if tables != space.table_pages() || nodes != space.nodes() {
        report(0, Rule::Counters);
    }
    if space.quota().used() < 1 + Root::FRAMES + tables + slabs + bitmap + tables::reserved(space) {
        report(0, Rule::Charged);
    }
    ports::check(space, &mut report);
}
