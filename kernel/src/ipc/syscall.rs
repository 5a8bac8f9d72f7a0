//! Ipc and Lipc as system calls (X.2 4, 5.6).

use abi::{ThreadId, Timeouts};

use super::{Kind, go_on, receive, send, simple_string};
use crate::arch::TcbRef;

/// The Ipc system call on the complete path; message registers are in the UTCB.
/// Returns the thread to run next.
pub extern "C" fn ipc(current: TcbRef, to: ThreadId, from: ThreadId, timeouts: u64) -> TcbRef {
    crate::arch::note_entry();
    if let Some(next) = simple_string::send(current, to, from, timeouts) {
        return next;
    }
    current.kind.set(Kind::User);
    current.result_from.set(ThreadId::NIL);
    current.then_from.set(from);
    current.timeouts.set(Timeouts(timeouts & 0xFFFF_FFFF).0);
    if !to.is_nil() {
        return send::send(current, to);
    }
    if from.is_nil() {
        return go_on(current);
    }
    receive::receive(current)
}
