//! Raw sockets of ICMP, as far as `ping` goes: an echo request to this machine comes back
//! as a reply, with the header of IPv4 in front.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::address::Name;
use super::ancillary::Credentials;
use super::inet::{Endpoint, Inet};
use super::{Kind, Socket};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::Source;

/// `IPPROTO_ICMP`, `IPPROTO_ICMPV6`.
pub(super) const ICMP: u32 = 1;
pub(super) const ICMP_V6: u32 = 58;
/// Echo requests and replies of both.
const ECHO: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Bytes of a packet, at most, with its header.
const PACKET_MAX: usize = 65_507;

/// Sends a message of ICMP to this machine; what is no echo request is lost.
pub(super) fn send(cx: &Cx, inet: &Inet, source: &mut Source, to: Endpoint) -> Result<usize, Stop> {
    let want = source.left();
    if want > PACKET_MAX {
        return Err(Errno::EMSGSIZE.into());
    }
    let mut message = Vec::new();
    message.try_reserve(want).map_err(|_| Errno::ENOBUFS)?;
    message.resize(want, 0);
    if source.take(&mut message)? < want {
        return Err(Errno::EFAULT.into());
    }
    let (request, reply) = ECHO[usize::from(inet.v6)];
    if message.len() < 8 || message.first() != Some(&request) {
        return Ok(want);
    }
    if let Some(kind) = message.first_mut() {
        *kind = reply;
    }
    // The checksum goes on from the kind's change.
    let sum = u32::from(u16::from_be_bytes([message[2], message[3]]));
    let changed = u32::from(u16::from_be_bytes([request, 0])) + 0xffff
        - u32::from(u16::from_be_bytes([reply, 0]));
    let sum = folded(sum + changed);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet = if inet.v6 { message } else { with_header(to, &message) };
    let from = Rc::new(Name::Internet(Endpoint { port: 0, ..to }));
    for socket in cx.unix.streams.ports.at(inet.protocol, 0) {
        deliver(&socket, &packet, &from);
    }
    Ok(want)
}

/// Puts a packet into an inbox, if there is room and its user can pay.
fn deliver(socket: &Socket, packet: &[u8], from: &Rc<Name>) {
    if socket.kind != Kind::Datagram || socket.inbox.room() < packet.len() {
        return;
    }
    let source = &mut Source::Server(packet);
    let from = Some(from.clone());
    if socket.inbox.add_message(source, Credentials::NOBODY, None, from).is_ok() {
        socket.can_read.wake_all();
    }
}

/// A sum of 16-bit words with its carries added.
fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The message with a header of IPv4, from and to the same machine.
fn with_header(from: Endpoint, message: &[u8]) -> Vec<u8> {
    let len = (20 + message.len()) as u16;
    let [high, low] = len.to_be_bytes();
    let mut packet = Vec::from([0x45, 0, high, low, 0, 0, 0x40, 0, 64, ICMP as u8, 0, 0]);
    packet.extend(&from.ip[12..]);
    packet.extend([127, 0, 0, 1]);
    let words = packet.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = !folded(words.sum());
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(message);
    packet
}
