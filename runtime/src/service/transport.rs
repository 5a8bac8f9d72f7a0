//! How a link's calls travel, and what changes it.

use abi::ThreadId;

use super::inside::{self, Entry};
use super::link::{Bound, Link};
use crate::a_stacks::{AStack, Place};
use crate::{lrpc, thread};

/// How a client's calls travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// By messages.
    Messages,
    /// By procedure calls.
    Calls,
    /// By messages inside the task, without the kernel where the server answers so ([`super::serve_local`]).
    Local,
    /// As calls of functions, on the caller's thread.
    Inside,
    /// By messages to a proxy of the server's, which is somewhere else.
    Far,
}

impl Link {
    /// How calls travel now.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.inside.get() {
            Some(_) => Transport::Inside,
            None if self.token.get() != 0 => Transport::Calls,
            None if self.is_far.get() => Transport::Far,
            None if self.local.get().is_nil() => Transport::Messages,
            None => Transport::Local,
        }
    }

    /// Asks the server for a binding: from now on calls go over it, if it agrees. One of the own task is called as a
    /// function instead, by clients that bind from now on until there is another way; one behind a proxy by messages in any
    /// case.
    pub fn take_calls(&self) {
        if self.is_far.get() {
            return;
        }
        self.wants_calls.set(true);
        self.inside.set(self.own_server());
        if self.inside.get().is_some() {
            self.local.set(ThreadId::NIL);
        } else if self.token.get() == 0 {
            self.bind();
        }
    }

    /// The server, if it is of the own task and can be called as a function: the one that it was in the beginning, since clients
    /// keep where that is.
    pub(super) fn own_server(&self) -> Option<&'static Entry> {
        // Another task's memory, with its table, may be this one's, too.
        let is_own = local_id(self.server.get()).is_some() && !self.has_moved.get();
        inside::find(self.server.get()).filter(|_| is_own)
    }

    /// Messages go by local IPC from now on, if the server is of the own task. Its local id names whatever thread of the task
    /// has that place.
    pub fn take_local(&self) {
        self.take_messages();
        self.find_local();
    }

    pub(super) fn find_local(&self) {
        self.local.set(local_id(self.server.get()).unwrap_or(ThreadId::NIL));
    }

    /// Asks the server for a binding; there is none.
    pub(super) fn bind(&self) {
        let Some(place) = Place::take() else { return };
        let bytes = abi::lrpc::MAX_A_STACK_BYTES;
        let Ok(binding) = lrpc::bind(self.server.get(), place.address(), 1, bytes) else { return };
        self.token.set(binding.token(0).unwrap_or(0));
        self.a_stack.set(AStack::at(place.address()));
        self.bound.replace(Some(Bound { binding, place }));
    }

    /// Ends the binding, if there is one: calls go by messages of the kernel's, wherever the server is.
    pub fn take_messages(&self) {
        self.wants_calls.set(false);
        self.give_up();
    }

    /// The same until there is another one.
    pub(super) fn give_up(&self) {
        self.is_to_bind.set(false);
        self.inside.set(None);
        self.local.set(ThreadId::NIL);
        self.token.set(0);
        self.a_stack.set(None);
        if let Some(bound) = self.bound.take() {
            // Only then the place is free.
            let _ = bound.binding.revoke();
            drop(bound.place);
        }
    }
}

/// The local id of `server`, if it is of this task. Its pager, who may ask as well, gets one that names another here.
pub(super) fn local_id(server: ThreadId) -> Option<ThreadId> {
    thread::other_id(server).filter(|local| thread::other_id(*local) == Some(server))
}
