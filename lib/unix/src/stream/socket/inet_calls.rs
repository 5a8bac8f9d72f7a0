//! What bind, listen, connect and the sending calls do on sockets of the Internet.

use alloc::rc::{Rc, Weak};
use core::cell::Cell;

use linux_raw_sys::net::SHUT_RD;

use super::address::Name;
use super::ancillary::Sent;
use super::inbox::{CAPACITY, Header};
use super::inet::{self, Endpoint, Inet};
use super::raw::RawSocket;
use super::raw::arrival::Seen;
use super::transfer::{How, broken};
use super::{Kind, SOMAXCONN, Socket, inet_options};
use crate::account::What;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Open, Source};

/// Bytes of a datagram, at most.
const DATAGRAM_MAX: usize = 65_507;

/// `bind`.
pub(super) fn bind(cx: &Cx, socket: &Rc<Socket>, inet: &Inet) -> Answer {
    let len = cx.uint(2);
    if (len as usize) < if inet.v6 { 24 } else { 16 } {
        return Err(Errno::EINVAL.into());
    }
    let endpoint = match inet::read(cx, inet, cx.arg(1), len)? {
        Some(endpoint) => endpoint,
        // IPv4 lets the family be forgotten.
        None if !inet.v6 => forgotten_family(cx)?,
        None => return Err(Errno::EAFNOSUPPORT.into()),
    };
    match RawSocket::of(socket) {
        Some(raw) => raw.bind(endpoint)?,
        None => inet::bind(cx, socket, endpoint)?,
    }
    Ok(0)
}

/// An AF_UNSPEC address with a port and no address.
fn forgotten_family(cx: &Cx) -> Result<Endpoint, Errno> {
    let bytes = cx.user().read::<[u8; 8]>(cx.arg(1))?;
    let [_, _, high, low, ip @ ..] = bytes;
    if ip != [0; 4] {
        return Err(Errno::EAFNOSUPPORT);
    }
    Ok(Endpoint { ip: inet::v4(ip), port: u16::from_be_bytes([high, low]) })
}

/// What `listen` checks and does before the socket listens.
pub(super) fn listen(cx: &Cx, socket: &Rc<Socket>) -> Result<(), Errno> {
    if socket.connected.get() {
        return Err(Errno::EINVAL);
    }
    if let Some(own) = socket.endpoint() {
        // Addresses can be shared by those who do not listen only.
        let protocol = socket.inet.as_ref().map_or(0, |inet| inet.protocol);
        let other = inet::listener(cx, own, protocol);
        let shared = linux_raw_sys::net::SO_REUSEPORT;
        let taken = |other: &Rc<Socket>| {
            !Rc::ptr_eq(other, socket)
                && other.endpoint() == Some(own)
                && !(socket.options.is_set(shared) && other.options.is_set(shared))
        };
        if other.as_ref().is_some_and(taken) {
            return Err(Errno::EADDRINUSE);
        }
    }
    socket.shut_in.set(false);
    inet::bind_any(cx, socket, None)
}

/// `connect`.
pub(super) fn connect(cx: &Cx, open: &Open, socket: &Rc<Socket>, inet: &Inet) -> Answer {
    let given = inet::read(cx, inet, cx.arg(1), cx.uint(2))?;
    if socket.kind == Kind::Datagram {
        return connect_datagrams(cx, socket, inet, given);
    }
    let Some(to) = given else {
        disconnect(cx, socket, inet);
        return Ok(0);
    };
    if inet.in_progress.take() {
        if socket.connected.get() {
            return Ok(0);
        }
        socket.shut_in.set(false);
        socket.shut_out.set(false);
        return Err(socket.error.take().unwrap_or(Errno::ECONNABORTED).into());
    }
    if socket.connected.get() || socket.backlog.get().is_some() {
        return Err(Errno::EISCONN.into());
    }
    let to = reach(inet, to)?;
    let Some(target) = inet::listener(cx, to, inet.protocol) else {
        return refused(open, socket, inet);
    };
    let waiting = target.pending.borrow().len();
    if waiting > target.backlog.get().unwrap_or_default() && !open.is_nonblocking() {
        return Err(cx.block_on(&target.can_write));
    }
    if waiting > SOMAXCONN as usize {
        return refused(open, socket, inet);
    }
    let own = accepted(cx, socket, &target, to)?;
    inet::bind_any(cx, socket, Some(to.source()))?;
    *own.peer_name.borrow_mut() = socket.name.borrow().clone();
    own.pair_with(socket);
    socket.pair_with(&own);
    target.pending.borrow_mut().push_back(own);
    target.can_read.wake_all();
    socket.wake();
    if open.is_nonblocking() {
        inet.in_progress.set(true);
        return Err(Errno::EINPROGRESS.into());
    }
    Ok(0)
}

/// Where `to` leads from a socket.
fn reach(inet: &Inet, to: Endpoint) -> Result<Endpoint, Errno> {
    if inet.v6 && (inet.only_v6.get() || inet.raw.is_some()) && to.is_v4() {
        return Err(Errno::ENETUNREACH);
    }
    to.reach()
}

/// Nobody listens there.
fn refused(open: &Open, socket: &Socket, inet: &Inet) -> Answer {
    if !open.is_nonblocking() {
        return Err(Errno::ECONNREFUSED.into());
    }
    inet.in_progress.set(true);
    socket.error.set(Some(Errno::ECONNREFUSED));
    socket.shut_in.set(true);
    socket.shut_out.set(true);
    socket.wake();
    Err(Errno::EINPROGRESS.into())
}

/// The own side of a connection from `socket` to `target`, whose port it shares.
fn accepted(cx: &Cx, socket: &Socket, target: &Socket, to: Endpoint) -> Result<Rc<Socket>, Errno> {
    let theirs = target.inet.as_ref().ok_or(Errno::ECONNREFUSED)?;
    let only_v6 = theirs.only_v6.clone();
    let (v6, protocol, uid) = (theirs.v6, theirs.protocol, theirs.uid);
    let in_progress = Cell::new(false);
    let port = cx.charge(What::Ports);
    let new = Inet { v6, protocol, raw: None, only_v6, in_progress, uid, port };
    let own = Socket::new(cx, socket.kind, Some(new))?;
    own.embryo.set(true);
    own.options.inherit(&target.options);
    cx.unix.streams.ports.add(&own, to, true);
    Ok(own)
}

/// AF_UNSPEC: a stream's connection ends.
fn disconnect(cx: &Cx, socket: &Socket, inet: &Inet) {
    if let Some(peer) = socket.peer() {
        peer.peer_gone(true);
        // What becomes of it is nothing to a later connection of this one.
        *peer.peer.borrow_mut() = Weak::new();
    }
    inet.in_progress.set(false);
    socket.connected.set(false);
    socket.backlog.set(None);
    socket.shut_in.set(false);
    socket.shut_out.set(false);
    *socket.peer.borrow_mut() = Weak::new();
    *socket.peer_name.borrow_mut() = None;
    let pending = socket.pending.take();
    drop((pending, socket.inbox.clear()));
    give_up_name(cx, socket);
    socket.wake();
}

/// The socket has no name any more.
fn give_up_name(cx: &Cx, socket: &Socket) {
    let name = socket.name.borrow_mut().take();
    if let Some(endpoint) = name.and_then(|name| name.endpoint()) {
        cx.unix.streams.ports.remove(socket, endpoint.port);
    }
}

/// Says where the datagrams of a socket go, and from where it takes any.
fn connect_datagrams(cx: &Cx, socket: &Rc<Socket>, inet: &Inet, given: Option<Endpoint>) -> Answer {
    socket.error.take();
    let raw = RawSocket::of(socket);
    let Some(to) = given else {
        socket.connected.set(false);
        *socket.peer_name.borrow_mut() = None;
        if let Some(raw) = raw {
            raw.connected(None);
        }
        return Ok(0);
    };
    let to = reach(inet, to)?;
    match raw {
        Some(raw) => raw.connected(Some(to.source())),
        None => inet::bind_any(cx, socket, Some(to.source()))?,
    }
    *socket.peer_name.borrow_mut() = Some(Rc::new(Name::Internet(to)));
    socket.connected.set(true);
    Ok(0)
}

/// `shutdown`.
pub(super) fn shutdown(socket: &Socket, how: u32) -> Answer {
    if socket.backlog.get().is_some() {
        if how != linux_raw_sys::net::SHUT_WR {
            socket.shut_in.set(true);
            socket.backlog.set(None);
            let pending = socket.pending.take();
            drop(pending);
            socket.wake();
        }
        return Ok(0);
    }
    if !socket.connected.get() {
        return Err(Errno::ENOTCONN.into());
    }
    socket.shut_in.set(socket.shut_in.get() || how != linux_raw_sys::net::SHUT_WR);
    if how != SHUT_RD {
        socket.shut_out.set(true);
        if let Some(peer) = socket.peer() {
            peer.shut_in.set(true);
            peer.wake();
        }
    }
    socket.wake();
    Ok(0)
}

/// Why nothing can be sent to a stream: its error, or that it is closed. What is sent to a
/// side that has gone is lost, and comes back as an error of the next call.
pub(super) fn send_to_nobody(
    cx: &Cx,
    socket: &Socket,
    source: &Source,
    how: How,
) -> Result<usize, Stop> {
    match socket.error.take() {
        Some(Errno::EPIPE) => return Err(broken(cx, how.quiet)),
        Some(errno) => return Err(errno.into()),
        None => {}
    }
    if !socket.connected.get() || socket.shut_out.get() {
        return Err(broken(cx, how.quiet));
    }
    socket.error.set(Some(Errno::EPIPE));
    socket.shut_in.set(true);
    socket.shut_out.set(true);
    socket.wake();
    Ok(source.left())
}

/// Where a datagram goes that `sendto` and its like address so.
pub(super) fn target(cx: &Cx, inet: &Inet, at: u64, len: u32) -> Result<Option<Endpoint>, Errno> {
    match inet::read(cx, inet, at, len)? {
        Some(to) if to.port == 0 && inet.raw.is_none() => Err(Errno::EINVAL),
        Some(to) => Ok(Some(reach(inet, to)?)),
        None => Err(Errno::EAFNOSUPPORT),
    }
}

/// Sends a datagram, which is lost if nobody has room for it; that nobody is there is said
/// by the next call, to who is connected.
pub(super) fn send_datagram(
    cx: &Cx,
    socket: &Rc<Socket>,
    source: &mut Source,
    to: Option<Endpoint>,
    sent: &Sent,
    how: How,
) -> Result<usize, Stop> {
    let inet = socket.inet.as_ref().ok_or(Errno::EINVAL)?;
    let raw = RawSocket::of(socket);
    if source.left() > DATAGRAM_MAX && raw.is_none() {
        return Err(Errno::EMSGSIZE.into());
    }
    if socket.shut_out.get() {
        return Err(broken(cx, how.quiet));
    }
    if let Some(errno) = socket.error.take() {
        return Err(errno.into());
    }
    if let Some(raw) = raw {
        return raw.send(cx, source, to, sent);
    }
    let to = to.or(socket.remote()).ok_or(Errno::EDESTADDRREQ)?;
    inet::bind_any(cx, socket, None)?;
    let own = socket.endpoint().ok_or(Errno::EINVAL)?;
    let from = Endpoint { ip: if own.is_any() { to.source() } else { own.ip }, ..own };
    let header = inet_options::header(socket, inet, sent);
    let want = source.left();
    let found = inet::receiver(cx, from, to, inet.protocol);
    if found.is_none() && socket.connected.get() {
        socket.error.set(Some(Errno::ECONNREFUSED));
        socket.wake();
    }
    if !cx.unix.streams.ports.has_raws() {
        if let Some(target) = found {
            hand(&target, source, from, header)?;
        }
        return Ok(want);
    }
    let seen = Seen::new(cx, inet.protocol, source, (from, to), header)?;
    match found {
        Some(target) => hand(&target, &mut Source::Server(seen.content()), from, header)?,
        None => seen.lost(cx),
    }
    Ok(want)
}

/// Puts a datagram into the inbox of who gets it, if there is room, which its user pays for.
///
/// # Errors
/// `EFAULT`.
pub(super) fn hand(
    target: &Socket,
    source: &mut Source,
    from: Endpoint,
    header: Header,
) -> Result<(), Errno> {
    let want = source.left();
    if target.shut_in.get() || target.inbox.room() < want.max(1) || want > CAPACITY {
        return Ok(());
    }
    match target.inbox.add_datagram(source, Name::Internet(from), header) {
        Ok(_) => target.can_read.wake_all(),
        Err(Errno::EFAULT) => return Err(Errno::EFAULT),
        // The receiver cannot pay: lost.
        Err(_) => {}
    }
    Ok(())
}
