//! `/proc/PID/mem`: a process's memory, for who may trace it, whatever the process itself may do
//! there. It stays that of the program that ran when it was opened: another one, which the process
//! runs later, may have more rights than who has opened it, and be made to write to its own memory.

use alloc::rc::Rc;

use super::{Node, Subject, What, subject};
use crate::call::{Cx, Stop};
use crate::errno::Errno;
use crate::file::{Sink, Source};
use crate::memory::PAGE;
use crate::mm::AddressSpace;
use crate::trace::attach::may_trace;
use crate::trace::memory;

/// The memory that an inode is, as long as its program runs.
fn space(cx: &Cx, node: &Node) -> Result<Option<Rc<AddressSpace>>, Errno> {
    let What::Memory(pid, tid) = node.what else { return Err(Errno::EINVAL) };
    let Subject { process, .. } = subject(cx, pid, tid)?;
    let own = Rc::ptr_eq(&process, cx.process);
    if !own && !may_trace(cx.process, &process) {
        return Err(Errno::EACCES);
    }
    let space = process.space();
    Ok((node.space == Some(space.serial())).then_some(space))
}

/// Whether an inode is a process's memory.
pub(in crate::fs) fn is_memory(node: &Node) -> bool {
    matches!(node.what, What::Memory(..))
}

/// Reads as much as there is from `offset` on.
pub(in crate::fs) fn read(
    cx: &Cx,
    node: &Node,
    sink: &mut Sink,
    offset: u64,
) -> Result<usize, Stop> {
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
