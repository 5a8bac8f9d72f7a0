//! New sockets, without a name or a connection.

use alloc::rc::Rc;
use core::cell::{Cell, OnceCell, RefCell};

use super::ancillary::Credentials;
use super::inbox::Inbox;
use super::inet::Inet;
use super::options::Options;
use super::urgent::Urgent;
use super::{Kind, Socket};
use crate::account::{Charge, User, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::fs::inode::Inode;
use crate::unix::Unix;
use crate::wait::WaitQueue;

impl Socket {
    /// A program's socket.
    ///
    /// # Errors
    /// `ENFILE` or `ENOMEM` if there are too many.
    pub fn new(cx: &Cx, kind: Kind, inet: Option<Inet>) -> Result<Rc<Self>, Errno> {
        let inode = cx.unix.fs.socket(cx)?;
        Self::made(cx.unix, kind, inet, &cx.process.user(), inode)
    }

    /// A stream's socket that no program has made, for which `payer` pays.
    ///
    /// # Errors
    /// `ENFILE` or `ENOMEM` if there are too many.
    pub fn stream_for(unix: &Unix, payer: &Rc<User>) -> Result<Rc<Self>, Errno> {
        let inode = unix.fs.socket_for(unix, payer)?;
        Self::made(unix, Kind::Stream, None, payer, inode)
    }

    fn made(
        unix: &Unix,
        kind: Kind,
        inet: Option<Inet>,
        payer: &Rc<User>,
        inode: Rc<Inode>,
    ) -> Result<Rc<Self>, Errno> {
        let charge = |what| Charge::nothing(payer, what);
        let streams = &unix.streams;
        Ok(Rc::new(Self {
            kind,
            inet,
            netlink: OnceCell::new(),
            inbox: Inbox::new(&unix.memory, charge(What::Frames), charge(What::Heap))?,
            name: RefCell::default(),
            place: RefCell::default(),
            names: streams.names.clone(),
            ports: streams.ports.clone(),
            peer: RefCell::default(),
            connected: Cell::new(false),
            peer_credentials: Cell::new(Credentials::NOBODY),
            service: RefCell::default(),
            services: streams.services.clone(),
            peer_name: RefCell::default(),
            backlog: Cell::new(None),
            listener: Cell::new(Credentials::NOBODY),
            pending: RefCell::default(),
            shut_in: Cell::new(false),
            shut_out: Cell::new(false),
            error: Cell::new(None),
            urgent: Urgent::default(),
            embryo: Cell::new(false),
            holds_files: Cell::new(false),
            holders: streams.flights.holders.clone(),
            options: Options::default(),
            can_read: WaitQueue::default(),
            can_write: WaitQueue::default(),
            inode,
        }))
    }
}
