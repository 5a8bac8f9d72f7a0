//! The three domains of `model`, and what they ask of the kernel, here or on another processor.

use std::cell::Cell;

use abi::ThreadId;
use abi::lrpc::control as what;
use kernel::elsewhere;
use kernel::ipc::cancel::cancel;
use kernel::ipc::wait;
use kernel::lrpc::revocation::control;
use kernel::lrpc::visit_of;
use kernel::space::SpaceRef;
use kernel::thread::TcbRef;
use kernel::thread::state::State;

use crate::common::tasks::{UTCBS, thread};
use crate::lrpc::model::{Doing, Ended, Model, PAGES, Step};
use crate::lrpc::play::{COOKIE, bind_at, calls, checked, delete, returns_to, status};
use crate::lrpc::there::{self, Way, calls_there, returns_there};

/// Where the three live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Here,
    /// On another processor.
    There,
    /// Likewise, and an interrupt brings whoever runs back behind each step.
    ThereInterrupted,
}

thread_local! {
    /// Calls and returns that stayed there.
    pub static STAYED: Cell<u32> = const { Cell::new(0) };
}

fn count(way: Way) {
    STAYED.with(|stayed| stayed.set(stayed.get() + u32::from(way == Way::Stays)));
}

/// The kernel's side: a ring of domains.
pub struct Ring {
    place: Place,
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
    pub fn new(spaces: &[SpaceRef], place: Place) -> Self {
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
        if place != Place::Here {
            there::move_there(&threads);
        }
        Self { place, spaces, threads, clerks, ids, tokens, heir }
    }

    pub fn take(&self, step: Step) {
        if self.place == Place::Here {
            return self.act(step);
        }
        match step {
            Step::Call(who, which) => count(calls_there(self.threads[who], self.tokens[which], 0)),
            Step::Return(who) => count(returns_there(self.threads[who], self.ids[who])),
            Step::Abort(who) => {
                elsewhere::recall(self.threads[who]);
                self.act(step);
            }
            _ => self.act(step),
        }
        there::idle();
        there::settle();
        if self.place == Place::ThereInterrupted {
            there::faults_there();
        }
    }

    fn act(&self, step: Step) {
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
                let _ = control(self.clerks[clerk], clerk_id(clerk), what::REVOKE_COOKIE, COOKIE);
            }
        }
    }

    /// Deletes who is left: nothing may be.
    pub fn clear(&self, model: &Model) {
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

    pub fn agrees(&self, model: &Model, ended: Ended) {
        for (who, domain) in model.domains.iter().enumerate() {
            let expected = match domain.doing {
                Doing::Gone => continue,
                Doing::Runs => State::Ready,
                Doing::Calls => State::Calls,
                Doing::Lent => State::Lent,
            };
            assert_eq!(wait::state(self.threads[who]), expected, "thread {who}");
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
