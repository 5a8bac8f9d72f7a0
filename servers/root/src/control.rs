//! What the monitor may ask: tasks, the kernel's records, the machine.

use abi::ThreadId;
use abi::inspect::What;
use proto::root::{self as op, State};
use proto::{Name, Refusal};
use runtime::{Msg, clock, kernel};

use crate::{Reply, Root, outcome, refused, say};

impl Root {
    /// Answers a request about other tasks.
    pub fn control(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Reply {
        let allowed = self.task(slot)?.spec.control;
        let target = self.slot_named(Name::from_words(msg.mr[0], msg.mr[1]));
        match msg.label() {
            op::TASK => outcome(self.describe(msg.mr[0])),
            op::WAIT => self.wait(from, target),
            op::MEMORY_USE => Some(self.memory_use()),
            _ if !allowed => refused(Refusal::NotAllowed),
            op::START | op::KILL | op::RESTART => {
                let Some(target) = target else { return refused(Refusal::Unknown) };
                let result = self.change(msg.label(), target);
                if self.sender(from).is_some() {
                    return outcome(result);
                }
                // A task that ended itself hears no more.
                if result.is_ok_and(|answer| answer.mr[0] == 1) {
                    let name = self.task(target)?.spec.name;
                    say!("root: {name}, which ended itself, is started again.");
                }
                None
            }
            op::INSPECT => outcome(inspect(msg.mr[0], msg.mr[1], msg.mr[2])),
            op::HALT => self.halt(msg.mr[0]),
            _ => refused(Refusal::BadArgument),
        }
    }

    fn describe(&self, index: u64) -> Result<Msg, Refusal> {
        let slot = usize::try_from(index).map_err(|_| Refusal::Unknown)?;
        let task = self.task(slot).ok_or(Refusal::Unknown)?;
        let main = if task.state == State::Running { task.thread(slot, 0).0 } else { 0 };
        let state = task.state as u64;
        let left_us = task.again.left_us(clock::now_us()).unwrap_or(0);
        let reply = Msg::new(proto::OK).words(&task.spec.name.words());
        Ok(reply.words(&[state, main, task.restarts, task.exit_code, left_us]))
    }

    fn wait(&mut self, from: ThreadId, target: Option<usize>) -> Reply {
        let Some(target) = target else { return refused(Refusal::Unknown) };
        let task = self.task(target)?;
        if task.state != State::Running {
            return Some(Msg::new(proto::OK).word(task.exit_code));
        }
        let (slot, _) = self.sender(from)?;
        let waiters = &mut self.task_mut(slot)?.waiters;
        let mine = waiters.iter().position(|waiter| waiter.is_some_and(|(known, _)| known == from));
        let free = || waiters.iter().position(Option::is_none);
        let Some(place) = mine.or_else(free) else { return refused(Refusal::Exhausted) };
        waiters[place] = Some((from, target));
        None
    }

    fn change(&mut self, what: u64, target: usize) -> Result<Msg, Refusal> {
        let started_again = match what {
            op::START => {
                self.start(target)?;
                false
            }
            op::RESTART => {
                self.end(target, State::Killed, 0);
                self.start_again(target)?;
                true
            }
            _ => self.kill(target)?,
        };
        Ok(Msg::new(proto::OK).word(started_again.into()))
    }

    /// Ends the task in `target`. A supervised one is started again: people need
    /// their console, tasks their pager. Returns whether it was.
    fn kill(&mut self, target: usize) -> Result<bool, Refusal> {
        let task = self.task(target).ok_or(Refusal::Unknown)?;
        let supervised = task.spec.restart;
        if task.state == State::Waiting {
            let task = self.task_mut(target).ok_or(Refusal::Unknown)?;
            task.again.settle();
            task.state = State::Killed;
            return Ok(false);
        }
        if task.state != State::Running {
            return Err(Refusal::Idle);
        }
        if !supervised && self.pager == Some(target) && self.has_clients() {
            return Err(Refusal::Needed);
        }
        self.end(target, State::Killed, 0);
        if supervised {
            self.start_again(target)?;
        }
        Ok(supervised)
    }

    fn memory_use(&self) -> Msg {
        let own = self.pool.as_ref().map_or([0, 0], |pool| [pool.frames() as u64, pool.in_use()]);
        let blocks = self.tasks.iter().flatten().map(|task| task.blocks.bytes_in_use()).sum();
        let pager = self.pager_pool.as_ref().map_or(0, |pool| pool.bytes());
        Msg::new(proto::OK).words(&own).word(blocks).word(pager)
    }
}

fn inspect(what: u64, index: u64, argument: u64) -> Result<Msg, Refusal> {
    let kinds = [What::Thread, What::Space, What::Mapping, What::Kernel, What::Check];
    let what = kinds.into_iter().find(|kind| *kind as u64 == what).ok_or(Refusal::BadArgument)?;
    let record = kernel::inspect(what, index, argument).ok_or(Refusal::Unknown)?;
    Ok(Msg::new(proto::OK).words(&record))
}
