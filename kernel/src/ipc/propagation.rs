//! Propagation (X.2 4.8): a thread sends in the name of another.

use abi::{ThreadId, utcb};

use crate::ipc::wait;
use crate::thread;
use crate::thread::rendezvous::{self, Busy, Waits};
use crate::thread::{Kind, TcbRef};
use crate::usermem::Utcb;

/// Decides whether `sender`'s message to `receiver`, which asks for it, is propagated and
/// remembers for whom. Where propagation is not allowed the message is a normal one.
#[inline(never)]
pub fn prepare(sender: TcbRef, receiver: TcbRef) {
    let Some(utcb) = Utcb::of(sender) else { return };
    let named = utcb.thread(utcb::VIRTUAL_SENDER);
    let found =
        if named.is_local() { thread::by_local_id(sender, named) } else { thread::lookup(named) };
    let Some(virtual_sender) = found else { return };
    let id = virtual_sender.id.get();
    // What the receiver waits for now says nothing of when it takes the message.
    if virtual_sender.same_space(sender) || receiver.same_space(sender) {
        sender.transfer.pose_as(id);
    }
}

/// Whether `sender`'s message to `receiver` goes out in the name of `id`.
#[must_use]
pub fn is_virtual(sender: TcbRef, receiver: TcbRef, id: ThreadId) -> bool {
    sender.kind.get() == Kind::User
        && !id.is_nil()
        && sender.transfer.virtual_sender() == id
        && permitted(sender, receiver, id).is_some()
}

/// The thread `id`, if `sender` may send to `receiver` in its name as that one waits. Asked when the message
/// is to be taken and again when it is delivered: since it was sent that thread can have ended, and its id can be
/// another's.
fn permitted(sender: TcbRef, receiver: TcbRef, id: ThreadId) -> Option<TcbRef> {
    // Whom the kernel has asked something for the receiver nobody else answers for.
    let is_own = || receiver.kind.get() == Kind::User && receiver.same_space(sender);
    let allowed = |named: &TcbRef| named.same_space(sender) || is_own();
    thread::lookup(id).filter(allowed)
}

/// The thread in whose name `sender` sends to `receiver`, if not its own; tells the
/// receiver, and turns the virtual sender's closed wait for the real sender to the receiver.
#[must_use]
pub fn apply(sender: TcbRef, receiver: TcbRef) -> Option<TcbRef> {
    if sender.kind.get() != Kind::User {
        return None;
    }
    let named = sender.transfer.virtual_sender();
    sender.transfer.pose_as_nobody();
    let virtual_sender = permitted(sender, receiver, named)?;
    if let Some(utcb) = Utcb::of(receiver).filter(|_| receiver.kind.get() == Kind::User) {
        utcb.set_word(utcb::VIRTUAL_SENDER, sender.id.get().0);
    }
    match wait::waits(virtual_sender) {
        Waits::Closed(from) if from == sender.id.get() => {
            rendezvous::set_closed(virtual_sender, receiver.id.get());
            wait::seal(virtual_sender);
        }
        Waits::Busy(Busy::Waiting) if virtual_sender.partner.get() == sender.id.get() => {
            virtual_sender.partner.set(receiver.id.get());
        }
        _ => {}
    }
    Some(virtual_sender)
}
