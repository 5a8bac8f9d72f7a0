//! Shared memory of System V in an address space: attached, found, detached.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::general as l;

use super::area::{AREAS_MAX, Area, AreaFlags, Backing};
use super::shared::SharedMemory;
use super::{AddressSpace, map, page_up};
use crate::call::Cx;
use crate::errno::Errno;
use crate::machine::Access;
use crate::unix::Unix;

/// Maps `memory` (all its `bytes`) at `at`, or where there is room (`shmat`); `place` is what of
/// `MAP_FIXED` is asked for.
///
/// # Errors
/// `EINVAL` where something else is, `ENOMEM`.
pub(crate) fn attach(
    cx: &Cx,
    memory: Rc<SharedMemory>,
    (at, bytes): (u64, u64),
    prot: u32,
    place: u32,
) -> Result<u64, Errno> {
    let len = page_up(bytes).ok_or(Errno::ENOMEM)?;
    let flags = l::MAP_SHARED | place;
    let request = map::Request { address: at, len, access: map::access(prot), flags, offset: 0 };
    let space = cx.process.space();
    if space.areas.borrow().list().len() >= AREAS_MAX {
        return Err(Errno::ENOMEM);
    }
    space.make_room()?;
    let start = map::place(&space, &request).map_err(|errno| match errno {
        Errno::EEXIST | Errno::EPERM => Errno::EINVAL,
        other => other,
    })?;
    map::may_grow(cx, &space, len, false)?;
    if place & l::MAP_FIXED != 0 {
        space.unmap(cx.unix, start, start + len);
    }
    let mut may = Access::all();
    may.set(Access::WRITE, prot & l::PROT_WRITE != 0);
    space.add_area(Area {
        start,
        end: start + len,
        access: request.access,
        may,
        flags: AreaFlags::SHARED,
        backing: Backing::Shared(memory),
        offset: 0,
    });
    Ok(start)
}

impl AddressSpace {
    /// The shared memory whose first byte is mapped at `address`, or was before parts of it were
    /// unmapped.
    pub(crate) fn shared_at(&self, address: u64) -> Option<Rc<SharedMemory>> {
        let areas = self.areas.borrow();
        areas.list().iter().find_map(|area| match &area.backing {
            Backing::Shared(memory) if area.start.wrapping_sub(area.offset) == address => {
                Some(memory.clone())
            }
            _ => None,
        })
    }

    /// Unmaps all of `memory` that is mapped as from `address`.
    pub(crate) fn detach(&self, unix: &Unix, address: u64, memory: &Rc<SharedMemory>) {
        let is_one = |area: &&Area| match &area.backing {
            Backing::Shared(other) => {
                Rc::ptr_eq(other, memory) && area.start.wrapping_sub(area.offset) == address
            }
            _ => false,
        };
        let ranges: Vec<(u64, u64)> = {
            let areas = self.areas.borrow();
            areas.list().iter().filter(is_one).map(|area| (area.start, area.end)).collect()
        };
        for (start, end) in ranges {
            self.unmap(unix, start, end);
        }
    }
}
