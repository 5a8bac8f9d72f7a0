//! Rings of tcbs: linked both ways, closed, and not longer than there are threads.

use super::Findings;
use crate::ring::{Ring, Through};
use crate::space::SpaceRef;
use crate::space::spaces;
use crate::thread;

/// Interrupt threads, the idle thread and the waker, which are not among the registered ones.
const KERNEL_THREADS: u64 = 66;

/// Walks `ring`, with `each` for its members; how many there are, or `None` if the links are broken.
pub(super) fn walk<K: Through>(ring: &Ring<K>, each: impl FnMut(K::Member)) -> Option<u64> {
    ring.members(thread::registry().count() + KERNEL_THREADS, each)
}

/// The ring of all threads and the rings of the spaces' threads; whether the first,
/// on which all other checks rely, is sound.
pub(super) fn registry(found: &mut Findings) -> bool {
    let count = thread::registry().count();
    let members = walk(thread::registry().threads(), |_| {});
    let sound = members == Some(count);
    found.note(
        !sound,
        format_args!("the ring of all threads has {members:?} members and should have {count}"),
    );
    if !sound {
        return false;
    }
    let mut in_spaces = 0;
    spaces().for_each(|space| {
        let count = space.task.thread_count.get();
        let mut strangers = 0;
        let members = walk(&space.task.threads, |thread| {
            strangers += u64::from(thread.space() != Some(space));
        });
        found.note(
            members != Some(count) || strangers > 0,
            format_args!(
                "space {} counts {count} threads, but its ring has {members:?}, {strangers} of them of other spaces",
                space.id()
            ),
        );
        in_spaces += count;
        armed(space, found);
    });
    found.note(
        in_spaces != count,
        format_args!("{count} threads exist, but all spaces together count {in_spaces}"),
    );
    true
}

/// The ring of the threads of `space` that may exchange messages in user mode.
fn armed(space: SpaceRef, found: &mut Findings) {
    let count = u64::from(space.task.armed_count.get());
    let mut strangers = 0;
    let members = walk(&space.task.armed, |thread| {
        strangers += u64::from(thread.space() != Some(space) || !thread.is_armed());
    });
    found.note(
        members != Some(count) || strangers > 0,
        format_args!(
            "space {} counts {count} armed threads, but its ring has {members:?}, {strangers} of them not armed",
            space.id()
        ),
    );
}
