//! A packet of IPv4 or IPv6, checked once: who has a [`Packet`] need not doubt its lengths, its header or
//! its checksum. It is made from a way and a payload, or from bytes that a program claims to be one.

use alloc::vec::Vec;

use super::super::inbox::Header;
use super::super::inet::v4;
use crate::errno::Errno;

/// Bytes of a header of IPv4 without options, and of one of IPv6.
pub(super) const V4_HEADER: usize = 20;
pub(super) const V6_HEADER: usize = 40;
/// Bytes of a packet of IPv4, and of the payload of one of IPv6, at most.
pub(super) const LONGEST: usize = 0xffff;
/// A fragment: more of them follow, or something precedes.
const FRAGMENT: u16 = 0x3fff;
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// Options of IPv4 that say where the packet is to go.
const SOURCE_ROUTES: [u8; 2] = [131, 137];
/// Headers that stand between that of IPv6 and the payload: hop by hop, routing, fragment,
/// authentication, destination, mobility. Nobody here looks behind them.
const EXTENSIONS: [u8; 6] = [0, 43, 44, 51, 60, 135];

/// From where to where, and how.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub v6: bool,
    pub protocol: u8,
    /// Addresses; one of IPv4 as IPv6 writes it.
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub header: Header,
}

impl Way {
    /// The way back.
    pub fn back(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    fn header_len(&self) -> usize {
        if self.v6 { V6_HEADER } else { V4_HEADER }
    }

    /// The header before a payload of `len` bytes, which fits.
    fn put_header(&self, to: &mut Vec<u8>, len: usize, id: Option<u16>) {
        let Header { hops, class } = self.header;
        if self.v6 {
            to.extend([0x60 | class >> 4, class << 4, 0, 0]);
            to.extend((len as u16).to_be_bytes());
            to.extend([self.protocol, hops]);
            to.extend(self.source);
            to.extend(self.destination);
            return;
        }
        to.extend([0x45, class]);
        to.extend(((V4_HEADER + len) as u16).to_be_bytes());
        to.extend(id.unwrap_or(0).to_be_bytes());
        to.extend(if id.is_none() { DO_NOT_FRAGMENT } else { 0 }.to_be_bytes());
        to.extend([hops, self.protocol, 0, 0]);
        to.extend(&self.source[12..]);
        to.extend(&self.destination[12..]);
        set_header_checksum(to);
    }
}

/// A packet that is as it says.
pub(super) struct Packet {
    pub way: Way,
    bytes: Vec<u8>,
    /// Where the payload begins.
    start: usize,
}

impl Packet {
    /// A packet with `len` bytes of payload, which `fill` puts in. With an `id` it may be cut to pieces
    /// on its way.
    ///
    /// # Errors
    /// `EMSGSIZE` if it were too long, `ENOBUFS`, and those of `fill`.
    pub fn new(
        way: Way,
        len: usize,
        id: Option<u16>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Errno>,
    ) -> Result<Self, Errno> {
        let start = way.header_len();
        if len > if way.v6 { LONGEST } else { LONGEST - V4_HEADER } {
            return Err(Errno::EMSGSIZE);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(start + len).map_err(|_| Errno::ENOBUFS)?;
        way.put_header(&mut bytes, len, id);
        bytes.resize(start + len, 0);
        fill(bytes.get_mut(start..).unwrap_or_default())?;
        Ok(Self { way, bytes, start })
    }

    /// The packet that these bytes are; `None` if they are none, or one that gets nowhere.
    pub fn arrived(bytes: Vec<u8>, v6: bool) -> Option<Self> {
        if v6 { Self::arrived_v6(bytes) } else { Self::arrived_v4(bytes) }
    }

    fn arrived_v4(mut bytes: Vec<u8>) -> Option<Self> {
        let first = bytes.first_chunk::<V4_HEADER>()?;
        let start = usize::from(first[0] & 0xf) * 4;
        let len = usize::from(word(first, 2));
        let header = bytes.get(..start)?;
        let is_sound = first[0] >> 4 == 4
            && (V4_HEADER..=len).contains(&start)
            && len <= bytes.len()
            && word(first, 6) & FRAGMENT == 0
            && folded(sum(header)) == 0xffff
            && are_options(header.get(V4_HEADER..)?);
        if !is_sound {
            return None;
        }
        let way = Way {
            v6: false,
            protocol: first[9],
            source: v4([first[12], first[13], first[14], first[15]]),
            destination: v4([first[16], first[17], first[18], first[19]]),
            header: Header { hops: first[8], class: first[1] },
        };
        bytes.truncate(len);
        Some(Self { way, bytes, start })
    }

    fn arrived_v6(mut bytes: Vec<u8>) -> Option<Self> {
        let first = bytes.first_chunk::<V6_HEADER>()?;
        let len = V6_HEADER + usize::from(word(first, 4));
        let protocol = first[6];
        if first[0] >> 4 != 6 || len > bytes.len() || EXTENSIONS.contains(&protocol) {
            return None;
        }
        let header = Header { hops: first[7], class: first[0] << 4 | first[1] >> 4 };
        let source = *first.get(8..)?.first_chunk()?;
        let destination = *first.get(24..)?.first_chunk()?;
        bytes.truncate(len);
        let way = Way { v6: true, protocol, source, destination, header };
        Some(Self { way, bytes, start: V6_HEADER })
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it carries.
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// What its payload, or as much of it as counts, and both addresses add up to: all ones, if a checksum in it is right.
    pub fn sum_of(&self, payload: &[u8]) -> u16 {
        let Way { source, destination, protocol, v6, .. } = &self.way;
        let from = if *v6 { 0 } else { 12 };
        let addresses = [source, destination].map(|ip| sum(ip.get(from..).unwrap_or_default()));
        let len = payload.len() as u32;
        let rest = u32::from(*protocol) + (len >> 16) + (len & 0xffff);
        folded(addresses[0] + addresses[1] + rest + sum(payload))
    }

    /// Puts the checksum of the payload to byte `at` of it, where there is room; with both addresses,
    /// if `with_way`.
    pub fn set_checksum(&mut self, at: usize, covers: Covers) {
        let place = self.start + at..self.start + at + 2;
        if let Some(two) = self.bytes.get_mut(place.clone()) {
            two.fill(0);
        }
        let sum = match covers {
            Covers::Payload => folded(sum(self.payload())),
            Covers::Way => self.sum_of(self.payload()),
        };
        // 0 says that there is none, to who can do without; it is the same number as all ones.
        let sum = if sum == 0xffff && covers == Covers::Way { sum } else { !sum };
        if let Some(two) = self.bytes.get_mut(place) {
            two.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// What a checksum is about: the payload, or the addresses, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Covers {
    Payload,
    Way,
}

/// Fills in the checksum of a header of IPv4.
pub(super) fn set_header_checksum(header: &mut [u8]) {
    if let Some(two) = header.get_mut(10..12) {
        two.fill(0);
    }
    let sum = !folded(sum(header));
    if let Some(two) = header.get_mut(10..12) {
        two.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Whether these are options of IPv4 with which a packet gets on.
fn are_options(mut rest: &[u8]) -> bool {
    while let Some(kind) = rest.first() {
        let len = match (kind, rest.get(1)) {
            (0, _) => return true,
            (1, _) => 1,
            (kind, _) if SOURCE_ROUTES.contains(kind) => return false,
            (_, Some(len)) if *len >= 2 => usize::from(*len),
            _ => return false,
        };
        match rest.get(len..) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// The 16 bits at a place, 0 behind the end.
pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |two| u16::from_be_bytes(*two))
}

/// The sum of the 16-bit words of at most [`LONGEST`] bytes and a few more.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |byte| u32::from(*byte) << 8);
    words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum::<u32>() + last
}

/// Whether a checksum among these bytes, about nothing else, is right.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    folded(sum(bytes)) == 0xffff
}

/// A sum with its carries added.
fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn way() -> Way {
        let header = Header { hops: 64, class: 0 };
        let (source, destination) = (v4([127, 0, 0, 1]), v4([127, 0, 0, 2]));
        Way { v6: false, protocol: 200, source, destination, header }
    }

    fn made(way: Way) -> Vec<u8> {
        Packet::new(way, 5, None, |to| Ok(to.copy_from_slice(b"hello"))).unwrap().bytes
    }

    #[test]
    fn what_is_made_arrives() {
        for v6 in [false, true] {
            let mut bytes = made(Way { v6, ..way() });
            // What is behind its end does not belong to it.
            bytes.push(9);
            let packet = Packet::arrived(bytes, v6).unwrap();
            assert_eq!(packet.payload(), b"hello");
            assert_eq!((packet.way.protocol, packet.way.source), (200, way().source));
        }
    }

    #[test]
    fn what_is_none_does_not() {
        let spoilt = |at: usize, value: u8| {
            let mut bytes = made(way());
            bytes[at] = value;
            set_header_checksum(&mut bytes[..20]);
            Packet::arrived(bytes, false).is_none()
        };
        assert!(!spoilt(1, 8));
        // Version, header's length (too short, longer than all), lengths, fragments.
        for (at, value) in
            [(0, 0x55), (0, 0x44), (0, 0x4f), (3, 19), (3, 26), (2, 1), (6, 0x20), (7, 1)]
        {
            assert!(spoilt(at, value), "byte {at}: {value}");
        }
        let mut bytes = made(way());
        bytes[10] ^= 1;
        assert!(Packet::arrived(bytes, false).is_none(), "checksum");
        for len in 0..25 {
            assert!(Packet::arrived(made(way())[..len].to_vec(), false).is_none());
        }
        let six = made(Way { v6: true, ..way() });
        for len in 0..45 {
            assert!(Packet::arrived(six[..len].to_vec(), true).is_none());
        }
        for extension in EXTENSIONS {
            let mut six = six.clone();
            six[6] = extension;
            assert!(Packet::arrived(six, true).is_none());
        }
    }

    #[test]
    fn options_are_looked_at() {
        let good: [&[u8]; 4] = [&[], &[0, 2, 99, 99], &[1, 1, 1, 0], &[7, 3, 4, 1]];
        assert!(good.into_iter().all(are_options));
        let bad: [&[u8]; 5] = [&[7], &[7, 0, 0, 0], &[7, 1, 0, 0], &[7, 5, 0, 0], &[131, 3, 4, 0]];
        assert!(!bad.into_iter().any(are_options));
    }

    #[test]
    fn no_bytes_are_too_wild() {
        let mut state = 1_u32;
        for round in 0..20_000 {
            let mut bytes = vec![0; round % 70];
            for byte in &mut bytes {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            }
            if let Some(first) = bytes.first_mut() {
                *first = if round % 2 == 0 { 0x45 + (*first & 3) } else { 0x60 };
            }
            let header = bytes.len().min(20);
            set_header_checksum(&mut bytes[..header]);
            if let Some(packet) = Packet::arrived(bytes, round % 2 == 1) {
                assert!(packet.payload().len() <= packet.bytes().len());
            }
        }
    }

    #[test]
    fn checksums_are_right() {
        let mut packet = Packet::new(way(), 5, None, |_| Ok(())).unwrap();
        packet.set_checksum(2, Covers::Way);
        assert_eq!(packet.sum_of(packet.payload()), 0xffff);
        packet.set_checksum(2, Covers::Payload);
        assert_eq!(folded(sum(packet.payload())), 0xffff);
        assert!(Packet::new(way(), 65_516, None, |_| Ok(())).is_err());
    }
}
