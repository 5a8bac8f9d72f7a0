//! Memory of a traced process: read and written whatever its program may do with it.

use alloc::rc::Rc;

use crate::errno::Errno;
use crate::memory::PAGE;
use crate::mm::AddressSpace;
use crate::unix::Unix;

/// Calls `each(frame, offset, done, len)` for the pieces of a range as long as they are there; how
/// many bytes were done.
fn pieces(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    (address, len): (u64, usize),
    write: bool,
    mut each: impl FnMut(crate::memory::FrameId, usize, usize, usize),
) -> usize {
    let mut done = 0;
    while done < len {
        let at = address.wrapping_add(done as u64);
        let offset = at as usize % PAGE;
        let piece = (PAGE - offset).min(len - done);
        let Ok(frame) = space.frame_for_tracer(unix, at - offset as u64, write) else { break };
        each(frame, offset, done, piece);
        done += piece;
    }
    done
}

/// Reads as much as there is; how much.
pub(crate) fn read_some(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    address: u64,
    to: &mut [u8],
) -> usize {
    pieces(unix, space, (address, to.len()), false, |frame, offset, done, len| {
        unix.memory.read(frame, offset, &mut to[done..done + len]);
    })
}

/// Writes as much as can be; how much. What others share is copied first.
pub(crate) fn write_some(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    address: u64,
    from: &[u8],
) -> usize {
    pieces(unix, space, (address, from.len()), true, |frame, offset, done, len| {
        unix.memory.write(frame, offset, &from[done..done + len]);
    })
}

/// A word.
///
/// # Errors
/// `EIO` if it is not there.
pub(super) fn read_word(unix: &Unix, space: &Rc<AddressSpace>, address: u64) -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    let done = read_some(unix, space, address, &mut bytes);
    if done == bytes.len() { Ok(u64::from_le_bytes(bytes)) } else { Err(Errno::EIO) }
}

/// Sets it.
///
/// # Errors
/// `EIO` if it is not there, or is shared with others who would see it.
pub(super) fn write_word(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    address: u64,
    word: u64,
) -> Result<(), Errno> {
    let done = write_some(unix, space, address, &word.to_le_bytes());
    if done == 8 { Ok(()) } else { Err(Errno::EIO) }
}
