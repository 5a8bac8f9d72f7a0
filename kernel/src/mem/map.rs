//! Map and grant (X.2 4.4; Liedtke 1995, 2.1) as a job.
//!
//! Works off a transfer piece by piece; a piece is the largest page that source,
//! alignment and length allow. What is in the way at the destination is flushed
//! first, so no cycle can arise. The receiver's space pays for tables and nodes.

use super::budget::Budget;
use super::frames::{self, FRAME};
use super::io_map::IoMap;
use super::marker::MarkerRef;
use super::piece::{Piece, insert};
use super::quiesce::quiet;
use super::quota::NoMemory;
use super::revoke::Revoke;
use super::space::SpaceRef;
use super::table::{self, Leaf, Slot};
use super::tlb;
use super::window::{self, Stretch};
use super::{STEP_BUDGET, Step, cost, grant, sigma0, small};
use crate::arch::paging::{Entry, span};
use abi::{Fpage, MapItem, Rights};

/// Moves what one map or grant item says from one space to another.
///
/// Rights are those asked for that the source has; without R nothing is mapped.
/// A page that already came from the same source page to the same place keeps
/// its derivatives and gains rights. The KIP and UTCB areas of both spaces are
/// skipped. σ0 only lends: its grants map, and nothing can be mapped into it.
/// A grant of a whole page takes along what was derived from it, a grant of a part of a large
/// page does not.
pub struct MapJob(Of);

/// Of what the flexpage is.
enum Of {
    Memory(Memory),
    Ports(IoMap),
}

pub(super) struct Memory {
    pub(super) src: SpaceRef,
    pub(super) dst: SpaceRef,
    pub(super) marker: MarkerRef,
    transfer: Stretch,
    done: u64,
    rights: Rights,
    grant: bool,
    /// Something that has to be revoked before going on.
    pub(super) revoke: Option<Revoke>,
    /// The children of a granted page, below the marker, do not all know its new node.
    pub(super) spreads: bool,
    /// What is left of the sender's flexpage after a grant into a smaller window.
    rest: Option<(u64, u64)>,
}

/// What became of a piece.
pub(super) enum Placed {
    /// Go on this many bytes further.
    Advance(u64),
    /// Look at the same place again.
    Again,
}

impl MapJob {
    /// Between two steps: the tasks that have shared what is in the way, or is next, if they are others
    /// than the one that maps.
    #[must_use]
    pub fn sharers(&self) -> [Option<SpaceRef>; 2] {
        let Of::Memory(Memory { src, dst, marker, transfer, done, revoke, .. }) = &self.0 else {
            return [None; 2];
        };
        if let Some(revoke) = revoke {
            return revoke.sharers(*src);
        }
        // What was in the way has gone, or nothing was: then what is behind it.
        let (next, end) = (transfer.to + done, transfer.to + transfer.len);
        // Behind the last page nothing of a program's need be: it may be the end of its memory.
        let pages = [next, next + FRAME].into_iter().filter(|page| *page < end);
        let at = |page| Revoke::flush(*marker, *dst, page, page + FRAME).sharers(*src);
        pages.map(at).find(|found| *found != [None; 2]).unwrap_or_default()
    }

    /// Gives the job up between two steps; what is done stays done.
    pub fn abandon(&mut self) {
        if let Of::Memory(memory) = &mut self.0 {
            if let Some(revoke) = &mut memory.revoke {
                revoke.abandon();
            }
            memory.marker.take_out();
        }
    }

    /// Prepares the job; nothing happens yet. Nobody else uses `marker` until it is done.
    #[inline]
    #[must_use]
    pub fn new(
        src: SpaceRef,
        dst: SpaceRef,
        item: MapItem,
        window: Fpage,
        marker: MarkerRef,
    ) -> Self {
        if item.fpage.is_io() {
            return Self::ports(src, dst, item, window);
        }
        let mut transfer = window::memory(item, window);
        if dst.is_sigma0() || window.is_nil() {
            transfer.len = 0;
        }
        let grant = item.grant && !src.is_sigma0();
        let rest = if grant { Self::rest(src, dst, item, window, transfer) } else { None };
        Self(Of::Memory(Memory {
            src,
            dst,
            marker,
            transfer,
            done: 0,
            rights: item.fpage.rights(),
            grant,
            revoke: None,
            spreads: false,
            rest,
        }))
    }

    #[cold]
    fn ports(src: SpaceRef, dst: SpaceRef, item: MapItem, window: Fpage) -> Self {
        Self(Of::Ports(IoMap::new(src, dst, item, window)))
    }

    /// After a grant into a smaller window the sender loses the whole flexpage.
    #[cold]
    fn rest(
        src: SpaceRef,
        dst: SpaceRef,
        item: MapItem,
        window: Fpage,
        transfer: Stretch,
    ) -> Option<(u64, u64)> {
        let start = item.fpage.base();
        let end = start.saturating_add(item.fpage.size()).min(abi::layout::USER_END);
        let partial = src != dst && transfer.len != 0 && item.fpage.bits() > window.bits();
        partial.then_some((start, end))
    }

    /// Goes on until done ([`Step::Done`]) or until an interrupt is pending.
    ///
    /// # Errors
    /// [`NoMemory`]: the receiver's quota (for granting σ0's page, σ0's) is
    /// exhausted; what was moved so far stays moved.
    pub fn advance(&mut self) -> Result<Step, NoMemory> {
        self.run(&mut Budget::until_interrupted())
    }

    /// Goes on for about `units` (see [`STEP_BUDGET`]).
    ///
    /// # Errors
    /// As for [`MapJob::advance`].
    pub fn step(&mut self, units: u32) -> Result<Step, NoMemory> {
        self.run(&mut Budget::step(units))
    }

    fn run(&mut self, budget: &mut Budget) -> Result<Step, NoMemory> {
        match &mut self.0 {
            Of::Memory(memory) => {
                let result = memory.step(budget);
                if result != Ok(Step::More) {
                    memory.marker.take_out();
                }
                result
            }
            Of::Ports(ports) => ports.step(budget),
        }
    }

    /// Runs the job to its end without letting anybody in between.
    ///
    /// # Errors
    /// As for [`MapJob::advance`].
    pub fn finish(&mut self) -> Result<(), NoMemory> {
        while self.step(STEP_BUDGET)? == Step::More {}
        Ok(())
    }
}

impl Memory {
    /// What `space` has from `start` to `end` goes first.
    pub(super) fn flush(&mut self, space: SpaceRef, start: u64, end: u64) {
        self.revoke = Some(Revoke::flush(self.marker, space, start, end));
    }

    /// Maps the next pages as long as they are the usual case; how many bytes.
    fn quick(&self, budget: &mut Budget) -> u64 {
        let Stretch { from, to, len } = self.transfer;
        let done = self.done;
        let rest = Stretch { from: from + done, to: to + done, len: len - done };
        small::map(self.src, self.dst, rest, self.rights, budget)
    }

    fn step(&mut self, budget: &mut Budget) -> Result<Step, NoMemory> {
        loop {
            if self.spreads {
                if !grant::spread(self.marker, budget) {
                    return Ok(Step::More);
                }
                self.spreads = false;
            }
            if let Some(revoke) = &mut self.revoke {
                if revoke.step(budget) == Step::More {
                    return Ok(Step::More);
                }
                self.revoke = None;
                // What comes next costs more than a step if it is no page of the usual kind.
                if budget.left() < cost::LOOK + cost::PAGE {
                    budget.end_step();
                }
            }
            if self.done >= self.transfer.len {
                match self.rest.take() {
                    Some((start, end)) => self.flush(self.src, start, end),
                    None => return Ok(Step::Done),
                }
                continue;
            }
            if budget.is_used_up() {
                return Ok(Step::More);
            }
            let mapped = if self.grant { 0 } else { self.quick(budget) };
            if mapped != 0 {
                self.done += mapped;
                continue;
            }
            match self.piece(budget)? {
                Placed::Advance(bytes) => self.done += bytes,
                Placed::Again => {}
            }
            if self.revoke.is_some() {
                // What has to go goes in steps of its own.
                budget.end_step();
            }
        }
    }

    /// Looks at what is at the position and deals with the largest page possible.
    #[inline]
    fn piece(&mut self, budget: &mut Budget) -> Result<Placed, NoMemory> {
        budget.spend(cost::LOOK);
        let from = self.transfer.from + self.done;
        let to = self.transfer.to + self.done;
        let leaf = match table::find(self.src, from) {
            Slot::Leaf(leaf) => leaf,
            Slot::Empty { level, .. } if !self.src.is_sigma0() => {
                return Ok(Self::pass(from, level));
            }
            Slot::Empty { level, .. } => return self.make(from, level, budget),
        };
        let rights = self.rights.and(leaf.entry.rights());
        let same = self.src == self.dst && from == to;
        let Some(node) = leaf.node else { return Ok(Self::pass(from, leaf.level)) };
        if same || leaf.entry.has(Entry::DYING) || !rights.contains(Rights::R) {
            return Ok(Self::pass(from, leaf.level));
        }
        let left = self.transfer.len - self.done;
        let Some(level) = self.level(leaf.level, from, to, left) else {
            return Ok(Placed::Advance(FRAME));
        };
        self.place(Piece { from, to, level, source: leaf, node, rights }, budget)
    }

    /// An entry of `level` of σ0's is empty: its page is made, if that is σ0's to have. An empty one says
    /// nothing about its neighbours.
    #[inline(never)]
    fn make(&self, from: u64, level: u32, budget: &mut Budget) -> Result<Placed, NoMemory> {
        if !is_prepared(level, 0, budget) {
            return Ok(Placed::Again);
        }
        if sigma0::make(self.src, from)? {
            budget.spend(cost::ROOT);
            return Ok(Placed::Again);
        }
        Ok(Self::pass(from, sigma0::empty_level(from)))
    }

    /// Goes to the end of the entry of `level` around `from`.
    fn pass(from: u64, level: u32) -> Placed {
        Placed::Advance(span(level) - (from & (span(level) - 1)))
    }

    /// The largest page level for a piece; none if the destination is protected.
    #[inline]
    fn level(&self, source: u32, from: u64, to: u64, left: u64) -> Option<u32> {
        let mut level = source;
        loop {
            let size = span(level);
            let fits = (from | to) & (size - 1) == 0 && size <= left;
            if fits && !self.dst.is_protected(to, to + size) {
                return Some(level);
            }
            level = level.checked_sub(1)?;
        }
    }

    /// Maps or grants a piece, or prepares for it.
    #[inline]
    fn place(&mut self, piece: Piece, budget: &mut Budget) -> Result<Placed, NoMemory> {
        match table::find(self.dst, piece.to) {
            Slot::Empty { level, .. }
                if level > piece.level && !is_prepared(level, piece.level, budget) =>
            {
                Ok(Placed::Again)
            }
            Slot::Empty { level, .. } if level >= piece.level => {
                budget.spend(cost::MAP);
                if !self.dst.quota().has(table::split_price(piece.level)) {
                    // Smaller pages: as many of them as it can pay.
                    return self.place(Piece { level: piece.level - 1, ..piece }, budget);
                }
                if self.grant {
                    return self.grant_piece(piece, budget);
                }
                insert(self.dst, piece)?.link_below(piece.node);
                Ok(Placed::Advance(piece.size()))
            }
            Slot::Leaf(there) if self.is_same(piece, there) => {
                Ok(self.extend(piece, there, budget))
            }
            _ => {
                self.flush(self.dst, piece.to, piece.to + piece.size());
                Ok(Placed::Again)
            }
        }
    }

    /// Whether the destination already has this very page from the same source. A grant never
    /// finds it so: a walk may have passed that page and not this one.
    #[inline]
    fn is_same(&self, piece: Piece, there: Leaf) -> bool {
        let inside = piece.to & (span(there.level) - 1);
        !self.grant
            && there.level >= piece.level
            && there.node.is_some_and(|node| node.parent() == Some(piece.node))
            && there.phys() + inside == piece.phys()
            && !there.entry.has(Entry::DYING)
    }

    /// Adds rights to a page that is already mapped.
    fn extend(&self, piece: Piece, there: Leaf, budget: &mut Budget) -> Placed {
        budget.spend(cost::MAP);
        let missing = piece.rights.without(there.entry.rights());
        if !missing.is_empty() {
            if there.level > piece.level {
                budget.spend(cost::SPLIT);
                table::split(self.dst, piece.to, there);
                return Placed::Again;
            }
            quiet(self.dst);
            let (clear, set) = Entry::giving(missing);
            there.table.change(there.index, clear, set);
            tlb::invalidate(self.dst, piece.to);
        }
        Placed::Advance(piece.size())
    }
}

/// Whether there are frames for a page of level `to` where an entry of level `from` is empty: tables, a twin,
/// and one for nodes. Each that is missing is a step; nothing is looked at anew between two of them.
#[inline(never)]
fn is_prepared(from: u32, to: u32, budget: &mut Budget) -> bool {
    while !frames::prepare(u64::from(from - to) + 2) {
        budget.end_step();
        if budget.is_used_up() {
            return false;
        }
    }
    true
}
