//! A ring of bytes in frames: what pipes, sockets and pseudo-terminals hold between
//! writer and reader. Frames come when bytes do; an empty ring keeps at most one, so
//! that small messages to and fro cost no allocation.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::account::Charge;
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::memory::{FrameId, Memory, PAGE};

/// Bytes, first in first out.
pub struct Ring {
    memory: Rc<Memory>,
    /// One per page of the capacity.
    frames: RefCell<Vec<Option<FrameId>>>,
    capacity: Cell<usize>,
    /// Where the first byte is.
    head: Cell<usize>,
    len: Cell<usize>,
    /// Who pays for the frames.
    charge: Option<Charge>,
}

impl Ring {
    /// A ring for `capacity` bytes, a multiple of the page size.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(memory: &Rc<Memory>, capacity: usize) -> Result<Self, Errno> {
        let mut frames = Vec::new();
        frames.try_reserve(capacity / PAGE).map_err(|_| Errno::ENOMEM)?;
        frames.resize(capacity / PAGE, None);
        Ok(Self {
            memory: memory.clone(),
            frames: RefCell::new(frames),
            capacity: Cell::new(capacity / PAGE * PAGE),
            head: Cell::new(0),
            len: Cell::new(0),
            charge: None,
        })
    }

    /// The ring, whose frames `charge` pays for.
    #[must_use]
    pub fn paid(self, charge: Charge) -> Self {
        let mut ring = self;
        ring.charge = Some(charge);
        ring
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.get()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// How many it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity.get()
    }

    /// How many more it can hold.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity() - self.len()
    }

    /// Where byte number `index` is or will be: page, offset in it.
    #[inline]
    fn place(&self, index: usize) -> (usize, usize) {
        let mut at = self.head.get() + index;
        if at >= self.capacity() {
            at -= self.capacity();
        }
        (at / PAGE, at % PAGE)
    }

    /// The frame of a page, if there is one.
    #[inline]
    fn present(&self, page: usize) -> Option<FrameId> {
        self.frames.borrow().get(page).copied().flatten()
    }

    /// The frame of a page, made if need be.
    fn frame(&self, page: usize) -> Result<FrameId, Errno> {
        if let Some(frame) = self.present(page) {
            return Ok(frame);
        }
        let mut frames = self.frames.borrow_mut();
        let slot = frames.get_mut(page).ok_or(Errno::EINVAL)?;
        if let Some(charge) = &self.charge {
            charge.grow(1)?;
        }
        let Some(frame) = self.memory.allocate() else {
            self.shrink();
            return Err(Errno::ENOMEM);
        };
        *slot = Some(frame);
        Ok(frame)
    }

    /// A frame less.
    fn shrink(&self) {
        if let Some(charge) = &self.charge {
            charge.shrink(1);
        }
    }

    /// Takes up to `max` bytes from `source`; how many.
    ///
    /// # Errors
    /// `EFAULT` or `ENOMEM` if it takes none.
    #[inline]
    pub fn fill(&self, source: &mut Source, max: usize) -> Result<usize, Errno> {
        let max = max.min(self.room()).min(source.left());
        let (page, offset) = self.place(self.len());
        if max <= PAGE - offset
            && let Some(frame) = self.present(page)
            && source.take_in_page(&self.memory, (frame, offset), max)
        {
            self.len.set(self.len() + max);
            return Ok(max);
        }
        self.fill_pages(source, max)
    }

    #[inline(never)]
    fn fill_pages(&self, source: &mut Source, max: usize) -> Result<usize, Errno> {
        let mut done = 0;
        while done < max {
            let (page, offset) = self.place(self.len());
            let want = (PAGE - offset).min(max - done);
            let taken = self
                .frame(page)
                .and_then(|frame| source.take_frame(&self.memory, frame, offset, want));
            match taken {
                Ok(taken) => {
                    self.len.set(self.len() + taken);
                    done += taken;
                    if taken < want {
                        break;
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// The next `count` bytes, for which there is room, will find frames.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn reserve(&self, count: usize) -> Result<(), Errno> {
        let mut at = 0;
        while at < count {
            let (page, offset) = self.place(self.len() + at);
            self.frame(page)?;
            at += PAGE - offset;
        }
        Ok(())
    }

    /// Takes the last `count` bytes back (a message that could not be put as a whole).
    pub fn unfill(&self, count: usize) {
        self.len.set(self.len() - count.min(self.len()));
    }

    /// Gives `sink` up to `max` bytes from byte number `from` on, which stay; how many.
    ///
    /// # Errors
    /// `EFAULT` if the program's memory takes none.
    #[inline]
    pub fn peek(&self, sink: &mut Sink, from: usize, max: usize) -> Result<usize, Errno> {
        let max = max.min(self.len() - from.min(self.len())).min(sink.room());
        let (page, offset) = self.place(from);
        if max <= PAGE - offset
            && let Some(frame) = self.present(page)
            && sink.put_in_page(&self.memory, (frame, offset), max)
        {
            return Ok(max);
        }
        self.peek_pages(sink, from, max)
    }

    #[inline(never)]
    fn peek_pages(&self, sink: &mut Sink, from: usize, max: usize) -> Result<usize, Errno> {
        let mut done = 0;
        while done < max {
            let (page, offset) = self.place(from + done);
            let want = (PAGE - offset).min(max - done);
            let given = self
                .frame(page)
                .and_then(|frame| sink.put_frame(&self.memory, frame, offset, want));
            match given {
                Ok(given) => {
                    done += given;
                    if given < want {
                        break;
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Gives `sink` up to `max` bytes; how many.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub fn drain(&self, sink: &mut Sink, max: usize) -> Result<usize, Errno> {
        let count = self.peek(sink, 0, max)?;
        self.skip(count);
        Ok(count)
    }

    /// Drops the first `count` bytes, and the frames they leave empty.
    #[inline]
    pub fn skip(&self, count: usize) {
        let head = self.head.get();
        if count == self.len() && count <= PAGE - head % PAGE {
            // Empty; the page stays, for the next message.
            self.head.set(head - head % PAGE);
            self.len.set(0);
        } else {
            self.skip_pages(count);
        }
    }

    #[inline(never)]
    fn skip_pages(&self, count: usize) {
        let count = count.min(self.len());
        let (first, offset) = (self.head.get() / PAGE, self.head.get() % PAGE);
        let (last, rest) = self.place(count);
        self.len.set(self.len() - count);
        if !self.is_empty() {
            self.head.set(last * PAGE + rest);
            // In a full ring the newest bytes share the first page with the oldest.
            let shared = first != last && self.place(self.len() - 1).0 == first;
            let all_around = first == last && count >= PAGE;
            let from = if shared || all_around { self.after(first) } else { first };
            self.release_pages(from, last);
            return;
        }
        // The first page stays, for the next message.
        if count > PAGE - offset {
            self.release_pages(self.after(first), first);
        }
        self.head.set(first * PAGE);
    }

    /// The page after `page`, around the end.
    fn after(&self, page: usize) -> usize {
        if (page + 1) * PAGE >= self.capacity() { 0 } else { page + 1 }
    }

    /// Releases the pages from `first` up to `last`, around the end.
    fn release_pages(&self, first: usize, last: usize) {
        if first == last {
            return;
        }
        let mut frames = self.frames.borrow_mut();
        let mut page = first;
        while page != last {
            if let Some(frame) = frames.get_mut(page).and_then(Option::take) {
                self.memory.release(frame);
                self.shrink();
            }
            page = self.after(page);
        }
    }

    /// Changes the capacity (a multiple of the page size), which is at least `len`.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn resize(&self, capacity: usize) -> Result<(), Errno> {
        let mut bytes = Vec::new();
        bytes.try_reserve(self.len()).map_err(|_| Errno::ENOMEM)?;
        let other = Self::new(&self.memory, capacity)?;
        let max = self.len();
        self.peek(&mut Sink::Server { to: &mut bytes, max }, 0, max)?;
        if other.fill(&mut Source::Server(&bytes), max)? < max {
            return Err(Errno::ENOMEM);
        }
        self.frames.swap(&other.frames);
        self.capacity.swap(&other.capacity);
        self.head.swap(&other.head);
        self.len.swap(&other.len);
        if let Some(charge) = &self.charge {
            charge.set(self.frames.borrow().iter().flatten().count() as u64);
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for frame in self.frames.borrow().iter().flatten() {
            self.memory.release(*frame);
        }
    }
}
