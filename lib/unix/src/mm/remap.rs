//! `mremap`: growing, shrinking and moving areas.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::area::{AREAS_MAX, Area, AreaFlags, Backing};
use super::map::{may_grow, may_lock, note_mapper};
use super::pages::Page;
use super::space::SPACE_BYTES;
use super::{AddressSpace, PAGE, USER_END, USER_START, page_up, range_end};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::machine::Access;
use crate::unix::Unix;

pub(super) const MREMAP: Entry = full(linux::__NR_mremap, "mremap", mremap);

/// What is asked for, lengths rounded.
struct Request {
    from: u64,
    old_len: u64,
    new_len: u64,
    flags: u32,
    to: u64,
}

impl Request {
    fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// What a shorter new length leaves over of the old range, which is unmapped.
    ///
    /// # Errors
    /// `EINVAL` if not all of that can belong to a program.
    fn rest(&self) -> Result<Option<(u64, u64)>, Errno> {
        if self.new_len >= self.old_len {
            return Ok(None);
        }
        let start = self.from.checked_add(self.new_len).ok_or(Errno::EINVAL)?;
        let end = range_end(start, self.old_len - self.new_len).ok_or(Errno::EINVAL)?;
        Ok(Some((start, end)))
    }
}

fn mremap(cx: &Cx) -> Answer {
    let flags = cx.uint(3);
    let known = linux::MREMAP_FIXED | linux::MREMAP_MAYMOVE | linux::MREMAP_DONTUNMAP;
    let may_move = flags & linux::MREMAP_MAYMOVE != 0;
    let keeps = flags & linux::MREMAP_DONTUNMAP != 0;
    let (old_len, new_len) = (page_up(cx.arg(1)), page_up(cx.arg(2)));
    let (Some(old_len), Some(new_len)) = (old_len, new_len) else {
        return Err(Errno::EINVAL.into());
    };
    if flags & !known != 0
        || flags & linux::MREMAP_FIXED != 0 && !may_move
        || keeps && (!may_move || old_len != new_len)
        || !cx.arg(0).is_multiple_of(PAGE)
        || new_len == 0
    {
        return Err(Errno::EINVAL.into());
    }
    let request = Request { from: cx.arg(0), old_len, new_len, flags, to: cx.arg(4) };
    let space = cx.process.space();
    space.make_room()?;
    let area = space.areas.borrow().at(request.from).cloned().ok_or(Errno::EFAULT)?;
    if area.flags.contains(AreaFlags::SPECIAL) && old_len != new_len {
        return Err(Errno::EFAULT.into());
    }
    if request.has(linux::MREMAP_FIXED | linux::MREMAP_DONTUNMAP) {
        return Ok(remap_to(cx, &space, &request)?);
    }
    if new_len <= old_len {
        if let Some((start, end)) = request.rest()? {
            space.unmap(cx.unix, start, end);
        }
        return Ok(request.from);
    }
    may_resize(cx, &space, &area, &request)?;
    if old_len == area.end - request.from && space.extends(&area, new_len - old_len) {
        space.extend(cx.unix, &area, new_len - old_len);
        return Ok(request.from);
    }
    if !may_move {
        return Err(Errno::ENOMEM.into());
    }
    let to = space.free_range(new_len, None, false).ok_or(Errno::ENOMEM)?;
    Ok(relocate(cx, &space, &request, to)?)
}

/// `MREMAP_FIXED` and `MREMAP_DONTUNMAP`.
fn remap_to(cx: &Cx, space: &Rc<AddressSpace>, request: &Request) -> Result<u64, Errno> {
    let Request { from, old_len, new_len, to, .. } = *request;
    if to % PAGE != 0 || new_len > USER_END || to > USER_END - new_len {
        return Err(Errno::EINVAL);
    }
    if from.saturating_add(old_len) > to && to + new_len > from {
        return Err(Errno::EINVAL);
    }
    if space.areas.borrow().list().len() + 4 > AREAS_MAX {
        return Err(Errno::ENOMEM);
    }
    let rest = request.rest()?;
    let fixed = request.has(linux::MREMAP_FIXED);
    if fixed {
        if to < USER_START {
            return Err(Errno::EPERM);
        }
        space.unmap(cx.unix, to, to + new_len);
    }
    if let Some((start, end)) = rest {
        space.unmap(cx.unix, start, end);
    }
    let old_len = old_len.min(new_len);
    let area = space.areas.borrow().at(from).cloned().ok_or(Errno::EFAULT)?;
    let request = Request { old_len, ..*request };
    may_resize(cx, space, &area, &request)?;
    let to = match fixed {
        true => to,
        false => {
            let hint = (to != 0).then_some(to);
            space.free_range(new_len, hint, false).ok_or(Errno::ENOMEM)?
        }
    };
    relocate(cx, space, &request, to)
}

/// Linux's `vma_to_resize`: whether the area can have the new length.
fn may_resize(cx: &Cx, space: &AddressSpace, area: &Area, request: &Request) -> Result<(), Errno> {
    let Request { from, old_len, new_len, .. } = *request;
    if old_len == 0 && !area.flags.contains(AreaFlags::SHARED) {
        return Err(Errno::EINVAL);
    }
    if request.has(linux::MREMAP_DONTUNMAP) && area.flags.contains(AreaFlags::SPECIAL) {
        return Err(Errno::EINVAL);
    }
    if old_len > area.end - from {
        return Err(Errno::EFAULT);
    }
    if new_len == old_len {
        return Ok(());
    }
    if area.offset_at(from).checked_add(new_len).is_none() {
        return Err(Errno::EINVAL);
    }
    let more = new_len.saturating_sub(old_len);
    if area.flags.contains(AreaFlags::LOCKED) && !may_lock(cx, space, more) {
        return Err(Errno::EAGAIN);
    }
    if area.is_data() && more / PAGE > cx.unix.memory.total() as u64 {
        return Err(Errno::ENOMEM);
    }
    may_grow(cx, space, more, area.is_data())
}

/// Moves the pages and the area to `to`.
fn relocate(cx: &Cx, space: &Rc<AddressSpace>, request: &Request, to: u64) -> Result<u64, Errno> {
    let Request { from, old_len, new_len, .. } = *request;
    if to.checked_add(new_len).is_none_or(|end| end > USER_END) {
        return Err(Errno::ENOMEM);
    }
    let mut area = space.areas.borrow().at(from).cloned().ok_or(Errno::EFAULT)?;
    area.offset = area.offset_at(from);
    (area.start, area.end) = (to, to + new_len);
    let populate = area.flags.contains(AreaFlags::LOCKED) && new_len > old_len;
    space.move_pages(cx.unix, from, old_len.min(new_len), to)?;
    if old_len != 0 && !request.has(linux::MREMAP_DONTUNMAP) {
        space.unmap(cx.unix, from, from + old_len);
    } else if old_len != 0 {
        let unlock = |area: &mut Area| area.flags.remove(AreaFlags::LOCKED);
        space.areas.borrow_mut().change(from, from + old_len, unlock);
    }
    if let Backing::File { inode, .. } = &area.backing {
        note_mapper(inode, space);
    }
    let access = area.access;
    space.add_area(area);
    if populate {
        space.populate_some(cx.unix, to + old_len, to + new_len, access);
    }
    Ok(to)
}

impl AddressSpace {
    /// Whether `more` bytes behind `area` are free.
    fn extends(&self, area: &Area, more: u64) -> bool {
        area.end.checked_add(more).is_some_and(|end| {
            end <= USER_END && self.areas.borrow().gap_above(area.end, more) == Some(area.end)
        })
    }

    /// Lets `area` end `more` bytes later.
    fn extend(&self, unix: &Unix, area: &Area, more: u64) {
        let mut tail = area.clone();
        tail.offset = area.offset_at(area.end);
        (tail.start, tail.end) = (area.end, area.end + more);
        let locked = tail.flags.contains(AreaFlags::LOCKED);
        self.add_area(tail);
        if locked {
            self.populate_some(unix, area.end, area.end + more, area.access);
        }
    }

    /// Moves pages to where nothing is.
    ///
    /// # Errors
    /// `ENOMEM`: none has moved.
    fn move_pages(&self, unix: &Unix, from: u64, len: u64, to: u64) -> Result<(), Errno> {
        let (mut moved, mut mapped) = (Vec::new(), Vec::new());
        let mut pages = self.pages.borrow_mut();
        let areas = self.areas.borrow().bytes_taken();
        self.charge.grow(pages.reserve(from, from + len)?)?;
        pages.remove(from, from + len, |address, page| {
            if page.has(Page::MAPPED) {
                mapped.push(page.frame());
            }
            moved.push((address, page));
        });
        for (address, page) in moved {
            let page = page.without(Page::MAPPED | Page::MAPPED_WRITE);
            // There is room for it.
            let _ = pages.insert(address - from + to, page, |_| Ok(()));
        }
        self.charge.set(SPACE_BYTES + areas + pages.bytes());
        drop(pages);
        if !mapped.is_empty() {
            unix.machine.revoke(&mapped, Access::all());
        }
        Ok(())
    }
}
