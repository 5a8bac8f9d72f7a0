//! Orders and outcomes: one Ipc with everything that goes in, and everything that
//! the thread saw of it afterwards.

use abi::syscall::COMPLETE_PATH;
use abi::{IpcError, MsgTag, StringItem, ThreadId, Time, Timeouts};

/// One Ipc to carry out.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Order {
    pub to: ThreadId,
    pub from: ThreadId,
    /// Timeouts word; may have `COMPLETE_PATH` set.
    pub timeouts: u64,
    /// MR0 to MR63.
    pub mr: [u64; 64],
    /// BR0 to BR32.
    pub br: [u64; 33],
    pub xfer_timeouts: u64,
    pub virtual_sender: ThreadId,
    /// Address of the link to call, 0 for the trap.
    pub link: u64,
    /// RFLAGS.
    pub flags: u64,
    /// What RCX, R11 and RBP hold, and vector registers are made of.
    pub garbage: [u64; 3],
    /// What it does with vector registers.
    pub vector: Vector,
}

/// What a thread does with vector registers around an Ipc.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Vector {
    /// Nothing.
    Nothing,
    /// It uses them, and they have to survive.
    Kept,
    /// It uses them, and says that but for the control words they need not survive.
    Dead,
}

/// What came of one.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Outcome {
    pub from: ThreadId,
    pub mr: [u64; 64],
    pub error: u64,
    pub actual_sender: ThreadId,
    pub rdi: u64,
    pub sp_change: u64,
    pub flags: u64,
    /// The link it was made by, 0: the trap.
    pub link: u64,
    /// Time stamp counter right before and after.
    pub before: u64,
    pub after: u64,
    /// The clock before and after, µs.
    pub began_us: u64,
    pub ended_us: u64,
}

impl Order {
    /// Neither phase.
    pub const NONE: Self = Self {
        to: ThreadId::NIL,
        from: ThreadId::NIL,
        timeouts: 0,
        mr: [0; 64],
        br: [0; 33],
        xfer_timeouts: 0,
        virtual_sender: ThreadId::NIL,
        link: 0,
        flags: abi::syscall::USER_FLAGS,
        garbage: [0; 3],
        vector: Vector::Nothing,
    };

    /// Both phases, infinite timeouts, an empty message.
    pub fn new(to: ThreadId, from: ThreadId) -> Self {
        let local = to.is_local() || from.is_local();
        let link = if local { abi::layout::stub_address(abi::layout::stub::IPC) } else { 0 };
        Self { to, from, link, ..Self::NONE }
    }

    /// Send only.
    pub fn send(to: ThreadId) -> Self {
        Self::new(to, ThreadId::NIL)
    }

    /// Receive only.
    pub fn receive(from: ThreadId) -> Self {
        Self::new(ThreadId::NIL, from)
    }

    /// Open wait.
    pub fn wait() -> Self {
        Self::receive(ThreadId::ANY)
    }

    /// Send and receive from the same.
    pub fn call(to: ThreadId) -> Self {
        Self::new(to, to)
    }

    /// Reply and open wait.
    pub fn reply_wait(to: ThreadId) -> Self {
        Self::new(to, ThreadId::ANY).within(Time::ZERO, Time::NEVER)
    }

    /// With these timeouts.
    pub fn within(mut self, send: Time, receive: Time) -> Self {
        self.timeouts = Timeouts::new(send, receive).0;
        self
    }

    /// Through the kernel's link number `stub`.
    pub fn by(mut self, stub: u64) -> Self {
        self.link = abi::layout::stub_address(stub);
        self
    }

    /// With this label.
    pub fn label(mut self, label: u64) -> Self {
        self.mr[0] = self.mr[0] & 0xFFFF | label << 16;
        self
    }

    /// With these untyped words (before any item).
    pub fn words(mut self, words: &[u64]) -> Self {
        self.mr[1..=words.len()].copy_from_slice(words);
        self.mr[0] = self.mr[0] & !0x3F | words.len() as u64;
        self
    }

    /// With one more typed item of these words.
    pub fn item(mut self, words: &[u64]) -> Self {
        let tag = MsgTag(self.mr[0]);
        let at = 1 + tag.untyped() + tag.typed();
        self.mr[at..at + words.len()].copy_from_slice(words);
        self.mr[0] += (words.len() as u64) << 6;
        self
    }

    /// With one more simple string.
    pub fn string(self, address: u64, len: u64) -> Self {
        self.item(&StringItem::simple(address, len))
    }

    /// Accepts strings into the buffers that these words from BR1 on describe.
    pub fn buffers(mut self, words: &[u64]) -> Self {
        self.br[0] |= 1;
        self.br[1..=words.len()].copy_from_slice(words);
        self
    }

    /// Accepts one string.
    pub fn buffer(self, address: u64, len: u64) -> Self {
        self.buffers(&StringItem::simple(address, len))
    }

    /// Accepts mappings.
    pub fn window(mut self, window: abi::Fpage) -> Self {
        self.br[0] |= window.0 & !0xF;
        self
    }

    /// Propagates in the name of `from`.
    pub fn propagate(mut self, from: ThreadId) -> Self {
        self.mr[0] |= MsgTag::PROPAGATED;
        self.virtual_sender = from;
        self
    }

    /// With transfer timeouts.
    pub fn transfer_within(mut self, send: Time, receive: Time) -> Self {
        self.xfer_timeouts = Timeouts::new(send, receive).0;
        self
    }

    /// On the complete path.
    pub fn complete(mut self) -> Self {
        self.timeouts |= COMPLETE_PATH;
        self
    }
}

impl Outcome {
    /// Nothing yet.
    pub const NONE: Self = Self {
        from: ThreadId::NIL,
        mr: [0; 64],
        error: 0,
        actual_sender: ThreadId::NIL,
        rdi: 0,
        sp_change: 0,
        flags: 0,
        link: 0,
        before: 0,
        after: 0,
        began_us: 0,
        ended_us: 0,
    };

    /// The tag.
    pub fn tag(&self) -> MsgTag {
        MsgTag(self.mr[0])
    }

    /// The error, if it failed.
    pub fn failure(&self) -> Option<IpcError> {
        self.tag().is_error().then(|| IpcError::decode(self.error)).flatten()
    }
}
