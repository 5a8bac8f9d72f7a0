//! The send queue of a thread: who waits to send to it, first come, first served
//! (Liedtke 1993, 5.3.5: no sender may dominate a receiver). Links are in the tcbs.

use abi::ThreadId;

use crate::arch::TcbRef;
use crate::irq::Pace;

/// `open_from` of a thread somebody waits to send to. The fast path compares it
/// with the from-specifier, so it must be none that has a meaning: nilthread would
/// turn a send without receive phase into an open wait. No thread has this number.
pub const SOMEBODY: ThreadId = ThreadId(!1);

/// Appends `sender` to `receiver`'s queue.
pub fn append(receiver: TcbRef, sender: TcbRef) {
    receiver.open_from.set(SOMEBODY);
    match receiver.senders.get() {
        None => {
            sender.sending.next.set(Some(sender));
            sender.sending.prev.set(Some(sender));
            receiver.senders.set(Some(sender));
        }
        Some(first) => {
            let last = first.sending.prev.get().unwrap_or(first);
            sender.sending.next.set(Some(first));
            sender.sending.prev.set(Some(last));
            last.sending.next.set(Some(sender));
            first.sending.prev.set(Some(sender));
        }
    }
}

/// Removes `sender` from `receiver`'s queue if it is in it.
pub fn remove(receiver: TcbRef, sender: TcbRef) {
    let (Some(next), Some(prev)) = (sender.sending.next.take(), sender.sending.prev.take()) else {
        return;
    };
    if next == sender {
        receiver.senders.set(None);
        receiver.open_from.set(ThreadId::ANY);
        return;
    }
    next.sending.prev.set(Some(prev));
    prev.sending.next.set(Some(next));
    if receiver.senders.get() == Some(sender) {
        receiver.senders.set(Some(next));
    }
}

/// The first queued sender for which `wanted` holds.
#[must_use]
pub fn find(receiver: TcbRef, mut wanted: impl FnMut(TcbRef) -> bool) -> Option<TcbRef> {
    let first = receiver.senders.get()?;
    let mut sender = first;
    let mut pace = Pace::default();
    loop {
        pace.round();
        if wanted(sender) {
            return Some(sender);
        }
        sender = sender.sending.next.get()?;
        if sender == first {
            return None;
        }
    }
}
