//! Where the packets of a pipe end (`pipe2(O_DIRECT)`).

use alloc::collections::VecDeque;
use core::cell::RefCell;

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
    }
}
