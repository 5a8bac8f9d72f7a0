//! Slots for mapping nodes: frames that belong to one space, 85 slots each.
//!
//! Two lists per space: slabs with free slots, and full ones. A slab without
//! nodes goes back to the pool at once, so that a space's quota use returns to
//! zero by itself.

use super::frames::PhysFrame;
use super::node::{LIVE, Node, NodeRef};
use super::quota::NoMemory;
use super::space::SpaceRef;
use crate::arch::{phys_to_virt, virt_to_phys};
use core::cell::Cell;
use core::ptr::NonNull;

/// Slots in a slab.
pub const SLOTS: u64 = 85;
const HEADER: u64 = 16;
const SLOT: u64 = size_of::<Node>() as u64;
const _: () = assert!(HEADER + SLOTS * SLOT == 4096);

/// The slab's header. Frame numbers, not addresses, leave room for the counters.
#[repr(C)]
struct Slab {
    /// 39..0 next slab's frame number, 47..40 slots in use, 55..48 slots ever used.
    next: Cell<u64>,
    /// 39..0 previous slab's frame number, 51..40 offset of the first free slot.
    prev: Cell<u64>,
}

const FRAME_MASK: u64 = (1 << 40) - 1;
const USED_ONE: u64 = 1 << 40;
const USED_MASK: u64 = 0xFF << 40;
const EVER_ONE: u64 = 1 << 48;

#[derive(Clone, Copy, PartialEq, Eq)]
struct SlabRef(NonNull<Slab>);

impl core::ops::Deref for SlabRef {
    type Target = Slab;

    #[inline]
    fn deref(&self) -> &Slab {
        // SAFETY: made only from frames that a space's slab lists hold; a slab
        // leaves the lists before its frame is given back.
        unsafe { self.0.as_ref() }
    }
}

impl SlabRef {
    #[inline]
    fn from_number(number: u64) -> Option<Self> {
        if number & FRAME_MASK == 0 {
            return None;
        }
        NonNull::new(phys_to_virt((number & FRAME_MASK) << 12).cast()).map(Self)
    }

    #[inline]
    fn of(node: NodeRef) -> Self {
        let page = (node.word() & !0xFFF) as *mut Slab;
        // SAFETY: a node's address is never 0, and slots start behind the header
        // of a page-aligned frame.
        Self(unsafe { NonNull::new_unchecked(page) })
    }

    #[inline]
    fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    #[inline]
    fn number(self) -> u64 {
        virt_to_phys(self.0.as_ptr().cast()) >> 12
    }

    #[inline]
    fn used(self) -> u64 {
        self.next.get() >> 40 & 0xFF
    }

    #[inline]
    fn ever(self) -> u64 {
        self.next.get() >> 48 & 0xFF
    }

    #[inline(always)]
    fn set_frame(cell: &Cell<u64>, number: u64) {
        cell.set(cell.get() & !FRAME_MASK | number);
    }

    /// Puts this slab, which is in no list, at the front of one.
    #[inline(always)]
    fn push(self, list: &Cell<u64>) {
        Self::set_frame(&self.next, list.get());
        Self::set_frame(&self.prev, 0);
        if let Some(next) = Self::from_number(list.get()) {
            Self::set_frame(&next.prev, self.number());
        }
        list.set(self.number());
    }

    /// Takes this slab out of `list`.
    #[inline(always)]
    fn remove(self, list: &Cell<u64>) {
        let next = self.next.get() & FRAME_MASK;
        let prev = self.prev.get() & FRAME_MASK;
        match Self::from_number(prev) {
            Some(prev) => Self::set_frame(&prev.next, next),
            None => list.set(next),
        }
        if let Some(next) = Self::from_number(next) {
            Self::set_frame(&next.prev, prev);
        }
    }

    /// Moves this slab, which is full, to those with free slots.
    #[inline(never)]
    fn make_room(self, space: SpaceRef) {
        self.remove(space.full_slabs());
        self.push(space.slabs());
    }

    /// Gives the slab, which holds nothing any more, back to the pool.
    #[cold]
    fn vanish(self, space: SpaceRef) {
        self.remove(space.slabs());
        space.quota().give_back(PhysFrame::at(self.number() << 12));
    }

    /// Takes a free slot; there is one.
    #[inline]
    fn take(self) -> Option<NodeRef> {
        let offset = self.prev.get() >> 40 & 0xFFF;
        if offset != 0 {
            // SAFETY: a slot of this slab: `free` has left its offset.
            let node = unsafe { NodeRef::from_word(self.address() + offset) }?;
            let rest = self.prev.get() & FRAME_MASK;
            self.prev.set(rest | node.free_link().get() << 40);
            self.next.set(self.next.get() + USED_ONE);
            return Some(node);
        }
        let ever = self.ever();
        self.next.set(self.next.get() + USED_ONE + EVER_ONE);
        // SAFETY: the first slot that was never used.
        unsafe { NodeRef::from_word(self.address() + HEADER + ever * SLOT) }
    }

    /// Node in slot number `slot`, if that is in use.
    fn live(self, slot: u64) -> Option<NodeRef> {
        if slot >= self.ever() {
            return None;
        }
        // SAFETY: a slot of this slab that was used before.
        let node = unsafe { NodeRef::from_word(self.address() + HEADER + slot * SLOT) };
        node.filter(|node| node.has(LIVE))
    }
}

/// Takes a slot; the space pays. The caller initialises it.
#[inline]
pub(crate) fn alloc(space: SpaceRef) -> Result<NodeRef, NoMemory> {
    let slab = match SlabRef::from_number(space.slabs().get()) {
        Some(slab) => slab,
        None => grow(space)?,
    };
    let node = slab.take().ok_or(NoMemory)?;
    if slab.used() == SLOTS {
        slab.remove(space.slabs());
        slab.push(space.full_slabs());
    }
    space.count_node(1);
    Ok(node)
}

#[cold]
fn grow(space: SpaceRef) -> Result<SlabRef, NoMemory> {
    let frame = space.quota().take_frame()?;
    let slab = SlabRef::from_number(frame.address() >> 12).ok_or(NoMemory)?;
    slab.next.set(0);
    slab.prev.set(0);
    slab.push(space.slabs());
    Ok(slab)
}

/// Frees a slot to which nothing refers any more.
#[inline(always)]
pub(crate) fn free(space: SpaceRef, node: NodeRef) {
    let slab = SlabRef::of(node);
    if slab.used() == SLOTS {
        slab.make_room(space);
    }
    node.clear_flags(LIVE);
    let prev = slab.prev.get();
    node.free_link().set(prev >> 40 & 0xFFF);
    slab.prev.set(prev & FRAME_MASK | (node.word() & 0xFFF) << 40);
    let next = slab.next.get() - USED_ONE;
    slab.next.set(next);
    space.count_node(-1);
    if next & USED_MASK == 0 {
        slab.vanish(space);
    }
}

/// Any node of the space; used when the space is destroyed.
pub(crate) fn any(space: SpaceRef) -> Option<NodeRef> {
    let first = space.full_slabs().get();
    let first = if first == 0 { space.slabs().get() } else { first };
    let slab = SlabRef::from_number(first)?;
    (0..slab.ever()).find_map(|slot| slab.live(slot))
}

/// Calls `each` with the address of every frame that holds slots; for checks.
pub(crate) fn for_each_frame(space: SpaceRef, mut each: impl FnMut(u64)) {
    for list in [space.slabs().get(), space.full_slabs().get()] {
        let mut next = SlabRef::from_number(list);
        while let Some(slab) = next {
            each(slab.number() << 12);
            next = SlabRef::from_number(slab.next.get());
        }
    }
}

/// Calls `each` with every node of the space; for checks.
pub(crate) fn for_each(space: SpaceRef, mut each: impl FnMut(NodeRef)) -> u64 {
    let mut slabs = 0;
    for list in [space.slabs().get(), space.full_slabs().get()] {
        let mut next = SlabRef::from_number(list);
        while let Some(slab) = next {
            slabs += 1;
            (0..slab.ever()).filter_map(|slot| slab.live(slot)).for_each(&mut each);
            next = SlabRef::from_number(slab.next.get());
        }
    }
    slabs
}
