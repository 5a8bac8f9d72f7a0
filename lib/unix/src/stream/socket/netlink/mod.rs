//! AF_NETLINK: questions to the system (NETLINK_ROUTE, NETLINK_GENERIC), and what it tells unasked
//! (NETLINK_CONNECTOR).
//!
//! A request is answered when it is sent: the answers lie in the sender's own inbox, which
//! its user pays for.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use linux_raw_sys::general::CAP_NET_ADMIN;
use linux_raw_sys::net::AF_NETLINK;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Socket;
use super::address::Name;
use super::ancillary::Credentials;
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{Open, Source};

pub mod connector;
mod generic;
mod route;
mod taskstats;

/// `struct sockaddr_nl`.
const ADDRESS: usize = 12;
/// Bytes of requests that are looked at.
const REQUEST_MAX: usize = 4096;
/// Options.
const NETLINK_ADD_MEMBERSHIP: u32 = 1;
const NETLINK_DROP_MEMBERSHIP: u32 = 2;
const NETLINK_NO_ENOBUFS: u32 = 5;
/// What of an attribute's kind is not about how it is written.
const KIND: u16 = 0x3fff;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Kinds below are not requests.
const NLMSG_MIN_TYPE: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_MULTI: u16 = 2;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;

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

/// `NETLINK_*`: whom one speaks to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Interfaces, addresses, routes.
    Route = 0,
    /// Events of processes.
    Connector = 11,
    /// Families by name.
    Generic = 16,
}

impl Protocol {
    /// The one with this number.
    pub(super) fn of(number: u32) -> Option<Self> {
        [Self::Route, Self::Connector, Self::Generic].into_iter().find(|one| *one as u32 == number)
    }
}

/// What only a socket of AF_NETLINK has.
pub struct Netlink {
    /// Its protocol.
    pub protocol: Protocol,
    /// `SOCK_RAW` or `SOCK_DGRAM`, which are the same.
    pub kind: u32,
    /// Groups to whose messages it listens, a bit each.
    groups: Cell<u32>,
    /// That messages were lost is no error (`NETLINK_NO_ENOBUFS`).
    loses_quietly: Cell<bool>,
}

impl Netlink {
    /// That of a new socket.
    pub(super) fn new(protocol: Protocol, kind: u32) -> Self {
        Self { protocol, kind, groups: Cell::new(0), loses_quietly: Cell::new(false) }
    }

    /// Whether the caller may join groups.
    fn check_groups(&self, cx: &Cx) -> Result<(), Errno> {
        let restricted = self.protocol == Protocol::Connector;
        let may = !restricted || cx.process.credentials.borrow().may(CAP_NET_ADMIN);
        if may { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// `setsockopt`: groups, and what is said of messages that are lost; others are without effect.
    pub(super) fn set(&self, cx: &Cx, name: u32, value: i32) -> Result<(), Errno> {
        match name {
            NETLINK_ADD_MEMBERSHIP | NETLINK_DROP_MEMBERSHIP => {
                self.check_groups(cx)?;
                let number = u32::try_from(value).ok().filter(|number| (1..=32).contains(number));
                let bit = 1 << (number.ok_or(Errno::EINVAL)? - 1);
                let rest = self.groups.get() & !bit;
                self.groups.set(rest | if name == NETLINK_ADD_MEMBERSHIP { bit } else { 0 });
            }
            NETLINK_NO_ENOBUFS => self.loses_quietly.set(value != 0),
            _ => {}
        }
        Ok(())
    }
}

/// As a `struct sockaddr_nl`.
#[must_use]
pub fn address_bytes(port: u32, groups: u32) -> Vec<u8> {
    let mut bytes = Vec::from((AF_NETLINK as u16).to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(port.to_ne_bytes());
    bytes.extend(groups.to_ne_bytes());
    bytes
}

/// `bind`: a port of the caller's choice, or one that says which process it is; and groups.
pub(super) fn bind(cx: &Cx, socket: &Socket, netlink: &Netlink) -> Answer {
    if (cx.uint(2) as usize) < ADDRESS {
        return Err(Errno::EINVAL.into());
    }
    let [family, port, groups] = cx.user().read::<[u32; 3]>(cx.arg(1))?;
    if family & 0xffff != AF_NETLINK {
        return Err(Errno::EINVAL.into());
    }
    if groups != 0 {
        netlink.check_groups(cx)?;
    }
    netlink.groups.set(groups);
    give_port(cx, socket, port);
    Ok(0)
}

fn give_port(cx: &Cx, socket: &Socket, wanted: u32) {
    let port = if wanted == 0 { cx.process.number } else { wanted };
    let groups = socket.netlink.get().map_or(0, |netlink| netlink.groups.get());
    *socket.name.borrow_mut() = Some(Rc::new(Name::Netlink { port, groups }));
}

/// A message to the system: its requests are answered, one after the other.
pub(super) fn send(
    cx: &Cx,
    socket: &Rc<Socket>,
    netlink: &Netlink,
    source: &mut Source,
) -> Result<usize, Stop> {
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
        answer(cx, socket, netlink, header, payload)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(want)
}

/// Answers one request.
fn answer(
    cx: &Cx,
    socket: &Rc<Socket>,
    netlink: &Netlink,
    header: Header,
    payload: &[u8],
) -> Result<(), Errno> {
    let port = match socket.name.borrow().as_deref() {
        Some(Name::Netlink { port, .. }) => *port,
        _ => 0,
    };
    let mut replies = Replies { header: Header { port, ..header }, bytes: Vec::new() };
    let dumps = header.flags & NLM_F_DUMP != 0;
    let result = match netlink.protocol {
        Protocol::Connector => {
            connector::asked(cx, socket, payload);
            return Ok(());
        }
        Protocol::Route => route::answer(cx, &mut replies, header.kind, dumps, payload),
        // What is no request is answered only if that is wanted.
        Protocol::Generic if header.flags & NLM_F_REQUEST == 0 || header.kind < NLMSG_MIN_TYPE => {
            Ok(())
        }
        Protocol::Generic => generic::answer(cx, &mut replies, header.kind, dumps, payload),
    };
    match result {
        Ok(()) if dumps => replies.done(),
        Ok(()) if header.flags & NLM_F_ACK == 0 => {}
        Ok(()) => replies.error(0, header),
        Err(errno) => replies.error(-i32::from(errno.0), header),
    }
    replies.deliver(socket)
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
        let from = Some(Rc::new(Name::Netlink { port: 0, groups: 0 }));
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
    if socket.netlink.get().is_some() { Ok(socket.clone()) } else { Err(Errno::EBADF) }
}

/// The system tells it something, unasked; without room for it, that is lost.
pub fn tell(socket: &Socket, bytes: &[u8]) {
    if socket.inbox.room() >= bytes.len() {
        let from = Some(Rc::new(Name::Netlink { port: 0, groups: 0 }));
        let source = &mut Source::Server(bytes);
        let _ = socket.inbox.add_message(source, Credentials::SYSTEM, None, from);
        socket.can_read.wake_all();
    }
}

/// As [`tell`], to who listens to `groups`; that it is lost is an error of the next call.
fn give(socket: &Socket, bytes: &[u8], groups: u32) {
    let fits = socket.inbox.room() >= bytes.len() && socket.options.lets_in(&socket.inbox);
    let from = Some(Rc::new(Name::Netlink { port: 0, groups }));
    let source = &mut Source::Server(bytes);
    let given = fits && socket.inbox.add_message(source, Credentials::SYSTEM, None, from).is_ok();
    let quietly = socket.netlink.get().is_some_and(|netlink| netlink.loses_quietly.get());
    if !given && !quietly {
        socket.error.set(Some(Errno::ENOBUFS));
    }
    socket.can_read.wake_all();
}

/// The attributes of a message: kind and content, as long as they are some.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let ([len, kind], _) = <[u16; 2]>::read_from_prefix(rest).ok()?;
        let data = rest.get(4..usize::from(len))?;
        rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
        Some((kind & KIND, data))
    })
}

/// Adds an attribute whose content are others.
fn nested(content: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = content.len();
    attribute(content, kind, &[]);
    fill(content);
    let len = (content.len() - start) as u16;
    if let Some(place) = content.get_mut(start..start + 2) {
        place.copy_from_slice(&len.to_ne_bytes());
    }
}

/// Adds a `struct rtattr`.
fn attribute(content: &mut Vec<u8>, kind: u16, data: &[u8]) {
    content.extend(((4 + data.len()) as u16).to_ne_bytes());
    content.extend(kind.to_ne_bytes());
    content.extend_from_slice(data);
    content.resize(content.len().next_multiple_of(4), 0);
}
