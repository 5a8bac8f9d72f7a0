//! Rings of tcbs: linked both ways, closed, and not longer than there are threads.

use super::Findings;
use crate::arch::{TcbRef, cpu};
use crate::thread::tcb::{Links, Tcb};

/// Interrupt threads and the idle thread, which are not among the registered ones.
const KERNEL_THREADS: u64 = 64;

/// Walks the ring that starts at `first`, with `each` for its members; how many
/// there are, or `None` if the links are broken.
pub(super) fn walk(
    first: Option<TcbRef>,
    links: fn(&Tcb) -> &Links,
    mut each: impl FnMut(TcbRef),
) -> Option<u64> {
    let Some(first) = first else { return Some(0) };
    let most = cpu().registry.count() + KERNEL_THREADS;
    let mut thread = first;
    let mut members = 0;
    loop {
        members += 1;
        each(thread);
        let next = links(&thread).next.get()?;
        if links(&next).prev.get() != Some(thread) || members > most {
            return None;
        }
        if next == first {
            return Some(members);
        }
        thread = next;
    }
}

/// The ring of all threads and the rings of the spaces' threads; whether the first,
/// on which all other checks rely, is sound.
pub(super) fn registry(found: &mut Findings) -> bool {
    let count = cpu().registry.count();
    let members = walk(cpu().registry.first(), |tcb| &tcb.all, |_| {});
    let sound = members == Some(count);
    found.note(
        !sound,
        format_args!("the ring of all threads has {members:?} members and should have {count}"),
    );
    if !sound {
        return false;
    }
    let mut in_spaces = 0;
    cpu().spaces.for_each(|space| {
        let count = space.task.thread_count.get();
        let mut strangers = 0;
        let members = walk(space.task.threads.get(), |tcb| &tcb.siblings, |thread| {
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
    });
    found.note(
        in_spaces != count,
        format_args!("{count} threads exist, but all spaces together count {in_spaces}"),
    );
    true
}
