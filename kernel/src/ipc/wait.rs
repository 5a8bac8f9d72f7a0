//! Waits that others than the kernel's complete path may end: messages from user mode, other processors, the fast
//! paths of threads about which something is special. The rendezvous word (`thread::rendezvous`) says so; here
//! such a wait is brought back into the kernel before anybody acts on it, and an ordinary one is made one of them.

use abi::ThreadId;

use crate::thread::TcbRef;
use crate::thread::rendezvous::{
    self, ARMED, Busy, PUBLISHED, PUBLISHED_THERE, SEATED, Waits, decode, seen, set_busy, withdraw,
};
use crate::thread::state::State;
use crate::{elsewhere, local, thread};

/// Decodes the state of `thread`, and brings a public wait back into the kernel.
#[inline(always)]
#[must_use]
pub fn waits(thread: TcbRef) -> Waits {
    decode(thread, sealed)
}

/// What `thread` is doing. A wait that user mode may end becomes the kernel's first.
#[must_use]
pub fn state(thread: TcbRef) -> State {
    State::from(thread, waits(thread))
}

/// The ordinary wait of a thread that uses vector registers ([`seal`]).
#[cold]
fn sealed(thread: TcbRef, code: u64) -> Waits {
    match code {
        PUBLISHED => local::reclaim(thread),
        ARMED => {
            withdraw(thread);
            return waits(thread);
        }
        SEATED => {
            elsewhere::bring_back(thread);
            return waits(thread);
        }
        PUBLISHED_THERE if elsewhere::may_be_running(thread) => {
            elsewhere::bring_back(thread);
            return waits(thread);
        }
        PUBLISHED_THERE => local::reclaim(thread),
        _ => {}
    }
    match seen(thread, code) {
        // Only `set_code`, `set_busy` and the fast paths write codes, and they have no other.
        Waits::Nonsense => {
            panic!("{thread:?} is in state {code}, and there is none of that number")
        }
        waits => waits,
    }
}

/// If `thread` uses vector registers and is in an ordinary wait, makes it one that the fast
/// path for such threads serves. It has to be so before anybody else runs: the processor's
/// switch does it for the thread that it leaves, other places for threads that do not run.
pub fn seal(thread: TcbRef) {
    if thread.special.get() == 0 {
        return;
    }
    if thread.is_armed() {
        return local::publish(thread);
    }
    if thread.is_elsewhere() {
        wait_for_the_complete_path(thread);
        return elsewhere::begins_to_wait(thread);
    }
    if !thread::has_vector_gate() {
        return wait_for_the_complete_path(thread);
    }
    rendezvous::seal(thread);
}

/// If `thread` waits, makes that a wait that no fast path serves.
pub fn wait_for_the_complete_path(thread: TcbRef) {
    match waits(thread) {
        Waits::Open => thread.partner.set(ThreadId::ANY),
        Waits::Closed(from) => thread.partner.set(from),
        Waits::Busy(Busy::Waiting) => {}
        Waits::Busy(_) | Waits::Nonsense => return,
    }
    set_busy(thread, Busy::Waiting);
}
