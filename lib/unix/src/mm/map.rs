//! `mmap` and `munmap`.

use alloc::rc::Rc;

use linux_raw_sys::general as linux;

use super::area::{AREAS_MAX, Area, AreaFlags, Backing};
use super::shared::SharedMemory;
use super::{AddressSpace, PAGE, USER_END, USER_START, page_of, page_up, populate, range_end};
use crate::account::What;
use crate::call::{Answer, Cx, Entry, full, partial};
use crate::errno::Errno;
use crate::file::Open;
use crate::fs::inode::Inode;
use crate::machine::Access;

pub(super) const MMAP: Entry = partial(linux::__NR_mmap, "mmap", mmap, "huge pages");
pub(super) const MUNMAP: Entry = full(linux::__NR_munmap, "munmap", munmap);

/// `MAP_32BIT` of x86-64: below 2 GiB.
const MAP_32BIT: u32 = 0x40;
/// End of the addresses that `MAP_32BIT` gives.
const LOW_END: u64 = 0x8000_0000;
/// Flags that `MAP_SHARED_VALIDATE` knows.
const KNOWN_FLAGS: u32 = linux::MAP_SHARED
    | linux::MAP_PRIVATE
    | linux::MAP_FIXED
    | linux::MAP_ANONYMOUS
    | linux::MAP_DENYWRITE
    | linux::MAP_EXECUTABLE
    | linux::MAP_GROWSDOWN
    | linux::MAP_LOCKED
    | linux::MAP_NORESERVE
    | linux::MAP_POPULATE
    | linux::MAP_NONBLOCK
    | linux::MAP_STACK
    | linux::MAP_HUGETLB
    | linux::MAP_FIXED_NOREPLACE
    | MAP_32BIT;
/// Least and most distance of the highest mapping from the end of the stack.
const STACK_GAP: (u64, u64) = (128 << 20, USER_END / 6 * 5);
/// Device number of `/dev/zero`.
const ZERO_DEVICE: u64 = 0x105;

/// The rights that `PROT_*` bits ask for.
pub(super) fn access(prot: u32) -> Access {
    let mut access = Access::empty();
    access.set(Access::READ, prot & linux::PROT_READ != 0);
    access.set(Access::WRITE, prot & linux::PROT_WRITE != 0);
    access.set(Access::EXECUTE, prot & linux::PROT_EXEC != 0);
    access
}

/// The process's soft limit of a resource.
pub(crate) fn limit(cx: &Cx, which: u32) -> u64 {
    cx.process.limits.borrow().get(which as usize).map_or(u64::MAX, |limit| limit.0)
}

/// Whether the process may lock any amount of memory.
pub(super) fn may_lock_all(cx: &Cx) -> bool {
    cx.process.credentials.borrow().may(linux::CAP_IPC_LOCK)
}

/// Whether the space may grow by `len` bytes, as data or not.
///
/// # Errors
/// `ENOMEM`.
pub(super) fn may_grow(cx: &Cx, space: &AddressSpace, len: u64, data: bool) -> Result<(), Errno> {
    let fits = |limit: u64, test: &dyn Fn(&Area) -> bool| {
        limit == u64::MAX
            || space.areas.borrow().bytes(test).checked_add(len).is_some_and(|sum| sum <= limit)
    };
    if !fits(limit(cx, linux::RLIMIT_AS), &|_| true)
        || data && !fits(limit(cx, linux::RLIMIT_DATA), &Area::is_data)
    {
        return Err(Errno::ENOMEM);
    }
    Ok(())
}

/// Whether `len` more bytes can be locked.
pub(super) fn may_lock(cx: &Cx, space: &AddressSpace, len: u64) -> bool {
    let locked = space.areas.borrow().bytes(|area| area.flags.contains(AreaFlags::LOCKED));
    may_lock_all(cx) || locked.saturating_add(len) <= limit(cx, linux::RLIMIT_MEMLOCK)
}

/// What `mmap` is asked for, lengths rounded.
pub(super) struct Request {
    pub address: u64,
    pub len: u64,
    pub access: Access,
    pub flags: u32,
    pub offset: u64,
}

impl Request {
    fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }
}

fn mmap(cx: &Cx) -> Answer {
    // It is mapped already, whatever others have done to the file's number since.
    if cx.progress() != 0 {
        return populate::go_on(cx, cx.progress(), page_up(cx.arg(1)).ok_or(Errno::ENOMEM)?);
    }
    let (flags, offset) = (cx.uint(3), cx.arg(5));
    if offset % PAGE != 0 {
        return Err(Errno::EINVAL.into());
    }
    let open = match flags & linux::MAP_ANONYMOUS {
        0 => Some(cx.file(cx.uint(4))?),
        _ => None,
    };
    if flags & linux::MAP_HUGETLB != 0 {
        return Err(if open.is_some() { Errno::EINVAL } else { Errno::ENOMEM }.into());
    }
    if cx.arg(1) == 0 {
        return Err(Errno::EINVAL.into());
    }
    let len = page_up(cx.arg(1)).ok_or(Errno::ENOMEM)?;
    let request = Request { address: cx.arg(0), len, access: access(cx.uint(2)), flags, offset };
    match map(cx, &request, open)? {
        (start, Coming::Now) => populate::mapped(cx, (start, start + len), start),
        (start, Coming::Touched) => Ok(start),
    }
}

/// When the pages of a mapping come.
enum Coming {
    Now,
    Touched,
}

fn map(cx: &Cx, request: &Request, open: Option<Rc<Open>>) -> Result<(u64, Coming), Errno> {
    let space = cx.process.space();
    if let Some(open) = &open
        && open.file.inode().is_regular()
        && request.offset.checked_add(request.len).is_none_or(|end| end > i64::MAX as u64)
    {
        return Err(Errno::EOVERFLOW);
    }
    if space.areas.borrow().list().len() >= AREAS_MAX {
        return Err(Errno::ENOMEM);
    }
    space.make_room()?;
    let start = place(&space, request)?;
    let locked = request.has(linux::MAP_LOCKED) || space.lock_future.get();
    if request.has(linux::MAP_LOCKED) && !may_lock_all(cx) && limit(cx, linux::RLIMIT_MEMLOCK) == 0
    {
        return Err(Errno::EPERM);
    }
    if locked && !may_lock(cx, &space, request.len) {
        return Err(Errno::EAGAIN);
    }
    let mut area = describe(cx, request, open.as_ref())?;
    (area.start, area.end) = (start, start + request.len);
    area.flags.set(AreaFlags::LOCKED, locked);
    let data = area.is_data();
    may_grow(cx, &space, request.len, data)?;
    if data && !request.has(linux::MAP_NORESERVE) && request.len / PAGE > all_pages(cx) {
        return Err(Errno::ENOMEM);
    }
    let shared_file = match &area.backing {
        Backing::File { inode, .. } => Some(inode.clone()),
        _ => None,
    };
    if request.has(linux::MAP_FIXED | linux::MAP_FIXED_NOREPLACE) {
        space.unmap(cx.unix, start, area.end);
    }
    let populate = locked || request.has(linux::MAP_POPULATE) && !request.has(linux::MAP_NONBLOCK);
    space.add_area(area);
    if let Some(inode) = shared_file {
        note_mapper(&inode, &space);
    }
    Ok((start, if populate { Coming::Now } else { Coming::Touched }))
}

/// Pages of the machine as Linux would count them: those for programs, and the server's own.
fn all_pages(cx: &Cx) -> u64 {
    let (own, _) = (cx.unix.machine.heap_gauge())();
    // Without a limit it says nothing of the machine.
    let own = if own >= USER_END { 0 } else { own / PAGE };
    cx.unix.memory.total() as u64 + own
}

/// Tells a file who maps it, to be asked to forget pages when it is truncated.
pub(super) fn note_mapper(inode: &Inode, space: &Rc<AddressSpace>) {
    if let Some(regular) = inode.regular() {
        regular.mapped(space);
    }
}

/// Where the mapping goes.
pub(super) fn place(space: &AddressSpace, request: &Request) -> Result<u64, Errno> {
    let Request { address, len, .. } = *request;
    if len > USER_END {
        return Err(Errno::ENOMEM);
    }
    if request.has(linux::MAP_FIXED | linux::MAP_FIXED_NOREPLACE) {
        if address > USER_END - len {
            return Err(Errno::ENOMEM);
        }
        if address % PAGE != 0 {
            return Err(Errno::EINVAL);
        }
        if address < USER_START {
            return Err(Errno::EPERM);
        }
        let taken = !space.areas.borrow().within(address, address + len).is_empty();
        if request.has(linux::MAP_FIXED_NOREPLACE) && taken {
            return Err(Errno::EEXIST);
        }
        return Ok(address);
    }
    let low = request.has(MAP_32BIT);
    let hint = match page_of(address) {
        0 => None,
        hint => Some(hint.max(USER_START)),
    };
    space.free_range(len, hint.filter(|_| !low), low).ok_or(Errno::ENOMEM)
}

/// The area that is asked for, its place still open.
fn describe(cx: &Cx, request: &Request, open: Option<&Rc<Open>>) -> Result<Area, Errno> {
    let mut flags = AreaFlags::empty();
    flags.set(AreaFlags::NO_RESERVE, request.has(linux::MAP_NORESERVE));
    let kind = request.flags & linux::MAP_TYPE;
    let grows = request.has(linux::MAP_GROWSDOWN);
    let mut area = Area {
        start: 0,
        end: 0,
        access: request.access,
        may: Access::all(),
        flags,
        backing: Backing::Anonymous,
        offset: 0,
    };
    let Some(open) = open else {
        match kind {
            linux::MAP_SHARED if grows => return Err(Errno::EINVAL),
            linux::MAP_SHARED => {
                area.flags |= AreaFlags::SHARED;
                area.backing = Backing::Shared(SharedMemory::new(
                    cx.unix,
                    request.len,
                    cx.charge(What::Heap),
                )?);
            }
            linux::MAP_PRIVATE => area.flags.set(AreaFlags::GROWS_DOWN, grows),
            _ => return Err(Errno::EINVAL),
        }
        return Ok(area);
    };
    let wants_write = request.access.contains(Access::WRITE);
    match kind {
        linux::MAP_SHARED_VALIDATE if request.flags & !KNOWN_FLAGS & !kind != 0 => {
            return Err(Errno::EOPNOTSUPP);
        }
        linux::MAP_SHARED | linux::MAP_SHARED_VALIDATE => {
            let append = open.flags.get() & linux::O_APPEND != 0 && !open.can_read();
            if wants_write && (!open.can_write() || append) {
                return Err(Errno::EACCES);
            }
            let inode = open.file.inode();
            let seals = inode.regular().map_or(0, |regular| regular.seals.get());
            let sealed = seals & (linux::F_SEAL_WRITE | linux::F_SEAL_FUTURE_WRITE) != 0;
            if wants_write && sealed {
                return Err(Errno::EPERM);
            }
            area.flags |= AreaFlags::SHARED;
            area.may.set(Access::WRITE, open.can_write() && !sealed);
        }
        linux::MAP_PRIVATE => {}
        _ => return Err(Errno::EINVAL),
    }
    if !open.can_read() {
        return Err(Errno::EACCES);
    }
    back(cx, request, open, &mut area)?;
    if grows { Err(Errno::EINVAL) } else { Ok(area) }
}

/// Gives a file mapping its backing.
fn back(cx: &Cx, request: &Request, open: &Rc<Open>, area: &mut Area) -> Result<(), Errno> {
    let inode = open.file.inode();
    if inode.is_regular() {
        area.offset = request.offset;
        area.backing = Backing::File { open: open.clone(), inode };
        return Ok(());
    }
    if inode.device() != ZERO_DEVICE {
        return Err(Errno::ENODEV);
    }
    if area.flags.contains(AreaFlags::SHARED) {
        area.backing =
            Backing::Shared(SharedMemory::new(cx.unix, request.len, cx.charge(What::Heap))?);
    }
    Ok(())
}

impl AddressSpace {
    /// A free range of `len` bytes: at `hint` if that is free, else as high as possible
    /// below the stack (`low`: below 2 GiB).
    pub(crate) fn free_range(&self, len: u64, hint: Option<u64>, low: bool) -> Option<u64> {
        let areas = self.areas.borrow();
        if let Some(hint) = hint
            && hint.checked_add(len).is_some_and(|end| end <= USER_END)
            && areas.gap_above(hint, len) == Some(hint)
        {
            return Some(hint);
        }
        if low {
            return areas
                .gap_above(LOW_END / 2, len)
                .filter(|start| start + len <= LOW_END)
                .or_else(|| areas.gap_below(LOW_END, len));
        }
        let gap = self.stack_limit.get().clamp(STACK_GAP.0, STACK_GAP.1);
        let top = (USER_END - page_of(gap)).saturating_sub(self.shift.get());
        areas.gap_below(top, len).or_else(|| areas.gap_above(USER_END / 3, len))
    }
}

fn munmap(cx: &Cx) -> Answer {
    let start = cx.arg(0);
    let end = range_end(start, cx.arg(1)).ok_or(Errno::EINVAL)?;
    let space = cx.process.space();
    {
        let areas = space.areas.borrow();
        let splits =
            areas.within(start, end).first().is_some_and(|a| a.start < start && a.end > end);
        if splits && areas.list().len() >= AREAS_MAX {
            return Err(Errno::ENOMEM.into());
        }
    }
    space.make_room()?;
    space.unmap(cx.unix, start, end);
    Ok(0)
}
