//! The end of bindings: revoked by either side, or with the clerk, or with the client's task.
//!
//! A revoked binding's tokens name nothing at once, and the client sees its A-stacks no more. Visits that are
//! under way end at their return; until then the server sees the A-stacks, and the page with the records
//! stays. The client's quota pays for them, and when that ends it is inherited, with what is
//! used of it, by the chief: so nobody has to find room for them, and nobody waits.

use abi::lrpc::{Status, control as what};
use abi::{CallError, ThreadId};

use super::{lend, withdraw};
use crate::arch::{TcbRef, lookup};
use crate::mem::frames::FRAME;
use crate::mem::{BindingRef, LinkagesRef, PhysFrame, RecordRef};
use crate::preemption::let_in;
use crate::space::SpaceRef;

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
        revoke(binding);
        return Ok(1);
    }
    let clerk = lookup(clerk).filter(|clerk| clerk.same_space(caller));
    let clerk = clerk.ok_or(CallError::InvalidThread)?;
    match request {
        what::REVOKE_COOKIE => Ok(revoke_all(clerk, |cookie| cookie == argument)),
        what::FLOOR => set_floor(caller, own, clerk, argument),
        _ => Err(CallError::InvalidParameter),
    }
}

/// No more than the caller has, and than its task may have.
fn set_floor(caller: TcbRef, own: SpaceRef, clerk: TcbRef, floor: u64) -> Result<u64, CallError> {
    let most = own.ceilings().priority.min(crate::sched::ceiling::own_priority(caller));
    if floor > u64::from(most) {
        return Err(CallError::NoPrivilege);
    }
    clerk.floor.set(floor as u8);
    let mut count = 0;
    for binding in clerk.served.iter() {
        binding.records().for_each(|record| record.show_if_plain());
        count += 1;
    }
    Ok(count)
}

/// `thread` is about to lose its id: it is nobody's clerk any more.
pub fn clerk_ends(thread: TcbRef) {
    revoke_all(thread, |_| true);
    while let Some(host) = thread.hosts.first() {
        let_in();
        withdraw(host, Status::Withdrawn);
    }
}

/// Revokes the bindings of `clerk` with such cookies; how many. Interrupts are noted on the way.
fn revoke_all(clerk: TcbRef, with: impl Fn(u64) -> bool) -> u64 {
    let mut count = 0;
    let mut next = clerk.served.first();
    while let Some(binding) = next {
        next = clerk.served.behind(binding);
        if binding.records().next().is_some_and(|record| with(record.cookie.get())) {
            revoke(binding);
            count += 1;
        }
    }
    count
}

/// Ends `binding`, which is not revoked yet.
fn revoke(binding: BindingRef) {
    let Some(clerk) = binding.clerk.take() else { return };
    clerk.served.remove(binding);
    if let Some(client) = binding.page().client.get() {
        unmap_client(client, binding.client_window.get(), binding.pages.get().into());
    }
    let mut visits = 0;
    for record in binding.records() {
        record.token.set(0);
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
        free(binding);
    }
}

/// A visit of a revoked binding, that of `record`, is over.
pub(super) fn one_less(record: RecordRef) {
    let Some(binding) = record.owner() else { return };
    binding.visits.set(binding.visits.get() - 1);
    if binding.visits.get() == 0 {
        free(binding);
    }
}

/// Nobody uses the revoked `binding` any more.
fn free(binding: BindingRef) {
    let page = binding.page();
    if let (Some(server), Some(payer)) = (binding.server.take(), page.payer.get()) {
        unmap_server(payer, server, binding.server_window.get(), binding.pages.get().into());
    }
    for record in binding.records() {
        record.binding.set(0);
        record.procedures.set(0);
    }
    binding.count.set(0);
    free_if_empty(page);
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

/// The client does not see its A-stacks any more.
pub(super) fn unmap_client(client: SpaceRef, window: u64, pages: u64) {
    for page in 0..pages {
        let_in();
        let _ = client.unmap_kernel_page(window + page * FRAME);
    }
}

/// The server does not see the A-stacks any more, for which `payer` has paid.
pub(super) fn unmap_server(payer: SpaceRef, server: SpaceRef, window: u64, pages: u64) {
    for page in 0..pages {
        let_in();
        if let Some(frame) = server.unmap_kernel_page(window + page * FRAME) {
            payer.quota().give_back(PhysFrame::at(frame));
        }
    }
}

/// `space`, which has no threads left, is about to be destroyed: it is nobody's client any more.
pub fn client_ends(space: SpaceRef) {
    let Some(page) = space.task.linkages.get() else { return };
    // Behind the last binding the page goes.
    for index in 0.. {
        let Some(binding) = page.binding(index) else { break };
        if binding.count.get() != 0 {
            revoke(binding);
        }
    }
    page.client.set(None);
    free_if_empty(page);
}

/// What is left of `space` is `heir`'s, with what it pays for.
pub fn inherit(space: SpaceRef, heir: SpaceRef) {
    let own = space.task.linkages.take();
    let first = || space.task.inherited.first();
    while let Some(page) = own.filter(|page| page.payer.get() == Some(space)).or_else(first) {
        let_in();
        space.task.inherited.remove(page);
        page.payer.set(Some(heir));
        heir.task.inherited.append(page);
        space.quota().pass_on(heir.quota(), frames_of(page));
    }
}

/// The frames of a page and of the A-stacks that it describes.
#[must_use]
pub fn frames_of(page: LinkagesRef) -> u64 {
    1 + page.bindings().map(|binding| u64::from(binding.pages.get())).sum::<u64>()
}
