//! The life of a thread: created inactive, activated, deleted.
//!
//! A thread's kernel memory (tcb and stack, vector state) is paid by the space it
//! lives in; its UTCB by the same space, page by page.

use crate::space::spaces;
use crate::thread::{Kind, TcbRef, current, registry};
use abi::{CallError, ThreadId, utcb};

use super::version;
use crate::arch::{self, phys_to_virt};
use crate::ipc::{cancel, receive, sweep, wait};
use crate::sched::leaving::wants_to_leave;
use crate::space::SpaceRef;
use crate::thread::part::Part;
use crate::thread::rendezvous::{self, Busy};
use crate::thread::tcb::{ARMED, ELSEWHERE, Job, Resume, USES_VECTOR};
use crate::usermem::Utcb;
use crate::{elsewhere, local, lrpc, sched, thread};

/// Default priority (X.2 5.5).
pub const DEFAULT_PRIORITY: u8 = 100;
/// Default time slice in µs (X.2 5.5).
pub const DEFAULT_TIMESLICE_US: u64 = 10_000;

/// Creates the inactive thread `id` in `space`. The number must be free.
pub fn create(id: ThreadId, space: SpaceRef, scheduler: ThreadId) -> Result<TcbRef, CallError> {
    let quota = space.quota();
    let vector = quota.take_frame().map_err(|_| CallError::NoMemory)?;
    let Ok(top) = quota.take_frame() else {
        quota.give_back(vector);
        return Err(CallError::NoMemory);
    };
    let Some(thread) = thread::install(id, vector, top) else {
        quota.give_back(vector);
        quota.give_back(top);
        return Err(CallError::NoMemory);
    };
    thread.id.set(id);
    thread.root.set(space.root().word());
    thread.open_from.set(ThreadId::ANY);
    thread.space.set(Some(space));
    // Nothing else is special about it, and it is not halted.
    let uses_vector = thread::VECTOR_BYTES != 0 && !space.task.no_vector.get();
    thread.special.set(if uses_vector { USES_VECTOR } else { 0 });
    thread.priority.set(DEFAULT_PRIORITY);
    thread.timeslice_us.set(DEFAULT_TIMESLICE_US);
    thread.quantum_left_us.set(u64::MAX);
    thread.scheduler.set(scheduler);
    rendezvous::set_busy(thread, Busy::Inactive);
    space.task.threads.append(thread);
    space.task.thread_count.set(space.task.thread_count.get() + 1);
    registry().insert(thread);
    Ok(thread)
}

/// Gives the inactive `thread` its UTCB at `location` and, if not there yet, the
/// page behind it.
pub fn place_utcb(thread: TcbRef, location: u64) -> Result<(), CallError> {
    let space = thread.space().ok_or(CallError::InvalidSpace)?;
    let area = space.utcb_area();
    let inside = location >= area.start && location < area.end && area.end - location >= utcb::SIZE;
    if !location.is_multiple_of(utcb::SIZE) || !inside {
        return Err(CallError::UtcbArea);
    }
    let phys = space.utcb_page(location & !0xFFF).map_err(|_| CallError::NoMemory)?;
    let block = phys_to_virt(phys | location & 0xFFF) as u64;
    thread.utcb.set(location + utcb::POINTER_OFFSET);
    thread.utcb_k.set(block + utcb::POINTER_OFFSET);
    Ok(())
}

/// Fills in the kernel's words of the UTCB.
fn init_utcb(thread: TcbRef, pager: ThreadId) {
    let Some(utcb) = Utcb::of(thread) else { return };
    utcb.set_word(utcb::MY_GLOBAL_ID, thread.id.get().0);
    utcb.set_word(utcb::PROCESSOR_NO, thread.processor.get().into());
    utcb.set_word(utcb::PAGER, pager.0);
    utcb.set_word(utcb::EXCEPTION_HANDLER, 0);
    utcb.set_word(utcb::FLAGS, 0);
    utcb.set_word(utcb::BR0, 0);
    utcb.set_word(utcb::SELF, thread.utcb.get());
    utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
    utcb.set_word(utcb::LIPC_STATE, utcb::LIPC_UNKNOWN);
}

/// Activates `thread`, which has a UTCB: it waits for its start message from `pager`.
pub fn activate(thread: TcbRef, pager: ThreadId) {
    init_utcb(thread, pager);
    thread.flags.set(arch::machine::USER_FLAGS);
    thread.resume.set(Resume::Ipc);
    thread.kind.set(Kind::Start);
    thread.partner.set(pager);
    thread.then_from.set(pager);
    rendezvous::set_busy(thread, Busy::Waiting);
    // The pager may have sent the start message already.
    if receive::has_sender(thread) {
        receive::receive_elsewhere(thread);
    }
}

/// Activates one of the initial servers: it runs at once.
pub fn activate_running(thread: TcbRef, pager: ThreadId, ip: u64, sp: u64) {
    activate(thread, pager);
    thread.kind.set(Kind::User);
    thread.set_user_ip(ip);
    thread.set_user_sp(sp);
    sched::make_ready(thread);
}

/// Gives `thread` a new version; every IPC with the old one ends.
pub fn change_id(thread: TcbRef, id: ThreadId) {
    elsewhere::recall(thread);
    elsewhere::leave_seat(thread);
    cancel::disconnect(thread);
    thread.abandon_job();
    crate::irq::detach_handler(thread);
    cancel::cancel(thread);
    let waits = wait::waits(thread);
    thread.id.set(id);
    version::note(id);
    match waits {
        rendezvous::Waits::Busy(busy) => rendezvous::set_busy(thread, busy),
        _ => rendezvous::set_busy(thread, Busy::Ready),
    }
    if let Some(utcb) = Utcb::of(thread) {
        utcb.set_word(utcb::MY_GLOBAL_ID, id.0);
    }
    if thread.is_elsewhere() {
        // It has been noted under its old name.
        wants_to_leave(thread);
    }
    sweep::id_lost();
}

/// Deletes `thread`, which is not the current one. Returns its space if that has
/// no thread left: it is the caller's to destroy.
#[must_use]
pub fn delete(thread: TcbRef) -> Option<SpaceRef> {
    debug_assert!(thread != current());
    if thread.special.get() & (ARMED | ELSEWHERE) != 0 {
        elsewhere::recall(thread);
        elsewhere::leave_seat(thread);
        local::disarm(thread);
    }
    cancel::disconnect(thread);
    // A job is large: it is not looked at without need.
    if thread.resume.get() == Resume::Unmap
        || matches!(thread.transfer.part.get(), Some(Part::SendsTo(_)))
    {
        thread.abandon_job();
    }
    crate::irq::detach_handler(thread);
    abandon_destruction(thread);
    abandon_closing(thread);
    debug_assert!(!thread.marker().is_linked(), "a mapping tree leads into a tcb that goes");
    sched::unlink(thread);
    let space = thread.space()?;
    space.task.threads.remove(thread);
    space.task.thread_count.set(space.task.thread_count.get() - 1);
    registry().remove(thread);
    let number = thread.id.get().number();
    for frame in thread::remove(number).into_iter().flatten() {
        space.quota().give_back(frame);
    }
    sweep::id_lost();
    (space.task.thread_count.get() == 0).then_some(space)
}

/// `thread` is being deleted: a clerk that it was ending stays one.
fn abandon_closing(thread: TcbRef) {
    if thread.resume.get() == Resume::Again {
        lrpc::revocation::reopen(ThreadId(thread.destroy_next.get()));
    }
}

/// `thread` is being deleted: what it was destroying is for whoever deletes it.
fn abandon_destruction(thread: TcbRef) {
    // A job is large: it is not looked at without need.
    if thread.resume.get() == Resume::Destroy
        && let Some(Job::Destroy(mut job)) = thread.job.take()
    {
        job.abandon();
        spaces().abandon(job.space());
    }
}
