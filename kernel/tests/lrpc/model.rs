//! Every state that three domains in a ring get into in a few steps: each has a clerk, a thread that is
//! client and host in turn, and a linkage to the next. All steps from each, against a model.

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;

use abi::ThreadId;
use abi::lrpc::{Status, control as what};
use kernel::arch::TcbRef;
use kernel::ipc::cancel::cancel;
use kernel::lrpc::control::control;
use kernel::lrpc::visit_of;
use kernel::space::SpaceRef;
use kernel::thread::state::State;

use crate::common::tasks::{UTCBS, machine, thread};
use crate::play::{bind_at, calls, checked, delete, returns_to, status};

/// What each task may use of the kernel's memory, as `machine` gives it.
const PAGES: u64 = 64;
/// Longest way to a state.
const DEPTH: usize = 5;
/// States that there are at least: fewer, and a step has got lost.
const STATES: usize = 2_400;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Runs,
    Calls,
    Lent,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Domain {
    doing: Doing,
    /// It has lent itself, and has not stopped.
    is_host: bool,
    has_clerk: bool,
}

/// The linkage from a domain to the next; its host is that one's thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Linkage {
    agreed: bool,
    held: bool,
    used: bool,
    waited_for: bool,
    hosted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Model {
    domains: [Domain; 3],
    linkages: [Linkage; 3],
}

/// A step of domain, or linkage, of this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The thread calls over this linkage, its own or another's.
    Call(usize, usize),
    Return(usize),
    Abort(usize),
    Delete(usize),
    RevokeByClient(usize),
    RevokeByServer(usize),
    EndClerk(usize),
}

fn steps() -> Vec<Step> {
    let each = |step: fn(usize) -> Step| (0..3).map(step);
    let calls = (0..9).map(|index| Step::Call(index / 3, index % 3));
    calls
        .chain(each(Step::Return))
        .chain(each(Step::Abort))
        .chain(each(Step::Delete))
        .chain(each(Step::RevokeByClient))
        .chain(each(Step::RevokeByServer))
        .chain(each(Step::EndClerk))
        .collect()
}

/// A thread and how its call has ended.
type Ended = Option<(usize, Status)>;

impl Model {
    const fn new() -> Self {
        let domain = Domain { doing: Doing::Runs, is_host: false, has_clerk: true };
        let linkage =
            Linkage { agreed: true, held: true, used: false, waited_for: false, hosted: false };
        Self { domains: [domain; 3], linkages: [linkage; 3] }
    }

    /// Whether `step` can be taken at all.
    fn allows(&self, step: Step) -> bool {
        let doing = |who: usize| self.domains[who].doing;
        match step {
            Step::Call(who, _) | Step::Return(who) => doing(who) == Doing::Runs,
            Step::Abort(who) => matches!(doing(who), Doing::Calls | Doing::Lent),
            Step::Delete(who) => doing(who) != Doing::Gone,
            Step::RevokeByClient(which) => {
                self.linkages[which].held && self.domains[which].has_clerk
            }
            Step::RevokeByServer(which) => self.domains[(which + 1) % 3].has_clerk,
            Step::EndClerk(who) => self.domains[who].has_clerk,
        }
    }

    fn take(&mut self, step: Step) -> Ended {
        let ended = self.act(step);
        for who in 0..3 {
            // A task ends with its last thread.
            if self.domains[who].doing == Doing::Gone && !self.domains[who].has_clerk {
                self.revoke(who);
                self.linkages[who].held = false;
            }
        }
        ended
    }

    fn act(&mut self, step: Step) -> Ended {
        match step {
            Step::Call(who, which) => self.call(who, which).err().map(|why| (who, why)),
            Step::Return(who) => self.come_back(who),
            Step::Abort(who) => Some((who, self.take_out(who))),
            Step::Delete(who) => {
                if self.domains[who].doing != Doing::Runs {
                    self.take_out(who);
                }
                let ended = self.end_visit(who, Status::ServerFailed);
                self.stop_hosting(who);
                self.domains[who].doing = Doing::Gone;
                ended
            }
            Step::RevokeByClient(which) => {
                self.revoke(which);
                self.linkages[which].held = false;
                None
            }
            Step::RevokeByServer(which) => {
                self.revoke(which);
                None
            }
            Step::EndClerk(who) => {
                self.revoke((who + 2) % 3);
                self.domains[who].has_clerk = false;
                let lent = self.domains[who].doing == Doing::Lent;
                lent.then(|| (who, self.take_out(who)))
            }
        }
    }

    fn call(&mut self, who: usize, which: usize) -> Result<(), Status> {
        let (host, linkage) = ((which + 1) % 3, &mut self.linkages[which]);
        if who != which || !linkage.held || !linkage.agreed {
            return Err(Status::NoBinding);
        }
        if linkage.used {
            return Err(Status::InUse);
        }
        if self.domains[host].doing != Doing::Lent {
            return Err(Status::NoHost);
        }
        (linkage.used, linkage.waited_for, linkage.hosted) = (true, true, true);
        self.domains[who].doing = Doing::Calls;
        self.domains[host].doing = Doing::Runs;
        Ok(())
    }

    fn come_back(&mut self, who: usize) -> Ended {
        let which = (who + 2) % 3;
        let status = if self.linkages[which].agreed { Status::Done } else { Status::Revoked };
        let ended = self.end_visit(who, status);
        if self.domains[who].has_clerk {
            self.domains[who].is_host = true;
            self.domains[who].doing = Doing::Lent;
            return ended;
        }
        self.stop_hosting(who);
        ended.or(Some((who, Status::NoClerk)))
    }

    /// The visit of `who`, if it is in one, is over.
    fn end_visit(&mut self, who: usize, status: Status) -> Ended {
        let client = (who + 2) % 3;
        let linkage = &mut self.linkages[client];
        if !linkage.used {
            return None;
        }
        linkage.used = false;
        linkage.hosted &= linkage.agreed;
        let waited = core::mem::take(&mut linkage.waited_for);
        waited.then(|| {
            self.domains[client].doing = Doing::Runs;
            (client, status)
        })
    }

    fn take_out(&mut self, who: usize) -> Status {
        let was = core::mem::replace(&mut self.domains[who].doing, Doing::Runs);
        if was == Doing::Calls {
            self.linkages[who].waited_for = false;
            return Status::Aborted;
        }
        self.stop_hosting(who);
        Status::Withdrawn
    }

    fn stop_hosting(&mut self, who: usize) {
        self.domains[who].is_host = false;
        self.linkages[(who + 2) % 3].hosted = false;
    }

    fn revoke(&mut self, which: usize) {
        let linkage = &mut self.linkages[which];
        linkage.agreed = false;
        linkage.hosted &= linkage.used;
    }
}

/// The kernel's side.
struct Ring {
    spaces: Vec<SpaceRef>,
    threads: Vec<TcbRef>,
    clerks: Vec<TcbRef>,
    ids: Vec<ThreadId>,
    tokens: Vec<u64>,
    heir: SpaceRef,
}

const fn own_window(which: usize) -> u64 {
    UTCBS + 0x1_0000 + which as u64 * 0x1000
}

const fn their_window(which: usize) -> u64 {
    UTCBS + 0x2_0000 + which as u64 * 0x1000
}

impl Ring {
    /// With the threads as they are at first; the first space is the heir of the others.
    fn new(spaces: &[SpaceRef]) -> Self {
        let (heir, spaces) = (spaces[0], spaces[1..].to_vec());
        let make = |first: u32| -> Vec<TcbRef> {
            (0..)
                .zip(&spaces)
                .map(|(at, space)| thread(*space, first + at, ThreadId::NIL))
                .collect()
        };
        let (threads, clerks) = (make(0), make(3));
        let bound = |which: usize| {
            let windows = [own_window(which), their_window(which)];
            bind_at(threads[which], clerks[(which + 1) % 3], windows, 1).expect("the clerk agrees")
        };
        let tokens = (0..3).map(bound).collect();
        let ids = clerks.iter().map(|clerk| clerk.id.get()).collect();
        Self { spaces, threads, clerks, ids, tokens, heir }
    }

    fn take(&self, step: Step) {
        let clerk_id = |who: usize| self.ids[who];
        match step {
            Step::Call(who, which) => drop(calls(self.threads[who], self.tokens[which], 0)),
            Step::Return(who) => drop(returns_to(self.threads[who], clerk_id(who))),
            Step::Abort(who) => cancel(self.threads[who]),
            Step::Delete(who) => delete(self.threads[who], self.heir),
            Step::EndClerk(who) => delete(self.clerks[who], self.heir),
            Step::RevokeByClient(which) => {
                let token = self.tokens[which];
                assert_eq!(control(self.clerks[which], ThreadId::NIL, what::REVOKE, token), Ok(1));
            }
            Step::RevokeByServer(which) => {
                let clerk = (which + 1) % 3;
                let _ = control(
                    self.clerks[clerk],
                    clerk_id(clerk),
                    what::REVOKE_COOKIE,
                    crate::play::COOKIE,
                );
            }
        }
    }

    /// Deletes who is left: nothing may be.
    fn clear(&self, model: &Model) {
        for (who, domain) in model.domains.iter().enumerate() {
            if domain.doing != Doing::Gone {
                delete(self.threads[who], self.heir);
            }
            if domain.has_clerk {
                delete(self.clerks[who], self.heir);
            }
        }
        assert!(self.heir.task.inherited.is_empty(), "a visit without anybody in it");
        // What it inherited is the next play's again.
        for space in &self.spaces {
            let missing = PAGES - space.quota().limit();
            self.heir.quota().transfer(space.quota(), missing).expect("it was inherited");
        }
        checked();
    }

    fn agrees(&self, model: &Model, ended: Ended) {
        for (who, domain) in model.domains.iter().enumerate() {
            let expected = match domain.doing {
                Doing::Gone => continue,
                Doing::Runs => State::Ready,
                Doing::Calls => State::Calls,
                Doing::Lent => State::Lent,
            };
            assert_eq!(State::of(self.threads[who]), expected, "thread {who}");
            let visits = visit_of(self.threads[who]).is_some();
            assert_eq!(visits, model.linkages[(who + 2) % 3].used, "the visit of thread {who}");
        }
        if let Some((who, why)) = ended
            && model.domains[who].doing != Doing::Gone
        {
            assert_eq!(status(self.threads[who]), Some(why), "thread {who}");
        }
        for (which, linkage) in model.linkages.iter().enumerate() {
            // A task whose threads are all gone is.
            let exists = |who: usize| {
                model.domains[who].doing != Doing::Gone || model.domains[who].has_clerk
            };
            let server = (which + 1) % 3;
            if exists(which) {
                let seen = self.spaces[which].page(own_window(which)).is_some();
                assert_eq!(seen, linkage.held, "the client's side of {which}");
            }
            if exists(server) {
                let seen = self.spaces[server].page(their_window(which)).is_some();
                assert_eq!(seen, linkage.agreed || linkage.used, "the server's side of {which}");
            }
        }
        checked();
    }
}

/// Plays `path` from the beginning, and compares after its last step.
fn play(spaces: &[SpaceRef], path: &[Step]) {
    let (mut model, ring) = (Model::new(), Ring::new(spaces));
    let mut ended = None;
    for step in path {
        ended = model.take(*step);
        ring.take(*step);
    }
    ring.agrees(&model, ended);
    ring.clear(&model);
}

#[test]
fn three_domains_do_what_the_model_does() {
    let (_machine, spaces) = machine(4);
    // The heir outlives everybody.
    thread(spaces[0], 6, ThreadId::NIL);
    let mut known = HashSet::from([Model::new()]);
    let mut open = VecDeque::from([(Model::new(), Vec::new())]);
    while let Some((model, path)) = open.pop_front() {
        if path.len() == DEPTH {
            continue;
        }
        for step in steps().into_iter().filter(|step| model.allows(*step)) {
            let mut next = model;
            let _ = next.take(step);
            let longer: Vec<Step> = path.iter().copied().chain([step]).collect();
            let played = std::panic::catch_unwind(AssertUnwindSafe(|| play(&spaces, &longer)));
            assert!(played.is_ok(), "after {longer:?}");
            if known.insert(next) {
                open.push_back((next, longer));
            }
        }
    }
    assert!(known.len() >= STATES, "only {} states", known.len());
}
