//! What any task may ask: names, threads, spaces, and its own resources.

use abi::{Fpage, MapItem, Rights, ThreadId};
use proto::root::{self as op, State};
use proto::{Name, Refusal, layout};
use runtime::{Msg, direct, kernel, root as client, schedule, sigma0};

use crate::task::create_space;
use crate::{Reply, Root, clan, done, outcome, refused};

/// Kernel memory of a further space of a task, pages.
const SPACE_QUOTA: u64 = 48;

impl Root {
    /// Answers a request of thread `index` of the task in `slot`.
    pub fn request(&mut self, slot: usize, index: u64, from: ThreadId, msg: &Msg) -> Reply {
        match msg.label() {
            op::REGISTER => self.register(slot, from, Name::from_words(msg.mr[0], msg.mr[1])),
            op::LOOKUP => self.lookup(slot, Name::from_words(msg.mr[0], msg.mr[1])),
            op::PORTS => outcome(self.ports(slot, msg.mr[0], msg.mr[1])),
            op::IRQ => outcome(self.irq(slot, from, msg.mr[0])),
            op::MEMORY => outcome(self.memory(slot, msg.mr[0], msg.mr[1])),
            op::CREATE_THREAD => outcome(self.create_thread(slot, from, index, false)),
            op::CREATE_SPACE => outcome(self.create_thread(slot, from, index, true)),
            op::DELETE_THREAD => self.delete_request(slot, from, ThreadId(msg.mr[0])),
            op::IS_ALIVE => {
                let alive =
                    self.task(slot).is_some_and(|task| task.owns(slot, ThreadId(msg.mr[0])));
                Some(Msg::new(proto::OK).word(alive.into()))
            }
            op::EXIT => self.exit(slot, from, msg.mr[0]),
            op::LOG => self.log(slot, msg),
            op::ARGUMENTS => Some(client::text_message(proto::OK, self.task(slot)?.spec.args())),
            op::MODULE => {
                outcome(self.modules.map(Name::from_words(msg.mr[0], msg.mr[1]), msg.mr[2]))
            }
            op::CLIENT => outcome(self.describe_client(slot, ThreadId(msg.mr[0]))),
            op::TASK_IMAGE if self.pager == Some(slot) => {
                outcome(self.task_image(ThreadId(msg.mr[0])))
            }
            op::BAD_FAULT => self.reported_fault(slot, msg),
            op::POOL_BYTES if self.pager == Some(slot) => Some(
                Msg::new(proto::OK).word(self.pager_pool.as_ref().map_or(0, |pool| pool.bytes())),
            ),
            op::TASK..op::TASK_IMAGE => self.control(slot, from, msg),
            _ => refused(Refusal::BadArgument),
        }
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

    /// Interrupts of `line` become messages to `from`: to one thread, until it ends.
    fn irq(&mut self, slot: usize, from: ThreadId, line: u64) -> Result<Msg, Refusal> {
        let task = self.task_mut(slot).ok_or(Refusal::Unknown)?;
        let line = u32::try_from(line)
            .ok()
            .filter(|line| task.spec.may_irq(*line))
            .ok_or(Refusal::NotAllowed)?;
        let place = task.spec.irqs().iter().position(|known| *known == line);
        let handler = place.and_then(|at| task.handlers.get_mut(at)).ok_or(Refusal::NotAllowed)?;
        if handler.is_some() {
            return Err(Refusal::Taken);
        }
        kernel::attach_irq(line, from).map_err(|_| Refusal::Kernel)?;
        *handler = Some(from);
        Ok(Msg::new(proto::OK))
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

    /// A further thread for the task: in its space, or in one of its own (paged
    /// by `from`, which starts it).
    fn create_thread(
        &mut self,
        slot: usize,
        from: ThreadId,
        index: u64,
        apart: bool,
    ) -> Result<Msg, Refusal> {
        let pager = self.pager_of(slot);
        let task = self.task_mut(slot).ok_or(Refusal::Unknown)?;
        if task.apart & 1 << index != 0 {
            return Err(Refusal::NotAllowed);
        }
        let new = task.next_index().ok_or(Refusal::Exhausted)?;
        let (main, thread) = (task.thread(slot, 0), task.thread(slot, new));
        let ceilings = task.ceilings();
        let made = if apart {
            create_space(thread, layout::utcb_location(0), SPACE_QUOTA)
                .and_then(|()| kernel::limit(thread, None, Some(ceilings)).map(|_| ()))
                .and_then(|()| kernel::set_pager(thread, thread, from, !0))
        } else {
            kernel::create_active(thread, main, ThreadId::ROOT, pager, layout::utcb_location(new))
        };
        let made = made.and_then(|()| schedule::set_priority(thread, task.spec.priority));
        if made.is_err() {
            let _ = kernel::delete(thread);
            return Err(Refusal::Kernel);
        }
        task.threads |= 1 << new;
        task.apart |= u16::from(apart) << new;
        Ok(Msg::new(proto::OK).word(thread.0).word(new))
    }

    fn delete_request(&mut self, slot: usize, from: ThreadId, thread: ThreadId) -> Reply {
        if !self.task(slot)?.owns(slot, thread) {
            return refused(Refusal::Unknown);
        }
        if layout::slot_of(thread.number()).is_some_and(|(_, index)| index == 0) {
            return self.exit(slot, from, 0);
        }
        self.delete_thread(slot, thread);
        if thread == from { None } else { done() }
    }

    /// Deletes a thread of the task in `slot` that is not its main thread.
    pub fn delete_thread(&mut self, slot: usize, thread: ThreadId) {
        let Some((_, index)) = layout::slot_of(thread.number()) else { return };
        if let Some(task) = self.task_mut(slot) {
            task.threads &= !(1 << index);
            task.apart &= !(1 << index);
            task.forget(|gone| gone == thread);
        }
        let _ = kernel::delete(thread);
    }

    /// The task is over by its own decision.
    fn exit(&mut self, slot: usize, from: ThreadId, code: u64) -> Reply {
        match code {
            0 => self.end(slot, State::Exited, code),
            client::PANICKED => {
                self.tell_calls(slot, from);
                self.crash(slot);
            }
            _ => {
                let name = self.task(slot)?.spec.name;
                runtime::direct_println!("root: {name} ended with code {code}.");
                self.end(slot, State::Exited, code);
            }
        }
        None
    }

    /// Shows a task's text, each line behind its name.
    fn log(&mut self, slot: usize, msg: &Msg) -> Reply {
        let mut buffer = [0; proto::console::WORD_BYTES];
        let len = client::message_text(msg, &mut buffer);
        let name = self.task(slot)?.spec.name;
        let text = core::str::from_utf8(&buffer[..len]).unwrap_or("(text that is not UTF-8)");
        for line in text.lines() {
            runtime::direct_println!("{name}: {line}");
        }
        done()
    }

    /// What the pager needs to know about the task of `thread`.
    fn task_image(&self, thread: ThreadId) -> Result<Msg, Refusal> {
        let (slot, _) = self.sender(thread).ok_or(Refusal::Unknown)?;
        let task = self.task(slot).filter(|task| task.modules.is_some()).ok_or(Refusal::Unknown)?;
        let image = &task.image;
        let words = [
            image.phys,
            image.virt,
            image.text,
            image.data,
            image.bss,
            task.spec.memory,
            task.generation,
            clan::of_slot(slot).word(),
        ];
        Ok(Msg::new(proto::OK).words(&words))
    }
}
