//! What all address spaces share, and memory that several of them share.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::USER_END;
use super::pages::{Page, PageMap};
use crate::account::{Charge, FLOOR};
use crate::errno::Errno;
use crate::exec::vdso::Vdso;
use crate::machine::{Access, Mapping, SpaceId};
use crate::memory::{FrameId, Memory, PAGE};
use crate::unix::Unix;

/// Programs leave a sixty-fourth of all frames more than what nobody gets on behalf of a call,
/// and so many: user 0's files and pipes go on while they use memory up.
const RESERVE_PART: usize = 64;
const RESERVE: usize = 64;

/// What all address spaces share.
#[derive(Default)]
pub struct Shared {
    /// Frames that programs do not get, whose faults nobody's account refuses.
    pub(super) reserve: usize,
    /// What is left of spaces and shared memory that nobody has any more.
    pub(super) graves: Rc<Graves>,
    /// Mappings being gathered, kept for its capacity.
    pub(super) mappings: RefCell<Vec<Mapping>>,
    /// The vDSO's frames.
    pub vdso: Vdso,
    /// Serial numbers of spaces.
    next_space: Cell<u64>,
    /// Futexes with waiters.
    pub(super) futexes: super::futex::Futexes,
    /// Those whose word says who holds them.
    pub(super) held: super::futex::Futexes,
    /// Somebody has once waited to be moved to one of those.
    pub(super) moves: Cell<bool>,
}

impl Shared {
    /// Nothing yet, in `memory`.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        let total = memory.total();
        let reserve = total / FLOOR as usize + total / RESERVE_PART + RESERVE;
        Self { reserve, ..Self::default() }
    }

    pub(super) fn next_space(&self) -> u64 {
        self.next_space.set(self.next_space.get() + 1);
        self.next_space.get()
    }

    /// Gives back what dropped spaces had.
    pub fn bury(&self, unix: &Unix) {
        while let Some(grave) = self.graves.pop() {
            match grave.space {
                Some(space) => unix.machine.destroy_space(space),
                None => revoke(unix, &grave.pages),
            }
            grave.pages.each_frame(|page| {
                unix.memory.release(page.frame());
            });
        }
    }
}

/// Takes `pages` away from all programs, a handful at once: nobody asks for memory here.
fn revoke(unix: &Unix, pages: &PageMap) {
    let (mut some, mut count) = ([FrameId(0); 64], 0);
    pages.each_frame(|page| {
        some[count] = page.frame();
        count += 1;
        if count == some.len() {
            unix.machine.revoke(&some, Access::all());
            count = 0;
        }
    });
    if count > 0 {
        unix.machine.revoke(&some[..count], Access::all());
    }
}

/// A dropped space or shared memory.
#[derive(Default)]
struct Grave {
    space: Option<SpaceId>,
    pages: PageMap,
    next: Option<Box<Self>>,
}

/// A grave for later, made while there is memory: who dies asks for none.
#[derive(Default)]
pub(super) struct Plot(Cell<Option<Box<Grave>>>);

impl Plot {
    /// Room for one.
    pub(super) fn new() -> Self {
        Self(Cell::new(Some(Box::default())))
    }
}

/// All that wait to be buried.
#[derive(Default)]
pub(super) struct Graves(Cell<Option<Box<Grave>>>);

impl Graves {
    /// Whoever had `plot` had these.
    pub(super) fn add(&self, plot: &Plot, space: Option<SpaceId>, pages: PageMap) {
        if let Some(mut grave) = plot.0.take() {
            (grave.space, grave.pages, grave.next) = (space, pages, self.0.take());
            self.0.set(Some(grave));
        }
    }

    fn pop(&self) -> Option<Box<Grave>> {
        let mut grave = self.0.take()?;
        self.0.set(grave.next.take());
        Some(grave)
    }
}

impl Drop for Graves {
    /// One after the other: the list may be long.
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// A frame for a program, with unknown contents.
///
/// # Errors
/// `ENOMEM`.
pub(super) fn allocate(unix: &Unix) -> Result<FrameId, Errno> {
    if unix.memory.available() <= unix.mm.reserve {
        unix.mm.bury(unix);
        if unix.memory.available() <= unix.mm.reserve {
            return Err(Errno::ENOMEM);
        }
    }
    unix.memory.allocate().ok_or(Errno::ENOMEM)
}

/// A frame for a program, full of zeroes.
///
/// # Errors
/// `ENOMEM`.
pub(super) fn allocate_zeroed(unix: &Unix) -> Result<FrameId, Errno> {
    let frame = allocate(unix)?;
    unix.memory.zero(frame, 0, PAGE);
    Ok(frame)
}

/// Anonymous memory of `MAP_SHARED`: the spaces of a family have it in common.
pub struct SharedMemory {
    pages: RefCell<PageMap>,
    charge: Charge,
    /// How many bytes it has.
    bytes: u64,
    /// It was removed: nobody maps more of it.
    removed: Cell<bool>,
    /// Who pays for the frames, if no process has to answer for them.
    frames: Option<Charge>,
    plot: Plot,
    graves: Rc<Graves>,
}

/// What shared memory costs, without pages.
const SHARED_BYTES: u64 = 1536;

impl SharedMemory {
    /// `bytes` of zeroes; `charge` pays for what is to be remembered about it.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot pay.
    pub fn new(unix: &Unix, bytes: u64, charge: Charge) -> Result<Rc<Self>, Errno> {
        Self::with(unix, bytes, charge, None)
    }

    /// As [`Self::new`], of which `frames` pays for the frames.
    ///
    /// # Errors
    /// `ENOMEM` if the user cannot pay.
    pub fn paid(
        unix: &Unix,
        bytes: u64,
        charge: Charge,
        frames: Charge,
    ) -> Result<Rc<Self>, Errno> {
        Self::with(unix, bytes, charge, Some(frames))
    }

    fn with(
        unix: &Unix,
        bytes: u64,
        charge: Charge,
        frames: Option<Charge>,
    ) -> Result<Rc<Self>, Errno> {
        charge.grow(SHARED_BYTES)?;
        let (pages, plot, graves) = (RefCell::default(), Plot::new(), unix.mm.graves.clone());
        Ok(Rc::new(Self { pages, charge, bytes, removed: Cell::new(false), frames, plot, graves }))
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its name is gone; who has it mapped keeps that and gets no more.
    pub fn remove(&self) {
        self.removed.set(true);
    }

    /// Whether it was removed.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.removed.get()
    }

    /// Whether it is a segment of System V's: no process answers for its frames.
    #[must_use]
    pub fn is_segment(&self) -> bool {
        self.frames.is_some()
    }

    /// How many pages are there.
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.pages.borrow().resident() as u64
    }

    /// The frame of the page at byte `offset`.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn page(&self, unix: &Unix, offset: u64) -> Result<FrameId, Errno> {
        let at = offset & !(PAGE as u64 - 1);
        if at >= USER_END {
            return Err(Errno::ENOMEM);
        }
        if let Some(page) = self.pages.borrow().get(at) {
            return Ok(page.frame());
        }
        let frame = allocate_zeroed(unix)?;
        let mut pages = self.pages.borrow_mut();
        let page = Page::new(frame, 0);
        if let Err(errno) = pages.insert(at, page, |bytes| self.charge.grow(bytes)) {
            unix.memory.release(frame);
            return Err(errno);
        }
        Ok(frame)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.graves.add(&self.plot, None, self.pages.take());
    }
}
