//! The end of bindings: revoked by either side, or with the clerk, or with the client's task.
//!
//! Nobody can call over a revoked binding. Visits that are under way end at their return; until then the
//! server sees the A-stacks. The client sees them until it revokes the binding itself: a server that ends takes
//! no memory from under its clients' hands. The client's quota pays for them, and when that ends it is
//! inherited, with what is used of it, by the chief: so nobody has to find room for them, and nobody waits.

use abi::lrpc::{Status, control as what};
use abi::{CallError, ThreadId};

use super::{lend, withdraw};
use crate::arch::preemption::{Pace, STINT, Stint, let_in};
use crate::mem::frames::FRAME;
use crate::mem::{PhysFrame, Step};
use crate::space::{ENTANGLED, SpaceRef};
use crate::thread::{BindingRef, LinkagesRef, RecordRef, TcbRef, lookup, lookup_number};

/// LrpcControl of `caller`; how many bindings it concerned.
pub fn control(
    caller: TcbRef,
    clerk: ThreadId,
    request: u64,
    argument: u64,
) -> Result<u64, CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    if request == what::REVOKE {
        let page = own.task.linkages.get().ok_or(CallError::InvalidParameter)?;
        let record = page.named(argument).ok_or(CallError::InvalidParameter)?;
        let binding = record.owner().ok_or(CallError::InvalidParameter)?;
        let_go(binding);
        return Ok(1);
    }
    let clerk = lookup(clerk).filter(|clerk| clerk.same_space(caller));
    let clerk = clerk.ok_or(CallError::InvalidThread)?;
    match request {
        what::REVOKE_COOKIE => Ok(revoke_all(clerk, |cookie| cookie == argument)),
        what::COUNT => Ok(count(clerk, argument)),
        what::FLOOR => set_floor(caller, own, clerk, argument),
        _ => Err(CallError::InvalidParameter),
    }
}

/// No more than the caller has, and than its task may have.
fn set_floor(caller: TcbRef, own: SpaceRef, clerk: TcbRef, floor: u64) -> Result<u64, CallError> {
    let most = own.ceilings().priority.min(crate::sched::own_priority(caller));
    if floor > u64::from(most) {
        return Err(CallError::NoPrivilege);
    }
    clerk.floor.set(floor as u8);
    let mut pace = Pace::default();
    let mut count = 0;
    for binding in clerk.served.iter() {
        for record in binding.records() {
            pace.round();
            record.comes_home();
            record.show_if_plain();
        }
        count += 1;
    }
    Ok(count)
}

/// How many bindings of `clerk` have this cookie.
fn count(clerk: TcbRef, cookie: u64) -> u64 {
    let mut pace = Pace::default();
    let mut count = 0;
    for binding in clerk.served.iter() {
        pace.round();
        count += u64::from(cookie_of(binding) == Some(cookie));
    }
    count
}

/// The cookie of `binding`.
fn cookie_of(binding: BindingRef) -> Option<u64> {
    binding.records().next().map(|record| record.cookie.get())
}

/// `thread` is about to lose its id, if that is done: it is nobody's clerk any more. It may have as many
/// bindings as there are clients, so this stops behind each step if an interrupt has come; nobody binds
/// to it meanwhile, or it would have no end.
#[inline(always)]
pub fn close(thread: TcbRef) -> Step {
    let may_be_a_clerk = |space: SpaceRef| space.task.entangled.get() & ENTANGLED != 0;
    if thread.space().is_some_and(may_be_a_clerk) { close_clerk(thread) } else { Step::Done }
}

#[cold]
#[inline(never)]
fn close_clerk(thread: TcbRef) -> Step {
    thread.closing.set(true);
    let mut stint = Stint::default();
    while clerk_loses_one(thread) {
        if stint.must_stop_after(STINT) {
            return Step::More;
        }
    }
    Step::Done
}

/// The call that was ending the clerk with the number of `clerk`, if that is there yet, is not gone on with: others
/// may bind and lend to it again.
pub fn reopen(clerk: ThreadId) {
    if let Some(clerk) = lookup_number(clerk.number()) {
        clerk.closing.set(false);
    }
}

/// `thread` is about to lose its id: it is nobody's clerk any more. [`close`] leaves nothing to do here, but for
/// one who has never been in ThreadControl's hands.
pub fn clerk_ends(thread: TcbRef) {
    while clerk_loses_one(thread) {
        let_in();
    }
    thread.closing.set(false);
}

/// The clerk `thread` loses a binding, or a host that waits; whether there was one.
fn clerk_loses_one(thread: TcbRef) -> bool {
    match (thread.served.first(), thread.hosts.first()) {
        (Some(binding), _) => revoke(binding),
        (None, Some(host)) => withdraw(host, Status::Withdrawn),
        (None, None) => return false,
    }
    true
}

/// Revokes the bindings of `clerk` with such cookies; how many. Interrupts are noted on the way.
fn revoke_all(clerk: TcbRef, with: impl Fn(u64) -> bool) -> u64 {
    let mut pace = Pace::default();
    let mut count = 0;
    let mut next = clerk.served.first();
    while let Some(binding) = next {
        pace.round();
        next = clerk.served.behind(binding);
        if cookie_of(binding).is_some_and(&with) {
            revoke(binding);
            count += 1;
        }
    }
    count
}

/// Nobody calls over `binding` any more.
fn revoke(binding: BindingRef) {
    let Some(clerk) = binding.clerk.take() else { return };
    clerk.served.remove(binding);
    let mut pace = Pace::default();
    let mut visits = 0;
    for record in binding.records() {
        pace.rounds(4);
        record.comes_home();
        record.hide();
        if record.is_used() {
            // The return looks.
            record.keep();
            visits += 1;
        } else if let Some(host) = record.host.take() {
            // Another A-stack may have it.
            host.linkage.set(0);
            lend(host);
        }
    }
    binding.visits.set(visits);
    if visits == 0 {
        hide_from_server(binding);
    }
}

/// The client of `binding` has no use for it any more.
fn let_go(binding: BindingRef) {
    revoke(binding);
    let window = binding.client_window.take();
    if let Some(client) = binding.page().client.get().filter(|_| window != 0) {
        unmap(client, window, binding.pages.get().into(), payer(binding));
    }
    free_if_unused(binding);
}

/// A visit of a revoked binding, that of `record`, is over.
pub(super) fn one_less(record: RecordRef) {
    let Some(binding) = record.owner() else { return };
    binding.visits.set(binding.visits.get() - 1);
    if binding.visits.get() == 0 {
        hide_from_server(binding);
        free_if_unused(binding);
    }
}

/// No visit of the revoked `binding` is left.
fn hide_from_server(binding: BindingRef) {
    if let Some(server) = binding.server.take() {
        unmap(server, binding.server_window.get(), binding.pages.get().into(), payer(binding));
    }
}

/// Who has the frames of A-stacks back when the one who is about to see them no more is the last
/// who does: neither client nor server is left in `binding`.
fn payer(binding: BindingRef) -> Option<SpaceRef> {
    let is_last = binding.server.get().is_none() && binding.client_window.get() == 0;
    binding.page().payer.get().filter(|_| is_last)
}

/// Makes room for another binding if nobody sees the A-stacks of `binding` any more.
fn free_if_unused(binding: BindingRef) {
    if binding.server.get().is_some() || binding.client_window.get() != 0 {
        return;
    }
    for record in binding.records() {
        record.token.set(0);
        record.binding.set(0);
        record.procedures.set(0);
    }
    binding.count.set(0);
    free_if_empty(binding.page());
}

/// Gives back the page if nothing is left in it and its task is ending, or has not begun.
pub(super) fn free_if_empty(page: LinkagesRef) {
    if page.client.get().is_some() || page.bindings().next().is_some() {
        return;
    }
    if let Some(payer) = page.payer.get() {
        if payer.task.linkages.get() == Some(page) {
            payer.task.linkages.set(None);
        } else {
            payer.task.inherited.remove(page);
        }
        payer.quota().give_back(page.frame());
    }
}

/// `space` does not see A-stacks any more, whose frames `payer` has back.
pub(super) fn unmap(space: SpaceRef, window: u64, pages: u64, payer: Option<SpaceRef>) {
    for page in 0..pages {
        let_in();
        let frame = space.unmap_kernel_page(window + page * FRAME);
        if let (Some(frame), Some(payer)) = (frame, payer) {
            payer.quota().give_back(PhysFrame::at(frame));
        }
    }
}

/// `space`, which has no threads left, is being destroyed: it is nobody's client any more. A step lets go of
/// one binding.
pub fn client_ends(space: SpaceRef) -> Step {
    let page = space.task.linkages.get();
    let Some(page) = page.filter(|page| page.client.get() == Some(space)) else {
        return Step::Done;
    };
    // One that the server has revoked, too, and whose visits go on, is there without A-stacks of the client's.
    match page.bindings().find(|binding| binding.client_window.get() != 0) {
        Some(binding) => let_go(binding),
        None => {
            page.client.set(None);
            free_if_empty(page);
        }
    }
    Step::More
}

/// What is left of `space` is `heir`'s, with what it pays for: the records of one task in a step.
pub fn inherit(space: SpaceRef, heir: SpaceRef) -> Step {
    let page = match space.task.linkages.take() {
        Some(page) => page,
        None => match space.task.inherited.first() {
            Some(page) => page,
            None => return Step::Done,
        },
    };
    space.task.inherited.remove(page);
    page.payer.set(Some(heir));
    heir.task.inherited.append(page);
    space.quota().pass_on(heir.quota(), frames_of(page));
    Step::More
}

/// The frames of a page and of the A-stacks that it describes.
#[must_use]
pub fn frames_of(page: LinkagesRef) -> u64 {
    1 + page.bindings().map(|binding| u64::from(binding.pages.get())).sum::<u64>()
}
