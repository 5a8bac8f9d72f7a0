//! Unmap (X.2 5.8): revokes rights from what was derived from flexpages, reports
//! and resets their status. In bounded steps; registers as in IPC.

use abi::{Fpage, ThreadId};

use crate::arch::{note_entry, preemption};
use crate::elsewhere;
use crate::irq;
use crate::mem::{Scope, Step, UnmapJob};
use crate::sched::{self, slice};
use crate::thread::TcbRef;
use crate::thread::tcb::{Job, Resume};
use crate::usermem::Utcb;

/// Control bit: flush, i.e. the caller's own mappings too.
const FLUSH: u64 = 1 << 6;

/// The Unmap system call; the flexpages are in the UTCB's message registers.
/// Returns the thread to run next.
pub extern "C" fn unmap(current: TcbRef, control: u64) -> TcbRef {
    note_entry();
    current.result_from.set(ThreadId::NIL);
    current.unmap.control.set(control & 0x7F);
    current.unmap.index.set(0);
    run(current, None)
}

/// Goes on with the Unmap that `current` was preempted in.
#[must_use]
pub fn resume(current: TcbRef) -> TcbRef {
    current.resume.set(Resume::Ipc);
    let job = match current.job.take() {
        Some(Job::Unmap(job)) => Some(job),
        _ => None,
    };
    run(current, job)
}

fn run(current: TcbRef, mut job: Option<UnmapJob>) -> TcbRef {
    let (Some(space), Some(utcb)) = (current.space(), Utcb::of(current)) else {
        return sched::go_on(current);
    };
    let control = current.unmap.control.get();
    let scope = if control & FLUSH != 0 { Scope::Own } else { Scope::Derived };
    let count = (control & 0x3F) as usize + 1;
    let marker = current.marker();
    let mut index = current.unmap.index.get();
    while index < count {
        let fpage = Fpage(utcb.mr(index));
        let mut active = job.take().unwrap_or_else(|| UnmapJob::new(space, fpage, scope, marker));
        match active.advance() {
            Step::Done => {
                utcb.set_mr(index, fpage.with_rights(active.status()).0);
                index += 1;
            }
            Step::More => job = Some(active),
        }
        // After the last flexpage only the return is left, which needs no window.
        let interrupted = if index < count {
            preemption::must_stop()
        } else {
            preemption::is_due() && !elsewhere::lets_all_go_on()
        };
        if interrupted {
            current.unmap.index.set(index);
            current.job.set(job.map(Job::Unmap));
            current.resume.set(Resume::Unmap);
            sched::requeue(current);
            let next = irq::handle_pending(current);
            return if next == current { give_way(current) } else { next };
        }
    }
    sched::go_on(current)
}

/// `current` is about to go on with an Unmap that an interrupt has met. If what it takes back has been
/// shared by others, those who are more urgent than these may be go first, until the next
/// interrupt (docs/decisions/0057).
#[must_use]
pub fn give_way(current: TcbRef) -> TcbRef {
    let job = current.job.take();
    let sharers = match &job {
        Some(Job::Unmap(job)) => job.sharers(),
        _ => [None; 2],
    };
    current.job.set(job);
    slice::give_way_to_those_above(current, sharers)
}
