//! Whom a thread waits for, in one word that the fast path checks with one compare.
//!
//! The word is `own id ^ w`. For a sender with id `s` that names the receiver by
//! `to`, the fast path computes `to ^ word`:
//! - `w = 0` (open wait): the result is 0 exactly if `to` is the receiver's current id;
//! - `w = p` (closed wait for p): the result is `s` exactly if `to` is current and `s = p`;
//! - `w = code << 32` (every other state): the result would have to be an interrupt's
//!   thread number, which no sender has.
//!
//! So one word says that the id is current, the thread waits, it waits for this
//! sender, and nothing about it is special. Thread numbers below the first
//! user-level number never send through the fast path; they are the state codes.
//! (Liedtke 1993, 5.3.1 and 5.5.5: checks shifted to the seldom taken side.)
//!
//! Here is what the word says and how it is written; `ipc::wait` acts on it.
//!
//! Invariant (upheld by `ipc::sweep`): no thread becomes current under an id for which
//! somebody is in a closed wait.

use crate::thread::TcbRef;
use core::cell::Cell;

use abi::ThreadId;
use abi::id::SYSTEM_BASE;

mod armed;

pub use armed::{
    NOBODY, armed_wait, armed_wait_of_others, forbid_armed, is_armed, set_armed_running,
    set_armed_wait, withdraw,
};

/// States in which the fast path must not pick a thread as receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Busy {
    /// Running or ready.
    Ready = 1,
    /// Waiting to send to `partner`.
    Polling = 2,
    /// Waiting to receive in a way only the complete path knows: with a timeout,
    /// from an interrupt, from local threads, or for a kernel-made message's reply.
    Waiting = 3,
    /// In a transfer with `partner`.
    Transfer = 4,
    /// Created and not yet activated.
    Inactive = 5,
    /// Halted.
    Halted = 6,
    /// Waits for a procedure that it has called to return (`lrpc`).
    Calls = 17,
    /// A host that waits for a call.
    Lent = 18,
}

/// What a rendezvous word means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Waits for anybody.
    Open,
    /// Waits for this thread.
    Closed(ThreadId),
    /// Does not wait in a way the fast path can serve.
    Busy(Busy),
    /// A word that nobody writes: only those who look ([`peek`]) ever see it.
    Nonsense,
}

/// The code of a foreign thread that waits for the answer to its system call and has not
/// been touched since: [`Busy::Waiting`] for everybody but the reply's fast path.
pub const SYSTEM_CALL: u64 = 7;

/// The codes of the waits that the fast path may serve, of threads that use vector
/// registers (`arch`): open or closed (for `partner`), registers dead but for the control
/// words, or kept. [`Waits::Open`] and [`Waits::Closed`] for everybody but `vector.S`.
pub const DEAD_OPEN: u64 = 8;
/// See [`DEAD_OPEN`].
pub const DEAD_CLOSED: u64 = 9;
/// See [`DEAD_OPEN`].
pub const KEPT_OPEN: u64 = 10;
/// See [`DEAD_OPEN`].
pub const KEPT_CLOSED: u64 = 11;
const _: () = assert!(PUBLISHED_THERE < SYSTEM_BASE as u64, "the highest code");

/// The code of a thread that waits for a message from user mode: whom it waits for stands in
/// its UTCB (`local`). `ipc::wait` brings that into the kernel first. Odd, and nobody is its
/// `partner`, as for [`ARMED`]: so `vector.S` has no further check for the two.
pub const PUBLISHED: u64 = 13;

/// The code of an armed thread that waits plainly, but where user mode can't wake it: whom it
/// waits for stands in `armed_rendezvous`, where `armed.S` looks, or in `beside_rendezvous`, where `beside.S`
/// does, if it uses vector registers. Also that of the one that runs in
/// user mode; the kernel's entry makes it [`Busy::Ready`] first.
pub const ARMED: u64 = 15;

/// The code of a thread whose user code runs on another processor, or waits to
/// (`elsewhere`): [`Busy::Ready`] for everybody but those who would run it.
pub const AWAY: u64 = 16;

const CALLS: u64 = Busy::Calls as u64;
const LENT: u64 = Busy::Lent as u64;

/// The code of a thread that is on another processor together with others, with whom it may be talking
/// there (`elsewhere`), or may hand over to others there: only that processor knows its state,
/// and `ipc::wait` calls them all back first.
pub const SEATED: u64 = 19;

/// As [`PUBLISHED`], of a thread whose user code runs on another processor. If somebody of its space is there
/// who may hand over to it, `ipc::wait` calls that one back first.
pub const PUBLISHED_THERE: u64 = 20;

/// Whether a fast path takes `code` for a wait that it may end: as number of a thread, too, for what is
/// compared is `to ^ word`, and where nobody is the word is 0. So somebody is to be found at these
/// numbers who waits for nobody, and whose own word makes none of them another of them.
#[must_use]
pub const fn is_code_of_a_wait(code: u32) -> bool {
    matches!(code as u64, 0 | SYSTEM_CALL..=ARMED)
}

/// The code of somebody who is no thread, and stands for nobody at all those numbers.
const NO_THREAD: u64 = 32;
const _: () = {
    let mut number = 0;
    while number < SYSTEM_BASE {
        let compared = number ^ NO_THREAD as u32;
        assert!(!is_code_of_a_wait(number) || !is_code_of_a_wait(compared));
        assert!(compared < SYSTEM_BASE, "nobody's number is compared with a code");
        number += 1;
    }
};

/// `nobody` is no thread and waits for nobody, whatever number leads to it.
pub fn set_no_thread(nobody: TcbRef) {
    set_code(nobody, NO_THREAD);
    nobody.armed_rendezvous.set(nobody.rendezvous.get());
    nobody.beside_rendezvous.set(nobody.rendezvous.get());
}

/// Whether a fast path could take `thread`, to which `number` leads, for one who waits in one of the
/// ways that have codes, whatever version is asked for; for the checker.
#[must_use]
pub fn seems_to_wait(thread: TcbRef, number: u32) -> bool {
    let compared = |word: &Cell<u64>| (word.get() >> CODE_SHIFT) as u32 ^ number;
    is_code_of_a_wait(compared(&thread.rendezvous))
        || compared(&thread.armed_rendezvous) == 0
        || compared(&thread.beside_rendezvous) == 0
}

/// Distance in bits between a state code and its place in the word.
pub const CODE_SHIFT: u32 = 32;
const _: () = assert!((Busy::Halted as u32) < SYSTEM_BASE && SYSTEM_CALL < SYSTEM_BASE as u64);

/// What stands in place of a partner in the word of a thread in state `busy`.
#[must_use]
pub const fn code_word(busy: Busy) -> u64 {
    (busy as u64) << CODE_SHIFT
}

/// The word of a thread `own` in state `busy`.
#[must_use]
pub const fn busy_word(own: ThreadId, busy: Busy) -> u64 {
    own.0 ^ code_word(busy)
}

/// What `thread` waits for, for those who only look: a public wait stays one (`ipc::wait` brings it back).
#[must_use]
pub fn peek(thread: TcbRef) -> Waits {
    decode(thread, seen)
}

/// The same, where `others` decodes what only threads wait in about which something is special.
#[inline(always)]
#[must_use]
pub fn decode(thread: TcbRef, others: fn(TcbRef, u64) -> Waits) -> Waits {
    let word = thread.rendezvous.get() ^ thread.id.get().0;
    match word {
        0 => Waits::Open,
        _ if word >> CODE_SHIFT >= u64::from(SYSTEM_BASE) => Waits::Closed(ThreadId(word)),
        _ => Waits::Busy(match word >> CODE_SHIFT {
            1 => Busy::Ready,
            2 => Busy::Polling,
            3 | SYSTEM_CALL => Busy::Waiting,
            4 => Busy::Transfer,
            5 => Busy::Inactive,
            6 => Busy::Halted,
            code => return others(thread, code),
        }),
    }
}

/// What the code of such a thread says to those who only look.
#[cold]
#[must_use]
pub fn seen(thread: TcbRef, code: u64) -> Waits {
    match code {
        DEAD_OPEN | KEPT_OPEN => Waits::Open,
        DEAD_CLOSED | KEPT_CLOSED => Waits::Closed(thread.partner.get()),
        PUBLISHED | PUBLISHED_THERE => Waits::Busy(Busy::Waiting),
        AWAY | SEATED => Waits::Busy(Busy::Ready),
        ARMED => match armed_wait(thread) {
            None => Waits::Busy(Busy::Ready),
            Some(ThreadId::ANY) => Waits::Open,
            Some(from) => Waits::Closed(from),
        },
        CALLS => Waits::Busy(Busy::Calls),
        LENT => Waits::Busy(Busy::Lent),
        _ => Waits::Nonsense,
    }
}

/// Puts `thread` into an open wait that the fast path may serve. The caller vouches for
/// `ipc::wait::seal`.
pub fn set_open(thread: TcbRef) {
    thread.rendezvous.set(thread.id.get().0);
}

/// Puts `thread` into a closed wait for `partner` that the fast path may serve. The caller
/// vouches for `ipc::wait::seal`.
pub fn set_closed(thread: TcbRef, partner: ThreadId) {
    thread.rendezvous.set(thread.id.get().0 ^ partner.0);
}

/// Whether `thread` is away ([`AWAY`]).
#[must_use]
pub fn is_away(thread: TcbRef) -> bool {
    thread.rendezvous.get() ^ thread.id.get().0 == AWAY << CODE_SHIFT
}

/// `thread`, which was ready, is away.
pub fn set_away(thread: TcbRef) {
    set_code(thread, AWAY);
}

/// Whether `thread` is there with others ([`SEATED`]).
#[must_use]
pub fn is_seated(thread: TcbRef) -> bool {
    thread.rendezvous.get() ^ thread.id.get().0 == SEATED << CODE_SHIFT
}

/// `thread`, which was away or waited plainly, is there with others.
pub fn set_seated(thread: TcbRef) {
    set_code(thread, SEATED);
}

/// Whether `thread` is in an ordinary wait although it uses vector registers; for the
/// checker.
#[must_use]
pub fn is_unsealed(thread: TcbRef) -> bool {
    let word = thread.rendezvous.get() ^ thread.id.get().0;
    thread.special.get() != 0 && (word == 0 || word >> CODE_SHIFT >= u64::from(SYSTEM_BASE))
}

/// If `thread`, which uses vector registers, is in an ordinary wait, makes it one that the fast path for such threads
/// serves.
pub fn seal(thread: TcbRef) {
    let dead = thread.vector_from.get() == thread.vector_initial.get();
    match thread.rendezvous.get() ^ thread.id.get().0 {
        0 => set_code(thread, if dead { DEAD_OPEN } else { KEPT_OPEN }),
        word if word >> CODE_SHIFT >= u64::from(SYSTEM_BASE) => {
            thread.partner.set(ThreadId(word));
            set_code(thread, if dead { DEAD_CLOSED } else { KEPT_CLOSED });
        }
        _ => {}
    }
}

/// Whom `thread` waits for, if it does and nothing of its registers has to be kept meanwhile, with
/// or without a fast path.
#[must_use]
pub fn plain_wait(thread: TcbRef) -> Option<ThreadId> {
    const WAITING: u64 = Busy::Waiting as u64;
    let word = thread.rendezvous.get() ^ thread.id.get().0;
    match word >> CODE_SHIFT {
        0 if word == 0 => Some(ThreadId::ANY),
        code if code >= u64::from(SYSTEM_BASE) => Some(ThreadId(word)),
        DEAD_OPEN => Some(ThreadId::ANY),
        WAITING | DEAD_CLOSED => Some(thread.partner.get()),
        _ => None,
    }
}

/// Whom `thread` waits for, if it waits for somebody: for a first look at many threads, of
/// most of whom that says enough.
#[inline(always)]
#[must_use]
pub fn awaited(thread: TcbRef) -> ThreadId {
    match thread.rendezvous.get() ^ thread.id.get().0 {
        0 => ThreadId::NIL,
        word if word >> CODE_SHIFT >= u64::from(SYSTEM_BASE) => ThreadId(word),
        _ => thread.partner.get(),
    }
}

/// Whether `thread` waits for messages from user mode.
#[must_use]
pub fn is_published(thread: TcbRef) -> bool {
    thread.rendezvous.get() ^ thread.id.get().0 == PUBLISHED << CODE_SHIFT
}

/// Lets `thread`, which waits as its UTCB says, be found by messages from user mode.
pub fn set_published(thread: TcbRef) {
    thread.partner.set(ThreadId::NIL);
    set_code(thread, PUBLISHED);
}

/// Whether `thread` waits for messages from user mode of another processor.
#[must_use]
pub fn is_published_there(thread: TcbRef) -> bool {
    thread.rendezvous.get() ^ thread.id.get().0 == PUBLISHED_THERE << CODE_SHIFT
}

/// Lets `thread`, whose user code runs on another processor, be found there likewise.
pub fn set_published_there(thread: TcbRef) {
    thread.partner.set(ThreadId::NIL);
    set_code(thread, PUBLISHED_THERE);
}

/// Whether `thread` waits for messages from user mode, wherever.
#[must_use]
pub fn is_public(thread: TcbRef) -> bool {
    is_published(thread) || is_published_there(thread)
}

/// Writes a state that has no name in [`Busy`].
pub fn set_code(thread: TcbRef, code: u64) {
    thread.rendezvous.set(thread.id.get().0 ^ code << CODE_SHIFT);
}

/// Puts `thread` into a state that the fast path leaves alone.
pub fn set_busy(thread: TcbRef, busy: Busy) {
    thread.rendezvous.set(busy_word(thread.id.get(), busy));
}
