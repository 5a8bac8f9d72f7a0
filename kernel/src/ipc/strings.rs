//! Strings: copied once, straight from the sender's pages to the receiver's
//! (Liedtke 1993, 5.2.3). Where the paper maps the target temporarily into a
//! window, Baton walks both page tables and copies through the kernel's map of all
//! physical memory: with tagged TLBs the window would cost a flush, and with 64-bit
//! addresses the map is free (docs/decisions/0004).
//!
//! The sender's substrings, in order, fill the receiver's buffers, in order, no
//! piecewise match (X.2 4.5); rich messages, symmetric buffers (1993, 5.2.2).
//!
//! An item's header is read once, and the receiver is told of that: another thread of the sender's may
//! write its registers between two steps, or at any time from another processor.

use abi::{Acceptor, IpcErrorKind, StringItem, utcb};

use super::transfer::{Progress, Side};
use crate::arch::preemption;
use crate::mem::{Access, Resolved, Span};
use crate::space::SpaceRef;
use crate::thread::part::Cursor;
use crate::thread::{Kind, TcbRef};
use crate::usermem::{self, Utcb};

/// Bytes copied at most between two windows: bounds the time with interrupts off.
const CHUNK: u64 = 4096;
/// What a step costs besides the copy, in instructions, roughly.
const STEP_WORK: u32 = 350;

/// One bounded step of copying the string item at the transfer's position, whose header is `header`.
pub fn step(
    sender: TcbRef,
    receiver: TcbRef,
    header: StringItem,
) -> Result<Progress, IpcErrorKind> {
    let state = &sender.transfer;
    let cursor = &state.string;
    if receiver.kind.get() != Kind::User {
        return Err(IpcErrorKind::Overflow);
    }
    let target = Utcb::of(receiver).ok_or(IpcErrorKind::Overflow)?;
    if !Acceptor(target.br(0)).accepts_strings() {
        return Err(IpcErrorKind::Overflow);
    }
    if cursor.header.replace(Some(header)).is_none() {
        let next = state.next.get();
        cursor.from.set(next, 0, 0);
        target.set_mr(next, header.0);
    }
    if cursor.from.item.get() + 1 + header.substrings() > state.end.get() {
        return Err(IpcErrorKind::Overflow);
    }
    if cursor.from.is_past(header) {
        end_of_item(sender, target, header);
        return Ok(Progress::More { work: STEP_WORK });
    }
    let buffer = buffer_with_room(cursor, target)?;
    copy_chunk(sender, receiver, header, buffer)
}

/// The current item of the sender's string is exhausted: on to its continuation,
/// or to the next string and the next buffer.
fn end_of_item(sender: TcbRef, target: Utcb, header: StringItem) {
    let state = &sender.transfer;
    state.next.set(state.next.get() + 1 + header.substrings());
    state.string.header.set(None);
    if !header.is_continued() {
        skip_buffer(&state.string, target);
    }
}

/// Skips the rest of the current receive buffer, all its continued parts included.
fn skip_buffer(cursor: &Cursor, target: Utcb) {
    let first = cursor.buffer.get();
    if first >= utcb::BRS {
        return;
    }
    let mut next = cursor.to.item.get();
    let mut continued = true;
    while continued && next < utcb::BRS {
        let header = StringItem(target.br(next));
        next += 1 + header.substrings();
        continued = header.is_continued();
    }
    // Behind the last buffer there is none: past the registers marks that.
    let more = StringItem(target.br(first)).has_more();
    cursor.begin_buffer(if more { next } else { utcb::BRS });
}

/// The header of the buffer part that has room; overflow if the buffer is used up.
fn buffer_with_room(cursor: &Cursor, target: Utcb) -> Result<StringItem, IpcErrorKind> {
    loop {
        let item = cursor.to.item.get();
        let header = StringItem(target.br(item));
        if item + header.substrings() >= utcb::BRS {
            return Err(IpcErrorKind::Overflow);
        }
        if !cursor.to.is_past(header) {
            return Ok(header);
        }
        if !header.is_continued() {
            return Err(IpcErrorKind::Overflow);
        }
        cursor.to.set(item + 1 + header.substrings(), 0, 0);
    }
}

fn copy_chunk(
    sender: TcbRef,
    receiver: TcbRef,
    header: StringItem,
    buffer: StringItem,
) -> Result<Progress, IpcErrorKind> {
    let state = &sender.transfer;
    let (from, to) = (&state.string.from, &state.string.to);
    let (Some(source), Some(target)) = (Utcb::of(sender), Utcb::of(receiver)) else {
        return Err(IpcErrorKind::Overflow);
    };
    let (Some(from_space), Some(to_space)) = (sender.space(), receiver.space()) else {
        return Err(IpcErrorKind::Overflow);
    };
    let from_address =
        source.mr(from.item.get() + 1 + from.sub.get()).wrapping_add(from.byte.get());
    let to_address = target.br(to.item.get() + 1 + to.sub.get()).wrapping_add(to.byte.get());
    let outside = |address: u64| address >= abi::layout::USER_END;
    if outside(from_address) || outside(to_address) {
        return Err(IpcErrorKind::Overflow);
    }
    // Saturating: the buffer's header is the receiver's, who may change it meanwhile.
    let room = (header.len().saturating_sub(from.byte.get()))
        .min(buffer.len().saturating_sub(to.byte.get()));
    let (read, write) = ((from_space, from_address), (to_space, to_address));
    let count = copy_run(read, write, room);
    if count == 0 && room != 0 {
        return nothing_to_copy(read, write);
    }
    from.advance(header, count);
    to.advance(buffer, count);
    state.bytes.set(state.bytes.get() + count);
    if from.is_past(header) {
        end_of_item(sender, target, header);
    }
    Ok(Progress::More { work: STEP_WORK + count.min(CHUNK) as u32 / 8 })
}

/// Copies up to `room` bytes, as long as the pages are there and no interrupt comes; how many.
fn copy_run(
    (from_space, from): (SpaceRef, u64),
    (to_space, to): (SpaceRef, u64),
    room: u64,
) -> u64 {
    let mut done = 0;
    // What is left of the pages at which the copy is. They stay: interrupts are only noted.
    let (mut read, mut write) = (Span::NONE, Span::NONE);
    while done < room {
        if !is_there(&mut read, from_space, from + done, Access::Read)
            || !is_there(&mut write, to_space, to + done, Access::Write)
        {
            break;
        }
        done += usermem::copy(&mut write, &mut read, (room - done).min(CHUNK));
        if done < room && preemption::must_stop() {
            break;
        }
    }
    done
}

/// Looks the page at `address` up, if nothing is left of `span`; whether there is one of memory.
#[inline(always)]
fn is_there(span: &mut Span, space: SpaceRef, address: u64, access: Access) -> bool {
    if span.left() != 0 {
        return true;
    }
    let Some(found) = space.resolve(address, access).and_then(Resolved::memory) else {
        return false;
    };
    *span = found;
    true
}

/// Why nothing could be copied.
#[cold]
fn nothing_to_copy(
    (from_space, from): (SpaceRef, u64),
    (to_space, to): (SpaceRef, u64),
) -> Result<Progress, IpcErrorKind> {
    // The two have just met, and a message to a pager is likely to follow: too much for one stretch.
    preemption::let_in();
    if from_space.resolve(from, Access::Read).is_none() {
        return Ok(Progress::Fault { address: from, access: Access::Read, side: Side::Sender });
    }
    if to_space.resolve(to, Access::Write).is_none() {
        return Ok(Progress::Fault { address: to, access: Access::Write, side: Side::Receiver });
    }
    // Device registers are not a string; and the kernel may have no map of them.
    Err(IpcErrorKind::Overflow)
}
