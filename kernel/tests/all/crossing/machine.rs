//! The machine of the model: threads, inboxes, and the steps of processors.

use std::collections::VecDeque;

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    Send(usize),
    /// Send, and receive the answer.
    Call(usize),
    /// Send, if the other waits.
    Answer(usize),
    Receive,
    Delete(usize),
    /// Another thread's home is to be another processor.
    Move(usize, usize),
}

/// Where a thread is, and why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum At {
    /// At home, and it could run.
    Ready,
    /// At home, in an open wait.
    Waits,
    /// In the inbox of a processor, with its request or on its way home.
    Travels(usize),
    /// At a processor, in the queue of a receiver whose home that is.
    Polls(usize, usize),
    /// At a processor, until a thread whose home that is has come back.
    Pursues(usize, usize),
    Dead,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Item {
    Request(usize),
    /// To its new home, in an open wait or not.
    Settle(usize, bool),
    /// Home, with the request carried out or not.
    Return(usize, bool),
    Recall(usize),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Thread {
    home: usize,
    at: At,
    script: VecDeque<Op>,
    senders: Vec<usize>,
    pursuers: Vec<usize>,
    /// A recall of it is in an inbox.
    recalled: bool,
    /// Where its home is to be, as soon as it is there and at rest.
    wish: Option<usize>,
    /// It has sent an answer to somebody who did not wait.
    pub failed: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Machine {
    pub threads: Vec<Thread>,
    inboxes: Vec<VecDeque<Item>>,
}

impl Machine {
    pub fn new(threads: &[(usize, &[Op])]) -> Self {
        let thread = |(home, script): &(usize, &[Op])| Thread {
            home: *home,
            at: At::Ready,
            script: script.iter().copied().collect(),
            senders: Vec::new(),
            pursuers: Vec::new(),
            recalled: false,
            wish: None,
            failed: false,
        };
        let processors = threads.iter().map(|(home, _)| *home).fold(1, usize::max) + 1;
        Self {
            threads: threads.iter().map(thread).collect(),
            inboxes: vec![VecDeque::new(); processors],
        }
    }

    /// Every state that one step of a processor leads to.
    pub fn next(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for processor in 0..self.inboxes.len() {
            let mut next = self.clone();
            if let Some(item) = next.inboxes[processor].pop_front() {
                next.serve(processor, item);
                all.push(next);
            }
        }
        for (number, thread) in self.threads.iter().enumerate() {
            if thread.at == At::Ready
                && let Some(op) = thread.script.front()
            {
                let mut next = self.clone();
                next.run(number, *op);
                all.push(next);
            }
        }
        all
    }

    fn run(&mut self, own: usize, op: Op) {
        let home = self.threads[own].home;
        match op {
            Op::Receive => self.receive(own),
            Op::Send(other)
            | Op::Call(other)
            | Op::Answer(other)
            | Op::Delete(other)
            | Op::Move(other, _) => match self.threads[other].home {
                // One that is on its way here is asked behind it.
                there if there == home && self.threads[other].at != At::Travels(home) => {
                    self.request(own, op, home)
                }
                there => self.travel(own, there, Item::Request(own)),
            },
        }
    }

    fn receive(&mut self, own: usize) {
        if self.threads[own].senders.is_empty() {
            self.threads[own].at = At::Waits;
            return;
        }
        let (sender, home) = (self.threads[own].senders.remove(0), self.threads[own].home);
        self.threads[own].script.pop_front();
        // The sender is on its way home before the receiver runs.
        self.go_home(sender, home, true);
    }

    fn travel(&mut self, own: usize, to: usize, item: Item) {
        self.threads[own].at = At::Travels(to);
        self.inboxes[to].push_back(item);
    }

    fn serve(&mut self, here: usize, item: Item) {
        match item {
            Item::Request(own) => {
                let op = *self.threads[own].script.front().expect("it has a request");
                self.request(own, op, here);
            }
            Item::Settle(own, waits) => {
                self.threads[own].at = if waits { At::Waits } else { At::Ready };
                if !self.meets_pursuers(own) {
                    self.rest(own);
                }
            }
            Item::Return(own, done) => self.arrive(own, done),
            Item::Recall(own) => self.recall(own, here),
        }
    }

    /// The request of `own` at the home of the thread that it is about.
    fn request(&mut self, own: usize, op: Op, here: usize) {
        match op {
            Op::Receive => unreachable!("nobody is asked"),
            // It has moved: its old home sends the request on.
            Op::Send(of) | Op::Call(of) | Op::Answer(of) | Op::Delete(of) | Op::Move(of, _)
                if self.threads[of].home != here =>
            {
                let home = self.threads[of].home;
                match self.threads[own].home == home {
                    // It is its own home by now: it asks there.
                    true => self.go_home(own, here, false),
                    false => self.travel(own, home, Item::Request(own)),
                }
            }
            Op::Move(of, to) => {
                self.threads[of].wish = Some(to);
                self.rest(of);
                self.go_home(own, here, true);
            }
            Op::Send(to) | Op::Call(to) | Op::Answer(to) => match self.threads[to].at {
                At::Dead => self.go_home(own, here, true),
                At::Waits => {
                    self.go_home(own, here, true);
                    self.threads[to].at = At::Ready;
                    self.threads[to].script.pop_front();
                }
                _ if matches!(op, Op::Answer(_)) => {
                    self.threads[own].failed = true;
                    self.go_home(own, here, true);
                }
                _ => {
                    self.threads[own].at = At::Polls(here, to);
                    self.threads[to].senders.push(own);
                }
            },
            Op::Delete(of) => match self.threads[of].at {
                At::Dead => self.go_home(own, here, true),
                At::Travels(there) | At::Polls(there, _) | At::Pursues(there, _)
                    if there != here || matches!(self.threads[of].at, At::Travels(_)) =>
                {
                    self.threads[own].at = At::Pursues(here, of);
                    self.threads[of].pursuers.push(own);
                    if !std::mem::replace(&mut self.threads[of].recalled, true) {
                        self.inboxes[there].push_back(Item::Recall(of));
                    }
                }
                _ => {
                    self.kill(of, here);
                    self.go_home(own, here, true);
                }
            },
        }
    }

    /// The visit of `own` here ends, if it is here, unless it comes before all who want that.
    fn recall(&mut self, own: usize, here: usize) {
        self.threads[own].recalled = false;
        let first = self.threads[own].pursuers.iter().min().copied();
        match self.threads[own].at {
            At::Polls(there, to) if there == here => {
                self.threads[to].senders.retain(|one| *one != own);
                self.go_home(own, here, false);
            }
            At::Pursues(there, of) if there == here && first.is_some_and(|first| first < own) => {
                self.threads[of].pursuers.retain(|one| *one != own);
                self.go_home(own, here, false);
            }
            _ => {}
        }
    }

    /// `own`, which is in no list, has nothing to do here any more.
    fn go_home(&mut self, own: usize, here: usize, done: bool) {
        match self.threads[own].home {
            home if home == here => self.arrive(own, done),
            home => self.travel(own, home, Item::Return(own, done)),
        }
    }

    /// `own` is at home: whoever has waited for that comes first.
    fn arrive(&mut self, own: usize, done: bool) {
        let op = if done { self.threads[own].script.pop_front() } else { None };
        self.threads[own].at = At::Ready;
        if self.meets_pursuers(own) {
            return;
        }
        if matches!(op, Some(Op::Call(_))) {
            // The receive phase begins here and now.
            self.threads[own].script.push_front(Op::Receive);
            self.receive(own);
        }
        self.rest(own);
    }

    /// `own` is at home: whether somebody has waited for that, to its end.
    fn meets_pursuers(&mut self, own: usize) -> bool {
        let pursuers = std::mem::take(&mut self.threads[own].pursuers);
        if pursuers.is_empty() {
            return false;
        }
        let home = self.threads[own].home;
        self.kill(own, home);
        pursuers.into_iter().for_each(|one| self.go_home(one, home, true));
        true
    }

    /// If `own` is at home and in nobody's list, and is to live elsewhere, it goes there. Who waits
    /// to send to it asks again.
    fn rest(&mut self, own: usize) {
        let (at, home) = (self.threads[own].at, self.threads[own].home);
        let wish = self.threads[own].wish.filter(|_| matches!(at, At::Ready | At::Waits));
        let Some(to) = wish else { return };
        self.threads[own].wish = None;
        if to == home {
            return;
        }
        let senders = std::mem::take(&mut self.threads[own].senders);
        self.travel(own, to, Item::Settle(own, at == At::Waits));
        // From here on requests go there, behind it.
        self.threads[own].home = to;
        senders.into_iter().for_each(|one| self.go_home(one, home, false));
    }

    fn kill(&mut self, own: usize, here: usize) {
        match self.threads[own].at {
            At::Polls(there, to) => {
                assert_eq!(there, here, "a visitor is deleted");
                self.threads[to].senders.retain(|one| *one != own);
            }
            At::Pursues(there, of) => {
                assert_eq!(there, here, "a visitor is deleted");
                self.threads[of].pursuers.retain(|one| *one != own);
            }
            At::Travels(_) => panic!("a thread is deleted that is under way"),
            At::Ready | At::Waits => {}
            At::Dead => panic!("a thread is deleted twice"),
        }
        self.threads[own].at = At::Dead;
        let senders = std::mem::take(&mut self.threads[own].senders);
        senders.into_iter().for_each(|one| self.go_home(one, here, true));
        let pursuers = std::mem::take(&mut self.threads[own].pursuers);
        pursuers.into_iter().for_each(|one| self.go_home(one, here, true));
    }

    /// What holds at any moment.
    pub fn check(&self) {
        for (number, thread) in self.threads.iter().enumerate() {
            let listed = |list: fn(&Thread) -> &Vec<usize>| {
                let all = self.threads.iter().enumerate();
                let holding = all.filter(|(_, one)| list(one).contains(&number));
                holding.map(|(number, _)| number).collect::<Vec<_>>()
            };
            let (polls, pursues) = (listed(|one| &one.senders), listed(|one| &one.pursuers));
            let under_way = |item: &&Item| matches!(item, Item::Request(one) | Item::Return(one, _) | Item::Settle(one, _) if *one == number);
            let items = self.inboxes.iter().flatten().filter(under_way).count();
            let (to, of, travels) = match thread.at {
                At::Polls(_, to) => (vec![to], vec![], 0),
                At::Pursues(_, of) => (vec![], vec![of], 0),
                At::Travels(_) => (vec![], vec![], 1),
                At::Ready | At::Waits | At::Dead => (vec![], vec![], 0),
            };
            assert_eq!((polls, pursues, items), (to, of, travels), "thread {number} of {self:?}");
        }
    }

    /// What holds when nobody can do anything.
    pub fn check_end(&self) {
        assert!(self.inboxes.iter().all(VecDeque::is_empty));
        for (number, thread) in self.threads.iter().enumerate() {
            let fine = match thread.at {
                At::Dead | At::Waits => true,
                At::Ready => thread.script.is_empty(),
                At::Polls(_, to) => self.threads[to].at != At::Dead,
                At::Travels(_) | At::Pursues(..) => false,
            };
            assert!(fine, "thread {number} hangs: {self:?}");
        }
    }
}
