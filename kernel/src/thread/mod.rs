//! Threads: what the kernel knows of them, and finding them. What is done with them is in the rooms above.

pub mod kind;
pub mod linkage;
pub mod own;
pub mod part;
mod registers;
pub mod rendezvous;
pub mod state;
pub mod tcb;

use core::cell::Cell;

use abi::{ThreadId, utcb};

use crate::arch::global::global;
use crate::mem::SpaceRef;
use crate::ring::Ring;
use crate::usermem::Utcb;
use tcb::Registered;

pub use crate::arch::thread::{
    LINKAGE_BASE, STACK_BYTES, STRETCH, TcbRef, VECTOR_BYTES, abandon_vector, clear_vector,
    close_fast_path, current, declare_vector, frames_of, has_stretch, has_vector_gate, install,
    is_fast_path_closed, keeps_vector, last_version, lookup, lookup_number, pass_vector, remove,
    sanitise_vector, set_current, set_last_version, update_special, vector_state,
};
pub use kind::Kind;
pub use linkage::{BindingRef, LinkagesRef, RecordRef};
pub use registers::{set_error, set_result};

/// All threads of users.
#[derive(Default)]
pub struct Registry {
    threads: Ring<Registered>,
    count: Cell<u64>,
    /// The search for those who wait for ids that are not current.
    pub sweep: Sweep,
}

impl Registry {
    /// No threads.
    #[must_use]
    pub const fn new() -> Self {
        Self { threads: Ring::new(), count: Cell::new(0), sweep: Sweep::new() }
    }

    /// Number of threads.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// The ring.
    #[must_use]
    pub fn threads(&self) -> &Ring<Registered> {
        &self.threads
    }

    /// There is one more.
    pub fn insert(&self, thread: TcbRef) {
        self.count.set(self.count.get() + 1);
        self.threads.append(thread);
    }

    /// There is one less.
    pub fn remove(&self, thread: TcbRef) {
        self.count.set(self.count.get() - 1);
        self.sweep.leave_out(thread, &self.threads);
        self.threads.remove(thread);
    }
}

global! {
    /// All threads of this machine.
    pub fn registry() -> Registry = Registry::new();
}

/// How far the search for those is who wait for ids that are not current (`ipc::sweep`).
#[derive(Default)]
pub struct Sweep {
    /// The next thread to look at, in the order of the registry; none when no sweep is under way.
    pub next: Cell<Option<TcbRef>>,
    /// Ids have been lost since it began: another one follows.
    pub again: Cell<bool>,
}

impl Sweep {
    /// None under way.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: Cell::new(None), again: Cell::new(false) }
    }

    /// Whether somebody may be waiting for an id that is not current.
    #[inline]
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.next.get().is_some()
    }

    /// The registry, which holds `threads`, is about to lose `thread`.
    pub fn leave_out(&self, thread: TcbRef, threads: &Ring<Registered>) {
        if self.next.get() != Some(thread) {
            return;
        }
        let again = || if self.again.replace(false) { threads.first() } else { None };
        let next = threads.behind(thread).or_else(again);
        self.next.set(next.filter(|next| *next != thread));
    }
}

/// Calls `visit` for every thread. `visit` must not delete threads.
pub fn for_each(visit: impl FnMut(TcbRef)) {
    registry().threads.each(visit);
}

/// The thread of `viewer`'s space whose local id is `id`.
#[must_use]
#[inline(never)] // most name others by their global ids
pub fn by_local_id(viewer: TcbRef, id: ThreadId) -> Option<TcbRef> {
    in_space(viewer.space()?, id)
}

/// The thread of `space` whose local id is `local`: its UTCB says who it is, and its tcb whether
/// that is true. A program that overwrites its global id there is found by it no more.
#[must_use]
pub fn in_space(space: SpaceRef, local: ThreadId) -> Option<TcbRef> {
    let id = Utcb::at(space, local)?.thread(utcb::MY_GLOBAL_ID);
    lookup(id).filter(|it| it.utcb.get() == local.0 && it.space() == Some(space))
}

/// The thread that `id` names for `viewer`, globally or locally.
#[must_use]
pub fn resolve(viewer: TcbRef, id: ThreadId) -> Option<TcbRef> {
    if id.is_local() { by_local_id(viewer, id) } else { lookup(id) }
}
