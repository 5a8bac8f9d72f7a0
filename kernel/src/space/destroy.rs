//! The end of a task: its mappings and all that derive from them vanish, its
//! kernel memory goes back to its chief. In bounded steps, by the deleting thread.

use crate::arch::{TcbRef, cpu, interrupt_pending};
use crate::ipc;
use crate::irq;
use crate::mem::job::{DestroyJob, Step};
use crate::sched;
use crate::space::SpaceRef;
use crate::thread::tcb::Resume;

/// Budget of one step.
const BUDGET: u32 = 16;

/// Starts to destroy `space`, which has no threads left, for `caller`, the
/// current thread with its user state in its frame; returns who runs next.
#[must_use]
pub fn start(caller: TcbRef, space: SpaceRef) -> TcbRef {
    cpu().spaces.remove(space);
    orphan_children(space);
    run(caller, DestroyJob::new(space))
}

/// Goes on with the destruction that `caller` was preempted in.
#[must_use]
pub fn resume(caller: TcbRef) -> TcbRef {
    caller.resume.set(Resume::Frame);
    match caller.destroy.take() {
        Some(job) => run(caller, job),
        None => ipc::go_on(caller),
    }
}

fn run(caller: TcbRef, mut job: DestroyJob) -> TcbRef {
    while let Step::More = job.step(BUDGET) {
        if interrupt_pending() {
            caller.destroy.set(Some(job));
            caller.resume.set(Resume::Destroy);
            sched::requeue(caller);
            return irq::handle_pending(caller);
        }
    }
    let space = job.space();
    let heir = space.task.chief.get().or(caller.space());
    let quota = space.free();
    if let Some(heir) = heir {
        heir.quota().join(quota);
    }
    ipc::go_on(caller)
}

/// The tasks created by `space` now belong to its chief.
fn orphan_children(space: SpaceRef) {
    cpu().spaces.for_each(|child| {
        if child.task.chief.get() == Some(space) {
            child.task.chief.set(space.task.chief.get());
        }
    });
}
