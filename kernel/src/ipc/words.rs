//! Where the untyped words of a message come from and go to: message registers,
//! or what the kernel made up for a thread.

use abi::{MsgTag, protocol};

use crate::arch::machine::EXCEPTION_WORDS;
use crate::arch::{exception_words, set_exception_words, system_call_words};
use crate::thread::kind::SYSTEM_CALL_TAG;
use crate::thread::{Kind, TcbRef};
use crate::usermem::Utcb;

/// A message on its way. The tag has been read once: another thread of the sender's may
/// change what stands in the UTCB.
#[derive(Clone, Copy)]
pub struct Message {
    /// The tag.
    pub tag: MsgTag,
    /// Where the words come from.
    pub source: Source,
}

/// Where the words of a message come from.
#[derive(Clone, Copy)]
pub enum Source {
    /// The sender's message registers.
    Registers(Utcb),
    /// The kernel, which makes a message of this kind for the thread.
    Made(Kind, TcbRef),
}

impl Message {
    /// The message in the registers of a thread.
    #[inline(always)]
    #[must_use]
    pub fn in_registers(utcb: Utcb) -> Self {
        Self { tag: MsgTag(utcb.mr(0)), source: Source::Registers(utcb) }
    }

    /// The message of `kind` that the kernel makes for `thread`.
    #[inline(always)]
    #[must_use]
    pub fn made(kind: Kind, thread: TcbRef) -> Self {
        let tag = match kind {
            Kind::PageFault | Kind::IoFault | Kind::TransferFault | Kind::Preemption => {
                MsgTag(thread.message[0].get())
            }
            Kind::Exception => EXCEPTION,
            Kind::SystemCall => SYSTEM_CALL_TAG,
            Kind::Interrupt => INTERRUPT,
            Kind::Bind => BIND,
            Kind::User | Kind::Start => MsgTag(0),
        };
        Self { tag, source: Source::Made(kind, thread) }
    }

    /// What `thread` sends, its own or the kernel's.
    #[must_use]
    pub fn of(thread: TcbRef) -> Self {
        match (thread.kind.get(), Utcb::of(thread)) {
            (Kind::User, Some(utcb)) => Self::in_registers(utcb),
            (kind, _) => Self::made(kind, thread),
        }
    }

    /// Moves words 1 to `count` to the message registers of the receiver.
    #[inline(always)]
    pub fn copy(self, target: Utcb, count: usize) {
        match self.source {
            Source::Registers(utcb) => target.copy_mrs(utcb, count),
            Source::Made(kind, thread) => tell(kind, thread, target),
        }
    }
}

const EXCEPTION: MsgTag = MsgTag::protocol(protocol::EXCEPTION, 0, EXCEPTION_WORDS as u32, 0);
const BIND: MsgTag = MsgTag::protocol(protocol::LRPC_BIND, 0, 2, 0);
/// The message of an interrupt.
pub const INTERRUPT: MsgTag = MsgTag::protocol(protocol::INTERRUPT, 0, 0, 0);

/// The words of the message of `kind` that the kernel makes for `thread`.
#[inline(always)]
fn tell(kind: Kind, thread: TcbRef, target: Utcb) {
    match kind {
        Kind::PageFault | Kind::IoFault | Kind::TransferFault | Kind::Preemption => {
            target.set_mr(1, thread.message[1].get());
            target.set_mr(2, thread.message[2].get());
        }
        Kind::Exception => {
            exception_words(thread.frame(), |index, word| target.set_mr(index, word));
        }
        Kind::SystemCall => {
            system_call_words(thread.frame(), |index, word| target.set_mr(index, word));
        }
        Kind::Bind => {
            let [_, _, count, bytes, ..] = thread.frame().arguments();
            target.set_mr(1, count);
            target.set_mr(2, bytes);
        }
        Kind::User | Kind::Start | Kind::Interrupt => {}
    }
}

/// What a thread for which the kernel made a message takes from the `count` words of the answer.
#[inline(always)]
pub fn take(source: Utcb, receiver: TcbRef, count: usize) {
    match receiver.kind.get() {
        Kind::Start if count >= 2 => {
            receiver.set_user_ip(source.mr(1));
            receiver.set_user_sp(source.mr(2));
        }
        Kind::Exception => take_registers(source, receiver, count),
        Kind::SystemCall if count >= 1 => receiver.frame().set_answer(source.mr(1)),
        Kind::Bind if count >= 3 => {
            (1..).zip(&receiver.message).for_each(|(index, word)| word.set(source.mr(index)));
        }
        _ => {}
    }
}

#[inline(never)]
fn take_registers(source: Utcb, receiver: TcbRef, count: usize) {
    set_exception_words(receiver.frame(), count, |index| source.mr(index));
}
