//! The root of a space: what the processor is given to run in it.
//!
//! A [`Root`] is a root table, the tag under which its translations are cached, and the
//! space's own port bitmap if it has one (`iobitmap`). `mem` holds one in each space, walks
//! the users' half of its table ([`Root::table`]) and links tables into it; threads hold its
//! [`RootWord`], so that a switch costs one load. What the word is made of, and how many
//! tables there are, is known here alone.

use super::iobitmap::Defaults;
use super::pcid::Pcids;
use super::tlb;
use crate::arch::paging::{Entry, KERNEL_HALF, Table};
use crate::arch::x86_64::tables::PORTS_SLOT;
use crate::mem::{PhysFrame, Quota, SpaceRef};
use core::cell::Cell;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What CR3 holds while a thread of the space runs: the root table's address, the PCID, and
/// in bit 63 whether the translations under it are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct RootWord(u64);

impl RootWord {
    /// The word of the kernel's own tables at physical address `table`, without a tag.
    #[must_use]
    pub const fn of_kernel(table: u64) -> Self {
        Self(table)
    }

    /// What goes into CR3.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// How often the users' half of any root table has changed: who has a copy of one compares.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// What was changed is there: seldom, for an entry is 512 GiB.
fn note_change() {
    // Nobody but the first processor writes it.
    CHANGES.store(CHANGES.load(Relaxed) + 1, Release);
}

/// How often the users' half of any root table has changed until now: whoever has asked, and copies
/// one then, has a copy that is right until the answer is another.
#[must_use]
pub fn changes() -> u64 {
    CHANGES.load(Acquire)
}

/// The root of one space.
#[derive(Default)]
pub struct Root {
    table: Cell<u64>,
    pcid: Cell<u16>,
    bitmap: Cell<u64>,
    bitmap_to_come: Cell<u64>,
}

impl Root {
    /// Frames that a space's root takes, a port bitmap not counted.
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
        Self { table: Cell::new(own.address()), ..Self::default() }
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
        note_change();
    }

    /// Takes a table below the root out.
    pub fn unlink(&self, index: usize) {
        let _ = self.table().take(index);
        note_change();
    }

    /// What the processor is given to run in the space.
    #[inline]
    #[must_use]
    pub fn word(&self) -> RootWord {
        let pcid = u64::from(self.pcid.get());
        RootWord(self.table.get() | pcid | u64::from(pcid != 0) << 63)
    }

    /// Its PCID; 0 if it has none of its own.
    #[inline]
    #[must_use]
    pub fn pcid(&self) -> u16 {
        self.pcid.get()
    }

    /// Upper table of the space's own port bitmap; 0 if it has none.
    pub(super) fn bitmap(&self) -> &Cell<u64> {
        &self.bitmap
    }

    /// Upper table of one that is being made; 0 if none is.
    pub(super) fn bitmap_to_come(&self) -> &Cell<u64> {
        &self.bitmap_to_come
    }

    /// Gives the root of `space`, which nobody runs in yet, a tag of its own. Who loses it
    /// falls back to none.
    pub fn tag(&self, space: SpaceRef) {
        let shared = shared();
        if !shared.pcids.enabled() {
            return;
        }
        let assigned = shared.pcids.assign(space.address() as u64);
        // SAFETY: a space releases its PCID before it is freed, so the former
        // owner exists.
        let loser = assigned.stolen_from.and_then(|word| unsafe { SpaceRef::from_word(word) });
        if let Some(loser) = loser {
            loser.root().pcid.set(0);
            tlb::reload_if_current(loser);
            if let Some(hook) = shared.changed.get() {
                hook(loser);
            }
        }
        tlb::flush_pcid(assigned.pcid);
        self.pcid.set(assigned.pcid);
    }

    /// Ends the root: its frames go back to `quota`. No processor may have it loaded.
    pub fn free(&self, quota: &Quota) {
        if self.pcid() != 0 {
            shared().pcids.release(self.pcid());
        }
        quota.give_back(PhysFrame::at(self.table.get()));
        // The next space may have its root there.
        note_change();
    }

    /// Says to `report` which root entries of the kernel's half are not what all spaces
    /// have, but for accessed bits and the space's own port bitmap.
    pub fn check(&self, report: &mut impl FnMut(u64)) {
        let template = shared().template.get();
        if template == 0 {
            return;
        }
        let own_bitmap = self.bitmap.get();
        for index in KERNEL_HALF..512 {
            let (entry, model) = (self.table().get(index), Table::at(template).get(index));
            let same = if index == PORTS_SLOT && own_bitmap != 0 {
                entry.address() == own_bitmap
            } else {
                (entry.0 ^ model.0) & !Entry::A == 0
            };
            if !same {
                report(index as u64);
            }
        }
    }
}

/// What all roots share.
pub struct Shared {
    pcids: Pcids,
    template: Cell<u64>,
    ports: Defaults,
    changed: Cell<Option<fn(SpaceRef)>>,
}

impl Shared {
    /// Nothing yet; boot tells.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pcids: Pcids::new(),
            template: Cell::new(0),
            ports: Defaults::new(),
            changed: Cell::new(None),
        }
    }

    /// What the port bitmaps of all spaces share.
    pub(super) fn ports(&self) -> &Defaults {
        &self.ports
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}

crate::arch::global::global! {
    /// What they share.
    pub(super) fn shared() -> Shared = Shared::new();
}

/// Names the root table whose kernel half every new space copies.
pub fn set_template(table: u64) {
    shared().template.set(table);
}

/// Says that PCIDs are on (CR4.PCIDE) and INVPCID exists; before the first space.
pub fn enable_tags() {
    shared().pcids.enable();
}

/// Registers what is called after the [`RootWord`] of a space has changed, so that cached
/// copies can be refreshed: its PCID has gone to another space.
pub fn on_change(hook: fn(SpaceRef)) {
    shared().changed.set(Some(hook));
}
