//! Urgent data of streams (`MSG_OOB`; RFC 6093): the last byte of what was sent as urgent is marked. Whoever
//! reads stops in front of the mark, and then goes over the byte, which is read by itself, unless the byte
//! is to stay where it is (`SO_OOBINLINE`).

use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

use linux_raw_sys::general::SIGURG;
use linux_raw_sys::net::SO_OOBINLINE;

use super::connect::IPPROTO_UDP;
use super::transfer::{How, Received};
use super::{Kind, Socket};
use crate::call::Stop;
use crate::errno::Errno;
use crate::file::{Open, Sink};
use crate::signal::Info;
use crate::unix::Unix;

/// What a socket knows of urgent data that it has received.
#[derive(Default)]
pub struct Urgent {
    mark: Cell<Option<Mark>>,
    /// The file whose owner is told by SIGURG, once it has one.
    told: RefCell<Weak<Open>>,
}

/// The byte that is marked.
#[derive(Clone, Copy)]
struct Mark {
    /// Bytes that were received before it, and nobody has read.
    ahead: usize,
    /// It has been read by itself.
    is_read: bool,
}

/// What to do next with a stream.
pub(super) enum Next {
    /// Read so many bytes at most.
    Read(usize),
    /// Nothing: what was read ends here.
    Stop,
    /// Leave a byte out.
    Skip,
}

impl Urgent {
    /// `open` has an owner.
    pub(crate) fn tell_owner_of(&self, open: &Rc<Open>) {
        *self.told.borrow_mut() = Rc::downgrade(open);
    }

    /// So many bytes in front have been taken out.
    pub(super) fn advance(&self, count: usize) {
        if let Some(mark) = self.mark.get() {
            let ahead = mark.ahead.checked_sub(count);
            self.mark.set(ahead.map(|ahead| Mark { ahead, ..mark }));
        }
    }

    /// Something is to be read by itself.
    pub(super) fn is_there(&self) -> bool {
        self.mark.get().is_some_and(|mark| !mark.is_read)
    }
}

impl Socket {
    fn is_inline(&self) -> bool {
        self.options.is_set(SO_OOBINLINE)
    }

    /// Whether the last of so many bytes can be sent as urgent.
    pub(super) fn sends_urgent(&self, len: usize) -> bool {
        let is_stream = self.kind == Kind::Stream && self.service().is_none();
        is_stream && (len > 0 || self.inet.is_some())
    }

    /// Whether it is one of UDP, which does not look whether urgent data is asked for.
    pub(super) fn is_udp(&self) -> bool {
        self.inet.as_ref().is_some_and(|inet| inet.protocol == IPPROTO_UDP)
    }

    /// Takes bytes out of the first piece of a stream.
    pub(super) fn take(&self, count: usize) {
        self.inbox.consume(count, false);
        self.urgent.advance(count);
    }

    /// Whether the next byte is the marked one (`SIOCATMARK`).
    pub(super) fn is_at_mark(&self) -> bool {
        self.urgent.mark.get().is_some_and(|mark| mark.ahead == 0)
    }

    /// Whether nothing is in the inbox but an urgent byte that a reader leaves out.
    pub(super) fn has_only_urgent(&self) -> bool {
        self.inet.is_some() && self.inbox.len() == 1 && self.is_at_mark() && !self.is_inline()
    }

    /// Bytes that a reader gets without a stop (`FIONREAD`).
    pub(super) fn readable(&self) -> usize {
        match self.urgent.mark.get() {
            Some(mark) if self.inet.is_some() && !self.is_inline() => mark.ahead,
            _ => self.inbox.len(),
        }
    }

    /// The last byte of the inbox is urgent; the owner is told.
    pub(super) fn mark_urgent(&self, unix: &Unix) {
        let Some(last) = self.inbox.len().checked_sub(1) else { return };
        let passed = self.inet.is_some() && last > 0 && self.is_at_mark() && !self.is_inline();
        if passed {
            // The one before, at which the reader stands, is left out.
            self.inbox.consume(1, false);
        }
        let ahead = last - usize::from(passed);
        self.urgent.mark.set(Some(Mark { ahead, is_read: false }));
        let told = self.urgent.told.borrow().upgrade();
        if let Some(open) = told {
            open.signal_owner(unix, Info::kernel(SIGURG));
        }
        self.can_read.wake_all();
    }

    /// What a reader does who has got `some` already.
    pub(super) fn next_read(&self, some: bool) -> Next {
        let Some(mark) = self.urgent.mark.get() else { return Next::Read(usize::MAX) };
        // A UNIX stream forgets where a byte was that has been read by itself.
        let forgotten = self.inet.is_none() && mark.is_read;
        match mark.ahead {
            0 if some && !forgotten => Next::Stop,
            0 if forgotten || !self.is_inline() => Next::Skip,
            0 => Next::Read(usize::MAX),
            ahead => Next::Read(ahead),
        }
    }

    /// Receives the urgent byte.
    ///
    /// # Errors
    /// `EINVAL` if there is none, or it stays in line; `EOPNOTSUPP` where there is no such thing.
    pub(super) fn receive_urgent(&self, sink: &mut Sink, how: How) -> Result<Received, Stop> {
        if self.kind != Kind::Stream || self.service().is_some() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if self.inet.is_some() && self.backlog.get().is_some() {
            return Err(Errno::ENOTCONN.into());
        }
        let is_there = |mark: &Mark| !mark.is_read && !self.is_inline();
        let Some(mark) = self.urgent.mark.get().filter(is_there) else {
            return Err(Errno::EINVAL.into());
        };
        let len = self.inbox.peek_at(sink, mark.ahead, 1)?;
        if !how.peek {
            self.urgent.mark.set(Some(Mark { is_read: true, ..mark }));
        }
        Ok(Received { len, full_len: 1 - len, urgent: true, ..Received::default() })
    }
}
