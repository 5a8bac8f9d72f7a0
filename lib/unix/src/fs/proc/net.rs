//! `/proc/net`: sockets and the loopback's interface.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::{Fixed, What};
use crate::call::Cx;
use crate::stream::socket::inet::{Endpoint, Inet};
use crate::stream::socket::{Socket, tcp_state};

const fn text(name: &'static str, make: fn(&Cx) -> Vec<u8>) -> Fixed {
    Fixed { name, mode: 0o444, what: What::Text(make) }
}

/// What is there.
pub(super) const NET: &[Fixed] = &[
    text("arp", |_| ARP.as_bytes().to_vec()),
    text("dev", |_| DEV.as_bytes().to_vec()),
    text("if_inet6", |_| IF_INET6.as_bytes().to_vec()),
    text("raw", |cx| list(cx, RAW, false)),
    text("raw6", |cx| list(cx, RAW, true)),
    text("route", |_| ROUTE.as_bytes().to_vec()),
    text("tcp", |cx| list(cx, TCP, false)),
    text("tcp6", |cx| list(cx, TCP, true)),
    text("udp", |cx| list(cx, UDP, false)),
    text("udp6", |cx| list(cx, UDP, true)),
];

const TCP: u32 = 6;
const UDP: u32 = 17;
/// Raw sockets, of whatever protocol.
const RAW: u32 = 256;

const ARP: &str =
    "IP address       HW type     Flags       HW address            Mask     Device\n";
const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
";
const IF_INET6: &str = "00000000000000000000000000000001 01 80 10 80       lo\n";
const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT                                                       \n";

/// An address as these files write it: words of the machine, in hexadecimal.
fn address(text: &mut String, endpoint: Option<Endpoint>, v6: bool) {
    let ip = endpoint.map_or([0; 16], |endpoint| endpoint.ip);
    let from = if v6 { 0 } else { 12 };
    for word in ip.get(from..).unwrap_or_default().chunks_exact(4) {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        let _ = write!(text, "{word:08X}");
    }
    let _ = write!(text, ":{:04X}", endpoint.map_or(0, |endpoint| endpoint.port));
}

/// How long a line is at least.
fn width(protocol: u32, v6: bool) -> usize {
    match (protocol == TCP, v6) {
        (_, true) => 0,
        (true, false) => 149,
        _ if protocol == RAW => 0,
        (false, false) => 127,
    }
}

/// The sockets of a protocol and a family.
fn list(cx: &Cx, protocol: u32, v6: bool) -> Vec<u8> {
    let head = match (protocol == TCP, v6) {
        (true, false) => {
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
        }
        (true, true) => {
            "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
        }
        (false, false) if protocol == RAW => {
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops"
        }
        (false, false) => {
            "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops"
        }
        (false, true) => {
            "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops"
        }
    };
    let mut text = String::new();
    let width = width(protocol, v6);
    let _ = writeln!(text, "{head:<width$}");
    let mut number = 0;
    for socket in cx.unix.streams.ports.all() {
        let is_ours = |inet: &Inet| {
            let own = if inet.raw.is_some() { RAW } else { inet.protocol };
            (own, inet.v6) == (protocol, v6)
        };
        if socket.inet.as_ref().is_some_and(is_ours) {
            line(cx, &mut text, number, &socket, (protocol, v6));
            number += 1;
        }
    }
    text.into_bytes()
}

/// One socket.
fn line(cx: &Cx, text: &mut String, number: usize, socket: &Socket, (protocol, v6): (u32, bool)) {
    let start = text.len();
    let digits = if protocol == TCP || protocol == RAW && !v6 { 4 } else { 5 };
    let _ = write!(text, "{number:>digits$}: ");
    address(text, socket.endpoint(), v6);
    text.push(' ');
    address(text, socket.remote(), v6);
    let state = tcp_state(socket);
    let uid = socket.inet.as_ref().map_or(0, |inet| inet.uid);
    let uid = cx.user_told(uid);
    let _ = write!(
        text,
        " {state:02X} {:08X}:{:08X} 00:00000000 00000000 {uid:5} {:8} {} 2 0000000000000000",
        0,
        socket.inbox.len(),
        0,
        socket.inode_number(),
    );
    text.push_str(if protocol == TCP { " 100 0 0 10 0" } else { " 0" });
    let missing = (width(protocol, v6) + start).saturating_sub(text.len());
    let _ = writeln!(text, "{:missing$}", "");
}
