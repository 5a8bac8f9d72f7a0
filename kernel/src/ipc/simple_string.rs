//! The usual long message: one simple string of at most 4 KiB, both buffers present.
//! Copied at the rendezvous, without the state of a transfer; whatever is unusual takes
//! `strings`, which this must not differ from.

use abi::{Acceptor, StringItem};

use crate::arch::TcbRef;
use crate::space::SpaceRef;
use crate::usermem::{self, Utcb};

/// Longest string, bytes: bounds the time with interrupts off.
const LONGEST: u64 = 4096;
/// Type, continuation and number of substrings: all zero in a simple string item.
const NOT_SIMPLE: u64 = 0x3F8;

/// Copies what the string item `string` describes, which begins at `address`, to the receiver's
/// first buffer, if all is usual, and says where the receiver's registers are; otherwise
/// nothing has changed.
#[inline(always)]
pub fn copy(sender: TcbRef, receiver: TcbRef, string: StringItem, address: u64) -> Option<Utcb> {
    match in_a_page(sender, receiver, string, address) {
        None => across(sender, receiver, string, address),
        done => done,
    }
}

/// The receiver's UTCB, if it has a simple buffer with room for a simple `string`.
#[inline(always)]
fn usual(receiver: TcbRef, string: StringItem) -> Option<Utcb> {
    let target = Utcb::of(receiver)?;
    let (buffer, len) = (StringItem(target.br(1)), string.len());
    let simple = (string.0 | buffer.0) & NOT_SIMPLE == 0 && len != 0;
    let fits = len <= LONGEST && len <= buffer.len();
    (simple && fits && Acceptor(target.br(0)).accepts_strings()).then_some(target)
}

#[inline(always)]
fn in_a_page(sender: TcbRef, receiver: TcbRef, string: StringItem, address: u64) -> Option<Utcb> {
    let (target, len) = (usual(receiver, string)?, string.len());
    let write = receiver.space()?.resolve(target.br(2), true)?;
    if len > write.bytes_left_in_page || write.is_device {
        return None;
    }
    let read = sender.space()?.resolve(address, false)?;
    if len > read.bytes_left_in_page || read.is_device {
        return None;
    }
    // POINT OF NO RETURN
    usermem::copy_phys(write.phys, read.phys, len as usize);
    Some(target)
}

/// Across the border of a page, on one side or on both.
#[inline(never)]
fn across(sender: TcbRef, receiver: TcbRef, string: StringItem, address: u64) -> Option<Utcb> {
    let (target, mut len) = (usual(receiver, string)?, string.len());
    let mut to = Place::new(receiver.space()?, target.br(2), true, len)?;
    let mut from = Place::new(sender.space()?, address, false, len)?;
    // POINT OF NO RETURN
    loop {
        let count = len.min(from.left).min(to.left);
        usermem::copy_phys(to.phys, from.phys, count as usize);
        len -= count;
        if len == 0 {
            return Some(target);
        }
        from.skip(count);
        to.skip(count);
    }
}

/// Where a copy is, how far the page goes there, and where the next page is.
struct Place {
    phys: u64,
    left: u64,
    next: u64,
}

impl Place {
    /// The memory of `space` at `address`; `len` bytes of it, in two pages at most, are there.
    #[inline(always)]
    fn new(space: SpaceRef, address: u64, writes: bool, len: u64) -> Option<Self> {
        let resolve = |at| space.resolve(at, writes).filter(|page| !page.is_device);
        let page = resolve(address)?;
        let left = page.bytes_left_in_page;
        let next = if len > left { resolve(address + left)?.phys } else { 0 };
        Some(Self { phys: page.phys, left, next })
    }

    #[inline(always)]
    fn skip(&mut self, count: u64) {
        self.phys += count;
        self.left -= count;
        if self.left == 0 {
            (self.phys, self.left) = (self.next, LONGEST);
        }
    }
}
