//! Messages without the kernel between threads of one space that live on the same processor, another than
//! the first (docs/decisions/0088-local-ipc-on-every-processor.md).
//!
//! One of them is that processor's guest, the others wait in public for that processor; which of them runs there
//! is known only when the guest has been fetched (`elsewhere`). Until then nothing here touches the words
//! of any of them but to let one more wait.

use abi::{ThreadId, utcb};

use super::{count, is_plain, passed, receives, tell};
use crate::thread::TcbRef;
use crate::thread::rendezvous::{self, Busy};
use crate::usermem::Utcb;
use crate::{techniques, thread};

/// Whether `thread` has said that it gets its vector registers back. Somebody who was elsewhere
/// has them saved in any case.
pub fn keeps(thread: TcbRef) -> bool {
    Utcb::of(thread).is_some_and(|utcb| utcb.word(utcb::LIPC_STATE) == utcb::LIPC_KEEPS)
}

/// Publishes the wait of `thread` for `from`, if it may be woken in user mode of its processor.
#[cold]
pub fn publish(thread: TcbRef, from: ThreadId) {
    let (Some(word), Some(utcb)) = (public_word(thread, from), Utcb::of(thread)) else {
        return rendezvous::set_busy(thread, Busy::Waiting);
    };
    utcb.set_word(utcb::LIPC_SP, thread.sp.get());
    utcb.set_word(utcb::LIPC_STATE, utcb::lipc_open(thread.processor.get().into()));
    if !techniques::PENDING_SEND {
        utcb.set_word(utcb::LIPC_WAITED, word);
    }
    // From now on somebody there may find it.
    utcb.set_word(utcb::LIPC_WAIT, word);
    rendezvous::set_published_there(thread);
    count(thread, 1);
}

/// What says in user mode of the processor of `thread` that it waits for `from`; `None` if it can't be woken
/// there.
fn public_word(thread: TcbRef, from: ThreadId) -> Option<u64> {
    if thread.halted.get() || !is_plain(thread) {
        return None;
    }
    let number = thread.processor.get();
    match from {
        ThreadId::ANY => Some(utcb::lipc_open(number.into())),
        ThreadId::ANY_LOCAL => Some(utcb::lipc_open_local(number.into())),
        from => {
            let is_near = |it: &TcbRef| it.same_space(thread) && it.processor.get() == number;
            let partner = thread::lookup(from).filter(is_near)?;
            Some(partner.utcb.get()).filter(|local| *local != 0)
        }
    }
}

/// Whether `word` says that `thread` waits for anybody.
pub(super) fn is_open(thread: TcbRef, word: u64) -> bool {
    thread.is_elsewhere() && word == utcb::lipc_open(thread.processor.get().into())
}

/// Whether `word` says that `thread` waits for anybody of its space.
pub(super) fn is_open_local(thread: TcbRef, word: u64) -> bool {
    thread.is_elsewhere() && word == utcb::lipc_open_local(thread.processor.get().into())
}

/// `guest`, which is armed, is about to go to its processor, where it may hand over to others.
pub fn opens(guest: TcbRef) {
    show(guest, utcb::lipc_open(guest.processor.get().into()));
}

/// `guest`, which is armed, is about to go to its processor, where it hands over to nobody.
pub fn closes(guest: TcbRef) {
    show(guest, utcb::LIPC_CLOSED);
}

fn show(guest: TcbRef, state: u64) {
    let Some(utcb) = Utcb::of(guest) else { return };
    utcb.set_word(utcb::SELF, guest.utcb.get());
    utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
    utcb.set_word(utcb::LIPC_STATE, state);
}

/// Who runs in place of `guest`, which was elsewhere and could hand over there, if its current word says so: one
/// that waits there in public.
#[must_use]
pub fn claimed(guest: TcbRef) -> Option<TcbRef> {
    let current = Utcb::of(guest)?.thread(utcb::SELF);
    let is_there = |it: &TcbRef| {
        rendezvous::is_published_there(*it) && it.processor.get() == guest.processor.get()
    };
    thread::in_space(guest.space()?, current).filter(is_there)
}

/// `from`, which was elsewhere, has handed over there to `to`, which [`claimed`] has found; `from`
/// goes on at `done` then.
pub fn handed_over(from: TcbRef, to: TcbRef, done: u64) {
    passed(from, to, done);
    rendezvous::set_published_there(from);
    if from.uses_vector() {
        thread::pass_vector(from, to);
    }
    if !from.senders.is_empty() {
        receives(from);
    }
}

/// `guest` and whoever has run in its place, `runner`, are back: nobody finds `runner` waiting, and it hands
/// over to nobody here.
pub fn came_home(guest: TcbRef, runner: TcbRef) {
    if let Some(utcb) = Utcb::of(guest) {
        utcb.set_word(utcb::SELF, guest.utcb.get());
    }
    if let Some(utcb) = Utcb::of(runner) {
        utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
    }
    tell(runner, utcb::LIPC_CLOSED);
}
