//! Protected procedure calls (Bershad et al. 1990), `docs/calls/lrpc.md`: a client's thread calls a
//! procedure of another space; it runs on a thread that the server has lent.
//!
//! ```ignore
//! // The server's clerk, when a message with the label LRPC_BIND has come from `client`:
//! ipc::reply(client, &lrpc::agree(window, 3, cookie));
//! // A host:
//! let mut visit = lrpc::lend(clerk)?;
//! loop {
//!     let words = serve(&visit);
//!     visit = lrpc::give_back(words)?;
//! }
//! // The client:
//! let binding = lrpc::bind(clerk, window, 1, 256)?;
//! let words = binding.call(0, procedure, [1, 2, 3, 4, 5, 6])?;
//! ```

use abi::lrpc::{FIRST_ADDRESS, Status, control, step};
use abi::protocol::LRPC_BIND;
use abi::syscall::Call;
use abi::{CallError, ThreadId};

pub use crate::a_stacks::Place;
use crate::ipc::Msg;
use crate::{kernel, syscall, utcb};

/// Why nothing came back: [`Status::Done`] is never among these.
pub type Result<T> = core::result::Result<T, Status>;

/// Words that a call takes to the procedure beside what lies on the A-stack.
pub const WORDS: usize = 6;

/// The procedures that a clerk has agreed to serve, and A-stacks to call them with.
#[derive(PartialEq, Eq, Debug)]
pub struct Binding {
    first: u64,
    count: u64,
}

/// LrpcCall with the registers of a message; the status, and the registers that come back.
#[inline(always)]
pub(crate) fn call(token: u64, registers: [u64; 7]) -> (u64, syscall::Regs) {
    // SAFETY: no reference leads to an A-stack.
    unsafe { syscall::lrpc_call(token, registers) }
}

/// The same with at most one word there and back: the status, the tag and the word.
#[inline(always)]
pub(crate) fn call_one(token: u64, request: [u64; 2]) -> (u64, [u64; 2]) {
    // SAFETY: as in `call`.
    unsafe { syscall::lrpc_call_one(token, request) }
}

/// Asks `clerk` for a binding with `count` A-stacks of `bytes` each, which come to lie from `window` on, in a
/// part of the task's UTCB area where no UTCB is.
pub fn bind(
    clerk: ThreadId,
    window: u64,
    count: u64,
    bytes: u64,
) -> core::result::Result<Binding, CallError> {
    let registers = [0, 0, 0, 0, bytes, 0, clerk.0, 0];
    let (first, [_, ok, ..]) = trap(Call::LrpcBind, window, count, registers);
    kernel::outcome(ok == 1)?;
    Ok(Binding { first, count })
}

/// Calls `procedure` with `words`, over the A-stack that `token` names, if it is one of the caller's task.
#[inline(always)]
pub fn call_at(token: u64, procedure: u64, words: [u64; WORDS]) -> Result<[u64; 8]> {
    let [a, b, c, d, e, f] = words;
    let (status, words) = call(token, [procedure, a, b, c, d, e, f]);
    match Status::decode(status) {
        Some(Status::Done) => Ok(words),
        Some(why) => Err(why),
        None => Err(Status::ServerFailed),
    }
}

impl Binding {
    /// Calls `procedure` with `words`, over A-stack `a_stack` of this binding; the words that come back.
    #[inline(always)]
    pub fn call(&self, a_stack: u64, procedure: u64, words: [u64; WORDS]) -> Result<[u64; 8]> {
        call_at(self.token(a_stack).ok_or(Status::NoBinding)?, procedure, words)
    }

    /// What names A-stack `a_stack` to the kernel.
    #[must_use]
    pub const fn token(&self, a_stack: u64) -> Option<u64> {
        if a_stack < self.count { Some(step(self.first, a_stack)) } else { None }
    }

    /// Ends the binding, which the server may have revoked: its A-stacks are gone.
    pub fn revoke(self) -> core::result::Result<(), CallError> {
        change(ThreadId::NIL, control::REVOKE, self.first).map(|_| ())
    }
}

/// What somebody who imports asks for; `None` if `message`, which the kernel has made for him, is something else.
#[must_use]
pub fn import(message: &Msg) -> Option<Import> {
    let is_one = message.tag.protocol_label() == LRPC_BIND;
    is_one.then(|| Import { count: message.mr[0], bytes: message.mr[1] })
}

/// See [`import`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Import {
    /// How many A-stacks.
    pub count: u64,
    /// Bytes of each.
    pub bytes: u64,
}

/// A clerk's answer: it agrees to serve `procedures`. The A-stacks come to lie from `window` on, as for
/// [`bind`]; hosts see the cookie. An empty message refuses.
#[must_use]
pub fn agree(window: u64, procedures: u64, cookie: u64) -> Msg {
    Msg::default().words(&[window, procedures, cookie])
}

/// A call that has come to a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visit {
    /// Where the A-stack is.
    pub a_stack: u64,
    /// Which procedure is called; one that the binding has.
    pub procedure: u64,
    /// The clerk's word for the binding.
    pub cookie: u64,
    /// The caller's words.
    pub words: [u64; WORDS],
}

/// Lends the calling thread to `clerk`, of its own task, until the first call comes.
pub fn lend(clerk: ThreadId) -> Result<Visit> {
    visit(Some(clerk), [0; 8])
}

/// Returns `words` from the visit that is under way, and waits for the next one.
#[inline(always)]
pub fn give_back(words: [u64; 8]) -> Result<Visit> {
    visit(None, words)
}

/// LrpcReturn with the registers of a message, the first time with a clerk: the A-stack's address, or a status, and the
/// registers that come.
#[inline(always)]
pub(crate) fn come_back(clerk: Option<ThreadId>, registers: syscall::Regs) -> (u64, syscall::Regs) {
    // SAFETY: as in `call`.
    unsafe { syscall::lrpc_return(clerk.map(|clerk| clerk.0), registers) }
}

#[inline(always)]
fn visit(clerk: Option<ThreadId>, words: [u64; 8]) -> Result<Visit> {
    let (a_stack, [procedure, a, b, c, d, e, f, cookie]) = come_back(clerk, words);
    if a_stack < FIRST_ADDRESS {
        return Err(Status::decode(a_stack).unwrap_or(Status::Withdrawn));
    }
    Ok(Visit { a_stack, procedure, cookie, words: [a, b, c, d, e, f] })
}

/// Ends the bindings of `clerk`, of the caller's task, that have this cookie; how many there were.
pub fn revoke_cookie(clerk: ThreadId, cookie: u64) -> core::result::Result<u64, CallError> {
    change(clerk, control::REVOKE_COOKIE, cookie)
}

/// How many bindings of `clerk`, of the caller's task, have this cookie. When there is none left, the place of
/// their A-stacks is free.
pub fn count(clerk: ThreadId, cookie: u64) -> core::result::Result<u64, CallError> {
    change(clerk, control::COUNT, cookie)
}

/// Visitors of `clerk`, of the caller's task, have at least this priority.
pub fn set_floor(clerk: ThreadId, priority: u8) -> core::result::Result<(), CallError> {
    change(clerk, control::FLOOR, priority.into()).map(|_| ())
}

fn change(clerk: ThreadId, what: u64, argument: u64) -> core::result::Result<u64, CallError> {
    let registers = [0, 0, 0, 0, 0, 0, clerk.0, 0];
    let (count, [_, ok, ..]) = trap(Call::LrpcControl, what, argument, registers);
    kernel::outcome(ok == 1).map(|()| count)
}

/// The call `number` with RSI, RDX and the message registers; RSI and the message registers afterwards.
#[inline(always)]
fn trap(number: Call, rsi: u64, rdx: u64, registers: syscall::Regs) -> (u64, syscall::Regs) {
    // SAFETY: the calls change the registers that Ipc changes, and memory only behind the A-stacks, where no
    // reference leads.
    unsafe { syscall::ipc(rsi, rdx, word(number), utcb::pointer(), registers) }
}

/// What stands for a call in R8.
const fn word(number: Call) -> u64 {
    (number as u64).wrapping_neg()
}
