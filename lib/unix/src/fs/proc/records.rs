//! Texts about much, as a process's areas, are made as they are read, a record for each, so nobody waits for all of a long one
//! (`docs/decisions/0128`). A read has whole records, as many as fit into a page, behind what the last one has left over: as
//! Linux's `seq_file`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;

use super::{Node, What, check_close_look, descriptors, subject};
use crate::account::Charge;
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::Sink;
use crate::memory::PAGE;
use crate::mm::AddressSpace;

/// Appends what there is to tell of the first area that ends above an address; where the next ones are.
pub(super) type Tell = fn(&Cx, &AddressSpace, u64, &mut Vec<u8>) -> Option<u64>;
/// The same of other things, which have numbers; 0 is before the first.
pub(super) type TellOfAll = fn(&Cx, u64, &mut Vec<u8>) -> Option<u64>;
/// The same, once it is known of what.
type Next<'a> = &'a dyn Fn(u64, &mut Vec<u8>) -> Option<u64>;

/// The part of a text that was made last.
pub(in crate::fs) struct Records {
    /// Where in the text it begins.
    from: u64,
    bytes: Vec<u8>,
    /// Where the next one comes from: areas that end above this, for instance.
    next: u64,
    /// For the bytes: what was left over, a page, and a record that did not fit.
    _charge: Charge,
}

impl Records {
    fn new(cx: &Cx) -> Result<Self, Errno> {
        Ok(Self { from: 0, bytes: Vec::new(), next: 0, _charge: cx.pay(3 * PAGE)? })
    }

    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// Begins at `offset`: how much of what is there then was left over. `None`: the text ends before that.
    fn go_to(&mut self, tell: Next, offset: u64) -> Option<usize> {
        if offset == 0 || offset < self.from {
            (self.from, self.next) = (0, 0);
            self.bytes.clear();
        }
        let mut is_left_over = true;
        while self.end() <= offset {
            self.from = self.end();
            self.bytes.clear();
            is_left_over = self.from != offset;
            if !self.add(tell) {
                return None;
            }
        }
        self.bytes.drain(..(offset - self.from) as usize);
        self.from = offset;
        Some(if is_left_over { self.bytes.len() } else { 0 })
    }

    /// Adds the next record; whether there was one.
    fn add(&mut self, tell: Next) -> bool {
        let next = tell(self.next, &mut self.bytes);
        next.inspect(|next| self.next = *next).is_some()
    }

    /// Adds records while there are fewer than `wanted` bytes, and fewer than `most` afterwards.
    fn fill(&mut self, tell: Next, (wanted, most): (usize, usize)) {
        while self.bytes.len() < wanted {
            let (len, next) = (self.bytes.len(), self.next);
            if !self.add(tell) {
                return;
            }
            if self.bytes.len() >= most {
                self.bytes.truncate(len);
                self.next = next;
                return;
            }
        }
    }
}

/// Whether an inode is such a text.
pub(in crate::fs) fn are_in(node: &Node) -> bool {
    matches!(node.what, What::Areas(..) | What::Records(_) | What::DescriptorInfo(..))
}

/// The part of a text that was made last, kept by who has opened it.
type Kept = RefCell<Option<Box<Records>>>;

/// Reads from one, of which `kept` was made last.
pub(in crate::fs) fn read(
    cx: &Cx,
    node: &Node,
    kept: &Kept,
    (sink, offset): (&mut Sink, u64),
) -> Result<usize, Stop> {
    let to = (sink, offset);
    match node.what {
        What::Areas(pid, tid, tell) => {
            let process = subject(cx, node, pid, tid)?.process;
            check_close_look(cx, &process)?;
            if process.ended.get().is_some() {
                return Ok(0);
            }
            let space = process.space();
            read_on(cx, &|from, text| tell(cx, &space, from, text), kept, to)
        }
        What::Records(tell) => read_on(cx, &|from, text| tell(cx, from, text), kept, to),
        What::DescriptorInfo(pid, fd) => {
            let open = descriptors::open_file(cx, pid, fd)?;
            let tell = |from, text: &mut _| descriptors::info(cx, (pid, fd), &open, from, text);
            read_on(cx, &tell, kept, to)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn read_on(
    cx: &Cx,
    tell: Next,
    kept: &Kept,
    (sink, offset): (&mut Sink, u64),
) -> Result<usize, Stop> {
    cx.check_heap(3 * PAGE)?;
    let mut records = match kept.take() {
        Some(records) => records,
        None => Box::new(Records::new(cx)?),
    };
    let mut result = Ok(0);
    if let Some(left_over) = records.go_to(tell, offset) {
        records.fill(tell, (sink.room(), left_over + PAGE));
        let len = records.bytes.len().min(sink.room());
        result = sink.put(&records.bytes[..len]);
    }
    kept.replace(Some(records));
    Ok(result?)
}
