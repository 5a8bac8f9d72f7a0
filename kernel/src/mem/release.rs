//! What becomes of a node whose pages are gone: what was referenced and written stays with
//! its parent, and its slot goes back to the space that paid for it.

use super::marker::displace;
use super::node::{ANY_STATUS, NodeRef, STATUS};
use super::slab;
use abi::Rights;

/// The status that vanished children left in `node`, which forgets it.
#[inline]
pub(crate) fn take_status(node: NodeRef) -> Rights {
    let flags = node.flags();
    if flags & ANY_STATUS != 0 {
        node.clear_flags(ANY_STATUS);
    }
    status_of(flags)
}

/// What a node's flags say of vanished children. Who may read may execute, too.
#[inline]
pub(crate) fn status_of(flags: u64) -> Rights {
    let rw = (flags >> STATUS) as u8 & Rights::RW.0;
    Rights(rw | rw >> 2)
}

/// Leaves the status of a vanished child in `node`.
pub(crate) fn leave_status(node: NodeRef, status: Rights) {
    let flags = u64::from(status.0 & Rights::RW.0) << STATUS;
    if flags != 0 {
        node.set_flags(flags);
    }
}

/// Frees a node without pages and children. What those that have vanished left in it is left in its parent.
pub(crate) fn free_node(node: NodeRef) {
    let flags = node.flags();
    if flags & ANY_STATUS != 0
        && let Some(parent) = node.parent()
    {
        leave_status(parent, status_of(flags));
    }
    if node.first_raw().is_some() {
        displace(node);
    }
    node.unlink();
    slab::free(node.space(), node);
}

/// So many ghosts are freed at once.
pub(crate) const AT_ONCE: u32 = 4;

/// Frees `node` and then its ancestors, as long as they are ghosts without children. Their number is the users'
/// choice: whose turn it would be behind a few of them is returned, for a walk that climbs.
#[must_use]
pub(crate) fn free_ghosts(node: NodeRef) -> Option<NodeRef> {
    let mut next = node;
    for _ in 0..AT_ONCE {
        if !is_bare(next) {
            return None;
        }
        let parent = next.parent();
        free_node(next);
        next = parent?;
    }
    Some(next).filter(|next| is_bare(*next))
}

/// Whether `node` has neither pages nor children.
#[inline]
pub(crate) fn is_bare(node: NodeRef) -> bool {
    node.count() == 0 && node.first_child().is_none()
}
