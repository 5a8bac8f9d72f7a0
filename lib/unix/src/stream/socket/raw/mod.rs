//! Raw sockets of the Internet (SOCK_RAW): packets of one protocol as they are, with the header of IPv4 in front and
//! without that of IPv6; and what takes the packets that programs make themselves.
//!
//! Connections and datagrams of ordinary sockets are no packets here (`inet_calls`); datagrams become some while there
//! is a raw socket. A socket of TCP sees what raw sockets send, not connections.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::address::Name;
use super::ancillary::Sent;
use super::inet::{Endpoint, Inet, v4};
use super::{Socket, inet_options};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::Source;

pub(super) mod arrival;
pub(super) mod icmp;
pub(super) mod options;
mod packet;

use options::Filter;
use packet::{Covers, LONGEST, Packet, V4_HEADER, V6_HEADER, Way, set_header_checksum, word};

const TCP: u32 = 6;
const UDP: u32 = 17;
const UDPLITE: u32 = 136;
/// Its sockets make headers themselves from the beginning.
const IPPROTO_RAW: u32 = 255;

/// What only a raw socket has.
pub struct Raw {
    /// The program makes the headers itself (`IP_HDRINCL`).
    makes_headers: Cell<bool>,
    /// Which messages of ICMP it does not want.
    filter: Cell<Filter>,
    /// Where in a payload the checksum is that is filled in and looked at (`IPV6_CHECKSUM`).
    checksum: Cell<Option<u32>>,
    /// Its address is one that the program gave it.
    is_bound: Cell<bool>,
}

impl Raw {
    /// That of a new socket of a protocol.
    #[must_use]
    pub(super) fn new(v6: bool, protocol: u32) -> Self {
        let checksum = (v6 && protocol == icmp::ICMP_V6).then_some(icmp::CHECKSUM as u32);
        Self {
            makes_headers: Cell::new(protocol == IPPROTO_RAW),
            filter: Cell::default(),
            checksum: Cell::new(checksum),
            is_bound: Cell::new(false),
        }
    }
}

/// A socket that is a raw one.
pub(super) struct RawSocket<'a> {
    socket: &'a Socket,
    inet: &'a Inet,
    raw: &'a Raw,
}

impl<'a> RawSocket<'a> {
    /// As such, if it is one.
    pub fn of(socket: &'a Socket) -> Option<Self> {
        let inet = socket.inet.as_ref()?;
        Some(Self { socket, inet, raw: inet.raw.as_deref()? })
    }

    /// Whether packets that go this way are for it: to its address, from its peer's.
    fn is_for(&self, way: &Way) -> bool {
        let fits = |own: Endpoint, ip| own.is_any() || own.ip == ip;
        self.inet.v6 == way.v6
            && self.socket.endpoint().is_none_or(|own| fits(own, way.destination))
            && self.socket.remote().is_none_or(|peer| fits(peer, way.source))
    }

    /// Whether it wants this one of them.
    fn wants(&self, packet: &Packet) -> bool {
        let is_icmp = icmp::is_of(packet);
        let kind = packet.payload().first().filter(|_| is_icmp);
        let refused = kind.is_some_and(|kind| self.raw.filter.get().refuses(*kind));
        let checked = packet.way.v6 && self.raw.checksum.get().is_some();
        !refused && (!checked || packet.sum_of(packet.payload()) == 0xffff)
    }

    fn call_it(&self, ip: [u8; 16]) {
        let endpoint = Endpoint { ip, port: self.inet.protocol as u16 };
        *self.socket.name.borrow_mut() = Some(Rc::new(Name::Internet(endpoint)));
    }

    /// `bind`: only packets to this address are for it. It can have another one later.
    ///
    /// # Errors
    /// `EINVAL` if it is connected, `EADDRNOTAVAIL` for an address that is not this machine's.
    pub fn bind(&self, endpoint: Endpoint) -> Result<(), Errno> {
        if self.socket.connected.get() {
            return Err(Errno::EINVAL);
        }
        let other_family = self.inet.v6 && endpoint.is_v4();
        if other_family || !endpoint.is_any() && !endpoint.is_own() {
            return Err(Errno::EADDRNOTAVAIL);
        }
        self.raw.is_bound.set(true);
        self.call_it(endpoint.ip);
        Ok(())
    }

    /// It is connected to who is reached from `ip`, or (`None`) to nobody any more.
    pub fn connected(&self, ip: Option<[u8; 16]>) {
        if !self.raw.is_bound.get() {
            self.call_it(ip.unwrap_or(self.inet.any().ip));
        }
    }

    /// Sends a packet, with the header that the program made or one of its own.
    ///
    /// # Errors
    /// As `sendto(2)`.
    pub fn send(
        &self,
        cx: &Cx,
        source: &mut Source,
        to: Option<Endpoint>,
        sent: &Sent,
    ) -> Result<usize, Stop> {
        let want = source.left();
        if want > LONGEST {
            return Err(Errno::EMSGSIZE.into());
        }
        // IPv6 lets the protocol be said, but it is known.
        let protocol = self.inet.protocol;
        let said =
            to.map_or(0, |to| u32::from(to.port)).min(if self.inet.v6 { u32::MAX } else { 0 });
        if said != 0 && said != protocol && (protocol != IPPROTO_RAW || said > 255) {
            return Err(Errno::EINVAL.into());
        }
        let to = to.or(self.socket.remote()).ok_or(Errno::EDESTADDRREQ)?;
        let packet = match self.raw.makes_headers.get() {
            true => self.claimed(cx, source, to)?,
            false => Some(self.made(source, to, sent)?),
        };
        // What is no packet gets nowhere.
        if let Some(packet) = packet {
            arrival::arrive(cx, &packet);
        }
        Ok(want)
    }

    /// From where it is sent.
    fn source(&self, to: Endpoint) -> [u8; 16] {
        let own = self.socket.endpoint().filter(|own| !own.is_any());
        own.map_or(to.source(), |own| own.ip)
    }

    /// A payload with a header.
    fn made(&self, source: &mut Source, to: Endpoint, sent: &Sent) -> Result<Packet, Errno> {
        let len = source.left();
        let header = inet_options::header(self.socket, self.inet, sent);
        let protocol = self.inet.protocol as u8;
        let way =
            Way { v6: self.inet.v6, protocol, source: self.source(to), destination: to.ip, header };
        let mut packet = Packet::new(way, len, None, |payload| take(source, payload))?;
        if let Some(at) = self.raw.checksum.get().filter(|_| self.inet.v6) {
            let at = at as usize;
            if at + 2 > len {
                return Err(Errno::EINVAL);
            }
            packet.set_checksum(at, Covers::Way);
        }
        Ok(packet)
    }

    /// What the program says is a packet; in that of IPv4 the system fills in length, checksum, and what is 0 of source
    /// and number.
    fn claimed(&self, cx: &Cx, source: &mut Source, to: Endpoint) -> Result<Option<Packet>, Errno> {
        let len = source.left();
        let least = if self.inet.v6 { V6_HEADER } else { V4_HEADER };
        if len < least {
            return Err(Errno::EINVAL);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| Errno::ENOBUFS)?;
        bytes.resize(len, 0);
        take(source, &mut bytes)?;
        if !self.inet.v6 {
            let header_len = bytes.first().map_or(0, |first| usize::from(first & 0xf) * 4);
            let header = bytes.get_mut(..header_len).filter(|_| header_len >= V4_HEADER);
            let header = header.ok_or(Errno::EINVAL)?;
            if let Some(first) = header.first_chunk_mut() {
                self.complete(cx, first, len, to);
                set_header_checksum(header);
            }
        }
        Ok(Packet::arrived(bytes, self.inet.v6))
    }

    fn complete(&self, cx: &Cx, header: &mut [u8; V4_HEADER], len: usize, to: Endpoint) {
        header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        if word(header, 4) == 0 {
            header[4..6].copy_from_slice(&cx.unix.streams.ports.next_id().to_be_bytes());
        }
        if v4([header[12], header[13], header[14], header[15]]) == v4([0; 4]) {
            header[12..16].copy_from_slice(&self.source(to)[12..]);
        }
    }
}

/// Takes as many bytes as there is room for.
fn take(source: &mut Source, to: &mut [u8]) -> Result<(), Errno> {
    let want = to.len();
    if source.take(to)? < want { Err(Errno::EFAULT) } else { Ok(()) }
}
