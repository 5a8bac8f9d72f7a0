//! Calls and returns: the complete path of `lrpc.S`.

use abi::ThreadId;
use abi::lrpc::{FIRST_ADDRESS, Status};

use super::{entangle, leave, lend, part, revocation, visit_of};
use crate::arch::preemption::Pace;
use crate::{arch, local, sched, thread};

use crate::elsewhere::procedure_calls;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::state::State;
use crate::thread::tcb::Resume;
use crate::thread::{Kind, RecordRef, TcbRef, lookup};
use crate::usermem::Utcb;

/// Message register of the procedure's number, and of the cookie.
const PROCEDURE: usize = 0;
const COOKIE: usize = 7;

/// LrpcCall of the current thread, its registers in its UTCB; returns who runs next.
pub extern "C" fn call(caller: TcbRef, token: u64) -> TcbRef {
    arch::note_entry();
    match find(caller, token) {
        Ok(found) => visit(caller, found),
        Err(status) => {
            caller.result_from.set(ThreadId(status as u64));
            sched::go_on(caller)
        }
    }
}

/// What a call needs.
struct Found {
    record: RecordRef,
    /// It is free.
    host: TcbRef,
    /// As it was compared: another thread of the caller's may write the register anew.
    procedure: u64,
}

/// The record that `token` names, with a host that is free; nothing has changed if there is none.
fn find(caller: TcbRef, token: u64) -> Result<Found, Status> {
    let page = caller.space().and_then(|space| space.task.linkages.get());
    let page = page.ok_or(Status::NoBinding)?;
    // From now on the fast path finds it, too.
    caller.linkages.set(page.word());
    let record = page.named(token).ok_or(Status::NoBinding)?;
    let clerk = record.owner().and_then(|binding| binding.clerk.get()).ok_or(Status::NoBinding)?;
    record.comes_home();
    if record.is_used() {
        return Err(Status::InUse);
    }
    let procedure = Utcb::of(caller).map_or(u64::MAX, |utcb| utcb.mr(PROCEDURE));
    if procedure >= record.procedures.get() {
        return Err(Status::NoProcedure);
    }
    let host = record.host.get().or_else(|| associate(record, clerk, caller));
    let host = host.ok_or(Status::NoHost)?;
    Ok(Found { record, host, procedure })
}

/// Gives `record` a host for `caller`: one that no A-stack has, of the caller's processor if there is one among the
/// first; else one whose A-stack is free.
fn associate(record: RecordRef, clerk: TcbRef, caller: TcbRef) -> Option<TcbRef> {
    let mut first = clerk.hosts.iter().take(ASKED);
    let near = first.find(|host| procedure_calls::are_near(*host, caller));
    let host = match near.or(clerk.hosts.first()) {
        Some(host) => host,
        None => reclaim(clerk)?,
    };
    clerk.hosts.remove(host);
    record.host.set(Some(host));
    host.linkage.set(record.word());
    Some(host)
}

/// Hosts without an A-stack of whom one call asks where they live.
const ASKED: usize = 16;

/// A-stacks of a clerk's that one call looks at for a host, and those of one binding at most behind them. However many
/// clients there are, a call takes no longer; the next one goes on behind.
pub const LOOKED_AT: u32 = 64;

/// Takes a host from an A-stack that is not in use.
#[inline(never)]
fn reclaim(clerk: TcbRef) -> Option<TcbRef> {
    let mut pace = Pace::default();
    let mut left = LOOKED_AT;
    let begin = clerk.served.first()?;
    let mut binding = begin;
    loop {
        for record in binding.records() {
            pace.round();
            left = left.saturating_sub(1);
            record.comes_home();
            if let Some(host) = record.host.get().filter(|_| !record.is_used()) {
                part(record, host);
                return Some(host);
            }
        }
        clerk.served.turn_behind(binding);
        binding = clerk.served.first()?;
        if left == 0 || binding == begin {
            return None;
        }
    }
}

/// The call goes to the host.
fn visit(caller: TcbRef, Found { record, host, procedure }: Found) -> TcbRef {
    let floor = record.owner().and_then(|binding| binding.clerk.get());
    let floor = floor.map_or(0, super::floor);
    // POINT OF NO RETURN
    record.hide();
    let is_plain = caller.special.get() == 0 && host.special.get() == 0 && floor == 0;
    let slot =
        if is_plain && !thread::is_fast_path_closed() { &record.caller } else { &record.kept };
    slot.set(Some(caller));
    rendezvous::set_busy(caller, Busy::Calls);
    host.priority.set(caller.priority.get().max(floor));
    let _ = procedure_calls::pair_up(caller, host);
    hand_words(caller, host);
    if let Some(utcb) = Utcb::of(host) {
        utcb.set_mr(PROCEDURE, procedure);
        utcb.set_mr(COOKIE, record.cookie.get());
    }
    host.result_from.set(ThreadId(record.a_stack.get()));
    sched::set_runnable(host);
    sched::hand_over(caller, host)
}

/// The words that travel in registers, from one to the other.
fn hand_words(from: TcbRef, to: TcbRef) {
    if let (Some(source), Some(target)) = (Utcb::of(from), Utcb::of(to)) {
        (0..=COOKIE).for_each(|index| target.set_mr(index, source.mr(index)));
    }
}

/// LrpcReturn of the current thread, its registers in its UTCB: ends the visit it is in, if it is
/// in one, and lends it to `clerk`, if it is nobody's host yet; returns who runs next.
pub extern "C" fn give_back(host: TcbRef, clerk: ThreadId) -> TcbRef {
    arch::note_entry();
    let caller = end(host);
    match stays_host(host, clerk) {
        Ok(()) => {
            lend(host);
            caller.map_or_else(|| sched::blocked(host), |caller| sched::hand_over(host, caller))
        }
        Err(status) => {
            leave(host);
            host.result_from.set(ThreadId(status as u64));
            caller.map_or(host, |caller| sched::higher_of(host, caller))
        }
    }
}

/// Ends the visit of `host`; who goes on.
fn end(host: TcbRef) -> Option<TcbRef> {
    let record = visit_of(host)?;
    let is_revoked = record.is_revoked();
    let caller = over(record);
    if let Some(caller) = caller {
        if !procedure_calls::pair_up(caller, host) && !is_revoked {
            // The next call may find one who lives where its caller does.
            part(record, host);
        }
        hand_words(host, caller);
        let status = if is_revoked { Status::Revoked } else { Status::Done };
        caller.result_from.set(ThreadId(status as u64));
        sched::set_runnable(caller);
    }
    if is_revoked {
        part(record, host);
        revocation::one_less(record);
    }
    caller
}

/// The call of `record` is over; who has made it, if anybody waits.
fn over(record: RecordRef) -> Option<TcbRef> {
    record.given_up.set(false);
    record.caller.take().or(record.kept.take())
}

/// Whether `host` is lent to its clerk, or to `clerk` if it has none yet.
fn stays_host(host: TcbRef, clerk: ThreadId) -> Result<(), Status> {
    if host.is_foreign() || host.kind.get() != Kind::User {
        return Err(Status::NoClerk);
    }
    if !host.clerk.get().is_nil() {
        // A visit may have outlived it.
        let clerk = lookup(host.clerk.get()).filter(|clerk| !clerk.closing.get());
        let _ = clerk.ok_or(Status::NoClerk)?;
    } else {
        let found = lookup(clerk).filter(|found| found.same_space(host));
        let found =
            found.filter(|found| State::seen(*found) != State::Inactive && !found.closing.get());
        host.clerk.set(found.ok_or(Status::NoClerk)?.id.get());
        host.own_priority.set(host.priority.get());
        entangle(host);
    }
    local::disarm(host);
    host.resume.set(Resume::Ipc);
    Ok(())
}

/// What `host` runs for a caller, if it does, is over without a return: it is deleted, or halted for want
/// of a handler.
pub fn fail_visit(host: TcbRef) {
    let Some(record) = visit_of(host) else { return };
    let is_revoked = record.is_revoked();
    let caller = over(record);
    leave(host);
    if let Some(caller) = caller {
        super::goes_on(caller, Status::ServerFailed);
    }
    if is_revoked {
        revocation::one_less(record);
    }
}

const _: () = assert!((Status::Withdrawn as u64) < FIRST_ADDRESS);
