//! How large an address space is, for `/proc`.

use super::area::{Area, AreaFlags};
use super::pages::Page;
use super::{AddressSpace, PAGE};
use crate::machine::Access;

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
