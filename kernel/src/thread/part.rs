//! What a thread has to say of a transfer that it takes part in: how far it is. `ipc::transfer` carries it out.

use crate::thread::TcbRef;
use crate::thread::tcb::ELSEWHERE;
use core::cell::Cell;

use abi::{MsgTag, StringItem, ThreadId};

/// A thread's part in a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Sends to this thread; the state is in its own tcb.
    SendsTo(TcbRef),
    /// Receives from this thread; the state is in that one's tcb.
    ReceivesFrom(TcbRef),
}

impl Part {
    /// The other one.
    #[must_use]
    pub fn peer(self) -> TcbRef {
        match self {
            Self::SendsTo(peer) | Self::ReceivesFrom(peer) => peer,
        }
    }

    /// Sender and receiver of the transfer in which this is the part of `thread`.
    #[must_use]
    pub fn pair(self, thread: TcbRef) -> (TcbRef, TcbRef) {
        match self {
            Self::SendsTo(receiver) => (thread, receiver),
            Self::ReceivesFrom(sender) => (sender, thread),
        }
    }
}

/// The state of a transfer. `part` and `outer` are used by both partners, the
/// rest by the sender.
#[derive(Default)]
pub struct Transfer {
    /// This thread's part.
    pub part: Cell<Option<Part>>,
    /// While a pager's answer to this thread's page fault is itself a transfer: the part
    /// in the transfer that met the fault.
    pub outer: Cell<Option<Part>>,
    /// Tag of the message, as it was when the transfer began.
    pub tag: Cell<MsgTag>,
    /// What of the sender is to be looked at where its message arrives: [`POSES`], [`FAR`].
    remarks: Cell<u16>,
    /// In whose name the message goes out, if [`POSES`].
    virtual_sender: Cell<ThreadId>,
    /// Receive phase of the sender, kept while a page fault uses its fields.
    pub then_from: Cell<ThreadId>,
    /// Timeouts of the sender, likewise.
    pub timeouts: Cell<u64>,
    /// Index of the next item's first word.
    pub next: Cell<usize>,
    /// Index behind the last item's last word.
    pub end: Cell<usize>,
    /// String bytes transferred so far.
    pub bytes: Cell<u64>,
    /// Position in the string being copied.
    pub string: Cursor,
    /// Clock value at which the transfer times out; 0 before the first page fault, `u64::MAX` never.
    pub deadline_us: Cell<u64>,
    /// The receiver's transfer timeout governs (strictly shorter).
    pub receiver_governs: Cell<bool>,
}

/// It sends in the name of another thread.
const POSES: u16 = 1;
/// Its user code runs on another processor than the first one: who gets a message of it may have to be told.
const FAR: u16 = 1 << 8;

impl Transfer {
    /// Whether nothing of the sender is to be looked at: one comparison.
    #[inline(always)]
    #[must_use]
    pub fn is_usual(&self) -> bool {
        self.remarks.get() == 0
    }

    /// The message goes out in the sender's own name.
    #[inline(always)]
    pub fn pose_as_nobody(&self) {
        self.remarks.set(self.remarks.get() & FAR);
    }

    /// The message goes out in the name of `id`.
    pub fn pose_as(&self, id: ThreadId) {
        self.virtual_sender.set(id);
        self.remarks.set(self.remarks.get() | POSES);
    }

    /// In whose name the message goes out, nilthread if the sender's own.
    #[must_use]
    pub fn virtual_sender(&self) -> ThreadId {
        if self.remarks.get() & POSES != 0 { self.virtual_sender.get() } else { ThreadId::NIL }
    }

    /// What is special about the sender has changed to `special`.
    pub fn remark(&self, special: u8) {
        let far = if special & ELSEWHERE != 0 { FAR } else { 0 };
        self.remarks.set(self.remarks.get() & !FAR | far);
    }
}

/// A position in a compound string.
#[derive(Default)]
pub struct Position {
    /// The index of an item's first word, in message or buffer registers.
    pub item: Cell<usize>,
    /// The substring in it.
    pub sub: Cell<usize>,
    /// The byte in that.
    pub byte: Cell<u64>,
}

/// Where the copy of a string stands.
#[derive(Default)]
pub struct Cursor {
    /// Where it comes from.
    pub from: Position,
    /// Where it goes.
    pub to: Position,
    /// First item of the current buffer: its bit C tells whether there is another (X.2 4.3).
    pub buffer: Cell<usize>,
    /// The header of the item that is being copied, as it was when that began: what the receiver is told.
    /// `None` between two items.
    pub header: Cell<Option<StringItem>>,
}

impl Cursor {
    /// Before the first string, at the first buffer.
    pub fn reset(&self) {
        self.header.set(None);
        self.begin_buffer(1);
    }

    /// Goes to the buffer that begins at `item`.
    pub fn begin_buffer(&self, item: usize) {
        self.buffer.set(item);
        self.to.set(item, 0, 0);
    }
}

impl Position {
    /// Is at this byte of this substring of `item` from now on.
    pub fn set(&self, item: usize, sub: usize, byte: u64) {
        self.item.set(item);
        self.sub.set(sub);
        self.byte.set(byte);
    }

    /// Goes on by `count` bytes inside an item of `header`; at the end of its last
    /// substring stays there (`is_past`).
    pub fn advance(&self, header: StringItem, count: u64) {
        self.byte.set(self.byte.get() + count);
        if self.byte.get() >= header.len() {
            self.byte.set(0);
            self.sub.set(self.sub.get() + 1);
        }
    }

    /// Whether all substrings of the item are used up (empty ones hold nothing).
    #[must_use]
    pub fn is_past(&self, header: StringItem) -> bool {
        header.is_empty() || self.sub.get() >= header.substrings()
    }
}
