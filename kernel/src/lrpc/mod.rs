//! Protected procedure calls (Bershad et al. 1990): a client's thread calls a procedure of another
//! space, over an A-stack that both see. A binding is checked once, when it is made ([`bind`]); a call
//! checks one word.
//!
//! *Who a visitor is.* What runs in the server is a thread of the server, a *host*, with its own id,
//! UTCB, pager and handler; it has lent itself to its clerk. The caller waits ([`State::Calls`]) and lends
//! it its priority and its slice. So nothing that can be done to the caller reaches what runs in
//! the server, and nothing that the server says speaks for the client.
//!
//! A linkage record (`thread::linkage`) says of each A-stack who is the host and who has called.
//! The assembly (`lrpc.S`) does a call when the record's token is shown, and a return when it has a
//! `caller`; both say at once that nothing about either thread is special. What goes to another processor with two who call each
//! other there is in [`crate::elsewhere::procedure_calls`]. This is the complete way; it runs with interrupts
//! off, like all IPC.

pub mod bind;
pub mod check;
pub mod revocation;
mod visit;

use abi::ThreadId;
use abi::lrpc::Status;

pub use visit::{LOOKED_AT, call, fail_visit, give_back};

use crate::arch::cpu;
use crate::arch::preemption::Pace;
use crate::elsewhere;
use crate::sched::{self};
use crate::space::ENTANGLED;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::state::State;
use crate::thread::{RecordRef, TcbRef, lookup};

/// The threads of the task of `thread` can have partners in procedure calls from now on.
fn entangle(thread: TcbRef) {
    if let Some(space) = thread.space() {
        let entangled = &space.task.entangled;
        entangled.set(entangled.get() | ENTANGLED);
    }
}

impl RecordRef {
    /// Whether a call is under way.
    #[must_use]
    pub fn is_used(self) -> bool {
        self.caller.get().is_some() || self.kept.get().is_some() || self.given_up.get()
    }

    /// Whether its binding has been revoked; then the clerk is gone from it.
    fn is_revoked(self) -> bool {
        self.owner().is_none_or(|binding| binding.clerk.get().is_none())
    }

    /// Whether the fast path may call here.
    #[must_use]
    pub fn may_be_shown(self) -> bool {
        let clerk = self.owner().and_then(|binding| binding.clerk.get());
        let plain = |host: TcbRef| host.special.get() == 0 && State::seen(host) == State::Lent;
        !self.is_used()
            && clerk.is_some_and(|clerk| clerk.floor.get() == 0)
            && self.host.get().is_some_and(plain)
    }

    /// Lets the fast path call here if it may.
    fn show_if_plain(self) {
        if self.may_be_shown() { self.show() } else { self.hide() }
    }

    /// Only the complete path may return here.
    fn keep(self) {
        if let Some(caller) = self.caller.take() {
            self.kept.set(Some(caller));
        }
    }
}

/// The lowest priority of visitors of `clerk`: never above its task's ceiling.
fn floor(clerk: TcbRef) -> u8 {
    let most = clerk.space().map_or(0, |space| space.ceilings().priority);
    clerk.floor.get().min(most)
}

/// The record of the visit on which `host` runs, if it does.
#[must_use]
pub fn visit_of(host: TcbRef) -> Option<RecordRef> {
    RecordRef::of(host).filter(|record| record.is_used())
}

/// The record of the call in which `caller` waits.
#[must_use]
pub fn call_of(caller: TcbRef) -> Option<RecordRef> {
    let page = caller.space()?.task.linkages.get()?;
    page.records()
        .find(|record| record.caller.get() == Some(caller) || record.kept.get() == Some(caller))
}

/// Something becomes special about `thread`: no fast path may end a visit or a call of its.
pub fn becomes_special(thread: TcbRef) {
    if let Some(record) = RecordRef::of(thread) {
        record.hide();
        record.keep();
    }
    calls_no_more_plainly(thread);
}

/// No fast path may end the call of `thread`, if it is in one.
pub fn calls_no_more_plainly(thread: TcbRef) {
    if State::seen(thread) == State::Calls
        && let Some(record) = call_of(thread)
    {
        record.keep();
    }
}

/// ExchangeRegisters is about to change `thread`: a host that waits for a call is lent no more, a
/// call's return looks at what has changed.
pub fn changes(thread: TcbRef) {
    match State::seen(thread) {
        State::Lent => withdraw(thread, Status::Withdrawn),
        State::Calls => becomes_special(thread),
        _ => {}
    }
}

/// Takes `thread` out of the call in which it waits, or of its clerk's hosts, if it is in either; it goes
/// on with `why`.
#[must_use]
pub fn take_out(thread: TcbRef, why: Status) -> bool {
    match State::seen(thread) {
        State::Calls => give_up(thread, why),
        State::Lent => withdraw(thread, Status::Withdrawn),
        _ => return false,
    }
    true
}

/// `thread` is about to lose its id: whoever has it as a partner goes on.
pub fn disconnect(thread: TcbRef) {
    let _ = take_out(thread, Status::Aborted);
    fail_visit(thread);
    revocation::clerk_ends(thread);
}

/// The call of `caller` is nobody's any more: the visit goes on until its host returns.
fn give_up(caller: TcbRef, why: Status) {
    if let Some(record) = call_of(caller) {
        record.caller.set(None);
        record.kept.set(None);
        record.given_up.set(true);
        // What runs on has nobody's priority but its own.
        if let Some(host) = record.host.get() {
            elsewhere::recall(host);
            sched::change_priority(host, host.own_priority.get());
            lower_below(host);
        }
    }
    goes_on(caller, why);
}

/// `host` has less urgency than before: so have the hosts that it waits for, one for the other. None is more urgent
/// than its caller, but for the floor of its clerk.
fn lower_below(host: TcbRef) {
    let mut pace = Pace::default();
    let mut caller = host;
    while State::seen(caller) == State::Calls
        && let Some(record) = call_of(caller)
        && let Some(host) = record.host.get()
    {
        // A look at each record of a task; and users choose how many there are.
        pace.rounds(LINK_ROUNDS);
        elsewhere::recall(host);
        let clerk = record.owner().and_then(|binding| binding.clerk.get());
        let most = caller.priority.get().max(clerk.map_or(0, floor));
        if host.priority.get() > most {
            sched::change_priority(host, most);
        }
        caller = host;
    }
}

/// What a call in a chain of them costs, in rounds of a loop.
const LINK_ROUNDS: u32 = 8;

/// `host`, which waits for a call, waits no more.
fn withdraw(host: TcbRef, why: Status) {
    leave(host);
    goes_on(host, why);
}

/// `thread` returns from its call with `status`.
fn goes_on(thread: TcbRef, status: Status) {
    thread.result_from.set(ThreadId(status as u64));
    sched::set_runnable(thread);
    sched::requeue(thread);
}

/// `host`, which is in no visit, is no host any more.
fn leave(host: TcbRef) {
    if let Some(record) = RecordRef::of(host) {
        part(record, host);
    }
    let clerk = host.clerk.replace(ThreadId::NIL);
    if clerk.is_nil() {
        return;
    }
    if let Some(clerk) = lookup(clerk) {
        clerk.hosts.remove(host);
    }
    sched::change_priority(host, host.own_priority.get());
}

/// The A-stack of `record` has no host any more.
fn part(record: RecordRef, host: TcbRef) {
    record.hide();
    record.host.set(None);
    host.linkage.set(0);
}

/// `host`, whose clerk is known and which is in no visit, waits for calls.
fn lend(host: TcbRef) {
    // Its priority is written without a look at the queue.
    cpu().scheduler.ready.remove(host);
    rendezvous::set_busy(host, Busy::Lent);
    match (RecordRef::of(host), lookup(host.clerk.get())) {
        (Some(record), _) => record.show_if_plain(),
        (None, Some(clerk)) => clerk.hosts.append(host),
        (None, None) => {}
    }
}
