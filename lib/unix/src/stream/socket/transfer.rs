//! Sending and receiving, whatever the call.

use alloc::rc::Rc;

use linux_raw_sys::general::SIGPIPE;

use super::address::Name;
use super::ancillary::{Credentials, Rights, Sent};
use super::inbox::{CAPACITY, Header};
use super::inet::Endpoint;
use super::urgent::Next;
use super::{Kind, Socket, inet_calls, netlink, service};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::signal::{self, Info, OnSignal};

/// How to send or receive.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// May wait.
    pub wait: bool,
    /// Leaves what it receives (`MSG_PEEK`).
    pub peek: bool,
    /// Waits until all is there (`MSG_WAITALL`).
    pub all: bool,
    /// No SIGPIPE (`MSG_NOSIGNAL`).
    pub quiet: bool,
    /// The last byte is urgent (`MSG_OOB`).
    pub urgent: bool,
}

/// To whom a datagram goes.
pub enum To {
    /// A socket of AF_UNIX.
    Local(Rc<Socket>),
    /// An address of the Internet.
    Internet(Endpoint),
}

/// What was received.
#[derive(Default)]
pub struct Received {
    /// Bytes that were put into the sink.
    pub len: usize,
    /// Bytes of the message, some of which may have been lost.
    pub full_len: usize,
    /// Files.
    pub rights: Option<Rc<Rights>>,
    /// The sender.
    pub credentials: Option<Credentials>,
    /// The sender's address.
    pub from: Option<Rc<Name>>,
    /// What a datagram of the Internet was sent with.
    pub header: Header,
    /// It is urgent data.
    pub urgent: bool,
}

/// The call waits, as long as the socket's option allows.
pub(super) fn wait(cx: &Cx, queue: &crate::wait::WaitQueue, timeout_ns: u64) -> Stop {
    if timeout_ns > 0 {
        cx.set_deadline(Some(cx.unix.machine.now_ns().saturating_add(timeout_ns)));
        if cx.expired() {
            return Errno::EAGAIN.into();
        }
        cx.on_signal(OnSignal::Return);
    }
    if cx.progress() > 0 {
        cx.on_signal(OnSignal::Partial);
    }
    cx.block_on(queue)
}

/// Receives a message, or bytes of a stream.
///
/// # Errors
/// As `recv(2)`.
pub fn receive(cx: &Cx, socket: &Socket, sink: &mut Sink, how: How) -> Result<Received, Stop> {
    let cannot = socket.needs_connection() && !socket.connected.get();
    if cannot {
        if socket.inet.is_some() {
            return Err(socket.error.take().unwrap_or(Errno::ENOTCONN).into());
        }
        let stream = socket.kind == Kind::Stream;
        return Err(if stream { Errno::EINVAL } else { Errno::ENOTCONN }.into());
    }
    if socket.kind == Kind::Stream {
        return receive_bytes(cx, socket, sink, how);
    }
    // What was lost is said before what was not.
    if let (Some(_), Some(errno)) = (socket.netlink.get(), socket.error.get()) {
        socket.error.set(None);
        return Err(errno.into());
    }
    let Some(piece) = socket.inbox.first() else {
        return nothing(cx, socket, how).map(|()| Received::default());
    };
    let before = socket.inbox.level();
    let len = socket.inbox.peek(sink, 0)?;
    if !how.peek {
        socket.inbox.consume(piece.len, true);
        socket.made_room(before);
    }
    Ok(Received {
        len,
        full_len: piece.len,
        rights: piece.rights,
        credentials: Some(piece.credentials),
        from: piece.from,
        header: piece.header,
        urgent: false,
    })
}

/// There is nothing to receive: the end (`Ok`), an error, or the call waits.
fn nothing(cx: &Cx, socket: &Socket, how: How) -> Result<(), Stop> {
    // That nobody reads on the other side is an error of who writes.
    if socket.error.get() != Some(Errno::EPIPE)
        && let Some(errno) = socket.error.take()
    {
        return Err(errno.into());
    }
    if socket.shut_in.get() {
        return Ok(());
    }
    if !how.wait {
        return Err(Errno::EAGAIN.into());
    }
    Err(wait(cx, &socket.can_read, socket.options.receive_timeout_ns.get()))
}

/// Receives from a stream, as much as is asked for, or waits.
fn receive_bytes(cx: &Cx, socket: &Socket, sink: &mut Sink, how: How) -> Result<Received, Stop> {
    if sink.room() == 0 {
        return Ok(Received::default());
    }
    let before = socket.inbox.level();
    let received = take_bytes(socket, sink, how)?;
    if received.len > 0 && !how.peek {
        socket.made_room(before);
    }
    let before = cx.progress() as usize;
    let wants_more = how.all && !how.peek && sink.room() > 0 && received.rights.is_none();
    if received.len > 0 && !(wants_more && how.wait) {
        return Ok(received);
    }
    if wants_more && received.len > 0 {
        cx.set_progress((before + received.len) as u64);
    }
    match nothing(cx, socket, how) {
        Err(Stop::Errno(_)) if cx.progress() > 0 => Ok(received),
        answer => answer.map(|()| received),
    }
}

/// Takes out of a stream what is there: pieces of the same sender up to the first with files, or to
/// urgent data.
fn take_bytes(socket: &Socket, sink: &mut Sink, how: How) -> Result<Received, Errno> {
    let mut received = Received::default();
    // An urgent byte that is left out; a look leaves it where it is.
    let mut left_out = 0;
    while sink.room() > 0 {
        let most = match socket.next_read(received.len > 0) {
            Next::Read(most) => most,
            Next::Stop => break,
            Next::Skip if how.peek => {
                left_out = 1;
                usize::MAX
            }
            Next::Skip => {
                socket.take(1);
                continue;
            }
        };
        let Some(piece) = socket.inbox.first() else { break };
        let other = received.credentials.is_some_and(|sender| sender != piece.credentials);
        let checks = other && socket.options.credentials.get();
        if received.len > 0 && (piece.rights.is_some() || checks) {
            break;
        }
        let rest = if piece.len > left_out { piece.len - left_out } else { usize::MAX };
        let count = match socket.inbox.peek_at(sink, left_out, most.min(rest)) {
            Ok(count) => count,
            Err(errno) if received.len == 0 => return Err(errno),
            Err(_) => break,
        };
        received.len += count;
        received.credentials = Some(piece.credentials);
        let had_rights = piece.had_rights;
        received.rights = received.rights.or(piece.rights);
        if how.peek {
            break;
        }
        socket.take(count);
        if had_rights || count < piece.len {
            break;
        }
    }
    received.full_len = received.len;
    Ok(received)
}

/// Sends to `to`, or to the peer.
///
/// # Errors
/// As `send(2)`.
pub fn send(
    cx: &Cx,
    socket: &Rc<Socket>,
    source: &mut Source,
    to: Option<To>,
    sent: Sent,
    how: How,
) -> Result<usize, Stop> {
    if socket.inet.is_some() {
        return send_internet(cx, socket, source, to, &sent, how);
    }
    if let Some(netlink) = socket.netlink.get() {
        return netlink::send(cx, socket, netlink, source);
    }
    let credentials = sent.credentials.unwrap_or_else(|| Credentials::of(cx));
    if socket.kind == Kind::Datagram {
        let to = to.and_then(|to| if let To::Local(to) = to { Some(to) } else { None });
        return send_datagram(cx, socket, source, to, credentials, sent.rights, how);
    }
    if !socket.connected.get() {
        return Err(Errno::ENOTCONN.into());
    }
    if let Some(service) = socket.service() {
        if sent.rights.is_some() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        return service::send(cx, socket, &service, source, how);
    }
    let peer = socket.peer().filter(|peer| !socket.shut_out.get() && !peer.shut_in.get());
    let Some(peer) = peer else {
        return Err(broken(cx, how.quiet || socket.kind != Kind::Stream));
    };
    let sent = Sent { credentials: Some(credentials), ..sent };
    send_to_peer(cx, socket, &peer, source, sent, how)
}

/// Sends on a socket of the Internet. Files and credentials do not go there.
fn send_internet(
    cx: &Cx,
    socket: &Rc<Socket>,
    source: &mut Source,
    to: Option<To>,
    sent: &Sent,
    how: How,
) -> Result<usize, Stop> {
    if socket.kind == Kind::Datagram {
        let to = to.and_then(|to| if let To::Internet(to) = to { Some(to) } else { None });
        return inet_calls::send_datagram(cx, socket, source, to, sent, how);
    }
    let closed = socket.shut_out.get() || socket.error.get().is_some();
    match socket.peer().filter(|_| !closed) {
        Some(peer) => {
            let sent = Sent { credentials: Some(Credentials::NOBODY), ..Sent::default() };
            send_to_peer(cx, socket, &peer, source, sent, how)
        }
        None => inet_calls::send_to_nobody(cx, socket, source, how),
    }
}

/// Sends on a connection.
fn send_to_peer(
    cx: &Cx,
    socket: &Socket,
    peer: &Rc<Socket>,
    source: &mut Source,
    sent: Sent,
    how: How,
) -> Result<usize, Stop> {
    let credentials = sent.credentials.unwrap_or(Credentials::NOBODY);
    let want = source.left();
    if socket.kind == Kind::Packet && want > CAPACITY {
        return Err(Errno::EMSGSIZE.into());
    }
    if want == 0 && socket.kind == Kind::Stream {
        return Ok(0);
    }
    let mut done = 0;
    if peer.takes(want) || socket.kind == Kind::Stream && !how.wait && peer.inbox.room() > 0 {
        let from = socket.name.borrow().clone();
        let mut rights = sent.rights.filter(|_| cx.progress() == 0);
        if rights.is_some() {
            cx.unix.streams.flights.note(peer);
        }
        done = match socket.kind {
            Kind::Stream => peer.inbox.add_bytes(source, credentials, &mut rights)?,
            _ => peer.inbox.add_message(source, credentials, rights, from)?,
        };
        peer.can_read.wake_all();
        if how.urgent && (done == want || !how.wait) {
            peer.mark_urgent(cx.unix);
        }
        if done == want || peer.inbox.room() > 0 || !how.wait {
            return Ok(done);
        }
    }
    if !how.wait {
        return Err(Errno::EAGAIN.into());
    }
    if done > 0 && matches!(source, Source::Server(_)) {
        return Ok(done);
    }
    cx.set_progress(cx.progress() + done as u64);
    Err(wait(cx, &socket.can_write, socket.options.send_timeout_ns.get()))
}

/// Nobody will ever receive from here; the thread is told by a signal, too, if not `quiet`.
pub(super) fn broken(cx: &Cx, quiet: bool) -> Stop {
    if !quiet {
        signal::send_thread(cx.unix, cx.thread, Info::kernel(SIGPIPE));
    }
    Errno::EPIPE.into()
}

fn send_datagram(
    cx: &Cx,
    socket: &Socket,
    source: &mut Source,
    to: Option<Rc<Socket>>,
    credentials: Credentials,
    rights: Option<Rc<Rights>>,
    how: How,
) -> Result<usize, Stop> {
    if socket.shut_out.get() {
        return Err(broken(cx, how.quiet));
    }
    if source.left() > CAPACITY {
        return Err(Errno::EMSGSIZE.into());
    }
    let named = to.is_some();
    let target = match to.or_else(|| socket.peer()) {
        Some(target) => target,
        None if socket.connected.get() => {
            // The peer has gone: said once.
            socket.connected.set(false);
            return Err(Errno::ECONNREFUSED.into());
        }
        None => return Err(Errno::ENOTCONN.into()),
    };
    if named && target.kind != Kind::Datagram {
        return Err(Errno::EPROTOTYPE.into());
    }
    let theirs = target.peer.borrow().as_ptr();
    let open_to_all = !target.connected.get() || target.peer.borrow().strong_count() == 0;
    if !open_to_all && theirs != core::ptr::from_ref(socket) {
        return Err(Errno::EPERM.into());
    }
    if target.shut_in.get() {
        return Err(Errno::EPIPE.into());
    }
    if !target.takes(source.left()) {
        if !how.wait {
            return Err(Errno::EAGAIN.into());
        }
        return Err(wait(cx, &target.can_write, socket.options.send_timeout_ns.get()));
    }
    let from = socket.name.borrow().clone();
    if rights.is_some() {
        cx.unix.streams.flights.note(&target);
    }
    let len = target.inbox.add_message(source, credentials, rights, from)?;
    target.can_read.wake_all();
    Ok(len)
}
