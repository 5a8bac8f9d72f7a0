//! The end of a task: its mappings and all that derive from them vanish, its
//! kernel memory goes back to its chief. In bounded steps, by the deleting thread.

use crate::arch::preemption::Stint;
use crate::arch::{cpu, preemption};
use crate::irq;
use crate::lrpc;
use crate::mem::{DestroyJob, Step};
use crate::sched;
use crate::space::SpaceRef;
use crate::space::spaces;
use crate::thread::TcbRef;
use crate::thread::tcb::{Job, Resume};

/// What it takes to give a task another chief, in instructions, roughly.
const ORPHAN: u32 = 40;
/// UTCB pages looked at in one step.
const UTCB_PAGES: u32 = 4;

/// Starts to destroy `space`, which has no threads left, for `caller`, the
/// current thread with its user state in its frame; returns who runs next.
#[must_use]
pub fn start(caller: TcbRef, space: SpaceRef) -> TcbRef {
    let job = begin(caller, space);
    // Somebody who is more urgent than the task, and less than `caller`, may wait since an interrupt before this.
    let somebody_waits = cpu().scheduler.ready.holds_above(space.ceilings().priority);
    // Deleting its threads has used up this stretch with interrupts off.
    if preemption::must_stop() || somebody_waits {
        preempted(caller, job)
    } else {
        run(caller, job)
    }
}

/// An interrupt came: `caller` goes on later; until the next interrupt those run who are more
/// urgent than the task was (docs/decisions/0052).
fn preempted(caller: TcbRef, job: DestroyJob) -> TcbRef {
    caller.job.set(Some(Job::Destroy(job)));
    caller.resume.set(Resume::Destroy);
    sched::requeue(caller);
    let next = irq::handle_pending(caller);
    if next == caller { give_way(caller) } else { next }
}

/// `caller` is about to go on with a destruction that an interrupt has met: who goes first.
#[must_use]
pub fn give_way(caller: TcbRef) -> TcbRef {
    let job = caller.job.take();
    let priority = match &job {
        Some(Job::Destroy(job)) => job.space().ceilings().priority,
        _ => u8::MAX,
    };
    caller.job.set(job);
    sched::slice::give_way(caller, priority)
}

fn begin(caller: TcbRef, space: SpaceRef) -> DestroyJob {
    caller.destroy_next.set(space.utcb_area().start);
    DestroyJob::new(space, caller.marker())
}

/// Goes on with the destruction that `caller` was preempted in.
#[must_use]
pub fn resume(caller: TcbRef) -> TcbRef {
    caller.resume.set(Resume::Frame);
    match caller.job.take() {
        Some(Job::Destroy(job)) => run(caller, job),
        _ => sched::go_on(caller),
    }
}

fn run(caller: TcbRef, mut job: DestroyJob) -> TcbRef {
    loop {
        while let Step::More = step(caller, &mut job) {
            if preemption::must_stop() {
                return preempted(caller, job);
            }
        }
        finish(caller, job.space());
        let Some(abandoned) = spaces().take_abandoned() else { return sched::go_on(caller) };
        job = begin(caller, abandoned);
        if preemption::must_stop() {
            return preempted(caller, job);
        }
    }
}

/// One bounded step: first bindings and UTCB pages, which only the kernel maps, then the rest.
fn step(caller: TcbRef, job: &mut DestroyJob) -> Step {
    let space = job.space();
    if let Step::More = orphan_children(space) {
        return Step::More;
    }
    if let Step::More = procedure_calls(caller, space) {
        return Step::More;
    }
    let end = space.utcb_area().end;
    if space.task.utcb_pages.get() == 0 || caller.destroy_next.get() >= end {
        return job.advance();
    }
    for _ in 0..UTCB_PAGES {
        let page = caller.destroy_next.get();
        if space.task.utcb_pages.get() == 0 || page >= end {
            break;
        }
        let _ = space.drop_utcb_page(page);
        caller.destroy_next.set(page + 4096);
    }
    Step::More
}

/// A step of the end of what `space` has to do with procedure calls, as client and as heir.
fn procedure_calls(caller: TcbRef, space: SpaceRef) -> Step {
    match (lrpc::revocation::client_ends(space), heir(caller, space)) {
        (Step::Done, Some(heir)) => lrpc::revocation::inherit(space, heir),
        (step, _) => step,
    }
}

/// Who has what is left of `space`.
fn heir(caller: TcbRef, space: SpaceRef) -> Option<SpaceRef> {
    space.task.chief.get().or(caller.space())
}

/// Nothing is left of `space` but its descriptor and its quota: its chief inherits.
fn finish(caller: TcbRef, space: SpaceRef) {
    // What it has inherited itself since the first steps.
    while orphan_children(space) == Step::More {}
    spaces().remove(space);
    if let Some(heir) = heir(caller, space) {
        while lrpc::revocation::inherit(space, heir) == Step::More {
            preemption::let_in();
        }
        space.set_chief(None);
        space.free(heir.quota());
    }
}

/// The tasks created by `space` now belong to its chief. They may be many, so this stops if an interrupt comes.
fn orphan_children(space: SpaceRef) -> Step {
    let mut stint = Stint::default();
    while let Some(child) = space.task.below.first() {
        child.set_chief(space.task.chief.get());
        if stint.must_stop_after(ORPHAN) {
            return Step::More;
        }
    }
    Step::Done
}
