//! Where the packets of a pipe end (`pipe2(O_DIRECT)`).

use alloc::collections::VecDeque;
use core::cell::RefCell;

use super::pipe::Pipe;
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::memory::PAGE;
use crate::room::Room;

/// A stretch of a pipe's bytes: how many, and whether they are a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    len: usize,
    is_packet: bool,
}

/// The stretches, the oldest first; none as long as no packet is among them.
#[derive(Default)]
pub(super) struct Packets(RefCell<VecDeque<Run>>);

impl Packets {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// How many stretches there are.
    pub(super) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// `len` bytes were written, behind `before` others.
    pub(super) fn wrote(&self, before: usize, len: usize, is_packet: bool) {
        let mut runs = self.0.borrow_mut();
        if len == 0 || runs.is_empty() && !is_packet {
            return;
        }
        if runs.is_empty() && before > 0 {
            runs.push_back(Run { len: before, is_packet: false });
        }
        match runs.back_mut() {
            Some(last) if !is_packet && !last.is_packet => last.len += len,
            _ => runs.push_back(Run { len, is_packet }),
        }
    }

    /// What a read can take at most, and whether the rest of that is lost.
    pub(super) fn first(&self) -> Option<(usize, bool)> {
        self.0.borrow().front().map(|run| (run.len, run.is_packet))
    }

    /// So many bytes are no longer there.
    pub(super) fn took(&self, mut len: usize) {
        let mut runs = self.0.borrow_mut();
        while let Some(first) = runs.front_mut().filter(|_| len > 0) {
            let part = first.len.min(len);
            (first.len, len) = (first.len - part, len - part);
            if first.len == 0 {
                runs.pop_front();
            }
        }
        if runs.iter().all(|run| !run.is_packet) {
            runs.clear();
        }
        runs.trim();
    }
}

impl Pipe {
    /// Writes up to `want` bytes, as no packet; how many.
    pub(super) fn fill(&self, source: &mut Source, want: usize) -> Result<usize, Errno> {
        let before = self.ring.len();
        let done = self.ring.fill(source, want)?;
        self.packets.wrote(before, done, false);
        Ok(done)
    }

    /// Takes bytes out, packets or not; how many.
    pub(super) fn drain(&self, sink: &mut Sink) -> Result<usize, Errno> {
        let count = self.ring.drain(sink, usize::MAX)?;
        self.packets.took(count);
        Ok(count)
    }

    /// The first `len` bytes go.
    pub(super) fn skip(&self, len: usize) {
        self.ring.skip(len);
        self.packets.took(len);
    }

    /// How many packets more there can be: as many as pages.
    pub(super) fn slots(&self) -> usize {
        (self.capacity() / PAGE).saturating_sub(self.packets.len())
    }

    /// Writes what there is room for in packets of at most a page; how much.
    pub(super) fn write_packets(&self, source: &mut Source) -> Result<usize, Errno> {
        let mut done = 0;
        while source.left() > 0 && self.slots() > 0 {
            let len = source.left().min(PAGE);
            if self.ring.room() < len {
                break;
            }
            let before = self.ring.len();
            let wrote = self.ring.fill(source, len)?;
            self.packets.wrote(before, wrote, true);
            done += wrote;
        }
        Ok(done)
    }

    /// Reads from a pipe in which there are packets: no more than one.
    pub(super) fn read_packet(&self, sink: &mut Sink) -> Result<usize, Errno> {
        let (len, is_packet) = self.packets.first().unwrap_or((usize::MAX, false));
        let count = self.ring.drain(sink, len)?;
        self.packets.took(count);
        if is_packet {
            self.skip(len - count);
        }
        self.can_write.wake_all();
        Ok(count)
    }
}
