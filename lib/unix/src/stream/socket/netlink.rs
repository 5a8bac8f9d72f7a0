//! AF_NETLINK, NETLINK_ROUTE: what `ip` and the C library ask about interfaces, addresses
//! and routes, of which there are those of the loopback. Nothing can be changed, but the
//! loopback can be switched on, which it always is.
//!
//! A request is answered when it is sent: the answers lie in the sender's own inbox, which
//! its user pays for.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general::CAP_NET_ADMIN;
use linux_raw_sys::net::{AF_INET, AF_INET6, AF_NETLINK};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Socket;
use super::address::Name;
use super::ancillary::Credentials;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Open, Source};

/// `struct sockaddr_nl`.
const ADDRESS: usize = 12;
/// Bytes of requests that are looked at.
const REQUEST_MAX: usize = 4096;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
/// Questions are the third of each four kinds, and change nothing.
const RTM_GET: u16 = 2;
const NLM_F_MULTI: u16 = 2;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;

/// The loopback is a link of this type, with this number and these flags (UP, LOOPBACK,
/// RUNNING, LOWER_UP).
const ARPHRD_LOOPBACK: u16 = 772;
const LO: u32 = 1;
const LO_FLAGS: u32 = 0x1_0049;
/// Bytes of a packet there, at most.
const LO_MTU: u32 = 65_536;
const QUEUE_LEN: u32 = 1000;
/// `IFA_F_PERMANENT`, `RT_SCOPE_HOST`.
const PERMANENT: u8 = 0x80;
const SCOPE_HOST: u8 = 254;

/// `struct nlmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    len: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
}

const HEADER: usize = size_of::<Header>();

/// As a `struct sockaddr_nl`.
#[must_use]
pub fn address_bytes(port: u32) -> Vec<u8> {
    let mut bytes = Vec::from((AF_NETLINK as u16).to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(port.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes
}

/// `bind`: a port of the caller's choice, or one that says which process it is.
pub(super) fn bind(cx: &Cx, socket: &Socket) -> Answer {
    if (cx.uint(2) as usize) < ADDRESS {
        return Err(Errno::EINVAL.into());
    }
    let bytes = cx.user().read::<[u8; ADDRESS]>(cx.arg(1))?;
    let [low, high, _, _, port @ ..] = bytes;
    if u32::from(u16::from_ne_bytes([low, high])) != AF_NETLINK {
        return Err(Errno::EINVAL.into());
    }
    let [a, b, c, d, ..] = port;
    give_port(cx, socket, u32::from_ne_bytes([a, b, c, d]));
    Ok(0)
}

fn give_port(cx: &Cx, socket: &Socket, wanted: u32) {
    let port = if wanted == 0 { cx.process.number } else { wanted };
    *socket.name.borrow_mut() = Some(Rc::new(Name::Netlink(port)));
}

/// A message to the system: its requests are answered, one after the other.
pub(super) fn send(cx: &Cx, socket: &Rc<Socket>, source: &mut Source) -> Result<usize, Stop> {
    let want = source.left();
    let mut bytes = alloc::vec![0; want.min(REQUEST_MAX)];
    let len = source.take(&mut bytes)?;
    if socket.name.borrow().is_none() {
        give_port(cx, socket, 0);
    }
    let mut rest = bytes.get(..len).unwrap_or_default();
    while let Ok((header, _)) = Header::read_from_prefix(rest) {
        let len = header.len as usize;
        let Some(payload) = rest.get(HEADER..len) else { break };
        answer(cx, socket, header, payload)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(want)
}

/// Answers one request.
fn answer(cx: &Cx, socket: &Socket, header: Header, payload: &[u8]) -> Result<(), Errno> {
    let port = match socket.name.borrow().as_deref() {
        Some(Name::Netlink(port)) => *port,
        _ => 0,
    };
    let mut replies = Replies { header: Header { port, ..header }, bytes: Vec::new() };
    let dumps = header.flags & NLM_F_DUMP != 0;
    let family = u32::from(payload.first().copied().unwrap_or_default());
    let result = match header.kind {
        RTM_GETLINK if dumps || names_loopback(payload) => {
            replies.link(dumps);
            Ok(())
        }
        RTM_GETLINK => Err(Errno::ENODEV),
        RTM_GETADDR => {
            replies.addresses(family);
            Ok(())
        }
        RTM_GETROUTE if dumps => Ok(()),
        kind if kind & 3 == RTM_GET => Err(Errno::EOPNOTSUPP),
        _ if !cx.process.credentials.borrow().may(CAP_NET_ADMIN) => Err(Errno::EPERM),
        RTM_NEWLINK | RTM_SETLINK if names_loopback(payload) => Ok(()),
        _ => Err(Errno::EOPNOTSUPP),
    };
    match result {
        Ok(()) if dumps => replies.done(),
        Ok(()) if header.flags & NLM_F_ACK == 0 => {}
        Ok(()) => replies.error(0, header),
        Err(errno) => replies.error(-i32::from(errno.0), header),
    }
    replies.deliver(socket)
}

/// Whether a request about a link is about the loopback: by number or name.
fn names_loopback(payload: &[u8]) -> bool {
    let number = payload.get(4..8).is_some_and(|bytes| bytes == LO.to_ne_bytes());
    // Behind `struct ifinfomsg`: length 7, IFLA_IFNAME, the name.
    number || payload.get(16..23).is_some_and(|name| name == b"\x07\0\x03\0lo\0")
}

/// The answers to a request.
struct Replies {
    header: Header,
    bytes: Vec<u8>,
}

impl Replies {
    /// A message of this kind and content.
    fn add(&mut self, kind: u16, flags: u16, content: &[u8]) {
        let len = (HEADER + content.len()) as u32;
        let header = Header { len, kind, flags, ..self.header };
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The loopback.
    fn link(&mut self, dumps: bool) {
        let mut content = Vec::from([0, 0]);
        content.extend(ARPHRD_LOOPBACK.to_ne_bytes());
        content.extend(LO.to_ne_bytes());
        content.extend(LO_FLAGS.to_ne_bytes());
        content.extend([0; 4]);
        attribute(&mut content, 3, b"lo\0");
        attribute(&mut content, 13, &QUEUE_LEN.to_ne_bytes());
        attribute(&mut content, 16, &[0]);
        attribute(&mut content, 17, &[0]);
        attribute(&mut content, 4, &LO_MTU.to_ne_bytes());
        attribute(&mut content, 27, &[0; 4]);
        attribute(&mut content, 6, b"noqueue\0");
        attribute(&mut content, 1, &[0; 6]);
        attribute(&mut content, 2, &[0; 6]);
        self.add(RTM_NEWLINK, if dumps { NLM_F_MULTI } else { 0 }, &content);
    }

    /// Its addresses of a family; of 0, all.
    fn addresses(&mut self, family: u32) {
        if family == 0 || family == AF_INET {
            self.address(AF_INET, 8, &[127, 0, 0, 1]);
        }
        if family == 0 || family == AF_INET6 {
            self.address(AF_INET6, 128, &super::inet::LOOPBACK);
        }
    }

    fn address(&mut self, family: u32, prefix: u8, ip: &[u8]) {
        let mut content = Vec::from([family as u8, prefix, PERMANENT, SCOPE_HOST]);
        content.extend(LO.to_ne_bytes());
        attribute(&mut content, 1, ip);
        if family == AF_INET {
            attribute(&mut content, 2, ip);
            attribute(&mut content, 3, b"lo\0");
        }
        // How long it is preferred and valid: for ever; since when.
        attribute(&mut content, 6, [u32::MAX, u32::MAX, 0, 0].as_bytes());
        attribute(&mut content, 8, &u32::from(PERMANENT).to_ne_bytes());
        self.add(RTM_NEWADDR, NLM_F_MULTI, &content);
    }

    /// The end of a list.
    fn done(&mut self) {
        self.add(NLMSG_DONE, NLM_F_MULTI, &[0; 4]);
    }

    /// How it went: 0 or a negative error, and to what request.
    fn error(&mut self, error: i32, request: Header) {
        let mut content = Vec::from(error.to_ne_bytes());
        content.extend_from_slice(request.as_bytes());
        self.add(NLMSG_ERROR, 0, &content);
    }

    /// Puts them into the inbox of who asked.
    fn deliver(&self, socket: &Socket) -> Result<(), Errno> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        if socket.inbox.room() < self.bytes.len() {
            return Err(Errno::ENOBUFS);
        }
        let from = Some(Rc::new(Name::Netlink(0)));
        let source = &mut Source::Server(&self.bytes);
        socket.inbox.add_message(source, Credentials::SYSTEM, None, from)?;
        socket.can_read.wake_all();
        Ok(())
    }
}

/// The netlink socket that an open file is, for those who tell it something later.
///
/// # Errors
/// `EBADF` for another file.
pub fn of(open: &Open) -> Result<Rc<Socket>, Errno> {
    let socket = super::shared(open).map_err(|_| Errno::EBADF)?;
    if socket.netlink.get() { Ok(socket.clone()) } else { Err(Errno::EBADF) }
}

/// The system tells it something, unasked; without room for it, that is lost.
pub fn tell(socket: &Socket, bytes: &[u8]) {
    if socket.inbox.room() >= bytes.len() {
        let from = Some(Rc::new(Name::Netlink(0)));
        let source = &mut Source::Server(bytes);
        let _ = socket.inbox.add_message(source, Credentials::SYSTEM, None, from);
        socket.can_read.wake_all();
    }
}

/// Adds a `struct rtattr`.
fn attribute(content: &mut Vec<u8>, kind: u16, data: &[u8]) {
    content.extend(((4 + data.len()) as u16).to_ne_bytes());
    content.extend(kind.to_ne_bytes());
    content.extend_from_slice(data);
    content.resize(content.len().next_multiple_of(4), 0);
}
