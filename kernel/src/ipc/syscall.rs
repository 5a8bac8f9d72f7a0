//! Ipc and Lipc as system calls (X.2 4, 5.6).

use abi::ThreadId;

use super::words::Message;
use super::{go_on, receive, send};
use crate::arch::TcbRef;
use crate::usermem::Utcb;

/// The Ipc system call on the complete path; message registers are in the UTCB.
/// Returns the thread to run next.
pub extern "C" fn ipc(current: TcbRef, to: ThreadId, from: ThreadId, timeouts: u64) -> TcbRef {
    crate::arch::note_entry();
    current.then_from.set(from);
    current.timeouts.set(timeouts);
    current.transfer.virtual_sender.set(ThreadId::NIL);
    match Utcb::of(current) {
        Some(utcb) if !to.is_nil() => send::send(current, Message::in_registers(utcb), to),
        _ => no_send_phase(current, from),
    }
}

#[inline(never)]
fn no_send_phase(current: TcbRef, from: ThreadId) -> TcbRef {
    if from.is_nil() {
        current.result_from.set(ThreadId::NIL);
        return go_on(current);
    }
    receive::receive(current)
}
