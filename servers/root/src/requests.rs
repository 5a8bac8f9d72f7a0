//! What any task may ask: what interfaces describe, and, packed by hand, what is answered with
//! mappings: ports, memory, raw files.

use abi::{Fpage, MapItem, Rights, ThreadId};
use proto::root as op;
use proto::{Name, Refusal};
use runtime::service::Answer;
use runtime::{Msg, direct, sigma0};

use crate::{Reply, Root, outcome, refused};

impl Root {
    /// Answers a request of a thread of the task in `slot`.
    pub fn request(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        match self.ask(slot, from, msg) {
            Answer::Unknown => {}
            answer => return answer.message().map(|(answer, _)| answer),
        }
        match msg.label() {
            op::PORTS => outcome(self.ports(slot, msg.mr[0], msg.mr[1])),
            op::MEMORY => outcome(self.memory(slot, msg.mr[0], msg.mr[1])),
            op::MODULE => {
                outcome(self.module(slot, Name::from_words(msg.mr[0], msg.mr[1]), msg.mr[2]))
            }
            op::FRAMEBUFFER => outcome(self.framebuffer(slot)),
            _ => refused(Refusal::BadArgument),
        }
    }

    /// Maps a part of a raw file, to a task whose description uses it.
    fn module(&mut self, slot: usize, name: Name, offset: u64) -> Result<Msg, Refusal> {
        if !self.task(slot).ok_or(Refusal::Unknown)?.spec.may_use(name) {
            return Err(Refusal::NotAllowed);
        }
        self.modules.map(name, offset)
    }

    /// Maps the I/O flexpages that make up a range of ports.
    fn ports(&mut self, slot: usize, base: u64, count: u64) -> Result<Msg, Refusal> {
        let task = self.task(slot).ok_or(Refusal::Unknown)?;
        if !task.spec.ports.hold(base, count) {
            return Err(Refusal::NotAllowed);
        }
        let (mut reply, mut at, end) = (Msg::new(proto::OK), base, base + count);
        while at < end {
            let bits = at.trailing_zeros().min((end - at).ilog2());
            let own = at & !7 == u64::from(direct::BASE) || sigma0::ports(at as u16, bits);
            if !own || reply.tag.typed() >= 60 {
                return Err(Refusal::Taken);
            }
            reply =
                reply.map(MapItem::map(Fpage::io(at as u16, bits).with_rights(Rights::RWX), at));
            at += 1 << bits;
        }
        Ok(reply)
    }

    /// A block of contiguous memory: ordinary, or a device's that the description names.
    fn memory(&mut self, slot: usize, bits: u64, physical: u64) -> Result<Msg, Refusal> {
        let task = self.task_mut(slot).ok_or(Refusal::Unknown)?;
        let bits = u32::try_from(bits)
            .ok()
            .filter(|bits| (12..=30).contains(bits))
            .ok_or(Refusal::BadArgument)?;
        let physical = Some(physical).filter(|at| *at != op::ANYWHERE).map(|at| at >> bits << bits);
        if physical.is_some_and(|base| !task.spec.mmio.hold(base, 1 << bits)) {
            return Err(Refusal::NotAllowed);
        }
        let limit = task.spec.memory * 4096;
        let (base, used) = task.blocks.take(bits, physical, limit)?;
        // Ordinary memory may come to hold programs (a pager's, the Unix server's).
        let rights = if physical.is_some() { Rights::RW } else { Rights::RWX };
        let item = MapItem::map(Fpage::memory(base, bits, rights), 0);
        Ok(Msg::new(proto::OK).word(base).word(used.into()).map(item))
    }
}
