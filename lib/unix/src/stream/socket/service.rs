//! Sockets of services: tasks of the system below, which programs reach as sockets of packets in
//! `/srv` (decision 0076). A packet is one message, and so is what comes back; a connection has one
//! call under way at a time.
//!
//! A packet is the message's tag (X.2: label, `TYPED` if there is a string, words), then its
//! words, 8 bytes each, then the string, which ends with the packet.

use alloc::collections::BTreeMap;
use alloc::rc::{Rc, Weak};
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::{O_ACCMODE, O_NONBLOCK, O_RDONLY, O_WRONLY};
use linux_raw_sys::net::{SHUT_RD, SHUT_WR};

use super::connect::connect_to;
use super::transfer::{How, broken, wait};
use super::{Handle, Kind, Socket};
use crate::call::{Answer, Cx, Stop};
use crate::errno::Errno;
use crate::file::Source;
use crate::fs;
use crate::fs::inode::Inode;
use crate::machine::{Machine, Packet};
use crate::stream::socket::address::Name;
use crate::stream::socket::ancillary::Credentials;
use crate::unix::Unix;
use crate::wait::WaitQueue;

/// Words of a message behind its tag.
const WORDS: usize = 63;
/// Bytes of a message's string, at most.
pub const STRING_MAX: usize = 16 * 1024;
/// Bytes of a packet, at most.
const PACKET_MAX: usize = 8 * (1 + WORDS) + STRING_MAX;
/// The tag's fields (X.2 4.2): words, words of typed items, flags, label.
const UNTYPED: u64 = 0x3F;
const TYPED: u64 = 2 << 6;
const BEHIND_UNTYPED: u64 = 0xFFC0;
/// Calls that users other than 0 have under way at most, all of them together and each of them.
const CALLS_OF_USERS: usize = 4;
const CALLS_OF_A_USER: usize = 3;

/// A service that programs can reach, and what its socket's inode leads to.
pub(super) struct Offer {
    /// Its name, and its number among those of the machine.
    name: String,
    index: usize,
    /// Where its native task takes streams.
    pub(super) listener: RefCell<Weak<Socket>>,
}

/// A call that a service has not answered yet.
struct Call {
    caller: Weak<Socket>,
    uid: u32,
}

/// The services, and the calls that are under way.
#[derive(Default)]
pub struct Services {
    offers: RefCell<Vec<Rc<Offer>>>,
    calls: RefCell<BTreeMap<u64, Call>>,
    last: Cell<u64>,
    /// Whoever waits until a call can be carried.
    free: WaitQueue,
    /// Calls whose callers have gone.
    given_up: RefCell<Vec<u64>>,
}

/// What a connected socket knows of its service.
pub struct Connection {
    offer: Rc<Offer>,
    /// The call under way.
    call: Cell<Option<u64>>,
}

impl Connection {
    /// Whether it could take another call.
    pub(super) fn is_free(&self) -> bool {
        self.call.get().is_none()
    }
}

/// Makes the sockets of the machine's services, in `/srv`.
///
/// # Errors
/// `EEXIST` if there is something of that name; `ENOSPC`.
pub fn offer(unix: &Unix) -> Result<(), Errno> {
    for (index, service) in unix.machine.services().into_iter().enumerate() {
        let inode = fs::enter_socket(unix, "srv", &service.name, service.mode)?;
        let offer = Rc::new(Offer { name: service.name, index, listener: RefCell::default() });
        let any: Rc<dyn Any> = offer.clone();
        *inode.bound.borrow_mut() = Some(Rc::downgrade(&any));
        unix.streams.services.offers.borrow_mut().push(offer);
    }
    Ok(())
}

/// The socket that streams to the service which an inode leads to are connected to; `None` if that
/// is something else.
pub(super) fn listener(bound: &Rc<dyn Any>) -> Option<Result<Rc<Socket>, Errno>> {
    let offer = bound.clone().downcast::<Offer>().ok()?;
    let listener = offer.listener.borrow().upgrade();
    Some(listener.ok_or(Errno::ECONNREFUSED))
}

/// Opens a service as a file: a stream to it, one way if it is opened so.
///
/// # Errors
/// `ENXIO` for what is no service's socket, or that of one whose task takes no streams.
pub fn open(cx: &Cx, inode: &Inode, flags: u32) -> Result<Rc<Handle>, Stop> {
    let bound = inode.bound.borrow().as_ref().and_then(Weak::upgrade);
    let target = bound.and_then(|bound| listener(&bound)?.ok()).ok_or(Errno::ENXIO)?;
    let socket = Socket::new(cx, Kind::Stream, None)?;
    connect_to(cx, flags & O_NONBLOCK == 0, &socket, &target)?;
    match flags & O_ACCMODE {
        O_RDONLY => socket.shut(SHUT_WR),
        O_WRONLY => socket.shut(SHUT_RD),
        _ => {}
    }
    Ok(Handle::new(socket))
}

/// Connects `socket`, of packets, to the service that an inode leads to; `None` if that is something
/// else.
pub(super) fn connect(socket: &Socket, name: &Name, bound: &Rc<dyn Any>) -> Option<Answer> {
    let offer = bound.clone().downcast::<Offer>().ok()?;
    if socket.kind != Kind::Packet {
        return Some(Err(Errno::EPROTOTYPE.into()));
    }
    if socket.connected.get() {
        return Some(Err(Errno::EISCONN.into()));
    }
    if socket.backlog.get().is_some() {
        return Some(Err(Errno::EINVAL.into()));
    }
    *socket.service.borrow_mut() = Some(Rc::new(Connection { offer, call: Cell::new(None) }));
    *socket.peer_name.borrow_mut() = Some(Rc::new(name.clone()));
    socket.connected.set(true);
    socket.wake();
    Some(Ok(0))
}

/// Sends one message to the service.
pub(super) fn send(
    cx: &Cx,
    socket: &Rc<Socket>,
    connection: &Connection,
    source: &mut Source,
    how: How,
) -> Result<usize, Stop> {
    if socket.shut_out.get() {
        return Err(broken(cx, true));
    }
    if source.left() > PACKET_MAX {
        return Err(Errno::EMSGSIZE.into());
    }
    let services = &cx.unix.streams.services;
    if !socket.is_writable() {
        return cannot_yet(cx, socket, &socket.can_write, how);
    }
    let uid = cx.process.user().uid;
    if uid != 0 && !services.has_room_for(uid) {
        return cannot_yet(cx, socket, &services.free, how);
    }
    let bytes = taken(source)?;
    let packet = read(&bytes).ok_or(Errno::EINVAL)?;
    let call = services.last.get() + 1;
    match cx.unix.machine.ask_service(connection.offer.index, call, &packet) {
        Ok(()) => {}
        Err(Errno::EAGAIN) => return cannot_yet(cx, socket, &services.free, how),
        Err(errno) => return Err(errno.into()),
    }
    services.last.set(call);
    services.calls.borrow_mut().insert(call, Call { caller: Rc::downgrade(socket), uid });
    connection.call.set(Some(call));
    Ok(bytes.len())
}

/// The call waits, if it may.
fn cannot_yet(cx: &Cx, socket: &Socket, queue: &WaitQueue, how: How) -> Result<usize, Stop> {
    if !how.wait {
        return Err(Errno::EAGAIN.into());
    }
    Err(wait(cx, queue, socket.options.send_timeout_ns.get()))
}

/// All bytes of `source`.
fn taken(source: &mut Source) -> Result<Vec<u8>, Errno> {
    let want = source.left();
    let mut bytes = Vec::new();
    bytes.try_reserve(want).map_err(|_| Errno::ENOBUFS)?;
    bytes.resize(want, 0);
    if source.take(&mut bytes)? < want {
        return Err(Errno::EFAULT);
    }
    Ok(bytes)
}

/// The message that a packet is.
fn read(bytes: &[u8]) -> Option<Packet<'_>> {
    let (tag, rest) = bytes.split_first_chunk()?;
    let tag = u64::from_le_bytes(*tag);
    let has_string = match tag & BEHIND_UNTYPED {
        0 => false,
        TYPED => true,
        _ => return None,
    };
    let count = (tag & UNTYPED) as usize;
    if has_string && count + 2 > WORDS {
        return None;
    }
    let (words, string) = rest.split_at_checked(8 * count)?;
    if string.len() > if has_string { STRING_MAX } else { 0 } {
        return None;
    }
    Some(Packet { label: tag >> 16, words, string: has_string.then_some(string) })
}

/// The packet that a message is.
fn write(packet: &Packet) -> Result<Vec<u8>, Errno> {
    let string = packet.string.unwrap_or_default();
    let typed = if packet.string.is_some() { TYPED } else { 0 };
    let tag = packet.label << 16 | typed | (packet.words.len() / 8) as u64;
    let mut bytes = Vec::new();
    bytes.try_reserve(8 + packet.words.len() + string.len()).map_err(|_| Errno::ENOBUFS)?;
    bytes.extend_from_slice(&tag.to_le_bytes());
    bytes.extend_from_slice(packet.words);
    bytes.extend_from_slice(string);
    Ok(bytes)
}

/// A service has answered `call`, or it never will.
pub fn answered(unix: &Unix, call: u64, answer: Result<Packet, Errno>) {
    let services = &unix.streams.services;
    let ended = services.calls.borrow_mut().remove(&call);
    if let Some(socket) = ended.and_then(|call| call.caller.upgrade()) {
        if let Some(connection) = &*socket.service.borrow() {
            connection.call.set(None);
        }
        if let Err(errno) = answer.and_then(|packet| deliver(&socket, &packet)) {
            socket.error.set(Some(errno));
        }
        socket.wake();
    }
    services.free.wake_all();
}

fn deliver(socket: &Socket, packet: &Packet) -> Result<(), Errno> {
    let bytes = write(packet)?;
    let source = &mut Source::Server(&bytes);
    socket.inbox.add_message(source, Credentials::NOBODY, None, None)?;
    Ok(())
}

impl Socket {
    /// The service on the other side.
    pub(super) fn service(&self) -> Option<Rc<Connection>> {
        self.service.borrow().clone()
    }

    /// Whether the inbox has room for any answer.
    pub(super) fn has_room_for_an_answer(&self) -> bool {
        self.inbox.room() >= PACKET_MAX
    }
}

impl Services {
    /// The service of this name.
    pub(super) fn offered(&self, name: &str) -> Option<Rc<Offer>> {
        self.offers.borrow().iter().find(|offer| offer.name == name).cloned()
    }

    /// Whether a user other than 0 may have one more call carried.
    fn has_room_for(&self, uid: u32) -> bool {
        let calls = self.calls.borrow();
        let of_users = calls.values().filter(|call| call.uid != 0);
        let own = of_users.clone().filter(|call| call.uid == uid).count();
        of_users.count() < CALLS_OF_USERS && own < CALLS_OF_A_USER
    }

    /// The socket has gone, and nobody wants the answer of its call.
    pub(super) fn give_up(&self, connection: &Connection) {
        if let Some(call) = connection.call.take() {
            self.given_up.borrow_mut().push(call);
        }
    }

    /// Tells the machine of the calls whose callers have gone.
    pub fn settle(&self, machine: &dyn Machine) {
        if self.given_up.borrow().is_empty() {
            return;
        }
        for call in self.given_up.take() {
            machine.give_up_call(call);
        }
    }
}
