//! The two ends of a transfer: where a read puts its bytes and where a write takes
//! them from, in a program's memory (any list of ranges) or in the server.

use alloc::vec::Vec;

use crate::errno::Errno;
use crate::memory::FrameId;
use crate::user::UserMemory;

/// Where a read puts its bytes: ranges of a program's memory, or a buffer of the server.
pub enum Sink<'a> {
    /// (address, length) pieces; `next` counts the bytes already put.
    User {
        #[allow(missing_docs)]
        memory: UserMemory<'a>,
        #[allow(missing_docs)]
        ranges: &'a [(u64, usize)],
        #[allow(missing_docs)]
        next: usize,
    },
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
    /// As [`Sink::User`].
    User {
        #[allow(missing_docs)]
        memory: UserMemory<'a>,
        #[allow(missing_docs)]
        ranges: &'a [(u64, usize)],
        #[allow(missing_docs)]
        next: usize,
    },
    /// The bytes that are left.
    Server(&'a [u8]),
}

/// The piece of a list of ranges at which byte number `next` is.
fn piece(ranges: &[(u64, usize)], mut next: usize) -> Option<(u64, usize)> {
    for (address, len) in ranges {
        if next < *len {
            return Some((address.wrapping_add(next as u64), len - next));
        }
        next -= len;
    }
    None
}

impl Sink<'_> {
    /// How many bytes it still takes.
    #[must_use]
    pub fn room(&self) -> usize {
        match self {
            Self::User { ranges, next, .. } => {
                ranges.iter().map(|(_, len)| len).sum::<usize>() - next
            }
            Self::Server { max, .. } => *max,
        }
    }

    /// Puts bytes, at most as many as there is room for; how many.
    ///
    /// # Errors
    /// `EFAULT` if the program's memory takes none.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let mut done = 0;
        match self {
            Self::User { memory, ranges, next } => {
                while let Some((address, len)) = piece(ranges, *next).filter(|_| done < bytes.len())
                {
                    let len = len.min(bytes.len() - done);
                    match memory.write_bytes(address, &bytes[done..done + len]) {
                        Ok(()) => {}
                        Err(errno) if done == 0 => return Err(errno),
                        Err(_) => break,
                    }
                    *next += len;
                    done += len;
                }
            }
            Self::Server { to, max } => {
                done = bytes.len().min(*max);
                to.extend_from_slice(&bytes[..done]);
                *max -= done;
            }
        }
        Ok(done)
    }

    /// Puts `len` bytes of a frame; how many.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_frame(
        &mut self,
        cx_memory: &crate::memory::Memory,
        frame: FrameId,
        offset: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        let len = len.min(self.room());
        match self {
            Self::User { memory, ranges, next } => {
                let mut done = 0;
                while let Some((address, piece)) = piece(ranges, *next).filter(|_| done < len) {
                    let piece = piece.min(len - done);
                    match memory.write_from_frame(address, frame, offset + done, piece) {
                        Ok(wrote) => {
                            *next += wrote;
                            done += wrote;
                            if wrote < piece {
                                break;
                            }
                        }
                        Err(errno) if done == 0 => return Err(errno),
                        Err(_) => break,
                    }
                }
                Ok(done)
            }
            Self::Server { to, max } => {
                let start = to.len();
                to.resize(start + len, 0);
                cx_memory.read(frame, offset, &mut to[start..]);
                *max -= len;
                Ok(len)
            }
        }
    }
}

impl Source<'_> {
    /// How many bytes are left.
    #[must_use]
    pub fn left(&self) -> usize {
        match self {
            Self::User { ranges, next, .. } => {
                ranges.iter().map(|(_, len)| len).sum::<usize>() - next
            }
            Self::Server(bytes) => bytes.len(),
        }
    }

    /// Takes bytes into `to`, at most as many as are left; how many.
    ///
    /// # Errors
    /// `EFAULT` if the program's memory gives none.
    pub fn take(&mut self, to: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        match self {
            Self::User { memory, ranges, next } => {
                while let Some((address, len)) = piece(ranges, *next).filter(|_| done < to.len()) {
                    let len = len.min(to.len() - done);
                    match memory.read_some(address, &mut to[done..done + len]) {
                        Ok(read) => {
                            *next += read;
                            done += read;
                            if read < len {
                                break;
                            }
                        }
                        Err(errno) if done == 0 => return Err(errno),
                        Err(_) => break,
                    }
                }
            }
            Self::Server(bytes) => {
                done = bytes.len().min(to.len());
                to[..done].copy_from_slice(&bytes[..done]);
                *bytes = &bytes[done..];
            }
        }
        Ok(done)
    }

    /// Takes up to `len` bytes into a frame; how many.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_frame(
        &mut self,
        cx_memory: &crate::memory::Memory,
        frame: FrameId,
        offset: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        let len = len.min(self.left());
        match self {
            Self::User { memory, ranges, next } => {
                let mut done = 0;
                while let Some((address, piece)) = piece(ranges, *next).filter(|_| done < len) {
                    let piece = piece.min(len - done);
                    match memory.read_into_frame(address, frame, offset + done, piece) {
                        Ok(read) => {
                            *next += read;
                            done += read;
                            if read < piece {
                                break;
                            }
                        }
                        Err(errno) if done == 0 => return Err(errno),
                        Err(_) => break,
                    }
                }
                Ok(done)
            }
            Self::Server(bytes) => {
                cx_memory.write(frame, offset, &bytes[..len]);
                *bytes = &bytes[len..];
                Ok(len)
            }
        }
    }
}
