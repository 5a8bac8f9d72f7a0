//! Loading: the segments of a program and of its interpreter into a new address space.

use alloc::rc::Rc;

use super::elf::{Elf, Segment};
use super::image::Image;
use super::placement::Placement;
use crate::errno::Errno;
use crate::machine::Access;
use crate::mm::area::{Area, AreaFlags, Backing};
use crate::mm::space::Layout;
use crate::mm::{AddressSpace, PAGE, USER_END, page_of, page_up};
use crate::unix::Unix;

/// Where programs that can be anywhere go: two thirds of the address space, as on Linux.
pub const DYNAMIC_BASE: u64 = 0x5555_5555_4000;

/// What is added to the addresses in a file: where it goes in `space`.
///
/// # Errors
/// `ENOMEM` if there is no room.
pub fn bias(
    space: &AddressSpace,
    elf: &Elf,
    has_interpreter: bool,
    placement: &Placement,
) -> Result<u64, Errno> {
    if !elf.moves() {
        return Ok(0);
    }
    let align = elf.align();
    let base = match has_interpreter {
        true => (DYNAMIC_BASE + placement.program) & !(align - 1),
        false => {
            let room = elf.len().checked_add(align - PAGE).ok_or(Errno::ENOMEM)?;
            let start = space.free_range(room, None, false).ok_or(Errno::ENOMEM)?;
            start.next_multiple_of(align)
        }
    };
    if base.checked_add(elf.len()).is_none_or(|end| end > USER_END) {
        return Err(Errno::ENOMEM);
    }
    Ok(base.wrapping_sub(elf.start()))
}

/// Maps all segments of `elf`.
///
/// # Errors
/// `ENOMEM`.
pub fn map(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    image: &Image,
    elf: &Elf,
    bias: u64,
) -> Result<(), Errno> {
    for segment in &elf.loads {
        map_segment(unix, space, image, segment, segment.address.wrapping_add(bias))?;
    }
    if let Some(regular) = image.inode.regular() {
        regular.mapped(space);
    }
    Ok(())
}

/// Maps a segment to `address`: pages of the file, then zeroes.
fn map_segment(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    image: &Image,
    segment: &Segment,
    address: u64,
) -> Result<(), Errno> {
    let access = segment.access();
    let start = page_of(address);
    let file_end = address + segment.file_len;
    let end = page_up(address + segment.len).ok_or(Errno::ENOEXEC)?;
    let middle = if segment.file_len == 0 { start } else { page_up(file_end).unwrap_or(end) };
    space.unmap(unix, start, end);
    if middle > start {
        space.add_area(Area {
            start,
            end: middle,
            access,
            may: Access::all(),
            flags: AreaFlags::empty(),
            backing: Backing::File { open: image.open.clone(), inode: image.inode.clone() },
            offset: page_of(segment.offset),
        });
    }
    if end > middle {
        space.add_anonymous(middle, end, access, AreaFlags::empty());
    }
    let clear =
        !file_end.is_multiple_of(PAGE) && segment.len > segment.file_len && segment.file_len != 0;
    if clear && access.contains(Access::WRITE) && file_end - 1 < address + image.inode.size() {
        let offset = (file_end % PAGE) as usize;
        match space.frame_for(unix, page_of(file_end), true) {
            Ok(frame) => unix.memory.zero(frame, offset, PAGE as usize - offset),
            Err(Errno::ENOMEM) => return Err(Errno::ENOMEM),
            // The file ends before its segment does: the program gets SIGBUS there.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Where code, data and heap of a loaded program are.
#[must_use]
pub fn layout(elf: &Elf, bias: u64, has_interpreter: bool, placement: &Placement) -> Layout {
    let part = |wanted: Access| {
        let mut range = (u64::MAX, 0);
        for load in elf.loads.iter().filter(|load| load.access().contains(wanted)) {
            let start = load.address.wrapping_add(bias);
            range = (range.0.min(start), range.1.max(start + load.file_len));
        }
        if range.1 == 0 { (0, 0) } else { range }
    };
    let heap = match elf.moves() && !has_interpreter {
        true => DYNAMIC_BASE,
        false => elf.end().wrapping_add(bias),
    };
    let heap = match placement.heap {
        0 => heap,
        shift => page_up(heap).unwrap_or(heap) + shift,
    };
    Layout {
        code: part(Access::EXECUTE),
        data: part(Access::WRITE),
        heap: (heap, heap),
        ..Layout::default()
    }
}
