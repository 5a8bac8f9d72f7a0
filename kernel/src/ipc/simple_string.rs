//! The usual long message: one simple string of at most 4 KiB, both buffers present.
//! Copied at the rendezvous, without the state of a transfer; whatever is unusual takes
//! `strings`, which this must not differ from.

use abi::{Acceptor, StringItem};

use crate::mem::{Access, Span};
use crate::space::SpaceRef;
use crate::thread::TcbRef;
use crate::usermem::{self, Utcb};

/// Longest string, bytes: bounds the time with interrupts off.
const LONGEST: u64 = 4096;
/// Type, continuation and number of substrings: all zero in a simple string item.
pub const NOT_SIMPLE: u64 = 0x3F8;

/// No item of a simple string that is not too long is larger: the length is above all other bits.
pub const LONGEST_ITEM: u64 = StringItem::simple(0, LONGEST)[0] | 0x3FF;

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

/// The same for the fast path, which has the item in registers: whether the string has arrived; the rest of the
/// message has not.
pub extern "C" fn copy_at_once(
    sender: TcbRef,
    receiver: TcbRef,
    string: StringItem,
    address: u64,
) -> bool {
    copy(sender, receiver, string, address).is_some()
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
    let mut write = receiver.space()?.resolve(target.br(2), Access::Write)?.memory()?;
    if len > write.left() {
        return None;
    }
    let mut read = sender.space()?.resolve(address, Access::Read)?.memory()?;
    if len > read.left() {
        return None;
    }
    // POINT OF NO RETURN
    usermem::copy(&mut write, &mut read, len);
    Some(target)
}

/// Across the border of a page, on one side or on both.
#[inline(never)]
fn across(sender: TcbRef, receiver: TcbRef, string: StringItem, address: u64) -> Option<Utcb> {
    let (target, mut len) = (usual(receiver, string)?, string.len());
    let mut to = Place::new(receiver.space()?, target.br(2), Access::Write, len)?;
    let mut from = Place::new(sender.space()?, address, Access::Read, len)?;
    // POINT OF NO RETURN
    loop {
        len -= usermem::copy(&mut to.here, &mut from.here, len);
        if len == 0 {
            return Some(target);
        }
        from.turn();
        to.turn();
    }
}

/// Where a copy is, and where the next page is.
struct Place {
    here: Span,
    next: Span,
}

impl Place {
    /// The memory of `space` at `address`; `len` bytes of it, in two pages at most, are there.
    #[inline(always)]
    fn new(space: SpaceRef, address: u64, access: Access, len: u64) -> Option<Self> {
        let resolve = |at| space.resolve(at, access)?.memory();
        let here = resolve(address)?;
        let next = if len > here.left() { resolve(address + here.left())? } else { Span::NONE };
        Some(Self { here, next })
    }

    /// To the next page at the end of this one.
    #[inline(always)]
    fn turn(&mut self) {
        if self.here.left() == 0 {
            self.here = self.next;
        }
    }
}
