//! What becomes of a packet: copies for the raw sockets of its protocol, then whoever the protocol is for.
//!
//! All of it is done in the call of who sends, whose time it takes: a packet, what it is answered with, and
//! nothing more, for answers are not answered. What receivers keep is paid by them.

use super::icmp::{self, Nobody};
use super::packet::{Covers, Packet, V4_HEADER, V6_HEADER, Way, word};
use super::{RawSocket, TCP, UDP, UDPLITE};
use crate::call::Cx;
use crate::errno::Errno;
use crate::file::Source;
use crate::file::long::TURN;
use crate::stream::socket::address::Name;
use crate::stream::socket::inbox::Header;
use crate::stream::socket::inet::{self, Endpoint};
use crate::stream::socket::inet_calls::hand;

/// Bytes of the header of UDP, and where its length and checksum are.
const UDP_HEADER: usize = 8;
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;

/// A packet has come to this machine.
pub(super) fn arrive(cx: &Cx, packet: &Packet) {
    if let Some(answer) = take(cx, packet).filter(is_for_us) {
        let answered = take(cx, &answer);
        debug_assert!(answered.is_none(), "answers are not answered");
    }
}

fn is_for_us(packet: &Packet) -> bool {
    Endpoint { ip: packet.way.destination, port: 0 }.is_own()
}

/// Who takes a packet; its answer.
fn take(cx: &Cx, packet: &Packet) -> Option<Packet> {
    let seen = copy(cx, packet);
    let id = || cx.unix.streams.ports.next_id();
    let nobody = |why| icmp::unreachable(packet, why, id());
    match u32::from(packet.way.protocol) {
        _ if icmp::is_of(packet) => icmp::answer(packet, id()),
        UDP if !deliver(cx, packet) => nobody(Nobody::Port),
        // Connections do not send packets here, so none is for them.
        UDP | UDPLITE | TCP => None,
        _ if seen => None,
        _ => nobody(Nobody::Protocol),
    }
}

/// Puts a packet into the inboxes of the raw sockets that it is for; whether there is one. Who has no room goes
/// without, and so do the last ones of very many: a packet is copied as often as takes no longer than a turn.
fn copy(cx: &Cx, packet: &Packet) -> bool {
    let (mut seen, mut left) = (false, TURN);
    let from = Endpoint { ip: packet.way.source, port: 0 };
    for socket in cx.unix.streams.ports.raws(packet.way.protocol) {
        let Some(raw) = RawSocket::of(&socket).filter(|raw| raw.is_for(&packet.way)) else {
            continue;
        };
        seen = true;
        let bytes = if packet.way.v6 { packet.payload() } else { packet.bytes() };
        let room = socket.inbox.room() >= bytes.len().max(1);
        if bytes.len() > left
            || !room
            || !socket.options.lets_in(&socket.inbox)
            || !raw.wants(packet)
        {
            continue;
        }
        left -= bytes.len();
        let source = &mut Source::Server(bytes);
        if socket.inbox.add_datagram(source, Name::Internet(from), packet.way.header).is_ok() {
            socket.can_read.wake_all();
        }
    }
    seen
}

/// Gives a datagram of UDP to the socket that it is for; false if there is none.
fn deliver(cx: &Cx, packet: &Packet) -> bool {
    let all = packet.payload();
    let len = match (packet.way.v6, usize::from(word(all, UDP_LENGTH))) {
        // That of a packet too long to say so.
        (true, 0) => all.len(),
        (_, len) => len,
    };
    // What is broken is lost, whoever it was for.
    let Some(datagram) = all.get(..len).filter(|_| len >= UDP_HEADER) else { return true };
    let unchecked = word(datagram, UDP_CHECKSUM) == 0;
    if unchecked && packet.way.v6 || !unchecked && packet.sum_of(datagram) != 0xffff {
        return true;
    }
    let from = Endpoint { ip: packet.way.source, port: word(datagram, 0) };
    let to = Endpoint { ip: packet.way.destination, port: word(datagram, 2) };
    let Some(target) = inet::receiver(cx, from, to, UDP) else { return false };
    let source = &mut Source::Server(datagram.get(UDP_HEADER..).unwrap_or_default());
    let _ = hand(&target, source, from, packet.way.header);
    true
}

/// A datagram that a socket sends to another, while there are raw sockets that may want to see it.
pub(in crate::stream::socket) struct Seen(Packet);

impl Seen {
    /// The datagram that `source` has, from and to these; raw sockets see it now.
    ///
    /// # Errors
    /// `EFAULT`, `ENOBUFS`.
    pub fn new(
        cx: &Cx,
        protocol: u32,
        source: &mut Source,
        (from, to): (Endpoint, Endpoint),
        header: Header,
    ) -> Result<Self, Errno> {
        let (want, v6) = (source.left(), !to.is_v4());
        let protocol = protocol as u8;
        let way = Way { v6, protocol, source: from.ip, destination: to.ip, header };
        let mut packet = Packet::new(way, UDP_HEADER + want, None, |payload| {
            let (head, rest) = payload.split_at_mut(UDP_HEADER);
            let len = (UDP_HEADER + want) as u16;
            let words = [from.port, to.port, len, 0].map(u16::to_be_bytes);
            head.copy_from_slice(words.as_flattened());
            if source.take(rest)? < want { Err(Errno::EFAULT) } else { Ok(()) }
        })?;
        packet.set_checksum(UDP_CHECKSUM, Covers::Way);
        copy(cx, &packet);
        Ok(Self(packet))
    }

    /// What is in it.
    pub fn content(&self) -> &[u8] {
        self.0.payload().get(UDP_HEADER..).unwrap_or_default()
    }

    /// It got to nobody: raw sockets see what its sender is told.
    pub fn lost(&self, cx: &Cx) {
        let told = icmp::unreachable(&self.0, Nobody::Port, cx.unix.streams.ports.next_id());
        if let Some(told) = told.filter(is_for_us) {
            copy(cx, &told);
        }
    }
}

const _: () = assert!(TURN > super::packet::LONGEST + V4_HEADER + V6_HEADER);
