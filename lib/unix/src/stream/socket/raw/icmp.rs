//! What ICMP answers: an echo to a request, and that a packet got to nobody.

use super::packet::{Covers, Packet, V4_HEADER, V6_HEADER, Way, is_whole};
use crate::stream::socket::inbox::Header;

/// `IPPROTO_ICMP`, `IPPROTO_ICMPV6`.
pub(in crate::stream::socket) const ICMP: u32 = 1;
pub(in crate::stream::socket) const ICMP_V6: u32 = 58;
/// Echo requests and replies of both.
const ECHO: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Bytes before what a message says, and where in them the checksum is.
const HEADER: usize = 8;
pub(super) const CHECKSUM: usize = 2;
/// Bytes of a packet that says what became of another, at most, which is cut off.
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;
/// Hops of packets that no program sends.
const HOPS: u8 = 64;
/// Messages about other packets go before others (`IP_TOS`: internetwork control).
const CONTROL: u8 = 0xc0;
const TOS: u8 = 0x1e;

/// Whether a packet belongs to ICMP.
pub(super) fn is_of(packet: &Packet) -> bool {
    u32::from(packet.way.protocol) == if packet.way.v6 { ICMP_V6 } else { ICMP }
}

fn covers(v6: bool) -> Covers {
    if v6 { Covers::Way } else { Covers::Payload }
}

/// Whether a message's checksum is right.
fn is_sound(packet: &Packet) -> bool {
    match covers(packet.way.v6) {
        Covers::Way => packet.sum_of(packet.payload()) == 0xffff,
        Covers::Payload => is_whole(packet.payload()),
    }
}

/// The answer to a message, if there is one: to echo requests.
pub(super) fn answer(packet: &Packet, id: u16) -> Option<Packet> {
    let payload = packet.payload();
    let (request, reply) = ECHO[usize::from(packet.way.v6)];
    if payload.len() < HEADER || payload.first() != Some(&request) || !is_sound(packet) {
        return None;
    }
    let back = packet.way.back();
    let way = Way { header: Header { hops: HOPS, ..back.header }, ..back };
    message(way, id, payload.len(), |to| {
        to.copy_from_slice(payload);
        if let Some(kind) = to.first_mut() {
            *kind = reply;
        }
    })
}

/// Why a packet got to nobody.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nobody {
    /// Nobody has the port.
    Port,
    /// Nobody knows the protocol.
    Protocol,
}

/// What its sender is told: why, and how it began.
pub(super) fn unreachable(packet: &Packet, why: Nobody, id: u16) -> Option<Packet> {
    let (v6, all) = (packet.way.v6, packet.bytes());
    // Kind and code; IPv6 says where the protocol stands in its header.
    let (kind, code, place) = match (v6, why) {
        (false, Nobody::Port) => (3, 3, 0),
        (false, Nobody::Protocol) => (3, 2, 0),
        (true, Nobody::Port) => (1, 4, 0),
        (true, Nobody::Protocol) => (4, 1, 6),
    };
    let (longest, protocol, class) = match v6 {
        true => (LONGEST_V6 - V6_HEADER - HEADER, ICMP_V6, 0),
        false => (LONGEST_V4 - V4_HEADER - HEADER, ICMP, packet.way.header.class & TOS | CONTROL),
    };
    let begin = all.get(..all.len().min(longest)).unwrap_or_default();
    let header = Header { hops: HOPS, class };
    let way = Way { protocol: protocol as u8, header, ..packet.way.back() };
    message(way, id, HEADER + begin.len(), |to| {
        let (head, rest) = to.split_at_mut(HEADER);
        head.copy_from_slice(&[kind, code, 0, 0, 0, 0, 0, place]);
        rest.copy_from_slice(begin);
    })
}

/// A message with its checksum; none if there is no memory for it.
fn message(way: Way, id: u16, len: usize, fill: impl FnOnce(&mut [u8])) -> Option<Packet> {
    let mut packet = Packet::new(way, len, Some(id), |to| {
        fill(to);
        Ok(())
    });
    if let Ok(packet) = &mut packet {
        packet.set_checksum(CHECKSUM, covers(way.v6));
    }
    packet.ok()
}
