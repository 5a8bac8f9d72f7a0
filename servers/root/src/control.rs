//! What operators may ask: tasks, the kernel's records, the machine (`interfaces/tasks.wit`).

use abi::ThreadId;
use abi::inspect::What;
use interfaces::common::Refusal as Why;
use interfaces::tasks::{
    HaltReply, KillReply, Memory, RestartReply, Server, StartReply, State, Task, WaitReply,
};
use proto::{Name, Refusal};
use runtime::service::{Answer, Caller, Room};
use runtime::{Msg, clock, kernel};

use crate::asked::Asked;
use crate::{Root, say};

/// Eight words of the kernel's.
type Record = (u64, u64, u64, u64, u64, u64, u64, u64);

impl Server for Asked<'_> {
    fn describe<'r>(&'r self, _: Caller, index: u64, room: Room<'r>) -> Result<Task<'r>, Why> {
        Ok(self.root.borrow().describe(index, room)?)
    }

    fn start(&self, _: Caller, name: &str, later: StartReply) {
        self.change(
            later.caller(),
            name,
            |root, target| root.start(target).map(|()| false),
            |r| later.answer(r, &mut []),
        );
    }

    fn kill(&self, _: Caller, name: &str, later: KillReply) {
        self.change(later.caller(), name, Root::kill, |r| later.answer(r, &mut []));
    }

    fn restart(&self, _: Caller, name: &str, later: RestartReply) {
        self.change(later.caller(), name, Root::restart, |r| later.answer(r, &mut []));
    }

    fn wait(&self, _: Caller, name: &str, later: WaitReply) {
        let mut root = self.root.borrow_mut();
        let target = root.slot_named(Name::new(name));
        if let Some((later, result)) = root.wait(later, target) {
            self.answer(later.answer(result.map_err(Why::from), &mut []));
        }
    }

    fn memory_use(&self, _: Caller) -> Memory {
        self.root.borrow().memory_use()
    }

    fn inspect(&self, _: Caller, what: u64, index: u64, argument: u64) -> Result<Record, Why> {
        self.allowed()?;
        Ok(inspect(what, index, argument)?)
    }

    fn halt(&self, _: Caller, code: u64, later: HaltReply) {
        match self.allowed() {
            Ok(()) => self.root.borrow_mut().halt(code),
            Err(why) => self.answer(later.answer(Err(why.into()), &mut [])),
        }
    }
}

impl Asked<'_> {
    fn allowed(&self) -> Result<(), Refusal> {
        let root = self.root.borrow();
        let allowed = root.task(self.slot).is_some_and(|task| task.spec.control);
        if allowed { Ok(()) } else { Err(Refusal::NotAllowed) }
    }

    /// Changes the task called `name`; answers, if `from` is there to hear it.
    fn change(
        &self,
        from: ThreadId,
        name: &str,
        change: impl FnOnce(&mut Root, usize) -> Result<bool, Refusal>,
        answer: impl FnOnce(Result<bool, Why>) -> (Caller, Answer<Msg>),
    ) {
        let allowed = self.allowed();
        let mut root = self.root.borrow_mut();
        let target = root.slot_named(Name::new(name)).ok_or(Refusal::Unknown);
        let result = allowed.and(target).and_then(|target| change(&mut root, target));
        if root.sender(from).is_some() {
            self.answer(answer(result.map_err(Why::from)));
        } else if result == Ok(true) {
            // A task that ended itself hears no more.
            say!("root: {name}, which ended itself, is started again.");
        }
    }
}

impl Root {
    fn describe<'r>(&self, index: u64, mut room: Room<'r>) -> Result<Task<'r>, Refusal> {
        let slot = usize::try_from(index).map_err(|_| Refusal::Unknown)?;
        let task = self.task(slot).ok_or(Refusal::Unknown)?;
        let runs = task.state == State::Running;
        Ok(Task {
            name: room.text(format_args!("{}", task.spec.name)),
            state: task.state,
            main: if runs { task.thread(slot, 0) } else { ThreadId::NIL },
            restarts: task.restarts,
            exit_code: task.exit_code,
            again_us: task.again.left_us(clock::now_us()).unwrap_or(0),
        })
    }

    /// The answer to a wait, if it comes now.
    fn wait(
        &mut self,
        later: WaitReply,
        target: Option<usize>,
    ) -> Option<(WaitReply, Result<u64, Refusal>)> {
        let Some(target) = target else { return Some((later, Err(Refusal::Unknown))) };
        let task = self.task(target)?;
        if task.state != State::Running {
            return Some((later, Ok(task.exit_code)));
        }
        let (slot, _) = self.sender(later.caller())?;
        let waiters = &mut self.task_mut(slot)?.waiters;
        let mine = |waiter: &Option<(WaitReply, usize)>| {
            waiter.as_ref().is_some_and(|(known, _)| *known == later)
        };
        let place = waiters.iter().position(mine);
        let Some(place) = place.or_else(|| waiters.iter().position(Option::is_none)) else {
            return Some((later, Err(Refusal::Exhausted)));
        };
        waiters[place] = Some((later, target));
        None
    }

    fn restart(&mut self, target: usize) -> Result<bool, Refusal> {
        self.end(target, State::Killed, 0);
        self.start_again(target)?;
        Ok(true)
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

    fn memory_use(&self) -> Memory {
        let pool = self.pool.as_ref();
        Memory {
            frames: pool.map_or(0, |pool| pool.frames() as u64),
            in_use: pool.map_or(0, |pool| pool.in_use()),
            blocks: self.tasks.iter().flatten().map(|task| task.blocks.bytes_in_use()).sum(),
            pager: self.pager_pool.as_ref().map_or(0, |pool| pool.bytes()),
        }
    }
}

fn inspect(what: u64, index: u64, argument: u64) -> Result<Record, Refusal> {
    let kinds = [What::Thread, What::Space, What::Mapping, What::Kernel, What::Check];
    let what = kinds.into_iter().find(|kind| *kind as u64 == what).ok_or(Refusal::BadArgument)?;
    Ok(kernel::inspect(what, index, argument).ok_or(Refusal::Unknown)?.into())
}
