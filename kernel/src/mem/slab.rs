//! Slots for mapping nodes: frames that belong to one space, 84 slots each.
//!
//! A space's slabs form a ring: those with free slots first, the full ones behind them. So the
//! first one has a free slot, if any has. A slab without nodes goes back to the pool at once, so
//! that a space's quota use returns to zero by itself.

use super::frames::PhysFrame;
use super::node::{LIVE, Node, NodeRef};
use super::quota::NoMemory;
use super::space::SpaceRef;
use crate::arch::{phys_to_virt, virt_to_phys};
use crate::ring::{Links, kinds};
use core::cell::Cell;
use core::ptr::NonNull;

/// Slots in a slab.
pub const SLOTS: u64 = 84;
/// One cache line.
const HEADER: u64 = 64;
const SLOT: u64 = size_of::<Node>() as u64;
const _: () = assert!(HEADER + SLOTS * SLOT == 4096 && size_of::<Slab>() as u64 <= HEADER);

/// What is in front of the slots.
#[repr(C)]
pub struct Slab {
    links: Links<SlabRef>,
    /// Whose it is.
    space: SpaceRef,
    /// 11..0 offset of the first free slot, 19..12 slots in use, 27..20 slots ever used.
    slots: Cell<u32>,
}

const OFFSET: u32 = 0xFFF;
const USED_ONE: u32 = 1 << 12;
const USED_MASK: u32 = 0xFF << 12;
const EVER_ONE: u32 = 1 << 20;
const FULL: u32 = (SLOTS as u32) << 12;

/// A slab that a space has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SlabRef(NonNull<Slab>);

kinds! {
    /// The slabs of a space.
    Slabs of SlabRef: links;
}

impl core::ops::Deref for SlabRef {
    type Target = Slab;

    #[inline]
    fn deref(&self) -> &Slab {
        // SAFETY: made only from frames that are in a space's ring of slabs, or about to be; a
        // slab leaves the ring before its frame is given back.
        unsafe { self.0.as_ref() }
    }
}

impl SlabRef {
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

    fn frame(self) -> PhysFrame {
        PhysFrame::at(virt_to_phys(self.0.as_ptr().cast()))
    }

    #[inline]
    fn is_full(self) -> bool {
        self.slots.get() & USED_MASK == FULL
    }

    /// Gives the slab, which holds nothing any more, back to the pool.
    #[cold]
    fn vanish(self, space: SpaceRef) {
        space.slabs().remove(self);
        space.quota().give_back(self.frame());
    }

    /// Takes a free slot; there is one.
    #[inline]
    fn take(self) -> Option<NodeRef> {
        let slots = self.slots.get();
        let offset = slots & OFFSET;
        if offset != 0 {
            // SAFETY: a slot of this slab: `free` has left its offset.
            let node = unsafe { NodeRef::from_word(self.address() + u64::from(offset)) }?;
            let rest = slots & !OFFSET | node.free_link().get() as u32;
            self.slots.set(rest + USED_ONE);
            return Some(node);
        }
        let ever = u64::from(slots / EVER_ONE);
        self.slots.set(slots + USED_ONE + EVER_ONE);
        // SAFETY: the first slot that was never used.
        unsafe { NodeRef::from_word(self.address() + HEADER + ever * SLOT) }
    }

    /// Node in slot number `slot`, if that is in use.
    fn live(self, slot: u64) -> Option<NodeRef> {
        // SAFETY: a slot of this slab that was used before.
        let node = unsafe { NodeRef::from_word(self.address() + HEADER + slot * SLOT) };
        node.filter(|node| node.has(LIVE))
    }

    /// Its nodes.
    fn nodes(self) -> impl Iterator<Item = NodeRef> {
        let ever = u64::from(self.slots.get() / EVER_ONE);
        (0..ever).filter_map(move |slot| self.live(slot))
    }
}

/// The space whose slab `node` is in; it outlives its slabs.
#[inline]
pub(crate) fn space_of(node: NodeRef) -> SpaceRef {
    SlabRef::of(node).space
}

/// Takes a slot; the space pays. The caller initialises it.
#[inline]
pub(crate) fn alloc(space: SpaceRef) -> Result<NodeRef, NoMemory> {
    let slab = match space.slabs().first() {
        Some(slab) if !slab.is_full() => slab,
        _ => grow(space)?,
    };
    let node = slab.take().ok_or(NoMemory)?;
    if slab.is_full() {
        space.slabs().turn_behind(slab);
    }
    space.count_node(1);
    Ok(node)
}

#[cold]
fn grow(space: SpaceRef) -> Result<SlabRef, NoMemory> {
    let frame = space.quota().take_frame()?;
    let slab = NonNull::new(phys_to_virt(frame.address()).cast::<Slab>()).ok_or(NoMemory)?;
    // SAFETY: the frame was just taken, is page-aligned and large enough.
    unsafe { slab.write(Slab { links: Links::default(), space, slots: Cell::new(0) }) };
    let slab = SlabRef(slab);
    space.slabs().append(slab);
    space.slabs().turn_to(slab);
    Ok(slab)
}

/// Frees a slot to which nothing refers any more.
#[inline(always)]
pub(crate) fn free(space: SpaceRef, node: NodeRef) {
    let slab = SlabRef::of(node);
    let slots = slab.slots.get();
    node.forget();
    node.free_link().set(u64::from(slots & OFFSET));
    let left = (slots & !OFFSET | node.word() as u32 & OFFSET) - USED_ONE;
    slab.slots.set(left);
    space.count_node(-1);
    if slots & USED_MASK == FULL {
        space.slabs().bring_forward(slab);
    } else if left & USED_MASK == 0 {
        slab.vanish(space);
    }
}

/// Any node of the space; used when the space is destroyed.
pub(crate) fn any(space: SpaceRef) -> Option<NodeRef> {
    space.slabs().first()?.nodes().next()
}

/// Calls `each` with the address of every frame that holds slots; for checks.
pub(crate) fn for_each_frame(space: SpaceRef, mut each: impl FnMut(u64)) {
    space.slabs().each(|slab| each(slab.frame().address()));
}

/// Calls `each` with every node of the space; how many slabs there are. For checks.
pub(crate) fn for_each(space: SpaceRef, mut each: impl FnMut(NodeRef)) -> u64 {
    let mut slabs = 0;
    space.slabs().each(|slab| {
        slabs += 1;
        slab.nodes().for_each(&mut each);
    });
    slabs
}
