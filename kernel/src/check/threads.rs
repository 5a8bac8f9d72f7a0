//! One thread control block after the other: identity, state, place in queues, what
//! it will do when it runs.

use crate::thread::{Kind, TcbRef, registry, state};
use abi::layout::{STUBS, USER_END};
use abi::{ThreadId, utcb};

use super::Findings;
use crate::arch::{cpu, machine, virt_to_phys};
use crate::elsewhere;
use crate::ipc::queue;
use crate::lrpc;
use crate::thread;
use crate::thread::rendezvous::{self, Busy, Waits};

/// The kernel's pages that users execute and read.
const STUBS_END: u64 = STUBS + 0x2000;

/// Checks `thread`.
pub(super) fn check(thread: TcbRef, found: &mut Findings) {
    let id = thread.id.get();
    let mut fault =
        |wrong: bool, what: &str| found.note(wrong, format_args!("thread {id}: {what}"));
    identity(thread, &mut fault);
    state::broken(thread, &mut fault);
    let (gone, partner) = waiting(thread, &mut fault);
    going_on(thread, &mut fault);
    lrpc::check::thread(thread, &mut fault);
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

/// Returns whether the thread waits for one that is gone, and for whom.
fn waiting(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) -> (bool, ThreadId) {
    let waits = rendezvous::peek(thread);
    fault(!elsewhere::is_sound(thread), "is not where it is said to be elsewhere");
    fault(
        thread.is_ready()
            && crate::thread::current() != thread
            && !cpu().scheduler.ready.contains(thread),
        "is ready but not in the ready queue (1993, 5.3.4)",
    );
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
        _ if rendezvous::is_public(thread) => ThreadId::ANY,
        Waits::Busy(Busy::Waiting) if thread.kind.get() != Kind::Start => thread.partner.get(),
        _ => ThreadId::ANY,
    };
    let gone = partner.is_global() && thread::lookup(partner).is_none();
    // Who waits to send is told at once.
    let gone = gone && (polls || !registry().sweep.is_under_way());
    fault(gone, "waits for a thread that does not exist");
    (gone, partner)
}

/// Whether the thread has a memory operation under way.
pub(super) fn has_job(thread: TcbRef) -> bool {
    let job = thread.job.take();
    let any = job.is_some();
    thread.job.set(job);
    any
}

fn going_on(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let inactive = thread.utcb_k.get() == 0;
    // What is elsewhere has its registers there.
    let is_there = thread.is_away() || rendezvous::is_seated(thread);
    if inactive || crate::thread::current() == thread || is_there {
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
    found.note(
        !is_known(crate::thread::current()),
        format_args!("the running thread does not exist"),
    );
}
