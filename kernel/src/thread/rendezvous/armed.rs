//! The waits of armed threads in the kernel ([`ARMED`]; decisions 0062, 0074): a second word and a third,
//! like the first, of which armed threads look at one, those with vector registers at the other.
//! `armed.S` and `beside.S` read and write them; the kernel withdraws such a wait before anybody
//! acts on it.

use crate::thread::TcbRef;
use core::cell::Cell;

use abi::ThreadId;
use abi::id::SYSTEM_BASE;

use super::{ARMED, Busy, CODE_SHIFT, busy_word, set_busy, set_code};

/// The partner of a thread whose word is [`ARMED`]: a global id that is nobody's, so that whoever looks
/// for the partners of all threads ([`awaited`]) looks closer.
pub const NOBODY: ThreadId = ThreadId(!1);

/// Where it is said whom `thread`, whose word is [`ARMED`], waits for, and the other such word, which is
/// for threads of the other kind.
fn armed_words(thread: &TcbRef) -> [&Cell<u64>; 2] {
    let words = [&thread.armed_rendezvous, &thread.beside_rendezvous];
    if thread.uses_vector() { [words[1], words[0]] } else { words }
}

/// Whom `thread`, whose word is [`ARMED`], waits for; `None` if it runs.
#[must_use]
pub fn armed_wait(thread: TcbRef) -> Option<ThreadId> {
    armed_wait_in(armed_words(&thread)[0], thread)
}

/// The same for armed threads of the other kind, which are to find nobody; for the checker.
#[must_use]
pub fn armed_wait_of_others(thread: TcbRef) -> Option<ThreadId> {
    armed_wait_in(armed_words(&thread)[1], thread)
}

fn armed_wait_in(word: &Cell<u64>, thread: TcbRef) -> Option<ThreadId> {
    match word.get() ^ thread.id.get().0 {
        0 => Some(ThreadId::ANY),
        word if word >> CODE_SHIFT >= u64::from(SYSTEM_BASE) => Some(ThreadId(word)),
        _ => None,
    }
}

/// Whether the word of `thread` is [`ARMED`].
#[must_use]
pub fn is_armed(thread: TcbRef) -> bool {
    thread.rendezvous.get() ^ thread.id.get().0 == ARMED << CODE_SHIFT
}

/// `thread`, which is armed, waits for `from`, anybody or one other thread, in a way that
/// `armed.S` or `beside.S` serves.
pub fn set_armed_wait(thread: TcbRef, from: ThreadId) {
    let waits = if from == ThreadId::ANY { ThreadId::NIL } else { from };
    armed_words(&thread)[0].set(thread.id.get().0 ^ waits.0);
    thread.partner.set(NOBODY);
    set_code(thread, ARMED);
}

/// `thread`, which is armed, goes to user mode.
pub fn set_armed_running(thread: TcbRef) {
    forbid_armed(thread);
    thread.partner.set(NOBODY);
    set_code(thread, ARMED);
}

/// No armed thread finds `thread` waiting by a look at its `armed_rendezvous` or `beside_rendezvous`.
pub fn forbid_armed(thread: TcbRef) {
    let ready = busy_word(thread.id.get(), Busy::Ready);
    thread.armed_rendezvous.set(ready);
    thread.beside_rendezvous.set(ready);
}

/// Brings the wait of `thread`, whose word is [`ARMED`], back to where all others are.
pub fn withdraw(thread: TcbRef) {
    let from = armed_wait(thread);
    forbid_armed(thread);
    set_busy(thread, if from.is_some() { Busy::Waiting } else { Busy::Ready });
    thread.partner.set(from.unwrap_or(ThreadId::NIL));
}
