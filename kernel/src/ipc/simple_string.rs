//! The usual long message: one simple string of at most a page, to a receiver in a
//! plain wait, both buffers present and inside one page each.
//!
//! Everything is checked before anything is changed, so that no transfer state is
//! needed; whatever is unusual takes the complete path (`transfer`, `strings`),
//! which this must not differ from.

use abi::syscall::COMPLETE_PATH;
use abi::{Acceptor, MsgTag, StringItem, ThreadId, utcb};

use super::rendezvous::{self, Busy};
use crate::arch::TcbRef;
use crate::mem::Resolved;
use crate::sched;
use crate::usermem::{self, Utcb};

/// Longest string, bytes: bounds the time with interrupts off.
const LONGEST: u64 = 4096;
/// Type, continuation and number of substrings: all zero in a simple string item.
const NOT_SIMPLE: u64 = 0x3F8;

/// Neither the complete path is asked for nor a receive timeout.
const UNUSUAL_TIMEOUTS: u64 = COMPLETE_PATH | 0xFFFF;
/// Number of typed words and the propagation flag in a tag, and what they must be.
const TYPED: u64 = 0x3F << 6 | MsgTag::PROPAGATED;
const ONE_ITEM: u64 = 2 << 6;

/// The copy to make.
struct Copy {
    from: u64,
    to: u64,
    len: u64,
}

/// Sends the message of `sender`, the current thread, and lets it wait, if all is
/// usual; returns who runs next. `None`, and nothing has changed, otherwise.
#[must_use]
#[inline(always)]
pub fn send(sender: TcbRef, to: ThreadId, from: ThreadId, timeouts: u64) -> Option<TcbRef> {
    let source = Utcb::of(sender)?;
    let tag = MsgTag(source.mr(0));
    let words = tag.untyped() + 2;
    let item = StringItem(source.mr(words - 1));
    if timeouts & UNUSUAL_TIMEOUTS != 0
        || tag.0 & TYPED != ONE_ITEM
        || item.0 & NOT_SIMPLE != 0
        || words >= utcb::MRS
    {
        return None;
    }
    let receiver = crate::thread::lookup(to)?;
    let target = Utcb::of(receiver)?;
    // As in the fast path: id current, open wait or closed wait for the sender.
    let waits = to.0 ^ receiver.rendezvous.get();
    let calls = from == to;
    if waits != 0 && waits != sender.id.get().0
        || !calls && (from != ThreadId::ANY || sender.open_from.get() != from)
    {
        return None;
    }
    let copy = check(sender, receiver, item.len(), source.mr(words))?;
    // POINT OF NO RETURN
    target.copy_mrs(source, 1, words);
    target.set_mr(0, tag.without_flags().0);
    usermem::copy_phys(copy.to, copy.from, copy.len as usize);
    receiver.result_from.set(sender.name_for(receiver));
    rendezvous::set_busy(receiver, Busy::Ready);
    if calls {
        rendezvous::set_closed(sender, to);
    } else {
        rendezvous::set_open(sender);
    }
    Some(sched::hand_over_at_once(sender, receiver))
}

/// Checks the string of `len` bytes at `address` against the receiver's first
/// buffer, and finds the memory behind both.
fn check(sender: TcbRef, receiver: TcbRef, len: u64, address: u64) -> Option<Copy> {
    let target = Utcb::of(receiver)?;
    let buffer = StringItem(target.br(1));
    let simple = buffer.0 & NOT_SIMPLE == 0 && Acceptor(target.br(0)).accepts_strings();
    if !simple || len == 0 || len > LONGEST || buffer.len() < len {
        return None;
    }
    let read = sender.space()?.resolve(address, false)?;
    let write = receiver.space()?.resolve(target.br(2), true)?;
    let whole = |there: &Resolved| there.bytes_left_in_page >= len && !there.is_device;
    (whole(&read) && whole(&write)).then_some(Copy { from: read.phys, to: write.phys, len })
}
