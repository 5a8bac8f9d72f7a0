//! Mapping and granting I/O ports.

use super::budget::Budget;
use super::io::{self, ALL_BITS, end, start};
use super::io_flush::IoRevoke;
use super::node::NodeRef;
use super::ports;
use super::quota::NoMemory;
use super::revoke::Scope;
use super::space::SpaceRef;
use super::window;
use super::{Step, cost};
use abi::{Fpage, MapItem};

/// Moves a range of ports from one space to another; see `map.rs` for the rules.
pub(crate) struct IoMap {
    src: SpaceRef,
    dst: SpaceRef,
    pos: u64,
    end: u64,
    grant: bool,
    /// Something that has to be revoked before going on.
    revoke: Option<IoRevoke>,
}

impl IoMap {
    /// Prepares the operation. If it is a grant the source loses its ports, unless it is σ0.
    pub(crate) fn new(src: SpaceRef, dst: SpaceRef, item: MapItem, window: Fpage) -> Self {
        let transfer = window::ports(item, window);
        let nothing = src == dst || dst.is_sigma0();
        let end = if nothing { transfer.from } else { transfer.from + transfer.len };
        let grant = item.grant && !src.is_sigma0();
        Self { src, dst, pos: transfer.from, end, grant, revoke: None }
    }

    /// Goes on until done or the budget is used up.
    pub(crate) fn step(&mut self, budget: &mut Budget) -> Result<Step, NoMemory> {
        loop {
            if let Some(revoke) = &mut self.revoke {
                if revoke.step(budget) == Step::More {
                    return Ok(Step::More);
                }
                self.revoke = None;
            }
            if self.pos >= self.end {
                return Ok(Step::Done);
            }
            if budget.is_used_up() {
                return Ok(Step::More);
            }
            budget.spend(cost::MAP);
            self.piece(budget)?;
        }
    }

    fn piece(&mut self, budget: &mut Budget) -> Result<(), NoMemory> {
        if self.src.is_sigma0() {
            if ports::prepare(self.src)? == Step::More {
                budget.end_step();
                return Ok(());
            }
            io::sigma0_root(self.src)?;
        }
        let Some(source) = io::find(self.src, self.pos) else {
            self.pos = io::first_in(self.src, self.pos, self.end).map_or(self.end, start);
            return Ok(());
        };
        let high = self.end.min(end(source));
        match io::find(self.dst, self.pos) {
            Some(there) if self.is_same(source, there) => {
                self.mapped(source, there, high.min(end(there)));
            }
            Some(there) => self.flush(self.dst, high.min(end(there))),
            None if ports::prepare(self.dst)? == Step::More => budget.end_step(),
            None => self.insert(source, high)?,
        }
        Ok(())
    }

    /// Whether `there` came from the same place as the new mapping would.
    fn is_same(&self, source: NodeRef, there: NodeRef) -> bool {
        let parent = if self.grant { source.parent() } else { Some(source) };
        parent.is_some() && there.parent() == parent
    }

    /// Maps the largest block at the position that is free and ends by `high`.
    fn insert(&mut self, source: NodeRef, high: u64) -> Result<(), NoMemory> {
        let free = io::first_in(self.dst, self.pos, high).map_or(high, start);
        let room = (free - self.pos).ilog2();
        let bits = room.min((self.pos | 1 << ALL_BITS).trailing_zeros());
        let node = io::insert(self.dst, self.pos, bits)?;
        if self.grant {
            node.link_behind(source);
        } else {
            node.link_below(source);
        }
        self.mapped(source, node, self.pos + (1 << bits));
        Ok(())
    }

    /// The destination has the ports up to `high`; a grant now takes them from the
    /// source. Derived ranges that reach beyond them are cut first, one per round;
    /// one whose space cannot pay for that loses the ports.
    fn mapped(&mut self, source: NodeRef, node: NodeRef, high: u64) {
        if !self.grant {
            self.pos = high;
            return;
        }
        // None of its children is as large.
        let low = self.pos;
        let spans = |node| io::overlaps(node, low, high) && (start(node) < low || high < end(node));
        let spanning = io::deepest(source, spans);
        if spanning != source && io::halve(spanning).is_ok() {
            return;
        }
        for child in io::children(source) {
            if self.pos <= start(child) && end(child) <= high {
                child.unlink();
                child.link_below(node);
            }
        }
        self.flush(self.src, high);
        self.pos = high;
    }

    /// What `space` has from the position to `high` goes first.
    fn flush(&mut self, space: SpaceRef, high: u64) {
        self.revoke = Some(IoRevoke::new(space, self.pos, high, Scope::Own));
    }
}
