//! Ipc and Lipc as system calls (X.2 4, 5.6).

use abi::ThreadId;

use super::words::Message;
use super::{receive, send};
use crate::sched;
use crate::thread::TcbRef;
use crate::usermem::Utcb;

/// The Ipc system call on the complete path; message registers are in the UTCB.
/// Returns the thread to run next.
pub extern "C" fn ipc(current: TcbRef, to: ThreadId, from: ThreadId, timeouts: u64) -> TcbRef {
    match Utcb::of(current) {
        Some(utcb) if !to.is_nil() => {
            let message = Message::in_registers(utcb);
            if message.tag.typed() != 0 {
                return ipc_with_items(current, to, from, timeouts);
            }
            begin(current, from, timeouts);
            send::send(current, message, to)
        }
        _ => {
            begin(current, from, timeouts);
            no_send_phase(current, from)
        }
    }
}

/// The same for a message that, most likely, has items: a function of its own, so that neither
/// pays for what the other needs.
pub extern "C" fn ipc_with_items(
    current: TcbRef,
    to: ThreadId,
    from: ThreadId,
    timeouts: u64,
) -> TcbRef {
    begin(current, from, timeouts);
    match Utcb::of(current) {
        Some(utcb) if !to.is_nil() => send::send(current, Message::in_registers(utcb), to),
        _ => no_send_phase(current, from),
    }
}

#[inline(always)]
fn begin(current: TcbRef, from: ThreadId, timeouts: u64) {
    crate::arch::note_entry();
    current.then_from.set(from);
    current.timeouts.set(timeouts);
    current.transfer.pose_as_nobody();
}

#[inline(never)]
fn no_send_phase(current: TcbRef, from: ThreadId) -> TcbRef {
    if from.is_nil() {
        current.result_from.set(ThreadId::NIL);
        return sched::go_on(current);
    }
    receive::receive(current)
}
