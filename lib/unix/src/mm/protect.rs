//! `mprotect`.

use linux_raw_sys::general as linux;

use super::area::{AREAS_MAX, AreaFlags};
use super::map::access;
use super::{AddressSpace, PAGE, page_up};
use crate::call::{Answer, Cx, Entry, full};
use crate::errno::Errno;
use crate::machine::Access;
use crate::unix::Unix;

pub(super) const MPROTECT: Entry = full(linux::__NR_mprotect, "mprotect", mprotect);

/// `PROT_SEM`, which asks for nothing.
const PROT_SEM: u32 = 8;

fn mprotect(cx: &Cx) -> Answer {
    let grows = cx.uint(2) & (linux::PROT_GROWSDOWN | linux::PROT_GROWSUP);
    let prot = cx.uint(2) & !grows;
    let start = cx.arg(0);
    if grows == linux::PROT_GROWSDOWN | linux::PROT_GROWSUP || !start.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL.into());
    }
    if cx.arg(1) == 0 {
        return Ok(0);
    }
    let end = page_up(cx.arg(1)).and_then(|len| start.checked_add(len)).ok_or(Errno::ENOMEM)?;
    let known = linux::PROT_READ | linux::PROT_WRITE | linux::PROT_EXEC | PROT_SEM;
    if prot & !known != 0 || grows == linux::PROT_GROWSUP {
        return Err(Errno::EINVAL.into());
    }
    let space = cx.process.space();
    let start = if grows == 0 { start } else { space.stack_start(start, end)? };
    space.protect(cx.unix, start, end, access(prot))?;
    Ok(0)
}

impl AddressSpace {
    /// Where `PROT_GROWSDOWN` begins: at the start of the stack that a range touches.
    fn stack_start(&self, start: u64, end: u64) -> Result<u64, Errno> {
        let areas = self.areas.borrow();
        let area = areas.at_or_above(start).filter(|area| area.start < end);
        let area = area.ok_or(Errno::ENOMEM)?;
        if !area.flags.contains(AreaFlags::GROWS_DOWN) {
            return Err(Errno::EINVAL);
        }
        Ok(area.start.min(start).max(area.start))
    }

    /// Gives the areas of a range these rights, up to the first that cannot have them or
    /// the first gap.
    ///
    /// # Errors
    /// `ENOMEM` at a gap, `EACCES` where the rights are more than can be had.
    pub fn protect(&self, unix: &Unix, start: u64, end: u64, access: Access) -> Result<(), Errno> {
        if self.areas.borrow().list().len() + 2 > AREAS_MAX {
            return Err(Errno::ENOMEM);
        }
        self.make_room()?;
        let (stop, answer) = self.reach(start, end, access);
        let mut changes = false;
        for area in self.areas.borrow().within(start, stop) {
            changes |= area.access != access;
            let mut lost = area.access.difference(access);
            // A page that can be executed can be read; one that can do nothing cannot.
            if !access.is_empty() && !lost.contains(Access::EXECUTE) {
                lost.remove(Access::READ);
            }
            if !lost.is_empty() {
                self.unmap_pages(unix, area.start.max(start), area.end.min(stop), lost);
            }
        }
        if changes {
            self.areas.borrow_mut().change(start, stop, |area| area.access = access);
        }
        answer
    }

    /// How far the areas of a range can have these rights, and what is said of what comes then.
    fn reach(&self, start: u64, end: u64, access: Access) -> (u64, Result<(), Errno>) {
        let mut at = start;
        for area in self.areas.borrow().within(start, end) {
            if area.start > at {
                return (at, Err(Errno::ENOMEM));
            }
            if !area.may.contains(access) {
                return (at, Err(Errno::EACCES));
            }
            at = area.end.min(end);
        }
        (at, if at < end { Err(Errno::ENOMEM) } else { Ok(()) })
    }
}
