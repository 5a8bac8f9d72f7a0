//! Socket options.

use alloc::collections::BTreeMap;
use core::cell::{Cell, RefCell};

use linux_raw_sys::net::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, SO_ACCEPTCONN, SO_BROADCAST, SO_DEBUG, SO_DOMAIN,
    SO_DONTROUTE, SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_OOBINLINE, SO_PASSCRED, SO_PEERCRED,
    SO_PRIORITY, SO_PROTOCOL, SO_RCVBUF, SO_RCVBUFFORCE, SO_RCVLOWAT, SO_RCVTIMEO_NEW,
    SO_RCVTIMEO_OLD, SO_REUSEADDR, SO_REUSEPORT, SO_SNDBUF, SO_SNDBUFFORCE, SO_SNDLOWAT,
    SO_SNDTIMEO_NEW, SO_SNDTIMEO_OLD, SO_TIMESTAMP_OLD, SO_TYPE, SOCK_DGRAM, SOCK_RAW,
    SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};
use zerocopy::IntoBytes;

use super::inbox::{CAPACITY, Inbox};
use super::{Kind, Socket, inet_options, shared};
use crate::call::{Answer, Cx};
use crate::errno::Errno;

const SOL_NETLINK: u32 = 270;
/// Bytes that a message in an inbox counts in addition to its own.
const BOOKKEEPING: usize = 768;
/// Bytes that the receiver of a stream of the Internet has room for if it says nothing (half of Linux's first
/// `tcp_rmem`, which has doubled when somebody lets it fill up).
const RECEIVED: usize = 131_072;
/// Bytes of a `struct timeval`.
const TIMEVAL: usize = 16;

/// What `setsockopt` sets.
#[derive(Default)]
pub struct Options {
    /// Receives credentials (`SO_PASSCRED`).
    pub credentials: Cell<bool>,
    /// `SO_RCVTIMEO` and `SO_SNDTIMEO` in nanoseconds; 0 is none.
    pub receive_timeout_ns: Cell<u64>,
    #[allow(missing_docs)]
    pub send_timeout_ns: Cell<u64>,
    /// Those that only remember what they were set to, by number.
    pub(super) others: RefCell<BTreeMap<u32, i32>>,
}

impl Options {
    /// Whether one of those is on.
    pub(super) fn is_set(&self, name: u32) -> bool {
        self.others.borrow().get(&name).is_some_and(|value| *value != 0)
    }

    /// Whether an inbox takes another message of those that its owner bounds by `SO_RCVBUF`: Linux lets
    /// in what comes while less is there, and counts what it needs for each.
    pub(super) fn lets_in(&self, inbox: &Inbox) -> bool {
        let most = self.others.borrow().get(&SO_RCVBUF).copied().unwrap_or(CAPACITY as i32);
        inbox.len() + inbox.pieces() * BOOKKEEPING < usize::try_from(most).unwrap_or(0)
    }

    /// The size of a buffer that somebody has set.
    fn buffer(&self, name: u32) -> Option<usize> {
        self.others.borrow().get(&name).and_then(|value| usize::try_from(*value).ok())
    }

    /// A connection is reset when it is closed (`SO_LINGER` for no time).
    pub(super) fn resets(&self) -> bool {
        let seconds = self.others.borrow().get(&LINGER_SECONDS).copied();
        self.is_set(SO_LINGER) && seconds == Some(0)
    }

    /// A connection that was accepted begins with what its listener has.
    pub(super) fn inherit(&self, listener: &Self) {
        self.others.borrow_mut().clone_from(&listener.others.borrow());
    }
}

/// Bounds what `receiver` holds of what `sender` has sent, if both are streams. There is one buffer between them. On
/// Linux it is the sender's (`SO_SNDBUF`); on the Internet each side has one, of which the receiver's has a half for
/// bookkeeping.
pub(super) fn bound(receiver: &Socket, sender: &Socket) {
    if receiver.kind != Kind::Stream {
        return;
    }
    let most = sender.options.buffer(SO_SNDBUF).map_or(CAPACITY, |sent| match &receiver.inet {
        None => sent,
        Some(_) => {
            sent + receiver.options.buffer(SO_RCVBUF).map_or(RECEIVED, |received| received / 2)
        }
    });
    receiver.inbox.bound(most);
}

/// `setsockopt(fd, level, name, value, len)`.
pub fn setsockopt(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    let (level, name, at, len) = (cx.uint(1), cx.uint(2), cx.arg(3), cx.int(4));
    if len < 0 {
        return Err(Errno::EINVAL.into());
    }
    if let (Some(inet), true) = (&socket.inet, level != SOL_SOCKET) {
        return inet_options::set(cx, socket, inet, (level, name), (at, len as usize));
    }
    if let (Some(netlink), true) = (socket.netlink.get(), level == SOL_NETLINK) {
        let value = if len < 4 { 0 } else { cx.user().read::<i32>(at)? };
        netlink.set(cx, name, value)?;
        return Ok(0);
    }
    if level != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if (len as usize) < 4 {
        return Err(Errno::EINVAL.into());
    }
    let value = cx.user().read::<i32>(at)?;
    match name {
        SO_PASSCRED => socket.options.credentials.set(value != 0),
        SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW => {
            socket.options.receive_timeout_ns.set(timeout(cx, at, len as usize)?);
        }
        SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW => {
            socket.options.send_timeout_ns.set(timeout(cx, at, len as usize)?);
        }
        SO_TYPE | SO_PROTOCOL | SO_DOMAIN | SO_ERROR | SO_ACCEPTCONN | SO_PEERCRED => {
            return Err(Errno::ENOPROTOOPT.into());
        }
        SO_SNDBUF | SO_RCVBUF | SO_SNDBUFFORCE | SO_RCVBUFFORCE => {
            let is_forced = matches!(name, SO_SNDBUFFORCE | SO_RCVBUFFORCE);
            // As on Linux, the value is doubled for bookkeeping, there is a least, and less than none is the most,
            // but for who forces it.
            let (name, least) = match name {
                SO_SNDBUF | SO_SNDBUFFORCE => (SO_SNDBUF, 2304),
                _ => (SO_RCVBUF, 1152),
            };
            let value = if value < 0 && !is_forced { CAPACITY as i32 } else { value };
            let value = value.clamp(least, CAPACITY as i32).saturating_mul(2);
            socket.options.others.borrow_mut().insert(name, value);
            if let Some(peer) = socket.peer() {
                bound(socket, &peer);
                bound(&peer, socket);
                // There may be more room than before.
                [socket, &*peer].iter().for_each(|side| side.can_write.wake_all());
            }
        }
        SO_LINGER if (len as usize) < 8 => return Err(Errno::EINVAL.into()),
        SO_LINGER => {
            socket.options.others.borrow_mut().insert(name, value);
            let seconds = cx.user().read::<i32>(at.wrapping_add(4))?;
            socket.options.others.borrow_mut().insert(LINGER_SECONDS, seconds);
        }
        SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST | SO_DEBUG | SO_DONTROUTE
        | SO_OOBINLINE | SO_TIMESTAMP_OLD => {
            socket.options.others.borrow_mut().insert(name, i32::from(value != 0));
        }
        SO_PRIORITY | SO_RCVLOWAT => {
            socket.options.others.borrow_mut().insert(name, value);
        }
        _ => return Err(Errno::ENOPROTOOPT.into()),
    }
    Ok(0)
}

/// Where the second field of `SO_LINGER` is remembered.
const LINGER_SECONDS: u32 = u32::MAX;

/// Reads a `struct timeval`, in nanoseconds.
fn timeout(cx: &Cx, at: u64, len: usize) -> Result<u64, Errno> {
    if len < TIMEVAL {
        return Err(Errno::EINVAL);
    }
    let [seconds, us] = cx.user().read::<[i64; 2]>(at)?;
    if !(0..1_000_000).contains(&us) {
        return Err(Errno::EDOM);
    }
    // Linux: a negative timeout is none at all, and calls return at once.
    let Ok(seconds) = u64::try_from(seconds) else { return Ok(1) };
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(us as u64 * 1000))
}

/// `getsockopt(fd, level, name, value, len)`.
pub fn getsockopt(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    let (level, name, at, len_at) = (cx.uint(1), cx.uint(2), cx.arg(3), cx.arg(4));
    let room = cx.user().read::<i32>(len_at)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    if level != SOL_SOCKET && socket.inet.is_none() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let put = |bytes: &[u8]| {
        let cut = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        cx.user().write_bytes(at, cut)?;
        cx.user().write(len_at, &(cut.len() as u32))?;
        Ok(0)
    };
    if let (Some(inet), true) = (&socket.inet, level != SOL_SOCKET) {
        return put(&inet_options::get(socket, inet, level, name)?);
    }
    let time = |ns: u64| [ns / 1_000_000_000, ns % 1_000_000_000 / 1000];
    match name {
        SO_PEERCRED => put(socket.peer_credentials.get().told(cx).as_bytes()),
        SO_RCVTIMEO_OLD | SO_RCVTIMEO_NEW => {
            put(time(socket.options.receive_timeout_ns.get()).as_bytes())
        }
        SO_SNDTIMEO_OLD | SO_SNDTIMEO_NEW => {
            put(time(socket.options.send_timeout_ns.get()).as_bytes())
        }
        SO_LINGER => put([remembered(socket, name), remembered(socket, LINGER_SECONDS)].as_bytes()),
        _ => put(number(socket, name)?.as_bytes()),
    }
}

/// What an option that was never set is.
fn remembered(socket: &Socket, name: u32) -> i32 {
    let default = match name {
        SO_SNDBUF | SO_RCVBUF => CAPACITY as i32,
        SO_RCVLOWAT | SO_SNDLOWAT => 1,
        _ => 0,
    };
    socket.options.others.borrow().get(&name).copied().unwrap_or(default)
}

/// The options that are a number.
fn number(socket: &Socket, name: u32) -> Result<i32, Errno> {
    Ok(match name {
        SO_TYPE => match socket.kind {
            _ if socket.netlink.get().is_some() => {
                socket.netlink.get().map_or(0, |netlink| netlink.kind as i32)
            }
            _ if socket.inet.as_ref().is_some_and(|inet| inet.raw.is_some()) => SOCK_RAW as i32,
            Kind::Stream => SOCK_STREAM as i32,
            Kind::Datagram => SOCK_DGRAM as i32,
            Kind::Packet => SOCK_SEQPACKET as i32,
        },
        SO_DOMAIN => match &socket.inet {
            None if socket.netlink.get().is_some() => AF_NETLINK as i32,
            None => AF_UNIX as i32,
            Some(inet) if inet.v6 => AF_INET6 as i32,
            Some(_) => AF_INET as i32,
        },
        SO_PROTOCOL => match (&socket.inet, socket.netlink.get()) {
            (Some(inet), _) => inet.protocol as i32,
            (None, Some(netlink)) => netlink.protocol as i32,
            (None, None) => 0,
        },
        SO_ERROR => socket.error.take().map_or(0, |errno| i32::from(errno.0)),
        SO_ACCEPTCONN => i32::from(socket.backlog.get().is_some()),
        SO_PASSCRED => i32::from(socket.options.credentials.get()),
        SO_SNDBUF | SO_RCVBUF | SO_REUSEADDR | SO_REUSEPORT | SO_KEEPALIVE | SO_BROADCAST
        | SO_DEBUG | SO_DONTROUTE | SO_OOBINLINE | SO_PRIORITY | SO_RCVLOWAT | SO_SNDLOWAT
        | SO_TIMESTAMP_OLD => remembered(socket, name),
        _ => return Err(Errno::ENOPROTOOPT),
    })
}
