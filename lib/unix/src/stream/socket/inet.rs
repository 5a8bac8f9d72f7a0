//! The Internet's sockets (AF_INET, AF_INET6): addresses and ports, and who has which.
//!
//! There is no network but the loopback: an address is this machine's or cannot be reached.
//! Two sockets are connected directly, as those of AF_UNIX are, so that bytes take one copy
//! and no protocol. A server for a real network would be asked where [`Endpoint::reach`]
//! refuses now: everything above deals with endpoints only.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::CAP_NET_BIND_SERVICE;
use linux_raw_sys::net::{AF_INET, AF_INET6, SO_REUSEADDR, SO_REUSEPORT};

use super::address::Name;
use super::raw::Raw;
use super::{Kind, Socket};
use crate::account::Charge;
use crate::call::Cx;
use crate::errno::Errno;

/// Bytes of a `struct sockaddr_in`.
const V4_LEN: usize = 16;
/// Bytes of a `struct sockaddr_in6`, and those that all versions of it have.
const V6_LEN: usize = 28;
const V6_LEN_LEAST: usize = 24;
/// No call takes a longer address (`struct sockaddr_storage`).
const STORAGE: u32 = 128;
/// How IPv6 writes addresses of IPv4.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
/// Ports that are given to who wants any (`ip_local_port_range`).
const ANY_PORT: core::ops::Range<u32> = 32768..61000;
/// How many those are.
pub const ANY_PORTS: u32 = ANY_PORT.end - ANY_PORT.start;
/// Ports below are the system's.
const FIRST_FREE_PORT: u16 = 1024;

/// What only sockets of the Internet have.
pub struct Inet {
    /// AF_INET6.
    pub v6: bool,
    /// `IPPROTO_*`.
    pub protocol: u32,
    /// What only those have that send and get packets of that protocol as they are.
    pub raw: Option<Box<Raw>>,
    /// Takes no part in IPv4 (`IPV6_V6ONLY`).
    pub only_v6: Cell<bool>,
    /// A connection was made, or refused, that `connect` has not told yet.
    pub in_progress: Cell<bool>,
    /// Who made it, for the sharing of ports.
    pub uid: u32,
    /// What its own port costs who made it, if it is one of those that others may want.
    pub port: Charge,
}

impl Inet {
    /// The address of who has none.
    #[must_use]
    pub fn any(&self) -> Endpoint {
        Endpoint { ip: if self.v6 { [0; 16] } else { v4([0; 4]) }, port: 0 }
    }

    /// By what its ports are found: raw sockets have none, and are told apart by their protocol.
    fn table(&self) -> u32 {
        self.protocol + if self.raw.is_some() { RAW } else { 0 }
    }
}

/// An address of IPv4, as IPv6 writes it.
#[must_use]
pub const fn v4(ip: [u8; 4]) -> [u8; 16] {
    let [a, b, c, d] = ip;
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

/// `::1`.
pub const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Endpoint {
    /// The address; one of IPv4 as IPv6 writes it.
    pub ip: [u8; 16],
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Whether the address is one of IPv4.
    #[must_use]
    pub fn is_v4(&self) -> bool {
        self.ip.starts_with(&MAPPED)
    }

    /// Whether it stands for all addresses.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.ip == [0; 16] || self.ip == v4([0; 4])
    }

    /// Whether it is an address of this machine.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.ip == LOOPBACK || self.is_v4() && self.ip[12] == 127
    }

    /// Where what is sent there goes: an address of this machine.
    ///
    /// # Errors
    /// `ENETUNREACH` for all others.
    pub fn reach(self) -> Result<Self, Errno> {
        match self {
            _ if self.ip == [0; 16] => Ok(Self { ip: LOOPBACK, ..self }),
            _ if self.is_any() => Ok(Self { ip: v4([127, 0, 0, 1]), ..self }),
            _ if self.is_own() => Ok(self),
            _ => Err(Errno::ENETUNREACH),
        }
    }

    /// The address from which this one is reached.
    #[must_use]
    pub fn source(self) -> [u8; 16] {
        if self.is_v4() { v4([127, 0, 0, 1]) } else { LOOPBACK }
    }

    /// As a `struct sockaddr_in`, or `sockaddr_in6`.
    #[must_use]
    pub fn bytes(&self, v6: bool) -> Vec<u8> {
        let family = if v6 { AF_INET6 } else { AF_INET };
        let mut bytes = Vec::from((family as u16).to_ne_bytes());
        bytes.extend(self.port.to_be_bytes());
        if v6 {
            bytes.extend([0; 4]);
            bytes.extend(self.ip);
            bytes.extend([0; 4]);
        } else {
            bytes.extend(&self.ip[12..]);
            bytes.extend([0; 8]);
        }
        bytes
    }
}

/// Reads the address of `len` bytes that is given to a socket; `None` is AF_UNSPEC.
///
/// # Errors
/// `EINVAL` for a length that is none, `EAFNOSUPPORT` for another family, `EFAULT`.
pub fn read(cx: &Cx, inet: &Inet, address: u64, len: u32) -> Result<Option<Endpoint>, Errno> {
    let mut storage = [0; STORAGE as usize];
    let bytes = storage.get_mut(..len as usize).ok_or(Errno::EINVAL)?;
    cx.user().read_bytes(address, bytes)?;
    let Some(family) = bytes.first_chunk() else { return Err(Errno::EINVAL) };
    let family = u32::from(u16::from_ne_bytes(*family));
    let least = if inet.v6 { V6_LEN_LEAST } else { V4_LEN };
    let least = if inet.v6 && family == AF_INET { V4_LEN } else { least };
    if family == 0 {
        return Ok(None);
    }
    if bytes.len() < least {
        return Err(Errno::EINVAL);
    }
    let port = u16::from_be_bytes([storage[2], storage[3]]);
    let mut ip = v4([storage[4], storage[5], storage[6], storage[7]]);
    match family {
        AF_INET if !inet.v6 => {}
        AF_INET6 if inet.v6 => ip.copy_from_slice(&storage[8..24]),
        _ => return Err(Errno::EAFNOSUPPORT),
    }
    debug_assert!(V6_LEN <= storage.len());
    Ok(Some(Endpoint { ip, port }))
}

/// What raw sockets of a protocol are found by is so much more.
const RAW: u32 = 256;

/// How a socket is found: protocol, port, whether it came from `accept`, where it is.
type Key = (u32, u16, bool, usize);

/// Who has which port.
#[derive(Default)]
pub struct Ports {
    sockets: RefCell<BTreeMap<Key, Weak<Socket>>>,
    /// Where the search for any port goes on.
    next: Cell<u32>,
    /// How many of the sockets are raw ones.
    raws: Cell<usize>,
    /// The number of the last packet that needed one.
    id: Cell<u16>,
}

fn key(socket: &Socket, port: u16, accepted: bool) -> Key {
    let protocol = socket.inet.as_ref().map_or(0, Inet::table);
    (protocol, port, accepted, core::ptr::from_ref(socket) as usize)
}

impl Ports {
    /// The sockets of a protocol that have a port, those that were bound before those that
    /// came from `accept`.
    pub(super) fn at(&self, protocol: u32, port: u16) -> Vec<Rc<Socket>> {
        let all = (protocol, port, false, 0)..=(protocol, port, true, usize::MAX);
        self.sockets.borrow().range(all).filter_map(|(_, socket)| socket.upgrade()).collect()
    }

    /// As [`Self::at`], without those from `accept`.
    fn bound_at(&self, protocol: u32, port: u16) -> Vec<Rc<Socket>> {
        let all = (protocol, port, false, 0)..(protocol, port, true, 0);
        self.sockets.borrow().range(all).filter_map(|(_, socket)| socket.upgrade()).collect()
    }

    /// Whether a socket of a protocol has the port.
    fn is_taken(&self, protocol: u32, port: u16) -> bool {
        let all = (protocol, port, false, 0)..=(protocol, port, true, usize::MAX);
        self.sockets.borrow().range(all).any(|(_, socket)| socket.strong_count() > 0)
    }

    /// All sockets that have a port.
    #[must_use]
    pub fn all(&self) -> Vec<Rc<Socket>> {
        self.sockets.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Whether there are raw sockets, which may want to see what others send.
    #[must_use]
    pub fn has_raws(&self) -> bool {
        self.raws.get() > 0
    }

    /// The raw sockets of a protocol.
    pub(super) fn raws(&self, protocol: u8) -> Vec<Rc<Socket>> {
        self.at(RAW + u32::from(protocol), protocol.into())
    }

    /// A number for a packet.
    pub(super) fn next_id(&self) -> u16 {
        self.id.set(self.id.get().wrapping_add(1).max(1));
        self.id.get()
    }

    /// `socket` is a raw one of its protocol, and has all addresses until it is bound.
    pub(super) fn add_raw(&self, socket: &Rc<Socket>, inet: &Inet) {
        self.raws.set(self.raws.get() + 1);
        self.add(socket, Endpoint { port: inet.protocol as u16, ..inet.any() }, false);
    }

    /// `socket` has this name now.
    pub fn add(&self, socket: &Rc<Socket>, endpoint: Endpoint, accepted: bool) {
        let key = key(socket, endpoint.port, accepted);
        self.sockets.borrow_mut().insert(key, Rc::downgrade(socket));
        *socket.name.borrow_mut() = Some(Rc::new(Name::Internet(endpoint)));
    }

    /// The socket that had `port` ends, or gives it up.
    pub fn remove(&self, socket: &Socket, port: u16) {
        if let Some(inet) = &socket.inet {
            inet.port.set(0);
        }
        let mut sockets = self.sockets.borrow_mut();
        for accepted in [false, true] {
            sockets.remove(&key(socket, port, accepted));
        }
        if socket.inet.as_ref().is_some_and(|inet| inet.raw.is_some()) {
            self.raws.set(self.raws.get().saturating_sub(1));
        }
    }

    /// A port for who wants any.
    fn free_port(&self, protocol: u32) -> Result<u16, Errno> {
        for _ in ANY_PORT {
            let port = self.next.get().max(ANY_PORT.start);
            self.next.set(if port + 1 < ANY_PORT.end { port + 1 } else { ANY_PORT.start });
            if !self.is_taken(protocol, port as u16) {
                return Ok(port as u16);
            }
        }
        Err(Errno::EADDRINUSE)
    }
}

/// Whether what is sent to `to` reaches a socket that is bound to `own`.
fn covers(socket: &Socket, own: Endpoint, to: Endpoint) -> bool {
    let Some(inet) = &socket.inet else { return false };
    match own.ip {
        ip if ip == to.ip => true,
        ip if ip == [0; 16] => !to.is_v4() || inet.v6 && !inet.only_v6.get(),
        _ => own.is_any() && to.is_v4(),
    }
}

/// Whether `socket` may not have `endpoint` while `other` has `theirs`.
fn conflicts(socket: &Socket, endpoint: Endpoint, other: &Socket, theirs: Endpoint) -> bool {
    if !covers(socket, endpoint, theirs) && !covers(other, theirs, endpoint) {
        return false;
    }
    let both = |option| socket.options.is_set(option) && other.options.is_set(option);
    let uid = |socket: &Socket| socket.inet.as_ref().map(|inet| inet.uid);
    let listens = socket.kind == Kind::Stream && other.backlog.get().is_some();
    !(both(SO_REUSEADDR) && !listens || both(SO_REUSEPORT) && uid(socket) == uid(other))
}

/// Gives `socket` a name; port 0 is any that is free. Of those that are given so no user but 0
/// has more than half.
///
/// # Errors
/// `EADDRNOTAVAIL` for an address that is not this machine's, `EACCES` for a port that is
/// the system's, `EADDRINUSE`.
pub fn bind(cx: &Cx, socket: &Rc<Socket>, endpoint: Endpoint) -> Result<(), Errno> {
    let inet = socket.inet.as_ref().ok_or(Errno::EINVAL)?;
    if !endpoint.is_any() && !endpoint.is_own() {
        return Err(Errno::EADDRNOTAVAIL);
    }
    if inet.v6 && inet.only_v6.get() && endpoint.is_v4() {
        return Err(Errno::EINVAL);
    }
    let may = || cx.process.credentials.borrow().may(CAP_NET_BIND_SERVICE);
    if endpoint.port != 0 && endpoint.port < FIRST_FREE_PORT && !may() {
        return Err(Errno::EACCES);
    }
    if socket.name.borrow().is_some() {
        return Err(Errno::EINVAL);
    }
    let ports = &cx.unix.streams.ports;
    let port = match endpoint.port {
        0 => ports.free_port(inet.protocol)?,
        port => port,
    };
    let endpoint = Endpoint { port, ..endpoint };
    for other in ports.at(inet.protocol, port) {
        let theirs = other.endpoint();
        if theirs.is_some_and(|theirs| conflicts(socket, endpoint, &other, theirs)) {
            return Err(Errno::EADDRINUSE);
        }
    }
    if ANY_PORT.contains(&u32::from(port)) {
        inet.port.grow(1).map_err(|_| Errno::EADDRINUSE)?;
    }
    ports.add(socket, endpoint, false);
    Ok(())
}

/// Sees to it that `socket` has a port, and (with `ip`) an address.
///
/// # Errors
/// `EADDRINUSE` if there is no port left.
pub fn bind_any(cx: &Cx, socket: &Rc<Socket>, ip: Option<[u8; 16]>) -> Result<(), Errno> {
    let inet = socket.inet.as_ref().ok_or(Errno::EINVAL)?;
    let bound = socket.endpoint();
    if bound.is_none() {
        bind(cx, socket, inet.any())?;
    }
    if let (Some(endpoint), Some(ip)) = (socket.endpoint(), ip)
        && endpoint.is_any()
    {
        let endpoint = Endpoint { ip, ..endpoint };
        *socket.name.borrow_mut() = Some(Rc::new(Name::Internet(endpoint)));
    }
    Ok(())
}

/// The socket that listens where a connection to `to` goes: at that very address, if there
/// is one.
#[must_use]
pub fn listener(cx: &Cx, to: Endpoint, protocol: u32) -> Option<Rc<Socket>> {
    let mut found = None;
    for socket in cx.unix.streams.ports.bound_at(protocol, to.port) {
        let listens = socket.backlog.get().is_some() && !socket.shut_in.get();
        let Some(own) = socket.endpoint().filter(|own| listens && covers(&socket, *own, to)) else {
            continue;
        };
        if own.ip == to.ip {
            return Some(socket);
        }
        found = found.or(Some(socket));
    }
    found
}

/// The socket that gets a datagram from `from` to `to`: who is connected with its sender
/// before who is not, who has that very address before who has all.
#[must_use]
pub fn receiver(cx: &Cx, from: Endpoint, to: Endpoint, protocol: u32) -> Option<Rc<Socket>> {
    let mut best: Option<(u32, Rc<Socket>)> = None;
    for socket in cx.unix.streams.ports.bound_at(protocol, to.port) {
        let Some(own) = socket.endpoint().filter(|own| covers(&socket, *own, to)) else { continue };
        let theirs = socket.remote();
        if theirs.is_some_and(|theirs| theirs != from) {
            continue;
        }
        let score = 2 * u32::from(theirs.is_some()) + u32::from(own.ip == to.ip);
        if best.as_ref().is_none_or(|(other, _)| score > *other) {
            best = Some((score, socket));
        }
    }
    Some(best?.1)
}
