//! Open files: what every kind of file can be asked, open file descriptions, and the
//! descriptor table of a process.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use crate::call::{Cx, Entry, Stop};
use crate::errno::Errno;
use crate::fs::inode::Inode;
use crate::memory::FrameId;
use crate::user::UserMemory;
use crate::wait::WaitQueue;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

bitflags::bitflags! {
    /// Readiness, with poll's bits.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Events: u32 {
        #[allow(missing_docs)] const IN = 0x001;
        #[allow(missing_docs)] const PRI = 0x002;
        #[allow(missing_docs)] const OUT = 0x004;
        #[allow(missing_docs)] const ERR = 0x008;
        #[allow(missing_docs)] const HUP = 0x010;
        #[allow(missing_docs)] const NVAL = 0x020;
        #[allow(missing_docs)] const RDNORM = 0x040;
        #[allow(missing_docs)] const WRNORM = 0x100;
        #[allow(missing_docs)] const RDHUP = 0x2000;
    }
}

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

/// What can be asked of everything that has a descriptor. Methods take `&self`; files keep
/// their state in cells and wake their own wait queues.
pub trait File {
    /// Reads at `offset` (ignored by streams). 0 is the end. A stream that has nothing
    /// returns `Err(cx.block_on(queue))`, or `EAGAIN` if `open` says `O_NONBLOCK`.
    ///
    /// # Errors
    /// As `read(2)`.
    fn read(&self, cx: &Cx, open: &Open, sink: &mut Sink, offset: u64) -> Result<usize, Stop>;

    /// Writes at `offset` (ignored by streams).
    ///
    /// # Errors
    /// As `write(2)`.
    fn write(&self, cx: &Cx, open: &Open, source: &mut Source, offset: u64) -> Result<usize, Stop>;

    /// What could be done now without waiting.
    fn poll(&self, cx: &Cx) -> Events {
        let _ = cx;
        Events::IN | Events::OUT | Events::RDNORM | Events::WRNORM
    }

    /// The queues that are woken whenever `poll` may change; none for files that are always ready.
    fn queues(&self) -> Vec<&WaitQueue> {
        Vec::new()
    }

    /// A control request.
    ///
    /// # Errors
    /// `ENOTTY` by default.
    fn ioctl(&self, cx: &Cx, open: &Open, request: u32, argument: u64) -> Result<u64, Stop> {
        let _ = (cx, open, request, argument);
        Err(Errno::ENOTTY.into())
    }

    /// The inode: what `fstat` and friends tell. Pipes, sockets and the like have one of their own.
    fn inode(&self) -> Rc<Inode>;

    /// Whether there is a position (`lseek`, `pread`): regular files, directories, some devices.
    fn has_position(&self) -> bool {
        false
    }

    /// Size for `SEEK_END`.
    fn size(&self) -> u64 {
        0
    }

    /// An open file description went away (after its last descriptor was closed).
    fn closed(&self, open: &Open) {
        let _ = open;
    }

    /// To look at a file as what it is (sockets, terminals, epolls).
    fn as_any(&self) -> &dyn core::any::Any;
}

/// An open file description: a file, a position, flags. Descriptors share it.
pub struct Open {
    /// The file.
    pub file: Rc<dyn File>,
    /// Position in bytes.
    pub position: Cell<u64>,
    /// `O_*` access mode and status flags.
    pub flags: Cell<u32>,
    /// Path under which it was opened, for `/proc/self/fd` and `..at` calls on directories.
    pub path: Vec<u8>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let file = self.file.clone();
        file.closed(self);
    }
}

/// The descriptor table of a process; a clone shares the open file descriptions.
#[derive(Default, Clone)]
pub struct Descriptors {}
