//! The send queue of a thread: who waits to send to it, first come, first served
//! (Liedtke 1993, 5.3.5: no sender may dominate a receiver). Links are in the tcbs.

use crate::thread::TcbRef;
use abi::ThreadId;

/// `open_from` of a thread somebody waits to send to. The fast path compares it
/// with the from-specifier, so it must be none that has a meaning: nilthread would
/// turn a send without receive phase into an open wait. No thread has this number.
pub const SOMEBODY: ThreadId = ThreadId(!1);

/// Appends `sender` to `receiver`'s queue.
pub fn append(receiver: TcbRef, sender: TcbRef) {
    receiver.open_from.set(SOMEBODY);
    receiver.senders.append(sender);
}

/// Removes `sender` from `receiver`'s queue if it is in it.
pub fn remove(receiver: TcbRef, sender: TcbRef) {
    if receiver.senders.remove(sender) && receiver.senders.is_empty() {
        receiver.open_from.set(ThreadId::ANY);
    }
}
