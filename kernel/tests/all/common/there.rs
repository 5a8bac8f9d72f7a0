//! Another processor, number 1, played: what the fast path (`ipc.S`) does there for threads that are there together.

use abi::ThreadId;
use kernel::between::SEATS;
use kernel::elsewhere::visits::{runs, shadow};
use kernel::thread::TcbRef;

/// Vector of a system call.
pub const CALL: u64 = 0x100;

/// The shadow that processor 1 shows for `number`; nilthread leads to somebody who waits for nobody.
pub fn seen(number: u32) -> Option<TcbRef> {
    let is_its = |it: &TcbRef| number != 0 && it.id.get().number() == number;
    (0..SEATS).map(|seat| shadow(1, seat)).find(is_its)
}

/// What `ipc.S` does on processor 1, as whoever runs there, with the message and the instruction pointer in its frame:
/// the receiver runs, if it is served, and has the message in its frame.
pub fn talk(to: ThreadId, from: ThreadId) -> bool {
    let sender = runs(1).expect("somebody runs there");
    let own = sender.id.get();
    let Some(receiver) = seen(to.number()) else { return false };
    let is_open = match to.0 ^ receiver.rendezvous.get() {
        0 => true,
        waits if waits == own.0 => false,
        _ => return false,
    };
    let waits = match from {
        _ if from == to => own.0 ^ to.0,
        _ if from == sender.open_from.get() => own.0,
        _ => return false,
    };
    // Point of no return.
    sender.rendezvous.set(waits);
    let ready = if is_open { receiver.rendezvous.get() ^ 1 << 32 } else { to.0 ^ 1 << 32 };
    receiver.rendezvous.set(ready);
    let (frame, target) = (sender.frame(), receiver.frame());
    sender.ip.set(frame.ip.get());
    sender.sp.set(frame.sp.get());
    sender.flags.set(frame.flags.get());
    if let Some(exchange) = frame.exchange() {
        let mut words = [exchange.tag.0, 0, 0, 0, 0, 0, 0, 0];
        frame.exchange_words(exchange.tag.untyped(), |index, word| words[index] = word);
        let is_near = sender.root.get() == receiver.root.get();
        let name = if is_near { sender.utcb.get() } else { own.0 };
        target.return_from_ipc(name, receiver.utcb.get(), |index| words[index]);
    }
    target.ip.set(receiver.ip.get());
    target.sp.set(receiver.sp.get());
    target.flags.set(receiver.flags.get());
    true
}
