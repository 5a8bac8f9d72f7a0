//! Every state that three domains in a ring get into in a few steps: each has a clerk, a thread that is
//! client and host in turn, and a linkage to the next. All steps from each, against a model.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;

use abi::ThreadId;
use abi::lrpc::Status;
use kernel::space::SpaceRef;

use crate::common::tasks::{machine, thread};
use crate::lrpc::ring::{Place, Ring, STAYED};

/// What each task may use of the kernel's memory, as `machine` gives it.
pub const PAGES: u64 = 64;
/// Longest way to a state.
const DEPTH: usize = 5;
/// Calls and returns that stay at least where they can.
const STAY: u32 = 1_000;
/// States that there are at least: fewer, and a step has got lost.
const STATES: usize = 2_400;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Doing {
    Runs,
    Calls,
    Lent,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Domain {
    pub doing: Doing,
    /// It has lent itself, and has not stopped.
    pub is_host: bool,
    pub has_clerk: bool,
}

/// The linkage from a domain to the next; its host is that one's thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Linkage {
    pub agreed: bool,
    pub held: bool,
    pub used: bool,
    pub waited_for: bool,
    pub hosted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Model {
    pub domains: [Domain; 3],
    pub linkages: [Linkage; 3],
}

/// A step of domain, or linkage, of this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
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
pub type Ended = Option<(usize, Status)>;

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

/// Plays `path` from the beginning, and compares after its last step.
fn play(spaces: &[SpaceRef], path: &[Step], place: Place) {
    let (mut model, ring) = (Model::new(), Ring::new(spaces, place));
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
    explore(Place::Here, &[], DEPTH, STATES);
}

/// With the fast path there.
#[test]
fn three_domains_elsewhere_do_what_the_model_does() {
    explore(Place::There, &[], DEPTH, STATES);
}

/// Those who have called each other in a row have met, so that their calls stay.
const MET: [Step; 6] = [
    Step::Return(2),
    Step::Return(1),
    Step::Call(0, 0),
    Step::Call(1, 1),
    Step::Return(2),
    Step::Return(1),
];

#[test]
fn three_domains_that_have_met_elsewhere_do_what_the_model_does() {
    explore(Place::There, &MET, 4, 1_000);
    assert!(STAYED.with(Cell::get) > STAY, "only {} stayed", STAYED.with(Cell::get));
}

#[test]
fn three_domains_that_fault_elsewhere_do_what_the_model_does() {
    explore(Place::ThereInterrupted, &MET, 3, 1);
    assert!(STAYED.with(Cell::get) > STAY, "only {} stayed", STAYED.with(Cell::get));
}

/// All ways of so many steps behind the `first` ones, and at least so many states.
fn explore(place: Place, first: &[Step], depth: usize, states: usize) {
    let (_machine, spaces) = machine(4);
    // The heir outlives everybody.
    thread(spaces[0], 6, ThreadId::NIL);
    let mut begin = Model::new();
    for step in first {
        let _ = begin.take(*step);
    }
    let mut known = HashSet::from([begin]);
    let mut open = VecDeque::from([(begin, first.to_vec())]);
    while let Some((model, path)) = open.pop_front() {
        if path.len() == first.len() + depth {
            continue;
        }
        for step in steps().into_iter().filter(|step| model.allows(*step)) {
            let mut next = model;
            let _ = next.take(step);
            let longer: Vec<Step> = path.iter().copied().chain([step]).collect();
            let played =
                std::panic::catch_unwind(AssertUnwindSafe(|| play(&spaces, &longer, place)));
            assert!(played.is_ok(), "after {longer:?}");
            if known.insert(next) {
                open.push_back((next, longer));
            }
        }
    }
    assert!(known.len() >= states, "only {} states", known.len());
}
