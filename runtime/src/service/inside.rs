//! Calls inside a task: a server whose functions may run on several threads at once is called on the caller's, as a
//! function. The message is the one that IPC would carry, and `Dispatch` sees it the same.
//!
//! Servers enter themselves here when they begin to serve (`serve_calls`), under the id of their clerk; links look there when
//! they bind. An entry is for good: the server is, and the id names no other thread later.

use core::any::Any;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use abi::{StringItem, ThreadId};

use super::letter::BODY;
use super::{Caller, Dispatch, Inside, Next, answer_one, label};
use crate::{Msg, thread};

/// Servers of a task that can be entered.
const SERVERS: usize = 8;
/// No thread's id: an entry that is being written.
const WRITTEN: u64 = 1;

/// [`quick`] of some server, and [`dispatch`].
type Quick = unsafe fn(*const (), Caller, &mut Msg) -> bool;
type Otherwise = unsafe fn(*const (), Caller, &Msg, &[u8], &mut [u8]) -> Option<Msg>;

/// A server that can be called on any thread.
pub(super) struct Entry {
    server: *const (),
    itself: &'static dyn Inside,
    quick: Quick,
    dispatch: Otherwise,
}

struct Slot {
    /// The clerk's id; 0 while nobody is entered.
    clerk: AtomicU64,
    entry: UnsafeCell<MaybeUninit<Entry>>,
}

// SAFETY: an entry is written by the one who has changed `clerk` from 0, and read when it is a clerk's id, after which
// nobody writes it. What it leads to is `Sync`.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; SERVERS] =
    [const { Slot { clerk: AtomicU64::new(0), entry: UnsafeCell::new(MaybeUninit::uninit()) } };
        SERVERS];

/// Threads of this task call `server` as a function where they would call thread `clerk` of it; false: there is no place for
/// one more, and they go on by messages.
pub fn offer<S: Dispatch + Inside, const ROOM: usize>(server: &'static S, clerk: ThreadId) -> bool {
    const { assert!(!S::MAPS, "only messages map") }
    let free = |slot: &&Slot| slot.clerk.compare_exchange(0, WRITTEN, Relaxed, Relaxed).is_ok();
    let Some(slot) = SLOTS.iter().find(free) else { return false };
    let entry = Entry {
        server: core::ptr::from_ref(server).cast(),
        itself: server,
        quick: quick::<S>,
        dispatch: dispatch::<S, ROOM>,
    };
    // SAFETY: nobody else writes this one now, and nobody reads it before `clerk` is set.
    unsafe { (*slot.entry.get()).write(entry) };
    slot.clerk.store(clerk.0, Release);
    true
}

/// The server whose clerk is `clerk`, if it is one of this task's.
pub(super) fn find(clerk: ThreadId) -> Option<&'static Entry> {
    let slot = SLOTS.iter().find(|slot| slot.clerk.load(Acquire) == clerk.0)?;
    // SAFETY: it was written before its clerk was, and is not written again.
    (clerk.0 > WRITTEN).then(|| unsafe { (*slot.entry.get()).assume_init_ref() })
}

impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Entry({:p})", self.server)
    }
}

impl Entry {
    /// Leaves the server in `place`, if that is for one of its interface.
    pub(super) fn give(&self, place: &mut dyn Any) {
        self.itself.give(place);
    }

    /// The answer to a request without strings, in place of it.
    #[inline(always)]
    pub(super) fn call(&self, message: &mut Msg) {
        let me = thread::me();
        // SAFETY: `server` is what the two functions were made for.
        if !unsafe { (self.quick)(self.server, me, message) } {
            self.call_otherwise(me, message);
        }
    }

    #[inline(never)]
    fn call_otherwise(&self, me: ThreadId, message: &mut Msg) {
        *message = self.call_with(me, message, None, &mut []);
    }

    /// The answer to a request whose string is `input`; its own comes to be in `output`.
    pub(super) fn call_with(
        &self,
        me: ThreadId,
        request: &Msg,
        input: Option<&[u8]>,
        output: &mut [u8],
    ) -> Msg {
        let (request, input) = match input {
            Some(input) => (request.item(StringItem::simple(0, input.len() as u64)), input),
            None => (*request, &[][..]),
        };
        // SAFETY: as in `call`.
        let answer = unsafe { (self.dispatch)(self.server, me, &request, input, output) };
        answer.unwrap_or_else(|| Msg::new(label::OK))
    }
}

/// # Safety
/// `server` leads to an `S` that is there for good.
unsafe fn quick<S: Dispatch>(server: *const (), caller: Caller, message: &mut Msg) -> bool {
    // SAFETY: the caller's promise.
    let server = unsafe { &*server.cast::<S>() };
    match server.quick(caller, *message, &Back) {
        Ok(answer) => {
            *message = answer;
            true
        }
        Err(_) => false,
    }
}

/// # Safety
/// As for [`quick`].
#[inline(never)]
unsafe fn dispatch<S: Dispatch, const ROOM: usize>(
    server: *const (),
    caller: Caller,
    request: &Msg,
    input: &[u8],
    output: &mut [u8],
) -> Option<Msg> {
    // SAFETY: the caller's promise.
    let server = unsafe { &*server.cast::<S>() };
    let (mut scratch, mut room) = ([0; BODY], [0; ROOM]);
    let rooms = (&mut scratch, input, &mut room[..], output);
    let (answer, string) = answer_one(server, caller, request, rooms)?;
    Some(match string {
        Some(len) => answer.item(StringItem::simple(0, len as u64)),
        None => answer,
    })
}

/// The end of a function: its answer.
struct Back;

impl Next<Msg> for Back {
    type Request = Msg;

    const FLAGS: u64 = 0;

    #[inline(always)]
    fn request(&self, answer: Msg) -> Msg {
        answer
    }
}
