//! Regular files: a size and the frames of those pages that are not holes.
//!
//! Programs can have the frames mapped; so contents are always read and written in
//! place, and bytes behind the end are zeroed when the end moves.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell, RefCell};

use linux_raw_sys::general as linux;

use super::filesystem::Filesystem;
use super::mappers::Mappers;
use crate::account::{Charge, User, What};
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::memory::{FrameId, PAGE, PAGE_BITS};
use crate::mm::AddressSpace;
use crate::unix::Unix;

/// Pages of a chunk: what one node of the tree of pages holds.
pub(super) const CHUNK: u64 = 64;
/// A page that is not there.
pub(super) const HOLE: u32 = u32::MAX;
/// The largest size of a file.
pub const SIZE_MAX: u64 = i64::MAX as u64;

/// Pages below this are found in a list, without a search.
pub(super) const HEAD: u64 = 1024;

/// What a place of the list costs, and a chunk.
const SLOT_BYTES: u64 = 8;
const CHUNK_BYTES: u64 = 384;

/// A regular file's contents.
pub struct Regular {
    pub(super) size: Cell<u64>,
    /// The first pages.
    pub(super) head: RefCell<Vec<u32>>,
    /// The others.
    pub(super) chunks: RefCell<BTreeMap<u64, Box<[u32; CHUNK as usize]>>>,
    pub(super) pages: Cell<u64>,
    /// `F_SEAL_*`; files that are not from `memfd_create` are sealed against seals.
    pub seals: Cell<u32>,
    /// Who pays for frames, and for what is needed to find them.
    payer: RefCell<Option<[Charge; 2]>>,
    /// Address spaces that have it mapped.
    mappers: OnceCell<Rc<Mappers>>,
}

impl Default for Regular {
    fn default() -> Self {
        Self {
            size: Cell::new(0),
            head: RefCell::default(),
            chunks: RefCell::default(),
            pages: Cell::new(0),
            seals: Cell::new(linux::F_SEAL_SEAL),
            payer: RefCell::default(),
            mappers: OnceCell::default(),
        }
    }
}

impl Regular {
    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size.get()
    }

    /// Pages that are not holes.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages.get()
    }

    /// `space` maps it from now on; it is asked to forget pages that are cut off.
    pub fn mapped(&self, space: &Rc<AddressSpace>) {
        let mappers = self.mappers.get_or_init(Rc::default);
        if mappers.join(space) {
            space.has_mapped(mappers);
        }
    }

    /// The address spaces that have it mapped.
    #[must_use]
    pub fn mappers(&self) -> Vec<Rc<AddressSpace>> {
        self.mappers.get().map_or_else(Vec::new, |mappers| mappers.all())
    }

    /// The frame of page `index`, if it is not a hole.
    #[inline]
    #[must_use]
    pub fn frame(&self, index: u64) -> Option<FrameId> {
        let frame = if index < HEAD {
            *self.head.borrow().get(index as usize)?
        } else {
            self.far_frame(index)?
        };
        (frame != HOLE).then_some(FrameId(frame))
    }

    fn far_frame(&self, index: u64) -> Option<u32> {
        let chunks = self.chunks.borrow();
        Some(chunks.get(&(index / CHUNK))?[(index % CHUNK) as usize])
    }

    /// From now on this user pays.
    pub(super) fn set_payer(&self, user: &Rc<User>) {
        let charges = [What::Frames, What::Heap].map(|what| Charge::nothing(user, what));
        self.payer.replace(Some(charges));
    }

    /// A frame for page `index`, which is a hole, and room in what leads to it.
    fn allocate(&self, fs: &Filesystem, index: u64, zeroed: bool) -> Result<FrameId, Errno> {
        let more = match index {
            0..HEAD => {
                (index + 1).saturating_sub(self.head.borrow().capacity() as u64) * SLOT_BYTES
            }
            _ if self.chunks.borrow().contains_key(&(index / CHUNK)) => 0,
            _ => CHUNK_BYTES,
        };
        if let Some([frames, heap]) = self.payer.borrow().as_ref() {
            frames.grow(1).map_err(|_| Errno::ENOSPC)?;
            if heap.grow(more).is_err() {
                frames.shrink(1);
                return Err(Errno::ENOSPC);
            }
        }
        fs.allocate(zeroed).inspect_err(|_| self.pay_less(1))
    }

    /// A frame that was not needed after all, or not any more.
    pub(super) fn release(&self, fs: &Filesystem, frame: FrameId) {
        self.pay_less(1);
        fs.release(frame);
    }

    fn pay_less(&self, frames: u64) {
        if let Some([charge, _]) = self.payer.borrow().as_ref() {
            charge.shrink(frames);
        }
    }

    /// What leads to the pages is a list with so much room and so many chunks now.
    pub(super) fn pay_for(&self, room: usize, chunks: usize) {
        if let Some([_, charge]) = self.payer.borrow().as_ref() {
            charge.set(charge.amount().min(room as u64 * SLOT_BYTES + chunks as u64 * CHUNK_BYTES));
        }
    }

    fn set_frame(&self, index: u64, frame: FrameId) {
        if index < HEAD {
            let mut head = self.head.borrow_mut();
            let len = head.len().max(index as usize + 1);
            head.resize(len, HOLE);
            head[index as usize] = frame.0;
        } else {
            let mut chunks = self.chunks.borrow_mut();
            let chunk =
                chunks.entry(index / CHUNK).or_insert_with(|| Box::new([HOLE; CHUNK as usize]));
            chunk[(index % CHUNK) as usize] = frame.0;
        }
        self.pages.set(self.pages.get() + 1);
    }

    /// The frame of page `index`; a hole gets one, full of zeroes.
    pub(super) fn filled(&self, fs: &Filesystem, index: u64) -> Result<FrameId, Errno> {
        if let Some(frame) = self.frame(index) {
            return Ok(frame);
        }
        let frame = self.allocate(fs, index, true)?;
        self.set_frame(index, frame);
        Ok(frame)
    }

    /// See [`super::inode::Inode::page`].
    pub(super) fn page(&self, fs: &Filesystem, index: u64, write: bool) -> Result<FrameId, Errno> {
        if index >= self.size.get().div_ceil(PAGE as u64) {
            return Err(Errno::EFAULT);
        }
        if write && self.seals.get() & linux::F_SEAL_WRITE != 0 {
            return Err(Errno::EPERM);
        }
        self.filled(fs, index)
    }

    /// Reads at `offset` until the sink or the file ends; how many bytes.
    ///
    /// # Errors
    /// `EFAULT` if not even the first byte could be put.
    #[inline]
    pub fn read(&self, fs: &Filesystem, sink: &mut Sink, offset: u64) -> Result<usize, Errno> {
        let left = self.size.get().saturating_sub(offset).min(sink.room() as u64) as usize;
        let start = offset as usize % PAGE;
        if start + left <= PAGE
            && let Some(frame) = self.frame(offset >> PAGE_BITS)
            && sink.put_in_page(&fs.memory, (frame, start), left)
        {
            return Ok(left);
        }
        self.read_pages(fs, sink, offset, left)
    }

    /// Reads `left` bytes, which are in the file, page by page.
    #[inline(never)]
    fn read_pages(
        &self,
        fs: &Filesystem,
        sink: &mut Sink,
        offset: u64,
        left: usize,
    ) -> Result<usize, Errno> {
        let mut done = 0;
        while done < left {
            let at = offset + done as u64;
            let start = at as usize % PAGE;
            let len = (PAGE - start).min(left - done);
            let put = match self.frame(at >> PAGE_BITS) {
                Some(frame) => sink.put_frame(&fs.memory, frame, start, len),
                None => put_zeroes(sink, len),
            };
            match put {
                Ok(put) => done += put,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
            if put != Ok(len) {
                break;
            }
        }
        Ok(done)
    }

    /// Writes all of the source at `offset`, but nothing from `limit` on; how many bytes.
    ///
    /// # Errors
    /// `EFAULT`, `ENOSPC`, `ENOMEM` if not even the first byte was written; `EFBIG` if the
    /// file would get too large.
    pub fn write(
        &self,
        fs: &Filesystem,
        source: &mut Source,
        offset: u64,
        limit: u64,
    ) -> Result<usize, Errno> {
        let start = offset as usize % PAGE;
        let len = source.left();
        let end = offset.saturating_add(len as u64);
        // What is there already, in one page on both sides.
        if start + len <= PAGE
            && end <= self.size.get().min(limit)
            && let Some(frame) = self.frame(offset >> PAGE_BITS)
            && source.take_in_page(&fs.memory, (frame, start), len)
        {
            return Ok(len);
        }
        self.write_pages(fs, source, offset, limit)
    }

    /// Writes page by page.
    #[inline(never)]
    fn write_pages(
        &self,
        fs: &Filesystem,
        source: &mut Source,
        offset: u64,
        limit: u64,
    ) -> Result<usize, Errno> {
        let room = SIZE_MAX.min(limit).saturating_sub(offset);
        let left = room.min(source.left() as u64) as usize;
        if left == 0 && source.left() != 0 {
            return Err(Errno::EFBIG);
        }
        self.clear_tail(fs, offset);
        let mut done = 0;
        while done < left {
            let at = offset + done as u64;
            let len = (PAGE - at as usize % PAGE).min(left - done);
            match self.write_piece(fs, source, at, len) {
                Ok(0) => break,
                Ok(wrote) => {
                    done += wrote;
                    self.size.set(self.size.get().max(offset + done as u64));
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes `len` bytes within one page.
    fn write_piece(
        &self,
        fs: &Filesystem,
        source: &mut Source,
        at: u64,
        len: usize,
    ) -> Result<usize, Errno> {
        let (index, start) = (at >> PAGE_BITS, at as usize % PAGE);
        if let Some(frame) = self.frame(index) {
            return source.take_frame(&fs.memory, frame, start, len);
        }
        // The frame joins the file when it is filled: the source may be in this very file.
        let frame = self.allocate(fs, index, len < PAGE)?;
        let taken = source.take_frame(&fs.memory, frame, start, len);
        let wrote = *taken.as_ref().unwrap_or(&0);
        if wrote < len && len == PAGE {
            fs.memory.zero(frame, wrote, PAGE - wrote);
        }
        match self.frame(index) {
            Some(present) => {
                fs.memory.copy((frame, start), (present, start), wrote);
                self.release(fs, frame);
            }
            None if wrote == 0 => self.release(fs, frame),
            None => self.set_frame(index, frame),
        }
        taken
    }

    /// Programs may have written behind the end of the last page; that must not become
    /// part of the file when something is written behind it, at `at`.
    pub(super) fn clear_tail(&self, fs: &Filesystem, at: u64) {
        let size = self.size.get();
        let start = size as usize % PAGE;
        if at > size
            && start != 0
            && let Some(frame) = self.frame(size >> PAGE_BITS)
        {
            fs.memory.zero(frame, start, PAGE - start);
        }
    }

    /// Sets the size. Pages behind it are taken away from everybody.
    pub fn truncate(&self, unix: &Unix, fs: &Filesystem, size: u64) {
        let old = self.size.replace(size);
        let tail = size.min(old);
        let start = tail as usize % PAGE;
        if start != 0
            && let Some(frame) = self.frame(tail >> PAGE_BITS)
        {
            fs.memory.zero(frame, start, PAGE - start);
        }
        // What was reserved behind the end goes even if the end stays.
        if size <= old {
            self.punch(unix, fs, size.div_ceil(PAGE as u64), u64::MAX);
        }
    }

    /// The file is gone.
    pub(super) fn release_all(&self, fs: &Filesystem) {
        for frame in self.head.take().into_iter().filter(|slot| *slot != HOLE) {
            fs.release(FrameId(frame));
        }
        for chunk in self.chunks.take().into_values() {
            for frame in chunk.iter().filter(|slot| **slot != HOLE) {
                fs.release(FrameId(*frame));
            }
        }
    }
}

/// Puts `len` zeroes.
pub(super) fn put_zeroes(sink: &mut Sink, len: usize) -> Result<usize, Errno> {
    const ZEROES: [u8; 512] = [0; 512];
    let mut done = 0;
    while done < len {
        match sink.put(&ZEROES[..ZEROES.len().min(len - done)]) {
            Ok(0) => break,
            Ok(put) => done += put,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}
