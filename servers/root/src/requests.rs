//! What any task may ask: names, threads, spaces, and its own resources.

use abi::{Fpage, MapItem, Rights, ThreadId};
use proto::root::{self as op, State};
use proto::{Name, Refusal, layout};
use runtime::service::Answer;
use runtime::{Msg, clock, direct, kernel, root as client, schedule, sigma0};

use crate::faults::REPORT_BYTES;
use crate::task::{create_space, place};
use crate::{Reply, Root, clan, done, outcome, refused, say};

/// Kernel memory of a further space of a task, pages, out of the task's own.
const SPACE_QUOTA: u64 = 48;

impl Root {
    /// Answers a request of thread `index` of the task in `slot`.
    pub fn request(&mut self, slot: usize, index: u64, from: ThreadId, msg: &Msg) -> Reply {
        match self.about_names(slot, from, msg) {
            Answer::Unknown => {}
            answer => return answer.message().map(|(answer, _)| answer),
        }
        match self.about_tasks(slot, from, msg) {
            Answer::Unknown => {}
            answer => return answer.message().map(|(answer, _)| answer),
        }
        let named = ThreadId(msg.mr[0]);
        match msg.label() {
            op::PORTS => outcome(self.ports(slot, msg.mr[0], msg.mr[1])),
            op::IRQ => outcome(self.irq(slot, from, msg.mr[0])),
            op::MEMORY => outcome(self.memory(slot, msg.mr[0], msg.mr[1])),
            op::CREATE_THREAD => outcome(self.create_thread(slot, from, index, false)),
            op::CREATE_SPACE => outcome(self.create_thread(slot, from, index, true)),
            op::DELETE_THREAD => self.delete_request(slot, from, named),
            op::IS_ALIVE => {
                let alive = self.task(slot).is_some_and(|task| task.owns(slot, named));
                Some(Msg::new(proto::OK).word(alive.into()))
            }
            op::PRIORITY => outcome(self.priority(slot, named, msg.mr[1])),
            op::EXIT => self.exit(slot, from, msg.mr[0]),
            op::LOG => self.log(slot, from, msg),
            op::ARGUMENTS => Some(client::text_message(proto::OK, self.task(slot)?.spec.args())),
            op::MODULE => {
                outcome(self.module(slot, Name::from_words(msg.mr[0], msg.mr[1]), msg.mr[2]))
            }
            op::DRAINED => self.drained(from),
            op::TASK_IMAGE if self.pager == Some(slot) => outcome(self.task_image(named)),
            op::BAD_FAULT => self.reported_fault(slot, msg),
            op::POOL_BYTES if self.pager == Some(slot) => Some(
                Msg::new(proto::OK).word(self.pager_pool.as_ref().map_or(0, |pool| pool.bytes())),
            ),
            _ => refused(Refusal::BadArgument),
        }
    }

    /// A task's thread gets another priority, at most that of the task.
    fn priority(&mut self, slot: usize, thread: ThreadId, priority: u64) -> Result<Msg, Refusal> {
        let task = self.task(slot).filter(|task| task.owns(slot, thread));
        let most = task.ok_or(Refusal::Unknown)?.spec.priority;
        let priority = u8::try_from(priority).ok().filter(|priority| *priority <= most);
        schedule::set_priority(thread, priority.ok_or(Refusal::NotAllowed)?)
            .map_err(|_| Refusal::BadArgument)?;
        Ok(Msg::new(proto::OK))
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
        if apart {
            // What its spaces need, a task has to have itself.
            let given = kernel::move_quota(main, -(SPACE_QUOTA as i64));
            given.map_err(|_| Refusal::Exhausted)?;
        }
        let made = if apart {
            create_space(thread, layout::utcb_location(0), SPACE_QUOTA)
                .and_then(|()| kernel::limit(thread, None, Some(ceilings)).map(|_| ()))
                .and_then(|()| kernel::set_pager(thread, thread, from, !0))
        } else {
            kernel::create_active(thread, main, ThreadId::ROOT, pager, layout::utcb_location(new))
        };
        let made = made
            .and_then(|()| schedule::set_priority(thread, task.spec.priority))
            .and_then(|()| place(thread, &task.spec));
        if made.is_err() {
            let _ = kernel::delete(thread);
            give_back(main, apart);
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
        let Some(task) = self.task_mut(slot) else { return };
        let apart = task.apart & 1 << index != 0;
        task.threads &= !(1 << index);
        task.apart &= !(1 << index);
        task.forget(|gone| gone == thread);
        let main = task.thread(slot, 0);
        let _ = kernel::delete(thread);
        give_back(main, apart);
    }

    /// The task is over by its own decision.
    fn exit(&mut self, slot: usize, from: ThreadId, code: u64) -> Reply {
        match code {
            0 => self.end(slot, State::Exited, code),
            client::PANICKED => {
                if self.may_report(slot, REPORT_BYTES) {
                    self.tell_calls(slot, from);
                }
                self.crash(slot);
            }
            _ => {
                let name = self.task(slot)?.spec.name;
                say!("root: {name} ended with code {code}.");
                self.end(slot, State::Exited, code);
            }
        }
        None
    }

    /// Shows a task's text, each line behind its name; the answer comes when the console has it.
    fn log(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        let mut buffer = [0; proto::console::WORD_BYTES];
        let len = client::message_text(msg, &mut buffer);
        let task = self.task_mut(slot)?;
        if !task.log.is_free() {
            return refused(Refusal::Exhausted);
        }
        if len > 0 && self.may_report(slot, len as u64) {
            let task = self.task_mut(slot)?;
            task.log.put(from, task.spec.name.as_str(), &buffer[..len]);
            if self.is_console(from) {
                // It waits for this answer, and would take its own text for it.
                self.task_mut(slot)?.log.write_directly();
                return done();
            }
            return None;
        }
        done()
    }

    /// Whether `bytes` more may be written on behalf of the task in `slot`; says how many
    /// messages were lost before.
    pub fn may_report(&mut self, slot: usize, bytes: u64) -> bool {
        let Some(task) = self.task_mut(slot) else { return false };
        let name = task.spec.name;
        match task.allowance.take(bytes, clock::now_us()) {
            Some(0) => true,
            Some(dropped) => {
                say!("root: {dropped} messages of {name} are not shown: it writes too much.");
                true
            }
            None => false,
        }
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

/// A space of the task of `main` is gone, if it was `apart`: its kernel memory is the task's again.
fn give_back(main: ThreadId, apart: bool) {
    if apart {
        let _ = kernel::move_quota(main, SPACE_QUOTA as i64);
    }
}
