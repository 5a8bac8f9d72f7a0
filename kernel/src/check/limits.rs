//! What chiefs gave: thread numbers lie inside each other, nothing exceeds a ceiling.

use super::Findings;
use crate::sched;
use crate::space::spaces;
use crate::space::{MAX_DEPTH, SpaceRef};
use crate::thread;
use crate::thread::{TcbRef, last_version};

/// Checks the ranges and ceilings of all tasks, and all threads against them.
pub(super) fn check(found: &mut Findings) {
    spaces().for_each(|space| {
        let Some(chief) = space.task.chief.get() else { return };
        found.note(
            !chief.numbers().includes(space.numbers()),
            format_args!("space {} owns thread numbers that its chief does not own", space.id()),
        );
        found.note(
            !space.ceilings().within(chief.ceilings()),
            format_args!("space {} has a higher ceiling than its chief", space.id()),
        );
    });
    thread::for_each(|thread| of_thread(thread, found));
}

fn of_thread(thread: TcbRef, found: &mut Findings) {
    let Some(space) = thread.space() else { return };
    let (id, ceilings) = (thread.id.get(), space.ceilings());
    found.note(
        !is_owned(space, id.number()),
        format_args!("thread {id}: neither its task nor a chief owns its number"),
    );
    let exceeds = [
        sched::own_priority(thread) > ceilings.priority,
        thread.timeslice_us.get() > ceilings.slice_us().max(1),
        thread.quantum_left_us.get() > ceilings.quantum_us(),
        thread.max_delay_us.get() > u64::from(ceilings.delay_us),
    ];
    for (exceeds, what) in exceeds.into_iter().zip(["priority", "slice", "quantum", "delay"]) {
        found.note(exceeds, format_args!("thread {id}: its {what} is above its task's ceiling"));
    }
    found.note(
        last_version(id.number()) < id.version(),
        format_args!("thread {id}: its number is said to have had lower versions only"),
    );
}

/// Whether the task or a chief owns `number`; where no initial task is above, nobody does.
fn is_owned(space: SpaceRef, number: u32) -> bool {
    let mut step = Some(space);
    let mut privileged = false;
    for _ in 0..=MAX_DEPTH + 1 {
        let Some(above) = step else { return !privileged };
        if above.owns(number) {
            return true;
        }
        privileged |= above.is_privileged();
        step = above.task.chief.get();
    }
    false
}
