//! Procedure calls between threads of the same other processor, which stay there
//! (docs/decisions/0096-procedure-calls-stay-on-their-processor.md).
//!
//! A host and who has called it last are a *pair*: they go there in the same party, and with them a *copy* of the
//! record between them, in a page of the client's seat. The fast path there reads and writes the copy; the record
//! stays hidden from the first processor, and says of a host that is seated what was true when it went. So
//! whoever asks a record calls its host home first ([`RecordRef::comes_home`]).

use crate::thread::state::State;
use crate::thread::tcb::{ELSEWHERE, Resume};
use crate::thread::{Kind, RecordRef, TcbRef, lookup, rendezvous};

/// Whether the two live on the same processor.
#[must_use]
pub fn are_near(one: TcbRef, other: TcbRef) -> bool {
    one.processor.get() == other.processor.get()
}

/// `caller` calls `host`, or has had its answer. Whether they live on the same processor: if that is not the first one
/// they are a pair from now on.
#[must_use]
pub fn pair_up(caller: TcbRef, host: TcbRef) -> bool {
    let are_near = are_near(caller, host);
    if are_near && host.is_elsewhere() {
        caller.partner.set(host.id.get());
        host.partner.set(caller.id.get());
    }
    are_near
}

/// The record between `host` and its caller, or who has called it last if it waits for a call, and who that is; if no
/// more has to be asked about a call or a return there than the fast path asks.
#[must_use]
pub fn pair(host: TcbRef) -> Option<(RecordRef, TcbRef)> {
    let record = RecordRef::of(host)?;
    let clerk = record.owner()?.clerk.get()?;
    let (client, fits) = match record.kept.get() {
        Some(caller) => (caller, State::seen(caller) == State::Calls),
        None => (lookup(host.partner.get())?, State::seen(host) == State::Lent),
    };
    let page = client.space()?.task.linkages.get()?;
    let are_plain = host.special.get() == ELSEWHERE && client.special.get() == ELSEWHERE;
    let is_pair = fits && are_plain && are_near(client, host) && page == record.page();
    (is_pair && clerk.floor.get() == 0).then_some((record, client))
}

/// Whether `thread` waits for nothing but its host's return, or a call of its client, in a way that a fast path could end.
#[must_use]
pub fn waits(thread: TcbRef) -> bool {
    let is_in_pair = match State::seen(thread) {
        State::Lent => pair(thread).is_some(),
        State::Calls => {
            let host = lookup(thread.partner.get());
            host.and_then(pair).is_some_and(|(_, caller)| caller == thread)
        }
        _ => false,
    };
    is_in_pair
        && thread.kind.get() == Kind::User
        && thread.resume.get() == Resume::Ipc
        && thread.wake_at_us.get() == 0
        && !thread.halted.get()
}

/// With which priority `thread`, which waits, goes on there: a host that waits has that of who calls it.
#[must_use]
pub fn priority(thread: TcbRef) -> u8 {
    let client = pair(thread).filter(|_| State::seen(thread) == State::Lent);
    client.map_or(thread.priority.get(), |(_, client)| client.priority.get())
}

/// `copy` says of `record`, which is that of `host` and `client`, what a fast path has to know; the two are about to go.
pub fn copy(record: RecordRef, copy: RecordRef, host: TcbRef, client: TcbRef) {
    copy.procedures.set(record.procedures.get());
    copy.a_stack.set(record.a_stack.get());
    copy.cookie.set(record.cookie.get());
    copy.host.set(Some(host));
    copy.kept.set(Some(client));
    copy.caller.set(record.kept.get());
    copy.token.set(record.full_token());
    if copy.caller.get().is_some() {
        copy.hide();
    }
}

/// `host` is back, whose shadow is `shadow`: what has become of the record of which it has a copy, which is one no more.
pub fn come_home(host: TcbRef, shadow: TcbRef) {
    let Some(copy) = RecordRef::of(shadow) else { return };
    let client = copy.kept.take();
    if let (Some(record), Some(client)) = (RecordRef::of(host), client) {
        record.kept.set(copy.caller.get());
        if copy.caller.get().is_some() {
            client.partner.set(host.id.get());
        } else {
            host.partner.set(client.id.get());
        }
    }
    for word in [&copy.token, &copy.procedures, &copy.a_stack, &copy.cookie] {
        word.set(0);
    }
    copy.host.set(None);
    copy.caller.set(None);
    shadow.linkage.set(0);
}

impl RecordRef {
    /// The record is about to be asked, or changed: its host is here, and it says what is true.
    pub fn comes_home(self) {
        if let Some(host) = self.host.get().filter(|host| rendezvous::is_seated(*host)) {
            super::bring_back(host);
        }
    }

    /// Whether its host is elsewhere with others, so that a copy may say more.
    #[must_use]
    pub fn may_be_out(self) -> bool {
        self.host.get().is_some_and(rendezvous::is_seated)
    }
}
