//! Address spaces: areas, pages, copy on write, faults, the calls on memory, futexes.

use alloc::rc::Rc;

use crate::call::Entry;
use crate::errno::Errno;
use crate::machine::{Access, SpaceId};
use crate::memory::FrameId;
use crate::thread::Thread;
use crate::unix::Unix;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];

/// What all address spaces share: the futexes' queues.
#[derive(Default)]
pub struct Shared {}

/// One address space: areas and the pages that are there.
pub struct AddressSpace {
    machine: SpaceId,
}

impl AddressSpace {
    /// An empty space.
    ///
    /// # Errors
    /// When the machine has no more spaces.
    pub fn new(unix: &Unix) -> Result<Rc<Self>, Errno> {
        Ok(Rc::new(Self { machine: unix.machine.create_space()? }))
    }

    /// The machine's address space behind it.
    #[must_use]
    pub fn machine(&self) -> SpaceId {
        self.machine
    }

    /// A copy of `parent`: private pages are copied when written.
    ///
    /// # Errors
    /// `ENOMEM`, or when the machine has no more spaces.
    pub fn fork(unix: &Unix, parent: &AddressSpace) -> Result<Rc<Self>, Errno> {
        let _ = parent;
        Self::new(unix)
    }

    /// The last process that used the space (and all its threads) ended: everything in it is freed.
    pub fn retire(&self, unix: &Unix) {
        unix.machine.destroy_space(self.machine);
    }

    /// The frame of the page at `page` (page-aligned, any value), made present as if the
    /// program had read or written it (copy on write included).
    ///
    /// # Errors
    /// `EFAULT` if the program itself could not make this access, `ENOMEM` without memory.
    pub fn frame_for(&self, unix: &Unix, page: u64, write: bool) -> Result<FrameId, Errno> {
        let _ = (unix, page, write);
        Err(Errno::EFAULT)
    }
}

/// Answers a page fault: maps pages (neighbours that are there, too) or raises a signal.
pub fn page_fault(unix: &Unix, thread: &Rc<Thread>, address: u64, access: Access) {
    let _ = (unix, thread, address, access);
}
