//! Procedure calls: with tokens that are none of the caller's, hosts that belong to others, and servers that end.

use abi::lrpc::{MAX_BINDINGS, Status, step};
use abi::{CallError, MsgTag, ThreadId, Time};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use runtime::lrpc::{self, Binding, Place};
use runtime::{ipc, kernel, layout, thread, utcb};

use crate::hostile::{Hostile, Reached, rest, wait_until};
use crate::machine::{self, share, shared};
use crate::order::Help;
use crate::parts::{LATE, NEXT};

/// Thread of this task whose stack and UTCB a further one uses.
const INDEX: u64 = 15;
/// What is said in a clerk's name.
const FORGED_PROCEDURES: u64 = 1_000;
const FORGED_COOKIE: u64 = 78;
/// Bytes of an A-stack.
const BYTES: u64 = 256;
/// How long a call may take to come back, µs.
const PATIENCE_US: u64 = 1_000_000;
/// The shared words: the statuses of threads, one behind the other.
const STATUS: usize = 0;
/// What a thread says that is still in its call, and one whose call has a result.
const INSIDE: u64 = 100;
const DONE: u64 = 101;
/// Threads that call at once: the clerk has fewer hosts.
const CALLERS: usize = 3;

fn clerk(hostile: &Hostile) -> ThreadId {
    ThreadId(hostile.ask(Help::Clerk, 0)[0])
}

fn bind(clerk: ThreadId) -> Result<(Binding, Place), CallError> {
    let place = Place::take().ok_or(CallError::NoMemory)?;
    Ok((lrpc::bind(clerk, place.address(), 1, BYTES)?, place))
}

/// Whether a call with `token` goes anywhere.
fn leads_somewhere(token: u64) -> bool {
    lrpc::call_at(token, NEXT, [1; lrpc::WORDS]) != Err(Status::NoBinding)
}

/// Calls with the judge's token, and with what can be guessed from it.
pub fn anothers_token(hostile: &Hostile) -> Reached {
    let token = hostile.ask(Help::Token, 0)[0];
    if token == 0 {
        return Some(String::from("the judge has no binding"));
    }
    let near = (0..64).map(|bit| token ^ 1 << bit);
    let steps = (0..48).map(|index| step(token, index));
    let newer = (1..64).map(|more| token + (more << 12));
    let found = near.chain(steps).chain(newer).chain([token]).find(|token| leads_somewhere(*token));
    // With a binding of its own, its records are where the judge's are in the judge's.
    let own = bind(clerk(hostile)).map_err(|why| format!("the attacker cannot bind: {why:?}"));
    let (own, _place) = match own {
        Ok(own) => own,
        Err(why) => return Some(why),
    };
    let found = found.or_else(|| leads_somewhere(token).then_some(token));
    let _ = own.revoke();
    found.map(|token| format!("a call with {token:#x}, which is another's, went somewhere"))
}

/// Calls with a token whose binding is over, before and after there is a new one in its place.
pub fn stale_token(hostile: &Hostile) -> Reached {
    let clerk = clerk(hostile);
    let mut old = Vec::new();
    for _ in 0..8 {
        let Ok((binding, _place)) = bind(clerk) else {
            return Some(String::from("the attacker cannot bind"));
        };
        if let Some(token) = old.iter().copied().find(|token| leads_somewhere(*token)) {
            return Some(format!("a call with {token:#x}, which is stale, went somewhere"));
        }
        old.push(binding.token(0).unwrap_or(0));
        let _ = binding.revoke();
    }
    old.into_iter()
        .find(|token| leads_somewhere(*token))
        .map(|token| format!("{token:#x} is stale, and leads somewhere"))
}

/// Lends itself to a clerk of another task, revokes its bindings, and sets its floor.
pub fn anothers_clerk(hostile: &Hostile) -> Reached {
    let clerk = clerk(hostile);
    let tried = [
        ("lent itself to", lrpc::lend(clerk) != Err(Status::NoClerk)),
        ("revoked bindings of", lrpc::revoke_cookie(clerk, crate::parts::COOKIE).is_ok()),
        ("counted the bindings of", lrpc::count(clerk, crate::parts::COOKIE).is_ok()),
        ("set the floor of", lrpc::set_floor(clerk, 1).is_ok()),
    ];
    let (what, _) = tried.into_iter().find(|(_, done)| *done)?;
    Some(format!("a task {what} another's clerk"))
}

/// Says in the clerk's name, to the thread in shared word 1, that it agrees, to procedures that it does not have.
extern "C" fn agree_in_its_name(clerk: u64) -> ! {
    utcb::set_virtual_sender(ThreadId(clerk));
    let place = layout::A_STACKS + (layout::A_STACK_PAGES - 1) * 4096;
    let mut msg = lrpc::agree(place, FORGED_PROCEDURES, FORGED_COOKIE);
    msg.tag = msg.tag.with(MsgTag::PROPAGATED);
    let _ = ipc::send_within(ThreadId(shared(1)), &msg, Time::micros(1_000_000));
    rest()
}

/// Asks a clerk for a binding, while a thread of its own waits to answer in the clerk's name.
pub fn forged_consent(hostile: &Hostile) -> Reached {
    let (clerk, sibling) = (clerk(hostile), hostile.own_id(INDEX));
    if !machine::create(sibling, INDEX) {
        return Some(String::from("the attacker cannot make a thread with its own number"));
    }
    share(1, thread::me().0);
    machine::start(sibling, INDEX, agree_in_its_name, clerk.0);
    // It waits to send.
    ipc::sleep(5_000);
    let made = bind(clerk);
    let _ = kernel::delete(sibling);
    let (binding, _place) = match made {
        Ok(made) => made,
        Err(why) => return Some(format!("the attacker cannot bind: {why:?}")),
    };
    let token = binding.token(0).unwrap_or(0);
    let called = lrpc::call_at(token, FORGED_PROCEDURES - 1, [1; lrpc::WORDS]);
    let _ = binding.revoke();
    (called != Err(Status::NoProcedure))
        .then(|| format!("a binding to which no clerk agreed says {called:?}"))
}

/// Makes bindings until there are no more.
pub fn all_bindings(hostile: &Hostile) -> Reached {
    let clerk = clerk(hostile);
    let made: Vec<_> = (0..64).map_while(|_| bind(clerk).ok()).collect();
    if made.is_empty() || made.len() > MAX_BINDINGS {
        return Some(format!("a task has made {} bindings", made.len()));
    }
    (hostile.ask(Help::TryBind, 0)[0] != 1)
        .then(|| format!("after {} bindings of the attacker's the judge can make none", made.len()))
}

/// Begins calls, one more than there are hosts, to a procedure that takes long; each thread tells its status.
fn callers(clerk: ThreadId) -> Option<String> {
    for index in 0..CALLERS {
        share(STATUS + index, INSIDE);
        let Ok((binding, place)) = bind(clerk) else {
            return Some(String::from("the attacker cannot bind"));
        };
        let spawned = thread::spawn(move || {
            let result = binding.call(0, LATE, [0; lrpc::WORDS]);
            share(STATUS + index, result.map_or_else(|why| why as u64, |_| DONE));
            let _ = binding.revoke();
            drop(place);
        });
        if spawned.is_err() {
            return Some(String::from("the attacker cannot make a thread"));
        }
    }
    runtime::ipc::sleep(2_000);
    None
}

/// Keeps every host busy: others are told so, and wait for nobody.
pub fn all_hosts(hostile: &Hostile) -> Reached {
    if let Some(why) = callers(clerk(hostile)) {
        return Some(why);
    }
    let busy = (0..CALLERS).filter(|index| shared(STATUS + index) == INSIDE).count();
    let status = hostile.ask(Help::TryCall, 0)[0];
    let expected = Status::NoHost as u64;
    (busy == 0 || status != expected)
        .then(|| format!("with {busy} calls under way the judge's ended with {status}"))
}

/// The server ends in the middle of calls.
pub fn end_of_the_server(hostile: &Hostile) -> Reached {
    if let Some(why) = callers(clerk(hostile)) {
        return Some(why);
    }
    let _ = hostile.ask(Help::RestartClerk, 0);
    let seen = || [0, 1, 2].map(|index| shared(STATUS + index));
    let back = wait_until(PATIENCE_US, || seen().iter().all(|status| *status != INSIDE));
    let failed = seen().iter().filter(|status| **status == Status::ServerFailed as u64).count();
    (!back || failed == 0).then(|| format!("the callers' statuses are {:?}", seen()))
}
