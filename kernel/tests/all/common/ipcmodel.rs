//! The rules of IPC (X.2 4), transcribed: who meets whom, who waits, what each
//! partner learns. No queues, no words: a list of threads and the rules.

use abi::{IpcErrorKind, Phase, ThreadId};

/// How long a phase may wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Patience {
    Never,
    Zero,
    Timed,
}

/// Arguments of an IPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipc {
    pub to: Option<ThreadId>,
    /// Receive phase: from whom.
    pub from: Option<ThreadId>,
    pub send: Patience,
    pub receive: Patience,
    /// The message.
    pub word: u64,
}

/// What the last IPC of a thread came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Received { from: ThreadId, word: u64 },
    Sent,
    Failed(IpcErrorKind, Phase),
}

/// Where a thread is in its IPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Ready,
    /// Since `arrival`.
    Sending {
        ipc: Ipc,
        to: ThreadId,
        arrival: u64,
    },
    Receiving {
        from: ThreadId,
        timed: bool,
    },
}

/// One thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    pub id: ThreadId,
    /// Its local id.
    pub local: ThreadId,
    pub space: u32,
    pub alive: bool,
    pub halted: bool,
    pub state: State,
    pub outcome: Option<Outcome>,
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub threads: Vec<Thread>,
    arrivals: u64,
}

impl Model {
    fn index(&self, id: ThreadId) -> Option<usize> {
        self.threads.iter().position(|thread| thread.alive && thread.id == id)
    }

    /// Whether a receiver that names `from` takes a message of `sender`.
    fn fits(&self, receiver: usize, from: ThreadId, sender: usize) -> bool {
        let (receiver, sender) = (&self.threads[receiver], &self.threads[sender]);
        match from {
            ThreadId::ANY => true,
            ThreadId::ANY_LOCAL => receiver.space == sender.space,
            from => from == sender.id,
        }
    }

    fn end(&mut self, who: usize, outcome: Outcome) {
        self.threads[who].state = State::Ready;
        self.threads[who].outcome = Some(outcome);
    }

    fn deliver(&mut self, sender: usize, receiver: usize, word: u64) {
        let near = self.threads[sender].space == self.threads[receiver].space;
        let from = if near { self.threads[sender].local } else { self.threads[sender].id };
        self.end(receiver, Outcome::Received { from, word });
    }

    /// Thread `who`, ready, calls Ipc.
    pub fn ipc(&mut self, who: usize, ipc: Ipc) {
        self.threads[who].outcome = None;
        let Some(to) = ipc.to else { return self.receive(who, ipc) };
        let Some(receiver) = self.index(to) else {
            return self.end(who, Outcome::Failed(IpcErrorKind::NonExisting, Phase::Send));
        };
        match self.threads[receiver].state {
            State::Receiving { from, .. } if self.fits(receiver, from, who) => {
                self.deliver(who, receiver, ipc.word);
                self.receive(who, ipc);
            }
            _ if ipc.send == Patience::Zero => {
                self.end(who, Outcome::Failed(IpcErrorKind::Timeout, Phase::Send))
            }
            _ => {
                self.arrivals += 1;
                self.threads[who].state = State::Sending { ipc, to, arrival: self.arrivals };
            }
        }
    }

    /// The receive phase.
    fn receive(&mut self, who: usize, ipc: Ipc) {
        let Some(from) = ipc.from else { return self.end(who, Outcome::Sent) };
        if from.is_global() && self.index(from).is_none() {
            return self.end(who, Outcome::Failed(IpcErrorKind::NonExisting, Phase::Receive));
        }
        if let Some((sender, theirs)) = self.first_sender(who, from) {
            self.deliver(sender, who, theirs.word);
            return self.receive(sender, theirs);
        }
        match ipc.receive {
            Patience::Zero => self.end(who, Outcome::Failed(IpcErrorKind::Timeout, Phase::Receive)),
            patience => {
                self.threads[who].state =
                    State::Receiving { from, timed: patience == Patience::Timed }
            }
        }
    }

    /// Of those who wait to send to `who` and fit, the one who came first.
    fn first_sender(&self, who: usize, from: ThreadId) -> Option<(usize, Ipc)> {
        let waiting =
            self.threads.iter().enumerate().filter_map(|(index, thread)| match thread.state {
                State::Sending { ipc, to, arrival }
                    if thread.alive && to == self.threads[who].id =>
                {
                    Some((arrival, index, ipc))
                }
                _ => None,
            });
        let first = waiting
            .filter(|(_, sender, _)| self.fits(who, from, *sender))
            .min_by_key(|(arrival, ..)| *arrival);
        first.map(|(_, sender, ipc)| (sender, ipc))
    }

    /// The IPC of `who` ends with `kind` in whatever phase it is.
    fn break_off(&mut self, who: usize, kind: IpcErrorKind) {
        match self.threads[who].state {
            State::Ready => {}
            State::Sending { .. } => self.end(who, Outcome::Failed(kind, Phase::Send)),
            State::Receiving { .. } => self.end(who, Outcome::Failed(kind, Phase::Receive)),
        }
    }

    /// ExchangeRegisters aborts the IPC of `who`.
    pub fn cancel(&mut self, who: usize) {
        self.break_off(who, IpcErrorKind::Cancelled);
    }

    /// All timeouts that are set expire.
    pub fn expire(&mut self) {
        for who in 0..self.threads.len() {
            match self.threads[who].state {
                State::Sending { ipc, .. } if ipc.send == Patience::Timed => {
                    self.break_off(who, IpcErrorKind::Timeout)
                }
                State::Receiving { timed: true, .. } => self.break_off(who, IpcErrorKind::Timeout),
                _ => {}
            }
        }
    }

    /// The id of `who` is no longer anybody's: all IPC with it ends.
    fn forget(&mut self, who: usize) {
        let gone = self.threads[who].id;
        for other in (0..self.threads.len()).filter(|other| *other != who) {
            match self.threads[other].state {
                State::Sending { to, .. } if to == gone => {
                    self.break_off(other, IpcErrorKind::NonExisting)
                }
                State::Receiving { from, .. } if from == gone => {
                    self.break_off(other, IpcErrorKind::NonExisting)
                }
                _ => {}
            }
        }
    }

    /// ThreadControl deletes `who`.
    pub fn delete(&mut self, who: usize) {
        self.forget(who);
        self.threads[who].alive = false;
        self.threads[who].state = State::Ready;
    }

    /// ThreadControl gives `who` another version.
    pub fn rename(&mut self, who: usize, id: ThreadId) {
        self.forget(who);
        self.break_off(who, IpcErrorKind::Cancelled);
        self.threads[who].id = id;
    }

    /// What matters for the future, independent of versions and of what was sent.
    pub fn essence(&self) -> Vec<u64> {
        let name = |id: ThreadId| match id {
            ThreadId::ANY => 9,
            ThreadId::ANY_LOCAL => 8,
            id => self.index(id).map_or(7, |index| index as u64),
        };
        let mut arrivals: Vec<u64> = Vec::new();
        let mut essence: Vec<u64> = self
            .threads
            .iter()
            .map(|thread| {
                let state = match thread.state {
                    State::Ready => 0,
                    State::Receiving { from, timed } => {
                        1 | name(from) << 8 | u64::from(timed) << 16
                    }
                    State::Sending { ipc, to, arrival } => {
                        arrivals.push(arrival);
                        let then = ipc.from.map_or(15, name);
                        2 | name(to) << 8
                            | then << 12
                            | (ipc.send as u64) << 16
                            | (ipc.receive as u64) << 20
                    }
                };
                state << 2 | u64::from(thread.alive) << 1 | u64::from(thread.halted)
            })
            .collect();
        let rank = |arrival: &u64| arrivals.iter().filter(|other| *other < arrival).count() as u64;
        essence.extend(arrivals.iter().map(rank));
        essence
    }
}
