//! IPC, typed: messages, the operations of X.2 4.10, errors as values.
//!
//! Global ids only; the trap is inlined. MR1..MR7 live in [`Msg`], further
//! words in the UTCB ([`utcb::set_mr`] before, [`utcb::mr`] after). What may
//! arrive besides words is decided by [`crate::accept`]; outside of its guards
//! the acceptor is closed, which is what makes these functions safe.

use abi::{IpcError, IpcErrorKind, MapItem, MsgTag, Phase, StringItem, ThreadId, Time, Timeouts};

use crate::{syscall, utcb};

/// A message: the tag and MR1..MR7.
#[derive(Clone, Copy, Default, Debug)]
pub struct Msg {
    /// MR0.
    pub tag: MsgTag,
    /// MR1..MR7; further words are in the UTCB.
    pub mr: [u64; 7],
}

/// The result of an IPC with a receive phase.
pub type Result<T> = core::result::Result<T, IpcError>;

impl Msg {
    /// An empty message with this label.
    #[inline(always)]
    #[must_use]
    pub const fn new(label: u64) -> Self {
        Self { tag: MsgTag::new(label, 0, 0), mr: [0; 7] }
    }

    /// An empty message of the kernel's protocol `l` (a negative number), field `n`.
    #[must_use]
    pub const fn protocol(l: i64, n: u32) -> Self {
        Self { tag: MsgTag::protocol(l, n, 0, 0), mr: [0; 7] }
    }

    /// The label.
    #[inline(always)]
    #[must_use]
    pub const fn label(&self) -> u64 {
        self.tag.label()
    }

    /// The same message with one more untyped word (before any typed item).
    #[inline(always)]
    #[must_use]
    pub fn word(mut self, value: u64) -> Self {
        let at = self.tag.untyped();
        self.put(at, value);
        self.tag.0 += 1;
        self
    }

    /// The same message with the untyped words `values`.
    #[must_use]
    pub fn words(self, values: &[u64]) -> Self {
        values.iter().fold(self, |msg, value| msg.word(*value))
    }

    /// The same message with a map or grant item.
    #[must_use]
    pub fn map(self, item: MapItem) -> Self {
        self.item(item.words())
    }

    /// The same message with `bytes` as a simple string. The bytes are read when
    /// the message is sent: send it while they live.
    #[must_use]
    pub fn string(self, bytes: &[u8]) -> Self {
        self.item(StringItem::simple(bytes.as_ptr() as u64, bytes.len() as u64))
    }

    /// Untyped or typed word `index` (0 = MR1) of a received message.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        if index < 7 { self.mr[index] } else { utcb::mr(index + 1) }
    }

    fn item(mut self, words: [u64; 2]) -> Self {
        let at = self.tag.untyped() + self.tag.typed();
        self.put(at, words[0]);
        self.put(at + 1, words[1]);
        self.tag.0 += 2 << 6;
        self
    }

    #[inline(always)]
    fn put(&mut self, index: usize, value: u64) {
        if index < 7 { self.mr[index] = value } else { utcb::set_mr(index + 1, value) }
    }

    #[inline(always)]
    fn regs(&self) -> syscall::Regs {
        let m = &self.mr;
        [self.tag.0, m[0], m[1], m[2], m[3], m[4], m[5], m[6]]
    }

    #[inline(always)]
    fn from_regs(regs: syscall::Regs) -> Self {
        let [tag, m1, m2, m3, m4, m5, m6, m7] = regs;
        Self { tag: MsgTag(tag), mr: [m1, m2, m3, m4, m5, m6, m7] }
    }
}

/// The general operation: a send phase unless `to` is nil, then a receive phase
/// unless `from` is nil.
#[inline(always)]
pub fn ipc(to: ThreadId, from: ThreadId, timeouts: Timeouts, msg: &Msg) -> Result<(ThreadId, Msg)> {
    // SAFETY: memory is written only where an `accept` guard allows it, and that
    // guard holds the memory.
    let (sender, regs) =
        unsafe { syscall::ipc(to.0, from.0, timeouts.0, utcb::pointer(), msg.regs()) };
    let received = Msg::from_regs(regs);
    if received.tag.is_error() { Err(error()) } else { Ok((ThreadId(sender), received)) }
}

/// Like [`ipc`], by the kernel's Lipc link: ids may be local.
#[inline(always)]
pub fn lipc(
    to: ThreadId,
    from: ThreadId,
    timeouts: Timeouts,
    msg: &Msg,
) -> Result<(ThreadId, Msg)> {
    // SAFETY: as in `ipc`.
    let (sender, regs) = unsafe {
        syscall::ipc_link::<{ abi::layout::stub::LIPC }>(
            to.0,
            from.0,
            timeouts.0,
            utcb::pointer(),
            msg.regs(),
        )
    };
    let received = Msg::from_regs(regs);
    if received.tag.is_error() { Err(error()) } else { Ok((ThreadId(sender), received)) }
}

#[cold]
fn error() -> IpcError {
    IpcError::decode(utcb::error_code())
        .unwrap_or(IpcError::new(IpcErrorKind::Aborted, Phase::Send))
}

/// Sends, then waits for the answer of the same thread, without limit.
#[inline(always)]
pub fn call(to: ThreadId, msg: &Msg) -> Result<Msg> {
    Ok(ipc(to, to, Timeouts::NEVER, msg)?.1)
}

/// Like [`call`], with timeouts.
pub fn call_within(to: ThreadId, msg: &Msg, timeouts: Timeouts) -> Result<Msg> {
    Ok(ipc(to, to, timeouts, msg)?.1)
}

/// Sends and waits until the receiver has taken the message.
#[inline(always)]
pub fn send(to: ThreadId, msg: &Msg) -> Result<()> {
    send_within(to, msg, Time::NEVER)
}

/// Sends; gives up after `timeout`.
#[inline(always)]
pub fn send_within(to: ThreadId, msg: &Msg, timeout: Time) -> Result<()> {
    ipc(to, ThreadId::NIL, Timeouts::new(timeout, Time::NEVER), msg).map(|_| ())
}

/// Sends if the receiver is waiting for it, else drops the message.
pub fn reply(to: ThreadId, msg: &Msg) -> Result<()> {
    send_within(to, msg, Time::ZERO)
}

/// Receives from one thread.
#[inline(always)]
pub fn receive(from: ThreadId, timeout: Time) -> Result<Msg> {
    Ok(ipc(ThreadId::NIL, from, Timeouts::new(Time::NEVER, timeout), &Msg::default())?.1)
}

/// Receives from anyone.
#[inline(always)]
pub fn wait(timeout: Time) -> Result<(ThreadId, Msg)> {
    ipc(ThreadId::NIL, ThreadId::ANY, Timeouts::new(Time::NEVER, timeout), &Msg::default())
}

/// Replies without waiting, then receives from anyone: a server's loop in one
/// call. If the reply fails there is no receive phase (error with phase send).
#[inline(always)]
pub fn reply_wait(to: ThreadId, msg: &Msg) -> Result<(ThreadId, Msg)> {
    ipc(to, ThreadId::ANY, Timeouts::REPLY_WAIT, msg)
}

/// Replies (if there is a reply) and receives the next request; a client that
/// does not take its reply loses it. Returns only with a request.
#[inline(always)]
#[must_use]
pub fn next_request(reply: Option<(ThreadId, Msg)>) -> (ThreadId, Msg) {
    let mut result = match reply {
        Some((to, msg)) => reply_wait(to, &msg),
        None => wait(Time::NEVER),
    };
    loop {
        match result {
            Ok(request) => return request,
            Err(_) => result = wait(Time::NEVER),
        }
    }
}

/// Answers the system call of the foreign thread `to` with `value` and waits for the next
/// message. The other message registers are not even loaded: such a thread never sees them.
#[inline(always)]
pub fn answer_and_wait(to: ThreadId, value: u64) -> Result<(ThreadId, Msg)> {
    // SAFETY: as in `ipc`.
    let (sender, regs) = unsafe {
        syscall::answer(to.0, ThreadId::ANY.0, Timeouts::REPLY_WAIT.0, utcb::pointer(), value)
    };
    let received = Msg::from_regs(regs);
    if received.tag.is_error() { Err(error()) } else { Ok((ThreadId(sender), received)) }
}

/// Answers the system call of the foreign thread `to` with `value`, if it waits for that.
#[inline(always)]
pub fn answer(to: ThreadId, value: u64) -> Result<()> {
    let timeouts = Timeouts::new(Time::ZERO, Time::ZERO);
    // SAFETY: nothing is received.
    let (_, regs) =
        unsafe { syscall::answer(to.0, ThreadId::NIL.0, timeouts.0, utcb::pointer(), value) };
    if MsgTag(regs[0]).is_error() { Err(error()) } else { Ok(()) }
}

/// Does nothing for `us` microseconds.
pub fn sleep(us: u64) {
    // Nobody sends to a thread on its own behalf, so this can only time out.
    let _ = receive(utcb::my_global_id(), Time::micros(us));
}

/// What one [`timed`] IPC took.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    /// The received tag.
    pub tag: MsgTag,
    /// Time-stamp counter before `syscall`.
    pub before: u64,
    /// Time-stamp counter after it.
    pub after: u64,
}

/// An IPC of `tag` with time stamps right around the trap, without timeouts; the
/// words sent are whatever the message registers hold. For measurements:
/// [`syscall::TIMED_OVERHEAD`] user instructions lie between the stamps.
#[inline(always)]
#[must_use]
pub fn timed(to: ThreadId, from: ThreadId, tag: MsgTag) -> Stamps {
    // SAFETY: as in `ipc`.
    let (tag, before, after) =
        unsafe { syscall::timed_ipc(to.0, from.0, 0, utcb::pointer(), tag.0) };
    Stamps { tag: MsgTag(tag), before, after }
}
