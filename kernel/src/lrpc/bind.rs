//! Making a binding: the client asks, the kernel tells the clerk (`ipc::kernel_message`), the clerk agrees, and the
//! client pays.

use crate::space::spaces;
use abi::lrpc::{
    A_STACK_UNIT, FIRST_ADDRESS, MAX_A_STACK_BYTES, MAX_A_STACKS, MAX_A_STACKS_OF_TASK,
    MAX_BINDINGS, MAX_PAGES, MAX_PROCEDURES,
};
use abi::{CallError, ThreadId};

use super::{entangle, revocation};
use crate::arch::Frame;
use crate::arch::preemption::let_in;
use crate::mem::NoMemory;
use crate::mem::frames::{self, FRAME};
use crate::sched;
use crate::sched::slice::after_call;
use crate::space::SpaceRef;
use crate::thread::tcb::Resume;
use crate::thread::{BindingRef, LinkagesRef, TcbRef, lookup, set_result};

/// The most frames that a binding takes apart from its A-stacks: the page of records, and in both spaces the tables on
/// the way to the A-stacks, and a twin.
const TABLES: u64 = 9;

/// What the client asks for.
struct Proposal {
    clerk: ThreadId,
    window: u64,
    count: u64,
    bytes: u64,
}

impl Proposal {
    fn of(frame: Frame) -> Result<Self, CallError> {
        let [clerk, window, count, bytes, _] = frame.arguments();
        let fits = (1..=MAX_A_STACKS).contains(&count)
            && (A_STACK_UNIT..=MAX_A_STACK_BYTES).contains(&bytes)
            && bytes.is_multiple_of(A_STACK_UNIT);
        let request = Self { clerk: ThreadId(clerk), window, count, bytes };
        if fits && request.pages() <= MAX_PAGES {
            Ok(request)
        } else {
            Err(CallError::InvalidParameter)
        }
    }

    const fn pages(&self) -> u64 {
        (self.count * self.bytes).div_ceil(FRAME)
    }
}

/// LrpcBind of the current thread: whom it asks.
pub fn clerk(caller: TcbRef, frame: Frame) -> Result<ThreadId, CallError> {
    let request = Proposal::of(frame)?;
    server(caller, request.clerk).map(|_| request.clerk)
}

/// The thread `clerk`, and its space, which is not the caller's.
fn server(caller: TcbRef, clerk: ThreadId) -> Result<(TcbRef, SpaceRef), CallError> {
    let found = lookup(clerk).filter(|found| !found.same_space(caller) && !found.closing.get());
    let found = found.ok_or(CallError::InvalidThread)?;
    Ok((found, found.space().ok_or(CallError::InvalidThread)?))
}

/// Goes on with the LrpcBind of `caller`, the current thread, which the clerk has answered, or never
/// will; returns who runs next.
#[must_use]
pub fn resume(caller: TcbRef) -> TcbRef {
    let frame = caller.frame();
    let proposal = Proposal::of(frame);
    let pages = proposal.as_ref().map_or(0, Proposal::pages);
    if frames::is_interrupted_before(TABLES + pages) {
        // Nothing has changed; it goes on here.
        return sched::go_on(caller);
    }
    caller.resume.set(Resume::Frame);
    let [window, procedures, cookie] = core::array::from_fn(|word| caller.message[word].get());
    let result =
        proposal.and_then(|request| make(caller, &request, &Answer { window, procedures, cookie }));
    if let Ok(token) = result {
        frame.set_third(token);
    }
    set_result(caller, frame, result.map(|_| ()));
    after_call(caller)
}

/// What the clerk has said: zeros refuse.
struct Answer {
    window: u64,
    procedures: u64,
    cookie: u64,
}

/// Makes the binding; the token of its first A-stack.
fn make(caller: TcbRef, request: &Proposal, answer: &Answer) -> Result<u64, CallError> {
    if answer.window == 0 || !(1..=MAX_PROCEDURES).contains(&answer.procedures) {
        return Err(CallError::NoPrivilege);
    }
    let client = caller.space().ok_or(CallError::InvalidSpace)?;
    let (clerk, server) = server(caller, request.clerk)?;
    let pages = request.pages();
    if !is_free(client, request.window, pages) {
        return Err(CallError::UtcbArea);
    }
    if !is_free(server, answer.window, pages) {
        return Err(CallError::InvalidSpace);
    }
    let page = linkages(client)?;
    let made = place(page, request).ok_or(CallError::NoMemory);
    let made = made.and_then(|place| {
        map(client, request.window, server, answer.window, pages)
            .map_err(|_| CallError::NoMemory)?;
        Ok(place)
    });
    let (binding, first) = made.inspect_err(|_| revocation::free_if_empty(page))?;
    // POINT OF NO RETURN
    binding.server.set(Some(server));
    binding.client_window.set(request.window);
    binding.server_window.set(answer.window);
    binding.visits.set(0);
    binding.first.set(first as u8);
    binding.count.set(request.count as u8);
    binding.pages.set(pages as u8);
    binding.clerk.set(Some(clerk));
    clerk.served.append(binding);
    entangle(caller);
    entangle(clerk);
    Ok(write_records(binding, request, answer))
}

/// Writes the records of a new binding; the first one's token.
fn write_records(binding: BindingRef, request: &Proposal, answer: &Answer) -> u64 {
    let generation = spaces().new_generation() << 12;
    let mut token = 0;
    for (index, record) in (0..).zip(binding.records()) {
        record.binding.set(binding.number());
        record.procedures.set(answer.procedures);
        record.a_stack.set(answer.window + index * request.bytes);
        record.cookie.set(answer.cookie);
        record.token.set(generation | record.offset());
        if index == 0 {
            token = record.token.get();
        }
        // No host yet.
        record.hide();
    }
    token
}

/// Whether `space` has room for A-stacks in `pages` pages from `window` on: in its UTCB area, which
/// nothing is mapped to or from, where no UTCB is.
fn is_free(space: SpaceRef, window: u64, pages: u64) -> bool {
    let area = space.utcb_area();
    let inside = window.is_multiple_of(FRAME)
        && window >= area.start.max(FIRST_ADDRESS)
        && window < area.end
        && area.end - window >= pages * FRAME;
    inside && (0..pages).all(|page| space.page(window + page * FRAME).is_none())
}

/// The page of the task's records, new if it has none yet.
fn linkages(client: SpaceRef) -> Result<LinkagesRef, CallError> {
    if let Some(page) = client.task.linkages.get() {
        return Ok(page);
    }
    let frame = client.quota().take_zeroed_frame().map_err(|_| CallError::NoMemory)?;
    let page = LinkagesRef::new(frame);
    page.client.set(Some(client));
    page.payer.set(Some(client));
    client.task.linkages.set(Some(page));
    Ok(page)
}

/// A free binding, and the first of as many free records as it needs.
fn place(page: LinkagesRef, request: &Proposal) -> Option<(BindingRef, usize)> {
    let mut bindings = (0..MAX_BINDINGS).filter_map(|index| page.binding(index));
    let binding = bindings.find(|binding| binding.count.get() == 0)?;
    let count = request.count as usize;
    let is_free = |index| page.record(index).is_some_and(|record| record.binding.get() == 0);
    Some((binding, first_run(MAX_A_STACKS_OF_TASK, count, is_free)?))
}

/// The first of the first `count` of `all` that follow each other and are free; each is looked at once.
pub fn first_run(
    all: usize,
    count: usize,
    mut is_free: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let mut run = 0;
    let last = (0..all).find(|index| {
        run = if is_free(*index) { run + 1 } else { 0 };
        run == count
    })?;
    Some(last + 1 - count)
}

/// Takes frames for the A-stacks from the client and shows them in both spaces.
fn map(
    client: SpaceRef,
    own: u64,
    server: SpaceRef,
    theirs: u64,
    pages: u64,
) -> Result<(), NoMemory> {
    for page in 0..pages {
        let_in();
        let at = page * FRAME;
        let made = map_one(client, own + at, server, theirs + at);
        if made.is_err() {
            revocation::unmap(client, own, page, None);
            revocation::unmap(server, theirs, page, Some(client));
            return made;
        }
    }
    Ok(())
}

fn map_one(client: SpaceRef, own: u64, server: SpaceRef, theirs: u64) -> Result<(), NoMemory> {
    let frame = client.quota().take_zeroed_frame()?;
    let mapped = server.map_a_stack(theirs, frame.address());
    let mapped = mapped.and_then(|()| {
        client.map_a_stack(own, frame.address()).inspect_err(|_| {
            let _ = server.unmap_kernel_page(theirs);
        })
    });
    mapped.inspect_err(|_| client.quota().give_back(frame))
}
