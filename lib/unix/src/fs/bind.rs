//! Copies of mounts: `MS_BIND`, and what a new namespace begins with. And what becomes of mounts whose place
//! loses its name.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::inode::{Inode, Kind};
use super::mount_space::MountSpace;
use super::mounts::{Mount, Point, Seen};
use super::spot::Spot;
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::namespace::{self, Namespace};

/// A mount, and what it is a copy of.
pub(super) struct Copied {
    /// The original.
    pub old: Rc<Mount>,
    /// The copy, which is nowhere yet.
    pub new: Rc<Mount>,
    /// Where it belongs, among the copies; the first has no place yet.
    pub point: Option<Point>,
}

/// Copies of `mounts`, parents first, for `space`. The first shows what is at `from`, which may be a part of what its
/// original shows; what was mounted outside of that is left out.
///
/// # Errors
/// `ENOMEM`, `ENOSPC`.
pub(super) fn copies(
    space: &MountSpace,
    mounts: &[Rc<Mount>],
    from: &Point,
) -> Result<Vec<Copied>, Errno> {
    let mut made: Vec<Copied> = Vec::new();
    for old in mounts {
        let point = if made.is_empty() { None } else { old.point() };
        let point = match point {
            _ if made.is_empty() => None,
            None => continue,
            Some(Point { spot, location }) => {
                let above = made.iter().find(|one| Rc::ptr_eq(&one.old, &spot.mount));
                let Some(above) = above else { continue };
                if !is_inside(&spot.inode, location.as_ref().map(|at| &at.0), above.new.root()) {
                    continue;
                }
                let spot = Spot { mount: above.new.clone(), inode: spot.inode };
                Some(Point { spot, location })
            }
        };
        let (root, origin) = match made.is_empty() && !from.spot.is_mount_root() {
            true => (from.spot.inode.clone(), from.location.clone()),
            false => (old.root().clone(), old.origin()),
        };
        let (tree, source, flags) = (old.tree(), &old.source, old.flags.get());
        let new = space.new_mount(Seen { tree, root, source, flags, origin })?;
        new.locked_flags.set(old.locked_flags.get());
        new.locked.set(old.is_locked() && point.is_some());
        made.push(Copied { old: old.clone(), new, point });
    }
    Ok(made)
}

/// Whether `inode`, found in `parent` unless it is a directory, is `root` or below it.
pub(super) fn is_inside(inode: &Rc<Inode>, parent: Option<&Rc<Inode>>, root: &Rc<Inode>) -> bool {
    let mut at = Some(inode.clone());
    if !inode.is(root) && !inode.is_directory() {
        at = parent.cloned();
    }
    while let Some(one) = at {
        if one.is(root) {
            return true;
        }
        at = one.parent();
    }
    false
}

/// What `MS_BIND` of `source` mounts, for the caller's namespace.
///
/// # Errors
/// `EINVAL` for what belongs to another namespace or cannot be bound.
pub(super) fn bound(cx: &Cx, from: &Point, recursive: bool) -> Result<Vec<Copied>, Errno> {
    let source = &from.spot;
    let space = namespace::mounts(cx.unix, cx.process);
    if let Kind::Namespace(one) = &source.kind {
        // One that has what leads to itself would never go.
        if matches!(one, Namespace::Mounts(bound) if bound.number <= space.number) {
            return Err(Errno::EINVAL);
        }
        return copies(&space, core::slice::from_ref(&source.mount), from);
    }
    if !space.has(&source.mount) || source.mount.sharing.get().unbindable {
        return Err(Errno::EINVAL);
    }
    if !recursive && covers_locked(&space, from) {
        return Err(Errno::EINVAL);
    }
    if !recursive {
        return copies(&space, core::slice::from_ref(&source.mount), from);
    }
    let mut below = space.below(&source.mount);
    if below.iter().any(|mount| mount.sharing.get().unbindable && mount.is_locked()) {
        return Err(Errno::EPERM);
    }
    below.retain(|mount| !mount.sharing.get().unbindable);
    copies(&space, &below, from)
}

/// Whether something below `from` is covered that must stay so.
fn covers_locked(space: &MountSpace, from: &Point) -> bool {
    let on = |mount: &Rc<Mount>| {
        let point = mount.point().filter(|_| mount.is_locked());
        point.is_some_and(|Point { spot, location }| {
            Rc::ptr_eq(&spot.mount, &from.spot.mount)
                && is_inside(&spot.inode, location.as_ref().map(|at| &at.0), &from.spot.inode)
        })
    };
    space.mounts().iter().any(on)
}

/// Whether a name of `inode` may be removed or changed: not where the caller's namespace has mounted something.
///
/// # Errors
/// `EBUSY`.
pub(super) fn check_name(cx: &Cx, mount: &Rc<Mount>, inode: &Rc<Inode>) -> Result<(), Errno> {
    if inode.covered.get() == 0 {
        return Ok(());
    }
    let space = namespace::mounts(cx.unix, cx.process);
    let all = cx.unix.fs.table.all_over(inode);
    let busy = all.iter().any(|one| space.has(one));
    if busy || Rc::ptr_eq(inode, mount.root()) { Err(Errno::EBUSY) } else { Ok(()) }
}

/// The same, and it is removed: what other namespaces have mounted there goes with it.
///
/// # Errors
/// `EBUSY`.
pub(super) fn name_goes(cx: &Cx, mount: &Rc<Mount>, inode: &Rc<Inode>) -> Result<(), Errno> {
    check_name(cx, mount, inode)?;
    if inode.covered.get() != 0 {
        for one in cx.unix.fs.table.all_over(inode) {
            if let Some(space) = one.space() {
                space.below(&one).iter().rev().for_each(|one| space.remove(one));
            }
        }
    }
    Ok(())
}
