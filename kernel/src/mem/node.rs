//! Mapping nodes: one per mapped page, linked into a tree per frame.
//!
//! A node stands for one mapping operation's page: a region of 2^12, 2^21 or
//! 2^30 bytes of one space. When parts of a large page are taken away, the page
//! table is split and the node stays, counting the entries that still refer to
//! it; so no node has to be split. A child lies within its parent's region. Whose it is
//! says its slab (`slab.rs`). A node whose count is 0 is a *ghost*: its pages are gone, a walk that
//! removes its subtree is still under way.

use super::slab;
use super::space::SpaceRef;
use crate::arch::paging::{shift, span};
use crate::arch::preemption::Pace;
use abi::Rights;
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;

/// 48 bytes: 84 of them and a header fill a frame (`slab.rs`).
#[derive(Default)]
#[repr(C)]
pub struct Node {
    parent: Cell<Option<NodeRef>>,
    /// The word of the first child.
    child: Cell<u64>,
    next: Cell<Option<NodeRef>>,
    prev: Cell<Option<NodeRef>>,
    /// 39..0 number of the region's first frame, 58..40 entries that refer to the node, 63..59 flags.
    frame: Cell<u64>,
    /// 35..0 virtual page number, 53..36 [`Self::times_spared`], 55..54 level, 63 [`PASSED_ON`].
    place: Cell<u64>,
}

const _: () = assert!(size_of::<Node>() == 48);

const COUNT_ONE: u64 = 1 << 40;
const COUNT_MASK: u64 = 0x7_FFFF << 40;
const FRAME_MASK: u64 = (1 << 40) - 1;

/// No mapping but a place among them: see `marker.rs`.
pub(crate) const MARKER: u64 = 1 << 59;
/// The slot is in use.
pub(crate) const LIVE: u64 = 1 << 60;
/// From here on: W, a vanished child was written; R, it was referenced.
pub(crate) const STATUS: u32 = 60;
pub(crate) const ANY_STATUS: u64 = (Rights::RW.0 as u64) << STATUS;
/// An I/O port node (`io.rs` uses its own layout of `place`).
pub(crate) const PORTS: u64 = 1 << 63;

/// In `place`: the node took another one's place, and not all children know yet.
const PASSED_ON: u64 = 1 << 63;
const SPARED_ONE: u64 = 1 << 36;
const SPARED_MASK: u64 = 0x3_FFFF << 36;

/// A node that is alive. Not counted: the tree's links are the owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct NodeRef(NonNull<Node>);

impl Deref for NodeRef {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        // SAFETY: a `NodeRef` is made from a slot that the slab handed out, and
        // all of the tree's references to it are removed before the slot is
        // freed (`slab::free`, called by `walk` and `io` only). Fields are
        // cells, and the kernel is single-threaded.
        unsafe { self.0.as_ref() }
    }
}

impl NodeRef {
    /// The node, or marker, at `node`, which stays as long as it is linked.
    pub(crate) fn new(node: NonNull<Node>) -> Self {
        Self(node)
    }

    /// The node whose word is `word`; `None` for 0.
    ///
    /// # Safety
    /// `word` is 0, or from [`NodeRef::word`] of a node that is still in its slot, or the
    /// address of a slot of a slab.
    #[inline]
    pub(crate) unsafe fn from_word(word: u64) -> Option<Self> {
        NonNull::new(word as *mut Node).map(Self)
    }

    /// The word that stands for this node in twins and links.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// The space that the page belongs to.
    #[inline]
    #[must_use]
    pub fn space(self) -> SpaceRef {
        slab::space_of(self)
    }

    /// Links this node, which has no parent, as the first child of `parent`.
    #[inline]
    pub(crate) fn link_below(self, parent: Self) {
        let first = parent.first_raw();
        self.parent.set(Some(parent));
        self.prev.set(None);
        self.next.set(first);
        if let Some(first) = first {
            first.prev.set(Some(self));
        }
        parent.child.set(self.word());
    }

    /// Links this node, which has no parent, right behind its new sibling.
    #[inline]
    pub(crate) fn link_behind(self, sibling: Self) {
        let next = sibling.next.get();
        self.parent.set(sibling.parent.get());
        self.prev.set(Some(sibling));
        self.next.set(next);
        if let Some(next) = next {
            next.prev.set(Some(self));
        }
        sibling.next.set(Some(self));
    }

    /// Moves this node, a sibling behind `sibling`, right in front of it.
    pub(crate) fn move_before(self, sibling: Self, parent: Self) {
        self.unlink();
        let prev = sibling.prev.replace(Some(self));
        self.parent.set(Some(parent));
        self.prev.set(prev);
        self.next.set(Some(sibling));
        match prev {
            Some(prev) => prev.next.set(Some(self)),
            None => parent.child.set(self.word()),
        }
    }

    /// Makes this node, which has no children, the parent of those of `old`, which has some and
    /// is linked nowhere any more. They find it through `old`, a forwarder in front of them.
    pub(crate) fn take_over(self, old: Self) {
        self.child.set(old.child.replace(0));
        old.frame.set(old.frame.get() | MARKER);
        old.link_below(self);
        let spared = old.place.get() & SPARED_MASK;
        self.place.set(self.place.get() & !SPARED_MASK | spared | PASSED_ON);
    }

    /// Takes this node out of its parent's list of children.
    #[inline]
    pub(crate) fn unlink(self) {
        let (prev, next) = (self.prev.get(), self.next.get());
        if let Some(prev) = prev {
            prev.next.set(next);
        } else if let Some(parent) = self.parent.get() {
            // Who is first in a list names its parent itself.
            parent.child.set(next.map_or(0, Self::word));
        }
        if let Some(next) = next {
            next.prev.set(prev);
        }
        self.parent.set(None);
    }

    /// Its first child has gone for good; `next` follows.
    #[inline(always)]
    pub(crate) fn first_is_gone(self, next: Option<Self>) {
        self.child.set(next.map_or(0, Self::word));
        if let Some(next) = next {
            next.prev.set(None);
        }
    }
}

impl Node {
    /// Fills in a fresh slot: the page of `level` at `phys`, mapped at `vaddr`, one entry.
    #[inline]
    pub(crate) fn init(&self, phys: u64, vaddr: u64, level: u32) {
        self.child.set(0);
        self.parent.set(None);
        self.next.set(None);
        self.prev.set(None);
        self.frame.set(phys >> 12 | COUNT_ONE | LIVE);
        self.place.set(vaddr >> 12 | u64::from(level) << 54);
    }

    /// The raw `frame` and `place` words, for port nodes.
    #[inline]
    pub(crate) fn raw(&self) -> (&Cell<u64>, &Cell<u64>) {
        (&self.frame, &self.place)
    }

    /// The slot is not in use any more.
    #[inline]
    pub(crate) fn forget(&self) {
        self.frame.set(0);
    }

    /// The word that chains free slots.
    #[inline]
    pub(crate) fn free_link(&self) -> &Cell<u64> {
        &self.place
    }

    /// Who it was derived from; `None` for a root (σ0's page).
    #[inline]
    #[must_use]
    pub fn parent(&self) -> Option<NodeRef> {
        let parent = self.parent.get()?;
        if parent.has(MARKER) { parent.parent.get() } else { Some(parent) }
    }

    /// Whether it knows its parent itself, and not through a forwarder.
    pub(crate) fn is_told(&self) -> bool {
        !self.parent.get().is_some_and(|parent| parent.has(MARKER))
    }

    pub(crate) fn set_parent(&self, parent: NodeRef) {
        self.parent.set(Some(parent));
    }

    /// The newest mapping derived from it.
    #[inline]
    #[must_use]
    pub fn first_child(&self) -> Option<NodeRef> {
        mapping(self.first_raw()?)
    }

    /// The first in the list of its children, marker or not.
    #[inline]
    pub(crate) fn first_raw(&self) -> Option<NodeRef> {
        // SAFETY: a node linked below this one, which stays in its slot as long as it is linked.
        unsafe { NodeRef::from_word(self.child.get()) }
    }

    /// The next in its list, marker or not.
    pub(crate) fn next_raw(&self) -> Option<NodeRef> {
        self.next.get()
    }

    /// Makes it a marker, with a number.
    pub(crate) fn mark(&self, depth: u64) {
        self.frame.set(MARKER | depth);
    }

    /// The next mapping derived from the same parent.
    #[inline]
    #[must_use]
    pub fn sibling(&self) -> Option<NodeRef> {
        mapping(self.next.get()?)
    }

    /// What is in front of it in its list, marker or not; for checks.
    pub(crate) fn elder(&self) -> Option<NodeRef> {
        self.prev.get()
    }

    /// Whether some of its children may know it through a forwarder only.
    pub(crate) fn is_passed_on(&self) -> bool {
        self.place.get() & PASSED_ON != 0
    }

    /// All of its children know it.
    pub(crate) fn is_known(&self) {
        self.place.set(self.place.get() & !PASSED_ON);
    }

    /// Where the region begins in physical memory.
    #[inline]
    #[must_use]
    pub fn phys(&self) -> u64 {
        (self.frame.get() & FRAME_MASK) << 12
    }

    /// Where in the space the region begins.
    #[inline]
    #[must_use]
    pub fn vaddr(&self) -> u64 {
        self.place.get() << 28 >> 16
    }

    /// Page-table level of the page when it was mapped.
    #[inline]
    #[must_use]
    pub fn level(&self) -> u32 {
        (self.place.get() >> 54) as u32 & 3
    }

    /// How often the mark of dying was taken off a page of its, modulo 2^18.
    #[inline]
    pub(crate) fn times_spared(&self) -> u64 {
        self.place.get() & SPARED_MASK
    }

    /// The mark of dying is taken off a page of its.
    #[cold]
    pub(crate) fn is_spared(&self) {
        let place = self.place.get();
        self.place.set(place & !SPARED_MASK | place.wrapping_add(SPARED_ONE) & SPARED_MASK);
    }

    /// Bytes of the region.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u64 {
        span(self.level())
    }

    /// Log2 of the bytes of the region.
    #[must_use]
    pub fn bits(&self) -> u32 {
        shift(self.level())
    }

    /// Page-table entries that refer to it.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u64 {
        (self.frame.get() & COUNT_MASK) >> 40
    }

    #[inline]
    pub(crate) fn add_count(&self, more: u64) {
        self.frame.set(self.frame.get() + (more << 40));
    }

    /// Counts one entry less; true if that was the last.
    #[inline]
    pub(crate) fn one_less(&self) -> bool {
        let frame = self.frame.get() - COUNT_ONE;
        self.frame.set(frame);
        frame & COUNT_MASK == 0
    }

    /// Whether all of the bits in `flags` are set.
    #[inline]
    pub(crate) fn has(&self, flags: u64) -> bool {
        self.frame.get() & flags == flags
    }

    /// The word with all flags; its other bits say other things.
    #[inline]
    pub(crate) fn flags(&self) -> u64 {
        self.frame.get()
    }

    #[inline]
    pub(crate) fn set_flags(&self, flags: u64) {
        self.frame.set(self.frame.get() | flags);
    }

    #[inline]
    pub(crate) fn clear_flags(&self, flags: u64) {
        self.frame.set(self.frame.get() & !flags);
    }
}

/// The first mapping in a list from `node` on.
#[inline]
fn mapping(node: NodeRef) -> Option<NodeRef> {
    if node.has(MARKER) { behind_markers(node) } else { Some(node) }
}

#[cold]
fn behind_markers(marker: NodeRef) -> Option<NodeRef> {
    let mut next = Some(marker);
    let mut pace = Pace::default();
    while let Some(node) = next.filter(|node| node.has(MARKER)) {
        // Their number is the users' choice.
        pace.round();
        next = node.next_raw();
    }
    next
}
