//! The fast paths' arithmetic (`arch/x86_64/entry/ipc.S`, and `armed.S` and `beside.S` for threads that exchange
//! messages in user mode), transcribed: which IPCs they serve, and what they then store. The message
//! registers, which they leave in the processor's, go to the receiver's UTCB here.

use abi::id::THREAD_BITS;
use abi::{MsgTag, ThreadId, utcb};
use kernel::arch::cpu;
use kernel::thread;
use kernel::thread::rendezvous::{self, Busy};
use kernel::thread::tcb::{ARMED, USES_VECTOR};
use kernel::thread::{TcbRef, set_current};
use kernel::usermem::Utcb;

const ARMED_VECTOR: u8 = ARMED | USES_VECTOR;

/// R8 must have none of these: a receive timeout, a point as send timeout, a call number.
pub const COMPLICATED: u64 = 0xFFFF_FFFF_8000_FFFF;
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

/// What an IPC says.
struct Call {
    sender: TcbRef,
    to: ThreadId,
    from: ThreadId,
}

/// Carries the IPC out if a fast path would; the receiver then runs. The sender runs, and in user mode
/// nobody has taken its place.
pub fn ipc(sender: TcbRef, to: ThreadId, from: ThreadId, timeouts: u64) -> Option<TcbRef> {
    let source = Utcb::of(sender)?;
    let tag = source.mr(0);
    let closed = cpu().look_first.get();
    if closed || timeouts & COMPLICATED != 0 || tag & NOT_WORDS != 0 {
        return None;
    }
    let number = to.number() & ((1 << THREAD_BITS) - 1);
    let receiver = thread::lookup_number(number);
    let call = Call { sender, to, from };
    let done = match sender.special.get() {
        0 => call.plain(receiver, number),
        ARMED if MsgTag(tag).untyped() <= 7 => call.armed(receiver, number),
        ARMED_VECTOR if MsgTag(tag).untyped() <= 7 => call.beside(receiver),
        _ => false,
    };
    let receiver = receiver.filter(|_| done)?;
    let target = Utcb::of(receiver).expect("a waiting thread is active");
    target.set_mr(0, tag);
    target.copy_mrs(source, MsgTag(tag).untyped());
    let own = sender.id.get();
    let local = receiver.root.get() == sender.root.get();
    receiver.result_from.set(if local { ThreadId(sender.utcb.get()) } else { own });
    if receiver.is_armed() {
        let space = receiver.space().expect("it has a space");
        space.task.current_word.write(ThreadId(receiver.utcb.get()));
    }
    set_current(receiver);
    Some(receiver)
}

impl Call {
    /// `ipc.S`; to an armed receiver `baton_to_armed` of `armed.S`.
    fn plain(&self, receiver: Option<TcbRef>, number: u32) -> bool {
        let own = self.sender.id.get();
        let word = receiver.map_or(absent(number), |tcb| tcb.rendezvous.get());
        let verdict = compare(self.to, word, own);
        let waits = match self.from {
            from if from == self.to => own.0 ^ self.to.0,
            from if from == self.sender.open_from.get() => own.0,
            _ => return false,
        };
        let wakes = match verdict {
            Verdict::Complete => self.wakes_armed(receiver),
            _ => true,
        };
        if !wakes {
            return false;
        }
        // Point of no return.
        self.sender.rendezvous.set(waits);
        let receiver = receiver.expect("the null page matches nobody");
        match verdict {
            Verdict::Open => receiver.rendezvous.set(receiver.rendezvous.get() ^ READY),
            Verdict::ForUs => receiver.rendezvous.set(self.to.0 ^ READY),
            Verdict::Complete => self.wake_armed(receiver),
        }
        true
    }

    /// `baton_armed_ipc`: the sender is armed.
    fn armed(&self, receiver: Option<TcbRef>, number: u32) -> bool {
        let own = self.sender.id.get();
        if self.from != self.to && self.from != self.sender.open_from.get() {
            return false;
        }
        let word = receiver.map_or(absent(number), |tcb| tcb.rendezvous.get());
        let verdict = compare(self.to, word, own);
        if verdict == Verdict::Complete && !self.wakes_armed(receiver) {
            return false;
        }
        // Point of no return.
        let closed = if self.from == self.to { self.to.0 } else { 0 };
        self.sender.armed_rendezvous.set(own.0 ^ closed);
        let receiver = receiver.expect("the null page matches nobody");
        match verdict {
            Verdict::Complete => self.wake_armed(receiver),
            _ => receiver.rendezvous.set(self.to.0 ^ READY),
        }
        true
    }

    /// `baton_beside_ipc`: the sender is armed, uses vector registers, and has declared them dead.
    fn beside(&self, receiver: Option<TcbRef>) -> bool {
        let own = self.sender.id.get();
        if self.from != self.to && self.from != self.sender.open_from.get() {
            return false;
        }
        let near = |receiver: &TcbRef| receiver.root.get() == self.sender.root.get();
        let Some(receiver) = receiver.filter(near) else { return false };
        let waits = compare(self.to, receiver.beside_rendezvous.get(), own) != Verdict::Complete;
        if !waits && !self.finds_public(receiver, ARMED_VECTOR) {
            return false;
        }
        // Point of no return.
        let closed = if self.from == self.to { self.to.0 } else { 0 };
        self.sender.beside_rendezvous.set(own.0 ^ closed);
        if waits {
            receiver.beside_rendezvous.set(self.to.0 ^ READY);
        } else {
            self.wake_armed(receiver);
        }
        true
    }

    /// Whether the receiver, about which only `special` is special, waits in public and for the sender.
    fn finds_public(&self, receiver: TcbRef, special: u8) -> bool {
        let code = (self.to.0 ^ receiver.rendezvous.get()) >> 32;
        if code != rendezvous::PUBLISHED
            || self.to != receiver.id.get()
            || receiver.special.get() != special
        {
            return false;
        }
        let near = receiver.root.get() == self.sender.root.get();
        match public_word(receiver) {
            word if word == utcb::lipc_open(0) => true,
            word if word == utcb::lipc_open_local(0) => near,
            word => near && word == self.sender.utcb.get(),
        }
    }

    /// Whether the receiver is armed and waits for the sender, in the kernel or in public.
    fn wakes_armed(&self, receiver: Option<TcbRef>) -> bool {
        let Some(receiver) = receiver else { return false };
        let own = self.sender.id.get();
        match (self.to.0 ^ receiver.rendezvous.get()) >> 32 {
            rendezvous::ARMED => {
                compare(self.to, receiver.armed_rendezvous.get(), own) != Verdict::Complete
            }
            _ => self.finds_public(receiver, ARMED),
        }
    }

    /// It is ready.
    fn wake_armed(&self, receiver: TcbRef) {
        if rendezvous::is_armed(receiver) {
            return receiver.armed_rendezvous.set(self.to.0 ^ READY);
        }
        let word = receiver.rendezvous.get();
        receiver.rendezvous.set(word ^ (rendezvous::PUBLISHED ^ rendezvous::ARMED) << 32);
        receiver.partner.set(rendezvous::NOBODY);
        let entangled = &receiver.space().expect("it has a space").task.entangled;
        entangled.set(entangled.get() - 1);
        let utcb = Utcb::of(receiver).expect("it is active");
        utcb.set_word(utcb::LIPC_WAIT, utcb::LIPC_RUNS);
        receiver.sp.set(utcb.word(utcb::LIPC_SP));
    }
}

fn public_word(receiver: TcbRef) -> u64 {
    Utcb::of(receiver).map_or(0, |utcb| utcb.word(utcb::LIPC_WAIT))
}
