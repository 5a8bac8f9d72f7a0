//! IPC, typed: messages, the operations of X.2 4.10, errors as values.
//!
//! Global ids only; the trap is inlined. MR1..MR7 live in [`Msg`], further
//! words in the UTCB ([`utcb::set_mr`] before, [`utcb::mr`] after). What may
//! arrive besides words is decided by [`crate::accept`]; outside of its functions
//! the acceptor is closed, which is what makes these functions safe.

mod local;

use core::marker::PhantomData;

use abi::{IpcError, IpcErrorKind, MapItem, MsgTag, Phase, StringItem, ThreadId, Time, Timeouts};

use crate::{syscall, utcb};
pub use local::{local_call, local_reply_wait};
pub(crate) use local::{
    local_exchange, local_exchange_one, local_onward, next_of_any, next_of_own,
};

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

    /// The same message with `bytes` as a simple string. They are read when the message
    /// is sent, and borrowed until then.
    #[must_use]
    pub fn string(self, bytes: &[u8]) -> Parcel<'_> {
        let item = StringItem::simple(bytes.as_ptr() as u64, bytes.len() as u64);
        Parcel { msg: self.item(item), bytes: PhantomData }
    }

    /// Untyped or typed word `index` (0 = MR1) of a received message.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        if index < 7 { self.mr[index] } else { utcb::mr(index + 1) }
    }

    pub(crate) fn item(mut self, words: [u64; 2]) -> Self {
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
    pub(crate) fn regs(&self) -> syscall::Regs {
        let m = &self.mr;
        [self.tag.0, m[0], m[1], m[2], m[3], m[4], m[5], m[6]]
    }

    /// A tag and a word.
    #[inline(always)]
    pub(crate) const fn of_one([tag, word]: [u64; 2]) -> Self {
        Self { tag: MsgTag(tag), mr: [word, 0, 0, 0, 0, 0, 0] }
    }

    #[inline(always)]
    pub(crate) fn from_regs(regs: syscall::Regs) -> Self {
        let [tag, m1, m2, m3, m4, m5, m6, m7] = regs;
        Self { tag: MsgTag(tag), mr: [m1, m2, m3, m4, m5, m6, m7] }
    }
}

/// A message with a string: it is of use as long as the string's bytes are.
///
/// The message in it cannot be taken out: a copy of it would outlive the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<'a> {
    msg: Msg,
    bytes: PhantomData<&'a [u8]>,
}

impl Parcel<'_> {
    /// The same message with a further map or grant item.
    #[must_use]
    pub fn map(self, item: MapItem) -> Self {
        Self { msg: self.msg.map(item), bytes: PhantomData }
    }
}

impl<'a> Parcel<'a> {
    /// The same message with a further string.
    #[must_use]
    pub fn string(self, bytes: &'a [u8]) -> Self {
        self.msg.string(bytes)
    }
}

impl From<Msg> for Parcel<'_> {
    fn from(msg: Msg) -> Self {
        Self { msg, bytes: PhantomData }
    }
}

/// What can be sent: [`Msg`] and [`Parcel`].
pub trait Message: hidden::Content {}

impl Message for Msg {}
impl Message for Parcel<'_> {}

mod hidden {
    use super::{Msg, Parcel};

    /// Only this module can make one: what needs it is out of reach for programs.
    pub struct Key(pub(super) ());

    /// Access to the message.
    pub trait Content {
        #[doc(hidden)]
        fn content(&self, key: Key) -> &Msg;
    }

    impl Content for Msg {
        #[inline(always)]
        fn content(&self, _: Key) -> &Msg {
            self
        }
    }

    impl Content for Parcel<'_> {
        #[inline(always)]
        fn content(&self, _: Key) -> &Msg {
            &self.msg
        }
    }
}

/// The general operation: a send phase unless `to` is nil, then a receive phase
/// unless `from` is nil.
#[inline(always)]
pub fn ipc(
    to: ThreadId,
    from: ThreadId,
    timeouts: Timeouts,
    msg: &impl Message,
) -> Result<(ThreadId, Msg)> {
    let (sender, received) = raw(to, from, timeouts, msg);
    if received.tag.is_error() { Err(error()) } else { Ok((sender, received)) }
}

/// [`ipc`] whose tag says whether it failed; [`error`] then says why.
#[inline(always)]
pub(crate) fn raw(
    to: ThreadId,
    from: ThreadId,
    timeouts: Timeouts,
    msg: &impl Message,
) -> (ThreadId, Msg) {
    let msg = msg.content(hidden::Key(()));
    // SAFETY: memory is written only where `accept` allows it, which has the memory
    // borrowed for as long.
    let (sender, regs) =
        unsafe { syscall::ipc(to.0, from.0, timeouts.0, utcb::pointer(), msg.regs()) };
    (ThreadId(sender), Msg::from_regs(regs))
}

/// [`raw`] of a call without a limit or with one, with at most one word there and back.
#[inline(always)]
pub(crate) fn raw_one(to: ThreadId, timeouts: Timeouts, request: &Msg) -> Msg {
    let message = [request.tag.0, request.mr[0]];
    // SAFETY: as in `raw`.
    Msg::of_one(unsafe { syscall::ipc_one(to.0, to.0, timeouts.0, utcb::pointer(), message) })
}

/// Like [`ipc`], by the kernel's Lipc link: ids may be local.
#[inline(always)]
pub fn lipc(
    to: ThreadId,
    from: ThreadId,
    timeouts: Timeouts,
    msg: &impl Message,
) -> Result<(ThreadId, Msg)> {
    let msg = msg.content(hidden::Key(()));
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

/// Why the last IPC failed.
#[cold]
pub(crate) fn error() -> IpcError {
    IpcError::decode(utcb::error_code())
        .unwrap_or(IpcError::new(IpcErrorKind::Aborted, Phase::Send))
}

/// Sends, then waits for the answer of the same thread, without limit.
#[inline(always)]
pub fn call(to: ThreadId, msg: &impl Message) -> Result<Msg> {
    Ok(ipc(to, to, Timeouts::NEVER, msg)?.1)
}

/// Like [`call`], with timeouts.
pub fn call_within(to: ThreadId, msg: &impl Message, timeouts: Timeouts) -> Result<Msg> {
    Ok(ipc(to, to, timeouts, msg)?.1)
}

/// Sends and waits until the receiver has taken the message.
#[inline(always)]
pub fn send(to: ThreadId, msg: &impl Message) -> Result<()> {
    send_within(to, msg, Time::NEVER)
}

/// Sends; gives up after `timeout`.
#[inline(always)]
pub fn send_within(to: ThreadId, msg: &impl Message, timeout: Time) -> Result<()> {
    ipc(to, ThreadId::NIL, Timeouts::new(timeout, Time::NEVER), msg).map(|_| ())
}

/// Sends if the receiver is waiting for it, else drops the message.
pub fn reply(to: ThreadId, msg: &impl Message) -> Result<()> {
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
pub fn reply_wait(to: ThreadId, msg: &impl Message) -> Result<(ThreadId, Msg)> {
    ipc(to, ThreadId::ANY, Timeouts::REPLY_WAIT, msg)
}

/// Receives a request: the first one of a server.
#[must_use]
pub fn request() -> (ThreadId, Msg) {
    next_request(None::<(ThreadId, Msg)>)
}

/// Replies (if there is a reply) and receives the next request; a client that
/// does not take its reply loses it. Returns only with a request.
#[inline(always)]
#[must_use]
pub fn next_request(reply: Option<(ThreadId, impl Message)>) -> (ThreadId, Msg) {
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
