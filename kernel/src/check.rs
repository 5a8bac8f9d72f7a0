//! The invariant checker: walks threads, queues and the memory module's
//! structures and counts what is wrong, one log line each.

use crate::arch::{TcbRef, cpu};
use crate::ipc::queue;
use crate::ipc::rendezvous::{self, Busy, Waits};
use crate::ipc::transfer::Role;
use crate::{kprintln, thread};

/// Checks everything; returns the number of violations.
#[must_use]
#[inline(never)] // `bench` tells the checker's time from the kernel's by this symbol
pub fn violations() -> u64 {
    let mut found = thread_violations();
    cpu().spaces.for_each(|space| {
        let mut counted = 0;
        thread::for_each(|thread| counted += u64::from(thread.space() == Some(space)));
        if counted != space.task.thread_count.get() {
            kprintln!(
                "check: space {} counts {} threads, but has {counted}",
                space.id(),
                space.task.thread_count.get()
            );
            found += 1;
        }
        if space.quota().used() > space.quota().limit() {
            kprintln!("check: space {} uses more than its quota", space.id());
            found += 1;
        }
        crate::mem::check::check(space, true, &mut |violation| {
            kprintln!(
                "check: space {}: {:?} is broken at {:#x}",
                violation.space,
                violation.rule,
                violation.at
            );
            found += 1;
        });
    });
    found
}

/// Checks only threads and their queues, in time proportional to their number.
#[must_use]
#[inline(never)] // as above
pub fn thread_violations() -> u64 {
    let mut found = 0;
    thread::for_each(|thread| found += check_thread(thread));
    found
}

fn check_thread(thread: TcbRef) -> u64 {
    let id = thread.id.get();
    let scheduler = &cpu().scheduler;
    let mut found = 0;
    let mut fault = |wrong: bool, what: &str| {
        if wrong {
            kprintln!("check: thread {id}: {what}");
            found += 1;
        }
    };
    let waits = rendezvous::waits(thread);
    let running = crate::arch::current() == thread;
    fault(
        waits == Waits::Busy(Busy::Ready) && !running && !scheduler.ready.contains(thread),
        "is ready but not in the ready queue (1993, 5.3.4)",
    );
    fault(
        thread.wake_at_us.get() != 0 && thread.wake.next.get().is_none(),
        "has a wakeup time but is in no wakeup list (1993, 5.3.3)",
    );
    fault(
        waits == Waits::Busy(Busy::Polling) && thread.sending.next.get().is_none(),
        "waits to send but is in no send queue",
    );
    fault(
        thread.senders.get().is_some() != (thread.open_from.get() == queue::SOMEBODY),
        "its open_from and its send queue differ",
    );
    if let Waits::Closed(from) = waits {
        fault(thread::lookup(from).is_none(), "waits for a thread that does not exist");
    }
    let paired = match (thread.transfer.role.get(), thread.transfer.peer.get()) {
        (Role::None, _) => true,
        (Role::Sender, Some(peer)) => {
            peer.transfer.role.get() == Role::Receiver && peer.transfer.peer.get() == Some(thread)
        }
        (Role::Receiver, Some(peer)) => {
            peer.transfer.role.get() == Role::Sender && peer.transfer.peer.get() == Some(thread)
        }
        _ => false,
    };
    fault(!paired, "its transfer partner does not know of the transfer");
    found
}
