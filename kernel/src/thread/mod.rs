//! Threads: finding, creating, activating and deleting them.

pub mod control;
pub mod exregs;
pub mod foreign;
pub mod lifecycle;
pub mod tcb;
pub mod version;

use core::cell::Cell;

use abi::{CallError, ThreadId};

use crate::arch::{TcbRef, cpu};
use crate::ipc::sweep::Sweep;
use crate::irq::Pace;
use tcb::Links;

pub use crate::arch::{lookup, lookup_number};

/// All threads, as a ring through their tcbs.
#[derive(Default)]
pub struct Registry {
    first: Cell<Option<TcbRef>>,
    count: Cell<u64>,
    /// The search for those who wait for ids that are not current.
    pub sweep: Sweep,
}

impl Registry {
    /// No threads.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Cell::new(None), count: Cell::new(0), sweep: Sweep::new() }
    }

    /// Number of threads.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// The first of the ring.
    #[must_use]
    pub fn first(&self) -> Option<TcbRef> {
        self.first.get()
    }

    fn insert(&self, thread: TcbRef) {
        self.count.set(self.count.get() + 1);
        ring_insert(&self.first, thread, |tcb| &tcb.all);
    }

    fn remove(&self, thread: TcbRef) {
        self.count.set(self.count.get() - 1);
        self.sweep.leave_out(thread, self.first.get());
        ring_remove(&self.first, thread, |tcb| &tcb.all);
    }
}

/// Appends `thread` to the ring that starts at `head`.
pub fn ring_insert(head: &Cell<Option<TcbRef>>, thread: TcbRef, links: fn(&tcb::Tcb) -> &Links) {
    let own = links(&thread);
    match head.get() {
        None => {
            own.next.set(Some(thread));
            own.prev.set(Some(thread));
            head.set(Some(thread));
        }
        Some(first) => {
            let last = links(&first).prev.get().unwrap_or(first);
            own.next.set(Some(first));
            own.prev.set(Some(last));
            links(&last).next.set(Some(thread));
            links(&first).prev.set(Some(thread));
        }
    }
}

/// Removes `thread` from the ring that starts at `head`, if it is in it.
pub fn ring_remove(head: &Cell<Option<TcbRef>>, thread: TcbRef, links: fn(&tcb::Tcb) -> &Links) {
    let own = links(&thread);
    let (Some(next), Some(prev)) = (own.next.take(), own.prev.take()) else { return };
    if next == thread {
        head.set(None);
        return;
    }
    links(&next).prev.set(Some(prev));
    links(&prev).next.set(Some(next));
    if head.get() == Some(thread) {
        head.set(Some(next));
    }
}

/// Calls `visit` for every thread. `visit` must not delete threads.
pub fn for_each(mut visit: impl FnMut(TcbRef)) {
    let Some(first) = cpu().registry.first.get() else { return };
    let mut thread = first;
    let mut pace = Pace::default();
    loop {
        pace.round();
        visit(thread);
        match thread.all.next.get() {
            Some(next) if next != first => thread = next,
            _ => return,
        }
    }
}

/// The thread of `viewer`'s space whose local id is `id`.
#[must_use]
pub fn by_local_id(viewer: TcbRef, id: ThreadId) -> Option<TcbRef> {
    let first = viewer.space()?.task.threads.get()?;
    let mut thread = first;
    let mut pace = Pace::default();
    loop {
        pace.round();
        if thread.utcb.get() == id.0 {
            return Some(thread);
        }
        thread = thread.siblings.next.get()?;
        if thread == first {
            return None;
        }
    }
}

/// The thread that `id` names for `viewer`, globally or locally.
#[must_use]
pub fn resolve(viewer: TcbRef, id: ThreadId) -> Option<TcbRef> {
    if id.is_local() { by_local_id(viewer, id) } else { lookup(id) }
}

/// The thread that `id` names for `caller`, if `caller` may control it. If not, the error
/// does not tell whether anybody has `id`; `missing` is for those who may know.
pub fn controlled(caller: TcbRef, id: ThreadId, missing: CallError) -> Result<TcbRef, CallError> {
    let own = caller.space().ok_or(CallError::NoPrivilege)?;
    let thread = resolve(caller, id).ok_or(own.refusal_about(id, missing))?;
    own.may_control(thread.space()).map(|()| thread)
}
