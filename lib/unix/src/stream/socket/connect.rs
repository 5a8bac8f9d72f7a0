//! Making and connecting sockets: socket, socketpair, bind, listen, accept, connect,
//! shutdown, and the addresses of both sides. Those of AF_UNIX in full, for those of the
//! Internet see `inet_calls`.

use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;

use linux_raw_sys::general::{CAP_NET_RAW, O_CLOEXEC, O_NONBLOCK, O_RDWR};
use linux_raw_sys::net::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, SHUT_RDWR, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET,
    SOCK_STREAM,
};

use super::address::{self, Given};
use super::ancillary::Credentials;
use super::inet::Inet;
use super::netlink::{Netlink, Protocol};
use super::raw::{Raw, icmp};
use super::{Handle, Kind, SOMAXCONN, Socket, inet_calls, netlink, service, shared};
use crate::account::What;
use crate::call::{Answer, Cx};
use crate::errno::Errno;
use crate::file::Open;
use crate::room::Room;
use crate::signal::OnSignal;

/// `SOCK_NONBLOCK` and `SOCK_CLOEXEC` are the flags of `open`.
const FLAGS: u32 = O_NONBLOCK | O_CLOEXEC;
/// One more than the last address family.
const AF_MAX: u32 = 46;
/// One more than the last type.
const SOCK_MAX: u32 = 11;
const IPPROTO_TCP: u32 = 6;
pub(super) const IPPROTO_UDP: u32 = 17;
const IPPROTO_UDPLITE: u32 = 136;

/// The kind that (family, type, protocol) ask for.
fn kind(cx: &Cx) -> Result<(Kind, Option<Inet>), Errno> {
    let (family, kind, protocol) = (cx.uint(0), cx.uint(1), cx.uint(2));
    if kind & !0xf & !FLAGS != 0 {
        return Err(Errno::EINVAL);
    }
    let kind = kind & 0xf;
    if family >= AF_MAX {
        return Err(Errno::EAFNOSUPPORT);
    }
    if kind >= SOCK_MAX {
        return Err(Errno::EINVAL);
    }
    if family == AF_INET || family == AF_INET6 {
        return internet(cx, family == AF_INET6, kind, protocol);
    }
    if family == AF_NETLINK {
        return match kind {
            SOCK_RAW | SOCK_DGRAM if Protocol::of(protocol).is_some() => Ok((Kind::Datagram, None)),
            SOCK_RAW | SOCK_DGRAM => Err(Errno::EPROTONOSUPPORT),
            _ => Err(Errno::ESOCKTNOSUPPORT),
        };
    }
    if family != AF_UNIX {
        return Err(Errno::EAFNOSUPPORT);
    }
    if protocol != 0 && protocol != AF_UNIX {
        return Err(Errno::EPROTONOSUPPORT);
    }
    match kind {
        SOCK_STREAM => Ok((Kind::Stream, None)),
        SOCK_DGRAM | SOCK_RAW => Ok((Kind::Datagram, None)),
        SOCK_SEQPACKET => Ok((Kind::Packet, None)),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

impl Socket {
    /// Takes the connection that has waited longest.
    pub(super) fn next_pending(&self) -> Option<Rc<Socket>> {
        let mut pending = self.pending.borrow_mut();
        let next = pending.pop_front();
        pending.trim();
        next
    }

    /// The other side is being dropped.
    pub(super) fn forget(&self, other: &Self) {
        let mut peer = self.peer.borrow_mut();
        if core::ptr::eq(peer.as_ptr(), other) {
            *peer = Weak::new();
        }
    }
}

/// A kind of the Internet's.
fn internet(cx: &Cx, v6: bool, kind: u32, protocol: u32) -> Result<(Kind, Option<Inet>), Errno> {
    if protocol > 255 {
        return Err(Errno::EINVAL);
    }
    let raw = (kind == SOCK_RAW).then(|| Box::new(Raw::new(v6, protocol)));
    let (kind, own) = match kind {
        SOCK_STREAM => (Kind::Stream, IPPROTO_TCP),
        // `ping_group_range` lets nobody.
        SOCK_DGRAM if protocol == icmp::ICMP => return Err(Errno::EACCES),
        // The same here: nothing is damaged on its way, so no part of it is left unchecked.
        SOCK_DGRAM if protocol == IPPROTO_UDPLITE => (Kind::Datagram, IPPROTO_UDPLITE),
        SOCK_DGRAM => (Kind::Datagram, IPPROTO_UDP),
        SOCK_RAW if protocol == 0 => return Err(Errno::EPROTONOSUPPORT),
        SOCK_RAW if !cx.process.credentials.borrow().may(CAP_NET_RAW) => {
            return Err(Errno::EPERM);
        }
        SOCK_RAW => (Kind::Datagram, protocol),
        _ => return Err(Errno::ESOCKTNOSUPPORT),
    };
    if protocol != 0 && protocol != own {
        return Err(Errno::EPROTONOSUPPORT);
    }
    let uid = cx.process.credentials.borrow().euid;
    let (only_v6, in_progress) = Default::default();
    let port = cx.charge(What::Ports);
    Ok((kind, Some(Inet { v6, protocol: own, raw, only_v6, in_progress, uid, port })))
}

/// The open file of a socket.
fn open(cx: &Cx, socket: Rc<Socket>, flags: u32) -> Result<Rc<Open>, Errno> {
    Open::new(cx, Handle::new(socket), O_RDWR | flags & O_NONBLOCK, Vec::new())
}

/// `socket(family, type, protocol)`.
pub fn socket(cx: &Cx) -> Answer {
    let (kind, inet) = kind(cx)?;
    let socket = Socket::new(cx, kind, inet)?;
    if let (AF_NETLINK, Some(protocol)) = (cx.uint(0), Protocol::of(cx.uint(2))) {
        let kind = cx.uint(1) & 0xf;
        socket.netlink.get_or_init(|| Netlink::new(protocol, kind));
    }
    if let Some(inet) = socket.inet.as_ref().filter(|inet| inet.raw.is_some()) {
        cx.unix.streams.ports.add_raw(&socket, inet);
    }
    let flags = cx.uint(1);
    Ok(cx.add_file(open(cx, socket, flags)?, flags & O_CLOEXEC != 0)?.into())
}

/// `socketpair(family, type, protocol, descriptors)`.
pub fn socketpair(cx: &Cx) -> Answer {
    let (kind, inet) = kind(cx)?;
    if inet.is_some() || cx.uint(0) == AF_NETLINK {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let flags = cx.uint(1);
    let (one, two) = (Socket::new(cx, kind, None)?, Socket::new(cx, kind, None)?);
    one.pair(&two, Credentials::of(cx));
    two.pair(&one, Credentials::of(cx));
    let files = [open(cx, one, flags)?, open(cx, two, flags)?];
    crate::stream::add_pair(cx, files, flags & O_CLOEXEC != 0, cx.arg(3))
}

/// `bind(fd, address, len)`.
pub fn bind(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    if let Some(inet) = &socket.inet {
        return inet_calls::bind(cx, socket, inet);
    }
    if let Some(netlink) = socket.netlink.get() {
        return netlink::bind(cx, socket, netlink);
    }
    let given = address::read(cx, cx.arg(1), cx.uint(2))?;
    let bound = socket.name.borrow().is_some();
    match given {
        Given::Nothing => return Err(Errno::EINVAL.into()),
        // Any name will do, so the one that it has.
        Given::Any if bound => {}
        Given::Any => address::bind_any(cx, socket)?,
        Given::Name(name) if bound => return Err(address::refusal(cx, &name).into()),
        Given::Name(name) => address::bind(cx, socket, name)?,
    }
    Ok(0)
}

/// `listen(fd, backlog)`.
pub fn listen(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    if socket.kind == Kind::Datagram {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if socket.inet.is_some() {
        inet_calls::listen(cx, socket)?;
    } else if socket.name.borrow().is_none() || socket.connected.get() {
        return Err(Errno::EINVAL.into());
    }
    let backlog = cx.uint(1).min(SOMAXCONN) as usize;
    socket.backlog.set(Some(backlog));
    socket.listener.set(Credentials::of(cx));
    socket.can_write.wake_all();
    Ok(0)
}

/// `accept(fd, address, len)`.
pub fn accept(cx: &Cx) -> Answer {
    accept_with(cx, 0)
}

/// `accept4(fd, address, len, flags)`.
pub fn accept4(cx: &Cx) -> Answer {
    accept_with(cx, cx.uint(3))
}

fn accept_with(cx: &Cx, flags: u32) -> Answer {
    if flags & !FLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    let listening = cx.file(cx.uint(0))?;
    let socket = shared(&listening)?;
    if socket.kind == Kind::Datagram {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if socket.backlog.get().is_none() || socket.shut_in.get() {
        return Err(Errno::EINVAL.into());
    }
    let next = socket.next_pending();
    let Some(next) = next else {
        if listening.is_nonblocking() {
            return Err(Errno::EAGAIN.into());
        }
        let timeout_ns = socket.options.receive_timeout_ns.get();
        if timeout_ns > 0 {
            cx.set_deadline(Some(cx.unix.machine.now_ns().saturating_add(timeout_ns)));
            if cx.expired() {
                return Err(Errno::EAGAIN.into());
            }
            cx.on_signal(OnSignal::Return);
        }
        return Err(cx.block_on(&socket.can_read));
    };
    next.embryo.set(false);
    socket.can_write.wake_all();
    let name = next.peer_name.borrow().clone();
    let fd = cx.add_file(open(cx, next, flags)?, flags & O_CLOEXEC != 0)?;
    if cx.arg(1) != 0 {
        let told = address::write(cx, socket, name.as_deref(), cx.arg(1), cx.arg(2));
        if let Err(errno) = told {
            let open = cx.process.files.borrow().remove(fd);
            drop(open);
            return Err(errno.into());
        }
    }
    Ok(fd.into())
}

/// `connect(fd, address, len)`.
pub fn connect(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    if let Some(inet) = &socket.inet {
        return inet_calls::connect(cx, &open, socket, inet);
    }
    if socket.netlink.get().is_some() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let name = match address::read(cx, cx.arg(1), cx.uint(2))? {
        Given::Name(name) => name,
        Given::Nothing if socket.kind == Kind::Datagram => {
            socket.connected.set(false);
            *socket.peer.borrow_mut() = Weak::new();
            *socket.peer_name.borrow_mut() = None;
            return Ok(0);
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if socket.options.credentials.get() && socket.name.borrow().is_none() {
        address::bind_any(cx, socket)?;
    }
    let bound = address::bound(cx, &name)?;
    let target = match service::listener(&bound).filter(|_| socket.kind == Kind::Stream) {
        Some(listener) => listener?,
        None => match service::connect(socket, &name, &bound) {
            Some(answer) => return answer,
            None => address::socket(bound)?,
        },
    };
    if target.kind != socket.kind {
        return Err(Errno::EPROTOTYPE.into());
    }
    if socket.kind == Kind::Datagram {
        let theirs = target.peer();
        if theirs.is_some_and(|theirs| !Rc::ptr_eq(&theirs, socket)) {
            return Err(Errno::EPERM.into());
        }
        socket.pair(&target, Credentials::NOBODY);
        return Ok(0);
    }
    connect_to(cx, !open.is_nonblocking(), socket, &target)
}

/// Whether a socket that listens takes another connection now.
///
/// # Errors
/// `ECONNREFUSED` if it does not listen.
pub(super) fn has_room(target: &Socket) -> Result<bool, Errno> {
    let backlog = target.backlog.get().filter(|_| !target.shut_in.get());
    Ok(target.pending.borrow().len() <= backlog.ok_or(Errno::ECONNREFUSED)?)
}

/// Connects to a socket that listens; waits until it takes the connection, if it `may_wait`.
pub(super) fn connect_to(
    cx: &Cx,
    may_wait: bool,
    socket: &Rc<Socket>,
    target: &Rc<Socket>,
) -> Answer {
    if !has_room(target)? {
        if !may_wait {
            return Err(Errno::EAGAIN.into());
        }
        return Err(cx.block_on(&target.can_write));
    }
    if socket.connected.get() {
        return Err(Errno::EISCONN.into());
    }
    if socket.backlog.get().is_some() {
        return Err(Errno::EINVAL.into());
    }
    let own = Socket::new(cx, socket.kind, None)?;
    enter(target, own, socket, Credentials::of(cx));
    Ok(0)
}

/// `socket`, of `who`, is now connected to `own`, which waits at `target` to be accepted.
pub(super) fn enter(target: &Socket, own: Rc<Socket>, socket: &Rc<Socket>, who: Credentials) {
    *own.name.borrow_mut() = target.name.borrow().clone();
    own.embryo.set(true);
    own.options.credentials.set(target.options.credentials.get());
    own.pair(socket, who);
    socket.pair(&own, target.listener.get());
    target.pending.borrow_mut().push_back(own);
    target.can_read.wake_all();
    socket.wake();
}

/// `shutdown(fd, how)`.
pub fn shutdown(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    if cx.uint(1) > SHUT_RDWR {
        return Err(Errno::EINVAL.into());
    }
    if socket.inet.is_some() {
        return inet_calls::shutdown(socket, cx.uint(1));
    }
    socket.shut(cx.uint(1));
    Ok(0)
}

/// `getsockname(fd, address, len)`.
pub fn getsockname(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    let name = socket.name.borrow().clone();
    address::write(cx, socket, name.as_deref(), cx.arg(1), cx.arg(2))?;
    Ok(0)
}

/// `getpeername(fd, address, len)`.
pub fn getpeername(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    if !socket.connected.get() || socket.is_over() {
        return Err(Errno::ENOTCONN.into());
    }
    let name = socket.peer_name.borrow().clone();
    address::write(cx, socket, name.as_deref(), cx.arg(1), cx.arg(2))?;
    Ok(0)
}
