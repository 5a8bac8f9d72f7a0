//! Making a page present, as a program's access asks; answering page faults.

use alloc::rc::Rc;
use core::ops::Range;

use linux_raw_sys::general::{SIGBUS, SIGSEGV};

use super::area::{Area, AreaFlags, Backing, GUARD_GAP};
use super::oom::{killed_for_memory, out_of_memory};
use super::pages::Page;
use super::shared::{allocate, allocate_zeroed};
use super::{AddressSpace, PAGE, USER_END, USER_START, page_of};
use crate::errno::Errno;
use crate::fs::inode::Inode;
use crate::machine::{Access, Mapping, Reply};
use crate::memory::FrameId;
use crate::signal;
use crate::thread::Thread;
use crate::unix::Unix;

/// Most pages of memory touched in order that one fault makes present.
const AHEAD_MAX: u64 = WINDOW;
/// Pages that one fault maps: an aligned window of this many.
const WINDOW: u64 = 16;

/// Why a page cannot be made present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Nothing is mapped there.
    Nothing,
    /// The area does not allow this access.
    NotAllowed,
    /// Behind the end of the mapped file.
    BehindEnd,
    /// No memory.
    NoMemory,
    /// The user cannot pay for what the server has to remember about it.
    NoRoom,
}

impl From<Refusal> for Errno {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoMemory | Refusal::NoRoom => Self::ENOMEM,
            _ => Self::EFAULT,
        }
    }
}

/// These bits of a window.
const fn bits_of(pages: Range<u64>) -> u16 {
    (1_u32 << pages.end).wrapping_sub(1 << pages.start) as u16
}

/// Which present pages of a window are mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    /// Those that are not mapped yet.
    New,
    /// All.
    All,
}

/// A page as an access found or made it.
struct Present {
    page: Page,
    /// The frame that was mapped there before, if another one is now.
    replaced: Option<FrameId>,
}

impl AddressSpace {
    /// The frame of the page at `page`, if it is there and allows the access.
    #[inline]
    pub fn present(&self, page: u64, write: bool) -> Option<FrameId> {
        let wanted = if write { Page::WRITABLE } else { Page::READABLE };
        self.pages.borrow().get(page).filter(|page| page.has(wanted)).map(Page::frame)
    }

    /// The first page of a range that is there, whatever the program may do with it.
    #[must_use]
    pub fn first_present(&self, start: u64, end: u64) -> Option<u64> {
        self.pages.borrow().first_in(start, end)
    }

    /// The frame of the page at `page` (page-aligned, any value), made present as if the
    /// program had read or written it (copy on write included).
    ///
    /// # Errors
    /// `EFAULT` if the program itself could not make this access, `ENOMEM` without memory.
    #[inline]
    pub fn frame_for(&self, unix: &Unix, page: u64, write: bool) -> Result<FrameId, Errno> {
        let wanted = if write { Page::WRITABLE } else { Page::READABLE };
        match self.pages.borrow().get(page) {
            Some(page) if page.has(wanted) => return Ok(page.frame()),
            _ => {}
        }
        self.frame_made(unix, page, if write { Access::WRITE } else { Access::READ })
    }

    /// As [`Self::frame_for`], for who traces a program: whatever the program itself may do there,
    /// unless nobody may do anything. What others share is copied before it is written.
    ///
    /// # Errors
    /// `EFAULT`, `ENOMEM`.
    pub fn frame_for_tracer(&self, unix: &Unix, page: u64, write: bool) -> Result<FrameId, Errno> {
        if let Ok(frame) = self.frame_for(unix, page, write) {
            return Ok(frame);
        }
        let area = self.areas.borrow().at(page).cloned().ok_or(Errno::EFAULT)?;
        if area.access.is_empty() || area.flags.contains(AreaFlags::SHARED) {
            return Err(Errno::EFAULT);
        }
        let access = if write { Access::WRITE } else { Access::READ };
        let present = self.make_present(unix, &area, page, access)?;
        if let Some(frame) = present.replaced {
            unix.machine.revoke(&[frame], Access::all());
        }
        if write {
            // The program may write it no more than before.
            let page_there = present.page.without(Page::WRITABLE);
            self.put(unix, page, page_there)?;
        }
        Ok(present.page.frame())
    }

    #[inline(never)]
    fn frame_made(&self, unix: &Unix, page: u64, access: Access) -> Result<FrameId, Errno> {
        let area = self.area_for(page, access)?;
        let present = self.make_present(unix, &area, page, access)?;
        if let Some(frame) = present.replaced {
            unix.machine.revoke(&[frame], Access::all());
        }
        Ok(present.page.frame())
    }

    /// The area at `page`, if it allows the access; a stack grows to be there.
    fn area_for(&self, page: u64, access: Access) -> Result<Area, Refusal> {
        if !(USER_START..USER_END).contains(&page) {
            return Err(Refusal::Nothing);
        }
        let found = self.areas.borrow().at(page).cloned();
        let area = match found {
            Some(area) => area,
            None => self.grow_stack(page).ok_or(Refusal::Nothing)?,
        };
        let readable = !area.access.is_empty();
        let allowed = (!access.contains(Access::READ) || readable)
            && (!access.contains(Access::WRITE) || area.access.contains(Access::WRITE))
            && (!access.contains(Access::EXECUTE) || area.access.contains(Access::EXECUTE));
        if allowed && readable { Ok(area) } else { Err(Refusal::NotAllowed) }
    }

    /// Lets the stack above `page` grow down to it, if its limit and its neighbour allow.
    fn grow_stack(&self, page: u64) -> Option<Area> {
        let mut areas = self.areas.borrow_mut();
        let stack = areas.at_or_above(page)?;
        let (start, end) = (stack.start, stack.end);
        if !stack.flags.contains(AreaFlags::GROWS_DOWN) || end - page > self.stack_limit.get() {
            return None;
        }
        let lower = page.saturating_sub(GUARD_GAP);
        let crowded = areas.within(lower, page).iter().any(|area| !area.access.is_empty());
        if crowded {
            return None;
        }
        areas.grow_down(start, page);
        areas.at(page).cloned()
    }

    /// Makes the page at `at`, inside `area`, present for an access that the area allows.
    fn make_present(
        &self,
        unix: &Unix,
        area: &Area,
        at: u64,
        access: Access,
    ) -> Result<Present, Refusal> {
        let old = self.pages.borrow().get(at);
        let write = access.contains(Access::WRITE);
        let (page, replaced) = match old {
            Some(page) if page.has(Page::SHARED) => {
                let writable = area.access.contains(Access::WRITE);
                let flags = if writable { Page::WRITABLE } else { 0 };
                (page.with(Page::READABLE | flags), None)
            }
            Some(page) if !write => (page.with(Page::READABLE), None),
            Some(page) => self.own(unix, at, page)?,
            None => (self.fetch(unix, area, at, write)?, None),
        };
        self.put(unix, at, page)?;
        Ok(Present { page, replaced })
    }

    /// Puts a page at `at`.
    fn put(&self, unix: &Unix, at: u64, page: Page) -> Result<(), Refusal> {
        let mut pages = self.pages.borrow_mut();
        if pages.insert(at, page, |bytes| self.charge.grow(bytes)).is_err() {
            // It was not there before: the frame is one more owner's.
            drop(pages);
            unix.memory.release(page.frame());
            return Err(Refusal::NoRoom);
        }
        self.peak.set(self.peak.get().max(pages.resident()));
        Ok(())
    }

    /// A page that was not there, from what backs the area.
    fn fetch(&self, unix: &Unix, area: &Area, at: u64, write: bool) -> Result<Page, Refusal> {
        let offset = area.offset_at(at);
        let writable = area.access.contains(Access::WRITE);
        let shared = area.flags.contains(AreaFlags::SHARED);
        let frame = match &area.backing {
            Backing::Anonymous => {
                let frame = allocate_zeroed(unix).map_err(|_| Refusal::NoMemory)?;
                let flags = if writable { Page::WRITABLE } else { 0 };
                return Ok(Page::new(frame, Page::READABLE | flags));
            }
            Backing::Shared(memory) => memory.page(unix, offset).map_err(|_| Refusal::NoMemory)?,
            Backing::File { inode, .. } => file_page(unix, inode, offset, shared && writable)?,
            Backing::Special(_, frame) => frame.id(),
        };
        let flags = match (shared, writable) {
            (true, true) => Page::SHARED | Page::WRITABLE,
            (true, false) => Page::SHARED,
            (false, _) => 0,
        };
        if write && !shared {
            let copy = allocate(unix).map_err(|_| Refusal::NoMemory)?;
            unix.memory.copy((frame, 0), (copy, 0), PAGE as usize);
            return Ok(Page::new(copy, Page::READABLE | Page::WRITABLE));
        }
        unix.memory.share(frame);
        Ok(Page::new(frame, Page::READABLE | flags))
    }

    /// Makes the pages behind `at` present when memory is touched in order.
    fn fetch_ahead(&self, unix: &Unix, area: &Area, at: u64) {
        if at != self.last_fault.get() + PAGE {
            self.ahead.set(1);
            self.last_fault.set(at);
            return;
        }
        let ahead = (self.ahead.get() * 2).min(AHEAD_MAX);
        self.ahead.set(ahead);
        let window_end = (at & !(WINDOW * PAGE - 1)) + WINDOW * PAGE;
        let end = area.end.min(window_end).min(at + ahead * PAGE);
        let mut last = at;
        while last + PAGE < end {
            let next = last + PAGE;
            if self.pages.borrow().get(next).is_some()
                || unix.memory.available() < unix.mm.reserve + FAR_RESERVE
                || self.make_present(unix, area, next, Access::WRITE).is_err()
            {
                break;
            }
            last = next;
        }
        self.last_fault.set(last);
    }

    /// Makes the file's pages around `at` present for reading: they cost little here and
    /// a fault later.
    fn fetch_around(&self, unix: &Unix, area: &Area, at: u64) {
        let Backing::File { inode, .. } = &area.backing else { return };
        if area.flags.contains(AreaFlags::SHARED) && area.access.contains(Access::WRITE) {
            return;
        }
        let base = at & !(WINDOW * PAGE - 1);
        let there = self.pages.borrow().window(base);
        let size = inode.size();
        for number in 0..WINDOW {
            let next = base + number * PAGE;
            let inside = (area.start..area.end).contains(&next) && area.offset_at(next) < size;
            if !inside || there >> number & 1 != 0 {
                continue;
            }
            let Ok(page) = self.fetch(unix, area, next, false) else { return };
            if self.put(unix, next, page).is_err() {
                return;
            }
        }
    }

    /// Maps the present pages of the window around `at` that are not mapped yet, and the
    /// one at `at` in any case.
    fn map_window(&self, unix: &Unix, thread: &Thread, area: &Area, at: u64, all: Window) {
        let base = at & !(WINDOW * PAGE - 1);
        let mut mappings = unix.mm.mappings.borrow_mut();
        mappings.clear();
        let mut pages = self.pages.borrow_mut();
        let inside = base.max(area.start)..(base + WINDOW * PAGE).min(area.end);
        let bits =
            pages.window(base) & bits_of((inside.start - base) / PAGE..(inside.end - base) / PAGE);
        let [read, write] =
            [area.access.difference(Access::WRITE), area.access].map(|of| of | Access::READ);
        pages.change_window(base, bits, |address, page| {
            if page.has(Page::MAPPED) && address != at && all == Window::New {
                return page;
            }
            let (access, flags) = match page.has(Page::WRITABLE) {
                true => (write, Page::MAPPED | Page::MAPPED_WRITE),
                false => (read, Page::MAPPED),
            };
            mappings.push(Mapping { address, frame: page.frame(), access });
            page.with(flags | Page::READABLE)
        });
        drop(pages);
        unix.machine.map(thread.machine.get(), &mappings);
    }

    /// Whether others than `thread`, which waits for its answer, may use the space now: on
    /// another processor, somebody would go on with a frame that is not the space's any more
    /// until the answer brings the new one.
    fn is_seen_elsewhere(self: &Rc<Self>, unix: &Unix, thread: &Thread) -> bool {
        // The process has it, and whoever answers the fault.
        let shared = thread.process.threads.borrow().len() > 1 || Rc::strong_count(self) > 2;
        shared && unix.processors.are_several()
    }

    /// Makes the access possible, and what will probably be next.
    fn touch(
        self: &Rc<Self>,
        unix: &Unix,
        thread: &Thread,
        at: u64,
        access: Access,
    ) -> Result<(), Refusal> {
        let area = self.area_for(at, access)?;
        let known = self.pages.borrow().get(at);
        let present = self.make_present(unix, &area, at, access)?;
        if let Some(frame) = present.replaced.filter(|_| self.is_seen_elsewhere(unix, thread)) {
            unix.machine.revoke(&[frame], Access::all());
        }
        if known.is_none() {
            match area.backing {
                Backing::Anonymous => self.fetch_ahead(unix, &area, at),
                Backing::File { .. } if !access.contains(Access::WRITE) => {
                    self.fetch_around(unix, &area, at);
                }
                _ => {}
            }
        }
        let mapped = if access.contains(Access::WRITE) { Page::MAPPED_WRITE } else { Page::MAPPED };
        // A mapping that should be there is not: the machine has dropped it, and probably
        // its neighbours.
        let lost = known.is_some_and(|page| page.has(mapped));
        let window = if lost { Window::All } else { Window::New };
        self.map_window(unix, thread, &area, at, window);
        Ok(())
    }
}

/// The frame of a file's page.
fn file_page(unix: &Unix, inode: &Inode, offset: u64, write: bool) -> Result<FrameId, Refusal> {
    if offset >= inode.size() {
        return Err(Refusal::BehindEnd);
    }
    inode.page(unix, offset / PAGE, write).map_err(|errno| match errno {
        Errno::ENOMEM => Refusal::NoMemory,
        _ => Refusal::BehindEnd,
    })
}

/// `si_code` values.
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
const BUS_ADRERR: i32 = 2;

/// Answers a page fault: maps pages (neighbours that are there, too) or raises a signal.
pub fn page_fault(unix: &Unix, thread: &Rc<Thread>, address: u64, access: Access) {
    let space = thread.process.space();
    space.faults.set(space.faults.get() + 1);
    let (signal, code) = match space.touch(unix, thread, page_of(address), access) {
        Ok(()) => return unix.reply(thread, Reply::Mapped),
        Err(Refusal::Nothing) => (SIGSEGV, SEGV_MAPERR),
        Err(Refusal::NotAllowed) => (SIGSEGV, SEGV_ACCERR),
        Err(Refusal::BehindEnd) => (SIGBUS, BUS_ADRERR),
        Err(Refusal::NoMemory) => return out_of_memory(unix, thread),
        Err(Refusal::NoRoom) => return killed_for_memory(unix, thread),
    };
    signal::bad_access(unix, thread, signal, code, address);
}

/// Pages are made present ahead only while so many more frames are left.
pub(super) const FAR_RESERVE: usize = 1024;
