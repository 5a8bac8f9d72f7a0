//! Address spaces.
//!
//! A space's descriptor is the start of a frame of its own, paid by its quota;
//! its address never changes. The descriptor holds the root (`root`),
//! the two areas that no user may map over, and the lists of its nodes.

use super::frames::PhysFrame;
use super::quota::{NoMemory, Quota};
use super::root::Root;
use super::slab::Slabs;
use super::{state, table};
use crate::arch::paging::{Entry, Table, index};
use crate::arch::{phys_to_virt, virt_to_phys};
use crate::ring::Ring;
use abi::Rights;
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;

/// A range of user addresses that map, grant and unmap leave alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Area {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// A descriptor has room for what the space's owner keeps. Memory does not look at it; whoever owns spaces says what it
/// is, once for all of them.
pub trait Owned {
    /// What that is.
    type Owner: Default;
}

/// The descriptor of a space.
pub struct AddressSpace {
    root: Root,
    sigma0: Cell<bool>,
    id: Cell<u32>,
    quota: Quota,
    kip: Cell<Area>,
    utcb: Cell<Area>,
    slabs: Ring<Slabs>,
    tables: Cell<u64>,
    nodes: Cell<u64>,
    ports: Cell<u64>,
    port_nodes: Cell<u64>,
    /// The last table of 2 MiB entries that `resolve` walked, and for which piece of 1 GiB,
    /// counted from 1; 0 is none (`lookup.rs`).
    near: (Cell<u64>, Cell<Table>),
    /// What its owner keeps beside it: the task whose space it is.
    pub task: <Self as Owned>::Owner,
}

const _: () = assert!(size_of::<AddressSpace>() <= 4096);

/// A space that exists. `SpaceRef`s that outlive [`SpaceRef::free`] are their holder's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct SpaceRef(NonNull<AddressSpace>);

impl Deref for SpaceRef {
    type Target = AddressSpace;

    #[inline]
    fn deref(&self) -> &AddressSpace {
        // SAFETY: made by `create`, valid until `free`, whose caller drops all
        // other references first. All fields are cells; one processor.
        unsafe { self.0.as_ref() }
    }
}

impl AddressSpace {
    /// Creates an empty space with number `id` and a quota of `pages` that `payer` gives away.
    pub fn create(id: u32, payer: &Quota, pages: u64) -> Result<SpaceRef, NoMemory> {
        let quota = Quota::new(0);
        payer.transfer(&quota, pages)?;
        match Self::take_frames(&quota) {
            Ok((own, root)) => Ok(Self::build(id, quota, own, root)),
            Err(NoMemory) => {
                quota.transfer(payer, pages)?;
                Err(NoMemory)
            }
        }
    }

    fn take_frames(quota: &Quota) -> Result<(PhysFrame, PhysFrame), NoMemory> {
        let own = quota.take_frame()?;
        match quota.take_zeroed_frame() {
            Ok(root) => Ok((own, root)),
            Err(error) => {
                quota.give_back(own);
                Err(error)
            }
        }
    }

    fn build(id: u32, quota: Quota, own: PhysFrame, root: PhysFrame) -> SpaceRef {
        super::frames::Info::of(root.address()).init(0, 0);
        let pointer = phys_to_virt(own.address()).cast::<Self>();
        let space = Self {
            root: Root::new(&root),
            sigma0: Cell::new(false),
            id: Cell::new(id),
            quota,
            kip: Cell::default(),
            utcb: Cell::default(),
            slabs: Ring::new(),
            tables: Cell::new(0),
            nodes: Cell::new(0),
            ports: Cell::new(0),
            port_nodes: Cell::new(0),
            near: (Cell::new(0), Cell::default()),
            task: Default::default(),
        };
        // SAFETY: the frame was just taken, is page-aligned and large enough.
        unsafe { pointer.write(space) };
        // SAFETY: the descriptor was just written there.
        let space = unsafe { SpaceRef::from_live(pointer.cast()) };
        space.root.tag(space);
        space
    }

    /// The number it was created with.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id.get()
    }

    /// What it may use of the kernel's memory.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// What the processor is given to run in it.
    #[inline]
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    #[inline]
    pub(crate) fn root_table(&self) -> Table {
        self.root.table()
    }

    /// Makes this the initial space: it owns all memory and all ports.
    pub fn make_sigma0(&self) {
        self.sigma0.set(true);
        state().sigma0.set(Some(SpaceRef(NonNull::from(self))));
    }

    /// Whether this is the initial space.
    #[inline]
    #[must_use]
    pub fn is_sigma0(&self) -> bool {
        self.sigma0.get()
    }

    /// Sets the two areas that users cannot map over; nothing is mapped there yet.
    pub fn set_areas(&self, kip: Area, utcb: Area) {
        self.kip.set(kip);
        self.utcb.set(utcb);
    }

    /// The KIP area and the UTCB area.
    #[must_use]
    pub fn areas(&self) -> (Area, Area) {
        (self.kip.get(), self.utcb.get())
    }

    /// Whether `start..end` touches the KIP area or the UTCB area.
    #[inline]
    #[must_use]
    pub fn is_protected(&self, start: u64, end: u64) -> bool {
        let (kip, utcb) = (self.kip.get(), self.utcb.get());
        (start < kip.end && kip.start < end) || (start < utcb.end && utcb.start < end)
    }

    /// Page-table pages and their twins, the root not counted.
    #[must_use]
    pub fn table_pages(&self) -> u64 {
        self.tables.get()
    }

    /// Mapping nodes, those of ports included.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        self.nodes.get()
    }

    /// Port ranges that it holds.
    #[must_use]
    pub fn port_ranges(&self) -> u64 {
        self.port_nodes.get()
    }

    #[inline]
    pub(crate) fn slabs(&self) -> &Ring<Slabs> {
        &self.slabs
    }

    #[inline]
    pub(crate) fn count_node(&self, change: i64) {
        self.nodes.set(self.nodes.get().wrapping_add_signed(change));
    }

    #[inline]
    pub(crate) fn count_tables(&self, change: i64) {
        self.tables.set(self.tables.get().wrapping_add_signed(change));
    }

    #[inline(always)]
    pub(super) fn near(&self) -> &(Cell<u64>, Cell<Table>) {
        &self.near
    }

    /// First port node, and the number of port nodes.
    pub(crate) fn ports(&self) -> (&Cell<u64>, &Cell<u64>) {
        (&self.ports, &self.port_nodes)
    }
}

impl SpaceRef {
    /// The space whose descriptor is at `pointer`.
    ///
    /// # Safety
    /// `pointer` is the address of a descriptor that `create` has written and nobody has freed.
    #[inline]
    pub(crate) unsafe fn from_live(pointer: *mut u8) -> Self {
        debug_assert!(!pointer.is_null(), "no space lives at physical address 0");
        // SAFETY: frames of the pool never have kernel address 0.
        Self(unsafe { NonNull::new_unchecked(pointer.cast()) })
    }

    /// The descriptor's kernel address; also a word that identifies the space.
    #[inline]
    #[must_use]
    pub fn address(self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// The space whose identifying word is `word`; 0 is none.
    ///
    /// # Safety
    /// `word` must come from [`SpaceRef::address`] of a space that still exists.
    #[must_use]
    pub unsafe fn from_word(word: u64) -> Option<Self> {
        NonNull::new(word as *mut AddressSpace).map(Self)
    }

    /// Ends a space that a `DestroyJob` has emptied: its last two frames go back
    /// to the pool, its quota to `heir`. No processor may have its tables loaded.
    pub fn free(self, heir: &Quota) {
        self.root.free(&self.quota);
        let own = PhysFrame::at(virt_to_phys(self.address()));
        // The descriptor lies in the frame that it gives back: limit first.
        self.quota.bequeath(heir);
        super::frames::give_back(own);
    }

    /// Maps the kernel's own page (KIP, UTCB) for the user at `vaddr`: no node, never sent on.
    pub fn map_kernel_page(self, vaddr: u64, phys: u64, rights: Rights) -> Result<(), NoMemory> {
        self.map_with(vaddr, phys, rights, Entry::KERNEL)
    }

    /// The same for a page of A-stacks, which another space sees, too.
    pub fn map_a_stack(self, vaddr: u64, phys: u64) -> Result<(), NoMemory> {
        self.map_with(vaddr, phys, Rights::RW, Entry::KERNEL | Entry::A_STACK)
    }

    fn map_with(self, vaddr: u64, phys: u64, rights: Rights, bits: u64) -> Result<(), NoMemory> {
        let table = table::ensure(self, vaddr, 0)?;
        let entry = Entry::page(phys, 0, rights, 0);
        table::put(table, index(vaddr, 0), Entry(entry.0 | bits), None);
        Ok(())
    }

    /// Takes a kernel page out of the space; returns its physical address.
    pub fn unmap_kernel_page(self, vaddr: u64) -> Option<u64> {
        match table::find(self, vaddr) {
            table::Slot::Leaf(leaf) if leaf.entry.has(Entry::KERNEL) => {
                let old = table::remove(self, vaddr, leaf);
                Some(old.address())
            }
            _ => None,
        }
    }
}
