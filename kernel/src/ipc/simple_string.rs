//! The usual long message: one simple string of at most a page, both buffers present
//! and inside one page each. Copied at the rendezvous, without the state of a transfer;
//! whatever is unusual takes `strings`, which this must not differ from.

use abi::{Acceptor, StringItem};

use crate::arch::TcbRef;
use crate::usermem::{self, Utcb};

/// Longest string, bytes: bounds the time with interrupts off.
const LONGEST: u64 = 4096;
/// Type, continuation and number of substrings: all zero in a simple string item.
const NOT_SIMPLE: u64 = 0x3F8;

/// Copies what the string item `string` describes, which begins at `address`, to the receiver's
/// first buffer, if all is usual; `false`, and nothing has changed, otherwise.
#[must_use]
#[inline(never)]
pub fn copy(sender: TcbRef, receiver: TcbRef, string: StringItem, address: u64) -> bool {
    try_copy(sender, receiver, string, address).is_some()
}

#[inline(always)]
fn try_copy(sender: TcbRef, receiver: TcbRef, string: StringItem, address: u64) -> Option<()> {
    let target = Utcb::of(receiver)?;
    let (buffer, len) = (StringItem(target.br(1)), string.len());
    let simple = (string.0 | buffer.0) & NOT_SIMPLE == 0 && len != 0;
    let fits = len <= LONGEST && len <= buffer.len();
    if !simple || !fits || !Acceptor(target.br(0)).accepts_strings() {
        return None;
    }
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
    Some(())
}
