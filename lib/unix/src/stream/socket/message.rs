//! The calls that send and receive: sendto, recvfrom, sendmsg, recvmsg.

use linux_raw_sys::net::{
    MSG_CMSG_CLOEXEC, MSG_CTRUNC, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK, MSG_TRUNC,
    MSG_WAITALL,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::address::{self, Given};
use super::ancillary::{self, Sent, Writer};
use super::transfer::{How, Received, To, receive, send};
use super::{Kind, Socket, inet_calls, shared};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::{MAX_TRANSFER, Open, Sink, Source, USER_END, UserRanges, read_ranges};

/// `struct msghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    name: u64,
    name_len: u32,
    _pad: u32,
    ranges: u64,
    ranges_len: u64,
    control: u64,
    control_len: u64,
    flags: u32,
    _pad2: u32,
}

/// Ranges of a message, and messages in one call, at most (`UIO_MAXIOV`).
pub(super) const MOST: u32 = 1024;

fn how(open: &Open, flags: u32) -> How {
    How {
        wait: !open.is_nonblocking() && flags & MSG_DONTWAIT == 0,
        peek: flags & MSG_PEEK != 0,
        all: flags & MSG_WAITALL != 0,
        quiet: flags & MSG_NOSIGNAL != 0,
        urgent: flags & MSG_OOB != 0,
    }
}

/// A single buffer's range.
fn range(cx: &Cx) -> Result<[(u64, usize); 1], Errno> {
    let (address, len) = (cx.arg(1), cx.arg(2).min(MAX_TRANSFER as u64));
    if address.checked_add(len).is_none_or(|end| end > USER_END) {
        return Err(Errno::EFAULT);
    }
    Ok([(address, len as usize)])
}

/// To whom a datagram is addressed, `None` for the peer.
fn target(cx: &Cx, socket: &Socket, at: u64, len: u32) -> Result<Option<To>, Errno> {
    if at == 0 || len == 0 {
        return Ok(None);
    }
    if let Some(inet) = &socket.inet {
        // A stream's connection says where it goes.
        return match socket.kind {
            Kind::Datagram => Ok(inet_calls::target(cx, inet, at, len)?.map(To::Internet)),
            _ => Ok(None),
        };
    }
    if socket.netlink.get().is_some() {
        return Ok(None);
    }
    let given = address::read(cx, at, len)?;
    if socket.kind == Kind::Stream {
        return Err(if socket.connected.get() { Errno::EISCONN } else { Errno::EOPNOTSUPP });
    }
    match given {
        // A packet's connection says where it goes.
        _ if socket.kind == Kind::Packet => Ok(None),
        Given::Name(name) => Ok(Some(To::Local(address::find(cx, &name)?))),
        _ => Err(Errno::EINVAL),
    }
}

/// Sends what is left after earlier tries; the whole count.
fn send_ranges(
    cx: &Cx,
    open: &Open,
    ranges: &[(u64, usize)],
    (name, name_len): (u64, u32),
    sent: Sent,
    flags: u32,
) -> Answer {
    let socket = shared(open)?;
    if flags & MSG_OOB != 0 && !socket.sends_urgent(ranges.iter().map(|range| range.1).sum()) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let to = target(cx, socket, name, name_len)?;
    let before = cx.progress();
    let mut source = Source::User(UserRanges::new(cx.user(), ranges, before as usize));
    match send(cx, socket, &mut source, to, sent, how(open, flags)) {
        Ok(count) => Ok(before + count as u64),
        Err(Stop::Errno(_)) if before > 0 => Ok(before),
        Err(stop) => Err(stop),
    }
}

/// `sendto(fd, buffer, len, flags, address, len)`.
pub fn sendto(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    shared(&open)?;
    let ranges = range(cx)?;
    send_ranges(cx, &open, &ranges, (cx.arg(4), cx.uint(5)), Sent::default(), cx.uint(3))
}

/// `sendmsg(fd, header, flags)`.
pub fn sendmsg(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    shared(&open)?;
    send_message(cx, &open, cx.arg(1), cx.uint(2))
}

pub(super) fn send_message(cx: &Cx, open: &Open, at: u64, flags: u32) -> Answer {
    let header = cx.user().read::<Header>(at)?;
    if header.ranges_len > u64::from(MOST) {
        return Err(Errno::EMSGSIZE.into());
    }
    let ranges = read_ranges(cx, header.ranges, header.ranges_len)?;
    let sent = ancillary::read(cx, shared(open)?, header.control, header.control_len)?;
    send_ranges(cx, open, &ranges, (header.name, header.name_len), sent, flags)
}

/// Receives into what earlier tries have left free (`MSG_WAITALL`); the whole count.
fn receive_ranges(
    cx: &Cx,
    open: &Open,
    ranges: &[(u64, usize)],
    flags: u32,
) -> Result<Received, Stop> {
    let socket = shared(open)?;
    let before = cx.progress() as usize;
    let mut sink = Sink::User(UserRanges::new(cx.user(), ranges, before));
    if flags & MSG_OOB != 0 && !socket.is_udp() {
        return socket.receive_urgent(&mut sink, how(open, flags));
    }
    match receive(cx, socket, &mut sink, how(open, flags)) {
        Ok(mut received) => {
            let whole = flags & MSG_TRUNC != 0 && socket.kind != Kind::Stream;
            let len = received.len;
            received.len = before + if whole { received.full_len } else { len };
            received.full_len = received.full_len.max(len) - len;
            Ok(received)
        }
        Err(Stop::Errno(_)) if before > 0 => Ok(Received { len: before, ..Received::default() }),
        Err(stop) => Err(stop),
    }
}

/// `recvfrom(fd, buffer, len, flags, address, len)`.
pub fn recvfrom(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    let socket = shared(&open)?;
    let ranges = range(cx)?;
    let received = receive_ranges(cx, &open, &ranges, cx.uint(3))?;
    if cx.arg(4) != 0 {
        match &received.from {
            Some(name) => address::write(cx, socket, Some(name), cx.arg(4), cx.arg(5))?,
            None => cx.user().write(cx.arg(5), &0_u32)?,
        }
    }
    Ok(received.len as u64)
}

/// `recvmsg(fd, header, flags)`.
pub fn recvmsg(cx: &Cx) -> Answer {
    let open = cx.file(cx.uint(0))?;
    shared(&open)?;
    receive_message(cx, &open, cx.arg(1), cx.uint(2))
}

pub(super) fn receive_message(cx: &Cx, open: &Open, at: u64, flags: u32) -> Answer {
    let mut header = cx.user().read::<Header>(at)?;
    if header.ranges_len > u64::from(MOST) {
        return Err(Errno::EMSGSIZE.into());
    }
    if header.name != 0 && (header.name_len as i32) < 0 {
        return Err(Errno::EINVAL.into());
    }
    let ranges = read_ranges(cx, header.ranges, header.ranges_len)?;
    let received = receive_ranges(cx, open, &ranges, flags)?;
    let user = cx.user();
    if header.name != 0 {
        let room = header.name_len as usize;
        header.name_len = match &received.from {
            Some(name) => {
                address::write_cut(cx, shared(open)?, Some(name), header.name, room)? as u32
            }
            None => 0,
        };
        user.write(at + 8, &header.name_len)?;
    }
    let mut writer = Writer::new(cx, header.control, header.control_len);
    if shared(open)?.options.credentials.get()
        && let Some(credentials) = received.credentials
    {
        writer.put_credentials(credentials)?;
    }
    writer.put_header(shared(open)?, received.header)?;
    let close_on_exec = flags & MSG_CMSG_CLOEXEC != 0;
    if let Some(rights) = &received.rights {
        writer.put_rights(rights, close_on_exec)?;
    }
    let mut told = flags & MSG_CMSG_CLOEXEC;
    told |= if writer.cut { MSG_CTRUNC } else { 0 };
    told |= if received.urgent { MSG_OOB } else { 0 };
    told |= if received.full_len > 0 { MSG_TRUNC } else { 0 };
    user.write(at + 40, &(writer.written as u64))?;
    user.write(at + 48, &told)?;
    Ok(received.len as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linuxs() {
        use core::mem::offset_of;
        use linux_raw_sys::net::msghdr;
        assert_eq!(size_of::<Header>(), size_of::<msghdr>());
        assert_eq!(offset_of!(Header, control), offset_of!(msghdr, msg_control));
        assert_eq!(offset_of!(Header, flags), offset_of!(msghdr, msg_flags));
    }
}
