//! IPC: the complete path. One call with a send phase, a receive phase, or both,
//! atomically joined (Liedtke 1993, 5.2.1); messages go straight from the sender
//! to the receiver, nothing is buffered. The assembly in `arch` does the common
//! case; this is the whole of it, and is tested against it.
//!
//! A call's way: `syscall` → `send` (rendezvous or polling) → `transfer` (words,
//! items) → `finish` (both partners' results, the sender's receive phase, who runs
//! next) → `receive`. Kernel-made messages (`kernel_message`) take the same way,
//! with another source and sink for their words (`words`).

pub mod cancel;
pub mod finish;
pub mod kernel_message;
pub mod propagation;
pub mod queue;
pub mod receive;
pub mod send;
pub mod simple_string;
pub mod strings;
pub mod sweep;
pub mod syscall;
pub mod timeout;
pub mod transfer;
pub mod wait;
pub mod words;

use abi::{IpcError, IpcErrorKind, MsgTag, Phase, ThreadId, utcb};

use crate::sched;
use crate::thread;
use crate::thread::{Kind, TcbRef};
use crate::usermem::Utcb;

/// An IPC of `thread` ends with `error`: the thread is runnable again and knows why.
pub fn fail(thread: TcbRef, error: IpcError) {
    if thread.kind.get() == Kind::User {
        if let Some(utcb) = Utcb::of(thread) {
            let tag = match error.phase {
                Phase::Send => utcb.mr(0),
                Phase::Receive => 0,
            };
            utcb.set_mr(0, tag | MsgTag::ERROR);
            utcb.set_word(utcb::ERROR_CODE, error.word());
        }
        thread.result_from.set(ThreadId::NIL);
        sched::set_runnable(thread);
    } else {
        kernel_message::failed(thread, error.kind);
    }
}

/// The send phase of `thread` fails at once, before it waited: MR0 is just the error
/// bit (X.2 4.1).
pub fn fail_at_once(thread: TcbRef, kind: IpcErrorKind) {
    if let (Kind::User, Some(utcb)) = (thread.kind.get(), Utcb::of(thread)) {
        utcb.set_mr(0, 0);
    }
    fail_early(thread, kind, Phase::Send);
}

/// `fail` before anything was transferred.
pub fn fail_early(thread: TcbRef, kind: IpcErrorKind, phase: Phase) {
    fail(thread, IpcError::new(kind, phase));
}

/// The thread whose id `thread` has as handler in one of its control registers;
/// a local id there is converted.
#[must_use]
pub fn handler_of(thread: TcbRef, register: isize) -> ThreadId {
    // A foreign thread may write its UTCB, so nothing is read from there.
    if !thread.handler.get().is_nil() {
        return thread.handler.get();
    }
    let Some(utcb) = Utcb::of(thread) else { return ThreadId::NIL };
    let id = utcb.thread(register);
    if !id.is_local() {
        return id;
    }
    thread::by_local_id(thread, id).map_or(ThreadId::NIL, |found| found.id.get())
}
