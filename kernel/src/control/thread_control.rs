//! ThreadControl (X.2 5.5): create, activate, change, move and delete threads;
//! attach interrupts.

use crate::space::spaces;
use abi::id::{SYSTEM_BASE, THREAD_BITS, USER_BASE};
use abi::{CallError, ThreadId, utcb};

use super::{ceiling, lifecycle, version};
use crate::ipc::{cancel, sweep};
use crate::mem::Step;
use crate::space::{self, SpaceRef, controlled};
use crate::thread::state::State;
use crate::thread::{TcbRef, lookup, lookup_number, resolve};
use crate::usermem::Utcb;
use crate::{irq, lrpc};

/// The arguments of ThreadControl.
pub struct Request {
    /// Thread to work on; the version becomes its version.
    pub dest: ThreadId,
    /// New pager; nil = unchanged (creation: inactive).
    pub pager: ThreadId,
    /// New scheduler; nil = unchanged.
    pub scheduler: ThreadId,
    /// A thread of the space; nil = delete.
    pub space: ThreadId,
    /// UTCB location; all ones = none.
    pub utcb_location: u64,
}

/// The form of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// X.2's: the thread is created, changed or deleted, as the number is free or not.
    Any,
    /// Baton's CreateThread: the thread is created, or the call fails.
    Create,
}

/// What is left to do after the call: deleting a space takes bounded steps. A caller that is to make its call
/// again, because an interrupt has met it, says so itself ([`Resume::Again`]), and the way out of the kernel
/// handles that one: a third case here would make all calls longer.
#[must_use]
pub enum After {
    /// Nothing.
    Nothing,
    /// The last thread of this space is gone: destroy it.
    Destroy(SpaceRef),
}

const NO_UTCB: u64 = !0;

/// Carries out ThreadControl for `caller`.
pub fn thread_control(caller: TcbRef, request: &Request) -> Result<After, CallError> {
    in_form(caller, request, Form::Any)
}

/// Carries out ThreadControl or CreateThread for `caller`.
pub fn in_form(caller: TcbRef, request: &Request, form: Form) -> Result<After, CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let number = request.dest.number();
    if !request.dest.is_global() {
        // Pistachio says 3; the manual 2.
        return Err(CallError::InvalidThread);
    }
    if number < SYSTEM_BASE && form == Form::Any {
        return irq::attach(own, request.dest, request.pager).map(|()| After::Nothing);
    }
    if number < USER_BASE || number >> THREAD_BITS != 0 {
        return Err(own.refusal(CallError::InvalidThread));
    }
    // Whether anybody has it or not: nobody asks about numbers that are not his.
    if !own.owns(number) {
        return Err(CallError::NoPrivilege);
    }
    if form == Form::Create && (request.space.is_nil() || lookup_number(number).is_some()) {
        return Err(CallError::InvalidThread);
    }
    if request.space.is_nil() {
        return delete(caller, own, number);
    }
    match lookup_number(number) {
        None => create(caller, own, request).map(|()| After::Nothing),
        Some(thread) => {
            own.may_control(thread.space())?;
            modify(caller, own, thread, request).map(|()| After::Nothing)
        }
    }
}

fn delete(caller: TcbRef, own: SpaceRef, number: u32) -> Result<After, CallError> {
    let Some(thread) = lookup_number(number) else {
        return Ok(After::Nothing);
    };
    own.may_control(thread.space())?;
    if thread == caller || space::is_initial(thread) {
        return Err(CallError::InvalidThread);
    }
    if let Step::More = close(thread) {
        caller.calls_again();
        return Ok(After::Nothing);
    }
    let unfinished = lifecycle::delete(thread).or_else(|| spaces().take_abandoned());
    Ok(unfinished.map_or(After::Nothing, After::Destroy))
}

fn create(caller: TcbRef, own: SpaceRef, request: &Request) -> Result<(), CallError> {
    let scheduler = scheduler(caller, own, request.scheduler)?;
    let last = version::check(own, request.dest)?;
    sweep::finish_before(request.dest, last);
    let new_space = request.space == request.dest;
    if new_space && !request.pager.is_nil() {
        return Err(CallError::InvalidSpace);
    }
    let space = if new_space {
        space::create(own)?
    } else {
        let member = controlled(caller, request.space, CallError::InvalidSpace)?;
        member.space().ok_or(CallError::InvalidSpace)?
    };
    let made = create_in(caller, space, scheduler, request).inspect_err(|_| {
        // Nobody has seen the id.
        version::restore(request.dest, last);
    });
    if made.is_err() && new_space {
        space::discard(space, own);
    }
    made
}

fn create_in(
    caller: TcbRef,
    space: SpaceRef,
    scheduler: ThreadId,
    request: &Request,
) -> Result<(), CallError> {
    let active = !request.pager.is_nil();
    if active && !space.is_initialised() {
        return Err(CallError::InvalidSpace);
    }
    let thread = lifecycle::create(request.dest, space, scheduler)?;
    let placed = ceiling::begin(thread, caller).and_then(|()| match request.utcb_location {
        NO_UTCB if active => Err(CallError::UtcbArea),
        NO_UTCB => Ok(()),
        // Before SpaceControl the location is remembered and checked at activation.
        location if !active => {
            thread.utcb.set(location);
            Ok(())
        }
        location => lifecycle::place_utcb(thread, location),
    });
    if let Err(error) = placed {
        ceiling::end(thread, caller);
        let _ = lifecycle::delete(thread);
        return Err(error);
    }
    if active {
        lifecycle::activate(thread, global(caller, request.pager));
    }
    Ok(())
}

fn modify(
    caller: TcbRef,
    own: SpaceRef,
    thread: TcbRef,
    request: &Request,
) -> Result<(), CallError> {
    let inactive = State::seen(thread) == State::Inactive;
    stays(caller, thread, request)?;
    let renamed = thread.id.get() != request.dest;
    if renamed {
        let last = version::check(own, request.dest)?;
        sweep::finish_before(request.dest, last);
        if ceiling::is_out_of_time(thread, caller) {
            return Err(CallError::NoPrivilege);
        }
    }
    let new_scheduler = match request.scheduler {
        ThreadId::NIL => None,
        id => Some(scheduler(caller, own, id)?),
    };
    if request.utcb_location != NO_UTCB && !inactive {
        return Err(CallError::UtcbArea);
    }
    // Behind all that refuses, so that who is refused has ended nothing; an inactive thread is no clerk.
    if renamed && is_still_open(caller, thread) {
        return Ok(());
    }
    if request.utcb_location != NO_UTCB {
        thread.utcb.set(request.utcb_location);
    }
    let activates = inactive && !request.pager.is_nil();
    if activates {
        prepare_activation(thread)?;
    }
    // Before the activation: a new version ends every IPC, the wait for the start message too.
    if renamed {
        lifecycle::change_id(thread, request.dest);
    }
    if activates {
        lifecycle::activate(thread, global(caller, request.pager));
    } else if let Some(utcb) = Utcb::of(thread).filter(|_| !request.pager.is_nil()) {
        utcb.set_word(utcb::PAGER, global(caller, request.pager).0);
    }
    if let Some(scheduler) = new_scheduler {
        thread.scheduler.set(scheduler);
    }
    Ok(())
}

/// `thread` is about to lose its id: what others decide the length of, bindings to a clerk and who waits to send to
/// it, ends in steps.
#[inline(always)]
fn close(thread: TcbRef) -> Step {
    match lrpc::revocation::close(thread) {
        Step::Done => cancel::turn_away(thread),
        Step::More => Step::More,
    }
}

/// Whether an interrupt has met that in `thread`, whose id is about to change: `caller` makes its call again.
#[cold]
#[inline(never)]
fn is_still_open(caller: TcbRef, thread: TcbRef) -> bool {
    let step = close(thread);
    if step == Step::More {
        caller.calls_again();
    }
    step == Step::More
}

/// A thread stays where it was created; moving it would move its kernel memory from one payer
/// to another.
fn stays(caller: TcbRef, thread: TcbRef, request: &Request) -> Result<(), CallError> {
    let target = if request.space == request.dest {
        thread.space()
    } else {
        controlled(caller, request.space, CallError::InvalidSpace)?.space()
    };
    if target == thread.space() { Ok(()) } else { Err(CallError::InvalidSpace) }
}

/// The scheduler that `caller` names: the caller's own, or a thread that it may control;
/// for the privileged, anybody. The error does not tell whether there is such a thread.
/// Where the quantum is what a chief gave, that chief's scheduler stays in charge.
fn scheduler(caller: TcbRef, own: SpaceRef, id: ThreadId) -> Result<ThreadId, CallError> {
    let named = global(caller, id);
    if named == caller.scheduler.get() && !own.is_privileged() {
        return Ok(named);
    }
    let allowed = |thread: &TcbRef| !own.is_metered() && own.may_control(thread.space()).is_ok();
    lookup(named).filter(allowed).map(|_| named).ok_or(CallError::InvalidScheduler)
}

/// Gives the inactive `thread` its UTCB, if its space is ready for it.
fn prepare_activation(thread: TcbRef) -> Result<(), CallError> {
    let space = thread.space().ok_or(CallError::InvalidSpace)?;
    if !space.is_initialised() {
        return Err(CallError::InvalidSpace);
    }
    lifecycle::place_utcb(thread, thread.utcb.get())
}

/// The global id of what `caller` names; an id that names nobody stays as it is.
fn global(caller: TcbRef, id: ThreadId) -> ThreadId {
    if !id.is_local() {
        return id;
    }
    resolve(caller, id).map_or(ThreadId::NIL, |thread| thread.id.get())
}

/// Whether `id` is current; for the callers of this module's siblings.
#[must_use]
pub fn exists(id: ThreadId) -> bool {
    lookup(id).is_some()
}
