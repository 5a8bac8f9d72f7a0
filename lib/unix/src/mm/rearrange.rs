//! `remap_file_pages`: other pages of a file where some are mapped, as a mapping of its own.

use linux_raw_sys::general as linux;

use super::area::{AREAS_MAX, Area, AreaFlags, Backing};
use super::{AddressSpace, PAGE, page_of};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;

pub(super) const REMAP_FILE_PAGES: Entry =
    full(linux::__NR_remap_file_pages, "remap_file_pages", remap_file_pages);

/// `remap_file_pages(address, size, 0, page, flags)`.
fn remap_file_pages(cx: &Cx) -> Answer {
    let (start, len) = (page_of(cx.arg(0)), page_of(cx.arg(1)));
    let offset = cx.arg(3).checked_mul(PAGE).filter(|offset| offset.checked_add(len).is_some());
    let end = start.checked_add(len).filter(|end| *end > start);
    let (Some(end), Some(offset), 0) = (end, offset, cx.arg(2)) else {
        return Err(Errno::EINVAL.into());
    };
    let space = cx.process.space();
    let mut area = shared_over(&space, start, end).ok_or(Errno::EINVAL)?;
    let fits = match &area.backing {
        Backing::Shared(memory) if memory.is_removed() => return Err(Errno::EIDRM.into()),
        Backing::Shared(memory) => offset + len <= memory.bytes(),
        _ => offset + len <= i64::MAX as u64,
    };
    if !fits {
        return Err(Errno::EINVAL.into());
    }
    if space.area_count() >= AREAS_MAX {
        return Err(Errno::ENOMEM.into());
    }
    space.make_room()?;
    (area.start, area.end, area.offset) = (start, end, offset);
    let access = area.access;
    space.unmap(cx.unix, start, end);
    space.add_area(area);
    if cx.uint(4) & linux::MAP_NONBLOCK == 0 {
        space.populate_some(cx.unix, start, end, access);
    }
    Ok(0)
}

/// The shared mapping of one file that is all over a range, whatever pages it shows.
fn shared_over(space: &AddressSpace, start: u64, end: u64) -> Option<Area> {
    let areas = space.areas.borrow();
    let first = areas.at(start)?.clone();
    let mut reached = first.end;
    for area in areas.within(start, end) {
        let is_alike = area.backing.same(&first.backing) && area.access == first.access;
        if area.start > reached || !is_alike {
            return None;
        }
        reached = area.end;
    }
    let kind = matches!(first.backing, Backing::Shared(_) | Backing::File { .. });
    let shared = first.flags.contains(AreaFlags::SHARED) && kind;
    (shared && reached >= end).then_some(first)
}
