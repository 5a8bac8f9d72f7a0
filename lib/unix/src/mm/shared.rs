//! What all address spaces share, and memory that several of them share.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::USER_END;
use super::pages::{Page, PageMap};
use crate::account::{Charge, FLOOR};
use crate::errno::Errno;
use crate::exec::vdso::Vdso;
use crate::machine::{Mapping, SpaceId};
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
        loop {
            let Some(grave) = self.graves.0.borrow_mut().pop() else { return };
            match grave.space {
                Some(space) => unix.machine.destroy_space(space),
                None => {
                    let mut frames = Vec::new();
                    grave.pages.each_frame(|page| frames.push(page.frame()));
                    unix.machine.revoke(&frames, crate::machine::Access::all());
                }
            }
            grave.pages.each_frame(|page| {
                unix.memory.release(page.frame());
            });
        }
    }
}

/// A dropped space or shared memory.
struct Grave {
    space: Option<SpaceId>,
    pages: PageMap,
}

/// All that wait to be buried.
#[derive(Default)]
pub(super) struct Graves(RefCell<Vec<Grave>>);

impl Graves {
    pub(super) fn add(&self, space: Option<SpaceId>, pages: PageMap) {
        self.0.borrow_mut().push(Grave { space, pages });
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
    graves: Rc<Graves>,
}

impl SharedMemory {
    /// Nothing but zeroes; `charge` pays for what is to be remembered about it.
    #[must_use]
    pub fn new(unix: &Unix, charge: Charge) -> Rc<Self> {
        Rc::new(Self { pages: RefCell::default(), charge, graves: unix.mm.graves.clone() })
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
        self.graves.add(None, self.pages.take());
    }
}
