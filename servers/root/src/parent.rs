//! What a task asks its parent for itself (`interfaces/parent.wit`): threads, interrupts, a place in
//! the log, its end.

use abi::ThreadId;
use interfaces::common::Refusal as Why;
use interfaces::parent::{Block, DeleteThreadReply, LogReply, Made, Part, Picture, Server};
use proto::root::State;
use proto::{Name, Refusal, layout};
use runtime::service::{Answer, Caller, Mappings, Room};
use runtime::{Msg, clock, kernel, kip, root as client, schedule};

use crate::asked::Asked;
use crate::faults::REPORT_BYTES;
use crate::task::{create_space, place};
use crate::{Root, say};

/// Kernel memory of a further space of a task, pages, out of the task's own.
const SPACE_QUOTA: u64 = 48;

impl Server for Asked<'_> {
    fn ports(&self, _: Caller, first: u64, count: u64, to: &mut Mappings) -> Result<(), Why> {
        Ok(self.root.borrow_mut().ports(self.slot, first, count, to)?)
    }

    fn memory(
        &self,
        _: Caller,
        bits: u32,
        physical: Option<u64>,
        to: &mut Mappings,
    ) -> Result<Block, Why> {
        Ok(self.root.borrow_mut().memory(self.slot, bits, physical, to)?)
    }

    fn file(&self, _: Caller, name: &str, offset: u64, to: &mut Mappings) -> Result<Part, Why> {
        Ok(self.root.borrow_mut().module(self.slot, Name::new(name), offset, to)?)
    }

    fn framebuffer(&self, _: Caller, to: &mut Mappings) -> Result<Picture, Why> {
        Ok(self.root.borrow_mut().framebuffer(self.slot, to)?)
    }

    fn create_thread(&self, from: Caller) -> Result<Made, Why> {
        Ok(self.root.borrow_mut().create_thread(self.slot, from, false)?)
    }

    fn create_space(&self, from: Caller) -> Result<Made, Why> {
        Ok(self.root.borrow_mut().create_thread(self.slot, from, true)?)
    }

    fn delete_thread(&self, from: Caller, id: ThreadId, later: DeleteThreadReply) {
        let mut root = self.root.borrow_mut();
        let result = root.delete_request(self.slot, from, id);
        if root.sender(from).is_some() {
            self.answer(later.answer(result.map_err(Why::from), &mut []));
        }
    }

    fn is_alive(&self, _: Caller, id: ThreadId) -> bool {
        self.root.borrow().task(self.slot).is_some_and(|task| task.owns(self.slot, id))
    }

    fn set_priority(&self, _: Caller, id: ThreadId, priority: u8) -> Result<(), Why> {
        Ok(self.root.borrow().priority(self.slot, id, priority)?)
    }

    fn set_processor(&self, _: Caller, id: ThreadId, number: u32) -> Result<(), Why> {
        Ok(self.root.borrow().processor(self.slot, id, number)?)
    }

    fn attach_interrupt(&self, from: Caller, line: u32) -> Result<(), Why> {
        Ok(self.root.borrow_mut().irq(self.slot, from, line)?)
    }

    fn arguments<'r>(&'r self, _: Caller, mut room: Room<'r>) -> &'r [u8] {
        let root = self.root.borrow();
        root.task(self.slot).map_or(&[], |task| room.copy(task.spec.args()))
    }

    fn log(&self, _: Caller, text: &[u8], later: LogReply) {
        let now = self.root.borrow_mut().log(self.slot, later, text);
        now.into_iter().for_each(|answer| self.answer(answer));
    }

    fn exit(&self, from: Caller, code: u64) {
        self.root.borrow_mut().exit(self.slot, from, code);
    }

    fn drained(&self, from: Caller) {
        self.root.borrow().drained(from);
    }
}

impl Root {
    /// A task's thread gets another priority, at most that of the task.
    fn priority(&self, slot: usize, thread: ThreadId, priority: u8) -> Result<(), Refusal> {
        let task = self.task(slot).filter(|task| task.owns(slot, thread));
        let most = task.ok_or(Refusal::Unknown)?.spec.priority;
        if priority > most {
            return Err(Refusal::NotAllowed);
        }
        schedule::set_priority(thread, priority).map_err(|_| Refusal::BadArgument)
    }

    /// A task's thread runs on processor `number` from now on, if the task's may be everywhere; else it stays.
    fn processor(&self, slot: usize, thread: ThreadId, number: u32) -> Result<(), Refusal> {
        let task = self.task(slot).filter(|task| task.owns(slot, thread));
        let spec = &task.ok_or(Refusal::Unknown)?.spec;
        if !spec.everywhere && number != spec.processor {
            return Err(Refusal::NotAllowed);
        }
        if number >= kip::get().processors() {
            return Err(Refusal::BadArgument);
        }
        schedule::set_processor(thread, number).map_err(|_| Refusal::Kernel)
    }

    /// Interrupts of `line` become messages to `from`: to one thread, until it ends.
    fn irq(&mut self, slot: usize, from: ThreadId, line: u32) -> Result<(), Refusal> {
        let task = self.task_mut(slot).ok_or(Refusal::Unknown)?;
        let place = task.spec.irqs().iter().position(|known| *known == line);
        let handler = place.and_then(|at| task.handlers.get_mut(at)).ok_or(Refusal::NotAllowed)?;
        if handler.is_some() {
            return Err(Refusal::Taken);
        }
        kernel::attach_irq(line, from).map_err(|_| Refusal::Kernel)?;
        *handler = Some(from);
        Ok(())
    }

    /// A further thread for the task: in its space, or in one of its own (paged
    /// by `from`, which starts it).
    fn create_thread(&mut self, slot: usize, from: ThreadId, apart: bool) -> Result<Made, Refusal> {
        let (_, index) = self.sender(from).ok_or(Refusal::Unknown)?;
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
        Ok(Made { id: thread, index: new })
    }

    /// Whether a thread of a task is deleted; the task's first one ends the task.
    fn delete_request(
        &mut self,
        slot: usize,
        from: ThreadId,
        thread: ThreadId,
    ) -> Result<(), Refusal> {
        if !self.task(slot).is_some_and(|task| task.owns(slot, thread)) {
            return Err(Refusal::Unknown);
        }
        if layout::slot_of(thread.number()).is_some_and(|(_, index)| index == 0) {
            self.exit(slot, from, 0);
        } else {
            self.delete_thread(slot, thread);
        }
        Ok(())
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
    fn exit(&mut self, slot: usize, from: ThreadId, code: u64) {
        match code {
            0 => self.end(slot, State::Exited, code),
            client::PANICKED => {
                if self.may_report(slot, REPORT_BYTES) {
                    self.tell_calls(slot, from);
                }
                self.crash(slot);
            }
            _ => {
                if let Some(task) = self.task(slot) {
                    say!("root: {} ended with code {code}.", task.spec.name);
                }
                self.end(slot, State::Exited, code);
            }
        }
    }

    /// Shows a task's text, each line behind its name; the answer comes when the console has it.
    fn log(&mut self, slot: usize, later: LogReply, text: &[u8]) -> Option<(Caller, Answer<Msg>)> {
        let from = later.caller();
        let task = self.task_mut(slot)?;
        if !task.log.is_free() {
            return Some(later.answer(Err(Why::Exhausted), &mut []));
        }
        if text.is_empty() || !self.may_report(slot, text.len() as u64) {
            return Some(later.answer(Ok(()), &mut []));
        }
        let task = self.task_mut(slot)?;
        task.log.put(later, task.spec.name.as_str(), text);
        if self.is_console(from) {
            // It waits for this answer, and would take its own text for it.
            let later = self.task_mut(slot)?.log.write_directly()?;
            return Some(later.answer(Ok(()), &mut []));
        }
        None
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
}

/// A space of the task of `main` is gone, if it was `apart`: its kernel memory is the task's again.
fn give_back(main: ThreadId, apart: bool) {
    if apart {
        let _ = kernel::move_quota(main, SPACE_QUOTA as i64);
    }
}
