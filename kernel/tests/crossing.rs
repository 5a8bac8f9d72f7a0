//! Requests that cross between processors: the rule of
//! docs/decisions/0050-requests-that-cross.md as a model, every order of whose steps is explored.
//!
//! A request is its thread, in one inbox or one list at a time. What is done about a thread is
//! done at its home. Not modelled: what a message holds, and timeouts, which end a visit as a
//! recall does.

use std::collections::{BTreeSet, VecDeque};

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Op {
    Send(usize),
    /// Send, and receive the answer.
    Call(usize),
    /// Send, if the other waits.
    Answer(usize),
    Receive,
    Delete(usize),
}

/// Where a thread is, and why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum At {
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
    /// Home, with the request carried out or not.
    Return(usize, bool),
    Recall(usize),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Thread {
    home: usize,
    at: At,
    script: VecDeque<Op>,
    senders: Vec<usize>,
    pursuers: Vec<usize>,
    /// A recall of it is in an inbox.
    recalled: bool,
    /// It has sent an answer to somebody who did not wait.
    failed: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Machine {
    threads: Vec<Thread>,
    inboxes: Vec<VecDeque<Item>>,
}

impl Machine {
    fn new(threads: &[(usize, &[Op])]) -> Self {
        let thread = |(home, script): &(usize, &[Op])| Thread {
            home: *home,
            at: At::Ready,
            script: script.iter().copied().collect(),
            senders: Vec::new(),
            pursuers: Vec::new(),
            recalled: false,
            failed: false,
        };
        let processors = threads.iter().map(|(home, _)| home + 1).max().unwrap_or(1);
        Self {
            threads: threads.iter().map(thread).collect(),
            inboxes: vec![VecDeque::new(); processors],
        }
    }

    /// Every state that one step of a processor leads to.
    fn next(&self) -> Vec<Self> {
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
            Op::Send(other) | Op::Call(other) | Op::Answer(other) | Op::Delete(other) => {
                match self.threads[other].home {
                    there if there == home => self.request(own, op, home),
                    there => self.travel(own, there, Item::Request(own)),
                }
            }
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
            Item::Return(own, done) => self.arrive(own, done),
            Item::Recall(own) => self.recall(own, here),
        }
    }

    /// The request of `own` at the home of the thread that it is about.
    fn request(&mut self, own: usize, op: Op, here: usize) {
        match op {
            Op::Receive => unreachable!("nobody is asked"),
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
        let pursuers = std::mem::take(&mut self.threads[own].pursuers);
        if !pursuers.is_empty() {
            let home = self.threads[own].home;
            self.kill(own, home);
            pursuers.into_iter().for_each(|one| self.go_home(one, home, true));
        } else if matches!(op, Some(Op::Call(_))) {
            // The receive phase begins here and now.
            self.threads[own].script.push_front(Op::Receive);
            self.receive(own);
        }
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
    fn check(&self) {
        for (number, thread) in self.threads.iter().enumerate() {
            let listed = |list: fn(&Thread) -> &Vec<usize>| {
                let all = self.threads.iter().enumerate();
                let holding = all.filter(|(_, one)| list(one).contains(&number));
                holding.map(|(number, _)| number).collect::<Vec<_>>()
            };
            let (polls, pursues) = (listed(|one| &one.senders), listed(|one| &one.pursuers));
            let under_way = |item: &&Item| matches!(item, Item::Request(one) | Item::Return(one, _) if *one == number);
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
    fn check_end(&self) {
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

/// Explores every order of steps from `first` on; how many states there are. They are finitely
/// many and none is met again on the way from itself, so nobody goes round for ever.
fn explore(first: Machine) -> usize {
    let (mut done, mut path) = (BTreeSet::new(), BTreeSet::new());
    visit(first, &mut done, &mut path);
    done.len()
}

fn visit(state: Machine, done: &mut BTreeSet<Machine>, path: &mut BTreeSet<Machine>) {
    assert!(!path.contains(&state), "somebody goes round for ever: {state:?}");
    if done.contains(&state) {
        return;
    }
    state.check();
    let next = state.next();
    if next.is_empty() {
        state.check_end();
    }
    path.insert(state.clone());
    next.into_iter().for_each(|next| visit(next, done, path));
    path.remove(&state);
    done.insert(state);
}

/// What thread `own` of `count` could do.
fn ops(own: usize, count: usize) -> Vec<Op> {
    let others = (0..count).filter(move |other| *other != own);
    let mut all: Vec<Op> =
        others.flat_map(|other| [Op::Call(other), Op::Send(other), Op::Delete(other)]).collect();
    all.push(Op::Receive);
    all
}

/// Two threads on two processors, everything that they can do in two calls each.
#[test]
fn two_threads_with_two_requests_each() {
    let scripts = |own| {
        let ops = ops(own, 2);
        let pairs = ops.iter().flat_map(|one| ops.iter().map(move |two| [*one, *two]));
        pairs.collect::<Vec<_>>()
    };
    for one in scripts(0) {
        for two in scripts(1) {
            explore(Machine::new(&[(0, &one), (1, &two)]));
        }
    }
}

/// Three threads, each with a processor of its own or two with the same, everything that they
/// can do in one call each, one of them in two.
#[test]
fn three_threads_with_a_request_each() {
    for homes in [[0, 1, 2], [0, 1, 1], [1, 0, 1]] {
        for (one, two, three) in triples() {
            for after in [Op::Receive, Op::Delete(1)] {
                let first = [one, after];
                let machine = [(homes[0], &first[..]), (homes[1], &[two]), (homes[2], &[three])];
                explore(Machine::new(&machine));
            }
        }
    }
}

fn triples() -> impl Iterator<Item = (Op, Op, Op)> {
    let pairs = |one| ops(1, 3).into_iter().map(move |two| (one, two));
    let all = ops(0, 3).into_iter().flat_map(pairs);
    all.flat_map(|(one, two)| ops(2, 3).into_iter().map(move |three| (one, two, three)))
}

/// Threads that delete each other in a ring: somebody is left, nobody hangs.
#[test]
fn rings_of_deletions() {
    for count in 2..=4 {
        for step in 1..count {
            let scripts: Vec<_> =
                (0..count).map(|own| [Op::Delete((own + step) % count)]).collect();
            let threads: Vec<_> =
                scripts.iter().enumerate().map(|(own, script)| (own, &script[..])).collect();
            assert!(explore(Machine::new(&threads)) > 1);
        }
    }
}

/// A call is answered with no time to wait, and the answer finds the caller waiting: its return is
/// in the inbox before the receiver runs, and its receive phase begins when it is back. The
/// same if a third one answers, whom the server has told.
#[test]
fn who_is_answered_waits() {
    let caller = [Op::Call(1)];
    let server = [Op::Receive, Op::Answer(0)];
    let mut ends = BTreeSet::new();
    visit(Machine::new(&[(0, &caller), (1, &server)]), &mut ends, &mut BTreeSet::new());
    assert!(ends.iter().all(|state| state.threads.iter().all(|thread| !thread.failed)));
    let teller = [Op::Receive, Op::Send(2)];
    let told = [Op::Receive, Op::Answer(0)];
    let threads: [(usize, &[Op]); 3] = [(0, &caller), (1, &teller), (2, &told)];
    let mut ends = BTreeSet::new();
    visit(Machine::new(&threads), &mut ends, &mut BTreeSet::new());
    assert!(ends.iter().all(|state| state.threads.iter().all(|thread| !thread.failed)));
}
