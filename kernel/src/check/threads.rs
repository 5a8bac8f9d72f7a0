//! One thread control block after the other: identity, state, place in queues, what
//! it will do when it runs.

use abi::layout::{STUBS, USER_END};
use abi::{ThreadId, utcb};

use super::Findings;
use crate::arch::{TcbRef, cpu, machine, virt_to_phys};
use crate::ipc::Kind;
use crate::ipc::queue;
use crate::ipc::rendezvous::{self, Busy, Waits};
use crate::ipc::transfer::Role;
use crate::thread;
use crate::thread::tcb::{Job, Resume};

/// The kernel's pages that users execute and read.
const STUBS_END: u64 = STUBS + 0x2000;

/// Checks `thread`.
pub(super) fn check(thread: TcbRef, found: &mut Findings) {
    let id = thread.id.get();
    let mut fault =
        |wrong: bool, what: &str| found.note(wrong, format_args!("thread {id}: {what}"));
    identity(thread, &mut fault);
    state(thread, &mut fault);
    let (gone, partner) = waiting(thread, &mut fault);
    transfer(thread, &mut fault);
    going_on(thread, &mut fault);
    fault(thread.has_used_spare_stack(), "has used more of its kernel stack than any path may");
    let waits = rendezvous::peek(thread);
    let kind = thread.kind.get();
    found.tell(gone, format_args!("thread {id}: it is {waits:?}, {kind:?}, for {partner}"));
}

fn identity(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    fault(thread::lookup(thread.id.get()) != Some(thread), "its id does not lead to it");
    let Some(space) = thread.space() else {
        return fault(true, "has no address space");
    };
    fault(thread.root.get() != space.root().word(), "its root is not its space's");
    let (pointer, location) = (thread.utcb_k.get(), thread.utcb.get());
    if pointer == 0 {
        return;
    }
    let start = location.wrapping_sub(utcb::POINTER_OFFSET);
    let area = space.utcb_area();
    fault(
        start % utcb::SIZE != 0 || !(area.start..area.end).contains(&start),
        "its UTCB is not in its space's area",
    );
    let phys = virt_to_phys(pointer as *const u8);
    fault(
        space.page(location).is_none_or(|page| page.phys != phys || page.node.is_some()),
        "its space shows another page than its UTCB",
    );
}

fn state(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let waits = rendezvous::peek(thread);
    let scheduler = &cpu().scheduler;
    let is_current = crate::arch::current() == thread;
    let ready = waits == Waits::Busy(Busy::Ready);
    fault(
        ready && !is_current && !scheduler.ready.contains(thread),
        "is ready but not in the ready queue (1993, 5.3.4)",
    );
    fault(
        (waits == Waits::Busy(Busy::Inactive)) != (thread.utcb_k.get() == 0),
        "has a UTCB and is inactive, or is active without one",
    );
    let in_ipc = thread.transfer.role.get() != Role::None || thread.is_between_phases();
    fault(
        ready && thread.halted.get() && !in_ipc && !is_current,
        "is halted and ready at the same time",
    );
    fault(
        ready && thread.kind.get() != Kind::User && !in_ipc,
        "runs while the kernel exchanges a message for it",
    );
    let plain = matches!(waits, Waits::Open | Waits::Closed(_));
    fault(
        plain && thread.halted.get(),
        "is halted and waits in a way that lets the fast path wake it",
    );
    fault(
        plain && thread.kind.get() != Kind::User,
        "waits for the reply to a kernel-made message as if it were its own",
    );
    fault(
        !is_current && rendezvous::is_unsealed(thread),
        "uses vector registers and waits as if it did not",
    );
    let is_public = rendezvous::is_published(thread);
    fault(
        is_public && !thread.is_armed(),
        "waits for messages from user mode, which it gets none of",
    );
    fault(
        is_public
            && (thread.kind.get() != Kind::User || thread.halted.get() || timed_or_wanted(thread)),
        "may be woken from user mode, but waits for something else",
    );
    fault(
        (plain || is_public) && thread.resume.get() != Resume::Ipc,
        "waits in a way that the fast path may end, but will not return from an IPC",
    );
}

/// Whether the thread has a limit of time, or somebody is queued to send to it.
fn timed_or_wanted(thread: TcbRef) -> bool {
    thread.wake_at_us.get() != 0 || !thread.senders.is_empty()
}

/// Returns whether the thread waits for one that is gone, and for whom.
fn waiting(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) -> (bool, ThreadId) {
    let waits = rendezvous::peek(thread);
    let timed = thread.wake_at_us.get() != 0;
    fault(
        timed && !thread.wake.are_linked(),
        "has a wakeup time but is in no wakeup list (1993, 5.3.3)",
    );
    fault(
        timed && !matches!(waits, Waits::Busy(Busy::Polling | Busy::Waiting)),
        "has a wakeup time but does not wait",
    );
    let polls = waits == Waits::Busy(Busy::Polling);
    fault(
        polls != thread.sending.are_linked(),
        "waits to send but is in no send queue, or the other way round",
    );
    fault(
        thread.senders.is_empty() == (thread.open_from.get() == queue::SOMEBODY),
        "its open_from and its send queue differ",
    );
    let partner = match waits {
        Waits::Closed(from) => from,
        Waits::Busy(Busy::Polling) => thread.partner.get(),
        // Whom it waits for stands in its UTCB.
        _ if rendezvous::is_published(thread) => ThreadId::ANY,
        Waits::Busy(Busy::Waiting) if thread.kind.get() != Kind::Start => thread.partner.get(),
        _ => ThreadId::ANY,
    };
    let gone = partner.is_global() && thread::lookup(partner).is_none();
    // Who waits to send is told at once.
    let gone = gone && (polls || !cpu().registry.sweep.is_under_way());
    fault(gone, "waits for a thread that does not exist");
    (gone, partner)
}

fn transfer(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let state = &thread.transfer;
    let paired = match (state.role.get(), state.peer.get()) {
        (Role::None, peer) => peer.is_none(),
        (role, Some(peer)) => answers(thread, role, peer),
        (_, None) => false,
    };
    fault(!paired, "its transfer partner does not know of the transfer");
    if let Some((role, peer)) = state.outer.get() {
        fault(state.role.get() != Role::Receiver, "is answered without being answered");
        fault(
            !answers(thread, role, peer),
            "the partner of the transfer that met its fault does not know of it",
        );
    }
    let idle = state.role.get() == Role::None;
    fault(
        idle && rendezvous::peek(thread) == Waits::Busy(Busy::Transfer),
        "is in a transfer with nobody",
    );
    fault(
        idle && thread.kind.get() == Kind::TransferFault,
        "asks its pager for a page of a transfer that is over",
    );
}

/// Whether `peer` plays the other part in the transfer in which `thread` plays `role`.
fn answers(thread: TcbRef, role: Role, peer: TcbRef) -> bool {
    let other = if role == Role::Sender { Role::Receiver } else { Role::Sender };
    let lives = thread::lookup_number(peer.id.get().number()) == Some(peer);
    let now = (peer.transfer.role.get(), peer.transfer.peer.get());
    lives && (now == (other, Some(thread)) || peer.transfer.outer.get() == Some((other, thread)))
}

/// Whether the thread has a memory operation under way.
pub(super) fn has_job(thread: TcbRef) -> bool {
    let job = thread.job.take();
    let any = job.is_some();
    thread.job.set(job);
    any
}

fn going_on(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let job = thread.job.take();
    let resume = thread.resume.get();
    let fits = match &job {
        None => true,
        Some(Job::Map(_)) => thread.transfer.role.get() == Role::Sender,
        Some(Job::Unmap(_)) => resume == Resume::Unmap,
        Some(Job::Destroy(_)) => resume == Resume::Destroy,
    };
    thread.job.set(job);
    fault(!fits, "has a memory operation under way with which it does not go on");
    fault(resume == Resume::Idle, "goes on as the idle thread");
    let inactive = thread.utcb_k.get() == 0;
    if inactive || crate::arch::current() == thread {
        return;
    }
    let (ip, _) = thread.user_ip_sp();
    let flags = thread.user_flags();
    // An exception or interrupt right behind a jump shows where the program jumped to,
    // which can be anywhere: it will fault there.
    let jumped = thread.frame_if_used().is_some_and(|frame| !frame.is_of_a_call());
    let user = jumped || ip <= USER_END || (STUBS..STUBS_END).contains(&ip);
    // A thread that waits for its start message has no instruction pointer yet.
    fault(!user, "will go on at an address that is no user's");
    fault(!machine::are_users_flags(flags), "will go on with flags that no user may have");
    fault(
        thread.frame_if_used().is_some_and(|frame| !frame.is_users()),
        "will go on with a frame that does not lead to user mode",
    );
}

/// Checks what the processor's state says about threads.
pub(super) fn check_processor(found: &mut Findings) {
    let scheduler = &cpu().scheduler;
    let is_known = |thread: TcbRef| {
        let mut known = scheduler.idle.get() == Some(thread);
        thread::for_each(|other| known |= other == thread);
        known
    };
    let owner = scheduler.slice_owner.get();
    found.note(
        owner.is_some_and(|owner| !is_known(owner)),
        format_args!("the time slice belongs to a thread that does not exist"),
    );
    found
        .note(!is_known(crate::arch::current()), format_args!("the running thread does not exist"));
}
