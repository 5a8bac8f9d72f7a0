//! Holes of regular files: making, filling and finding them.

use alloc::vec::Vec;

use super::filesystem::Filesystem;
use super::regular::{CHUNK, HEAD, HOLE, Regular};
use crate::errno::Errno;
use crate::machine::Access;
use crate::memory::{FrameId, PAGE, PAGE_BITS};
use crate::unix::Unix;

/// Pages that are filled before others have their turn.
const TURN: u64 = 1024;

impl Regular {
    /// Makes holes of the pages from `first` up to, not including, `end`.
    pub(super) fn punch(&self, unix: &Unix, fs: &Filesystem, first: u64, end: u64) {
        let mut frames = Vec::new();
        let mut head = self.head.borrow_mut();
        let in_head = head.iter_mut().enumerate().skip(first.min(HEAD) as usize);
        for (_, slot) in in_head.take_while(|(index, _)| (*index as u64) < end) {
            if *slot != HOLE {
                frames.push(FrameId(*slot));
                *slot = HOLE;
            }
        }
        if end == u64::MAX {
            head.truncate(first.min(HEAD) as usize);
            head.shrink_to_fit();
        }
        let head_room = head.capacity();
        drop(head);
        let mut chunks = self.chunks.borrow_mut();
        for (number, chunk) in chunks.range_mut(first / CHUNK..=end / CHUNK) {
            for (at, slot) in chunk.iter_mut().enumerate() {
                let index = number * CHUNK + at as u64;
                if index >= first && index < end && *slot != HOLE {
                    frames.push(FrameId(*slot));
                    *slot = HOLE;
                }
            }
        }
        if end == u64::MAX {
            chunks.split_off(&first.div_ceil(CHUNK));
            self.pay_for(head_room, chunks.len());
        }
        drop(chunks);
        self.pages.set(self.pages.get() - frames.len() as u64);
        let mappers = self.mappers();
        if !mappers.is_empty() {
            unix.machine.revoke(&frames, Access::all());
            frames.sort_unstable();
            // What is cut off takes its private copies along, a hole does not.
            let only = (end != u64::MAX).then_some(&frames[..]);
            for mapper in mappers {
                mapper.forget_file(unix, self, first..end, only);
            }
        }
        for frame in frames {
            self.release(fs, frame);
        }
    }

    /// Makes a hole of these bytes (`FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_ZERO_RANGE`).
    pub fn clear(&self, unix: &Unix, fs: &Filesystem, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let (first, last) = (offset.div_ceil(PAGE as u64), end >> PAGE_BITS);
        if first < last {
            self.punch(unix, fs, first, last);
        }
        let head_end = end.min(first * PAGE as u64);
        let tail_start = offset.max(last * PAGE as u64);
        for (from, to) in [(offset, head_end), (tail_start, end)] {
            if let Some(frame) = self.frame(from >> PAGE_BITS).filter(|_| from < to) {
                fs.memory.zero(frame, from as usize % PAGE, (to - from) as usize);
            }
        }
    }

    /// Fills the holes of a range (`fallocate`), a turn's worth of pages behind those that earlier turns have `done`; how
    /// many are done now, if there is more to do.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`; what was filled before stays.
    pub fn fill(
        &self,
        fs: &Filesystem,
        (offset, len): (u64, u64),
        done: u64,
    ) -> Result<Option<u64>, Errno> {
        let end = offset.saturating_add(len).div_ceil(PAGE as u64);
        let [_, free, ..] = fs.usage();
        if (end - (offset >> PAGE_BITS)).saturating_sub(self.pages.get()) > free {
            return Err(Errno::ENOSPC);
        }
        let first = (offset >> PAGE_BITS) + done;
        for index in first..end.min(first + TURN) {
            self.filled(fs, index)?;
        }
        Ok((end - first > TURN).then_some(done + TURN))
    }

    /// The end moves to `size` without anything being written (`fallocate`).
    pub fn extend(&self, fs: &Filesystem, size: u64) {
        self.clear_tail(fs, size);
        self.size.set(self.size.get().max(size));
    }

    /// The first byte at or behind `offset` that is (`data`) or is not in a hole; the end
    /// counts as a hole. `None` if `offset` is behind the end, or no data follows.
    #[must_use]
    pub fn seek(&self, offset: u64, data: bool) -> Option<u64> {
        let size = self.size.get();
        if offset >= size {
            return None;
        }
        let mut index = offset >> PAGE_BITS;
        let found = loop {
            if index << PAGE_BITS >= size {
                break None;
            }
            if self.frame(index).is_some() == data {
                break Some(index);
            }
            index = self.next_change(index);
        };
        match found {
            Some(index) => Some((index << PAGE_BITS).max(offset)),
            None if data => None,
            None => Some(size),
        }
    }

    /// A page behind `index`, as far as all between are like it for sure.
    fn next_change(&self, index: u64) -> u64 {
        if index < self.head.borrow().len() as u64 {
            return index + 1;
        }
        let chunks = self.chunks.borrow();
        if index < HEAD {
            let next = chunks.keys().next();
            return next.map_or(u64::MAX >> PAGE_BITS, |number| number * CHUNK);
        }
        if chunks.contains_key(&(index / CHUNK)) {
            return index + 1;
        }
        let next = chunks.range(index / CHUNK..).next();
        next.map_or(u64::MAX >> PAGE_BITS, |(number, _)| number * CHUNK)
    }
}
