//! A copy of an address space: private pages are shared until one side writes, but for those that
//! were written after the last fork, too (decision 0105). And what becomes of a page that is written.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::area::{Area, AreaFlags};
use super::fault::{FAR_RESERVE, Refusal};
use super::pages::{Page, PageMap};
use super::shared::allocate;
use super::space::SPACE_BYTES;
use super::{AddressSpace, PAGE, USER_END};
use crate::account::{Charge, What};
use crate::errno::Errno;
use crate::machine::Access;
use crate::memory::FrameId;
use crate::unix::Unix;

/// Pages that a fork copies at once, at most: others wait meanwhile.
const COPIES_MAX: usize = 64;
/// One fork of so many shares everything, and so finds out anew what is written.
const LEARN_EVERY: u64 = 16;

/// What becomes of private pages in a fork.
struct Copying<'a> {
    unix: &'a Unix,
    parent: &'a AddressSpace,
    /// Pages that may still be copied at once.
    left: usize,
    /// Frames that the machine may have mapped for writing, and now are shared.
    writable: Vec<FrameId>,
}

impl Copying<'_> {
    /// The parent's page from now on, and the copy's.
    fn page(&mut self, address: u64, page: Page) -> (Page, Page) {
        let mapped = Page::MAPPED | Page::MAPPED_WRITE;
        if page.has(Page::SHARED) {
            self.unix.memory.share(page.frame());
            return (page, page.without(mapped));
        }
        if page.has(Page::PARTED)
            && let Some(copy) = self.copy(address, page)
        {
            return (page, copy);
        }
        self.unix.memory.share(page.frame());
        if page.has(Page::MAPPED_WRITE) {
            self.writable.push(page.frame());
        }
        let page = page.without(Page::WRITABLE | Page::MAPPED_WRITE | Page::PARTED);
        (page, page.without(mapped))
    }

    /// A page of its own for the copy, unless it is to be shared after all.
    fn copy(&mut self, address: u64, page: Page) -> Option<Page> {
        self.left = self.left.checked_sub(1)?;
        let areas = self.parent.areas.borrow();
        let may_write = areas.at(address)?.access.contains(Access::WRITE);
        let frame = self.unix.memory.allocate()?;
        self.unix.memory.copy((page.frame(), 0), (frame, 0), PAGE as usize);
        let readable = if page.has(Page::READABLE) { Page::READABLE } else { 0 };
        let writable = if may_write { Page::WRITABLE } else { 0 };
        Some(Page::new(frame, Page::PARTED | readable | writable))
    }
}

/// Most pages of kernel memory that a fork's copy has at first: those who need more get half as much again, and
/// a large program may have a hundred children that touch little of it.
const CHILD_PAGES: u64 = 128;

impl AddressSpace {
    /// A copy: private pages are shared until one side writes, or copied now.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn fork(unix: &Unix, parent: &Rc<Self>) -> Result<Rc<Self>, Errno> {
        let bytes = parent.areas.borrow().bytes_taken() + parent.pages.borrow().bytes();
        let charge = Charge::new(parent.charge.user(), What::Heap, SPACE_BYTES + bytes)?;
        let areas = parent.areas.borrow().try_clone()?;
        // First of all, the machine's space: while there is none, nobody's page is touched for nothing. It will map
        // the same, so it needs as much, up to what a child of a large program may do without.
        let paid = (charge, parent.kernel_pages().min(CHILD_PAGES));
        let copy = Self::with(unix, paid, areas, PageMap::default())?;
        let mut writable = Vec::new();
        let resident = parent.pages.borrow().resident();
        writable.try_reserve(resident).map_err(|_| Errno::ENOMEM)?;
        let mut copying = Copying { unix, parent, left: parent.copies(unix), writable };
        let pages = parent.pages.borrow_mut().fork(|address, page| copying.page(address, page))?;
        let writable = copying.writable;
        if !writable.is_empty() {
            unix.machine.revoke(&writable, Access::WRITE);
        }
        copy.pages.replace(pages);
        copy.layout.set(parent.layout.get());
        copy.shift.set(parent.shift.get());
        copy.stack_limit.set(parent.stack_limit.get());
        copy.barriers.set(parent.barriers.get());
        copy.program.replace(parent.program.borrow().clone());
        copy.origin.replace(Rc::downgrade(parent));
        copy.note_mappings();
        copy.forget_what_is_not_inherited(unix);
        Ok(copy)
    }

    /// A fork's copy has no `MADV_DONTFORK` areas, and no pages in `MADV_WIPEONFORK` ones.
    fn forget_what_is_not_inherited(&self, unix: &Unix) {
        let flags = AreaFlags::DONT_FORK | AreaFlags::WIPE_ON_FORK;
        let some = self.areas.borrow().list().iter().any(|area| area.flags.intersects(flags));
        if some {
            let mut next = 0;
            while let Some(area) = self.area_from(next) {
                next = area.end;
                if area.flags.intersects(flags) {
                    self.drop_pages(unix, area.start, area.end);
                }
                if area.flags.contains(AreaFlags::DONT_FORK) {
                    self.areas.borrow_mut().remove(area.start, area.end);
                }
            }
        }
        let locked =
            self.areas.borrow().list().iter().any(|area| area.flags.contains(AreaFlags::LOCKED));
        if locked {
            let unlock = |area: &mut Area| area.flags.remove(AreaFlags::LOCKED);
            self.areas.borrow_mut().change(0, USER_END, unlock);
        }
    }

    /// How many pages a fork may copy at once. None while others write them: what they wrote
    /// later would be seen, and what they wrote before that not.
    fn copies(&self, unix: &Unix) -> usize {
        let forks = self.forks.get();
        self.forks.set(forks + 1);
        let is_written = self.is_shared.get() && unix.processors.are_several();
        if is_written || forks.is_multiple_of(LEARN_EVERY) {
            return 0;
        }
        unix.memory.available().saturating_sub(unix.mm.reserve + FAR_RESERVE).min(COPIES_MAX)
    }

    /// The private page at `at`, which is to be written: our frame, or a copy.
    pub(super) fn own(
        &self,
        unix: &Unix,
        at: u64,
        page: Page,
    ) -> Result<(Page, Option<FrameId>), Refusal> {
        let frame = page.frame();
        let parted = if self.is_parted(at, page) { Page::PARTED } else { 0 };
        if unix.memory.count(frame) == 1 {
            return Ok((page.with(Page::READABLE | Page::WRITABLE | parted), None));
        }
        let copy = allocate(unix).map_err(|_| Refusal::NoMemory)?;
        unix.memory.copy((frame, 0), (copy, 0), PAGE as usize);
        let replaced = page.has(Page::MAPPED).then_some(frame);
        unix.memory.release(frame);
        Ok((Page::new(copy, Page::READABLE | Page::WRITABLE | parted), replaced))
    }

    /// The private page at `at` is to be written: whether a fork has shared it, as far as that is
    /// known. The space that this one is a copy of learns that it was written here.
    fn is_parted(&self, at: u64, page: Page) -> bool {
        let Some(origin) = self.origin.borrow().upgrade() else { return self.forks.get() > 0 };
        origin.pages.borrow_mut().update(at, |there| {
            if there.frame() == page.frame() { there.with(Page::PARTED) } else { there }
        });
        true
    }

    /// Threads beside the first one use it from now on.
    pub fn share(&self) {
        self.is_shared.set(true);
    }
}
