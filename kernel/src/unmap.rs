//! Unmap (X.2 5.8): revokes rights from what was derived from flexpages, reports
//! and resets their status. In bounded steps; registers as in IPC.

use abi::{Fpage, ThreadId};

use crate::arch::{TcbRef, interrupt_noted, interrupt_pending, note_entry};
use crate::call;
use crate::ipc;
use crate::ipc::rendezvous::{self, Busy};
use crate::irq;
use crate::mem::{Step, UnmapJob};
use crate::sched;
use crate::thread::tcb::{Job, Resume};
use crate::usermem::Utcb;

/// Control bit: flush, i.e. the caller's own mappings too.
const FLUSH: u64 = 1 << 6;

/// The Unmap system call; the flexpages are in the UTCB's message registers.
/// Returns the thread to run next.
pub extern "C" fn unmap(current: TcbRef, control: u64) -> TcbRef {
    note_entry();
    current.result_from.set(ThreadId::NIL);
    run(current, State { control, index: 0 }, None)
}

/// Goes on with the Unmap that `current` was preempted in.
#[must_use]
pub fn resume(current: TcbRef) -> TcbRef {
    current.resume.set(Resume::Ipc);
    run(current, current.unmap.get(), current.take_unmap())
}

fn run(current: TcbRef, state: State, job: Option<UnmapJob>) -> TcbRef {
    match work(current, state, job) {
        Step::Done => ipc::go_on(current),
        Step::More => {
            sched::requeue(current);
            irq::handle_pending(current)
        }
    }
}

/// Goes on with the Unmap of `thread` from `state`, perhaps with a flexpage under way, until
/// it is done or an interrupt comes: then the rest is kept in its tcb.
#[inline(always)]
fn work(thread: TcbRef, state: State, mut job: Option<UnmapJob>) -> Step {
    let (Some(space), Some(utcb)) = (thread.space(), Utcb::of(thread)) else {
        return Step::Done;
    };
    let State { control, mut index } = state;
    let last = (control & 0x3F) as usize;
    while index <= last {
        let fpage = Fpage(utcb.mr(index));
        let mut active =
            job.take().unwrap_or_else(|| UnmapJob::new(space, fpage, control & FLUSH != 0));
        match active.advance() {
            Step::Done => {
                utcb.set_mr(index, fpage.with_rights(active.status()).0);
                index += 1;
            }
            Step::More => job = Some(active),
        }
        // Behind the last one there is nothing that would be long enough for a window.
        let interrupted = if index <= last { interrupt_pending() } else { interrupt_noted() };
        if interrupted {
            thread.unmap.set(State { control, index });
            thread.job.set(job.map(Job::Unmap));
            thread.resume.set(Resume::Unmap);
            return Step::More;
        }
    }
    Step::Done
}

/// `caller` deletes `thread`, which was preempted in an Unmap. Unmap has no error (X.2 5.8):
/// what it began is finished first, by who deletes the thread, which does not run any more;
/// then the call begins anew. If `caller` is preempted, too, it does so when it runs again;
/// if it is deleted itself, that is left to whoever deletes the thread next.
#[must_use]
pub fn finish_first(caller: TcbRef, thread: TcbRef) -> TcbRef {
    if thread.is_ready() {
        rendezvous::set_busy(thread, Busy::Halted);
    }
    caller.resume.set(Resume::Call);
    thread.resume.set(Resume::Ipc);
    let done = work(thread, thread.unmap.get(), thread.take_unmap()) == Step::Done;
    // What follows may be as long.
    if interrupt_pending() || !done {
        sched::requeue(caller);
        return irq::handle_pending(caller);
    }
    caller.resume.set(Resume::Frame);
    call::dispatch(caller, caller.frame())
}

/// Where an Unmap stands that was preempted.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// Its control word.
    control: u64,
    /// The next flexpage.
    index: usize,
}
