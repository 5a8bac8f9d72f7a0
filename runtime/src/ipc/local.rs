//! IPC between threads of one space, without the kernel where that is possible (Wenske 2002; `docs/decisions/0044`).

use abi::{ThreadId, Timeouts};

use super::{Message, Msg, Result, call, error, hidden, next_request, reply_wait, request};
use crate::{syscall, utcb};

/// Calls the thread of this space whose local id is `to`, without limit, and without the kernel
/// where that is possible (Wenske 2002; `docs/decisions/0044`): both of the two or
/// neither may use vector registers, and both have to exchange their messages by this and
/// [`local_reply_wait`]. What is otherwise goes through the kernel with the same result.
#[inline(always)]
pub fn local_call(to: ThreadId, msg: &impl Message) -> Result<Msg> {
    if !to.is_local() {
        return call(to, msg);
    }
    local::<{ abi::layout::stub::LOCAL_CALL }>(to, to, Timeouts::NEVER, msg).map(|(_, msg)| msg)
}

/// As [`reply_wait`], to a thread of this space whose local id is `to`, without the kernel
/// where that is possible.
#[inline(always)]
pub fn local_reply_wait(to: ThreadId, msg: &impl Message) -> Result<(ThreadId, Msg)> {
    if !to.is_local() {
        return reply_wait(to, msg);
    }
    local::<{ abi::layout::stub::LOCAL_REPLY_WAIT }>(to, ThreadId::ANY, Timeouts::REPLY_WAIT, msg)
}

/// [`local_call`] whose failure is a tag; generated stubs look at it anyway.
#[inline(always)]
pub(crate) fn local_exchange(to: ThreadId, msg: &Msg) -> Msg {
    local_raw::<{ abi::layout::stub::LOCAL_CALL }>(to, to, Timeouts::NEVER, msg).1
}

/// The same with at most one word there and back.
#[inline(always)]
pub(crate) fn local_exchange_one(to: ThreadId, request: &Msg) -> Msg {
    let message = [request.tag.0, request.mr[0]];
    // SAFETY: as in `ipc`.
    Msg::of_one(unsafe { syscall::local_call_one(to.0, utcb::pointer(), message) })
}

/// [`local_reply_wait`] in the same way, to a thread that is of this space for sure, from the one whose UTCB is `own`;
/// it comes back as well.
#[inline(always)]
pub(crate) fn local_onward(to: ThreadId, own: u64, answer: &Msg) -> (u64, ThreadId, Msg) {
    // SAFETY: as in `ipc`.
    let (own, sender, regs) = unsafe { syscall::local_onward(to.0, own, answer.regs()) };
    (own, ThreadId(sender), Msg::from_regs(regs))
}

/// As [`super::next_request`], for a server that is asked by threads of its own task, too: these are named by local
/// ids, which the trap does not know.
#[inline(always)]
pub(crate) fn next_of_any(reply: Option<(ThreadId, impl Message)>) -> (ThreadId, Msg) {
    match reply {
        Some((to, answer)) if to.is_local() => answer_inside(to, &answer),
        reply => next_request(reply),
    }
}

/// The same for a server whose clients are of its own task.
#[inline(always)]
pub(crate) fn next_of_own(reply: Option<(ThreadId, impl Message)>) -> (ThreadId, Msg) {
    match reply {
        Some((to, answer)) if to.is_local() => {
            local_reply_wait(to, &answer).unwrap_or_else(|_| request())
        }
        reply => next_request(reply),
    }
}

/// Apart, so that loops keep their registers for clients of other tasks.
#[cold]
#[inline(never)]
fn answer_inside(to: ThreadId, answer: &impl Message) -> (ThreadId, Msg) {
    local_reply_wait(to, answer).unwrap_or_else(|_| request())
}

#[inline(always)]
fn local<const STUB: u64>(
    to: ThreadId,
    from: ThreadId,
    timeouts: Timeouts,
    msg: &impl Message,
) -> Result<(ThreadId, Msg)> {
    let (sender, received) = local_raw::<STUB>(to, from, timeouts, msg);
    if received.tag.is_error() { Err(error()) } else { Ok((sender, received)) }
}

#[inline(always)]
fn local_raw<const STUB: u64>(
    to: ThreadId,
    from: ThreadId,
    timeouts: Timeouts,
    msg: &impl Message,
) -> (ThreadId, Msg) {
    let msg = msg.content(hidden::Key(()));
    // SAFETY: as in `ipc`.
    let (sender, regs) =
        unsafe { syscall::ipc_link::<STUB>(to.0, from.0, timeouts.0, utcb::pointer(), msg.regs()) };
    (ThreadId(sender), Msg::from_regs(regs))
}
