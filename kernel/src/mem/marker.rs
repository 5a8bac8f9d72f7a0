//! Places in mapping trees that stay right while others change the trees.
//!
//! A walk that stops between two steps leaves a *marker* among the children that it is
//! visiting: what is in front of it is done, what is behind it is not. A marker is linked
//! like a node, so whoever takes out, adds or hands on its neighbours keeps its place right
//! without knowing of it. Those who look at children do not see it. A node whose only
//! children are markers may vanish: they move behind it ([`displace`]). A marker lies in the
//! tcb of the thread whose walk it is: that thread has paid for it, and needs one only.
//!
//! The same goes for what is left of a granted page's node until its children have been
//! told who their parent is now (`grant.rs`): a *forwarder*, which lies in a slab.

use super::node::{LIVE, MARKER, Node, NodeRef};
use super::slab;
use crate::arch::preemption::Pace;
use core::ops::Deref;
use core::ptr::NonNull;

/// Memory for a marker.
#[derive(Default)]
#[repr(transparent)]
pub struct Marker(Node);

/// A marker, linked or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkerRef(NodeRef);

/// It is an element of a list as a node is.
impl Deref for MarkerRef {
    type Target = NodeRef;

    fn deref(&self) -> &NodeRef {
        &self.0
    }
}

impl MarkerRef {
    /// A marker in memory that is never freed.
    #[must_use]
    pub fn of(marker: &'static Marker) -> Self {
        Self(NodeRef::new(NonNull::from(&marker.0)))
    }

    /// The marker at `marker`.
    ///
    /// # Safety
    /// It stays there until the last job that has it is done or abandoned.
    #[must_use]
    pub unsafe fn at(marker: &Marker) -> Self {
        Self(NodeRef::new(NonNull::from(&marker.0)))
    }

    /// Whether it is in a list.
    #[must_use]
    pub fn is_linked(self) -> bool {
        self.parent().is_some()
    }

    /// Takes it out of the list in which it is, if it is in one.
    pub(crate) fn take_out(self) {
        if self.is_linked() {
            self.0.unlink();
        }
    }

    /// Puts it in front of all children of `node`, which is so far from the root of its walk.
    pub(crate) fn put_first(self, node: NodeRef, depth: u64) {
        self.take_out();
        self.0.mark(depth);
        self.0.link_below(node);
    }

    /// How far the node among whose children it is is from the root of its walk.
    pub(crate) fn depth(self) -> u64 {
        self.0.flags() & !MARKER
    }
}

/// Before `node`, which has no children, is freed: the markers below it move behind it, but
/// those of walks that began there, which are over.
#[cold]
pub(crate) fn displace(node: NodeRef) {
    let mut pace = Pace::default();
    while let Some(first) = node.first_raw() {
        // Their number is the users' choice.
        pace.round();
        first.set_parent(node);
        first.unlink();
        if first.has(LIVE) {
            slab::free(first.space(), first);
            continue;
        }
        if let Some(depth) = MarkerRef(first).depth().checked_sub(1) {
            first.mark(depth);
            first.link_behind(node);
        }
    }
}
