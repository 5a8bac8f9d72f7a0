//! Walking the subtree of a node in preorder, in bounded pieces.
//!
//! A walk takes rights (or everything) from all mappings derived from one page,
//! without recursion: it climbs back over the parent links. Preorder matters: a
//! page that the walk has passed cannot hand on what the walk takes away. A
//! walk that runs out of budget is *parked*: its node carries a mark, and who
//! frees a marked node moves the walk on. So it survives whatever others do.

use super::cost;
use super::node::{CURSOR, NodeRef, REFERENCED, WRITTEN};
use super::table::{self, Leaf, Slot};
use super::{slab, state};
use crate::arch::paging::{Entry, span};
use crate::arch::tlb;
use abi::Rights;
use core::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Look at the node's own pages.
    Enter,
    /// Look at its children.
    Below,
    /// Its subtree is finished.
    Leave,
    /// Everything is finished.
    Done,
}

/// A walk; see the module.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    root: NodeRef,
    cur: NodeRef,
    /// Physical address of the start of `cur`'s region.
    base: u64,
    /// Physical address up to which `cur`'s pages are done.
    pos: u64,
    /// The physical region concerned.
    start: u64,
    end: u64,
    stage: Stage,
    revoke: Rights,
    reset: bool,
    /// What was referenced and written so far.
    pub status: Rights,
    /// Children inside the region become children of this node, whose own region
    /// begins at this physical address.
    adopter: Option<(NodeRef, u64)>,
    /// The region before it was widened below a node that could not pay for a split.
    outer: [Option<(NodeRef, u64, u64)>; 2],
    epoch: u64,
}

impl Walk {
    /// Takes `revoke` from what is derived from `start..end` (physical) of `root`,
    /// whose region begins at `base`; with `own` from its own page too.
    pub(crate) fn new(root: NodeRef, base: u64, region: (u64, u64), revoke: Rights) -> Self {
        Self {
            root,
            cur: root,
            base,
            pos: 0,
            start: region.0,
            end: region.1,
            stage: Stage::Below,
            revoke,
            reset: false,
            status: Rights::NONE,
            adopter: None,
            outer: [None; 2],
            epoch: 0,
        }
    }

    pub(crate) fn including_root(mut self) -> Self {
        self.stage = Stage::Enter;
        self
    }

    pub(crate) fn resetting(mut self, reset: bool) -> Self {
        self.reset = reset;
        self
    }

    /// Makes the children inside the region those of `adopter`, whose own region
    /// begins at `base` and covers the walk's. To be named again after parking.
    pub(crate) fn adopting(mut self, adopter: NodeRef, base: u64) -> Self {
        self.adopter = Some((adopter, base));
        self
    }

    /// Whether this is still a walk below `root` about the region from `start`.
    pub(crate) fn concerns(&self, root: NodeRef, start: u64) -> bool {
        self.stage != Stage::Done && self.root == root && self.start == start
    }

    fn removes(&self) -> bool {
        self.revoke.contains(Rights::R)
    }

    /// Goes on; true when the walk is finished.
    pub(crate) fn run(&mut self, budget: &mut i32) -> bool {
        loop {
            if self.stage == Stage::Done {
                return true;
            }
            if *budget <= 0 {
                return false;
            }
            *budget -= cost::VISIT as i32;
            match self.stage {
                Stage::Enter => self.enter(budget),
                Stage::Below => self.below(),
                Stage::Leave => self.leave(),
                Stage::Done => {}
            }
        }
    }

    fn enter(&mut self, budget: &mut i32) {
        let (low, high) = (self.base, self.base + self.cur.size());
        if high <= self.start || self.end <= low {
            self.stage = Stage::Leave;
            return;
        }
        if self.adopter.is_some() {
            self.adopt(low, high);
            return;
        }
        self.collect(self.cur, self.start <= low && high <= self.end);
        if self.pages(budget) {
            self.stage = Stage::Below;
        }
    }

    /// Adds what vanished children left in `node`.
    pub(crate) fn collect(&mut self, node: NodeRef, whole: bool) {
        self.status = self.status.or(take_status(node, self.reset && whole));
    }

    fn below(&mut self) {
        match self.cur.first_child() {
            Some(child) => self.enter_node(child, self.base + child.offset()),
            None => self.stage = Stage::Leave,
        }
    }

    fn enter_node(&mut self, node: NodeRef, base: u64) {
        self.cur = node;
        self.base = base;
        self.pos = 0;
        self.stage = Stage::Enter;
    }

    fn leave(&mut self) {
        let node = self.cur;
        self.advance();
        let finished = self.stage == Stage::Done;
        if !finished && node.count() == 0 && node.first_child().is_none() {
            free_node(node);
        }
    }

    /// Moves on from `cur`, whose subtree is finished or gone.
    fn advance(&mut self) {
        let node = self.cur;
        if node == self.root {
            self.stage = Stage::Done;
            return;
        }
        self.narrow(node);
        let above = self.base - node.offset();
        match (node.sibling(), node.parent()) {
            (Some(next), _) => self.enter_node(next, above + next.offset()),
            (None, Some(parent)) => {
                self.cur = parent;
                self.base = above;
                self.stage = Stage::Leave;
            }
            (None, None) => self.stage = Stage::Done,
        }
    }

    /// Applies the walk to the pages of `cur`; false if the budget ran out.
    fn pages(&mut self, budget: &mut i32) -> bool {
        let node = self.cur;
        if node.count() == 0 {
            return true;
        }
        let space = node.space();
        self.pos = self.pos.max(self.start).max(self.base);
        // At least one page in every step, however small the budget.
        while self.pos < self.end.min(self.base + node.size()) {
            *budget -= cost::LOOK as i32;
            let vaddr = node.vaddr() + (self.pos - self.base);
            match table::find(space, vaddr) {
                Slot::Empty { level, .. } => self.pos += span(level) - (vaddr & (span(level) - 1)),
                Slot::Leaf(leaf) => self.page(node, vaddr, leaf, budget),
            }
            if *budget <= 0 {
                break;
            }
        }
        self.pos >= self.end.min(self.base + node.size())
    }

    fn page(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf, budget: &mut i32) {
        let low = self.pos - (vaddr & (span(leaf.level) - 1));
        let high = low + span(leaf.level);
        if leaf.node != Some(node) {
            self.pos = high;
            return;
        }
        let changes = self.removes() || !leaf.entry.rights().and(self.revoke).is_empty();
        if changes && (low < self.start || self.end < high) {
            *budget -= cost::SPLIT as i32;
            if table::split(node.space(), vaddr, leaf).is_ok() {
                return;
            }
            self.widen(node, low, high);
        }
        *budget -= cost::REMOVE as i32;
        self.apply(node, vaddr, leaf);
        self.pos = high;
    }

    fn apply(&mut self, node: NodeRef, vaddr: u64, leaf: Leaf) {
        if self.removes() {
            let old = table::remove(node.space(), vaddr, leaf);
            self.status = self.status.or(old.status());
            return;
        }
        let write = if self.revoke.contains(Rights::W) { Entry::W } else { 0 };
        let status = if self.reset { Entry::A | Entry::D } else { 0 };
        let clear = leaf.entry.0 & (write | status);
        let set = if self.revoke.contains(Rights::X) { Entry::NX & !leaf.entry.0 } else { 0 };
        let old = if clear | set == 0 {
            leaf.entry
        } else {
            let old = leaf.table.change(leaf.index, clear, set);
            tlb::invalidate(node.space(), vaddr);
            old
        };
        self.status = self.status.or(old.status());
    }

    /// The space of `node` cannot pay for splitting its page: below `node` the
    /// walk concerns the whole page.
    fn widen(&mut self, node: NodeRef, low: u64, high: u64) {
        let saved = Some((node, self.start, self.end));
        let free = usize::from(self.outer[0].is_some());
        self.outer[free & 1] = saved;
        (self.start, self.end) = (low, high);
    }

    /// Undoes what [`Walk::widen`] did at `node`.
    fn narrow(&mut self, node: NodeRef) {
        for slot in [1, 0] {
            if let Some((widened, start, end)) = self.outer[slot] {
                if widened == node {
                    (self.start, self.end) = (start, end);
                    self.outer[slot] = None;
                }
            }
        }
    }

    /// Hands `cur`, a child of the root, to the adopter if it fits.
    fn adopt(&mut self, low: u64, high: u64) {
        let child = self.cur;
        self.stage = Stage::Leave;
        let Some((adopter, base)) = self.adopter else { return };
        if low < self.start || self.end < high || child == adopter {
            return;
        }
        self.advance();
        child.unlink();
        child.set_offset(low - base);
        child.link_below(adopter);
        let walks = &state().walks;
        walks.epoch.set(walks.epoch.get() + 1);
    }
}

/// The status that vanished children left in `node`; forgets it if `reset`.
pub(crate) fn take_status(node: NodeRef, reset: bool) -> Rights {
    let r = if node.has(REFERENCED) { 5 } else { 0 };
    let w = if node.has(WRITTEN) { 2 } else { 0 };
    if reset && r | w != 0 {
        node.clear_flags(REFERENCED | WRITTEN);
    }
    Rights(r | w)
}

/// Leaves the status of a vanished child in `node`.
pub(crate) fn leave_status(node: NodeRef, status: Rights) {
    let r = if status.contains(Rights::R) { REFERENCED } else { 0 };
    let w = if status.contains(Rights::W) { WRITTEN } else { 0 };
    if r | w != 0 {
        node.set_flags(r | w);
    }
}

/// Frees a node without pages and children.
pub(crate) fn free_node(node: NodeRef) {
    if node.has(CURSOR) {
        state().walks.node_vanishes(node);
    }
    let space = node.space();
    node.unlink();
    slab::free(space, node);
}

/// How many walks can be parked at once; beyond that the oldest starts again.
const SLOTS: usize = 32;

/// The parked walks.
pub(crate) struct Parking {
    slot: [Cell<Option<(u64, Walk)>>; SLOTS],
    stamp: Cell<u64>,
    /// Counts the moves of nodes between parents, which parked walks cannot follow.
    epoch: Cell<u64>,
}

/// The claim on a parked walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked(u64);

impl Parking {
    pub(crate) const fn new() -> Self {
        Self { slot: [const { Cell::new(None) }; SLOTS], stamp: Cell::new(0), epoch: Cell::new(0) }
    }

    /// Keeps `walk` until [`Parking::resume`].
    pub(crate) fn park(&self, mut walk: Walk) -> Parked {
        let stamp = self.stamp.get() + 1;
        self.stamp.set(stamp);
        walk.epoch = self.epoch.get();
        walk.cur.set_flags(CURSOR);
        // In turn: a walk that its job abandoned is overwritten some day.
        self.slot[stamp as usize % SLOTS].set(Some((stamp, walk)));
        Parked(stamp)
    }

    /// The walk again; `None` if it has to start from its root.
    pub(crate) fn resume(&self, claim: Parked) -> Option<Walk> {
        let slot = &self.slot[claim.0 as usize % SLOTS];
        let (stamp, walk) = slot.get()?;
        if stamp != claim.0 {
            return None;
        }
        slot.set(None);
        (walk.epoch == self.epoch.get() || walk.stage == Stage::Done).then_some(walk)
    }

    /// Moves every walk that stands at `node` on.
    #[cold]
    fn node_vanishes(&self, node: NodeRef) {
        for slot in &self.slot {
            if let Some((stamp, mut walk)) = slot.get() {
                if walk.cur == node && walk.stage != Stage::Done {
                    walk.advance();
                    if walk.stage != Stage::Done {
                        walk.cur.set_flags(CURSOR);
                    }
                    slot.set(Some((stamp, walk)));
                }
            }
        }
    }
}
