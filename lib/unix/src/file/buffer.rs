//! The two ends of a transfer: where a read puts its bytes and where a write takes
//! them from, in a program's memory (any list of ranges) or in the server.

use alloc::vec::Vec;

use crate::errno::Errno;
use crate::memory::{FrameId, Memory};
use crate::user::UserMemory;

/// Ranges of a program's memory that are worked through from front to back.
pub struct UserRanges<'a> {
    memory: UserMemory<'a>,
    /// What is left of the present range.
    address: u64,
    len: usize,
    /// The ranges after it.
    rest: &'a [(u64, usize)],
    /// Bytes left in all.
    left: usize,
}

impl<'a> UserRanges<'a> {
    /// All of `ranges` but the first `skip` bytes.
    #[must_use]
    pub fn new(memory: UserMemory<'a>, ranges: &'a [(u64, usize)], skip: usize) -> Self {
        let (address, len, rest) = match ranges.split_first() {
            Some((first, rest)) => (first.0, first.1, rest),
            None => (0, 0, ranges),
        };
        let left = rest.iter().fold(len, |sum, range| sum.saturating_add(range.1));
        let mut all = Self { memory, address, len, rest, left };
        if skip > 0 || len == 0 {
            all.advance_far(skip);
        }
        all
    }

    /// One range.
    #[inline]
    #[must_use]
    pub fn one(memory: UserMemory<'a>, address: u64, len: usize) -> Self {
        Self { memory, address, len, rest: &[], left: len }
    }

    /// If the next `len` bytes are in one page: its frame and where they begin. The caller
    /// works on them there; they count as done.
    #[inline]
    fn next_in_page(&mut self, len: usize, write: bool) -> Option<(FrameId, usize)> {
        if len > self.len {
            return None;
        }
        let found = self.memory.within_page(self.address, len, write)?;
        self.address = self.address.wrapping_add(len as u64);
        self.len -= len;
        self.left -= len;
        if self.len == 0 && self.left > 0 {
            self.advance_far(0);
        }
        Some(found)
    }

    /// The first `count` bytes are done already.
    pub fn skip(&mut self, count: usize) {
        self.advance(count);
    }

    /// `count` bytes are done.
    #[inline]
    fn advance(&mut self, count: usize) {
        if count < self.len {
            self.address = self.address.wrapping_add(count as u64);
            self.len -= count;
            self.left -= count;
        } else {
            self.advance_far(count);
        }
    }

    fn advance_far(&mut self, count: usize) {
        let mut count = count.min(self.left);
        self.left -= count;
        while count >= self.len {
            count -= self.len;
            let Some((first, rest)) = self.rest.split_first() else {
                self.len = 0;
                return;
            };
            (self.address, self.len, self.rest) = (first.0, first.1, rest);
        }
        self.address = self.address.wrapping_add(count as u64);
        self.len -= count;
    }

    /// Has `work(memory, address, done, len)` do up to `max` bytes, range by range; how many
    /// it did, which is fewer if it says so or fails.
    #[inline]
    fn each(
        &mut self,
        max: usize,
        mut work: impl FnMut(&UserMemory, u64, usize, usize) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut done = 0;
        while done < max && self.left > 0 {
            let len = self.len.min(max - done);
            match work(&self.memory, self.address, done, len) {
                Ok(count) => {
                    self.advance(count);
                    done += count;
                    if count < len {
                        break;
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }
}

/// Where a read puts its bytes: ranges of a program's memory, or a buffer of the server.
pub enum Sink<'a> {
    /// The ranges.
    User(UserRanges<'a>),
    /// At most `max` bytes are appended.
    Server {
        #[allow(missing_docs)]
        to: &'a mut Vec<u8>,
        #[allow(missing_docs)]
        max: usize,
    },
}

/// Where a write takes its bytes from.
pub enum Source<'a> {
    /// The ranges.
    User(UserRanges<'a>),
    /// The bytes that are left.
    Server(&'a [u8]),
}

impl Sink<'_> {
    /// How many bytes it still takes.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        match self {
            Self::User(ranges) => ranges.left,
            Self::Server { max, .. } => *max,
        }
    }

    /// Puts `len` bytes of a frame that go into one page of the program's memory; whether
    /// that was so.
    #[inline]
    #[must_use]
    pub fn put_in_page(&mut self, memory: &Memory, from: (FrameId, usize), len: usize) -> bool {
        let Self::User(ranges) = self else { return false };
        let Some(to) = ranges.next_in_page(len, true) else { return false };
        memory.copy(from, to, len);
        true
    }

    /// Puts bytes, at most as many as there is room for; how many.
    ///
    /// # Errors
    /// `EFAULT` if the program's memory takes none.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::User(ranges) => ranges.each(bytes.len(), |memory, address, done, len| {
                let piece = bytes.get(done..done + len).unwrap_or_default();
                memory.write_bytes(address, piece).map(|()| piece.len())
            }),
            Self::Server { to, max } => {
                let piece = bytes.get(..bytes.len().min(*max)).unwrap_or_default();
                to.extend_from_slice(piece);
                *max -= piece.len();
                Ok(piece.len())
            }
        }
    }

    /// Puts `len` bytes of a frame; how many.
    ///
    /// # Errors
    /// As [`Self::put`].
    #[inline]
    pub fn put_frame(
        &mut self,
        memory: &Memory,
        frame: FrameId,
        offset: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        match self {
            Self::User(ranges) => ranges.each(len, |memory, address, done, len| {
                memory.write_from_frame(address, frame, offset + done, len)
            }),
            Self::Server { to, max } => {
                let len = len.min(*max);
                let start = to.len();
                to.resize(start + len, 0);
                memory.read(frame, offset, to.get_mut(start..).unwrap_or_default());
                *max -= len;
                Ok(len)
            }
        }
    }
}

impl Source<'_> {
    /// How many bytes are left.
    #[inline]
    #[must_use]
    pub fn left(&self) -> usize {
        match self {
            Self::User(ranges) => ranges.left,
            Self::Server(bytes) => bytes.len(),
        }
    }

    /// Takes `len` bytes into a frame that come out of one page of the program's memory;
    /// whether that was so.
    #[inline]
    #[must_use]
    pub fn take_in_page(&mut self, memory: &Memory, to: (FrameId, usize), len: usize) -> bool {
        let Self::User(ranges) = self else { return false };
        let Some(from) = ranges.next_in_page(len, false) else { return false };
        memory.copy(from, to, len);
        true
    }

    /// Takes bytes into `to`, at most as many as are left; how many.
    ///
    /// # Errors
    /// `EFAULT` if the program's memory gives none.
    pub fn take(&mut self, to: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::User(ranges) => ranges.each(to.len(), |memory, address, done, len| {
                memory.read_some(address, to.get_mut(done..done + len).unwrap_or_default())
            }),
            Self::Server(bytes) => {
                let (now, later) = bytes.split_at(bytes.len().min(to.len()));
                to[..now.len()].copy_from_slice(now);
                *bytes = later;
                Ok(now.len())
            }
        }
    }

    /// Takes up to `len` bytes into a frame; how many.
    ///
    /// # Errors
    /// As [`Self::take`].
    #[inline]
    pub fn take_frame(
        &mut self,
        memory: &Memory,
        frame: FrameId,
        offset: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        match self {
            Self::User(ranges) => ranges.each(len, |memory, address, done, len| {
                memory.read_into_frame(address, frame, offset + done, len)
            }),
            Self::Server(bytes) => {
                let (now, later) = bytes.split_at(bytes.len().min(len));
                memory.write(frame, offset, now);
                *bytes = later;
                Ok(now.len())
            }
        }
    }
}
