//! Advice and questions about memory: `madvise`, `msync`, `mincore`, `mlock` and
//! relatives.

use alloc::rc::Rc;
use alloc::vec;

use linux_raw_sys::general as linux;

use super::area::{AREAS_MAX, Area, AreaFlags, Backing};
use super::map::{limit, may_lock_all};
use super::{AddressSpace, PAGE, USER_END, page_of, page_up};
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::machine::Access;

pub(super) const MADVISE: Entry =
    partial(linux::__NR_madvise, "madvise", madvise, "MADV_REMOVE, MADV_COLLAPSE, poisoning");
pub(super) const MSYNC: Entry = full(linux::__NR_msync, "msync", msync);
pub(super) const MINCORE: Entry = full(linux::__NR_mincore, "mincore", mincore);
pub(super) const MLOCK: Entry = full(linux::__NR_mlock, "mlock", mlock);
pub(super) const MLOCK2: Entry = full(linux::__NR_mlock2, "mlock2", mlock2);
pub(super) const MUNLOCK: Entry = full(linux::__NR_munlock, "munlock", munlock);
pub(super) const MLOCKALL: Entry = full(linux::__NR_mlockall, "mlockall", mlockall);
pub(super) const MUNLOCKALL: Entry = full(linux::__NR_munlockall, "munlockall", munlockall);

/// What a piece of advice does.
enum Advice {
    /// Nothing that can be seen.
    Ignored,
    /// Private pages go; zeroes or the file are seen next.
    DontNeed,
    /// As `DontNeed`, for private anonymous memory only.
    Free,
    Populate(Access),
    Set(AreaFlags),
    Clear(AreaFlags),
    /// As `Set`, for private anonymous memory only.
    SetPrivate(AreaFlags),
}

fn advice(number: u32) -> Option<Advice> {
    Some(match number {
        linux::MADV_NORMAL
        | linux::MADV_RANDOM
        | linux::MADV_SEQUENTIAL
        | linux::MADV_WILLNEED
        | linux::MADV_MERGEABLE
        | linux::MADV_UNMERGEABLE
        | linux::MADV_HUGEPAGE
        | linux::MADV_NOHUGEPAGE
        | linux::MADV_COLD
        | linux::MADV_PAGEOUT => Advice::Ignored,
        linux::MADV_DONTNEED | linux::MADV_DONTNEED_LOCKED => Advice::DontNeed,
        linux::MADV_FREE => Advice::Free,
        linux::MADV_POPULATE_READ => Advice::Populate(Access::READ),
        linux::MADV_POPULATE_WRITE => Advice::Populate(Access::WRITE),
        linux::MADV_DONTFORK => Advice::Set(AreaFlags::DONT_FORK),
        linux::MADV_DOFORK => Advice::Clear(AreaFlags::DONT_FORK),
        linux::MADV_DONTDUMP => Advice::Set(AreaFlags::DONT_DUMP),
        linux::MADV_DODUMP => Advice::Clear(AreaFlags::DONT_DUMP),
        linux::MADV_WIPEONFORK => Advice::SetPrivate(AreaFlags::WIPE_ON_FORK),
        linux::MADV_KEEPONFORK => Advice::Clear(AreaFlags::WIPE_ON_FORK),
        _ => return None,
    })
}

fn madvise(cx: &Cx) -> Answer {
    let (start, number) = (cx.arg(0), cx.uint(2));
    let advice = advice(number).ok_or(Errno::EINVAL)?;
    let end = page_up(cx.arg(1)).and_then(|len| start.checked_add(len)).ok_or(Errno::EINVAL)?;
    if start % PAGE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let space = cx.process.space();
    if space.areas.borrow().list().len() + 2 > AREAS_MAX {
        return Err(Errno::ENOMEM.into());
    }
    if let Advice::Populate(access) = advice {
        return space.populate_all(cx, start, end, access);
    }
    space.make_room()?;
    let refuses = |area: &&Area| match advice {
        Advice::DontNeed => {
            number == linux::MADV_DONTNEED && area.flags.contains(AreaFlags::LOCKED)
        }
        Advice::Free | Advice::SetPrivate(_) => !matches!(area.backing, Backing::Anonymous),
        _ => false,
    };
    // What is in front of one that refuses has it done.
    let refused = space.areas.borrow().within(start, end).iter().find(refuses).map(|one| one.start);
    let stop = refused.map_or(end.min(USER_END), |at| at.max(start));
    match advice {
        _ if start >= stop => {}
        Advice::DontNeed | Advice::Free => space.drop_pages(cx.unix, start, stop),
        Advice::Set(flags) | Advice::SetPrivate(flags) => {
            space.areas.borrow_mut().change(start, stop, |area| area.flags |= flags);
        }
        Advice::Clear(flags) => {
            space.areas.borrow_mut().change(start, stop, |area| area.flags.remove(flags));
        }
        Advice::Ignored | Advice::Populate(_) => {}
    }
    if refused.is_some() {
        return Err(Errno::EINVAL.into());
    }
    if space.areas.borrow().covers(start, end) { Ok(0) } else { Err(Errno::ENOMEM.into()) }
}

impl AddressSpace {
    /// `MADV_POPULATE_*`: all pages of a range, or an error.
    fn populate_all(&self, cx: &Cx, start: u64, end: u64, access: Access) -> Answer {
        let write = access.contains(Access::WRITE);
        let come = |area: &Area| {
            let may = if write { area.access.contains(access) } else { !area.access.is_empty() };
            if may { Ok(Some(write)) } else { Err(Errno::EINVAL) }
        };
        match self.populate(cx.unix, (start + cx.progress(), end), come, Err)? {
            Some(at) => Err(cx.give_way(at - start)),
            None if self.areas.borrow().covers(start, end) => Ok(0),
            None => Err(Errno::ENOMEM.into()),
        }
    }
}

fn msync(cx: &Cx) -> Answer {
    let (start, flags) = (cx.arg(0), cx.uint(2));
    let both = linux::MS_ASYNC | linux::MS_SYNC;
    if flags & !(both | linux::MS_INVALIDATE) != 0 || start % PAGE != 0 || flags & both == both {
        return Err(Errno::EINVAL.into());
    }
    // As Linux adds: a length that wraps when rounded up is none.
    let len = page_of(cx.arg(1).wrapping_add(PAGE - 1));
    let end = start.checked_add(len).ok_or(Errno::ENOMEM)?;
    let space = cx.process.space();
    let areas = space.areas.borrow();
    let locked = |area: &Area| area.flags.contains(AreaFlags::LOCKED);
    if flags & linux::MS_INVALIDATE != 0 && areas.within(start, end).iter().any(locked) {
        return Err(Errno::EBUSY.into());
    }
    if areas.covers(start, end) { Ok(0) } else { Err(Errno::ENOMEM.into()) }
}

/// Pages whose state one step of `mincore` tells, and steps after which others have their turn.
const STEP: u64 = 4096;
const STEPS: u64 = 32;

fn mincore(cx: &Cx) -> Answer {
    let (start, mut vector) = (cx.arg(0), cx.arg(2));
    if start % PAGE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let len = page_up(cx.arg(1)).ok_or(Errno::ENOMEM)?;
    let end = start.checked_add(len).filter(|end| *end <= USER_END).ok_or(Errno::ENOMEM)?;
    if vector.checked_add(len / PAGE).is_none_or(|end| end > USER_END) {
        return Err(Errno::EFAULT.into());
    }
    let space = cx.process.space();
    let mut at = start + cx.progress();
    vector += cx.progress() / PAGE;
    let turn = end.min(at + STEPS * STEP * PAGE);
    while at < turn {
        let stop = end.min(at + STEP * PAGE);
        if !space.areas.borrow().covers(at, stop) {
            return Err(Errno::ENOMEM.into());
        }
        let states = space.residence(at, stop);
        cx.user().write_bytes(vector, &states)?;
        vector += states.len() as u64;
        at = stop;
    }
    if at < end { Err(cx.give_way(at - start)) } else { Ok(0) }
}

impl AddressSpace {
    /// For each page of a covered range, 1 if it is in memory.
    fn residence(&self, start: u64, end: u64) -> vec::Vec<u8> {
        let mut states = vec![0; ((end - start) / PAGE) as usize];
        self.pages.borrow().for_each(start, end, |address, _| {
            states[((address - start) / PAGE) as usize] = 1;
        });
        for area in self.areas.borrow().within(start, end) {
            let Backing::File { inode, .. } = &area.backing else { continue };
            let Some(file) = inode.regular() else { continue };
            let mut at = area.start.max(start);
            while at < area.end.min(end) {
                let there = file.frame(area.offset_at(at) / PAGE).is_some();
                states[((at - start) / PAGE) as usize] |= u8::from(there);
                at += PAGE;
            }
        }
        states
    }
}

/// `mlock` and `mlock2`, whether or not the pages come at once.
fn lock(cx: &Cx, populate: bool) -> Answer {
    let start = page_of(cx.arg(0));
    let limit = limit(cx, linux::RLIMIT_MEMLOCK);
    if !may_lock_all(cx) && limit == 0 {
        return Err(Errno::EPERM.into());
    }
    let len = cx.arg(1).checked_add(cx.arg(0) - start).and_then(page_up).ok_or(Errno::EINVAL)?;
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    let space = cx.process.space();
    let is_locked = |area: &&Area| area.flags.contains(AreaFlags::LOCKED);
    let already: u64 = {
        let areas = space.areas.borrow();
        let inside = |area: &Area| area.end.min(end) - area.start.max(start);
        let twice: u64 = areas.within(start, end).iter().filter(is_locked).map(inside).sum();
        areas.bytes(|area| is_locked(&area)) - twice
    };
    if !may_lock_all(cx) && already.saturating_add(len) > limit {
        return Err(Errno::ENOMEM.into());
    }
    if cx.progress() == 0 {
        space.set_locked(start, end)?;
    }
    if !populate {
        return Ok(0);
    }
    let come = |area: &Area| {
        let write = area.access.contains(Access::WRITE) && !area.flags.contains(AreaFlags::SHARED);
        Ok((!area.access.is_empty()).then_some(write))
    };
    let failed = |errno| match errno {
        Errno::EFAULT => Err(Errno::ENOMEM),
        _ => Err(Errno::EAGAIN),
    };
    match space.populate(cx.unix, (start + cx.progress(), end), come, failed)? {
        Some(at) => Err(cx.give_way(at - start)),
        None => Ok(0),
    }
}

impl AddressSpace {
    fn set_locked(&self, start: u64, end: u64) -> Result<(), Errno> {
        self.make_room()?;
        let mut areas = self.areas.borrow_mut();
        if areas.list().len() + 2 > AREAS_MAX {
            return Err(Errno::ENOMEM);
        }
        let covered = areas.covers(start, end);
        areas.change(start, end, |area| area.flags |= AreaFlags::LOCKED);
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }
}

fn mlock(cx: &Cx) -> Answer {
    lock(cx, true)
}

fn mlock2(cx: &Cx) -> Answer {
    match cx.uint(2) {
        0 => lock(cx, true),
        linux::MLOCK_ONFAULT => lock(cx, false),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn munlock(cx: &Cx) -> Answer {
    let start = page_of(cx.arg(0));
    let len = cx.arg(1).checked_add(cx.arg(0) - start).and_then(page_up).ok_or(Errno::EINVAL)?;
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    let space = cx.process.space();
    space.make_room()?;
    let mut areas = space.areas.borrow_mut();
    let covered = areas.covers(start, end);
    areas.change(start, end, |area| area.flags.remove(AreaFlags::LOCKED));
    if covered { Ok(0) } else { Err(Errno::ENOMEM.into()) }
}

fn mlockall(cx: &Cx) -> Answer {
    let flags = cx.uint(0);
    let known = linux::MCL_CURRENT | linux::MCL_FUTURE | linux::MCL_ONFAULT;
    if flags == 0 || flags & !known != 0 || flags == linux::MCL_ONFAULT {
        return Err(Errno::EINVAL.into());
    }
    let limit = limit(cx, linux::RLIMIT_MEMLOCK);
    if !may_lock_all(cx) && limit == 0 {
        return Err(Errno::EPERM.into());
    }
    let space = cx.process.space();
    let current = flags & linux::MCL_CURRENT != 0;
    if current && !may_lock_all(cx) && space.areas.borrow().bytes(|_| true) > limit {
        return Err(Errno::ENOMEM.into());
    }
    space.lock_future.set(flags & linux::MCL_FUTURE != 0);
    if current {
        let special = AreaFlags::SPECIAL;
        let mark = |area: &mut Area| {
            area.flags.set(AreaFlags::LOCKED, !area.flags.contains(special));
        };
        if cx.progress() == 0 {
            space.areas.borrow_mut().change(0, USER_END, mark);
        }
        if flags & linux::MCL_ONFAULT == 0 {
            let all = (cx.progress(), USER_END);
            let come = |_: &Area| Ok(Some(false));
            if let Some(at) = space.populate(cx.unix, all, come, |_| Ok(()))? {
                return Err(cx.give_way(at));
            }
        }
    }
    Ok(0)
}

fn munlockall(cx: &Cx) -> Answer {
    let space: Rc<AddressSpace> = cx.process.space();
    space.lock_future.set(false);
    space.areas.borrow_mut().change(0, USER_END, |area| area.flags.remove(AreaFlags::LOCKED));
    Ok(0)
}
