//! Socket options of TCP, IPv4 and IPv6. Most of them only remember what they were set to:
//! where nothing is delayed, lost or routed there is nothing for them to do.

use alloc::vec;
use alloc::vec::Vec;

use super::ancillary::Sent;
use super::inbox::Header;
use super::inet::Inet;
use super::raw::RawSocket;
use super::raw::options::IP_HDRINCL;
use super::{Kind, Socket};
use crate::call::{Answer, Cx};
use crate::errno::Errno;

const IPPROTO_IP: u32 = 0;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_IPV6: u32 = 41;
const TCP_INFO: u32 = 11;
const TCP_CONGESTION: u32 = 13;
const IPV6_V6ONLY: u32 = 26;
const IPPROTO_UDPLITE: u32 = 136;
/// Hops of a datagram whose sender does not say how many.
const HOPS: u8 = 64;

/// Bytes of a `struct tcp_info`.
const TCP_INFO_LEN: usize = 232;
/// `TCP_ESTABLISHED`, `TCP_CLOSE`, `TCP_CLOSE_WAIT`, `TCP_LISTEN`, `TCP_FIN_WAIT2`.
const STATES: [u8; 5] = [1, 7, 8, 10, 5];
/// Bytes of the name of a congestion control.
const CONGESTION: &[u8; 16] = b"cubic\0\0\0\0\0\0\0\0\0\0\0";

/// Those that remember a number: level, name, what it is at first.
const REMEMBERED: &[(u32, u32, i32)] = &[
    (IPPROTO_TCP, 1, 0),      // TCP_NODELAY
    (IPPROTO_TCP, 2, 536),    // TCP_MAXSEG
    (IPPROTO_TCP, 3, 0),      // TCP_CORK
    (IPPROTO_TCP, 4, 7200),   // TCP_KEEPIDLE
    (IPPROTO_TCP, 5, 75),     // TCP_KEEPINTVL
    (IPPROTO_TCP, 6, 9),      // TCP_KEEPCNT
    (IPPROTO_TCP, 7, 6),      // TCP_SYNCNT
    (IPPROTO_TCP, 8, 60),     // TCP_LINGER2
    (IPPROTO_TCP, 9, 0),      // TCP_DEFER_ACCEPT
    (IPPROTO_TCP, 10, 0),     // TCP_WINDOW_CLAMP
    (IPPROTO_TCP, 12, 1),     // TCP_QUICKACK
    (IPPROTO_TCP, 18, 0),     // TCP_USER_TIMEOUT
    (IPPROTO_TCP, 23, 0),     // TCP_FASTOPEN
    (IPPROTO_TCP, 25, 0),     // TCP_NOTSENT_LOWAT
    (IPPROTO_IP, 1, 0),       // IP_TOS
    (IPPROTO_IP, 2, 64),      // IP_TTL
    (IPPROTO_IP, 6, 0),       // IP_RECVOPTS
    (IPPROTO_IP, 8, 0),       // IP_PKTINFO
    (IPPROTO_IP, 10, 1),      // IP_MTU_DISCOVER
    (IPPROTO_IP, 11, 0),      // IP_RECVERR
    (IPPROTO_IP, 12, 0),      // IP_RECVTTL
    (IPPROTO_IP, 13, 0),      // IP_RECVTOS
    (IPPROTO_IP, 15, 0),      // IP_FREEBIND
    (IPPROTO_IP, 24, 0),      // IP_BIND_ADDRESS_NO_PORT
    (IPPROTO_IP, 33, 1),      // IP_MULTICAST_TTL
    (IPPROTO_IP, 34, 1),      // IP_MULTICAST_LOOP
    (IPPROTO_IPV6, 16, 64),   // IPV6_UNICAST_HOPS
    (IPPROTO_IPV6, 18, 1),    // IPV6_MULTICAST_HOPS
    (IPPROTO_IPV6, 19, 1),    // IPV6_MULTICAST_LOOP
    (IPPROTO_IPV6, 23, 1),    // IPV6_MTU_DISCOVER
    (IPPROTO_IPV6, 25, 0),    // IPV6_RECVERR
    (IPPROTO_IPV6, 49, 0),    // IPV6_RECVPKTINFO
    (IPPROTO_IPV6, 51, 0),    // IPV6_RECVHOPLIMIT
    (IPPROTO_IPV6, 66, 0),    // IPV6_RECVTCLASS
    (IPPROTO_IPV6, 67, 0),    // IPV6_TCLASS
    (IPPROTO_UDPLITE, 10, 0), // UDPLITE_SEND_CSCOV
    (IPPROTO_UDPLITE, 11, 0), // UDPLITE_RECV_CSCOV
];

/// What the parts of a datagram's header are called, by the version of its protocol: options of the
/// socket and control messages.
pub(super) struct Names {
    pub(super) level: u32,
    /// Of the control message.
    pub(super) hops: u32,
    pub(super) class: u32,
    /// Whether it is told (`IP_RECVTTL` and so on).
    pub(super) wants_hops: u32,
    pub(super) wants_class: u32,
    /// What the socket sends.
    own_hops: u32,
}

impl Names {
    pub(super) fn of(inet: &Inet) -> Self {
        let (level, [hops, class, wants_hops, wants_class, own_hops]) = match inet.v6 {
            true => (IPPROTO_IPV6, [52, 67, 51, 66, 16]),
            false => (IPPROTO_IP, [2, 1, 12, 13, 2]),
        };
        Self { level, hops, class, wants_hops, wants_class, own_hops }
    }

    /// Whether an option is on.
    pub(super) fn is_set(&self, socket: &Socket, inet: &Inet, name: u32) -> bool {
        number(socket, inet, self.level, name) != 0
    }
}

/// The header of a datagram from `socket` that is sent with `sent`.
pub(super) fn header(socket: &Socket, inet: &Inet, sent: &Sent) -> Header {
    let names = Names::of(inet);
    let own = |name| u8::try_from(number(socket, inet, names.level, name)).ok();
    Header {
        hops: sent.hops.or_else(|| own(names.own_hops)).unwrap_or(HOPS),
        class: sent.class.or_else(|| own(names.class)).unwrap_or(0),
    }
}

/// What a remembered option is.
fn number(socket: &Socket, inet: &Inet, level: u32, name: u32) -> i32 {
    let options = socket.options.others.borrow();
    let now = options.get(&key(level, name)).copied();
    now.or_else(|| first(socket, inet, level, name).ok()).unwrap_or(0)
}

/// How an option is remembered among those of the socket itself.
fn key(level: u32, name: u32) -> u32 {
    (level + 1) << 16 | name
}

/// Whether a socket has options of a level.
fn has_level(socket: &Socket, inet: &Inet, level: u32) -> bool {
    match level {
        IPPROTO_TCP => socket.kind == Kind::Stream,
        IPPROTO_IPV6 => inet.v6,
        IPPROTO_IP => true,
        IPPROTO_UDPLITE => inet.protocol == level,
        _ => false,
    }
}

/// What a remembered option is at first.
fn first(socket: &Socket, inet: &Inet, level: u32, name: u32) -> Result<i32, Errno> {
    let found = REMEMBERED.iter().find(|known| (known.0, known.1) == (level, name));
    match found.filter(|_| has_level(socket, inet, level)) {
        Some((_, _, value)) => Ok(*value),
        None => Err(Errno::ENOPROTOOPT),
    }
}

/// `setsockopt` with the value of `len` bytes at `at`.
pub(super) fn set(
    cx: &Cx,
    socket: &Socket,
    inet: &Inet,
    (level, name): (u32, u32),
    (at, len): (u64, usize),
) -> Answer {
    if (level, name) == (IPPROTO_TCP, TCP_CONGESTION) && has_level(socket, inet, level) {
        let mut text = [0; CONGESTION.len()];
        let len = len.min(text.len() - 1);
        cx.user().read_bytes(at, text.get_mut(..len).unwrap_or_default())?;
        return if text == *CONGESTION { Ok(0) } else { Err(Errno::ENOENT.into()) };
    }
    if let Some(raw) = RawSocket::of(socket)
        && raw.set(cx, (level, name), (at, len))?
    {
        return Ok(0);
    }
    let value = match len {
        // IPv4 takes a byte as well.
        1..4 if level == IPPROTO_IP => i32::from(cx.user().read::<u8>(at)?),
        0..4 => return Err(Errno::EINVAL.into()),
        _ => cx.user().read::<i32>(at)?,
    };
    if (level, name) == (IPPROTO_IPV6, IPV6_V6ONLY) && inet.v6 {
        if socket.name.borrow().is_some() {
            return Err(Errno::EINVAL.into());
        }
        inet.only_v6.set(value != 0);
        return Ok(0);
    }
    let first = first(socket, inet, level, name)?;
    // Numbers that are on or off at first are one or the other for ever.
    let is_flag = level == IPPROTO_TCP && matches!(name, 1 | 3 | 12);
    if value < 0 && first > 1 {
        return Err(Errno::EINVAL.into());
    }
    let value = if is_flag { i32::from(value != 0) } else { value };
    socket.options.others.borrow_mut().insert(key(level, name), value);
    Ok(0)
}

/// What `getsockopt` tells.
pub(super) fn get(socket: &Socket, inet: &Inet, level: u32, name: u32) -> Result<Vec<u8>, Errno> {
    if let Some(raw) = RawSocket::of(socket)
        && let Some(value) = raw.get(level, name)?
    {
        return Ok(value);
    }
    match (level, name) {
        (IPPROTO_TCP, TCP_INFO) if socket.kind == Kind::Stream => {
            let mut info = vec![0; TCP_INFO_LEN];
            if let Some(state) = info.first_mut() {
                *state = tcp_state(socket);
            }
            Ok(info)
        }
        (IPPROTO_TCP, TCP_CONGESTION) if socket.kind == Kind::Stream => Ok(CONGESTION.to_vec()),
        (IPPROTO_IPV6, IPV6_V6ONLY) if inet.v6 => {
            Ok(i32::from(inet.only_v6.get()).to_ne_bytes().to_vec())
        }
        // Nobody but raw sockets can change that, and all say it.
        (IPPROTO_IP, IP_HDRINCL) if !inet.v6 => Ok(0_i32.to_ne_bytes().to_vec()),
        _ if !inet.v6 && level != IPPROTO_IP && !has_level(socket, inet, level) => {
            Err(Errno::EOPNOTSUPP)
        }
        _ => {
            let first = first(socket, inet, level, name)?;
            let options = socket.options.others.borrow();
            Ok(options.get(&key(level, name)).unwrap_or(&first).to_ne_bytes().to_vec())
        }
    }
}

/// The state of a stream, as TCP names them.
#[must_use]
pub fn tcp_state(socket: &Socket) -> u8 {
    let [established, close, close_wait, listen, fin_wait] = STATES;
    if socket.backlog.get().is_some() {
        return listen;
    }
    match (socket.shut_in.get(), socket.shut_out.get()) {
        _ if !socket.connected.get() => close,
        (false, false) => established,
        (true, false) => close_wait,
        (false, true) => fin_wait,
        (true, true) => close,
    }
}
