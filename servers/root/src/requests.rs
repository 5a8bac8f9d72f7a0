//! What any task may ask: what interfaces describe, and what is answered with mappings: ports, memory, raw files.

use abi::{Fpage, MapItem, Rights, ThreadId};
use interfaces::parent::{Block, Part};
use proto::{Name, Refusal};
use runtime::service::{Answer, Mappings};
use runtime::{Msg, direct, sigma0};

use crate::{Reply, Root, refused};

impl Root {
    /// Answers a request of a thread of the task in `slot`.
    pub fn request(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        match self.ask(slot, from, msg) {
            Answer::Unknown => refused(Refusal::BadArgument),
            answer => answer.message().map(|(answer, _)| answer),
        }
    }

    /// Maps a part of a raw file, to a task whose description uses it.
    pub fn module(
        &mut self,
        slot: usize,
        name: Name,
        offset: u64,
        mappings: &mut Mappings,
    ) -> Result<Part, Refusal> {
        if !self.task(slot).ok_or(Refusal::Unknown)?.spec.may_use(name) {
            return Err(Refusal::NotAllowed);
        }
        self.modules.map(name, offset, mappings)
    }

    /// Maps the I/O flexpages that make up a range of ports.
    pub fn ports(
        &mut self,
        slot: usize,
        base: u64,
        count: u64,
        mappings: &mut Mappings,
    ) -> Result<(), Refusal> {
        let task = self.task(slot).ok_or(Refusal::Unknown)?;
        if !task.spec.ports.hold(base, count) {
            return Err(Refusal::NotAllowed);
        }
        let (mut at, end) = (base, base + count);
        while at < end {
            let bits = at.trailing_zeros().min((end - at).ilog2());
            let own = at & !7 == u64::from(direct::BASE) || sigma0::ports(at as u16, bits);
            if !own {
                return Err(Refusal::Taken);
            }
            let item = MapItem::map(Fpage::io(at as u16, bits).with_rights(Rights::RWX), at);
            mappings.map(item).map_err(|_| Refusal::Taken)?;
            at += 1 << bits;
        }
        Ok(())
    }

    /// A block of contiguous memory: ordinary, or a device's that the description names.
    pub fn memory(
        &mut self,
        slot: usize,
        bits: u32,
        physical: Option<u64>,
        mappings: &mut Mappings,
    ) -> Result<Block, Refusal> {
        let task = self.task_mut(slot).ok_or(Refusal::Unknown)?;
        if !(12..=30).contains(&bits) {
            return Err(Refusal::BadArgument);
        }
        let physical = physical.map(|at| at >> bits << bits);
        if physical.is_some_and(|base| !task.spec.mmio.hold(base, 1 << bits)) {
            return Err(Refusal::NotAllowed);
        }
        let limit = task.spec.memory * 4096;
        let (base, used) = task.blocks.take(bits, physical, limit)?;
        // Ordinary memory may come to hold programs (a pager's, the Unix server's).
        let rights = if physical.is_some() { Rights::RW } else { Rights::RWX };
        let item = MapItem::map(Fpage::memory(base, bits, rights), 0);
        mappings.map(item).map_err(|_| Refusal::Taken)?;
        Ok(Block { physical: base, is_used: used })
    }
}
