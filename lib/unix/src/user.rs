//! A program's memory, as calls read and write it. Addresses come from programs and
//! may be anything: whatever cannot be accessed gives `EFAULT`, nothing else happens.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::errno::Errno;
use crate::memory::{FrameId, PAGE};
use crate::mm::AddressSpace;
use crate::unix::Unix;

/// A frame and an offset in it.
type Place = Option<(FrameId, usize)>;

/// One address space, for reading and writing.
pub struct UserMemory<'a> {
    unix: &'a Unix,
    space: Rc<AddressSpace>,
}

impl<'a> UserMemory<'a> {
    /// Access to `space`.
    #[must_use]
    pub fn new(unix: &'a Unix, space: Rc<AddressSpace>) -> Self {
        Self { unix, space }
    }

    /// The frame and offset of a range that is not empty and lies in one page (the usual
    /// case); `None` for others.
    #[inline(always)]
    fn one_page(&self, address: u64, len: usize, write: bool) -> Result<Place, Errno> {
        let offset = address as usize % PAGE;
        if len.wrapping_sub(1) >= PAGE - offset {
            return Ok(None);
        }
        let frame = self.space.frame_for(self.unix, address - offset as u64, write)?;
        Ok(Some((frame, offset)))
    }

    /// Calls `each(frame, offset, len)` for the pieces of a range; stops at its first error
    /// and returns how many bytes were done before.
    fn pieces(
        &self,
        address: u64,
        len: usize,
        write: bool,
        mut each: impl FnMut(FrameId, usize, usize),
    ) -> Result<(), (usize, Errno)> {
        let mut done = 0;
        while done < len {
            let at = address.wrapping_add(done as u64);
            let offset = at as usize % PAGE;
            let piece = (PAGE - offset).min(len - done);
            let frame = self
                .space
                .frame_for(self.unix, at - offset as u64, write)
                .map_err(|errno| (done, errno))?;
            each(frame, offset, piece);
            done += piece;
        }
        Ok(())
    }

    /// Where a range is if it lies within one page that is there: frame, offset. `None` says
    /// nothing about whether it can be accessed.
    #[inline]
    #[must_use]
    pub fn within_page(&self, address: u64, len: usize, write: bool) -> Option<(FrameId, usize)> {
        let offset = address as usize % PAGE;
        if len > PAGE - offset {
            return None;
        }
        Some((self.space.present(address - offset as u64, write)?, offset))
    }

    /// Copies bytes from the program.
    ///
    /// # Errors
    /// `EFAULT`.
    #[inline]
    pub fn read_bytes(&self, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        if let Some((frame, offset)) = self.one_page(address, to.len(), false)? {
            self.unix.memory.read(frame, offset, to);
            return Ok(());
        }
        self.read_pages(address, to)
    }

    fn read_pages(&self, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        let mut done = 0;
        self.pieces(address, to.len(), false, |frame, offset, len| {
            self.unix.memory.read(frame, offset, &mut to[done..done + len]);
            done += len;
        })
        .map_err(|(_, errno)| errno)
    }

    /// Copies bytes to the program.
    ///
    /// # Errors
    /// `EFAULT`; what lies before the first page that cannot be written is written.
    #[inline]
    pub fn write_bytes(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        if let Some((frame, offset)) = self.one_page(address, from.len(), true)? {
            self.unix.memory.write(frame, offset, from);
            return Ok(());
        }
        self.write_pages(address, from)
    }

    fn write_pages(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        self.pieces(address, from.len(), true, |frame, offset, len| {
            self.unix.memory.write(frame, offset, &from[done..done + len]);
            done += len;
        })
        .map_err(|(_, errno)| errno)
    }

    /// Copies as many bytes of a range to `to` as can be read; `EFAULT` if none can.
    pub fn read_some(&self, address: u64, to: &mut [u8]) -> Result<usize, Errno> {
        self.some_pieces(address, to.len(), false, |frame, offset, done, len| {
            self.unix.memory.read(frame, offset, &mut to[done..done + len]);
        })
    }

    /// Copies bytes of a frame to the program; how many (`EFAULT` if none).
    #[inline]
    pub fn write_from_frame(
        &self,
        address: u64,
        from: FrameId,
        at: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        if let Some(place) = self.one_page(address, len, true)? {
            self.unix.memory.copy((from, at), place, len);
            return Ok(len);
        }
        self.write_pages_from_frame(address, from, at, len)
    }

    fn write_pages_from_frame(
        &self,
        address: u64,
        from: FrameId,
        at: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        self.some_pieces(address, len, true, |frame, offset, done, piece| {
            self.unix.memory.copy((from, at + done), (frame, offset), piece);
        })
    }

    /// Copies bytes of the program into a frame; how many (`EFAULT` if none).
    #[inline]
    pub fn read_into_frame(
        &self,
        address: u64,
        to: FrameId,
        at: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        if let Some(place) = self.one_page(address, len, false)? {
            self.unix.memory.copy(place, (to, at), len);
            return Ok(len);
        }
        self.read_pages_into_frame(address, to, at, len)
    }

    fn read_pages_into_frame(
        &self,
        address: u64,
        to: FrameId,
        at: usize,
        len: usize,
    ) -> Result<usize, Errno> {
        self.some_pieces(address, len, false, |frame, offset, done, piece| {
            self.unix.memory.copy((frame, offset), (to, at + done), piece);
        })
    }

    /// Works on as many bytes of a range as there are, each call with frame, offset in it,
    /// bytes done before and bytes to do; how many (`EFAULT` if none).
    fn some_pieces(
        &self,
        address: u64,
        len: usize,
        write: bool,
        mut work: impl FnMut(FrameId, usize, usize, usize),
    ) -> Result<usize, Errno> {
        let mut done = 0;
        let result = self.pieces(address, len, write, |frame, offset, piece| {
            work(frame, offset, done, piece);
            done += piece;
        });
        match result {
            Err((0, errno)) => Err(errno),
            Err((done, _)) => Ok(done),
            Ok(()) => Ok(len),
        }
    }

    /// Fills a range with zeroes.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn clear(&self, address: u64, len: usize) -> Result<(), Errno> {
        self.pieces(address, len, true, |frame, offset, piece| {
            self.unix.memory.zero(frame, offset, piece);
        })
        .map_err(|(_, errno)| errno)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn read<T: FromBytes + IntoBytes>(&self, address: u64) -> Result<T, Errno> {
        let mut value = T::new_zeroed();
        self.read_bytes(address, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads a structure that may have grown since the program was made, or since this was: all of what is known
    /// here has to be there, and what is behind it has to be zero.
    ///
    /// # Errors
    /// `EINVAL` if there is too little, `E2BIG` if there is more, `EFAULT`.
    pub fn read_extensible<T: FromBytes + IntoBytes>(
        &self,
        address: u64,
        size: usize,
    ) -> Result<T, Errno> {
        if size < size_of::<T>() {
            return Err(Errno::EINVAL);
        }
        if size > PAGE {
            return Err(Errno::E2BIG);
        }
        let value = self.read(address)?;
        let mut rest = vec![0; size - size_of::<T>()];
        self.read_bytes(address + size_of::<T>() as u64, &mut rest)?;
        if rest.iter().all(|byte| *byte == 0) { Ok(value) } else { Err(Errno::E2BIG) }
    }

    /// Writes a value.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn write<T: IntoBytes + Immutable>(&self, address: u64, value: &T) -> Result<(), Errno> {
        self.write_bytes(address, value.as_bytes())
    }

    /// Reads a string that ends with a zero byte within `max` bytes (without the zero).
    ///
    /// # Errors
    /// `EFAULT`, or `too_long` if there is no zero.
    pub fn read_string(&self, address: u64, max: usize, too_long: Errno) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        while text.len() < max {
            let at = address.wrapping_add(text.len() as u64);
            let len = (PAGE - at as usize % PAGE).min(max - text.len()).min(256);
            let mut piece = [0; 256];
            self.read_bytes(at, &mut piece[..len])?;
            if let Some(end) = piece[..len].iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return Ok(text);
            }
            text.extend_from_slice(&piece[..len]);
        }
        Err(too_long)
    }

    /// Reads a path name (at most 4095 bytes; `ENAMETOOLONG`).
    ///
    /// # Errors
    /// `EFAULT`, `ENAMETOOLONG`.
    pub fn read_path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        self.read_string(address, 4096, Errno::ENAMETOOLONG)
    }

    /// Reads `count` 64-bit words.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn read_words(&self, address: u64, count: usize) -> Result<Vec<u64>, Errno> {
        let mut words = vec![0_u64; count];
        self.read_bytes(address, words.as_mut_bytes())?;
        Ok(words)
    }

    /// The frame of the page that holds `address`, for reading or writing a futex word.
    ///
    /// # Errors
    /// `EFAULT`.
    pub fn frame(&self, address: u64, write: bool) -> Result<FrameId, Errno> {
        self.space.frame_for(self.unix, address & !(PAGE as u64 - 1), write)
    }
}
