//! Where the untyped words of a message come from and go to: message registers,
//! or what the kernel made up for a thread.

use abi::{MsgTag, protocol};

use super::Kind;
use crate::arch::{Frame, TcbRef, exception_words, set_exception_words};
use crate::thread::foreign;
use crate::usermem::Utcb;

/// The tag `sender` sends, without flags.
#[must_use]
pub fn tag(sender: TcbRef) -> MsgTag {
    match sender.kind.get() {
        Kind::User | Kind::Start => {
            Utcb::of(sender).map_or(MsgTag(0), |utcb| MsgTag(utcb.mr(0)).without_flags())
        }
        Kind::Exception => {
            MsgTag::protocol(protocol::EXCEPTION, 0, protocol::EXCEPTION_WORDS as u32, 0)
        }
        Kind::SystemCall => foreign::TAG,
        Kind::Interrupt => MsgTag::protocol(protocol::INTERRUPT, 0, 0, 0),
        Kind::PageFault | Kind::IoFault | Kind::TransferFault | Kind::Preemption => {
            MsgTag(sender.message[0].get())
        }
    }
}

/// Word `index` ≥ 1 of the message `sender` sends.
fn word(sender: TcbRef, index: usize) -> u64 {
    match sender.kind.get() {
        Kind::User | Kind::Start => Utcb::of(sender).map_or(0, |utcb| utcb.mr(index)),
        Kind::Exception => {
            exception_words(sender.frame()).get(index - 1).copied().unwrap_or_default()
        }
        Kind::SystemCall => foreign::argument(sender.frame(), index),
        Kind::Interrupt => 0,
        Kind::PageFault | Kind::IoFault | Kind::TransferFault | Kind::Preemption => {
            sender.message.get(index).map_or(0, core::cell::Cell::get)
        }
    }
}

/// Moves words 1 to `count` from `sender` to `receiver`.
pub fn copy(sender: TcbRef, receiver: TcbRef, count: usize) {
    match receiver.kind.get() {
        Kind::User => to_registers(sender, receiver, count),
        Kind::Start if count >= 2 => {
            receiver.set_user_ip(word(sender, 1));
            receiver.set_user_sp(word(sender, 2));
        }
        Kind::Exception => to_frame(sender, receiver.frame(), count),
        Kind::SystemCall if count >= 1 => receiver.frame().rax.set(word(sender, 1)),
        _ => {}
    }
}

/// The reply to an exception; words that it does not have stay as they are.
#[inline(never)]
fn to_frame(sender: TcbRef, frame: Frame, count: usize) {
    let mut words = exception_words(frame);
    let taken = &mut words[..count.min(protocol::EXCEPTION_WORDS)];
    match (sender.kind.get(), Utcb::of(sender)) {
        (Kind::User, Some(source)) => {
            (1..).zip(taken).for_each(|(index, to)| *to = source.mr(index));
        }
        (Kind::Exception, _) => {
            taken.iter_mut().zip(exception_words(sender.frame())).for_each(|(to, word)| *to = word);
        }
        _ => (1..).zip(taken).for_each(|(index, to)| *to = word(sender, index)),
    }
    set_exception_words(frame, &words);
}

#[inline(never)]
fn exception(frame: Frame, target: Utcb) {
    let words = exception_words(frame);
    words.iter().enumerate().for_each(|(index, word)| target.set_mr(index + 1, *word));
}

fn to_registers(sender: TcbRef, receiver: TcbRef, count: usize) {
    let Some(target) = Utcb::of(receiver) else { return };
    match Utcb::of(sender) {
        Some(source) if sender.kind.get() == Kind::User => target.copy_mrs(source, 1, count),
        _ if sender.kind.get() == Kind::Exception => exception(sender.frame(), target),
        _ => (1..=count).for_each(|index| target.set_mr(index, word(sender, index))),
    }
}
