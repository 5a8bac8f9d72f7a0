//! What a socket has received and nobody has read yet: bytes in a ring, cut into pieces
//! that belong to one message or, on a stream, to one sender.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

use super::address::Name;
use super::ancillary::{Credentials, Rights};
use crate::account::Charge;
use crate::errno::Errno;
use crate::file::{Open, Sink, Source};
use crate::memory::{Memory, PAGE};
use crate::stream::ring::Ring;

/// Bytes an inbox holds (Linux's default `SO_RCVBUF`).
pub const CAPACITY: usize = 52 * PAGE;
/// Pieces an inbox holds; on Linux their bookkeeping counts as bytes, with the same effect.
const PIECES: usize = 278;

/// What a piece costs, with the address of its sender.
const PIECE_BYTES: usize = size_of::<Piece>() + size_of::<Name>() + 2 * size_of::<usize>();

/// Bytes that came together.
#[derive(Clone)]
pub struct Piece {
    /// How many are left.
    pub len: usize,
    /// Who sent them.
    pub credentials: Credentials,
    /// Files that came with them; gone once received.
    pub rights: Option<Rc<Rights>>,
    /// Files came with them.
    pub had_rights: bool,
    /// The sender's address.
    pub from: Option<Rc<Name>>,
    /// What a datagram of the Internet was sent with.
    pub header: Header,
}

/// What the header of an Internet datagram says that programs can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Hops that it had left (`IP_TTL`, `IPV6_HOPLIMIT`).
    pub hops: u8,
    /// Its traffic class (`IP_TOS`, `IPV6_TCLASS`).
    pub class: u8,
}

/// How full an inbox is.
#[derive(Clone, Copy)]
pub struct Level {
    /// Bytes in it.
    pub bytes: usize,
    /// It takes nothing: there are too many bytes, or pieces.
    pub is_full: bool,
}

/// Received bytes.
pub struct Inbox {
    ring: Ring,
    /// Bytes that it is to hold at most.
    most: Cell<usize>,
    pieces: RefCell<VecDeque<Piece>>,
    /// What the pieces cost.
    charge: Charge,
}

impl Inbox {
    /// An empty one.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(memory: &Rc<Memory>, frames: Charge, pieces: Charge) -> Result<Self, Errno> {
        Ok(Self {
            ring: Ring::new(memory, CAPACITY)?.paid(frames),
            most: Cell::new(CAPACITY),
            pieces: RefCell::default(),
            charge: pieces,
        })
    }

    /// Bytes in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// How many more bytes it takes now.
    #[must_use]
    pub fn room(&self) -> usize {
        let room = self.most.get().saturating_sub(self.len());
        if self.pieces.borrow().len() < PIECES { room } else { 0 }
    }

    /// How full it is, for who is going to take something out.
    #[must_use]
    pub fn level(&self) -> Level {
        Level { bytes: self.len(), is_full: self.room() == 0 }
    }

    /// Bytes that it is to hold at most.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most.get()
    }

    /// It is to hold `most` bytes at most, as far as it can; what is in it stays.
    pub fn bound(&self, most: usize) {
        self.most.set(most.min(CAPACITY));
    }

    /// Messages (or pieces of a stream) in it.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.pieces.borrow().len()
    }

    /// Whether there is nothing to be read, not even an empty message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.borrow().is_empty()
    }

    /// The first piece.
    #[must_use]
    pub fn first(&self) -> Option<Piece> {
        self.pieces.borrow().front().cloned()
    }

    /// Bytes of the first piece.
    #[must_use]
    pub fn first_len(&self) -> usize {
        self.pieces.borrow().front().map_or(0, |piece| piece.len)
    }

    /// Adds a whole message; the caller has checked that there is room.
    ///
    /// # Errors
    /// `EFAULT`, `ENOMEM`: nothing is added.
    pub fn add_message(
        &self,
        source: &mut Source,
        credentials: Credentials,
        rights: Option<Rc<Rights>>,
        from: Option<Rc<Name>>,
    ) -> Result<usize, Errno> {
        let len = self.whole(source)?;
        let (had_rights, header) = (rights.is_some(), Header::default());
        self.push(Piece { len, credentials, had_rights, rights, from, header })?;
        Ok(len)
    }

    /// Adds a datagram of the Internet, as [`Inbox::add_message`].
    ///
    /// # Errors
    /// `EFAULT`, `ENOMEM`: nothing is added.
    pub fn add_datagram(
        &self,
        source: &mut Source,
        from: Name,
        header: Header,
    ) -> Result<usize, Errno> {
        let len = self.whole(source)?;
        let (credentials, from) = (Credentials::NOBODY, Some(Rc::new(from)));
        self.push(Piece { len, credentials, had_rights: false, rights: None, from, header })?;
        Ok(len)
    }

    /// Puts the bytes of a message into the ring, all or none.
    fn whole(&self, source: &mut Source) -> Result<usize, Errno> {
        let want = source.left();
        let len = self.ring.fill(source, want)?;
        if len < want {
            self.ring.unfill(len);
            return Err(Errno::EFAULT);
        }
        Ok(len)
    }

    /// Adds bytes of a stream, as many as there is room for.
    ///
    /// # Errors
    /// `EFAULT`, `ENOMEM` if none can be added.
    pub fn add_bytes(
        &self,
        source: &mut Source,
        credentials: Credentials,
        rights: &mut Option<Rc<Rights>>,
    ) -> Result<usize, Errno> {
        let len = self.ring.fill(source, self.room())?;
        if len == 0 {
            return Ok(0);
        }
        let rights = rights.take();
        let mut pieces = self.pieces.borrow_mut();
        if let Some(last) = pieces.back_mut()
            && rights.is_none()
            && !last.had_rights
            && last.credentials == credentials
        {
            last.len += len;
            return Ok(len);
        }
        drop(pieces);
        let (had_rights, from, header) = (rights.is_some(), None, Header::default());
        self.push(Piece { len, credentials, had_rights, rights, from, header })?;
        Ok(len)
    }

    fn push(&self, piece: Piece) -> Result<(), Errno> {
        let mut pieces = self.pieces.borrow_mut();
        let full = pieces.len() == pieces.capacity()
            && self.charge.grow((pieces.capacity().max(4) * PIECE_BYTES) as u64).is_err();
        if full || pieces.try_reserve(1).is_err() {
            self.ring.unfill(piece.len);
            return Err(Errno::ENOBUFS);
        }
        pieces.push_back(piece);
        Ok(())
    }

    /// Copies bytes of the first piece, from byte `from` on, which stay.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn peek(&self, sink: &mut Sink, from: usize) -> Result<usize, Errno> {
        let max = self.first_len().saturating_sub(from);
        self.ring.peek(sink, from, max)
    }

    /// Copies at most `most` bytes, from byte `from` of all on, which stay.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn peek_at(&self, sink: &mut Sink, from: usize, most: usize) -> Result<usize, Errno> {
        self.ring.peek(sink, from, most)
    }

    /// Removes `count` bytes of the first piece (which loses its files), and the piece if
    /// nothing is left or `whole` says so.
    pub fn consume(&self, count: usize, whole: bool) {
        let mut pieces = self.pieces.borrow_mut();
        let Some(first) = pieces.front_mut() else { return };
        let count = if whole { first.len } else { count.min(first.len) };
        first.len -= count;
        let rights = first.rights.take();
        let gone = if first.len == 0 { pieces.pop_front() } else { None };
        drop(pieces);
        self.ring.skip(count);
        drop((rights, gone));
    }

    /// Shows `visit` the files that nobody has received yet.
    pub fn each_file(&self, visit: impl FnMut(&Rc<Open>)) {
        let pieces = self.pieces.borrow();
        let rights = pieces.iter().filter_map(|piece| piece.rights.as_ref());
        rights.flat_map(|rights| rights.files()).for_each(visit);
    }

    /// Takes everything out (the socket ends).
    #[must_use]
    pub fn clear(&self) -> Box<VecDeque<Piece>> {
        self.ring.skip(self.ring.len());
        self.charge.set(0);
        Box::new(self.pieces.take())
    }
}
