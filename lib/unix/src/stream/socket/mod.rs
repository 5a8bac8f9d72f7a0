//! Sockets of AF_UNIX and of the Internet: streams, datagrams, packets in sequence.
//!
//! Every socket has an inbox; sending puts bytes into the peer's. Peers know each other
//! weakly: a socket ends with its last descriptor, and its peer is told.

use alloc::collections::VecDeque;
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, OnceCell, RefCell};

use linux_raw_sys::ioctl::{FIONREAD, SIOCATMARK, TIOCOUTQ};
use linux_raw_sys::net::{SHUT_RD, SHUT_RDWR, SHUT_WR};

use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Events, File, Open, Sink, Source};
use crate::fs::inode::Inode;
use crate::wait::WaitQueue;
use crate::weak_list::WeakList;

pub mod address;
pub mod ancillary;
pub(super) mod connect;
pub mod flights;
pub mod inbox;
pub mod inet;
mod inet_calls;
mod inet_options;
mod interfaces;
mod making;
pub(super) mod message;
pub(super) mod messages;
pub mod native;
pub mod netlink;
pub mod options;
mod raw;
pub mod service;
pub mod transfer;
pub(crate) mod urgent;

use address::{Name, Names};
use ancillary::Credentials;
use inbox::{Inbox, Level};
use inet::{Endpoint, Inet, Ports};
pub use inet_options::tcp_state;
use netlink::Netlink;
use options::Options;
use service::{Connection, Services};
use transfer::How;
use urgent::Urgent;

/// Connections that wait at one socket, at most.
const SOMAXCONN: u32 = 4096;
/// Datagrams that wait at one socket, at most (`max_dgram_qlen`, and the one that found room).
const DATAGRAMS: usize = 11;

/// What a socket does with the ends of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// There are none.
    Stream,
    /// They are kept, without connections.
    Datagram,
    /// They are kept.
    Packet,
}

/// A socket.
pub struct Socket {
    /// Its kind.
    pub kind: Kind,
    /// What only those of the Internet have.
    pub inet: Option<Inet>,
    /// What only those of AF_NETLINK have.
    pub netlink: OnceCell<Netlink>,
    /// What it has received.
    pub inbox: Inbox,
    /// Its address.
    pub name: RefCell<Option<Rc<Name>>>,
    /// The inode that leads to it.
    place: RefCell<Option<Rc<Inode>>>,
    /// Where abstract names are kept.
    names: Names,
    /// Where ports are.
    ports: Rc<Ports>,
    /// The other side.
    peer: RefCell<Weak<Socket>>,
    /// There is or was a connection.
    connected: Cell<bool>,
    /// Who is on the other side.
    peer_credentials: Cell<Credentials>,
    /// The service on the other side, with which it has no peer.
    service: RefCell<Option<Rc<Connection>>>,
    /// Where services are.
    services: Rc<Services>,
    /// The other side's address, kept when it has gone.
    peer_name: RefCell<Option<Rc<Name>>>,
    /// Accepts connections: so many may wait.
    backlog: Cell<Option<usize>>,
    /// Who listens, as `SO_PEERCRED` tells.
    listener: Cell<Credentials>,
    /// The own sides of connections that wait to be accepted.
    pending: RefCell<VecDeque<Rc<Socket>>>,
    /// Nothing is received any more.
    shut_in: Cell<bool>,
    /// Nothing can be sent any more.
    shut_out: Cell<bool>,
    /// To be told once (`SO_ERROR`).
    error: Cell<Option<Errno>>,
    /// Urgent data that it has received.
    pub(crate) urgent: Urgent,
    /// Waits to be accepted.
    embryo: Cell<bool>,
    /// Is listed as one to which files were sent.
    holds_files: Cell<bool>,
    /// Where.
    holders: Rc<WeakList<Socket>>,
    /// Options.
    pub options: Options,
    can_read: WaitQueue,
    can_write: WaitQueue,
    inode: Rc<Inode>,
}

impl Socket {
    /// The other side, if it is still there.
    #[must_use]
    pub fn peer(&self) -> Option<Rc<Socket>> {
        self.peer.borrow().upgrade()
    }

    /// Its address of the Internet.
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.name.borrow().as_ref().and_then(|name| name.endpoint())
    }

    /// The address of the Internet on the other side.
    #[must_use]
    pub fn remote(&self) -> Option<Endpoint> {
        self.peer_name.borrow().as_ref().and_then(|name| name.endpoint())
    }

    /// The number of its inode.
    #[must_use]
    pub fn inode_number(&self) -> u64 {
        self.inode.number
    }

    /// Connects two sockets of the Internet.
    fn pair_with(&self, other: &Rc<Socket>) {
        self.pair(other, Credentials::NOBODY);
    }

    /// Connects two sockets.
    fn pair(&self, other: &Rc<Socket>, credentials: Credentials) {
        *self.peer.borrow_mut() = Rc::downgrade(other);
        self.connected.set(true);
        self.peer_credentials.set(credentials);
        *self.peer_name.borrow_mut() = other.name.borrow().clone();
        options::bound(self, other);
    }

    /// Whether it is a stream of the Internet that was closed in both directions, or reset.
    fn is_over(&self) -> bool {
        let closed = self.shut_in.get() && self.shut_out.get() && self.peer().is_none();
        closed && self.inet.is_some() && self.kind == Kind::Stream && self.service().is_none()
    }

    /// Whether sockets of this kind are connected before they are used.
    fn needs_connection(&self) -> bool {
        self.kind != Kind::Datagram
    }

    /// Everybody who waits here tries again.
    fn wake(&self) {
        self.can_read.wake_all();
        self.can_write.wake_all();
    }

    /// The other side has gone; `reset` if something it should have read was lost.
    fn peer_gone(&self, reset: bool) {
        if self.needs_connection() {
            self.shut_in.set(true);
            // That nobody reads any more is not known to a sender of the Internet.
            self.shut_out.set(self.shut_out.get() || reset || self.inet.is_none());
        }
        if reset {
            self.error.set(Some(Errno::ECONNRESET));
        }
        self.wake();
    }

    /// Shuts directions down, on both sides of a connection.
    fn shut(&self, how: u32) {
        let (input, output) = (how != SHUT_WR, how != SHUT_RD);
        self.shut_in.set(self.shut_in.get() | input);
        self.shut_out.set(self.shut_out.get() | output);
        self.wake();
        if let Some(peer) = self.peer().filter(|_| self.needs_connection()) {
            peer.shut_in.set(peer.shut_in.get() | output);
            peer.shut_out.set(peer.shut_out.get() | input);
            peer.wake();
        }
        debug_assert!(how <= SHUT_RDWR);
    }

    /// Whether a message of `len` bytes can be put into the inbox now (on a stream: a part).
    fn takes(&self, len: usize) -> bool {
        match self.kind {
            Kind::Stream => {
                self.inbox.room() >= len.clamp(1, super::pipe::ATOMIC.min(self.inbox.most() / 4))
            }
            Kind::Datagram => self.inbox.pieces() < DATAGRAMS && self.inbox.room() >= len,
            Kind::Packet => self.inbox.room() >= len.max(1),
        }
    }

    /// Whether `poll` calls it writable: as on Linux, with a quarter of the buffer in use at
    /// most.
    fn is_writable(&self) -> bool {
        if self.backlog.get().is_some() {
            return false;
        }
        if let Some(service) = &*self.service.borrow() {
            return service.is_free() && self.has_room_for_an_answer();
        }
        let Some(peer) = self.peer() else { return true };
        match self.kind {
            Kind::Datagram => peer.inbox.pieces() < DATAGRAMS,
            _ => peer.inbox.len() * 4 <= peer.inbox.most() && peer.inbox.room() > 0,
        }
    }

    /// Bytes were taken out of the inbox, which was `before` as full: who waits to send goes on.
    fn made_room(&self, before: Level) {
        let most = self.inbox.most();
        if self.kind == Kind::Datagram || self.service.borrow().is_some() {
            self.can_write.wake_all();
        } else if (before.is_full || before.bytes * 4 > most || self.inbox.room() < most / 4)
            && let Some(peer) = self.peer()
        {
            peer.can_write.wake_all();
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let name = self.name.borrow_mut().take();
        if let Some(endpoint) = name.as_ref().and_then(|name| name.endpoint()) {
            self.ports.remove(self, endpoint.port);
        }
        if let Some(name) = name
            && name.is_abstract()
        {
            // A connection's own side shares the name of its listener, whose entry stays.
            let mut names = self.names.borrow_mut();
            if names.get(&*name).is_some_and(|entry| entry.strong_count() == 0) {
                names.remove(&*name);
            }
        }
        if let Some(place) = self.place.take() {
            place.unbind(self);
        }
        if let Some(service) = self.service.take() {
            self.services.give_up(&service);
        }
        if self.holds_files.get() {
            self.holders.one_has_ended();
        }
        let unread = !self.inbox.is_empty();
        let resets = self.embryo.get() || self.inet.is_some() && self.options.resets();
        if let Some(peer) = self.peer() {
            peer.forget(self);
            if self.needs_connection() {
                peer.peer_gone(unread || resets);
            } else {
                peer.wake();
            }
        }
        self.can_write.wake_all();
        drop(self.inbox.clear());
        let pending = self.pending.take();
        drop(pending);
    }
}

/// The socket that an open file is.
///
/// # Errors
/// `ENOTSOCK`.
pub fn of(open: &Open) -> Result<&Socket, Errno> {
    match open.file.as_any().downcast_ref::<Handle>() {
        Some(handle) => Ok(&handle.0),
        None => Err(Errno::ENOTSOCK),
    }
}

/// As [`of`], shared.
///
/// # Errors
/// `ENOTSOCK`.
pub fn shared(open: &Open) -> Result<&Rc<Socket>, Errno> {
    match open.file.as_any().downcast_ref::<Handle>() {
        Some(handle) => Ok(&handle.0),
        None => Err(Errno::ENOTSOCK),
    }
}

/// A socket as a file.
pub struct Handle(Rc<Socket>);

impl Handle {
    /// The file of a socket.
    #[must_use]
    pub fn new(socket: Rc<Socket>) -> Rc<Self> {
        Rc::new(Self(socket))
    }
}

impl File for Handle {
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, _offset: u64) -> Result<usize, Stop> {
        let how = How { wait: !open.is_nonblocking(), ..How::default() };
        Ok(transfer::receive(cx, &self.0, sink, how)?.len)
    }

    fn write(
        &self,
        cx: &Cx,
        open: &Open,
        source: &mut Source,
        _offset: u64,
    ) -> Result<usize, Stop> {
        let how = How { wait: !open.is_nonblocking(), ..How::default() };
        transfer::send(cx, &self.0, source, None, Default::default(), how)
    }

    fn poll(&self, _cx: &Cx) -> Events {
        let socket = &self.0;
        let mut events = Events::empty();
        let listens = socket.backlog.get().is_some();
        events.set(Events::ERR, socket.error.get().is_some());
        let closed = socket.needs_connection() && !socket.connected.get() && !listens;
        events.set(Events::HUP, closed || socket.shut_in.get() && socket.shut_out.get());
        events.set(Events::RDHUP, socket.shut_in.get());
        let received = !socket.inbox.is_empty() && !socket.has_only_urgent();
        let there = received || !socket.pending.borrow().is_empty();
        events.set(Events::READABLE, there || socket.shut_in.get());
        events.set(Events::WRITABLE, socket.is_writable());
        events.set(Events::PRI, socket.urgent.is_there());
        let has_bands = socket.inet.is_none() || socket.kind == Kind::Datagram;
        events.set(Events::WRBAND, has_bands && socket.is_writable());
        events
    }

    fn watch(&self, _cx: &Cx, interest: Events, visit: &mut dyn FnMut(&WaitQueue)) {
        let socket = &self.0;
        visit(&socket.can_read);
        if !interest.intersects(Events::WRITABLE | Events::WRBAND) {
            return;
        }
        visit(&socket.can_write);
        if socket.kind == Kind::Datagram
            && let Some(peer) = socket.peer()
        {
            visit(&peer.can_write);
        }
    }

    fn ioctl(&self, cx: &Cx, _open: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        let socket = &self.0;
        if let Some(answer) = interfaces::ioctl(cx, request, argument) {
            return answer;
        }
        let value = match request {
            FIONREAD if socket.backlog.get().is_some() => return Err(Errno::EINVAL.into()),
            FIONREAD if socket.kind == Kind::Datagram => socket.inbox.first_len(),
            FIONREAD => socket.readable(),
            SIOCATMARK if socket.kind == Kind::Stream => usize::from(socket.is_at_mark()),
            TIOCOUTQ => socket.peer().map_or(0, |peer| peer.inbox.len()),
            _ => return Err(Errno::ENOTTY.into()),
        };
        cx.user().write(argument, &(value as i32))?;
        Ok(0)
    }

    fn inode(&self) -> Rc<Inode> {
        self.0.inode.clone()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
