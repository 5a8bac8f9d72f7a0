//! How large an address space is, what of it is there, and which files it may write.

use super::area::{Area, AreaFlags, Backing};
use super::pages::Page;
use super::{AddressSpace, PAGE};
use crate::fs::regular::Regular;
use crate::machine::Access;
use crate::memory::FrameId;

/// Sizes in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Sizes {
    pub total: u64,
    pub resident: u64,
    pub shared: u64,
    pub code: u64,
    pub data: u64,
    pub stack: u64,
    pub locked: u64,
}

impl AddressSpace {
    /// Sizes in pages, for `/proc/pid/statm`.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let areas = self.areas.borrow();
        let pages = |test: &dyn Fn(&Area) -> bool| areas.bytes(test) / PAGE;
        let mut shared = 0;
        self.pages.borrow().each_frame(|page| shared += u64::from(page.has(Page::SHARED)));
        Sizes {
            total: pages(&|_| true),
            resident: self.resident() as u64,
            shared,
            code: pages(&|area| area.access.contains(Access::EXECUTE)),
            data: pages(&|area| area.is_data()),
            stack: pages(&|area| area.flags.contains(AreaFlags::GROWS_DOWN)),
            locked: pages(&|area| area.flags.contains(AreaFlags::LOCKED)),
        }
    }
}

impl AddressSpace {
    /// Calls `each` with the frame of each page of a range that is there.
    pub fn each_present(&self, start: u64, end: u64, mut each: impl FnMut(FrameId)) {
        self.pages.borrow().for_each(start, end, |_, page| each(page.frame()));
    }

    /// The pages that are there between two page addresses: where, which frame, whether it is shared
    /// rather than copied.
    pub fn each_page(&self, start: u64, end: u64, mut each: impl FnMut(u64, FrameId, bool)) {
        let pages = self.pages.borrow();
        pages.for_each(start, end, |at, page| each(at, page.frame(), page.has(Page::SHARED)));
    }

    /// Whether a shared mapping of it can write `file`, or could be made to.
    #[must_use]
    pub fn may_write(&self, file: &Regular) -> bool {
        self.areas.borrow().list().iter().any(|area| match &area.backing {
            Backing::File { inode, .. } => {
                inode.regular().is_some_and(|regular| core::ptr::eq(regular, file))
                    && area.flags.contains(AreaFlags::SHARED)
                    && area.may.contains(Access::WRITE)
            }
            _ => false,
        })
    }
}
