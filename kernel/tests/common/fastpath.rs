//! The fast path's arithmetic (`arch/x86_64/ipc.S`), transcribed: which IPCs it
//! serves, and what it then stores. The message registers, which it leaves in the
//! processor's, go to the receiver's UTCB here.

use abi::id::THREAD_BITS;
use abi::{MsgTag, ThreadId};
use kernel::arch::{TcbRef, cpu, set_current};
use kernel::ipc::rendezvous::{self, Busy};
use kernel::thread;
use kernel::usermem::Utcb;

/// R8 must have none of these: a receive timeout, a point as send timeout, a call number.
const COMPLICATED: u64 = 0xFFFF_FFFF_8000_FFFF;
/// The tag must have none of these: flags, typed words.
const NOT_WORDS: u64 = 0xFFC0;
/// "Ready", in the upper half of the rendezvous word.
const READY: u64 = 1 << 32;

/// What the compare of the rendezvous word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The receiver is in open wait.
    Open,
    /// The receiver waits for this sender.
    ForUs,
    /// Not for the fast path.
    Complete,
}

/// The compare: `word` is the receiver's rendezvous word.
pub fn compare(to: ThreadId, word: u64, own: ThreadId) -> Verdict {
    match to.0 ^ word {
        0 => Verdict::Open,
        x if x == own.0 => Verdict::ForUs,
        _ => Verdict::Complete,
    }
}

/// The word found for a thread that these tests do not make: the null page's; but
/// nilthread leads to interrupt 0, which the kernel makes at boot.
fn absent(number: u32) -> u64 {
    if number == 0 { rendezvous::busy_word(ThreadId::irq(0), Busy::Halted) } else { 0 }
}

/// Carries the IPC out if the fast path would; the receiver then runs.
pub fn ipc(sender: TcbRef, to: ThreadId, from: ThreadId, timeouts: u64) -> Option<TcbRef> {
    let source = Utcb::of(sender)?;
    let tag = source.mr(0);
    let closed = cpu().scheduler.look_first.get();
    if closed || timeouts & COMPLICATED != 0 || tag & NOT_WORDS != 0 {
        return None;
    }
    let own = sender.id.get();
    let number = to.number() & ((1 << THREAD_BITS) - 1);
    let receiver = thread::lookup_number(number);
    let verdict = compare(to, receiver.map_or(absent(number), |tcb| tcb.rendezvous.get()), own);
    let waits = match verdict {
        Verdict::Complete => return None,
        _ if from == to => own.0 ^ to.0,
        _ if from == sender.open_from.get() => own.0,
        _ => return None,
    };
    let receiver = receiver.expect("the null page matches nobody");
    // Point of no return.
    sender.rendezvous.set(waits);
    receiver.rendezvous.set(match verdict {
        Verdict::Open => receiver.rendezvous.get() ^ READY,
        _ => to.0 ^ READY,
    });
    let target = Utcb::of(receiver).expect("a waiting thread is active");
    target.set_mr(0, tag);
    target.copy_mrs(source, MsgTag(tag).untyped());
    let local = receiver.root.get() == sender.root.get();
    receiver.result_from.set(if local { ThreadId(sender.utcb.get()) } else { own });
    set_current(receiver);
    Some(receiver)
}
