//! An address space: its areas and pages, its birth and end.

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ops::Range;

use super::area::{Area, AreaFlags, Areas, Backing};
use super::pages::{Page, PageMap};
use super::shared::{Graves, Plot};
use super::{PAGE, USER_END};
use crate::account::{Charge, User, What};
use crate::errno::Errno;
use crate::exec::image::Running;
use crate::fs::inode::Inode;
use crate::fs::mappers::Mappers;
use crate::fs::regular::Regular;
use crate::machine::{Access, SPACE_PAGES, SpaceId};
use crate::memory::{Frame, FrameId};
use crate::stream::aio::Context;
use crate::unix::Unix;

/// Soft limit of the stack, in bytes, unless a program says otherwise.
pub const STACK_LIMIT: u64 = 8 << 20;

/// Where the parts of a program are, for `brk` and `/proc`.
#[derive(Clone, Copy, Default, Debug)]
#[allow(missing_docs)]
pub struct Layout {
    /// Code of the main program.
    pub code: (u64, u64),
    /// Its initialised data.
    pub data: (u64, u64),
    /// Where the heap begins, and where it ends now.
    pub heap: (u64, u64),
    /// The stack pointer at the start.
    pub stack: u64,
    /// The argument strings.
    pub arguments: (u64, u64),
    /// The environment strings.
    pub environment: (u64, u64),
    /// The auxiliary vector.
    pub auxiliary: (u64, u64),
    /// Entry of the vDSO's signal-return code; 0 without vDSO.
    pub vdso: u64,
}

/// One address space: areas and the pages that are there.
pub struct AddressSpace {
    /// Serial number, never used again: for private futexes.
    pub(super) serial: u64,
    machine: Cell<SpaceId>,
    pub(super) areas: RefCell<Areas>,
    pub(super) pages: RefCell<PageMap>,
    /// Where the program's parts are.
    pub layout: Cell<Layout>,
    /// The program it runs.
    pub(super) program: RefCell<Option<Rc<Running>>>,
    /// Of files that it has mapped since it was made, where it is to leave.
    files: RefCell<Vec<Weak<Mappers>>>,
    files_charge: Charge,
    /// Contexts of asynchronous I/O.
    pub(crate) contexts: RefCell<Vec<Rc<Context>>>,
    /// Registrations of `membarrier`.
    pub(super) barriers: Cell<u32>,
    /// How much lower than without randomness mappings begin, in bytes.
    pub shift: Cell<u64>,
    /// How far its stack may grow, in bytes (`RLIMIT_STACK`).
    pub stack_limit: Cell<u64>,
    /// `mlockall(MCL_FUTURE)`: new areas are locked.
    pub(super) lock_future: Cell<bool>,
    /// Last page made present by a fault, to see touching in order.
    pub(super) last_fault: Cell<u64>,
    /// How many pages the next fault in order makes present.
    pub(super) ahead: Cell<u64>,
    /// How often it was copied; the space that it is a copy of, as long as that is there.
    pub(super) forks: Cell<u64>,
    pub(super) origin: RefCell<Weak<Self>>,
    /// Whether threads beside the first one have ever used it.
    pub(super) is_shared: Cell<bool>,
    /// Most pages there have been.
    pub(super) peak: Cell<usize>,
    /// Page faults: (without, with) reading a file.
    pub faults: Cell<u64>,
    /// What it costs its user.
    pub(super) charge: Charge,
    /// And in kernel memory.
    kernel: Charge,
    plot: Plot,
    graves: Rc<Graves>,
}

/// What a space costs, without areas and pages.
pub(super) const SPACE_BYTES: u64 = 2048;
/// What a file that it has mapped costs beside the area: the entries of both, and what is left of the file's list.
const FILE_BYTES: u64 = 96;

impl AddressSpace {
    /// An empty one, for which `user` pays.
    ///
    /// # Errors
    /// As [`crate::machine::Machine::create_space`]; `ENOMEM` if the user cannot pay.
    pub fn new(unix: &Unix, user: &Rc<User>) -> Result<Rc<Self>, Errno> {
        let charge = Charge::new(user, What::Heap, SPACE_BYTES)?;
        Self::with(unix, (charge, SPACE_PAGES), Areas::default(), PageMap::default())
    }

    /// Kernel memory that it pays for, pages.
    pub(super) fn kernel_pages(&self) -> u64 {
        self.kernel.amount()
    }

    pub(super) fn with(
        unix: &Unix,
        (charge, kernel_pages): (Charge, u64),
        areas: Areas,
        pages: PageMap,
    ) -> Result<Rc<Self>, Errno> {
        unix.mm.bury(unix);
        let kernel = Charge::new(charge.user(), What::Kernel, kernel_pages);
        let kernel = kernel.map_err(|_| {
            unix.tell_no_space(charge.user().uid);
            Errno::EAGAIN
        })?;
        Ok(Rc::new(Self {
            serial: unix.mm.next_space(),
            machine: Cell::new(unix.machine.create_space(kernel_pages)?),
            areas: RefCell::new(areas),
            pages: RefCell::new(pages),
            layout: Cell::default(),
            shift: Cell::new(0),
            stack_limit: Cell::new(STACK_LIMIT),
            program: RefCell::default(),
            files: RefCell::default(),
            files_charge: Charge::nothing(charge.user(), What::Heap),
            contexts: RefCell::default(),
            barriers: Cell::new(0),
            lock_future: Cell::new(false),
            last_fault: Cell::new(0),
            ahead: Cell::new(1),
            forks: Cell::new(0),
            origin: RefCell::default(),
            is_shared: Cell::new(false),
            peak: Cell::new(0),
            faults: Cell::new(0),
            kernel,
            charge,
            plot: Plot::new(),
            graves: unix.mm.graves.clone(),
        }))
    }

    /// A number that no other space has, or will have.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The machine's space.
    #[must_use]
    pub fn machine(&self) -> SpaceId {
        self.machine.get()
    }

    /// It is one of `mappers` now.
    pub(crate) fn has_mapped(&self, mappers: &Rc<Mappers>) {
        let mut files = self.files.borrow_mut();
        if files.len() == files.capacity() {
            // Those of files that are no more; the next time is as many files later as there are now.
            files.retain(|one| one.strong_count() > 0);
            let room = files.len().max(4);
            files.reserve(room);
        }
        files.push(Rc::downgrade(mappers));
        // What is mapped was paid for, and what makes too many of these costs something else, too.
        self.files_charge.set(files.len() as u64 * FILE_BYTES);
    }

    /// Tells the files that are mapped that this space maps them, too.
    pub(super) fn note_mappings(self: &Rc<Self>) {
        let mut last: Option<&Rc<Inode>> = None;
        for area in self.areas.borrow().list() {
            if let Backing::File { inode, .. } = &area.backing
                && !last.is_some_and(|last| Rc::ptr_eq(last, inode))
            {
                super::map::note_mapper(inode, self);
                last = Some(inode);
            }
        }
    }

    /// The program it runs.
    #[must_use]
    pub fn program(&self) -> Option<Rc<Running>> {
        self.program.borrow().clone()
    }

    /// Says which program it runs.
    pub fn set_program(&self, program: Option<Rc<Running>>) {
        drop(self.program.replace(program));
    }

    /// The last process that used the space has ended, and all threads of the machine's
    /// space: its memory and the machine's space are given back.
    pub fn retire(&self, unix: &Unix) {
        self.set_program(None);
        drop(self.contexts.take());
        drop(self.areas.take());
        let (space, pages) = (self.machine.replace(SpaceId(0)), self.pages.take());
        self.charge.set(SPACE_BYTES);
        self.kernel.set(0);
        if space != SpaceId(0) {
            self.graves.add(&self.plot, Some(space), pages);
        }
        unix.mm.bury(unix);
    }

    /// Takes the pages of a range out of the page map and the machine, and gives the
    /// frames back.
    pub(super) fn drop_pages(&self, unix: &Unix, start: u64, end: u64) {
        let (mut frames, mut mapped) = (Vec::new(), Vec::new());
        self.pages.borrow_mut().remove(start, end, |_, page| {
            if page.has(Page::MAPPED) {
                mapped.push(page.frame());
            }
            frames.push(page.frame());
        });
        if !mapped.is_empty() {
            unix.machine.revoke(&mapped, Access::all());
        }
        for frame in frames {
            unix.memory.release(frame);
        }
    }

    /// Takes rights to the pages of a range away from the program: the pages stay, the
    /// next access faults.
    pub(super) fn unmap_pages(&self, unix: &Unix, start: u64, end: u64, rights: Access) {
        let all = rights.contains(Access::READ) || rights.contains(Access::EXECUTE);
        let mut frames = Vec::new();
        self.pages.borrow_mut().change(start, end, |_, page| {
            let which = if all { Page::MAPPED } else { Page::MAPPED_WRITE };
            if page.has(which) {
                frames.push(page.frame());
            }
            let lost = if all {
                Page::MAPPED | Page::MAPPED_WRITE | Page::READABLE | Page::WRITABLE
            } else {
                Page::MAPPED_WRITE | Page::WRITABLE
            };
            page.without(lost)
        });
        if !frames.is_empty() {
            unix.machine.revoke(&frames, if all { Access::all() } else { Access::WRITE });
        }
    }

    /// Pages of a file are gone: mappings of them are forgotten, private copies too; or only
    /// those that still have one of the frames `only` (sorted).
    pub fn forget_file(
        &self,
        unix: &Unix,
        file: &Regular,
        pages: Range<u64>,
        only: Option<&[FrameId]>,
    ) {
        let mut next = 0;
        while let Some(area) = self.area_from(next) {
            next = area.end;
            let Backing::File { inode, .. } = &area.backing else { continue };
            if !inode.regular().is_some_and(|regular| core::ptr::eq(regular, file)) {
                continue;
            }
            let first = area.offset / PAGE;
            let at = |page: u64| {
                let offset = page.saturating_sub(first).saturating_mul(PAGE);
                area.start.saturating_add(offset).min(area.end)
            };
            let (start, end) = (at(pages.start), at(pages.end));
            let Some(only) = only else {
                self.drop_pages(unix, start, end);
                continue;
            };
            let mut gone = Vec::new();
            self.pages.borrow().for_each(start, end, |address, page| {
                if only.binary_search(&page.frame()).is_ok() {
                    gone.push(address);
                }
            });
            gone.iter().for_each(|address| self.drop_pages(unix, *address, address + PAGE));
        }
    }

    /// Removes whatever is mapped in a range.
    pub fn unmap(&self, unix: &Unix, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let stop = self.areas.borrow().end_of_some(at, end);
            let gone = self.areas.borrow_mut().remove(at, stop);
            self.drop_pages(unix, at, stop);
            drop(gone);
            at = stop;
        }
        // Shared memory may be among what has gone.
        unix.mm.bury(unix);
    }

    /// Pays for half as much kernel memory again, if the user can: how many pages.
    pub(crate) fn pay_kernel_memory(&self) -> Option<u64> {
        let more = (self.kernel.amount() / 2).max(SPACE_PAGES / 2);
        self.kernel.grow(more).is_ok().then_some(more)
    }

    /// Makes room for the areas that a call adds.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot pay for it.
    pub fn make_room(&self) -> Result<(), Errno> {
        self.areas.borrow_mut().make_room(|bytes| self.charge.grow(bytes))
    }

    /// Adds an area in a free range.
    pub fn add_area(&self, area: Area) {
        self.areas.borrow_mut().insert(area);
    }

    /// Adds private anonymous memory (for exec and the tests).
    pub fn add_anonymous(&self, start: u64, end: u64, access: Access, flags: AreaFlags) {
        let area = Area {
            start,
            end,
            access,
            may: Access::all(),
            flags,
            backing: Backing::Anonymous,
            offset: 0,
        };
        self.add_area(area);
    }

    /// The system's area `name` has another frame from now on.
    pub fn exchange_special(&self, unix: &Unix, name: &str, frame: &Rc<Frame>) {
        let mut found = None;
        self.areas.borrow_mut().change(0, USER_END, |area| {
            if let Backing::Special(own, backing) = &mut area.backing
                && *own == name
            {
                *backing = frame.clone();
                found = Some((area.start, area.end));
            }
        });
        if let Some((start, end)) = found {
            self.drop_pages(unix, start, end);
        }
    }

    /// How many areas there are.
    #[must_use]
    pub fn area_count(&self) -> usize {
        self.areas.borrow().list().len()
    }

    /// A copy of the first area that ends above an address, for `/proc`.
    #[must_use]
    pub fn area_from(&self, address: u64) -> Option<Area> {
        let areas = self.areas.borrow();
        let first = areas.list().partition_point(|area| area.end <= address);
        areas.list().get(first).cloned()
    }

    /// A copy of the list of areas, for `/proc`.
    #[must_use]
    pub fn areas(&self) -> Vec<Area> {
        self.areas.borrow().list().to_vec()
    }

    /// Pages that are there.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.pages.borrow().resident()
    }

    /// Most pages that have been there at one time.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak.get().max(self.resident())
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        let files = self.files.take();
        files.iter().filter_map(Weak::upgrade).for_each(|mappers| mappers.leave(self));
        if self.machine.get() != SpaceId(0) {
            self.graves.add(&self.plot, Some(self.machine.get()), self.pages.take());
        }
    }
}
