//! `/proc/PID/mem`: a process's memory, for who may trace it, whatever the process itself may do
//! there; and `/proc/PID/pagemap`: which pages of it are there. Both stay those of the program that
//! ran when they were opened: another one, which the process runs later, may have more rights than who has
//! opened them, and be made to write to its own memory.

use alloc::rc::Rc;

use linux_raw_sys::general::CAP_SYS_ADMIN;
use zerocopy::IntoBytes;

use super::{Node, Subject, What, subject};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::memory::{FrameId, PAGE};
use crate::mm::{AddressSpace, USER_END};
use crate::trace::attach::may_trace;
use crate::trace::memory;

/// The memory that an inode is, as long as its program runs.
fn space(cx: &Cx, node: &Node) -> Result<Option<Rc<AddressSpace>>, Errno> {
    let (What::Memory(pid, tid) | What::Pages(pid, tid)) = node.what else {
        return Err(Errno::EINVAL);
    };
    let Subject { process, .. } = subject(cx, node, pid, tid)?;
    let own = Rc::ptr_eq(&process, cx.process);
    if !own && !may_trace(cx.process, &process) {
        return Err(Errno::EACCES);
    }
    let space = process.space();
    Ok((node.space == Some(space.serial())).then_some(space))
}

/// Whether an inode is a process's memory, or says what of it is there.
pub(in crate::fs) fn is_memory(node: &Node) -> bool {
    matches!(node.what, What::Memory(..) | What::Pages(..))
}

/// Reads from either.
pub(in crate::fs) fn read(
    cx: &Cx,
    node: &Node,
    sink: &mut Sink,
    offset: u64,
) -> Result<usize, Stop> {
    match node.what {
        What::Pages(..) => read_pages(cx, node, sink, offset),
        _ => read_memory(cx, node, sink, offset),
    }
}

/// Bits of a word of `pagemap`: its only owner has it; it is shared, or a file's; it is there.
const ALONE: u64 = 1 << 56;
const SHARED: u64 = 1 << 61;
const PRESENT: u64 = 1 << 63;
/// Bytes of a word.
const WORD: u64 = size_of::<u64>() as u64;
/// Words made at a time, and words read in one call.
const WORDS: u64 = 64;
const WORDS_MAX: u64 = 64 * 1024;

/// Reads words of `pagemap`, one for each page; frames' numbers are for who may do anything.
fn read_pages(cx: &Cx, node: &Node, sink: &mut Sink, offset: u64) -> Result<usize, Stop> {
    if !offset.is_multiple_of(WORD) || !(sink.room() as u64).is_multiple_of(WORD) {
        return Err(Errno::EINVAL.into());
    }
    let Some(space) = space(cx, node)? else { return Ok(0) };
    let numbers = cx.process.credentials.borrow().may(CAP_SYS_ADMIN);
    let word = |frame: FrameId, shared: bool| {
        let alone = if cx.unix.memory.count(frame) <= 1 { ALONE } else { 0 };
        let number = if numbers { frame.0.into() } else { 0 };
        PRESENT | alone | if shared { SHARED } else { 0 } | number
    };
    let start = offset / WORD;
    let room = (sink.room() as u64 / WORD).min(WORDS_MAX);
    let last = (USER_END / PAGE as u64).min(start + room);
    let mut done = 0;
    loop {
        let first = start + done as u64 / WORD;
        let end = last.min(first + WORDS);
        if first >= end {
            break;
        }
        let mut words = [0; WORDS as usize];
        space.each_page(first * PAGE as u64, end * PAGE as u64, |address, frame, shared| {
            let at = (address / PAGE as u64).wrapping_sub(first) as usize;
            if let Some(place) = words.get_mut(at) {
                *place = word(frame, shared);
            }
        });
        let bytes = words.as_bytes().get(..((end - first) * WORD) as usize).unwrap_or_default();
        let put = sink.put(bytes)?;
        done += put;
        if put < bytes.len() {
            break;
        }
    }
    Ok(done)
}

/// Reads as much as there is from `offset` on.
fn read_memory(cx: &Cx, node: &Node, sink: &mut Sink, offset: u64) -> Result<usize, Stop> {
    let Some(space) = space(cx, node)? else { return Ok(0) };
    let mut page = [0; PAGE];
    let mut done = 0;
    loop {
        let at = offset.wrapping_add(done as u64);
        let got = memory::read_some(cx.unix, &space, at, &mut page);
        if got == 0 && done == 0 {
            return Err(Errno::EIO.into());
        }
        let put = sink.put(&page[..got])?;
        done += put;
        if put < PAGE {
            break;
        }
    }
    Ok(done)
}

/// Writes as much as can be.
pub(super) fn write(cx: &Cx, node: &Node, source: &mut Source, offset: u64) -> Result<usize, Stop> {
    let Some(space) = space(cx, node)? else { return Ok(0) };
    let mut page = [0; PAGE];
    let mut done = 0;
    while source.left() > 0 {
        let len = source.take(&mut page)?;
        let at = offset.wrapping_add(done as u64);
        let put = memory::write_some(cx.unix, &space, at, &page[..len]);
        if put == 0 && done == 0 {
            return Err(Errno::EIO.into());
        }
        done += put;
        if put < len {
            break;
        }
    }
    Ok(done)
}
