//! NETLINK_ROUTE: what `ip` and the C library ask about interfaces, addresses and routes, of which there are those of
//! the loopback. Nothing can be changed, but the loopback can be switched on, which it always is.

use alloc::vec::Vec;

use linux_raw_sys::general::CAP_NET_ADMIN;
use linux_raw_sys::net::{AF_INET, AF_INET6};
use zerocopy::IntoBytes;

use super::{NLM_F_MULTI, Replies, attribute};
use crate::call::Cx;
use crate::errno::Errno;
use crate::stream::socket::inet;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
/// Questions are the third of each four kinds, and change nothing.
const RTM_GET: u16 = 2;

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

/// Answers a request.
pub(super) fn answer(
    cx: &Cx,
    replies: &mut Replies,
    kind: u16,
    dumps: bool,
    payload: &[u8],
) -> Result<(), Errno> {
    let family = u32::from(payload.first().copied().unwrap_or_default());
    match kind {
        RTM_GETLINK if dumps || names_loopback(payload) => replies.link(dumps),
        RTM_GETLINK => return Err(Errno::ENODEV),
        RTM_GETADDR => replies.addresses(family),
        RTM_GETROUTE if dumps => {}
        kind if kind & 3 == RTM_GET => return Err(Errno::EOPNOTSUPP),
        _ if !cx.process.credentials.borrow().may(CAP_NET_ADMIN) => return Err(Errno::EPERM),
        RTM_NEWLINK | RTM_SETLINK if names_loopback(payload) => {}
        _ => return Err(Errno::EOPNOTSUPP),
    }
    Ok(())
}

/// Whether a request about a link is about the loopback: by number or name.
fn names_loopback(payload: &[u8]) -> bool {
    let number = payload.get(4..8).is_some_and(|bytes| bytes == LO.to_ne_bytes());
    // Behind `struct ifinfomsg`: length 7, IFLA_IFNAME, the name.
    number || payload.get(16..23).is_some_and(|name| name == b"\x07\0\x03\0lo\0")
}

impl Replies {
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
            self.address(AF_INET6, 128, &inet::LOOPBACK);
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
}
