//! A distributor and its workers (Wenske 2002, 1.1): a server that lets so many requests be worked on
//! at once and queues the rest. The thread that makes [`Workers`] is the distributor: it takes
//! what comes, and never waits for a request's work. Each worker is a thread of the same task that has one
//! job at a time on its *desk*, and they tell each other by messages when to look there.
//!
//! With [`Way::UserMode`] these messages are local IPC: to hand a job over and to wait for whatever comes next is one
//! of them, to say that it is done and wait for the next job another, and neither enters the kernel if nothing else is
//! going on. [`Way::Kernel`] is for a distributor that must not take part in local IPC, for it costs who does
//! something on each kernel IPC (`lipc/armed-kernel` in `./baton bench lipc`).
//!
//! Workers live where their task does, or on all processors ([`Workers::spread`]). Between processors the same calls of local IPC
//! go through the kernel; a worker that lives where the distributor does goes on without it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use abi::{IpcError, Phase, ThreadId, Time, Timeouts};

use crate::sync::Lock;
use crate::{Msg, ipc, kip, root, thread};

/// Label of the messages between distributor and workers. MR1 of a worker's: which of them it is.
pub const LABEL: u64 = 0x4F0;

/// How distributor and workers tell each other something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By kernel IPC.
    Kernel,
    /// By local IPC: the distributor waits in [`Workers::wait`].
    UserMode,
}

/// How many jobs there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At once: so many threads there are at most.
    pub at_once: usize,
    /// And beside them, in the queue.
    pub queued: usize,
}

/// Names a job until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// What has come to a distributor.
#[derive(Debug)]
pub enum Event<J> {
    /// This job has ended.
    Ended(Ticket, J),
    /// Somebody else has sent this.
    Message(ThreadId, Msg),
}

/// What a distributor and a worker have in common: a job that is to be done, or one that is.
enum Desk<J> {
    Empty,
    ToDo(J),
    Done(J),
}

impl<J> Desk<J> {
    fn take_to_do(&mut self) -> Option<J> {
        let Self::ToDo(_) = self else { return None };
        let Self::ToDo(job) = core::mem::replace(self, Self::Empty) else { return None };
        Some(job)
    }
}

struct Worker<J: 'static> {
    id: ThreadId,
    /// Its name inside this task, which is how its messages come.
    local: ThreadId,
    desk: &'static Lock<Desk<J>>,
    /// What it works on.
    ticket: Option<Ticket>,
    /// Nobody wants that any more.
    interrupted: bool,
}

/// What a worker is told when it is made.
struct Contract<J: 'static> {
    distributor: ThreadId,
    distributor_local: ThreadId,
    index: u64,
    way: Way,
    work: fn(&mut J),
    desk: &'static Lock<Desk<J>>,
}

/// The workers of one distributor. They are made when they are needed, and stay.
pub struct Workers<J: Send + 'static> {
    limits: Limits,
    way: Way,
    /// Over how many processors they are spread; `None`: they are where their task is.
    over: Option<u32>,
    work: fn(&mut J),
    all: Vec<Worker<J>>,
    queue: VecDeque<(Ticket, J)>,
    next: u64,
}

impl<J: Send + 'static> Workers<J> {
    /// No worker yet; each job will be done by `work`, which leaves the result in it.
    #[must_use]
    pub const fn new(limits: Limits, way: Way, work: fn(&mut J)) -> Self {
        Self { limits, way, over: None, work, all: Vec::new(), queue: VecDeque::new(), next: 0 }
    }

    /// The same, with worker i on processor i of those that run, and behind the last one again on the first. Where the
    /// description keeps the task's threads together (no `processors = "all"`) they stay there.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { over: Some(kip::get().processors()), ..self }
    }

    /// Has `job` done, or queues it. With [`Way::UserMode`] it begins at the next [`Workers::wait`].
    ///
    /// # Errors
    /// The job, if there are as many as may be, or no thread can be had.
    pub fn give(&mut self, job: J) -> Result<Ticket, J> {
        if self.free().count() <= self.queue.len() && self.all.len() < self.limits.at_once {
            // Without one more those that there are have to do.
            let _ = self.hire();
        }
        // What waits for the next `wait` is not in the queue yet.
        let may_be_there = self.limits.queued + self.free().count();
        if self.all.is_empty() || self.queue.len() >= may_be_there {
            return Err(job);
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.queue.push_back((ticket, job));
        if self.way == Way::Kernel {
            self.assign_all();
        }
        Ok(ticket)
    }

    /// Hands over what can be, and waits for what comes next. For [`Way::UserMode`].
    pub fn wait(&mut self) -> Event<J> {
        let (from, msg) = self.hand_over();
        match self.ended(from, &msg) {
            Some((ticket, job)) => Event::Ended(ticket, job),
            None => Event::Message(from, msg),
        }
    }

    /// The job that has ended, if that is what the message `msg` of `from` says; the next one of the queue
    /// begins.
    pub fn ended(&mut self, from: ThreadId, msg: &Msg) -> Option<(Ticket, J)> {
        let index = usize::try_from(msg.mr[0]).ok().filter(|_| msg.label() == LABEL)?;
        let worker = self.all.get_mut(index).filter(|worker| worker.local == from)?;
        let ticket = worker.ticket?;
        let Desk::Done(job) = core::mem::replace(&mut *worker.desk.lock(), Desk::Empty) else {
            return None;
        };
        worker.ticket = None;
        if self.way == Way::Kernel {
            self.assign_all();
        }
        Some((ticket, job))
    }

    /// Nobody wants that job any more: one that has not begun is given back, of one that has the IPC is cancelled in
    /// which its worker is.
    pub fn interrupt(&mut self, ticket: Ticket) -> Option<J> {
        if let Some(at) = self.queue.iter().position(|(queued, _)| *queued == ticket) {
            return self.queue.remove(at).map(|(_, job)| job);
        }
        if let Some(worker) = self.all.iter_mut().find(|worker| worker.ticket == Some(ticket)) {
            worker.interrupted = true;
            thread::cancel_ipc(worker.id);
        }
        None
    }

    /// Once more for all that were to be interrupted: one that was about to begin an IPC has heard nothing.
    pub fn interrupt_again(&self) {
        let wanted = |worker: &&Worker<J>| worker.interrupted && worker.ticket.is_some();
        self.all.iter().filter(wanted).for_each(|worker| thread::cancel_ipc(worker.id));
    }

    /// Jobs that are worked on, and jobs in the queue.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        (self.all.len() - self.free().count(), self.queue.len())
    }

    /// Who has nothing to do.
    fn free(&self) -> impl Iterator<Item = usize> {
        (0..self.all.len()).filter(|index| self.all[*index].ticket.is_none())
    }

    fn hire(&mut self) -> Result<(), root::Refusal> {
        let distributor = thread::me();
        let desk: &'static Lock<Desk<J>> = Box::leak(Box::new(Lock::new(Desk::Empty)));
        let contract = Contract {
            distributor,
            distributor_local: thread::other_id(distributor).ok_or(root::Refusal::NoAnswer)?,
            index: self.all.len() as u64,
            way: self.way,
            work: self.work,
            desk,
        };
        let id = match self.over {
            Some(count) => thread::spawn_near(self.all.len() as u32 % count, || contract.keep()),
            None => thread::spawn(|| contract.keep()),
        }?;
        let local = thread::other_id(id).unwrap_or(id);
        self.all.push(Worker { id, local, desk, ticket: None, interrupted: false });
        Ok(())
    }

    /// Puts the first job of the queue on a free desk; whose it is.
    fn assign(&mut self) -> Option<usize> {
        let index = self.free().next()?;
        let (ticket, job) = self.queue.pop_front()?;
        let worker = &mut self.all[index];
        *worker.desk.lock() = Desk::ToDo(job);
        worker.ticket = Some(ticket);
        worker.interrupted = false;
        Some(index)
    }

    fn assign_all(&mut self) {
        while let Some(index) = self.assign() {
            self.all[index].tell();
        }
    }

    /// One message for the last job that can begin, and with it the wait for the next event; jobs before it,
    /// if several can, have one each.
    fn hand_over(&mut self) -> (ThreadId, Msg) {
        let mut last = self.assign();
        while let Some(next) = self.assign() {
            if let Some(index) = last.replace(next) {
                self.all[index].tell();
            }
        }
        if let Some(index) = last {
            let worker = &self.all[index];
            match ipc::local_reply_wait(worker.local, &Msg::new(LABEL)) {
                Ok(event) => return event,
                // It has not come to wait for it yet, or has been interrupted just now.
                Err(IpcError { phase: Phase::Send, .. }) => worker.tell(),
                Err(_) => {}
            }
        }
        loop {
            // By a stub: so a worker can answer in user mode.
            let event = ipc::lipc(ThreadId::NIL, ThreadId::ANY, Timeouts::NEVER, &Msg::default());
            if let Ok(event) = event {
                return event;
            }
        }
    }
}

impl<J> Worker<J> {
    /// Has it look at its desk: it waits for that, or is about to, and does nothing else before.
    fn tell(&self) {
        while ipc::send(self.id, &Msg::new(LABEL)).is_err_and(|error| !root::is_gone(error)) {}
    }
}

impl<J> Contract<J> {
    /// On the worker's thread.
    fn keep(self) {
        self.wait();
        loop {
            let job = self.desk.lock().take_to_do();
            if let Some(mut job) = job {
                (self.work)(&mut job);
                *self.desk.lock() = Desk::Done(job);
            }
            self.report();
        }
    }

    /// Waits for the distributor's word that there is a job.
    fn wait(&self) {
        while ipc::receive(self.distributor, Time::NEVER).is_err() {}
    }

    /// Says that its job is done, and waits for the next.
    fn report(&self) {
        let done = Msg::new(LABEL).word(self.index);
        loop {
            let told = match self.way {
                Way::Kernel => ipc::call(self.distributor, &done),
                Way::UserMode => ipc::local_call(self.distributor_local, &done),
            };
            match told {
                Ok(_) => return,
                // Interrupted too late, when its job was done.
                Err(IpcError { phase: Phase::Receive, .. }) => return self.wait(),
                Err(_) => {}
            }
        }
    }
}
