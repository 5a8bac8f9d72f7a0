//! The root of a space: its root table, and the word of satp that leads there.
//!
//! There are no tags (ASIDs) yet: all translations are forgotten at each switch.

use crate::arch::paging::{Entry, KERNEL_HALF, Table};
use crate::mem::{PhysFrame, Quota, SpaceRef};
use core::cell::Cell;

/// satp: translation by Sv48.
const SV48: u64 = 9 << 60;

/// What satp holds while a thread of the space runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct RootWord(u64);

impl RootWord {
    /// The word of the tables whose root is at physical address `table`.
    #[must_use]
    pub const fn of_kernel(table: u64) -> Self {
        Self(SV48 | table >> 12)
    }

    /// What goes into satp.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// The root of one space.
pub struct Root {
    table: Cell<u64>,
}

impl Root {
    /// Frames that a space's root takes.
    pub const FRAMES: u64 = 1;

    /// The root of an empty space, in `frame`, which is all zeros.
    #[must_use]
    pub fn new(frame: &PhysFrame) -> Self {
        let (own, template) = (Table::of(*frame), shared().template.get());
        if template != 0 {
            for index in KERNEL_HALF..512 {
                own.set(index, Table::at(template).get(index));
            }
        }
        Self { table: Cell::new(own.address()) }
    }

    /// The table whose lower half is the users'; only [`Root::link`] and [`Root::unlink`]
    /// change its entries.
    #[inline]
    #[must_use]
    pub fn table(&self) -> Table {
        Table::at(self.table.get())
    }

    /// Enters a table below the root.
    pub fn link(&self, index: usize, entry: Entry) {
        self.table().set(index, entry);
    }

    /// Takes a table below the root out.
    pub fn unlink(&self, index: usize) {
        let _ = self.table().take(index);
    }

    /// What the processor is given to run in the space.
    #[inline]
    #[must_use]
    pub fn word(&self) -> RootWord {
        RootWord::of_kernel(self.table.get())
    }

    /// There are no tags.
    pub fn tag(&self, _space: SpaceRef) {}

    /// Ends the root: its frames go back to `quota`. No processor may have it loaded.
    pub fn free(&self, quota: &Quota) {
        quota.give_back(PhysFrame::at(self.table.get()));
    }

    /// Says to `report` which root entries of the kernel's half are not what all spaces have.
    pub fn check(&self, report: &mut impl FnMut(u64)) {
        let template = shared().template.get();
        if template != 0 {
            let differs =
                |index: &usize| self.table().get(*index) != Table::at(template).get(*index);
            (KERNEL_HALF..512).filter(differs).for_each(|index| report(index as u64));
        }
    }
}

/// What all roots share.
#[derive(Default)]
pub struct Shared {
    template: Cell<u64>,
}

impl Shared {
    /// Nothing yet; boot tells.
    #[must_use]
    pub const fn new() -> Self {
        Self { template: Cell::new(0) }
    }
}

crate::arch::global::global! {
    /// What they share.
    fn shared() -> Shared = Shared::new();
}

/// Names the root table whose kernel half every new space copies.
pub fn set_template(table: u64) {
    shared().template.set(table);
}

/// A root's word never changes: nobody has to be called.
pub fn on_change(_hook: fn(SpaceRef)) {}
